"""Published counters that ours are measured against: exact variances at epsilon 1, and errors to simulate.

They are linear in their noise, and float noise will do: good baselines, and no protection for anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Draw = Callable[[int], Floats]
"""So many independent noises of scale 1."""

LAPLACE = 2.0
"""The variance of noise of scale 1."""

_WIDEST = 59


@dataclass(frozen=True)
class Digits:
    """A counter that adds up the nodes of a tree which the digits of t name, the root left out.

    With balanced digits, negative ones subtract nodes that reach beyond t [APT24]. With refinement every
    node is averaged with the nodes below it, by their variances [Honaker15].
    """

    base: int
    levels: int
    balanced: bool = False
    refined: bool = False

    def variances(self, horizon: int) -> Floats:
        """The variance of each output."""
        walks = zip(self._walks(horizon), self._node_variances(), strict=True)
        return sum((np.abs(end - start) * variance for (start, end), variance in walks), np.zeros(horizon))

    def errors(self, horizon: int, draw: Draw) -> Floats:
        """The error of each output of one run."""
        total, below = np.zeros(horizon), None
        for (start, end), weight in zip(self._walks(horizon), self._own_weights(), strict=True):
            nodes = weight * self.levels * draw(int(max(start.max(), end.max())))
            if below is not None:
                nodes += (1 - weight) * below[: nodes.size * self.base].reshape(-1, self.base).sum(axis=1)
            path = np.concatenate([[0.0], np.cumsum(nodes)])
            total += path[end] - path[start]
            below = nodes if self.refined else None
        return total

    def _walks(self, horizon: int) -> Iterator[tuple[Ints, Ints]]:
        """For each level, leaves first: from which node to which one an output walks over it."""
        times = np.arange(1, horizon + 1, dtype=np.int64)
        ends = [self._rounded(times, self.base**level) for level in range(self.levels)]
        for end, above in zip(ends, [*ends[1:], np.zeros_like(times)], strict=True):
            yield self.base * above, end

    def _rounded(self, times: Ints, width: int) -> Ints:
        """How many nodes of a width lie before each time: whole ones, or to the nearest."""
        return (times + (width - 1) // 2 * self.balanced) // width

    def _node_variances(self) -> list[float]:
        own = LAPLACE * self.levels**2
        variances = [own]
        for _ in range(self.levels - 1):
            below = self.base * variances[-1]
            variances.append(own * below / (own + below) if self.refined else own)
        return variances

    def _own_weights(self) -> list[float]:
        """How much of a node's estimate is its own noise."""
        own = LAPLACE * self.levels**2
        return [variance / own for variance in self._node_variances()]


@dataclass(frozen=True)
class PerStep:
    """Every period with its own noise, summed up."""

    def variances(self, horizon: int) -> Floats:
        """The variance of each output."""
        return LAPLACE * np.arange(1.0, horizon + 1)

    def errors(self, horizon: int, draw: Draw) -> Floats:
        """The error of each output of one run."""
        return np.cumsum(draw(horizon))


@dataclass(frozen=True)
class Direct:
    """Every output with noise of its own, for a share of epsilon."""

    def variances(self, horizon: int) -> Floats:
        """The variance of each output."""
        return np.full(horizon, LAPLACE * horizon**2)

    def errors(self, horizon: int, draw: Draw) -> Floats:
        """The error of each output of one run."""
        return horizon * draw(horizon)


Peer = Digits | PerStep | Direct


def binary(horizon: int, *, refined: bool = False) -> Digits:
    """The binary tree, root dropped [DR14, Fig. 12.1]; with Honaker's refinement if that is asked for."""
    return Digits(base=2, levels=max(1, (horizon - 1).bit_length()), refined=refined)


def subtractions(horizon: int, base: int) -> Iterator[Digits]:
    """The trees with subtraction of an odd base: as high as the horizon needs, and one level less.

    The top row of the lower one has as many nodes as it takes.
    """
    levels = 1
    while (base**levels - 1) // 2 < horizon:
        levels += 1
    for height in (levels, max(1, levels - 1)):
        yield Digits(base=base, levels=height, balanced=True)


@lru_cache
def best_subtraction(horizon: int) -> Digits:
    """The tree with subtraction whose mean variance is least: the best published pure scheme."""
    peers = [peer for base in range(3, _WIDEST + 1, 2) for peer in subtractions(horizon, base)]
    return min(peers, key=lambda peer: peer.variances(horizon).mean())


def published(horizon: int) -> dict[str, Peer]:
    """What is known, by name."""
    return {
        "direct": Direct(),
        "per-step": PerStep(),
        "binary": binary(horizon),
        "Honaker": binary(horizon, refined=True),
        "subtraction": best_subtraction(horizon),
    }
