"""Many linear queries over the cells of a universe, as an operator: the matrix of weights is never built."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Operator(ABC):
    """k linear queries, each a weight for every cell of a universe of `shape`.

    Weights are integers in units of 1/`granularity`. Arrays may be of any array-API library; integers in,
    integers out, so that answers about people are exact whatever the order of sums.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The widths of the universe's axes."""

    @property
    @abstractmethod
    def granularity(self) -> int:
        """Weights are integers over this number."""

    @property
    @abstractmethod
    def lowest(self) -> int:
        """No weight is below this, in units."""

    @property
    @abstractmethod
    def highest(self) -> int:
        """No weight is above this, in units."""

    @property
    @abstractmethod
    def column_norm(self) -> int:
        """The largest sum over queries of the absolute weights of one cell, in units, exactly."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of queries."""

    @abstractmethod
    def answers(self, x: Any) -> Any:
        """The answer to every query, in units, where x[cell] rows are in each cell."""

    @abstractmethod
    def combine(self, y: Any) -> Any:
        """For each cell the sum over queries of y[query] times its weight there, in units (the adjoint)."""

    @abstractmethod
    def row(self, index: int, like: Any) -> Any:
        """The weights of one query over the universe, in units, as an array like another."""
