"""A column with its special cells costs what its axis costs: a row is in one place only."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidData, InvalidParameter
from partita.guarantee import Neighbors
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    ForbiddenNoise,
    RationalNoise,
    ZeroNoise,
    add_remove_pairs,
    change_one_pairs,
    coupled,
    data_sets,
    law,
    privacy_loss,
    tape_noise,
)
from partita.trusted.mechanisms.base import WithSpecials
from partita.trusted.mechanisms.tree import Tree
from partita.trusted.noise import Noise
from partita.trusted.secret import Histogram

HALF = Fraction(1, 2)
NAMES = ("below", "null")

Counts = tuple[int, ...]
"""The counts of all cells of a column: those of the axis first, then the special ones."""


def made(
    size: int, *, neighbors: Neighbors = "add-remove", contributions: int = 1, names: tuple[str, ...] = NAMES
) -> WithSpecials:
    axis = Tree(size=size, epsilon=1, neighbors=neighbors, contributions=contributions, special_cells=True)
    return WithSpecials(axis=axis, specials=names)


def published(mechanism: WithSpecials, counts: Counts, noise: Noise) -> tuple[object, ...]:
    """All that is published of a column, in a form that can be compared."""
    size, names = mechanism.axis.size, mechanism.specials
    histogram = Histogram.dense(counts[:size], contributions=mechanism.axis.contributions)
    axis, specials = mechanism.measure(histogram, dict(zip(names, counts[size:], strict=True)), noise=noise)
    nodes = [node for level in axis.levels for node in level.tolist()]  # type: ignore[attr-defined]
    return (*nodes, *specials.tolist())


def row_by_row(width: int, most: int, rows: int) -> Iterator[tuple[Counts, Counts]]:
    """All pairs of columns that differ by at most `rows` added or removed rows."""
    for one, other in product(data_sets(width, most), repeat=2):
        if 0 < sum(abs(a - b) for a, b in zip(one, other, strict=True)) <= rows:
            yield one, other


def people(width: int, rows: int) -> Iterator[tuple[Counts, Counts]]:
    """All pairs of columns such that at most so many rows of a person go, and as many others come."""
    for one, other in product(data_sets(width, rows), repeat=2):
        gone = sum(max(0, a - b) for a, b in zip(one, other, strict=True))
        if one != other and max(gone, gone + sum(other) - sum(one)) <= rows:
            yield one, other


def worst_coupled_loss(mechanism: WithSpecials, pairs: Iterator[tuple[Counts, Counts]]) -> Fraction:
    noise = tape_noise(EndlessTape("specials"))
    return max(
        coupled(lambda counts, noise: published(mechanism, counts, noise), one, other, noise)
        for one, other in pairs
    )


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_row_costs_epsilon_wherever_it_is(size: int) -> None:
    """Over all add-remove pairs of a small column, special cells included, the loss is epsilon at most."""
    assert worst_coupled_loss(made(size), add_remove_pairs(size + 2, 1)) == 1


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_row_that_moves_costs_epsilon_wherever_it_goes(size: int) -> None:
    """Over all change-one pairs, also from the axis into a special cell and back, the loss is epsilon."""
    mechanism = made(size, neighbors="change-one")

    assert worst_coupled_loss(mechanism, change_one_pairs(size + 2, 1)) == 1


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_a_person_costs_epsilon_with_all_rows(neighbors: Neighbors) -> None:
    """Two rows of a person may lie on the axis, in special cells or in both, and cost epsilon together."""
    mechanism = made(2, neighbors=neighbors, contributions=2, names=("null",))
    pairs = people(3, 2) if neighbors == "change-one" else row_by_row(3, 2, 2)

    assert worst_coupled_loss(mechanism, pairs) == 1


def enumerated_loss(
    mechanism: WithSpecials, pairs: Callable[[int, int], Iterator[tuple[Counts, Counts]]]
) -> Any:
    """The largest loss between the exact laws of the shipped code, over all neighbour pairs."""
    width = mechanism.axis.size + len(mechanism.specials)
    rates = [1 / scale for scale in (mechanism.axis.scale, mechanism.scale)]  # type: ignore[attr-defined]
    unit = Fraction(1, math.lcm(*(rate.denominator for rate in rates)))
    noise = RationalNoise(HALF, unit=unit, window=range(mechanism.axis.size + 1))
    laws = {
        counts: law(lambda noise, counts=counts: published(mechanism, counts, noise), noise)  # type: ignore[misc]
        for counts in data_sets(width, 1)
    }
    return max(
        privacy_loss(laws[one], laws[other], base=HALF, unit=noise.unit) for one, other in pairs(width, 1)
    )


@pytest.mark.parametrize(("size", "names"), [(1, ("null",)), (1, NAMES), (2, ("null",))])
@pytest.mark.spread(1)
def test_the_law_of_a_whole_column_loses_epsilon(size: int, names: tuple[str, ...]) -> None:
    """Enumerated through every branch, axis and special cells together lose exactly epsilon."""
    assert enumerated_loss(made(size, names=names), add_remove_pairs) == 1


@pytest.mark.parametrize(("size", "names"), [(1, ("null",)), (1, NAMES)])
def test_the_law_of_a_whole_column_loses_epsilon_when_a_row_moves(size: int, names: tuple[str, ...]) -> None:
    """So it does under change-one, where a row may leave the axis for a special cell."""
    assert enumerated_loss(made(size, neighbors="change-one", names=names), change_one_pairs) == 1


# --- planted bugs: each must be caught --------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Planted:
    """The shipped mechanism with its special cells drawn in another way."""

    axis: Tree
    specials: tuple[str, ...]
    bug: str

    @property
    def scale(self) -> Fraction:
        return self.axis.special_scale

    def measure(self, data: Histogram, beside: Mapping[str, int], *, noise: Noise) -> tuple[Any, Any]:
        session = noise.session()
        axis = self.axis.release(data, noise=session)
        return axis, np.array(list(getattr(self, f"_{self.bug}")(beside, session).values()))

    def _exact(self, beside: Mapping[str, int], noise: Noise) -> dict[str, int]:
        return dict(beside)

    def _half_the_scale(self, beside: Mapping[str, int], noise: Noise) -> dict[str, int]:
        return {name: int(noise.add(count, self.scale / 2)) for name, count in beside.items()}

    def _one_row_only(self, beside: Mapping[str, int], noise: Noise) -> dict[str, int]:
        return {name: int(noise.add(count, 1 / self.axis.epsilon)) for name, count in beside.items()}

    def _only_where_rows_are(self, beside: Mapping[str, int], noise: Noise) -> dict[str, int]:
        return {name: int(noise.add(count, self.scale)) for name, count in beside.items() if count}

    def _one_noise_for_all(self, beside: Mapping[str, int], noise: Noise) -> dict[str, int]:
        drawn = int(noise.add(0, self.scale))
        return {name: count + drawn for name, count in beside.items()}

    def _a_total_for_free(self, beside: Mapping[str, int], noise: Noise) -> dict[str, int]:
        noisy = {name: int(noise.add(count, self.scale)) for name, count in beside.items()}
        return {**noisy, "all": int(noise.add(sum(beside.values()), self.scale))}


BUGS = [
    "exact",
    "half_the_scale",
    "one_row_only",
    "only_where_rows_are",
    "one_noise_for_all",
    "a_total_for_free",
]


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug: str) -> None:
    """Each wrong way to release special cells breaks the coupling, or costs more than epsilon."""
    axis = Tree(size=2, epsilon=1, neighbors="change-one", contributions=2, special_cells=True)
    planted: Any = Planted(axis=axis, specials=NAMES, bug=bug)

    try:
        loss = worst_coupled_loss(planted, people(4, 2))
    except CouplingBroken:
        return
    assert loss > 1


# --- behaviour ----------------------------------------------------------------------------------


def test_without_noise_special_cells_are_exact_and_in_order() -> None:
    """Zero noise gives the counts of the special cells, in the order in which they are named."""
    mechanism = made(2)

    axis, specials = mechanism.release(Histogram.dense([3, 4]), {"null": 5, "below": 6}, noise=ZeroNoise())

    assert list(specials.counts.items()) == [("below", 6), ("null", 5)]
    assert float(axis.count(0, 1)) == 7


def test_the_scale_of_special_cells_follows_rows_and_neighbors() -> None:
    """One over epsilon, for change-one what the axis leaves, and so for each row of a person."""
    cases: list[tuple[Neighbors, int]] = [
        ("add-remove", 1),
        ("change-one", 1),
        ("add-remove", 3),
        ("change-one", 3),
    ]

    scales = [made(8, neighbors=neighbors, contributions=rows).scale for neighbors, rows in cases]

    assert scales == [
        1,
        3,
        3,
        9,
    ]  # a row that leaves 4 levels, of the 6 nodes that a move changes, leaves 1/3


def test_only_secure_noise_carries_the_guarantee() -> None:
    """The axis of a release says whether it was made with the system's noise."""
    mechanism = made(2)
    data, beside = Histogram.dense([1, 2]), dict.fromkeys(NAMES, 0)

    assert mechanism.release(data, beside)[0].guarantee == mechanism.guarantee
    assert mechanism.release(data, beside, noise=ZeroNoise())[0].guarantee is None


