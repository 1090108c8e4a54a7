"""Mechanisms with one thing wrong each: what an attack, a fit or an enumeration must find."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from partita.audit.custom import UserMechanism, UserSubject

Rows = list[Any]


def clamped(row: Any) -> int:
    """A row as zero or one, whatever it holds."""
    try:
        return int(min(max(float(row), 0.0), 1.0)) if float(row) == float(row) else 0
    except (TypeError, ValueError, OverflowError):
        return 0


def right(rows: Rows, noise: Any) -> int:
    """A count of ones, with the noise that it needs."""
    return int(noise.add(sum(clamped(row) for row in rows), Fraction(1)))


def half_the_scale(rows: Rows, noise: Any) -> int:
    return int(noise.add(sum(clamped(row) for row in rows), Fraction(1, 2)))


def bare_zeros(rows: Rows, noise: Any) -> int:
    count = sum(clamped(row) for row in rows)
    return int(noise.add(count, Fraction(1))) if count else 0


def loaded_coin(rows: Rows, noise: Any) -> bool:
    return bool(noise.bernoulli(Fraction(3, 4) if sum(clamped(row) for row in rows) else Fraction(1, 4)))


def plain_sum(rows: Rows, noise: Any) -> int:
    """Nothing is clamped: one row may be any number."""
    return int(noise.add(int(sum(rows)), Fraction(1)))


def float_sum(rows: Rows, noise: Any) -> int:
    """Floats are summed in the order of rows, and rounded."""
    return int(noise.add(int(min(max(sum(rows), -10.0), 10.0)), Fraction(100)))


def inverse_weights(rows: Rows, noise: Any) -> int:
    """Rows are divided by: a small one weighs more than all others."""
    return int(noise.add(int(sum(1 / row for row in rows if row)), Fraction(1)))


def float_secret(rows: Rows, noise: Any) -> float:
    """A third is added to what is published, which leaves the grid of the noise."""
    return int(noise.add(sum(clamped(row) for row in rows), Fraction(1))) + 1 / 3


def signed_zero(rows: Rows, noise: Any) -> str:
    return f"{noise.add(len(rows), Fraction(1))} {[row for row in rows if row == 0.0 and str(row)[0] == '-']}"


def refuses_large(rows: Rows, noise: Any) -> int:
    """The error shows the row."""
    for row in rows:
        if not isinstance(row, int | float) or abs(row) > 10:
            raise ValueError(f"cannot use {row!r}")
    return right(rows, noise)


def wide_type(rows: Rows, noise: Any) -> Any:
    """The type tells whether there is a row at all."""
    found = right(rows, noise)
    return found if len(rows) > 1 else float(found)


def distinct_only(rows: Rows, noise: Any) -> int:
    """Rows that repeat are dropped; a new one counts for ten."""
    return int(noise.add(10 * len({clamped(row) for row in rows}), Fraction(1)))


def true_is_special(rows: Rows, noise: Any) -> int:
    weights = (50 if isinstance(row, bool | np.bool_) else clamped(row) for row in rows)
    return int(noise.add(sum(weights), Fraction(1)))


def underflow(epsilon: Any) -> Callable[[Rows, Any], int]:
    """The scale is a float: without noise where it rounds to zero."""
    scale = 1.0 / float(epsilon) if float(epsilon) else 1.0

    def counted(rows: Rows, noise: Any) -> int:
        count = sum(clamped(row) for row in rows)
        exact = Fraction(scale).limit_denominator(1000) if 1e-3 < scale < 1e6 else Fraction(1)
        return int(noise.add(count, exact)) if scale > 1e-9 else count

    return counted


def rounded_epsilon(epsilon: Any) -> Callable[[Rows, Any], int]:
    """The scale is rounded down."""
    scale = Fraction(int(10 / Fraction(str(epsilon))), 10)
    return lambda rows, noise: int(noise.add(sum(clamped(row) for row in rows), scale))


def subject(mine: Any, *, factory: Any = None, epsilon: int = 1) -> UserSubject:
    """A planted mechanism, to be attacked."""
    pair = ([0], [0, 1])
    return UserSubject(UserMechanism.of(mine, epsilon=Fraction(epsilon), data=pair), pair, factory)
