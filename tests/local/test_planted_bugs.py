"""Wrong randomizers, samplers and devices: the checks that the right ones pass catch every one."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidParameter, PartitaError
from partita.local.columns import hyperplane_hits
from partita.local.device import Device
from partita.local.encodings import Piecewise, ProjectiveResponse
from partita.local.question import Frequency
from partita.local.randomizer import WHOLE, FrequencyRandomizer, RandomizedResponse, Randomizer, UnaryEncoding
from partita.testing import tape_law
from partita.trusted.noise.laws import Tape, integers_below

from .laws import device_law, loses_at_most, supporting

ONE = Fraction(1)


def safe(randomizer: Randomizer) -> bool:
    """The checker: whether the sampler keeps epsilon over all pairs of cells, and samples reports only."""
    laws: list[Any] = [device_law(randomizer, x) for x in range(randomizer.size)]
    reports = all(0 <= report < randomizer.reports for law in laws for report in law)
    return reports and all(
        loses_at_most(randomizer.epsilon, one, other) for one, other in combinations(laws, 2)
    )


def unbiased(randomizer: Any) -> bool:
    """The other checker: whether `hit` and `miss` are the chances that the decoder sees."""
    for x in range(randomizer.size):
        support = supporting(randomizer, x)
        for true in range(randomizer.size):
            chance = sum(p for report, p in device_law(randomizer, true).items() if report in support)
            if chance != (randomizer.hit if true == x else randomizer.miss):
                return False
    return True


def right() -> dict[str, Any]:
    return {
        "response": RandomizedResponse(size=3, epsilon=ONE),
        "projective": ProjectiveResponse(size=4, epsilon=ONE, field=2, dimension=3),
        "unary": UnaryEncoding(size=3, epsilon=ONE),
        "piecewise": Piecewise(size=4, epsilon=ONE),
    }


@pytest.mark.parametrize("kind", right())
def test_the_checkers_pass_what_ships(kind: str) -> None:
    """They have nothing to say about the right code."""
    randomizer = right()[kind]

    assert safe(randomizer)
    assert not isinstance(randomizer, FrequencyRandomizer) or unbiased(randomizer)


def _rounded_up(response: Any) -> None:
    object.__setattr__(response, "threshold", response.threshold + 1)


def _other_may_be_true(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lie is drawn among all cells but the first: the truth may be told by accident, not evenly."""

    def sample(self: Any, x: Any, draws: Any) -> Any:
        truth = draws.chance(self.threshold)
        return draws.choose(truth, x, 1 + draws.below(self.size - 1))

    monkeypatch.setattr(RandomizedResponse, "sample", sample)


def _zero_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the hyperplane the free digits may all be zero, which is no point."""
    shipped = ProjectiveResponse.sample

    class Shifted:
        def __init__(self, draws: Any) -> None:
            self._draws, self._first = draws, True

        def below(self, count: int) -> Any:
            first, self._first = self._first, False
            return self._draws.below(count + 1) - 1 if first else self._draws.below(count)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._draws, name)

    monkeypatch.setattr(ProjectiveResponse, "sample", lambda self, x, draws: shipped(self, x, Shifted(draws)))


def _wrong_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of points on a hyperplane is taken for one that is too large."""
    monkeypatch.setattr(ProjectiveResponse, "odds", property(lambda self: (5, 2)))


