"""What a table release has measured so far: views, bins, noisy tables, and the model that is fitted to them.

The trusted side asks this what to measure next, in which grid and beside which guess. It sees released
numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Floats, Ints
from partita.domain.axis import Axis
from partita.lazy import cached_property
from partita.public.axis.curve import Curve
from partita.public.bounds import NoiseLaw, noise_variance
from partita.public.boxes.base import BoxRelease
from partita.public.boxes.bins import AxisBins
from partita.public.tables.model import (
    Columns,
    NoisyTable,
    TableModel,
    all_pairs,
    find_cliques,
    join_bins,
    round_rows,
    shrink_noise,
)
from partita.public.tables.plan import (
    bin_counts,
    bin_masses,
    combine_masses,
    estimate_curve,
    find_bins,
    find_grid,
    project_on_total,
)


@final
@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """Noisy counts of some columns together, in groups of their bins; each has noise of `scale`."""

    columns: Columns
    groups: tuple[Ints | None, ...]
    noisy: NDArray[Any]
    scale: NoiseLaw

    @cached_property
    def floats(self) -> NoisyTable:
        """The counts as floats, with their variance."""
        return NoisyTable(
            self.columns, self.groups, self.noisy.astype(np.float64), noise_variance(self.scale)
        )


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TableFit:
    """Views of all columns, bins, tables measured over them, and a model. `total` has noise of `scale`.

    `targets` are the tables that the model is fitted to, while it is made: pairs with less noise.
    """

    total: int
    scale: NoiseLaw
    views: tuple[BoxRelease, ...]
    bins: tuple[AxisBins, ...]
    tables: tuple[MeasuredTable, ...]
    model: TableModel
    targets: tuple[NoisyTable, ...] = ()

    @staticmethod
    def start(
        views: Sequence[BoxRelease],
        total: int,
        scale: NoiseLaw,
        pair_epsilon: float,
        rate: float,
        *,
        most_bins: int | None = None,
    ) -> TableFit:
        """Independent columns: bins follow the views. `total` has noise of `scale`."""
        rows, _ = estimate_rows(views, total, scale, ())
        bins = tuple(
            find_bins(view, estimate_curve(view, rows), pair_epsilon, rows * rate, most_bins)
            for view in views
        )
        blank = TableModel.independent([np.ones(each.number) for each in bins], rows)
        fit = TableFit(total=total, scale=scale, views=tuple(views), bins=bins, tables=(), model=blank)
        return replace(fit, model=TableModel.independent(fit.masses, rows))

    @property
    def rows(self) -> float:
        """The estimated number of rows, at least one."""
        return self._rows[0]

    @property
    def rows_error(self) -> float:
        """The standard error of the number of rows."""
        return self._rows[1]

    @cached_property
    def _rows(self) -> tuple[float, float]:
        return estimate_rows(self.views, self.total, self.scale, self.tables)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axis of each column."""
        return tuple(view.axes[0] for view in self.views)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of bins of each column."""
        return tuple(each.number for each in self.bins)

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        """The rows along each column."""
        return tuple(estimate_curve(view, self.rows) for view in self.views)

    @cached_property
    def combined(self) -> list[tuple[Floats, Floats]]:
        """The unbiased estimate of each bin of each column, and its variance."""
        return combine_masses(self._view_counts, [table.floats for table in self.tables])

    @cached_property
    def masses(self) -> list[Floats]:
        """The rows in each bin of each column: never negative, with the estimated total."""
        found = combine_masses(self._smooth, [table.floats for table in self.tables])
        return [project_on_total(values, self.rows) for values, _ in found]

    @cached_property
    def pairs(self) -> frozenset[tuple[int, int]]:
        """Every pair of columns that a measured table holds."""
        return frozenset(pair for table in self.tables for pair in all_pairs(table.columns))

    def grid(self, columns: Columns, epsilon: float) -> tuple[Ints | None, ...]:
        """The groups of bins in which a table is measured with this epsilon for each row."""
        labels = [self.axes[column].labels for column in columns]
        return find_grid([self.masses[column] for column in columns], labels, epsilon, self.rows)

    def guess(self, columns: Columns, groups: Sequence[Ints | None]) -> Ints:
        """What the model expects of a table, in whole rows."""
        expected: Floats = join_bins(self.model.table(columns), groups)
        return round_rows(expected)

    def fits(self, sets: Iterable[Columns]) -> bool:
        """Whether a model can hold these sets of columns beside all pairs that it holds."""
        held = (pair for clique in self.model.tree.cliques for pair in all_pairs(clique))
        return (
            find_cliques(self.sizes, [*held, *(pair for each in sets for pair in all_pairs(each))])
            is not None
        )

    def with_tables(self, tables: Sequence[MeasuredTable]) -> TableFit:
        """The fit to further tables. Pairs that depend most come first, if the model cannot hold all."""
        targets = (*self.targets, *(self._target(table) for table in tables))
        grown = replace(self, tables=(*self.tables, *tables), targets=targets)
        cliques = grown._cliques()
        measured = [
            *(NoisyTable((c,), (None,), *_even(*each)) for c, each in enumerate(grown._smooth)),
            *grown.targets,
        ]
        return replace(grown, model=self.model.fitted(measured, cliques, grown.rows).raked(grown.masses))

    def _target(self, table: MeasuredTable) -> NoisyTable:
        """What the model is fitted to: a pair with less noise; beside wider tables it stays as it is."""
        if len(table.columns) != 2 or any(len(each.columns) > 2 for each in self.tables):
            return table.floats
        return shrink_noise(table.floats, join_bins(self.model.table(table.columns), table.groups))

    def _cliques(self) -> list[Columns]:
        pairs = sorted(self.pairs)
        cliques = find_cliques(self.sizes, pairs)
        if cliques is not None:
            return cliques
        kept: list[tuple[int, int]] = []
        cliques = [(column,) for column in range(len(self.sizes))]
        for pair in sorted(pairs, key=self._measured_dependence, reverse=True):
            grown = find_cliques(self.sizes, [*kept, pair])
            if grown is not None:
                kept.append(pair)
                cliques = grown
        return cliques

    def _measured_dependence(self, pair: tuple[int, int]) -> float:
        """How far the measured table of a pair is from independence, in standard errors of its noise."""
        found = 0.0
        for table in self.tables:
            if set(pair) <= set(table.columns):
                part = table.floats.onto(pair)
                alone = [
                    join_bins(self.masses[c], [g]) for c, g in zip(part.columns, part.groups, strict=True)
                ]
                distance = float(((part.values - np.multiply.outer(*alone) / self.rows) ** 2).sum())
                found += distance / part.variance - part.values.size
        return found / math.sqrt(max(1, math.prod(self.sizes[c] for c in pair)))

    @cached_property
    def _smooth(self) -> list[tuple[Floats, Floats]]:
        """The rows in each bin by the smoothed views, and the variances without smoothing."""
        columns = zip(self.curves, self.bins, self._view_counts, strict=True)
        return [(bin_masses(curve, bins), variances) for curve, bins, (_, variances) in columns]

    @property
    def view_variances(self) -> list[Floats]:
        """The variance of each bin of each column by the view."""
        return [variances for _, variances in self._view_counts]

    @cached_property
    def _view_counts(self) -> list[tuple[Floats, Floats]]:
        return [bin_counts(view, bins) for view, bins in zip(self.views, self.bins, strict=True)]


def _even(values: Floats, variances: Floats) -> tuple[Floats, float]:
    """Values with one variance for all: the mean, as bins have about equally many cells."""
    return values, float(variances.mean())


def estimate_rows(
    views: Sequence[BoxRelease], total: int, scale: NoiseLaw, tables: Sequence[MeasuredTable]
) -> tuple[float, float]:
    """The number of rows, at least one, and its standard error.

    The total and the sums of all views and tables, by inverse variance.
    """
    answers = [view.answer(view.everything) for view in views]
    sums = [(float(total), noise_variance(scale))]
    sums += [(answer.value, max(answer.error, 1e-6) ** 2) for answer in answers]
    sums += [(float(t.noisy.sum()), t.noisy.size * noise_variance(t.scale)) for t in tables]
    precision = sum(1 / variance for _, variance in sums)
    mean = sum(value / variance for value, variance in sums) / precision
    return max(1.0, mean), precision**-0.5
