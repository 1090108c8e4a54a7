"""Every exception and warning that Partita raises.

    PartitaError
    ├── InvalidParameter (ValueError)      a public parameter breaks its rule
    ├── InvalidData (ValueError)           secret input is malformed; no value is ever shown
    ├── IncompatibleGuarantees (ValueError)  two guarantees cannot be composed or converted
    └── EntropyError (RuntimeError)        randomness could not be had, or may not be shared
        └── TapeExhausted                  a test tape ran out of words

    PrivacyWarning (UserWarning)           legal, but weaker than people expect

A message says which parameter, what the rule is, what was given, and what to do.
What was given is shown for short public scalars only: an array or a table handed in
by mistake is named by its type, so that no error can carry a value from the data.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Final

__all__ = [
    "EntropyError",
    "IncompatibleGuarantees",
    "InvalidData",
    "InvalidParameter",
    "PartitaError",
    "PrivacyWarning",
    "TapeExhausted",
]

_SHOWN: Final = (bool, int, float, str, Fraction, Decimal, type(None))
_LONGEST: Final = 60


class PartitaError(Exception):
    """The root of every exception that Partita raises on purpose."""


class InvalidParameter(PartitaError, ValueError):
    """A public parameter breaks its rule; nothing was drawn, spent or written.

    >>> raise InvalidParameter("epsilon", "must be positive", given=-1, fix="pass for example 1")
    Traceback (most recent call last):
        ...
    partita.errors.InvalidParameter: epsilon must be positive, got -1; pass for example 1
    """

    def __init__(self, parameter: str, rule: str, *, given: object, fix: str) -> None:
        super().__init__(f"{parameter} {rule}, got {_public(given)}; {fix}")
        self.parameter = parameter
        self.rule = rule
        self.fix = fix


class InvalidData(PartitaError, ValueError):
    """Secret input is malformed. The message never holds a value, a position or a count.

    >>> raise InvalidData("cells", "must be in ascending order", fix="sort them first")
    Traceback (most recent call last):
        ...
    partita.errors.InvalidData: cells must be in ascending order; sort them first
    """

    def __init__(self, parameter: str, rule: str, *, fix: str) -> None:
        super().__init__(f"{parameter} {rule}; {fix}")
        self.parameter = parameter
        self.rule = rule
        self.fix = fix


class IncompatibleGuarantees(PartitaError, ValueError):
    """Two guarantees speak of different neighbours or units, and no public factor relates them."""


class EntropyError(PartitaError, RuntimeError):
    """Randomness could not be had, or a generator was about to be copied."""


class TapeExhausted(EntropyError):
    """A tape of given words, used in tests only, has no word left."""


class PrivacyWarning(UserWarning):
    """A legal choice that protects people less than they may expect."""


def _public(given: object) -> str:
    if not isinstance(given, _SHOWN):
        return f"a value of type {type(given).__name__}"
    if isinstance(given, int) and abs(given) >= 10**_LONGEST:
        return f"an integer of {given.bit_length()} bits"
    text = repr(given) if isinstance(given, str) else str(given)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
