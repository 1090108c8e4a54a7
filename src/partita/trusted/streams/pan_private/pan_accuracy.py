"""How many noises are in the outputs of a pan-private counter: public numbers, by the levels of blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partita.trusted.streams.counter.bounds import Mix, mix
from partita.trusted.streams.pan_private.pan_blocks import Block, Cells


def noises_after(block: Block, carried: Cells, periods: int) -> Cells:
    """The noises in an output after so many periods of a block that began with an output that had some."""
    noises = carried.copy()
    if periods:
        noises[block.levels] += block.noises(periods - 1)
    return noises


def most_noises(block: Block, carried: Cells) -> Cells:
    """At least as many as in any output of this block and those before it."""
    most = carried.copy()
    for levels in {block.levels, *np.flatnonzero(carried).tolist()}:
        most[levels] += _alike(block, levels).most
    return most


def law_of(block: Block, noises: Cells) -> Mix:
    """The sum of so many noises of blocks with so many levels."""
    return mix(
        (1.0, float(1 / _alike(block, levels).scale), float(noises[levels]))
        for levels in np.flatnonzero(noises).tolist()
    )


def _alike(block: Block, levels: int) -> Block:
    return replace(block, length=1 << levels)
