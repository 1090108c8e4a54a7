"""The pieces of units whose last cells are told apart, against their definition as sets."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest

from partita.arrays import UInts
from partita.public.axis.tent_solver import PairEvidence, Pairs, split_last_cells

RNG = np.random.default_rng(0)
SETS = [
    np.unique(RNG.integers(0, top, RNG.integers(1, 12), np.uint64, endpoint=True))
    for top in (3, 12, 2**64 - 1)
    for _ in range(30)
]


@dataclass(frozen=True)
class Ends:
    """Units of which only the ends are known."""

    ends: UInts


@pytest.mark.parametrize("ends", SETS, ids=str)
def test_last_cells_end_pieces_of_their_own(ends: UInts) -> None:
    """Every end is an end, and so is the cell before it, if there is one."""
    pieces = split_last_cells(ends)

    assert pieces.dtype == np.uint64
    assert pieces.tolist() == sorted({int(end) - back for end in ends for back in (0, 1) if end >= back})


@pytest.mark.parametrize("ends", SETS, ids=str)
def test_pairs_split_the_units_they_belong_to(ends: UInts) -> None:
    """Only split units have their last cell cut off, and every unit knows the piece that ends with it."""
    wide = np.diff(ends, prepend=np.uint64(0)) > 1
    split = wide & (np.random.default_rng(ends.size).random(ends.size) < 0.5)
    none = np.zeros(np.count_nonzero(split), np.int64)
    pairs = Pairs(last=none, rest=none, rate=Fraction(1))
    evidence = PairEvidence(units=cast(Any, Ends(ends)), split=split, pairs=pairs)

    assert evidence.ends.tolist() == sorted({*ends.tolist(), *(ends[split] - np.uint64(1)).tolist()})
    assert np.array_equal(evidence.ends[evidence._last], ends)
