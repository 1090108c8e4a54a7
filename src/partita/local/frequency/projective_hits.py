"""How many points lie on each hyperplane: one Fourier transform, rounded to exact integers.

With c(y) reports of point y, put c(y) on all q - 1 nonzero multiples of y in F_q^d. The transform at x is
F(x) = sum over y of c(y) (q [<x, y> = 0] - 1) = q hits(x) - n, so hits(x) = (F(x) + n) / q.
"""

from __future__ import annotations

from math import log2
from typing import Final

import numpy as np

from partita.local.encodings.projective import ProjectiveResponse
from partita.local.frequency.columns import Ints

_UNIT: Final = 2.0**-53
_ROUNDINGS: Final = 256
"""Roundings of one stage of a transform, relative to the norm of its input: more than any stage makes."""


def hyperplane_hits(randomizer: ProjectiveResponse, counts: Ints) -> Ints:
    """For every cell the number of reports on its hyperplane, exactly.

    Counts are transformed a few bits at a time, so few that no sum can be in doubt: all at once unless
    there are very many reports.
    """
    bits = _safe_bits(randomizer)
    hits = np.zeros(randomizer.size, dtype=np.int64)
    for shift in range(0, max(1, int(counts.max(initial=0)).bit_length()), bits):
        hits += _rounded_hits(randomizer, (counts >> shift) & ((1 << bits) - 1)) << shift
    return hits


def _rounded_hits(randomizer: ProjectiveResponse, counts: Ints) -> Ints:
    q, d = randomizer.field, randomizer.dimension
    points = randomizer.point(np.arange(1, q**d, dtype=np.int64))
    spread = np.concatenate([[0.0], counts[points]]).reshape((q,) * d)
    transform = np.fft.fftn(spread).real.ravel()
    cells = randomizer.vector(np.arange(randomizer.size, dtype=np.int64))
    return np.rint((transform[cells] + float(counts.sum())) / q).astype(np.int64)


def _safe_bits(randomizer: ProjectiveResponse) -> int:
    """The largest width w such that counts below 2^w are transformed with an error below q / 4.

    The error is at most 256 u log2(N) |F| in the Euclidean norm, u = 2^-53, and |F| = sqrt(N) |f| with
    |f| <= sqrt(N) 2^w, N = q^d (docs/proofs/local_randomizers.md).
    """
    vectors = randomizer.field**randomizer.dimension
    error_of_one = _ROUNDINGS * _UNIT * log2(vectors) * vectors
    return max(1, int(log2(randomizer.field / 4 / error_of_one)))
