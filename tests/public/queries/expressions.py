"""Random expressions over a small universe, and what they mean, cell by cell, by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from partita.domain import Category, Integer, Real, Special
from partita.public.queries.language import (
    between,
    clipped,
    marginal,
    matrix,
    power,
    prefixes,
    ranges,
    total,
    value,
    weights,
)
from partita.public.queries.operator import Structured
from partita.public.queries.queries import Queries, Universe

UNIVERSE = Universe(
    ["age", "income", "sex"], [Integer(-1, 2), Real(0, "1.5", step="0.5"), Category(["f", "m"])]
)
CELLS: dict[str, list[Any]] = {
    "age": ["below", -1, 0, 1, 2, "above", "invalid", "null"],
    "income": ["below", 0, Fraction(1, 2), 1, Fraction(3, 2), "above", "invalid", "null"],
    "sex": ["f", "m", "null", "other"],
}
"""What stands at each position of the universe, written down independently."""

Cell = dict[str, Any]
Weight = Callable[[Cell], Any]

EVERY: list[Cell] = [dict(zip(CELLS, cell, strict=True)) for cell in product(*CELLS.values())]
PLACES: NDArray[np.uint64] = np.array(list(product(*(range(len(c)) for c in CELLS.values()))), np.uint64)

UNITS = 120
"""All weights that are written down here are multiples of one over this."""


@dataclass(frozen=True)
class Written:
    """Queries, and their weights by hand: a row of integers over a denominator for each."""

    queries: Queries
    weights: NDArray[Any]
    denominator: int

    @staticmethod
    def of(queries: Queries, *meaning: Weight) -> Written:
        """Queries and what each of them weighs."""
        rows = [[int(Fraction(weight(cell)) * UNITS) for cell in EVERY] for weight in meaning]
        return Written(queries, np.array(rows, object), UNITS)

    def __mul__(self, other: Written) -> Written:
        pairs = self.weights[:, None] * other.weights[None]
        rows = pairs.reshape(-1, len(EVERY))
        return Written(self.queries * other.queries, rows, self.denominator * other.denominator)

    def __add__(self, other: Written) -> Written:
        rows = np.concatenate([self.weights * other.denominator, other.weights * self.denominator])
        return Written(self.queries + other.queries, rows, self.denominator * other.denominator)

    def scaled(self, scale: Fraction) -> Written:
        """All weights times a number."""
        return Written(
            scale * self.queries, self.weights * scale.numerator, self.denominator * scale.denominator
        )

    def units(self, operator: Structured) -> NDArray[Any]:
        """The weights in units of an operator; they must be whole."""
        scaled = self.weights * operator.granularity
        assert not (scaled % self.denominator).any()
        return np.asarray(scaled // self.denominator)

    def __repr__(self) -> str:
        return str(self.queries)


def number(column: str, cell: Cell) -> Fraction:
    """The value that counts: that of the bound beyond it, zero for null and invalid."""
    held, ordered = cell[column], [each for each in CELLS[column] if not isinstance(each, str)]
    special = {"below": ordered[0], "above": ordered[-1], "invalid": 0, "null": 0}
    return Fraction(special[held] if isinstance(held, str) else held)


def inside(column: str, low: Any, high: Any) -> Weight:
    """Whether a cell lies between two ends, open ones taking what lies beyond."""

    def weight(cell: Cell) -> int:
        held = cell[column]
        if held in ("below", "above"):
            return (low if held == "below" else high) is None
        if isinstance(held, str):
            return 0
        return (low is None or low <= held) and (high is None or held <= high)

    return weight


def _steps(column: str, step: Any, cells: int) -> Written:
    """All ranges of whole steps, the last of which may be shorter."""
    ordered = [each for each in CELLS[column] if not isinstance(each, str)]
    blocks = [ordered[first : first + cells] for first in range(0, len(ordered), cells)]
    ends = [(blocks[i][0], blocks[j][-1]) for i in range(len(blocks)) for j in range(i, len(blocks))]
    return Written.of(ranges(column, step=step), *(inside(column, *pair) for pair in ends))


def _exactly(**held: Any) -> Weight:
    return lambda cell: all(cell[column] == each for column, each in held.items())


def _tripled(income: Any, sex: Any) -> float:
    return float(income) * 3 if sex == "m" else 1 / 0


def _tripled_by_hand(cell: Cell) -> Fraction:
    there = cell["sex"] == "m" and cell["income"] not in ("null", "invalid")
    return min(Fraction(4), 3 * number("income", cell)) * there


PAIRS = [(-1, 0), (2, 2), (None, None)]

LEAVES: list[Written] = [
    Written.of(total(), lambda cell: 1),
    Written.of(between("age", 0, None), inside("age", 0, None)),
    Written.of(between("income", None, "0.5"), inside("income", None, Fraction(1, 2))),
    Written.of(between("age", 5, 9), lambda cell: 0),
    Written.of(ranges("age", PAIRS), *(inside("age", *ends) for ends in PAIRS)),
    _steps("age", None, 1),
    _steps("age", 3, 3),
    _steps("income", 1, 2),
    Written.of(prefixes("income"), *(inside("income", None, last) for last in CELLS["income"][1:5])),
    Written.of(marginal("sex"), *(_exactly(sex=held) for held in CELLS["sex"])),
    Written.of(
        marginal("sex", "age"), *(_exactly(sex=s, age=a) for s, a in product(CELLS["sex"], CELLS["age"]))
    ),
    Written.of(value("age"), lambda cell: number("age", cell)),
    Written.of(value("income"), lambda cell: number("income", cell)),
    Written.of(clipped("income", "0.7"), lambda cell: min(number("income", cell), Fraction(7, 10))),
    Written.of(power("age", 2), lambda cell: number("age", cell) ** 2),
    Written.of(power("income", 3), lambda cell: number("income", cell) ** 3),
    Written.of(
        weights("sex", {"f": 2, "m": "1/3"}),
        lambda cell: {"f": 2, "m": Fraction(1, 3)}.get(cell["sex"], 0),
    ),
    Written.of(weights("age", {Special.NULL: 1}), _exactly(age="null")),
    Written.of(
        matrix(["age", "sex"], [{(0, "f"): 1, (1, "m"): -2}, {(2, "f"): "3/2"}]),
        lambda cell: {(0, "f"): 1, (1, "m"): -2}.get((cell["age"], cell["sex"]), 0),
        lambda cell: Fraction(3, 2) * _exactly(age=2, sex="f")(cell),
    ),
    Written.of(weights(["income", "sex"], _tripled, bound=4, step="1/4"), _tripled_by_hand),
]
"""Each kind of query, with what it means."""

EXPRESSIONS: st.SearchStrategy[Written] = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda both: both[0] * both[1]),
        st.tuples(inner, inner).map(lambda both: both[0] + both[1]),
        st.tuples(inner, st.sampled_from([Fraction(2), Fraction(-1, 3)])).map(
            lambda both: both[0].scaled(both[1])
        ),
    ).filter(lambda written: len(written.weights) <= 60),
    max_leaves=4,
)
"""Products, lists and multiples of a few of them."""
