"""Reports about levels and rectangles keep epsilon, levels included: exact ratios, of the shipped sampler."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidParameter
from partita.local import Device, Mixture, RandomizedResponse, Range, Rectangles
from partita.local.randomizer import LocalLaw
from partita.local.ranges import CellTree, ReportView, line_views
from tests.local.laws import EPSILONS, column_law, loses_at_most, total

from .laws import mixed_law

ONE = Fraction(1)


def every_question() -> list[Any]:
    """Sizes up to 16, powers of the branching or not, and boxes of two and three columns."""
    ranges = [
        Range(size, epsilon=epsilon, branching=branching)
        for size in (2, 5, 16)
        for branching in (2, 3, 4)
        for epsilon in EPSILONS
    ]
    boxes = [Rectangles({"x": 4, "y": 3}, epsilon=ONE), Rectangles({"x": 2, "y": 3, "z": 2}, epsilon=ONE)]
    return [*ranges, Range(16, epsilon=1, kind="projective"), Range(7, epsilon=1, kind="hadamard"), *boxes]


def named(question: Any) -> str:
    return f"{question.asks}-{question.randomizer.size}-{question.branching}-{question.epsilon}"


def safe(mixture: LocalLaw, law: Callable[[Any, int], Any] = mixed_law) -> bool:
    """The checker: whether reports are reports, and keep epsilon over all pairs of cells."""
    laws: list[Any] = [law(mixture, x) for x in range(mixture.size)]
    reports = all(0 <= report < mixture.reports for each in laws for report in each)
    pairs = combinations(laws, 2)
    return reports and all(loses_at_most(mixture.epsilon, one, other) for one, other in pairs)


@pytest.mark.parametrize("question", every_question(), ids=named)
def test_probabilities_add_up_and_keep_epsilon(question: Any) -> None:
    """Each law sums to one, and no report, level and all, tells two cells apart by more than e^epsilon."""
    mixture = question.randomizer

    assert {total(mixture.pmf(x)) for x in range(mixture.size)} == {1}
    assert safe(mixture, lambda law, x: law.pmf(x))


@pytest.mark.parametrize("question", [Range(5, epsilon=1), Range(4, epsilon=1, kind="projective")], ids=named)
def test_a_device_samples_exactly_its_law(question: Any) -> None:
    """Over all branches of all draws, every report has the probability that `pmf` says."""
    mixture = question.randomizer
    for x in range(mixture.size):
        assert mixed_law(mixture, x) == mixture.pmf(x)


def test_a_device_samples_exactly_the_law_of_a_box() -> None:
    """The same for two columns."""
    mixture = Rectangles({"x": 3, "y": 2}, epsilon=1).randomizer
    for x in range(mixture.size):
        assert mixed_law(mixture, x) == mixture.pmf(x)


def test_columns_have_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """`randomize_many` of one cell is the same law."""
    mixture = Range(4, epsilon=1).randomizer
    for x in range(4):
        expected = {(report,): chance for report, chance in mixture.pmf(x).items()}

        assert column_law(monkeypatch, mixture, [x]) == expected


def test_reports_of_a_column_are_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law of two reports in one column is the product of their laws."""
    mixture = Range(3, epsilon=1).randomizer

    expected = {(a, b): p * q for a, p in mixture.pmf(2).items() for b, q in mixture.pmf(0).items()}

    assert column_law(monkeypatch, mixture, [2, 0]) == expected


def test_an_assigned_view_is_the_one_reported() -> None:
    """One by one and in columns; a view that is none is refused."""
    question = Range(64, epsilon=1)
    views = np.arange(600) % 6
    reports = question.randomize_many(np.arange(600) % 64, views=views)
    starts = np.array(question.randomizer.starts)

    assert (np.searchsorted(starts, reports, side="right") - 1 == views).all()
    assert starts[3] <= question.randomize(9, view=3) < starts[4]
    with pytest.raises(InvalidParameter, match="views must hold"):
        question.randomize_many([1, 2], views=[0, 6])
    with pytest.raises(InvalidParameter, match="view must be at most 5"):
        question.randomize(1, view=6)


def test_a_server_cannot_raise_the_threshold_of_a_level() -> None:
    """A device reads every part of a mixture, and refuses one unit too many."""
    description: Any = Range(64, epsilon=1).to_json()
    for part in description["randomizer"]["parts"]:
        changed = part["threshold"]
        part["threshold"] = str(int(changed) + 1)
        with pytest.raises(InvalidParameter, match="threshold"):
            Device.verify(description)
        part["threshold"] = changed

    assert Device.verify(description) == Range(64, epsilon=1)


def test_a_server_cannot_give_one_level_more() -> None:
    """All levels have one epsilon, which is the one shown."""
    description: Any = Range(8, epsilon=1).to_json()
    description["randomizer"]["parts"][2] = Range(8, epsilon=3).to_json()["randomizer"]["parts"][2]

    with pytest.raises(InvalidParameter, match="all of one epsilon"):
        Device.verify(description)


def test_the_checker_passes_what_ships() -> None:
    """It has nothing to say about the right code."""
    assert safe(Range(5, epsilon=1).randomizer)


def _level_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """People with large values report fine levels more often."""

    def sample(self: Any, x: Any, draws: Any) -> Any:
        return self.sample_view(max(draws.below(3), int(x > 2)), x, draws)

    monkeypatch.setattr(Mixture, "sample", sample)


def _level_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last cell never reports the first level."""

    def sample(self: Any, x: Any, draws: Any) -> Any:
        return self.sample_view(1 + draws.below(2) if x == 4 else draws.below(3), x, draws)

    monkeypatch.setattr(Mixture, "sample", sample)


def _two_levels_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two levels are reported for the price of one."""

    def sample(self: Any, x: Any, draws: Any) -> Any:
        return self.sample_view(0, x, draws) * 5 + self.sample_view(2, x, draws) % 5

    monkeypatch.setattr(Mixture, "sample", sample)
    monkeypatch.setattr(Mixture, "reports", property(lambda self: 1_000))


def _true_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first level is told as it is."""
    shipped = Mixture.sample_view

    def sample_view(self: Any, view: Any, x: Any, draws: Any) -> Any:
        return self.views[0].node(x) if view == 0 else shipped(self, view, x, draws)

    monkeypatch.setattr(Mixture, "sample_view", sample_view)


@pytest.mark.parametrize("plant", [_level_by_value, _level_of_nobody, _two_levels_at_once, _true_node])
def test_a_wrong_mixture_is_caught(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """Enumerated, it loses more than epsilon."""
    plant(monkeypatch)

    assert not safe(Range(5, epsilon=1).randomizer)


def test_a_part_of_another_size_is_refused() -> None:
    """A mixture has one randomizer of the right size for each view."""
    views = line_views(CellTree(4))
    small = RandomizedResponse(size=2, epsilon=ONE)

    for parts in ((small,), (small, small), (small, small, small)):
        with pytest.raises(InvalidParameter, match="parts must have"):
            Mixture.read(views, parts)
    assert isinstance(views[0], ReportView)
