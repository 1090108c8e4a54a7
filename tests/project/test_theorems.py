"""The demonstrations of examples/theorems.py on fixed noise, and the learners' privacy by enumeration."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction
from importlib.util import module_from_spec, spec_from_file_location
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.testing import EndlessTape, tape_noise
from partita.testing.laws import OutputLaw, RationalNoise, law


def _load(path: Path) -> Any:
    """The module in a file outside of all packages."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


theorems = _load(Path(__file__).parents[2] / "examples" / "theorems.py")

HALF = Fraction(1, 2)
EXAMPLES = [(x, label) for x in range(4) for label in (0, 1)]
"""All labelled examples of two bits."""


def _fixed() -> tuple[np.random.Generator, Any]:
    return np.random.default_rng(7), tape_noise(EndlessTape(7))


def test_every_demonstration_keeps_its_promise() -> None:
    """Two attacks that always succeed and two that cannot, both reductions, both learners."""
    random, noise = _fixed()
    shown = [
        *theorems.show_attacks(runs=400, random=random, noise=noise, kernel=noise),
        theorems.show_queries_from_reports(queries=10, random=random, words=EndlessTape(5)),
        *theorems.show_reports_from_queries(draws=400, random=random),
        *theorems.show_parity(runs=6, random=random, noise=noise),
        theorems.show_central_learner(runs=8, random=random, noise=noise),
    ]

    assert len(shown) == 10
    assert [each.theorem for each in shown if not each.holds] == []
    assert "FAILS" not in "".join(map(str, shown))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("bit", [0, 1, -3])
def test_one_look_at_figure_12_1_gives_the_next_event_away(bit: int, seed: int) -> None:
    """Whatever the noise was."""
    assert theorems.look_at_figure_12_1(bit, noise=tape_noise(EndlessTape(seed))) == bit


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("bit", [0, 1, -3])
def test_two_looks_give_the_event_between_them_away(bit: int, seed: int) -> None:
    """Whatever the noise was, at a counter that is private against one look."""
    assert theorems.look_twice(bit, noise=tape_noise(EndlessTape(seed))) == bit


def test_an_attack_that_misses_once_is_not_certain() -> None:
    """Planted: whoever says 0 always is right half of the time."""
    random, _ = _fixed()

    assert not theorems.show_attack("", lambda bit: 0, promised=1, runs=50, random=random).holds
    assert not theorems.show_attack("", lambda bit: bit, promised=0.73, runs=500, random=random).holds


def test_the_figure_outputs_every_interval_when_it_ends() -> None:
    """Four periods with the counts of those that end in each; a cell has its noise before any event."""
    figure = theorems.Figure121(horizon=4, epsilon=1, noise=tape_noise(EndlessTape(1)))
    plain = theorems.Figure121(horizon=4, epsilon=1, noise=tape_noise(EndlessTape(1)))
    with_events = [figure.update(x) for x in (1, 10, 100, 1000)]
    without = [plain.update(0) for _ in range(4)]

    counts = [[a - b for a, b in zip(*pair, strict=True)] for pair in zip(with_events, without, strict=True)]
    assert counts == [[1], [10, 11], [100], [1000, 1100]]


def _parity_law(examples: Sequence[tuple[int, int]], chance: Fraction) -> OutputLaw:
    return law(
        lambda noise: theorems.learn_parity(examples, 2, chance=chance, noise=noise), RationalNoise(HALF)
    )


def _loses(one: OutputLaw, other: OutputLaw) -> Fraction:
    keys = one.keys() | other.keys()
    ratios = [(one.get(key, Fraction(0)), other.get(key, Fraction(0))) for key in keys]
    return max(max(a / b, b / a) if a and b else Fraction(10**9) for a, b in ratios)


def _most_lost(chance: Fraction) -> Fraction:
    """Over all sets of at most two examples of two bits, and one example more."""
    sets = [[], *([one] for one in EXAMPLES), *map(list, product(EXAMPLES[2:6], repeat=2))]
    laws = [_parity_law(some, chance) for some in sets]
    return max(
        _loses(before, _parity_law([*some, more], chance))
        for some, before in zip(sets, laws, strict=True)
        for more in EXAMPLES
    )


