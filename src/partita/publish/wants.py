"""From wants to views: the best mechanism for each statistic, and the parts of epsilon that they get.

Sums, means and variances of one column by the same groups come from one view. Epsilon is shared so that the
squares of the predicted errors, relative to those of each view by itself, have the least sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Final, TypeAlias, final

from partita.domain.axis import LARGEST_AXIS, Axis
from partita.domain.base import Domain
from partita.errors import check
from partita.guarantee import Guarantee
from partita.public.bounds import laplace_variance
from partita.public.file_entries import describe_wanted
from partita.public.sums.group_means import MOST_GROUPS
from partita.public.sums.parts import MOST_PARTS, count_cells
from partita.public.sums.totals import MOST_TOTALS
from partita.public.wanted import WantedView, check_cells, derive_cells
from partita.public.wants import (
    BOUNDS,
    GINI,
    INTERQUARTILE_RANGE,
    MEAN,
    RANGES,
    SHARE,
    TOP_SHARE,
    TRIMMED_MEAN,
    VARIANCE,
    Want,
    WantKind,
    read_want,
)
from partita.publish.views import (
    ViewRequest,
    check_columns,
    check_declared,
    check_numbers,
    facts_of,
    sum_request,
    view_request,
)
from partita.trusted.mechanisms.catalogue import AUTO, BY_NAME, ROWS, Choice, spend
from partita.trusted.mechanisms.flat import HistogramCounts
from partita.trusted.mechanisms.group_means import GroupMeans
from partita.trusted.mechanisms.quantiles import QuantileSelection
from partita.trusted.mechanisms.totals import KnotTotal
from partita.trusted.secret import Histogram
from partita.trusted.sources.tally import Tally

Wants: TypeAlias = Sequence[object]
"""Wants, or their texts."""

_CURVES: Final = (TRIMMED_MEAN, TOP_SHARE, GINI)  # are read off one log tree of the column
_FEW_GROUPS: Final = 16  # two to so many have knots: better than one clip where their scales differ
_FOR_WANTS: Final = "It is what serves the wants best."
_UNITS: Final = 10**4  # shares are whole multiples of one over this, and at least one of them


@final
@dataclass(frozen=True)
class WantDraft:
    """Wants that one view answers, and the view once it has its part of epsilon."""

    wants: tuple[Want, ...]
    request: Callable[[Fraction], ViewRequest[Any]]

    @property
    def name(self) -> str:
        """The wants in words."""
        return ", ".join(map(str, self.wants))


@final
@dataclass(frozen=True, kw_only=True)
class WantedRequest(ViewRequest[Histogram]):
    """Noisy counts of cells that a want derives, of which each row is in one."""

    want: Want
    choice: Choice[HistogramCounts]

    @property
    def declared(self) -> dict[str, Domain]:
        """The domain of each column."""
        return dict(zip(self.columns, self.domains, strict=True))

    @property
    def name(self) -> str:
        """The want as text."""
        return str(self.want)

    @property
    def error_of(self) -> str:
        """Numbers of rows."""
        if self.want.kind is SHARE:
            return "a share, times the rows that it is a share of"
        return "the number of rows between two bounds"

    @property
    def described(self) -> dict[str, Any]:
        """The want, its columns and their domains in words that JSON can write."""
        return describe_wanted(self.want, self.declared)

    def predicted_error(self, rows: int) -> float:
        """Of a share of one half, which errs least; of bounds, of a random range of cells."""
        if self.want.kind is SHARE:
            return math.sqrt(laplace_variance(self.choice.mechanism.scale) / 2)
        return super().predicted_error(rows)

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """How far off the answer would be, by the noise alone."""
        error = self.predicted_error(rows)
        if self.want.kind is SHARE:
            each = max(1, rows // max(1, self.choice.mechanism.size // 2))
            group = "group" if self.want.by else "column"
            return (f"The share of a {group} of {each:,} rows errs by about {error / each:.1g}.",)
        return (f"Each bound is chosen by counts of rows beyond it, which err by about {error:,.0f} rows.",)

    def counted(self, rows: Tally) -> Histogram:
        """How many rows are in each cell, which is one for each row."""
        cells, points = derive_cells(self.want, self.declared), rows.points(self.columns)
        [table] = points.tables([tuple(range(len(self.columns)))], cells.bins)
        return Histogram.dense(cells.gather(table), contributions=points.contributions)

    def release(self, counted: Histogram) -> WantedView:
        """Noise on each cell."""
        return WantedView(
            want=self.want,
            declared=self.declared,
            counts=self.choice.mechanism.release(counted),
            mechanism=self.choice.name,
            why=self.why,
        )


def checked_wants(schema: Mapping[str, Domain], wants: object) -> tuple[Want, ...]:
    """The wants in their order, each of columns of the schema and each once."""
    if wants is None:
        return ()
    listed = [wants] if isinstance(wants, str | Want) else wants
    fix = 'pass for example ["median of salary", "total of cost"]'
    several = isinstance(listed, list | tuple) and listed
    given = "none" if listed == [] else wants
    check(several, "wants", "must be a list of wants", given=given, fix=fix)
    found: list[Want] = []
    for want in map(read_want, listed):  # type: ignore[call-overload]
        check_columns(want.columns, schema, "wants")
        check_declared({column: schema[column] for column in want.columns}, "wants")
        if want.kind in (BOUNDS, INTERQUARTILE_RANGE, *_CURVES):
            check_numbers([want.column], schema, "wants")
        if want.kind is SHARE:
            _check_share(want, schema)
        if want.kind in (TOP_SHARE, GINI):
            rule, fix = "must be about a column without negative values", "declare 0 as its lower bound"
            low = schema[want.column].low  # type: ignore[attr-defined]
            check(low >= 0, "wants", rule, given=want.column, fix=fix)
        check(want not in found, "wants", "must name each want once", given=str(want), fix="leave one out")
        found.append(want)
    return tuple(found)


def _check_share(want: Want, schema: Mapping[str, Domain]) -> None:
    """Refuse conditions that no value meets, and more cells than can be counted."""
    for column in want.columns:
        rule, fix = "must be about columns of at most 2^63 cells", "make its domain coarser"
        check(schema[column].size <= LARGEST_AXIS, "wants", rule, given=column, fix=fix)
    check_cells(want, schema)


def draft_wants(wants: Iterable[Want], schema: Mapping[str, Domain], guarantee: Guarantee) -> list[WantDraft]:
    """The views that answer these wants."""
    groups: dict[tuple[str, str, str | None], list[Want]] = {}
    for want in wants:
        groups.setdefault((_family(want), want.column, want.by), []).append(want)
    return [
        WantDraft(tuple(each), partial(_make_request, each, schema, guarantee)) for each in groups.values()
    ]


def _family(want: Want) -> str:
    """Wants of one family about the same columns come from one view."""
    if want.kind in (SHARE, BOUNDS, RANGES):
        return want.kind.name
    if want.kind in _CURVES:
        return "curve"
    return "quantiles" if want.shares else "sums"


def _make_request(
    wants: Sequence[Want], schema: Mapping[str, Domain], guarantee: Guarantee, share: Fraction
) -> ViewRequest[Any]:
    """The view that answers these wants; one that has a mechanism of its own says that it is for a want."""
    request = _choose_request(wants, schema, guarantee, share)
    why = request.choice.why.replace(BY_NAME, _FOR_WANTS)
    return replace(request, choice=replace(request.choice, why=why), wants=tuple(map(str, wants)))


def _choose_request(
    wants: Sequence[Want], schema: Mapping[str, Domain], guarantee: Guarantee, share: Fraction
) -> ViewRequest[Any]:
    """The view that answers these wants, which need the same columns."""
    first = wants[0]
    declared = {column: schema[column] for column in first.columns}
    if first.kind in (SHARE, BOUNDS):
        return _wanted_request(first, declared, share, guarantee)
    if first.kind is RANGES:
        return view_request(declared, share, guarantee, AUTO)
    if first.shares:
        quantiles = sorted({each for want in wants for each in want.shares})
        bought = any(want.interval for want in wants)
        return view_request(
            declared, share, guarantee, QuantileSelection.name, quantiles=quantiles, interval=bought
        )
    check_numbers([first.column], schema, "wants")
    if first.kind in _CURVES:
        return sum_request(declared, (first.column,), share, guarantee, moments=False)
    keys = () if first.by is None else (first.by,)
    kinds = {want.kind for want in wants}
    groups = count_cells([Axis.of(schema[key]) for key in keys])
    mechanism = _choose_sums(kinds, groups)
    if mechanism == AUTO:  # trees of levels cut more groups by their counts, which nobody wants here
        rule = f"must be by a column of at most {MOST_PARTS:,} cells, or {MOST_GROUPS:,} for means alone"
        fix = "make its domain coarser, or publish with by= and sums="
        check(groups <= MOST_PARTS, "wants", rule, given=first.by, fix=fix)
    return sum_request(declared, keys, share, guarantee, moments=VARIANCE in kinds, mechanism=mechanism)


def _wanted_request(
    want: Want, declared: Mapping[str, Domain], share: Fraction, guarantee: Guarantee
) -> WantedRequest:
    """Noise on every cell of a want: nothing is better where a row is in one cell, and cells are few."""
    size = derive_cells(want, declared).size
    made = HistogramCounts(**spend(HistogramCounts, facts_of(guarantee, share), size=size))
    return WantedRequest(
        columns=tuple(declared),
        domains=tuple(declared.values()),
        share=share,
        choice=Choice(made.name, f"{BY_NAME} {made.size:,} cells have noise, and each row is in one.", made),
        want=want,
    )


def _choose_sums(kinds: Set[WantKind], groups: int) -> str:
    """The mechanism of these wants about one column in so many groups: by public facts alone.

    Variances need squares, which trees of levels have. Totals come from knots, and means with them; so do
    means of a few groups, whose scales may differ. Means alone come from one clip if there is no group or
    more than a few (benchmarks/README.md, means by group): its errors are smaller then.
    """
    if VARIANCE in kinds or groups > MOST_TOTALS:
        return GroupMeans.name if kinds == {MEAN} and groups <= MOST_GROUPS else AUTO
    clipped = groups == 1 or groups > _FEW_GROUPS
    return GroupMeans.name if kinds == {MEAN} and clipped else KnotTotal.name


def share_by_error(
    drafts: Sequence[WantDraft], weights: Sequence[Fraction], guarantee: Guarantee
) -> list[Fraction]:
    """The part of epsilon of each view: as its weight times the square of its predicted error, to the third.

    A view with a part p of epsilon errs by its predicted error over p, and this minimizes the weighted sum
    of the squares; with a part p of rho it errs by that over the root of p, and the power is a half. Errors
    are predicted for an epsilon of at most one, or a rho of a half: beyond, integer noise vanishes faster
    than that, and nobody needs the best shares. Shares are multiples of 1/10,000, and add up to one.
    """
    budget, power = (2 * guarantee.rho, 1 / 2) if guarantee.rho else (guarantee.epsilon, 1 / 3)
    equal = Fraction(1, len(drafts)) / max(budget, Fraction(1))
    errors = [_typical_error(draft.request(equal)) for draft in drafts]
    parts = [(float(w) * e**2) ** power for w, e in zip(weights, errors, strict=True)]
    shares = [Fraction(max(1, math.floor(part / sum(parts) * _UNITS)), _UNITS) for part in parts]
    largest = max(range(len(shares)), key=shares.__getitem__)
    shares[largest] += 1 - sum(shares, Fraction(0))
    return shares


def _typical_error(request: ViewRequest[Any]) -> float:
    """The geometric mean of the predicted errors over few, usual and many rows: public numbers only."""
    return math.prod(request.predicted_error(rows) for rows in ROWS) ** (1 / len(ROWS))
