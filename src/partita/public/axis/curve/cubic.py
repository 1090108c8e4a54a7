"""A curve bent inside its pieces: monotone cubic interpolation, where neighbours have like densities."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from partita.public.axis.curve.curve import Curve, Floats, UInts

_PARTS: Final = 8
_SHIFT: Final = 3
_STEEPEST: Final = 30.0
_STEEPEST_END: Final = 3.0


def refined(curve: Curve) -> Curve:
    """The same counts of pieces, bent inside: each long piece with a count becomes eight.

    The slope at an edge is the weighted harmonic mean of the densities beside it [Fritsch and Butland
    1984], so the curve stays monotone; where these differ by more than 30 times, as beside a heavy
    cell or a gap, the piece keeps its own density on that side.
    """
    span = curve.ends - curve.starts
    bent = np.flatnonzero((span >= _PARTS) & (curve.counts > 0.0))
    if curve.ends.size < 2 or not bent.size:
        return curve
    inner = _inner_ends(curve.starts[bent], span[bent])
    left, right = _slopes(curve)
    passed = (inner - curve.starts[bent, np.newaxis]).astype(np.float64) + 1.0
    counts = _partial_counts(curve, bent, passed, left[bent], right[bent])
    return _with_inner(curve, bent, inner, counts)


def _inner_ends(starts: UInts, span: UInts) -> UInts:
    """The last cells of the first seven of eight nearly equal parts, in integers that cannot overflow."""
    part = np.arange(1, _PARTS, dtype=np.uint64)
    whole, left_over = span >> np.uint64(_SHIFT), span & np.uint64(_PARTS - 1)
    offset = whole[:, np.newaxis] * part + ((left_over[:, np.newaxis] * part) >> np.uint64(_SHIFT))
    return np.asarray(starts[:, np.newaxis] + offset - np.uint64(1))


def _slopes(curve: Curve) -> tuple[Floats, Floats]:
    """The slopes at the left and at the right end of each piece."""
    width, density = curve.widths, curve.counts / curve.widths
    edges = np.concatenate([[_end_slope(width[:2], density[:2])], _inner_slopes(width, density), [0.0]])
    edges[-1] = _end_slope(width[:-3:-1], density[:-3:-1])
    left, right = edges[:-1].copy(), edges[1:].copy()
    unlike = _unlike(density)
    left[1:][unlike], right[:-1][unlike] = density[1:][unlike], density[:-1][unlike]
    return left, right


def _inner_slopes(width: Floats, density: Floats) -> Floats:
    """Weighted harmonic means of neighbouring densities; zero beside an empty piece."""
    one, two = 2 * width[1:] + width[:-1], width[1:] + 2 * width[:-1]
    weighed = one * density[1:] + two * density[:-1]
    product = (one + two) * density[1:] * density[:-1]
    return np.divide(product, weighed, out=np.zeros_like(product), where=weighed > 0.0)


def _end_slope(width: Floats, density: Floats) -> float:
    """The slope at an end of the axis, of the parabola through the first two pieces, kept monotone."""
    slope = ((2 * width[0] + width[1]) * density[0] - width[0] * density[1]) / (width[0] + width[1])
    return float(min(max(slope, 0.0), _STEEPEST_END * density[0]))


def _unlike(density: Floats) -> NDArray[np.bool_]:
    """Whether neighbouring densities are too far apart to say anything about each other."""
    low, high = np.minimum(density[1:], density[:-1]), np.maximum(density[1:], density[:-1])
    return np.asarray(high > _STEEPEST * low)


def _partial_counts(
    curve: Curve, bent: NDArray[np.intp], passed: Floats, left: Floats, right: Floats
) -> Floats:
    """How much of the count of each bent piece lies before each place inside, by the cubic."""
    width, count = curve.widths[bent, np.newaxis], curve.counts[bent, np.newaxis]
    u = passed / width
    rise = u * (1 - u) ** 2 * left[:, np.newaxis] - u**2 * (1 - u) * right[:, np.newaxis]
    return np.asarray(np.clip(width * rise + u**2 * (3 - 2 * u) * count, 0.0, count))


def _with_inner(curve: Curve, bent: NDArray[np.intp], inner: UInts, counts: Floats) -> Curve:
    """The curve with the inner ends of the bent pieces put in."""
    parts = np.diff(counts, axis=1, prepend=0.0, append=curve.counts[bent, np.newaxis])
    repeats = np.ones(curve.ends.size, np.intp)
    repeats[bent] = _PARTS
    ends, values = np.repeat(curve.ends, repeats), np.repeat(curve.counts, repeats)
    first = (np.cumsum(repeats) - repeats)[bent, np.newaxis]
    ends[first + np.arange(_PARTS - 1)] = inner
    values[first + np.arange(_PARTS)] = np.maximum(parts, 0.0)
    return Curve(ends, values)
