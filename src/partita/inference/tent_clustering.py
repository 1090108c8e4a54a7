"""How uneven pieces are inside, guessed from how uneven they are among each other."""

from __future__ import annotations

from typing import Final

import numpy as np

from partita.inference.curve import Curve

__all__ = ["clustering"]

_FEW_PIECES: Final = 20
_GUESS: Final = 0.4
_LARGEST_BEND: Final = 9.0
_STEEPNESS: Final = 0.8


def clustering(pieces: Curve, *, noise: float, roughness: float) -> float:
    """From 0, all pieces evenly filled, to 1, as if each held all its rows in one cell.

    Where the densities of pieces beside each other lie on a smooth line, pieces are smooth inside; where
    they jump, as between heavy cells and gaps, pieces are like that inside. A few pieces say little:
    then it is nearer to a guess, which is low if they look evenly filled. `noise` is the standard
    deviation of a count.
    """
    wide = pieces.widths > 1.0
    density = np.log((pieces.counts[wide] + noise) / pieces.widths[wide])
    bends = np.minimum(np.diff(density, n=2) ** 2 / 3, _LARGEST_BEND)
    seen = min(1.0, _STEEPNESS * float(bends.mean()) ** 2) if bends.size else 0.0
    return (bends.size * seen + _FEW_PIECES * _GUESS * roughness) / (bends.size + _FEW_PIECES)
