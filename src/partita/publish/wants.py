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

from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.errors import check
from partita.guarantee import Guarantee
from partita.public.sums.group_means import MOST_GROUPS
from partita.public.sums.parts import MOST_PARTS, count_cells
from partita.public.wants import MEAN, RANGES, TOTAL, VARIANCE, Want, WantKind, read_want
from partita.publish.views import ViewRequest, check_columns, check_numbers, sum_request, view_request
from partita.trusted.mechanisms.catalogue import AUTO, BY_NAME, ROWS
from partita.trusted.mechanisms.group_means import GroupMeans
from partita.trusted.mechanisms.quantiles import QuantileSelection
from partita.trusted.mechanisms.totals import KnotTotal

Wants: TypeAlias = Sequence[object]
"""Wants, or their texts."""

_FEW_GROUPS: Final = 32  # up to here trees of levels tell the scale of each group; beyond, one clip is better
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


def checked_wants(schema: Mapping[str, Domain], wants: object) -> tuple[Want, ...]:
    """The wants in their order, each of columns of the schema and each once."""
    if wants is None:
        return ()
    listed = [wants] if isinstance(wants, str | Want) else wants
    fix = 'pass for example ["median of salary", "total of cost"]'
    several = isinstance(listed, list | tuple) and listed
    check(several, "wants", "must be a list of wants", given=wants, fix=fix)
    found: list[Want] = []
    for want in map(read_want, listed):  # type: ignore[call-overload]
        check_columns(want.columns, schema, "wants")
        check(want not in found, "wants", "must name each want once", given=str(want), fix="leave one out")
        found.append(want)
    return tuple(found)


def draft_wants(wants: Iterable[Want], schema: Mapping[str, Domain], guarantee: Guarantee) -> list[WantDraft]:
    """The views that answer these wants."""
    groups: dict[tuple[str, str, str | None], list[Want]] = {}
    for want in wants:
        family = "quantiles" if want.shares else "ranges" if want.kind is RANGES else "sums"
        groups.setdefault((family, want.column, want.by), []).append(want)
    return [
        WantDraft(tuple(each), partial(_make_request, each, schema, guarantee)) for each in groups.values()
    ]


def _make_request(
    wants: Sequence[Want], schema: Mapping[str, Domain], guarantee: Guarantee, share: Fraction
) -> ViewRequest[Any]:
    """The view that answers these wants; one that has a mechanism of its own says that it is for a want."""
    request = _choose_request(wants, schema, guarantee, share)
    why = request.choice.why.replace(BY_NAME, _FOR_WANTS)
    return replace(request, choice=replace(request.choice, why=why))


def _choose_request(
    wants: Sequence[Want], schema: Mapping[str, Domain], guarantee: Guarantee, share: Fraction
) -> ViewRequest[Any]:
    """The view that answers these wants, which need the same columns."""
    first = wants[0]
    declared = {column: schema[column] for column in first.columns}
    if first.kind is RANGES:
        return view_request(declared, share, guarantee, AUTO)
    if first.shares:
        quantiles = sorted({each for want in wants for each in want.shares})
        return view_request(declared, share, guarantee, QuantileSelection.name, quantiles=quantiles)
    check_numbers([first.column], schema, "wants")
    keys = () if first.by is None else (first.by,)
    kinds = {want.kind for want in wants}
    groups = count_cells([Axis.of(schema[key]) for key in keys])
    mechanism = _choose_sums(kinds, groups) if keys or kinds != {TOTAL} else KnotTotal.name
    if mechanism == AUTO:  # trees of levels cut more groups by their counts, which nobody wants here
        rule = f"must be by a column of at most {MOST_PARTS:,} cells, or {MOST_GROUPS:,} for means alone"
        fix = "make its domain coarser, or publish with by= and sums="
        check(groups <= MOST_PARTS, "wants", rule, given=first.by, fix=fix)
    return sum_request(declared, keys, share, guarantee, moments=VARIANCE in kinds, mechanism=mechanism)


def _choose_sums(kinds: Set[WantKind], groups: int) -> str:
    """The mechanism of these wants about one column in so many groups: by public facts alone."""
    many = _FEW_GROUPS < groups <= MOST_GROUPS
    return GroupMeans.name if kinds == {MEAN} and many else AUTO


def share_by_error(
    drafts: Sequence[WantDraft], weights: Sequence[Fraction], epsilon: Fraction
) -> list[Fraction]:
    """The part of epsilon of each view: as its weight times the square of its predicted error, to the third.

    A view with a part p of epsilon errs by its predicted error over p, and this minimizes the weighted sum
    of the squares. Errors are predicted for an epsilon of at most one: beyond, integer noise vanishes faster
    than that, and nobody needs the best shares. Shares are multiples of 1/10,000, and add up to one.
    """
    equal = Fraction(1, len(drafts)) / max(epsilon, Fraction(1))
    errors = [_typical_error(draft.request(equal)) for draft in drafts]
    parts = [(float(w) * e**2) ** (1 / 3) for w, e in zip(weights, errors, strict=True)]
    shares = [Fraction(max(1, math.floor(part / sum(parts) * _UNITS)), _UNITS) for part in parts]
    return [1 - sum(shares[1:], Fraction(0)), *shares[1:]]


def _typical_error(request: ViewRequest[Any]) -> float:
    """The geometric mean of the predicted errors over few, usual and many rows: public numbers only."""
    return math.prod(request.predicted_error(rows) for rows in ROWS) ** (1 / len(ROWS))
