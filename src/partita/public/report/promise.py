"""Views that make up a release: of different columns, declared in one way, and with one promise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Final

from partita.errors.checks import check_release
from partita.errors.errors import IncompatibleGuarantees, InvalidRelease
from partita.guarantee.guarantee import Guarantee
from partita.public.file_entries.published import Published, declared_by
from partita.public.sums.view.sum_view import SumView
from partita.public.workload.release.query_view import QueryView

_FIX: Final = "get a fresh copy of the release"


def check_views(views: Sequence[Published], guarantee: Guarantee | None) -> None:
    """Refuse views that are not of different columns, or that do not promise together what is claimed."""
    rule, fix = "must be of different columns", "release each set of columns once"
    check_release(views and len({_about(view) for view in views}) >= len(views), "views", rule, fix=fix)
    check_release(_agree_on_domains(views), "views", "must declare a column in one way", fix=_FIX)
    rule = "must be what its views promise together"
    check_release(guarantee == _promised(views), "guarantee", rule, fix=_FIX)
    rule = "must have the noise that is promised"
    check_release(all(view.keeps_its_promise for view in views), "views", rule, fix=_FIX)


def _about(view: Published) -> tuple[object, ...]:
    """What no two views of a release have in common."""
    if isinstance(view, QueryView):
        return ("queries",)
    if isinstance(view, SumView):
        return "sum", view.column, frozenset(view.keys)
    return "counts", frozenset(view.columns)


def _promised(views: Sequence[Published]) -> Guarantee | None:
    """What views of the same people promise together; None if one of them promises nothing."""
    guarantees = [view.guarantee for view in views if view.guarantee is not None]
    if len(guarantees) < len(views):
        return None
    try:
        return reduce(add, guarantees)
    except IncompatibleGuarantees:
        raise InvalidRelease("views", "must promise about the same neighbors", fix=_FIX) from None


def _agree_on_domains(views: Sequence[Published]) -> bool:
    """Whether a column that is in several views has one domain."""
    declared: dict[str, object] = {}
    pairs = (pair for view in views for pair in declared_by(view).items())
    return all(declared.setdefault(column, domain.to_spec()) == domain.to_spec() for column, domain in pairs)
