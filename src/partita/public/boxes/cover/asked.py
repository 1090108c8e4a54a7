"""One question laid over a tree of boxes: which nodes it takes, with which coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from partita.lazy.cached import cached_property
from partita.public.axis.curve.curve import Bools, Floats, Ints
from partita.public.boxes.density.density import Density


class Coefficients(NamedTuple):
    """The coefficients that a linear question gives to the rows of nodes.

    Each lies between `least` and `most`; over a node, spread as the density says, they have a `mean` and
    a mean `square`.
    """

    least: Floats
    most: Floats
    mean: Floats
    square: Floats

    @staticmethod
    def equal(each: Floats) -> Coefficients:
        """All rows of a node have the same."""
        return Coefficients(each, each, each, each**2)

    def replaced(self, places: Ints, others: Coefficients) -> Coefficients:
        """With others in some places."""
        new = Coefficients(*(each.copy() for each in self))
        for mine, theirs in zip(new, others, strict=True):
            mine[places] = theirs
        return new

    @property
    def negated(self) -> Coefficients:
        """Those of the same question with the other sign."""
        return Coefficients(-self.most, -self.least, -self.mean, self.square)

    @property
    def variance(self) -> Floats:
        """How they vary inside of each node."""
        return np.maximum(self.square - self.mean**2, 0.0)


class Layer(NamedTuple):
    """Nodes of one level that matter: the children of nodes that are `split`, one level up.

    The coefficients of a node that is split itself are left to its children.
    """

    nodes: Ints
    split: Bools
    coefficients: Coefficients

    def families(self, above: Layer, density: Density) -> Ints:
        """Where the children of each node that is split above begin."""
        sizes = density.nodes.children[above.nodes[above.split]]
        return np.asarray(np.cumsum(sizes) - sizes)


@final
@dataclass(frozen=True, eq=False)
class Asked:
    """A linear question: layers of nodes from the root down, of which those not split make up the tree."""

    density: Density
    layers: Sequence[Layer]

    @cached_property
    def nodes(self) -> Ints:
        """The nodes that are not split: they make up everything."""
        return np.concatenate([layer.nodes[~layer.split] for layer in self.layers])

    @cached_property
    def coefficients(self) -> Coefficients:
        """Their coefficients."""
        each = [[series[~layer.split] for series in layer.coefficients] for layer in self.layers]
        return Coefficients(*(np.concatenate(series) for series in zip(*each, strict=True)))

    @property
    def value(self) -> float:
        """The answer."""
        return float(self.coefficients.mean @ self.density.held.values[self.nodes])

    @property
    def variance(self) -> float:
        """The variance of the answer: that of the nodes, and for those that are cut, of where rows lie."""
        held = self.density.held.some(self.nodes)
        inside = self.coefficients.variance @ held.squares
        return float(self.coefficients.mean**2 @ held.variances + inside)

    @property
    def negated(self) -> Asked:
        """The same question with the other sign."""
        layers = [each._replace(coefficients=each.coefficients.negated) for each in self.layers]
        return Asked(self.density, layers)
