"""What people ask of several columns together, as boxes of positions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Final, TypeAlias

import numpy as np

from partita.domain.axis import Axis
from partita.domain.base.base import Domain, Special
from partita.errors.checks import check
from partita.public.axis.curve.curve import UInts
from partita.public.boxes.base.boxes import BoxTerm
from partita.public.conditions import OneOf, Range, Where
from partita.public.views.box_many import ManyBoxes
from partita.public.where import Spans, find_cells, ranges

MOST_BOXES: Final = 4096
"""No question is about more boxes: sets of values in several columns multiply."""

Declared: TypeAlias = Mapping[str, Domain]
Run: TypeAlias = tuple[int, int]


def box_terms(declared: Declared, asked: Where) -> tuple[BoxTerm, ...]:
    """The boxes, which do not overlap, that `asked` asks for among the columns declared.

    A column that is not asked for is not constrained: its special cells are in the boxes, too.

    >>> from partita.domain import Category, Integer
    >>> declared = {"age": Integer(0, 120), "town": Category(["Rome", "Bari", "Turin"])}
    >>> box_terms(declared, {"age": Range(65, None), "town": ["Rome", "Turin"]})
    (BoxTerm(low=(66, 0), high=(122, 0), sign=1), BoxTerm(low=(66, 2), high=(122, 2), sign=1))
    """
    runs = [_runs(name, domain, asked) for name, domain in declared.items()]
    number = math.prod(map(len, runs))
    fix = "ask for ranges, or for fewer values at a time"
    check(number <= MOST_BOXES, "where", f"must make up at most {MOST_BOXES:,} boxes", given=number, fix=fix)
    return tuple(
        BoxTerm(tuple(low for low, _ in box), tuple(high for _, high in box)) for box in product(*runs)
    )


def number_of_boxes(declared: Declared, asked: Where) -> int:
    """How many boxes `box_terms` would make, without making them: sets of values multiply.

    >>> from partita.domain import Integer
    >>> declared = {"age": Integer(0, 120), "rooms": Integer(0, 9)}
    >>> number_of_boxes(declared, {"age": OneOf((1, 2, 5)), "rooms": OneOf((1, 3))})
    4
    """
    return math.prod(len(_runs(name, domain, asked)) for name, domain in declared.items())


def many_boxes(declared: Declared, asked: Where) -> ManyBoxes:
    """Boxes given by arrays of bounds, one box for each row of the arrays.

    One range, or one value, goes with all rows, and so does a set of values or a special cell.
    """
    fixed = {name: value for name, value in asked.items() if isinstance(value, OneOf | Special)}
    found = {
        name: ranges(declared[name], value, name=name) for name, value in asked.items() if name not in fixed
    }
    rows = _rows(found)
    cut = {name: _positions(declared[name], spans, rows) for name, spans in found.items()}
    there = np.logical_and.reduce([np.ones(rows, np.bool_), *(low <= high for low, high in cut.values())])
    numbers = {name: number for number, name in enumerate(declared)}
    along = {numbers[name]: pair for name, pair in cut.items()}
    return ManyBoxes(box_terms(declared, fixed), along, there)


def described(asked: Where) -> str:
    """Conditions for people to read.

    >>> described({"age": Range(30, 39), "town": OneOf(("Rome",)), "salary": Range(50_000)})
    'age 30 to 39, town Rome, salary from 50000'
    """
    return ", ".join(f"{name} {_said(value)}" for name, value in asked.items())


def _runs(name: str, domain: Domain, asked: Where) -> list[Run]:
    """The runs of positions that are asked for along one axis; all of them if nothing is."""
    if name not in asked:
        return [(0, Axis.of(domain).width - 1)]
    cells, places = find_cells(domain, asked[name], name=name), Axis.specials(domain)
    shift = Axis.of(domain).before
    ordinary = [(low + shift, high + shift) for low, high, _ in cells.terms]
    return _joined([*ordinary, *((places[special], places[special]) for special in cells.specials)])


def _joined(runs: Iterable[Run]) -> list[Run]:
    """The same positions, where runs that touch are one."""
    joined: list[Run] = []
    for low, high in sorted(runs):
        if joined and low == joined[-1][1] + 1:
            joined[-1] = joined[-1][0], high
        else:
            joined.append((low, high))
    return joined


def _rows(found: Mapping[str, Spans]) -> int:
    """How many boxes the columns ask for: as many as the longest of them, which all others must fit."""
    lengths = {name: len(spans) for name, spans in found.items() if len(spans) != 1}
    for name, length in lengths.items():
        first = next(iter(lengths.values()))
        rule = "must have as many ranges as the other columns, or one for all"
        check(length == first, name, rule, given=f"{length} and {first}", fix="pass arrays of one length")
    return next(iter(lengths.values()), 1)


def _positions(domain: Domain, spans: Spans, rows: int) -> tuple[UInts, UInts]:
    """The lowest and the highest position of each span, the lowest above the highest where it is empty."""
    axis, beside = Axis.of(domain), Axis.specials(domain)
    below, above = spans.below & ("below" in beside), spans.above & ("above" in beside)
    first, behind = np.uint64(axis.before), np.uint64(axis.before + axis.size)
    lows = np.where(below, np.uint64(0), np.where(spans.empty, behind, spans.lows + first))
    highs = np.where(above, behind, np.where(spans.empty, np.uint64(0), spans.highs + first))
    return np.broadcast_to(lows, rows), np.broadcast_to(highs, rows)


def _said(value: object) -> str:
    match value:
        case Range(None, None):
            return "with any value"
        case Range(low, None):
            return f"from {low}"
        case Range(None, high):
            return f"up to {high}"
        case Range(low, high):
            return f"{low} to {high}"
        case OneOf(values) | list(values):
            return " or ".join(sorted(map(str, values)))
    return str(value)
