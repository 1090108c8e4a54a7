"""The axes of a release over boxes: in files, and as the limits of every question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.arrays import integer_array
from partita.domain.axis import MOST_AXES, Axis
from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.numbers import ordered
from partita.public.axis.base.ranges import Json
from partita.public.axis.base.reading import PartsReader
from partita.public.base.released import damaged
from partita.public.boxes.base.boxes import BoxTerm
from partita.public.boxes.plan.nodes import Corners


def written_axes(axes: Sequence[Axis]) -> list[Json]:
    """Size, special cells before and after, and whether cells are labels, of each axis: for a file."""
    return [[axis.size, axis.before, axis.after, axis.labels] for axis in axes]


def read_axes(reader: PartsReader, name: str = "axes") -> tuple[Axis, ...]:
    """The axes that `written_axes` wrote; anything else is an `InvalidRelease`."""
    listed = reader.parts.facts.get(name)
    if not isinstance(listed, list) or not 1 <= len(listed) <= MOST_AXES:
        raise damaged(name, f"must be a list of 1 to {MOST_AXES} axes")
    return tuple(_read_axis(axis, name) for axis in listed)


def checked_boxes(lows: ArrayLike, highs: ArrayLike, axes: Sequence[Axis]) -> tuple[Corners, Corners]:
    """Corners of many boxes of positions, a row for each box and a column for each axis."""
    low, high = _corners(lows, "lows", axes), _corners(highs, "highs", axes)
    fix = "pass pairs of corners"
    check(low.shape == high.shape, "highs", "must be as many as lows", given=len(high), fix=fix)
    widths = np.array([axis.width for axis in axes], np.uint64)
    if bool((low < 0).any()) or bool((low > high).any()) or bool((high >= widths).any()):
        rule = "must be positions from 0 on and at most highs, on their axes"
        raise InvalidParameter("lows", rule, given=low, fix="clip them")
    return low.astype(np.uint64), high.astype(np.uint64)


def checked_terms(terms: Iterable[BoxTerm], axes: Sequence[Axis]) -> list[BoxTerm]:
    """The terms, if they are boxes of positions on these axes with a sign."""
    return [_checked_term(term, axes) for term in terms]


def _read_axis(given: Json, name: str) -> Axis:
    match given:
        case [int(size), int(before), int(after), bool(labels)] if not _flags(size, before, after):
            try:
                return Axis(size=size, before=before, after=after, labels=labels)
            except InvalidParameter:
                pass
    raise damaged(name, "must hold size, special cells before and after, and true for labels, of each axis")


def _flags(*values: int) -> bool:
    return any(isinstance(value, bool) for value in values)


def _corners(corners: ArrayLike, name: str, axes: Sequence[Axis]) -> NDArray[Any]:
    array = integer_array(corners, name)
    if array.size == 0:
        return np.zeros((0, len(axes)), np.uint64)
    rule, fix = f"must have {len(axes)} columns, one for each axis", "pass a row for each box"
    check(array.ndim == 2 and array.shape[1] == len(axes), name, rule, given=corners, fix=fix)
    return array


def _checked_term(term: BoxTerm, axes: Sequence[Axis]) -> BoxTerm:
    low, high, sign = term
    check(sign in (1, -1), "sign", "must be 1 or -1", given=sign, fix="add a box or take it away")
    rule, fix = f"must have {len(axes)} ends, one for each axis", "pass all of them"
    check(len(low) == len(axes) and len(high) == len(axes), "box", rule, given=len(low), fix=fix)
    ends = [ordered(a, b, first=0, last=axis.width - 1) for a, b, axis in zip(low, high, axes, strict=True)]
    return BoxTerm(tuple(a for a, _ in ends), tuple(b for _, b in ends), sign)