CANARY = 987_654_321


@pytest.mark.parametrize(
    "beside",
    [
        {"below": CANARY},
        {"below": 1, "null": CANARY, "above": 1},
        {"below": 1, "null": -CANARY},
        {"below": 1, "null": CANARY + 0.5},
        {"below": 1, "null": True},
        {"below": 1, "null": 2**62},
        [CANARY, CANARY],
        None,
    ],
    ids=str,
)
def test_bad_counts_are_refused_before_any_draw_and_never_shown(beside: Any) -> None:
    """There is one count for each special cell, none negative, and no error shows one."""
    with pytest.raises(InvalidData) as refused:
        made(2).release(Histogram.dense([1, 2]), beside, noise=ForbiddenNoise())

    assert str(CANARY) not in str(refused.value)


def test_another_axis_is_refused_before_any_draw() -> None:
    """The histogram must have the cells of the axis and bound contributions as tightly."""
    for data in (Histogram.dense([1]), Histogram.dense([1, 1], contributions=2), [1, 1]):
        with pytest.raises((InvalidData, InvalidParameter)):
            made(2).release(data, dict.fromkeys(NAMES, 0), noise=ForbiddenNoise())  # type: ignore[arg-type]


@pytest.mark.parametrize("specials", [["below"], ("below", "below"), (1,), "below", None], ids=str)
def test_special_cells_are_named_once_each(specials: Any) -> None:
    """Names come in a tuple without repeats."""
    with pytest.raises(InvalidParameter, match="specials must be a tuple of different names"):
        WithSpecials(axis=Tree(size=2, epsilon=1), specials=specials)


@pytest.mark.statistics
def test_noise_of_special_cells_has_its_scale_and_is_independent() -> None:
    """Over 4,000 releases the variance is that of its law and cells are uncorrelated, to five deviations."""
    mechanism = made(2)
    drawn = np.array(
        [
            list(mechanism.release(Histogram.dense([1, 2]), {"below": 10, "null": 20})[1].counts.values())
            for _ in range(4_000)
        ],
        dtype=float,
    )
    variance = 2 * np.exp(-1) / (1 - np.exp(-1)) ** 2

    noise = drawn - [10, 20]
    assert np.abs(noise.mean(axis=0)).max() < 5.5 * np.sqrt(variance / 4_000)
    assert noise.var(axis=0) == pytest.approx([variance, variance], rel=5.5 * np.sqrt(5.5 / 4_000))
    assert abs(np.corrcoef(noise.T)[0, 1]) < 5.5 / np.sqrt(4_000)
