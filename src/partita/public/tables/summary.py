"""What a table release tells and what not, in sentences: before it is made, and from its released numbers.

A plan follows from public facts and a guess of the rows, a receipt from what was released. Both say how far
off a single label, a cell of two columns and a box are, and which of them say little.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np

from partita.domain.axis import Axis
from partita.guarantee import Guarantee
from partita.public.base import figure
from partita.public.bounds import laplace_variance
from partita.public.tables.graph import TableGraphRelease
from partita.public.tables.model import all_pairs
from partita.public.tables.plan import NORMAL_95, SMALL, TableErrors, find_cover, find_growth
from partita.public.tables.spending import Spending

_WHOLE_PERCENT: Final = Fraction(99, 10_000)  # smaller parts have a digit behind the point
_ASKED_CELLS: Final = 256  # cells of a column whose errors a receipt reads, evenly spread
# Measured over guessed errors of boxes: on the tables of `plan._BOX_NOISE`, and on the made-up table of
# docs/how-to/publish-a-table.md, where each job is found in four regions.
_LEAST_RATIO, _MOST_RATIO, _DEPENDENT_RATIO = 0.4, 2, 7
_NAMED: Final = 5  # columns that a warning names; the others are counted
_ASKED_ALONE: Final = 256  # cells: of a longer ordered column people ask for ranges


def describe_plan(
    errors: TableErrors, axes: Sequence[Axis], together: Sequence[Sequence[str]] = ()
) -> Iterator[str]:
    """How epsilon would be shared, what would be measured, and how far off answers about pairs would be."""
    shares = errors.shares
    parts = {
        "views of single columns": sum(shares.views),
        "tables of several columns": shares.pairs,
        "choosing them": shares.choosing + 2 * shares.look,
        "audits": shares.audits,
        "the number of rows": shares.total,
    }
    listed = ", ".join(
        f"{name} {float(part):.{0 if part >= _WHOLE_PERCENT else 1}%}" for name, part in parts.items() if part
    )
    yield f"Parts of {shares.unit}: {listed}."
    yield (
        _describe_cover(axes, gaussian=shares.unit == "rho")
        if shares.cover
        else "Pairs are chosen by noisy scores, as many as rows can tell."
    )
    if together:
        named = ", ".join(" x ".join(each) for each in together)
        yield f"Measured together in any case: {named}."
    yield (
        f"Typical errors: {figure(errors.cell)} rows of a cell of two columns, {figure(errors.box)} of a "
        f"random box of two columns. These are guesses: errors of boxes were {_LEAST_RATIO} to {_MOST_RATIO} "
        f"times as large on other tables, and up to {_DEPENDENT_RATIO} times for columns that determine each "
        "other; name such columns in together, and simulate on public rows."
    )


def _percent(part: Fraction | int) -> str:
    return f"{float(part):.{0 if part >= _WHOLE_PERCENT else 1}%}"


def _describe_cover(axes: Sequence[Axis], *, gaussian: bool) -> str:
    small = [place for place, axis in enumerate(axes) if axis.size <= SMALL]
    number = len(find_cover(small, [max(2, axis.size) for axis in axes], gaussian=gaussian))
    rest = "" if len(small) == len(axes) else "; pairs with other columns are chosen by noisy scores"
    return f"{number} tables cover all pairs of {len(small)} columns of at most {SMALL} cells{rest}."


def warn_of_blur(
    columns: Sequence[str],
    axes: Sequence[Axis],
    spending: Spending,
    errors: TableErrors,
    guarantee: Guarantee,
) -> Iterator[str]:
    """A sentence for each column whose single cells say little, and one for cells of two columns.

    Of many such columns the first are named one by one and the others together.
    """
    if not errors.rows:
        return
    blurred = [
        place
        for place, axis in enumerate(axes)
        if errors.is_blurred(place) and (axis.labels or axis.size <= _ASKED_ALONE)
    ]
    for place in blurred[:_NAMED]:
        found, axis = errors.columns[place], axes[place]
        growth = find_growth(axes, spending, errors.rows, place)
        cure = "join cells" if growth is None else f"{_shown(guarantee, growth)} would tell it"
        cell = "label" if axis.labels else "value"
        yield (
            f"a single {cell} of {columns[place]}: ± {figure(found.half_width)} of about "
            f"{figure(errors.mean(place))} rows; {cure}, and so would fewer columns"
        )
    others = blurred[_NAMED:]
    if others:
        named = ", ".join(columns[place] for place in others[:_NAMED])
        more = f" and {len(others) - _NAMED} more columns" if len(others) > _NAMED else ""
        yield f"single cells of {named}{more}, likewise"
    pairs = all_pairs(range(len(axes)))
    unclear = [pair for pair in pairs if _is_pair_blurred(axes, pair, errors)]
    if unclear:
        yield (
            f"a single cell of two columns: ± {figure(NORMAL_95 * errors.cell)}, more than the mean cell "
            f"has in {len(unclear)} of {len(pairs)} pairs; ask for ranges or groups, and name the pairs that "
            "matter in together"
        )


def _is_pair_blurred(axes: Sequence[Axis], pair: Sequence[int], errors: TableErrors) -> bool:
    one, other = (axes[place].size for place in pair)
    return NORMAL_95 * errors.cell > errors.rows / (one * other)


def _shown(guarantee: Guarantee, growth: float) -> str:
    """The budget at which noise is smaller by this factor."""
    if guarantee.rho:
        return f"rho {float(guarantee.rho) * growth**2:,.3g}"
    return f"epsilon {float(guarantee.epsilon) * growth:,.3g}"


# Of a release.


@final
@dataclass(frozen=True)
class ColumnSummary:
    """One column of a table release: the error of a single cell, its 95% half width, the mean rows of a cell.

    All in rows, and functions of released numbers. `told` says whether the mean cell exceeds the half width.
    """

    column: str
    cells: int
    single: float
    half_width: float
    mean: float

    @property
    def told(self) -> bool:
        """Whether single cells can be told from none, on average."""
        return self.half_width <= self.mean


@final
@dataclass(frozen=True)
class TableSummary:
    """What a table release tells: its columns, how many pairs it measured, its audits."""

    columns: tuple[ColumnSummary, ...]
    tables: int
    measured: int
    pairs: int
    audits: Mapping[str, int]

    @staticmethod
    def of(columns: Sequence[str], boxes: TableGraphRelease) -> TableSummary:
        """The summary of a release with these columns."""
        rows = boxes.fit.rows
        return TableSummary(
            columns=tuple(_summarize(name, place, boxes, rows) for place, name in enumerate(columns)),
            tables=len(boxes.fit.tables),
            measured=len(boxes.fit.pairs),
            pairs=len(all_pairs(range(len(columns)))),
            audits=dict(Counter(audit.kind for audit in boxes.audits)),
        )

    def lines(self) -> list[tuple[str, str]]:
        """Heads and sentences for a receipt."""
        single = ", ".join(f"{each.column} ± {figure(each.half_width)}" for each in self.columns)
        audits = ", ".join(f"{number} of {kind}" for kind, number in self.audits.items())
        pairs = (
            f"{self.measured} of {self.pairs} measured, in {self.tables} tables; a model infers the others"
        )
        blurred = [each for each in self.columns if not each.told]
        return [
            ("single", f"95% of one cell: {single}"),
            ("pairs", pairs if self.measured < self.pairs else f"all {self.pairs} in {self.tables} tables"),
            ("audits", audits),
            *([("unclear", _describe_blurred(blurred))] if blurred else []),
        ]

    def to_json(self) -> dict[str, Any]:
        """The same in words that JSON can write."""
        columns = [{**asdict(each), "told": each.told} for each in self.columns]
        return {**asdict(self), "columns": columns}


def _summarize(name: str, place: int, boxes: TableGraphRelease, rows: float) -> ColumnSummary:
    axis = boxes.axes[place]
    number = min(axis.size, _ASKED_CELLS)
    cells = np.array([axis.before + turn * axis.size // number for turn in range(number)], np.uint64)
    _, errors = boxes.readers[place].alone(cells, cells)
    view = boxes.fit.views[place].errors(cells[:, None], cells[:, None])
    single = float(np.median(np.where(errors > 0, errors, view)))  # no cell is known without any error
    return ColumnSummary(name, axis.size, single, NORMAL_95 * single, rows / axis.size)


def _describe_blurred(columns: Sequence[ColumnSummary]) -> str:
    """Which single cells cannot be told from none."""
    named = ", ".join(
        f"{each.column} (± {figure(each.half_width)} of about {figure(each.mean)})"
        for each in columns[:_NAMED]
    )
    more = f" and {len(columns) - _NAMED} more columns" if len(columns) > _NAMED else ""
    return f"single cells of {named}{more}: ask for ranges or groups"


# Of the labels of viewed boxes, each of which has a noisy count of its own.


def summarize_labels(column: str, axis: Axis, scale: Fraction, rows: float) -> ColumnSummary:
    """A column whose labels have Laplace noise of one scale: 95% of it is within log(20) scales."""
    half_width = math.log(20.0) * float(scale)
    return ColumnSummary(column, axis.size, laplace_variance(scale) ** 0.5, half_width, rows / axis.size)


def describe_labels(columns: Sequence[ColumnSummary]) -> Iterator[str]:
    """How far off a single label is, of the columns whose labels are counted one by one."""
    if columns:
        named = ", ".join(f"{each.column} ± {figure(each.half_width)}" for each in columns)
        yield f"Labels are counted one by one, 95% of a single one: {named} rows."


def warn_of_labels(columns: Sequence[ColumnSummary], guarantee: Guarantee) -> Iterator[str]:
    """A sentence for each column whose single labels say little: their noise falls as epsilon grows."""
    for each in columns:
        if not each.told and each.mean > 0.0:
            yield (
                f"a single label of {each.column}: ± {figure(each.half_width)} of about {figure(each.mean)} "
                f"rows; {_shown(guarantee, each.half_width / each.mean)} would tell it, and so would "
                "fewer columns"
            )