def _sure_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bit of the true cell is always one."""

    def sample(self: Any, x: Any, draws: Any) -> Any:
        return draws.with_bit(draws.row(WHOLE - self.threshold, self.size), x, 1)

    monkeypatch.setattr(UnaryEncoding, "sample", sample)


def _rare_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row has ones with half of the chance."""

    def sample(self: Any, x: Any, draws: Any) -> Any:
        return draws.with_bit(draws.row((WHOLE - self.threshold) // 2, self.size), x, draws.below(2))

    monkeypatch.setattr(UnaryEncoding, "sample", sample)


def _narrow_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """The places of the window that are drawn are fewer than those that the threshold was made for."""

    def sample(self: Any, x: Any, draws: Any) -> Any:
        inside = draws.chance(self.threshold)
        far = draws.below(self.size - 1)
        return draws.choose(inside, x, far + self.window * (far >= x))

    monkeypatch.setattr(Piecewise, "sample", sample)


@pytest.mark.parametrize(
    ("kind", "plant"),
    [
        ("response", _other_may_be_true),
        ("projective", _zero_vector),
        ("projective", _wrong_line),
        ("unary", _sure_bit),
        ("unary", _rare_bits),
        ("piecewise", _narrow_window),
    ],
)
def test_a_wrong_sampler_is_caught(
    monkeypatch: pytest.MonkeyPatch, kind: str, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """Enumerated, it loses more than epsilon or makes what is no report."""
    plant(monkeypatch)

    assert not safe(right()[kind])


@pytest.mark.parametrize("kind", right())
def test_a_threshold_rounded_up_is_caught(kind: str) -> None:
    """One unit of 2^-64 too many is seen."""
    randomizer = right()[kind]
    _rounded_up(randomizer)

    assert not safe(randomizer)


@pytest.mark.parametrize("kind", ["response", "projective"])
def test_a_float_in_the_estimator_is_caught(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Probabilities from floats are not those of the sampler."""
    randomizer = right()[kind]
    rounded = Fraction(float(randomizer.hit))
    monkeypatch.setattr(type(randomizer), "hit", property(lambda self: rounded))

    assert not unbiased(randomizer)


def test_a_modulo_bias_is_caught() -> None:
    """Remainders of all words favour the first ones; the shipped integers are even."""

    def remainder(tape: Tape) -> int:
        return int(tape.take(1)[0]) % 3

    biased = tape_law(remainder)
    even = tape_law(lambda tape: int(integers_below(tape, 3, 1)[0]))

    assert len(set(biased.values())) > 1
    assert len(set(even.values())) == 1


def test_a_server_that_overstates_a_threshold_is_caught() -> None:
    """The device recomputes it and refuses, for every kind of question that it is told about."""
    for randomizer in right().values():
        if isinstance(randomizer, FrequencyRandomizer):
            description = Frequency.of(randomizer.size, randomizer).to_json()
            description["randomizer"]["threshold"] = str(randomizer.threshold + 1)

            with pytest.raises(InvalidParameter, match="threshold"):
                Device.verify(description)


def test_a_server_that_marks_a_device_is_caught() -> None:
    """A lower threshold is private too, and so is another geometry: they are refused as cookies."""
    for kind, mark in (
        ("hashing", {"prime": 1013}),
        ("hashing", {"buckets": 5}),
        ("projective", {"field": 2}),
    ):
        description = Frequency(1000, epsilon=1, kind=kind).to_json()  # type: ignore[arg-type]
        law = description["randomizer"]
        for change in (mark, {"threshold": str(int(law["threshold"]) - 1)}):
            with pytest.raises(InvalidParameter, match=next(iter(change))):
                Device.verify({**description, "randomizer": {**law, **change}})


def cautious(folder: Path) -> bool:
    """The checker of devices: one question costs once, is answered alike, and no budget is overdrawn."""
    device = Device(folder / "state.json", budget=2)
    question = Frequency(1000, epsilon=1)
    alike = {device.answer(question, 7).value for _ in range(20)}
    refused = 0
    for name in "abc":
        try:
            device.answer(question, 7, name=name)
        except PartitaError:
            refused += 1
    return len(alike) == 1 and refused == 2 and device.spent <= device.budget


def test_the_device_that_ships_is_cautious(tmp_path: Path) -> None:
    """The checker has nothing to say about it."""
    assert cautious(tmp_path)


def _forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memo is ignored."""
    monkeypatch.setattr(Device, "_load", lambda self: {})


def _spends_freely(monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget is not asked."""
    monkeypatch.setattr(Device, "_afford", lambda self, question, memo: None)


def _never_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was said is not written down."""
    shipped = Device._store
    monkeypatch.setattr(Device, "_store", lambda self, memo: None if memo else shipped(self, memo))


@pytest.mark.parametrize("plant", [_forgets, _spends_freely, _never_writes])
def test_a_careless_device_is_caught(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """It answers one question in several ways, or more than its budget allows."""
    plant(monkeypatch)

    assert not cautious(tmp_path)


def test_a_transform_in_single_precision_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hits of many reports are exact integers; with fewer digits they are not."""
    response = ProjectiveResponse(size=40, epsilon=ONE, field=3, dimension=4)
    counts = np.arange(40, dtype=np.int64) * 1_000_003 + 17

    assert exact_hits(response, counts)

    double = np.fft.fftn
    monkeypatch.setattr(np.fft, "fftn", lambda values: double(values.astype(np.float32)).astype(np.complex64))
    assert not exact_hits(response, counts)


def exact_hits(response: ProjectiveResponse, counts: Any) -> bool:
    """Whether the hits on every hyperplane are what counting them one by one gives."""
    slow = [sum(int(counts[y]) for y in range(40) if not response.meets(x, y)) for x in range(response.size)]
    return list(hyperplane_hits(response, counts)) == slow
