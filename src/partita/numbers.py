"""Checked public parameters, parsed exactly: "0.1" and 0.1 both mean 1/10."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar, dataclass_transform

from partita.errors import InvalidParameter, check, check_arguments

Choice = TypeVar("Choice")
Given = TypeVar("Given", contravariant=True)
Held = TypeVar("Held", covariant=True)
Kind = TypeVar("Kind")

_LONGEST_TEXT = 400  # characters of a number: an exponent of any size would take any time
_LEAST_FAILURE = Fraction(1, 10**300)  # floats take less for 0
_NEAREST_TO_ONE = Fraction(1, 2**50)  # floats take what is nearer for 1


def rational(value: object, name: str) -> Fraction:
    """The exact number that `value` is written as.

    >>> rational(0.1, "epsilon"), rational("1/3", "epsilon"), rational("1e-2", "epsilon")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 100))
    """
    if isinstance(value, bool) or not isinstance(value, (str, Decimal, Real)):
        raise _not_a_number(value, name)
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    text = str(value)
    if len(text) > _LONGEST_TEXT or not _finite(value):
        raise _not_a_number(value, name)
    return _parsed(text, value, name)


def integer(value: object, name: str, *, low: int | None = None, high: int | None = None) -> int:
    """`value` as a Python int between `low` and `high`, both included.

    >>> integer(7, "size", low=1)
    7
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidParameter(name, "must be an integer", given=value, fix="pass an int")
    exact = int(value)
    # Not `check`: this runs in every update of a counter, and a rule takes longer to write than to test.
    if low is not None and exact < low:
        raise InvalidParameter(name, f"must be at least {low}", given=exact, fix="raise it")
    if high is not None and exact > high:
        raise InvalidParameter(name, f"must be at most {high}", given=exact, fix="lower it")
    return exact


def check_probability(value: object, name: str = "beta") -> Fraction:
    """A failure probability or a confidence: between 0 and 1, and nothing that floats take for these."""
    exact = rational(value, name)
    fix = f"pass for example {'0.95' if name == 'confidence' else '0.05'}"
    inside = _LEAST_FAILURE <= exact <= 1 - _NEAREST_TO_ONE
    check(inside, name, "must lie between 0 and 1, and not next to them", given=value, fix=fix)
    return exact


def check_cell_range(low: object, high: object, *, first: int, last: int) -> tuple[int, int]:
    """Two cells from first to last, in order, as Python ints."""
    start, end = integer(low, "low", low=first), integer(high, "high", high=last)
    check(start <= end, "low", f"must be at most high, {end}", given=start, fix="swap them")
    return start, end


class Converted(Generic[Given, Held]):
    """The type of a field that is given as one type and held as another: `__post_init__` converts it.

    For type checkers only. They read it as a descriptor: `__init__` takes `Given`, the attribute is `Held`,
    and it cannot be assigned to. Such a field needs a value in the class body, which is `parameter()`.
    """

    if TYPE_CHECKING:

        def __get__(self, instance: object, owner: Any = None) -> Held: ...

        def __set__(self, instance: Never, value: Given) -> None: ...


Exact = Converted[object, Fraction]
"""A number in any form that `rational` reads, held as a fraction."""


def parameter(**options: Any) -> Any:
    """A field of a dataclass, as `dataclasses.field`, for one that is `Converted`."""
    return dataclasses.field(**options)


@dataclass_transform(field_specifiers=(dataclasses.field, parameter))
def frozen(
    *, kw_only: bool = False, eq: bool = True, repr: bool = True
) -> Callable[[type[Kind]], type[Kind]]:
    """A frozen dataclass that may have `Converted` fields, which subclasses inherit; see `check_arguments`.

    >>> @frozen(kw_only=True)
    ... class Noisy:
    ...     epsilon: Exact = parameter()
    ...
    ...     def __post_init__(self) -> None:
    ...         freeze(self, epsilon=rational(self.epsilon, "epsilon"))
    >>> Noisy(epsilon="1/2").epsilon
    Fraction(1, 2)
    """
    # mypy does not know that it is frozen: it would take inherited fields to be held as they are given.
    made = dataclasses.dataclass(frozen=True, kw_only=kw_only, eq=eq, repr=repr)
    return lambda kind: check_arguments(made(kind))


def freeze(instance: object, **fields: object) -> None:
    """Set the fields of a frozen dataclass while it is being made."""
    for field, value in fields.items():
        object.__setattr__(instance, field, value)


def check_choice(value: Choice, name: str, allowed: tuple[object, ...]) -> Choice:
    """`value`, if it is one of those allowed."""
    if not isinstance(value, str) or value not in allowed:
        rule = f"must be one of {', '.join(map(repr, allowed))}"
        raise InvalidParameter(name, rule, given=value, fix="choose one of them")
    return value


def _finite(value: str | Decimal | Real) -> bool:
    if isinstance(value, Decimal):
        return value.is_finite()
    return isinstance(value, str) or math.isfinite(value)


def _parsed(text: str, value: object, name: str) -> Fraction:
    try:
        _, _, exponent = text.lower().partition("e")
        if exponent and abs(int(exponent)) > _LONGEST_TEXT:
            raise _not_a_number(value, name)
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise _not_a_number(value, name) from None


def _not_a_number(value: object, name: str) -> InvalidParameter:
    fix = 'pass an int, a Fraction or text like "0.1"'
    return InvalidParameter(name, "must be a finite number", given=value, fix=fix)
