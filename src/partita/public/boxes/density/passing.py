"""Positions at which a fraction of a stretch, or of a curve, has passed."""

from __future__ import annotations

from typing import Final

import numpy as np

from partita.public.axis.curve.curve import Curve, Floats, Ints, UInts

WORD: Final = 2**64
"""Fractions are counted in units of one over this."""

_HALF: Final = np.uint64(32)
_LOWER: Final = np.uint64(2**32 - 1)
_LARGEST: Final = 1.0 - 2.0**-53


def fraction(turns: UInts, span: UInts) -> UInts:
    """The integer part of (span + 1) turns / 2^64: products of halves, so that nothing overflows.

    >>> fraction(np.array([2**63], np.uint64), np.array([2**63], np.uint64)).item() == 2**62
    True
    """
    width = span + np.uint64(1)
    high, low = turns >> _HALF, turns & _LOWER
    above, under = width >> _HALF, width & _LOWER
    across, back = high * under, low * above
    carry = (low * under >> _HALF) + (across & _LOWER) + (back & _LOWER)
    return np.asarray(high * above + (across >> _HALF) + (back >> _HALF) + (carry >> _HALF))


def reached(curve: Curve, targets: Floats) -> tuple[Ints, Floats]:
    """The piece in which the curve reaches each target, and which part of the piece's count that takes."""
    piece = np.minimum(np.searchsorted(curve.before[1:], targets, side="right"), curve.ends.size - 1)
    held = curve.counts[piece]
    inside = np.divide(targets - curve.before[piece], held, out=np.zeros(held.shape), where=held > 0)
    return piece, np.clip(inside, 0.0, 1.0)


def passed(curve: Curve, targets: Floats) -> UInts:
    """The position in which the curve passes each target."""
    piece, inside = reached(curve, targets)
    turns = (np.minimum(inside, _LARGEST) * WORD).astype(np.uint64)
    return np.asarray(curve.starts[piece] + fraction(turns, curve.ends[piece] - curve.starts[piece]))
