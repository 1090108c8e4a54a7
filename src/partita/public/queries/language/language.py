"""The words of the query language: each makes a list of linear queries.

    total()                                all rows
    between("age", 30, 39)                 the rows of a range, both ends included; None is an open end
    ranges("age")                          all ranges; step=10 for those of whole tens; or a list of pairs
    prefixes("age")                        for each value the rows up to it
    marginal("sex", "region")              the rows of each combination
    value("income")                        the sum of a column
    clipped("income", 100_000)             the sum of min(income, 100_000)
    power("income", 2)                     the sum of squares
    weights("age", {30: 1, 31: "1/2"})     a weight for each value; or a function, with a bound
    matrix("age", [{30: 1}, {31: 1}])      explicit queries

`*` multiplies, `+` puts lists one behind the other, numbers scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.numbers import integer, rational
from partita.public.queries.expressions.counting import Each, Marginal, Prefixes, Ranges, Steps, Total
from partita.public.queries.expressions.functions import Function, Weight
from partita.public.queries.expressions.tables import Matrix, check_entries, entries
from partita.public.queries.expressions.values import Value
from partita.public.queries.queries.queries import Queries
from partita.public.queries.queries.writing import column_name, value_text

_LARGEST_POWER: Final = 4
_LARGEST_BOUND: Final = 2**62
_STEPS: Final = 2**20


def total() -> Queries:
    """The number of all rows."""
    return Total()


def between(column: str, low: object, high: object) -> Queries:
    """The rows from low to high, both included; None is an open end, which takes what lies beyond, too.

    >>> between("age", 65, None)
    between(age, 65, none)
    """
    return Ranges(column_name(column), (_ends((low, high)),))


def ranges(
    column: str, ends: Sequence[tuple[object, object]] | None = None, *, step: object = None
) -> Queries:
    """All ranges of a column, those of whole steps from its lower bound on, or those of given ends.

    >>> ranges("age", [(0, 17), (18, 64)]) + ranges("age", step=10)
    ranges(age, (0, 17), (18, 64)) + ranges(age, step=10)
    """
    if ends is None:
        return Steps(column_name(column), None if step is None else _positive(step, "step"))
    if step is not None:
        raise InvalidParameter("step", "must be left out where ends are given", given=step, fix="choose one")
    if not isinstance(ends, list | tuple) or not ends:
        raise InvalidParameter("ends", "must be pairs of ends", given=ends, fix="pass for example [(0, 17)]")
    return Ranges(column_name(column), tuple(map(_ends, ends)))


def prefixes(column: str) -> Queries:
    """For each value of a column the rows up to it, those below its bounds included."""
    return Prefixes(column_name(column))


def marginal(*columns: str) -> Queries:
    """The rows of each combination of values, special cells included."""
    names = _names(columns)
    return Each(names[0]) if len(names) == 1 else Marginal(names)


def value(column: str) -> Queries:
    """The sum of a column. Null and invalid count as zero, what lies beyond the bounds as the bounds."""
    return Value(column_name(column))


def clipped(column: str, cap: object) -> Queries:
    """The sum of min(value, cap)."""
    return Value(column_name(column), cap=rational(cap, "cap"))


def power(column: str, exponent: int) -> Queries:
    """The sum of a power: with 2, what variances are made of."""
    return Value(column_name(column), power=integer(exponent, "exponent", low=1, high=_LARGEST_POWER))


def weights(
    columns: str | Sequence[str],
    given: Mapping[Any, object] | Weight,
    *,
    bound: object = None,
    step: object = None,
) -> Queries:
    """One query with weights of one's own: a mapping from values to weights, or a function of values.

    A function is called with the values of the columns in order, None for null and invalid, and its weights
    are clamped to [0, bound] and rounded to the nearest `step`: at most 1, and 2^-20 of the bound if that is
    less. An exception, NaN, or what is no number is the weight zero.

    >>> weights("age", {30: 1, 31: "1/2"}) + weights("age", len, bound=8)
    weights(age, {30: 1, 31: 0.5}) + weights(age, <len>, bound=8, step=0.00000762939453125)
    """
    names = _names([columns] if isinstance(columns, str) else columns)
    if not callable(given):
        return matrix(names, [given])
    most = _positive(bound, "bound")
    return Function(names, given, most, _finest(most) if step is None else _positive(step, "step"))


def matrix(columns: str | Sequence[str], rows: Sequence[Mapping[Any, object]]) -> Queries:
    """Explicit queries: for each a mapping from values, or tuples of values, to weights.

    >>> matrix(["age", "sex"], [{(30, "f"): 1}, {(30, "m"): "1/3", (31, "m"): 2}])
    matrix(age, sex, {(30, f): 1}, {(30, m): 1/3, (31, m): 2})
    """
    names = _names([columns] if isinstance(columns, str) else columns)
    if not isinstance(rows, list | tuple):
        raise InvalidParameter("rows", "must be a list of mappings", given=rows, fix="pass [{30: 1}]")
    found = tuple(entries(names, row) for row in rows)
    check_entries(found)
    return Matrix(names, found)


def _ends(pair: object) -> tuple[str | None, str | None]:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise InvalidParameter("ends", "must be pairs of ends", given=pair, fix="pass for example (0, 17)")
    low, high = (None if end is None else value_text(end, "end") for end in pair)
    return low, high


def _names(columns: object) -> tuple[str, ...]:
    names = tuple(map(column_name, columns)) if isinstance(columns, list | tuple) else ()
    rule, fix = "must be different names", 'pass for example ("age", "income")'
    check(names and len(set(names)) == len(names), "columns", rule, given=columns, fix=fix)
    return names


def _positive(value: object, name: str) -> Fraction:
    exact = rational(value, name)
    rule, fix = "must lie between 2^-62 and 2^62", "pass for example 1"
    check(Fraction(1, _LARGEST_BOUND) <= exact <= _LARGEST_BOUND, name, rule, given=value, fix=fix)
    return exact


def _finest(bound: Fraction) -> Fraction:
    """The power of two at most 1 and at most 2^-20 of the bound: whole weights stay exact."""
    step = Fraction(1)
    while step * _STEPS > bound:
        step /= 2
    return step
