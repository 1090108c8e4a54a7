"""Which part of epsilon each view gets: as asked for, or as predicted errors speak for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, TypeAlias

from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.numbers import rational
from partita.public.file_entries.file_views import view_name
from partita.trusted.mechanisms.catalogue import ROWS

Shares: TypeAlias = Mapping[Any, object] | Sequence[object]
"""A weight for each view: by its name or its tuple of columns, or in the order of the views."""

_QUARTERS: Final = 4
_HEAVIEST: Final = 4


def checked_shares(
    shares: object, names: Sequence[str], usual: Callable[[], Sequence[Fraction]]
) -> list[Fraction]:
    """The part of epsilon that each view gets, by `usual` weights if none are given; they add up to one."""
    weights = usual() if shares is None else [_weight(share) for share in _weights(shares, names)]
    return [weight / sum(weights) for weight in weights]


def weight_beside(error: Callable[[int], float], other: Callable[[int], float]) -> Fraction:
    """The weight of a view beside one of weight 1, from their predicted errors at equal epsilon.

    Errors fall as epsilon grows, so that the sum of the two is least where epsilon is shared as the square
    roots of the errors are. Their ratio is a geometric mean over `ROWS`, and the weight is rounded to
    quarters, from 1/4 to 4.

    >>> weight_beside(lambda rows: 900.0, lambda rows: 100.0)
    Fraction(3, 1)
    """
    ratio = math.prod(error(rows) / other(rows) for rows in ROWS) ** (1 / len(ROWS))
    quarters = round(_QUARTERS * math.sqrt(ratio)) if ratio < _HEAVIEST**2 else _QUARTERS * _HEAVIEST
    return Fraction(max(1, quarters), _QUARTERS)


def _weights(shares: object, names: Sequence[str]) -> list[object]:
    if isinstance(shares, Mapping) and len(shares) == len(names):
        weights = {_name(view): share for view, share in shares.items()}
        if set(weights) == set(names) and len(weights) == len(names):
            return [weights[name] for name in names]
    if isinstance(shares, list | tuple) and len(shares) == len(names):
        return list(shares)
    rule = "must have one weight for each view"
    raise InvalidParameter("shares", rule, given=_said(shares), fix=_suggested(names))


def _name(view: object) -> object:
    """The name of a view that is given by its columns."""
    columns = isinstance(view, tuple) and all(isinstance(column, str) for column in view)
    return view_name(view) if columns and isinstance(view, tuple) else view


def _said(shares: object) -> object:
    """What there is a weight for, or how many weights there are."""
    if isinstance(shares, Mapping):
        return ", ".join(map(str, shares))
    return f"{len(shares)} of them" if isinstance(shares, list | tuple) else shares


def _suggested(names: Sequence[str]) -> str:
    if len(names) == 1:
        return "leave it out, as one view gets all of epsilon, or pass views= too"
    return f"pass for example {dict.fromkeys(names, 1)}"


def _weight(share: object) -> Fraction:
    exact = rational(share, "shares")
    check(exact > 0, "shares", "must be positive", given=share, fix="leave a view out instead")
    return exact