def test_the_parity_learner_loses_no_more_than_epsilon() -> None:
    """e^epsilon is 1 / (1 - chance): enumerated, and reached up to the example that changes nothing else."""
    assert 1 + HALF <= _most_lost(HALF) <= 1 / (1 - HALF)
    assert _most_lost(Fraction(3, 4)) > 2


def test_a_parity_learner_without_its_coin_is_not_private(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: if None says that nothing fits, examples that contradict each other give themselves away."""
    monkeypatch.setattr(
        RationalNoise,
        "bernoulli",
        lambda noise, chance: chance != HALF and noise.branches.choose([(True, chance), (False, 1 - chance)]),
    )

    assert _most_lost(Fraction(1, 3)) > Fraction(3, 2)


def test_the_chance_of_an_example_is_rounded_to_the_private_side() -> None:
    """At most 1 - e^-epsilon, and next to it."""
    chance = theorems.sampling_chance(1)

    assert 0.632120558 < chance < 0.632120559


@pytest.mark.parametrize("seed", range(4))
def test_a_parity_that_is_found_fits_its_examples(seed: int) -> None:
    """With few examples it is any of those that fit, with enough it is the secret; None if nothing fits."""
    rng = np.random.default_rng(seed)
    secret = int(rng.integers(1 << 20))
    rows = rng.integers(1 << 20, size=60).tolist()
    examples = [(row, (row & secret).bit_count() % 2) for row in rows]
    noise = tape_noise(EndlessTape(seed))
    few = [theorems.learn_parity(examples[:9], 20, chance=Fraction(1), noise=noise) for _ in range(12)]
    many = [theorems.learn_parity(examples, 20, chance=Fraction(1), noise=noise) for _ in range(12)]
    wrong = [*examples, (rows[0], 1 - examples[0][1])]

    fitting = [found for found in few if found is not None]
    assert len(set(fitting)) > 1
    assert all((row & found).bit_count() % 2 == label for found in fitting for row, label in examples[:9])
    assert set(many) == {None, secret}
    assert all(theorems.learn_parity(wrong, 20, chance=Fraction(1), noise=noise) is None for _ in range(8))


def _learned(examples: Sequence[tuple[int, int]], epsilon: int) -> OutputLaw:
    said = theorems.conjunctions(2)
    xs = np.array([x for x, _ in examples], dtype=np.int64)
    labels = np.array([label == 1 for _, label in examples], dtype=bool)
    return law(
        lambda noise: theorems.learn_privately(said, xs, labels, epsilon=epsilon, noise=noise),
        RationalNoise(HALF),
    )


@pytest.mark.parametrize(("epsilon", "private"), [(1, True), (2, False)])
def test_the_central_learner_loses_epsilon_and_no_more(epsilon: int, private: bool) -> None:
    """Enumerated for an example more, with e^-1 replaced by 1/2; at twice the epsilon it is caught."""
    sets = [[], *([one] for one in EXAMPLES), EXAMPLES[:3], EXAMPLES[2:7]]
    lost = max(
        _loses(_learned(some, epsilon), _learned([*some, more], epsilon))
        for some in sets
        for more in EXAMPLES
    )

    assert (lost <= 2) == private


def test_the_law_of_simulated_reports_is_that_of_the_randomizer() -> None:
    """Without tolerance exactly; with it, within the bound; the queries are statistical queries."""
    cells = theorems.Frequency(3, epsilon=1).randomizer
    shares = [0.2, 0.3, 0.5]
    for tau in (0.0, 0.05):
        reports = theorems.ReportsFromQueries(cells, theorems.ToleranceOracle(shares, tau=tau))
        simulated = reports.law()
        right = {w: sum(s * float(cells.pmf(c)[w]) for c, s in enumerate(shares)) for w in simulated}
        apart = sum(abs(simulated[w] - right[w]) for w in right) / 2
        assert apart <= reports.off + 1e-12
        assert (apart > 1e-9) == (tau > 0)
        assert all(0 <= value <= 1 + 1e-12 for w in right for value in reports.query(w))
