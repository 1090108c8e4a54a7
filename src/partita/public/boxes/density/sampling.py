"""Made-up points that lie as a solved tree says: a function of it, without any chance."""

from __future__ import annotations

from typing import Final

import numpy as np

from partita.public.axis.curve.apportion import apportion
from partita.public.axis.curve.curve import Floats, Ints, UInts
from partita.public.boxes.density.density import Density
from partita.public.boxes.density.measure import Measure, Stretches
from partita.public.boxes.density.passing import WORD, fraction, passed
from partita.public.boxes.plan.families import spans_of
from partita.public.boxes.plan.nodes import Corners

_BASES: Final = (2, 3, 5, 7, 11, 13)
"""One for each axis, of which there are no more."""


def made_up(density: Density, rows: int) -> Corners:
    """Positions of so many rows, leaf by leaf.

    Every run of leaves that are neighbours in the tree gets its share of the rows to one row. Inside of
    a leaf, successive points of a sequence that fills cubes evenly are carried over by the measures.
    """
    leaves = _in_order(density)
    weights = density.held.values[leaves]
    shares = apportion(rows, weights if weights.sum() > 0 else _volumes(density, leaves))
    leaf = np.repeat(leaves, shares)
    axes = zip(density.measures, density.stretches, _BASES, strict=False)
    return np.stack(
        [_placed(measure, own.at(leaf), _mirrored(rows, base)) for measure, own, base in axes], axis=1
    )


def _in_order(density: Density) -> Ints:
    leaves = np.flatnonzero(density.nodes.leaves)
    return leaves[np.argsort(spans_of(density.nodes, density.families)[0][leaves])]


def _volumes(density: Density, leaves: Ints) -> Floats:
    """The share of everything that each leaf is, by the measures."""
    root = np.zeros(leaves.size, np.int64)
    shares = [own.at(root).shares(own.at(leaves)) for own in density.stretches]
    return np.asarray(np.prod(np.array(shares), axis=0))


def _mirrored(rows: int, base: int) -> UInts:
    """The numbers 1, 2, ... with their digits mirrored at the point, as fractions of 2^64.

    Along one axis every run of them is evenly spread, and for different prime bases together, too
    [Halton 1960].
    """
    left, found, unit = np.arange(1, rows + 1, dtype=np.uint64), np.zeros(rows, np.uint64), WORD
    while bool(left.any()):
        left, digit = np.divmod(left, np.uint64(base))
        unit //= base
        found += digit * np.uint64(unit)
    return found


def _placed(measure: Measure, stretches: Stretches, turns: UInts) -> UInts:
    """The position in each stretch at which that fraction of it, of 2^64, has passed."""
    even = stretches.lows + fraction(turns, stretches.highs - stretches.lows)
    if measure.curve is None or stretches.before is None:
        return even
    targets = stretches.before + turns.astype(np.float64) / WORD * stretches.told
    curved = np.clip(passed(measure.curve, targets), stretches.lows, stretches.highs)
    return np.where(stretches.told > 0, curved, even)
