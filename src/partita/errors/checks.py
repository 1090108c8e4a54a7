"""Checks of public parameters and of input: one line for each rule.

A message says which parameter, what the rule is, what was given and what to do. What was given is shown for
public parameters only, never for data.
"""

from __future__ import annotations

from typing import Any, TypeVar

from partita.errors.errors import InvalidData, InvalidParameter, InvalidRelease, SourceError

Wanted = TypeVar("Wanted")


def check(holds: object, parameter: str, rule: str, *, given: object, fix: str) -> None:
    """Raise InvalidParameter unless the rule holds.

    >>> check(-1 > 0, "epsilon", "must be positive", given=-1, fix="pass for example 1")
    Traceback (most recent call last):
        ...
    partita.errors.errors.InvalidParameter: epsilon must be positive, got -1; pass for example 1
    """
    if not holds:
        raise InvalidParameter(parameter, rule, given=given, fix=fix)


def check_type(
    value: object, kinds: type[Wanted] | tuple[type[Any], ...], parameter: str, rule: str, *, fix: str
) -> Wanted:
    """`value`, if it is an instance of one of the `kinds`.

    >>> check_type("age", str, "column", "must be text", fix="pass a name")
    'age'
    """
    if not isinstance(value, kinds):
        raise InvalidParameter(parameter, rule, given=value, fix=fix)
    return value


def check_bool(value: object, parameter: str) -> bool:
    """`value`, if it is True or False."""
    return check_type(value, bool, parameter, "must be True or False", fix="pass one of them")


def check_data(holds: object, part: str, rule: str, *, fix: str) -> None:
    """Raise InvalidData unless the rule holds."""
    if not holds:
        raise InvalidData(part, rule, fix=fix)


def check_release(holds: object, part: str, rule: str, *, fix: str) -> None:
    """Raise InvalidRelease unless the rule holds."""
    if not holds:
        raise InvalidRelease(part, rule, fix=fix)


def check_source(holds: object, part: str, rule: str, *, fix: str) -> None:
    """Raise SourceError unless the rule holds."""
    if not holds:
        raise SourceError(part, rule, fix=fix)
