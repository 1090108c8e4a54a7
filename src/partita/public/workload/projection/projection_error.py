"""How far projected answers are from the truth: what is certain, and what is likely."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from partita.public.axis.curve.curve import Floats
from partita.public.bounds.query_error import largest_reach
from partita.public.bounds.tails import half_width, laplace_variance, repeated_reach
from partita.public.queries.operator.operator import Operator
from partita.public.workload.projection.projection import Projection


def rows_reach(scale: Fraction, beta: float) -> int:
    """The least h such that a noisy number of rows plus h is below the true one at most so often."""
    return int(half_width(np.array(float(1 / scale)), np.array(math.log(2 * beta))))


@final
@dataclass(frozen=True, eq=False)
class AnswerNoise:
    """Independent noise of one scale, in units of the operator, on the answer to every query."""

    operator: Operator
    scale: Fraction

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise of an answer."""
        return math.sqrt(laplace_variance(self.scale)) / self.operator.granularity

    def reach(self, queries: int, beta: float) -> float:
        """With probability 1 - beta the noise of so many answers is nowhere larger."""
        return largest_reach(self.scale, queries, beta) / self.operator.granularity

    def column_reach(self, beta: float) -> float:
        """With probability 1 - beta no cell's sum of weights times noises is further from zero.

        By convexity of ln M, the sum has moments no larger than those of column_norm / w noises of full
        weight w. Each cell has its share of beta, half of it on either side.
        """
        operator = self.operator
        weight = float(_largest_weight(operator))
        times = np.array([operator.column_norm / weight])
        each = beta / (2 * math.prod(operator.shape))
        reach = repeated_reach(np.array([weight]), np.array([float(1 / self.scale)]), times, each)
        return reach / operator.granularity**2

    def projected_distance(self, projection: Projection, beyond: float, beta: float) -> float:
        """With probability 1 - beta projected answers are no further from the truth, in the Euclidean norm.

        `beyond` is by how much the rows may exceed the hull's. docs/proofs/projected_laplace.md, Theorem 2.
        """
        hull = math.sqrt(2 * projection.rows * self.column_reach(beta / 2))
        noise = math.sqrt(len(self.operator)) * self.reach(len(self.operator), beta / 2)
        return min(hull, noise) + 2 * beyond * self._column_length + projection.distance

    @property
    def _column_length(self) -> float:
        """The Euclidean norm of the weights of a cell is at most this."""
        return (
            math.sqrt(self.operator.column_norm * _largest_weight(self.operator)) / self.operator.granularity
        )


def likely_error(projection: Projection, noisy: Floats, deviation: float) -> float:
    """About the root-mean-square error of projected answers, by Stein's unbiased estimate of risk [S81].

    ||y - a||^2 - k s^2 + 2 s^2 d, where d, the dimension of the face that a lies on, is at most the number
    of cells with weight; no less than d s^2, what noise does along the face, and no more than k s^2.
    """
    count = noisy.size
    dimension = min(projection.cells.size, count)
    risk = float(np.square(noisy - projection.values).sum()) + (2 * dimension - count) * deviation**2
    return math.sqrt(min(count * deviation**2, max(risk, max(1, dimension) * deviation**2)) / count)


def _largest_weight(operator: Operator) -> int:
    return max(abs(operator.lowest), abs(operator.highest))
