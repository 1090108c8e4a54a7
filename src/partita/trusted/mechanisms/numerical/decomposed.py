"""Decomposable queries, declared: f_w over classes of rows, and one value g that all share."""

from __future__ import annotations

from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.public.queries.expressions.values import Value
from partita.public.queries.queries.queries import Queries


def decomposed(classes: Queries, *, g: Queries | str) -> Queries:
    """The queries f_w(class) g(row) for every f_w of `classes`; g is a column of numbers, or one query.

    Mechanisms for numerical queries take them apart again: `decomposition` says how, "hat" or "binary".

    >>> from partita.public.queries.language.language import ranges
    >>> decomposed(ranges("age"), g="income")
    ranges(age) * value(income)
    """
    shared = Value(g) if isinstance(g, str) else g
    for name, given in (("classes", classes), ("g", shared)):
        fix = 'pass for example ranges("age")'
        check(isinstance(given, Queries), name, "must be queries", given=given, fix=fix)
    if set(classes.columns) & set(shared.columns):
        rule = "must be over other columns than the classes"
        raise InvalidParameter("g", rule, given=str(shared), fix="use other columns")
    return classes * shared
