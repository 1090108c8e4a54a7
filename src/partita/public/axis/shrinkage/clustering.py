"""How uneven pieces are inside, guessed from how uneven they are among each other."""

from __future__ import annotations

from typing import Final

import numpy as np

from partita.public.axis.curve.curve import Curve, Floats

_PRIOR_PIECES: Final = 40.0
_GUESS: Final = 0.06
_LARGEST_BEND: Final = 9.0
_STEEPNESS: Final = 0.5
_ALONE: Final = 1.5


def clustering(pieces: Curve, *, noise: float, roughness: float = 1.0) -> Floats:
    """For each piece from 0, evenly filled, to 1, as if it held all its rows in one cell.

    Where the densities of pieces beside each other lie on a smooth line, pieces are smooth inside; where
    they jump, as between heavy cells and gaps, pieces are like that inside. A few pieces say little:
    then it is nearer to a guess, which is low if they look evenly filled; one alone says nothing at all.
    `noise` is the standard deviation of a count. Pieces of one cell have no inside.
    """
    wide = pieces.widths > 1.0
    number = int(np.count_nonzero(wide))
    found = np.zeros(wide.size)
    if number:
        bends = _bends(pieces.counts[wide] + noise, pieces.widths[wide])
        seen = np.minimum(1.0, _STEEPNESS * bends**2)
        known = max(0, number - 2)
        blend = (known * seen + _PRIOR_PIECES * _GUESS * roughness) / (known + _PRIOR_PIECES)
        found[wide] = np.maximum(blend, min(1.0, _ALONE / number**2))
    return found


def _bends(counts: Floats, widths: Floats) -> Floats:
    """How sharply the line of log densities bends about each piece: the mean square of three bends.

    In units in which densities that have nothing to do with each other give twice their variance.
    """
    if counts.size < 3:
        return np.zeros(counts.size)
    bends = np.minimum(np.diff(np.log(counts / widths), n=2) ** 2 / 3, _LARGEST_BEND)
    own = np.pad(bends, 2, mode="edge")
    return np.asarray((own[:-2] + own[1:-1] + own[2:]) / 3)
