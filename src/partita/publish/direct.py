"""`as_release`: what a class of mechanisms released by itself, as a release that can be asked and saved."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

import partita
from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.errors import InvalidParameter, check
from partita.guarantee import CHANGE_ONE, Guarantee
from partita.ledger.entries import checked_day, checked_text
from partita.public.axis.base import AxisRelease, Specials
from partita.public.axis.quantiles import QuantileRelease, QuantileView
from partita.public.base import Provenance, ReleaseKind
from partita.public.boxes.base import BoxRelease
from partita.public.file_entries import Published
from partita.public.release import Release
from partita.public.sums.view import Sums, SumView
from partita.public.views import BoxView, View
from partita.public.workload.release import QueryView, WorkloadRelease
from partita.publish.request import checked_schema, unit_by

_WHY: Final = "It was released by its class, without publish."
_FIX: Final = 'pass the domain of each column, for example {"age": Integer(0, 120)}'


def as_release(
    released: object,
    schema: Mapping[str, Domain],
    *,
    specials: Specials | None = None,
    mechanism: str | None = None,
    dataset: str | None = None,
    person: str | None = None,
) -> Release:
    """What the `release` of a mechanism returned, as a release of the columns of the schema.

    The guarantee is that of `released`: none if its noise was injected. No ledger is debited, and the release
    says that its spending was not recorded. The schema has a domain for each axis, in their order, with as
    many cells; for sums the keys and then the summed column, for queries the columns of their universe.

    One axis has no special cells: its questions are about rows that have a value, unless `specials` are the
    noisy counts of those cells, between add-remove neighbours. `mechanism` is the name of the mechanism,
    `dataset` and `person` are what the publisher states about the rows.

    >>> from partita.domain import Integer
    >>> from partita.trusted.mechanisms.tree import Tree
    >>> from partita.trusted.secret import Histogram
    >>> tree = Tree(size=121, epsilon=1).release(Histogram.from_cells([30, 31, 30], size=121))
    >>> as_release(tree, {"age": Integer(0, 120)}).guarantee
    Guarantee(epsilon=1, neighbors=add-remove, unit=row)
    """
    declared = checked_schema(schema)
    rule, fix = "must be of one axis to have special cells beside it", "leave it out"
    check(specials is None or isinstance(released, AxisRelease), "specials", rule, given="some", fix=fix)
    view = _view(released, declared, specials, mechanism)
    unit_by(person)
    origin = Provenance(
        version=partita.__version__,
        day=checked_day(None),
        dataset=None if dataset is None else checked_text(dataset, "dataset"),
        person=person,
    )
    parts: dict[str, Any] = {"views": (), "guarantee": view.guarantee, "provenance": origin}
    return Release(**{**parts, **_place(view)})


def _place(view: Published) -> dict[str, Any]:
    """The part of a release that a view belongs to."""
    if isinstance(view, SumView):
        return {"sums": (view,)}
    if isinstance(view, QueryView):
        return {"queries": view}
    return {"quantiles" if isinstance(view, QuantileView) else "views": (view,)}


def _view(
    released: Any, declared: Mapping[str, Domain], specials: Specials | None, mechanism: str | None
) -> Published:
    columns, domains = tuple(declared), tuple(declared.values())
    facts: dict[str, str] = {"mechanism": _name(released) if mechanism is None else mechanism, "why": _WHY}
    if isinstance(released, AxisRelease | QuantileRelease):
        _check_columns(declared, 1)
        column, domain = columns[0], domains[0]
        _check_cells(released.size == domain.size, f"{released.size} cells", f"{domain.size} cells")
        if isinstance(released, QuantileRelease):
            return QuantileView(column=column, domain=domain, selected=released, **facts)
        if specials is None:
            specials = Specials(counts={}, scale=Fraction(1))
        else:
            _check_specials(released.guarantee)
        return View(column=column, domain=domain, axis=released, specials=specials, **facts)
    axes = tuple(map(Axis.of, domains))
    if isinstance(released, BoxRelease):
        _check_columns(declared, len(released.axes))
        _check_axes(released.axes, axes)
        return BoxView(columns=columns, domains=domains, boxes=released, **facts)
    if isinstance(released, Sums):
        own = released.own_key
        keys = columns if own else columns[:-1]
        _check_columns(declared, 1 if own else len(released.keys) + 1)
        _check_axes(released.keys, axes[: len(keys)])
        view = SumView(keys=keys, column=columns[-1], declared=declared, sums=released, beside=None, **facts)
        rule, fix = (
            "must stand by itself: these sums are cut by counts of their keys",
            "use publish with sums=",
        )
        check(not view.needs_counts, "released", rule, given=type(released).__name__, fix=fix)
        return view
    if isinstance(released, WorkloadRelease):
        universe = released.universe
        _check_cells(universe.columns == columns, ", ".join(universe.columns), ", ".join(columns))
        _check_axes(universe.axes, axes)
        return QueryView(
            columns=columns, domains=domains, queries=released.queries, answers=released, **facts
        )
    rule, fix = "must be what the release of a mechanism returned", "pass Tree(...).release(counts)"
    raise InvalidParameter("released", rule, given=type(released).__name__, fix=fix)


def _name(released: object) -> str:
    """The name of the mechanism that makes such releases, if there is one only; else that of their kind."""
    if not isinstance(released, ReleaseKind):
        return type(released).__name__
    makers = list(released.papers)
    return makers[0] if len(makers) == 1 else released.kind


def _check_specials(promise: Guarantee | None) -> None:
    """A row that changes may leave the axis for a special cell; nothing says that the axis pays for it."""
    relation = None if promise is None else promise.neighbors
    rule, fix = "must be left out between change-one neighbours", "publish the column"
    check(relation != CHANGE_ONE, "specials", rule, given=relation, fix=fix)


def _check_columns(declared: Mapping[str, Domain], number: int) -> None:
    rule = f"must have {number} column{'s' if number > 1 else ''} for what was released"
    check(len(declared) == number, "schema", rule, given=len(declared), fix=_FIX)


def _check_axes(released: tuple[Axis, ...], declared: tuple[Axis, ...]) -> None:
    """Refuse domains whose axes, special cells included, are not those of the release."""
    _check_cells(released == declared, _shown(released), _shown(declared))


def _shown(axes: tuple[Axis, ...]) -> str:
    """The cells of each axis: before its ordered cells, in order, and behind them."""
    return ", ".join(f"{axis.before}+{axis.size}+{axis.after} cells" for axis in axes)


def _check_cells(same: bool, released: str, declared: str) -> None:
    rule = f"must have the cells that were released, {released}"
    fix = "make the mechanism with Axis.of each domain, or with its size"
    check(same, "schema", rule, given=declared, fix=fix)
