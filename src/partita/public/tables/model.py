"""A maximum-entropy model of a table over bins of its columns, on a junction tree.

The model holds a table of counts for each clique of columns. Neighbouring tables agree on the columns that
they share, and all of them have one total. It is fitted to noisy tables of few columns by mirror descent
[McKenna, Sheldon and Miklau 2019] and gives the expected count of any box. All of it is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Floats, Ints
from partita.lazy import cached_property
from partita.public.base import checkpoint

Columns: TypeAlias = tuple[int, ...]
"""Numbers of columns, ascending."""

MOST_CLIQUE_CELLS: Final = 2**16  # cells of one table of the model: 16 columns of two bins each
MOST_MODEL_CELLS: Final = 2**18  # cells of all tables: a step of the fit takes a hundredth of a second

# Of the fit. Without momentum 200 steps left pairs of made-up tables up to 10% farther from the rows than 100
# with it, which are as near as 2,000 without.
_STEPS: Final = 100
_HALVINGS: Final = 25  # of a step that does not descend
_GROWTH: Final = 1.3  # of the step after one that descends
_ENOUGH: Final = 1e-5  # a relative gain below this, four times in a row, ends the fit
_PATIENCE: Final = 4
_TINY: Final = 1e-300
_SHRUNK_NOISE: Final = 0.8  # of the noise is shrunk: with 1 triples of Adult were .0006 worse (epsilon 1)
_LEAST_MASS: Final = 1e-9  # rows: a bin with less could never be filled again
_RAKE_FLOOR: Final = 1e-3  # rows that raking leaves in a bin
_MOST_ROWS: Final = 2**60  # rows that a model can expect in all cells of a table together
_LARGEST_LOG: Final = 20.0  # the largest change of a potential in one sweep of raking
_LARGEST_PRODUCT: Final = 2**24  # cells of a product of two tables on the way to an answer: 128 MB


@final
@dataclass(frozen=True, eq=False)
class NoisyTable:
    """A noisy count for each combination of groups of bins of some columns, and its variance.

    `groups` has the group of each bin, column by column, or None where bins are their own groups.
    """

    columns: Columns
    groups: tuple[Ints | None, ...]
    values: Floats
    variance: float

    def onto(self, columns: Iterable[int]) -> NoisyTable:
        """The table of some of its columns: a sum of cells has as many times the variance."""
        kept = [place for place, column in enumerate(self.columns) if column in set(columns)]
        if len(kept) == len(self.columns):
            return self
        dropped = tuple(place for place in range(len(self.columns)) if place not in kept)
        cells = math.prod(self.values.shape[place] for place in dropped)
        return NoisyTable(
            tuple(self.columns[place] for place in kept),
            tuple(self.groups[place] for place in kept),
            self.values.sum(axis=dropped),
            self.variance * cells,
        )


def join_bins(table: NDArray[Any], groups: Sequence[Ints | None]) -> NDArray[Any]:
    """A table over bins as one over groups of bins.

    >>> join_bins(np.array([[1, 2], [3, 4], [5, 6]]), [np.array([0, 1, 0]), None]).tolist()
    [[6, 8], [3, 4]]
    """
    for axis, group in enumerate(groups):
        if group is not None:
            order = np.argsort(group, kind="stable")
            starts = np.searchsorted(group[order], np.arange(int(group.max()) + 1))
            table = np.add.reduceat(np.take(table, order, axis=axis), starts, axis=axis)
    return table


def round_rows(expected: Floats) -> Ints:
    """Expected counts, or limits of misses, in whole rows: clipped, so that sums of misfits fit in 64 bits.

    >>> round_rows(np.array([-3.2, 0.7, 1e30])).tolist()
    [-3, 1, 384307168202282304]
    """
    most = _MOST_ROWS // max(1, expected.size)
    return np.rint(np.clip(expected, -most, most)).astype(np.int64)


def shrink_noise(table: NoisyTable, guess: Floats) -> NoisyTable:
    """A table of two columns with less noise: what it has beyond a guess is near a matrix of low rank.

    Rows and columns keep their sums. Singular values of the rest shrink as is best for independent noise
    [Gavish and Donoho 2017]; the variance is still that of the noise.

    >>> noisy = NoisyTable((0, 1), (None, None), np.array([[9.0, 1.0], [1.0, 9.0]]), 400.0)
    >>> shrink_noise(noisy, np.full((2, 2), 5.0)).values.tolist()
    [[5.0, 5.0], [5.0, 5.0]]
    """
    rest = table.values - guess
    rest = rest - rest.mean(axis=0) - rest.mean(axis=1, keepdims=True) + rest.mean()
    left, values, right = np.linalg.svd(rest, full_matrices=False)
    few, many = sorted(max(1, size - 1) for size in rest.shape)
    unit = _SHRUNK_NOISE * math.sqrt(table.variance * many)
    squares, ratio = (values / max(unit, _TINY)) ** 2, few / many
    clear = squares > (1 + math.sqrt(ratio)) ** 2
    wanted = np.sqrt(np.maximum((squares - ratio - 1) ** 2 - 4 * ratio, 0.0) / np.where(clear, squares, 1.0))
    kept = (left * np.where(clear, unit * wanted, 0.0)) @ right
    return NoisyTable(table.columns, table.groups, table.values - rest + kept, table.variance)


def find_cliques(sizes: Sequence[int], pairs: Iterable[tuple[int, int]]) -> list[Columns] | None:
    """Cliques of a triangulated graph that holds these pairs of columns; every column is in one.

    Columns are eliminated one by one, the one with the smallest table first. None if a table, or all of them
    together, would have too many cells.

    >>> find_cliques([2, 2, 2, 2], [(0, 1), (1, 2), (2, 3), (0, 3)])
    [(0, 1, 3), (1, 2, 3)]
    """
    near: dict[int, set[int]] = {column: set() for column in range(len(sizes))}
    for one, other in pairs:
        near[one].add(other)
        near[other].add(one)
    bits = [math.log2(size) for size in sizes]
    cost = {column: bits[column] + sum(bits[each] for each in near[column]) for column in near}
    cliques: list[Columns] = []
    cells = 0
    while cost:
        column = min(cost, key=lambda each: (cost[each], each))
        around = near.pop(column)
        del cost[column]
        clique = tuple(sorted(around | {column}))
        if not any(set(clique) <= set(other) for other in cliques):
            table = math.prod(sizes[each] for each in clique)
            cells += table
            if len(clique) > 1 and (table > MOST_CLIQUE_CELLS or cells > MOST_MODEL_CELLS):
                return None
            cliques.append(clique)
        for each in around:
            near[each] = (near[each] | around) - {each, column}
        for each in around:
            cost[each] = bits[each] + sum(bits[other] for other in near[each])
    return cliques


@final
@dataclass(frozen=True, eq=False)
class JunctionTree:
    """Cliques of columns in a tree: the cliques that hold a column are connected."""

    sizes: tuple[int, ...]
    cliques: tuple[Columns, ...]

    @cached_property
    def near(self) -> tuple[tuple[int, ...], ...]:
        """The neighbours of each clique: a spanning tree of the largest common sets of columns."""
        number = len(self.cliques)
        shared = [
            (-len(set(self.cliques[i]) & set(self.cliques[j])), i, j) for i in range(number) for j in range(i)
        ]
        part, near = list(range(number)), [list[int]() for _ in range(number)]
        for _, i, j in sorted(shared):
            if part[i] != part[j]:
                gone, stays = part[j], part[i]
                part = [stays if each == gone else each for each in part]
                near[i].append(j)
                near[j].append(i)
        return tuple(map(tuple, near))

    @cached_property
    def order(self) -> tuple[tuple[int, int], ...]:
        """Every clique with its parent, parents first; the first has the parent -1."""
        order = [(0, -1)]
        for clique, parent in order:
            order += [(child, clique) for child in self.near[clique] if child != parent]
        return tuple(order)

    @cached_property
    def homes(self) -> tuple[int, ...]:
        """For each column the smallest clique that holds it."""
        return tuple(self.holder((column,)) or 0 for column in range(len(self.sizes)))

    def holder(self, columns: Columns) -> int | None:
        """The smallest clique that holds all of these columns."""
        holding = [place for place, clique in enumerate(self.cliques) if set(columns) <= set(clique)]
        return min(holding, key=self.cells, default=None)

    def cells(self, clique: int) -> int:
        """The number of cells of the table of a clique."""
        return math.prod(self.sizes[column] for column in self.cliques[clique])

    def shape(self, clique: int, columns: Iterable[int]) -> list[int]:
        """The shape in which a table of some columns is multiplied with that of a clique."""
        kept = set(columns)
        return [self.sizes[column] if column in kept else 1 for column in self.cliques[clique]]

    def others(self, clique: int, columns: Iterable[int]) -> tuple[int, ...]:
        """The axes of the table of a clique that belong to other columns."""
        kept = set(columns)
        return tuple(axis for axis, column in enumerate(self.cliques[clique]) if column not in kept)

    def separator(self, one: int, other: int) -> Columns:
        """The columns that two cliques share."""
        return tuple(sorted(set(self.cliques[one]) & set(self.cliques[other])))

    def calibrate(self, potentials: Sequence[Floats], total: float) -> list[Floats]:
        """The tables of all cliques for these potentials, by two passes of messages over the tree."""
        tables = [np.exp(potential - potential.max()) for potential in potentials]
        for clique, parent in reversed(self.order[1:]):
            shared = self.separator(clique, parent)
            message = tables[clique].sum(axis=self.others(clique, shared))
            message /= max(float(message.max()), _TINY)
            tables[parent] = tables[parent] * message.reshape(self.shape(parent, shared))
        tables[0] = tables[0] * (total / max(float(tables[0].sum()), _TINY))
        for clique, parent in self.order[1:]:
            shared = self.separator(clique, parent)
            want = tables[parent].sum(axis=self.others(parent, shared))
            have = tables[clique].sum(axis=self.others(clique, shared))
            ratio = np.divide(want, have, out=np.zeros_like(want), where=have > 0)
            tables[clique] = tables[clique] * ratio.reshape(self.shape(clique, shared))
        return tables

    def subtree(self, columns: Iterable[int]) -> list[tuple[int, int]]:
        """The cliques of a small subtree that holds all of these columns, each with its parent in it."""
        wanted = set(columns)
        kept = set(range(len(self.cliques)))
        holding = {column: sum(column in clique for clique in self.cliques) for column in wanted}
        leaves = [clique for clique in kept if len(self.near[clique]) <= 1]
        while leaves and len(kept) > 1:
            leaf = leaves.pop()
            needed = any(holding.get(column) == 1 for column in self.cliques[leaf])
            if leaf not in kept or needed:
                continue
            kept.discard(leaf)
            for column in wanted & set(self.cliques[leaf]):
                holding[column] -= 1
            beside = (clique for clique in self.near[leaf] if clique in kept)
            leaves += [each for each in beside if sum(near in kept for near in self.near[each]) <= 1]
        first = next(clique for clique, _ in self.order if clique in kept)
        found, seen = [(first, -1)], {first}
        for clique, _ in found:
            fresh = [each for each in self.near[clique] if each in kept and each not in seen]
            seen.update(fresh)
            found += [(each, clique) for each in fresh]
        return found


@final
@dataclass(frozen=True, eq=False)
class TableModel:
    """Expected counts over the bins of columns: a table for each clique of a junction tree."""

    tree: JunctionTree
    tables: tuple[Floats, ...]
    total: float

    @staticmethod
    def independent(masses: Sequence[Floats], total: float) -> TableModel:
        """Columns that do not depend on each other."""
        tree = JunctionTree(tuple(mass.size for mass in masses), tuple((c,) for c in range(len(masses))))
        tables = (mass * (total / max(float(mass.sum()), _TINY)) for mass in masses)
        return TableModel(tree, tuple(tables), total)

    def holds(self, columns: Columns) -> bool:
        """Whether one clique holds all of these columns."""
        return self.tree.holder(columns) is not None

    def table(self, columns: Columns, weights: Mapping[int, Floats] | None = None) -> Floats:
        """The expected count of each combination of bins of some columns.

        `weights` of the bins of further columns are multiplied and summed. A matrix of weights, bins by
        groups, of one of the columns gives the table over groups.
        """
        given = weights or {}
        wanted = tuple(sorted({*columns, *given}))
        holder = self.tree.holder(wanted)
        used = [(holder, -1)] if holder is not None else self.tree.subtree(wanted)
        arguments: list[Any] = []
        for clique, parent in used:
            arguments += [self._conditional(clique, parent), list(self.tree.cliques[clique])]
        output = []
        names = iter(range(len(self.tree.sizes), 2 * len(self.tree.sizes)))
        for column in columns:
            if column in given:
                output.append(next(names))
                arguments += [given[column], [column, output[-1]]]
            else:
                output.append(column)
        for column in set(given) - set(columns):
            arguments += [given[column], [column]]
        return _contract(arguments, output)

    def _conditional(self, clique: int, parent: int) -> Floats:
        """The table of a clique, given what it shares with its parent."""
        table = self.tables[clique]
        if parent < 0:
            return table
        shared = self.tree.separator(clique, parent)
        whole = table.sum(axis=self.tree.others(clique, shared))
        inverse = np.divide(1.0, whole, out=np.zeros_like(whole), where=whole > 0)
        return np.asarray(table * inverse.reshape(self.tree.shape(clique, shared)))

    def fitted(self, measured: Sequence[NoisyTable], cliques: Sequence[Columns], total: float) -> TableModel:
        """The model of so many rows over these cliques that is nearest to noisy tables; it begins here."""
        tree = JunctionTree(self.tree.sizes, tuple(cliques))
        return _Fit.of(tree, measured, total).descend(self._potentials_on(tree))

    def _potentials_on(self, tree: JunctionTree) -> list[Floats]:
        """Potentials of another tree that give this model, or its single columns where cliques are gone."""
        potentials = [np.zeros(tree.shape(place, clique)) for place, clique in enumerate(tree.cliques)]
        holders = [tree.holder(clique) for clique in self.tree.cliques]
        if any(holder is None for holder in holders):
            start = TableModel.independent([self.table((c,)) for c in range(len(tree.sizes))], self.total)
            return start._potentials_on(tree)
        for clique, parent in self.tree.order:
            holder = tree.holder(self.tree.cliques[clique])
            assert holder is not None
            shape = tree.shape(holder, self.tree.cliques[clique])
            logs = np.log(np.maximum(self._conditional(clique, parent), _LEAST_MASS / self.total))
            potentials[holder] = potentials[holder] + logs.reshape(shape)
        return potentials

    def raked(self, masses: Sequence[Floats], *, sweeps: int = 2) -> TableModel:
        """The model whose single columns have these masses: iterative proportional fitting, column by column.

        Without it small bins that mirror descent has emptied never recover.
        """
        tables = list(self.tables)
        tree = self.tree
        for _ in range(sweeps):
            for column, mass in enumerate(masses):
                checkpoint()
                home = tree.homes[column]
                have = tables[home].sum(axis=tree.others(home, (column,)))
                want = np.maximum(mass, _RAKE_FLOOR)
                ratio = np.clip(
                    want / np.maximum(have, _LEAST_MASS), math.exp(-_LARGEST_LOG), math.exp(_LARGEST_LOG)
                )
                tables = _scaled(tree, tables, home, ratio.reshape(tree.shape(home, (column,))))
        scaled = (table * (self.total / max(float(table.sum()), _TINY)) for table in tables)
        return TableModel(tree, tuple(scaled), self.total)


def _scaled(tree: JunctionTree, tables: list[Floats], first: int, ratio: Floats) -> list[Floats]:
    """Calibrated tables after one of them is multiplied: the change spreads from neighbour to neighbour."""
    changed = list(tables)
    changed[first] = tables[first] * ratio
    waiting = [(first, -1)]
    for clique, parent in waiting:
        for other in tree.near[clique]:
            shared = tree.separator(clique, other)
            if other == parent or not shared:
                continue
            want = changed[clique].sum(axis=tree.others(clique, shared))
            have = changed[other].sum(axis=tree.others(other, shared))
            factor = np.divide(want, have, out=np.zeros_like(want), where=have > 0)
            if np.allclose(factor, 1.0, rtol=1e-12, atol=0.0):
                continue
            changed[other] = changed[other] * factor.reshape(tree.shape(other, shared))
            waiting.append((other, clique))
    return changed


def _contract(arguments: list[Any], output: list[int]) -> Floats:
    """einsum over any number of names: NumPy knows 52.

    Factors are multiplied two at a time. Without a limit NumPy allows no product that is larger than the
    largest factor, and multiplies all that are left at once, which may take forever.
    """
    names: dict[int, int] = {}

    def short(listed: list[int]) -> list[int]:
        return [names.setdefault(each, len(names)) for each in listed]

    renamed = [short(each) if place % 2 else each for place, each in enumerate(arguments)]
    return np.asarray(np.einsum(*renamed, short(output), optimize=("greedy", _LARGEST_PRODUCT)))


@final
@dataclass(frozen=True, eq=False)
class _Target:
    """A noisy table, and the clique of the model that it is compared with."""

    clique: int
    axes: tuple[int, ...]
    shape: list[int]
    table: NoisyTable

    @cached_property
    def joins(self) -> bool:
        return any(group is not None for group in self.table.groups)

    def residual(self, tables: Sequence[Floats]) -> Floats:
        """What the model has more than was measured."""
        expected = tables[self.clique].sum(axis=self.axes)
        return (join_bins(expected, self.table.groups) if self.joins else expected) - self.table.values

    def spread(self, gradient: Floats) -> Floats:
        """A gradient over groups as one over the bins of the clique."""
        for axis, group in enumerate(self.table.groups):
            if group is not None:
                gradient = np.take(gradient, group, axis=axis)
        return gradient.reshape(self.shape)


@final
@dataclass(frozen=True, eq=False)
class _Fit:
    """Least squares by mirror descent: potentials step against the gradient of the loss by counts."""

    tree: JunctionTree
    targets: tuple[_Target, ...]
    total: float

    @staticmethod
    def of(tree: JunctionTree, measured: Sequence[NoisyTable], total: float) -> _Fit:
        """Each table is compared with the cliques that hold it, or the largest parts of it."""
        targets = []
        for table in measured:
            for columns in _held_parts(tree, table.columns):
                part = table.onto(columns)
                clique = tree.holder(part.columns)
                assert clique is not None
                shape, axes = tree.shape(clique, part.columns), tree.others(clique, part.columns)
                targets.append(_Target(clique, axes, shape, part))
        return _Fit(tree, tuple(targets), total)

    def loss(self, tables: Sequence[Floats]) -> float:
        """Half of the sum of squared residuals in standard errors."""
        return sum(
            float((target.residual(tables) ** 2).sum()) / (2 * target.table.variance)
            for target in self.targets
        )

    def gradient(self, tables: Sequence[Floats]) -> list[Floats]:
        """The derivative of the loss by the counts of each clique."""
        slopes = [np.zeros_like(table) for table in tables]
        for target in self.targets:
            slopes[target.clique] += target.spread(target.residual(tables) / target.table.variance)
        return slopes

    def descend(self, potentials: list[Floats]) -> TableModel:
        """Steps with momentum, halved until the loss falls enough, and grown after that.

        Where a step with momentum leads up, the next one starts without [O'Donoghue and Candes 2015].
        """
        ahead, run, reached_loss, stalled = potentials, 0, np.inf, 0
        tables = self.tree.calibrate(ahead, self.total)
        loss, slopes = self.loss(tables), self.gradient(tables)
        step = 0.5 / max(_TINY, *(float(np.abs(slope).max()) for slope in slopes))
        for _ in range(_STEPS):
            checkpoint()
            for _ in range(_HALVINGS):
                trial = [point - step * slope for point, slope in zip(ahead, slopes, strict=True)]
                reached = self.tree.calibrate(trial, self.total)
                lower = self.loss(reached)
                moved = zip(slopes, tables, reached, strict=True)
                drop = sum(float((slope * (old - new)).sum()) for slope, old, new in moved)
                if loss - lower >= 0.5 * drop - 1e-12 * abs(loss):
                    break
                step *= 0.5
            if lower > reached_loss and run:
                ahead, run = potentials, 0
            else:
                stalled = stalled + 1 if reached_loss - lower < _ENOUGH * max(lower, 1.0) else 0
                run += 1
                before, reached_loss = potentials, lower
                potentials = [point - point.max() for point in trial]
                pairs = zip(potentials, before, strict=True)
                ahead = [new + run / (run + 3) * (new - old) for new, old in pairs]
            tables = self.tree.calibrate(ahead, self.total)
            loss, slopes = self.loss(tables), self.gradient(tables)
            step *= _GROWTH
            if stalled >= _PATIENCE:
                break
        return TableModel(self.tree, tuple(self.tree.calibrate(potentials, self.total)), self.total)


def _held_parts(tree: JunctionTree, columns: Columns) -> list[Columns]:
    """The largest subsets of some columns that cliques hold, each column in one at least."""
    if tree.holder(columns) is not None:
        return [columns]
    common = {tuple(sorted(set(columns) & set(clique))) for clique in tree.cliques}
    return sorted(each for each in common if each and not any(set(each) < set(other) for other in common))


def all_pairs(columns: Sequence[int]) -> list[tuple[int, int]]:
    """Every pair of some columns, ascending."""
    return list(combinations(sorted(columns), 2))
