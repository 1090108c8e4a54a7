"""Many ranges of a column at once, from arrays of bounds."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from partita.checks import check
from partita.conditions import Range
from partita.domain import Domain, Encoded, Real, Special
from partita.errors import InvalidData, InvalidParameter
from partita.releases.figures import shortened
from partita.releases.spans import Spans, spans
from partita.releases.where import as_written, beyond, end

__all__ = ["cells_of", "is_single", "ranges"]

_LONGEST_DOMAIN: Final = 60


def ranges(domain: Domain, condition: object, *, name: str) -> Spans:
    """The cells of many ranges of the column `name`: a range of arrays, or an array of single values.

    An end that is None, or missing in its array, is open; one end for all is repeated.

    >>> from partita.domain import Integer
    >>> ranges(Integer(0, 120), Range([0, 18], [17, None]), name="age").highs.tolist()
    [17, 120]
    """
    if isinstance(condition, tuple):
        raise InvalidParameter(
            name,
            "must be arrays of lows and of highs",
            given=f"a tuple of {len(condition)}",
            fix="pass (lows, highs), None for an open end",
        )
    if not isinstance(condition, Range):
        cells = cells_of(domain, condition, name=name)
        if bool((cells.special != Special.ORDINARY).any()):
            raise beyond(domain, condition, name=name)
        return spans(cells, cells, size=domain.size, closed="both", name=name, given=condition)
    low, high = (
        _ends(domain, condition.low, f"low of {name}"),
        _ends(domain, condition.high, f"high of {name}"),
    )
    length = len(low) if len(high) == 1 else len(high)
    low, high = _repeated(low, length, name), _repeated(high, length, name)
    return spans(
        low, high, size=domain.size, closed=condition.closed, name=name, given="a low above its high"
    )


def cells_of(domain: Domain, values: object, *, name: str) -> Encoded:
    """Where each of many public values lies; none may be missing."""
    encoded = _ends(domain, values, name)
    rule, fix = "must not miss a value", "drop what is missing"
    check(not (encoded.special == Special.NULL).any(), name, rule, given=values, fix=fix)
    return encoded


def _ends(domain: Domain, value: object, name: str) -> Encoded:
    if is_single(value):
        return end(domain, value, name=name)
    encoded = _encoded(domain, value, name)
    unreadable = (encoded.special == Special.INVALID) | (encoded.special == Special.OTHER)
    if bool(unreadable.any()) or _endless(value):
        rule = f"must hold values that a column {shortened(repr(domain), _LONGEST_DOMAIN)} can have"
        fix = "pass values as the column has them, None for an open end"
        raise InvalidParameter(name, rule, given=value, fix=fix)
    return encoded


def is_single(value: object) -> bool:
    """Whether this is one value and no column of values."""
    return isinstance(value, str | bytes) or not hasattr(value, "__len__") or getattr(value, "ndim", 1) == 0


def _encoded(domain: Domain, values: object, name: str) -> Encoded:
    try:
        encoded = domain.encode(values)
    except InvalidData:
        fix = "pass a flat array or a list"
        raise InvalidParameter(name, "must be one column of values", given=values, fix=fix) from None
    return as_written(domain, values, encoded) if isinstance(domain, Real) else encoded


def _endless(values: object) -> bool:
    """Whether there are infinite floats or special cells among the values: numbers, but no bounds."""
    if isinstance(values, list | tuple):
        return any(
            isinstance(each, Special) or (isinstance(each, float) and math.isinf(each)) for each in values
        )
    array = np.asarray(values)
    return array.dtype.kind == "f" and bool(np.isinf(array).any())


def _repeated(encoded: Encoded, length: int, name: str) -> Encoded:
    if len(encoded) == length:
        return encoded
    rule, fix = "must have as many lows as highs", "pass arrays of one length"
    check(len(encoded) == 1, name, rule, given=f"{len(encoded)} and {length}", fix=fix)
    return encoded.take(np.zeros(length, np.int64))
