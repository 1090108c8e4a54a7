"""Ways to write a value as masses on few knots, so that its sum is linear in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Piece(NamedTuple):
    """For each value a knot, and the mass that it gets there."""

    knot: NDArray[np.int64]
    mass: NDArray[Any]


class Decomposition(ABC):
    """Whole values 0, ..., top as masses on knots: v = sum over knots of knot mass / unit."""

    @property
    @abstractmethod
    def knots(self) -> tuple[int, ...]:
        """Whole numbers, increasing; the last is at least half of the top."""

    @property
    @abstractmethod
    def unit(self) -> int:
        """The mass that counts as one row."""

    @property
    @abstractmethod
    def most(self) -> int:
        """No row has more mass in all."""

    @property
    def rounding(self) -> float:
        """By how much at most a value differs from what its masses say."""
        return 0.0

    @abstractmethod
    def pieces(self, values: NDArray[Any]) -> Iterator[Piece]:
        """The masses of whole values from 0 to the top, a few pieces for all of them."""


def spread_masses(
    decomposition: Decomposition,
    cells: NDArray[Any],
    values: NDArray[Any],
    counts: NDArray[Any],
    size: int,
) -> NDArray[Any]:
    """How much mass lies in each of `size` cells on each knot, as Python ints: a table (cell, knot)."""
    table = np.zeros((size, len(decomposition.knots)), dtype=object)
    times = counts.astype(object)
    for knot, mass in decomposition.pieces(values):
        np.add.at(table, (cells, knot), mass * times)
    return table
