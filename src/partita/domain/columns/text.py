"""Numbers written as text: one grammar for every column, and exact values.

A number is an optional sign, ASCII digits with an optional point, and an optional
exponent; or `inf`, `infinity` or `nan` in any case. ASCII white space around it is
trimmed. Text over 400 bytes is not a number. An exponent costs nothing however large:
a number beyond 10^400 is infinite, and one nearer to zero than 10^-400 is taken to be
10^-400, because the bounds and steps of domains lie far inside both.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Final

from partita.domain.columns.arrow import cast_texts
from partita.domain.columns.columns import LONGEST, WHITE, Column, Number, Texts, exact_column

_FAR: Final = 400
_NUMBER: Final = re.compile(rb"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?")
_INFINITE: Final = re.compile(rb"([+-]?)inf(?:inity)?", re.IGNORECASE)
_NAN: Final = re.compile(rb"[+-]?s?nan[0-9]*", re.IGNORECASE)

MOST_PLACES: Final = 60
"""Digits after the point beyond which a number is written, and decoded, as a ratio."""
_PLAIN_INTEGER: Final = "^-?[0-9]{1,18}$"
_PLAIN_DECIMAL: Final = r"^-?[0-9]{1,9}\.[0-9]{1,9}$"
_PLAIN_PLACES: Final = 9


def numbers(texts: Texts) -> Column:
    """The numbers that these texts write, or invalid.

    Plain integers of up to 18 digits, and decimals of up to nine on each side of the
    point, are read by Arrow; whatever else is there is read one by one.
    """
    import pyarrow as pa

    plain = {_PLAIN_INTEGER: pa.int64(), _PLAIN_DECIMAL: pa.decimal128(2 * _PLAIN_PLACES, _PLAIN_PLACES)}
    return cast_texts(texts, plain, lambda rest: exact_column([number(text) for text in rest]))


def number(text: bytes) -> Number | None:
    """The exact number that `text` writes, or None.

    >>> number(b" +1.50 "), number(b"1e-999999999") == Fraction(1, 10**400), number(b"-1e999999999")
    (Fraction(3, 2), True, -inf)
    """
    if len(text) > LONGEST:
        return None
    trimmed = text.strip(WHITE)
    if match := _NUMBER.fullmatch(trimmed):
        return _value(*match.groups(default=b""))
    if match := _INFINITE.fullmatch(trimmed):
        return -math.inf if match[1] == b"-" else math.inf
    return math.nan if _NAN.fullmatch(trimmed) else None


def number_text(value: Fraction) -> str:
    """The plain text of an exact number: digits, a decimal of up to 60 places, or a ratio.

    >>> number_text(Fraction(5)), number_text(Fraction(-1, 8)), number_text(Fraction(1, 3))
    ('5', '-0.125', '1/3')
    """
    places = decimal_places(value)
    if not places or places > MOST_PLACES:
        return str(value)
    sign = "-" if value < 0 else ""
    whole, part = divmod(abs(value.numerator) * 10**places // value.denominator, 10**places)
    return f"{sign}{whole}.{part:0{places}}"


def decimal_places(value: Fraction) -> int | None:
    """How many digits after the point write `value` exactly; None if none are enough.

    >>> decimal_places(Fraction(1, 8)), decimal_places(Fraction(7)), decimal_places(Fraction(1, 3))
    (3, 0, None)
    """
    rest, places = value.denominator, 0
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        places = max(places, power)
    return places if rest == 1 else None


def _value(sign: bytes, whole: bytes, part: bytes, exponent: bytes) -> Number:
    digits = int((whole + part) or b"0")
    if digits == 0:
        return 0
    power = int(exponent or b"0") - len(part)
    signed = -digits if sign == b"-" else digits
    reach = len(str(digits)) + power
    if reach > _FAR:
        return math.inf if signed > 0 else -math.inf
    if reach < -_FAR:
        return Fraction(1 if signed > 0 else -1, 10**_FAR)
    return signed * 10**power if power >= 0 else Fraction(signed, 10**-power)
