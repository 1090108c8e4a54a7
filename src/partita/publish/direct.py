"""Releases of what was not published here: made by a class of mechanisms alone, or by another library."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any, Final

from numpy.typing import ArrayLike

import partita
from partita.arrays import as_array, integer_array
from partita.concentrated import follows, rho_of_laplace
from partita.curves import follows_by_curve
from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.domain.text import Text
from partita.errors import InvalidParameter, PartitaError, check, check_type
from partita.guarantee import CHANGE_ONE, Guarantee, rows_changed, short, squares_changed
from partita.ledger.entries import checked_day, checked_text
from partita.ledger.ledger import LedgerPlace, ledger_at
from partita.numbers import rational
from partita.public.axis.base import AxisRelease, Specials
from partita.public.axis.flat import CellsRelease, GaussianRelease, HistogramRelease
from partita.public.axis.names import ListedNames
from partita.public.axis.quantiles import QuantileRelease, QuantileView
from partita.public.base import (
    DECLARED,
    IMPORTED,
    LARGEST_NUMBER,
    Provenance,
    ReleaseKind,
    noisy_integers,
)
from partita.public.bounds import Gaussian, NoiseLaw
from partita.public.boxes.base import BoxRelease
from partita.public.boxes.grid import MOST_CELLS, CellGrid, GaussianGridRelease, GridRelease
from partita.public.file import decode, encode
from partita.public.file_entries import Published, view_name
from partita.public.release import Release
from partita.public.sums.view import Sums, SumView
from partita.public.views import BoxView, View
from partita.public.workload.release import QueryView, WorkloadRelease
from partita.publish.publish import Place, check_ledger
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


def import_view(
    counts: ArrayLike,
    schema: Mapping[str, Domain],
    *,
    scale: object = None,
    variance: object = None,
    guarantee: Guarantee,
    source: str,
    dataset: str | None = None,
    ledger: LedgerPlace | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Release:
    """Noisy counts that another library made, as a release. The guarantee is the caller's: nobody checks it.

    `counts` are integers, one for each cell of the domain, or one for each position of `Axis.of(domain)` with
    its special cells; of several columns an array with one axis for the positions of each. Every count must
    have independent discrete Laplace noise of `scale`, P[k] proportional to exp(-|k| / scale), or discrete
    Gaussian noise of `variance`, P[k] proportional to exp(-k^2 / (2 variance)). `source` says who made them;
    the release, its report and its file say that the guarantee was declared and not checked.

    What is checked: that counts are integers and fit the domain, and that the guarantee claims no more than
    this noise gives to counts of rows that are each in one cell: in epsilon, of Gaussian noise in rho. With
    `ledger` and `dataset` the guarantee is debited before anything is stored at `path`.

    >>> from partita.domain import Integer
    >>> promise, ages = Guarantee(epsilon=1), {"age": Integer(0, 2)}
    >>> release = import_view([4, 0, 7], ages, scale=1, guarantee=promise, source="OpenDP 0.16")
    >>> release.count(age=(0, 1)).value
    4.0
    >>> release.views[0].why
    'Imported from OpenDP 0.16; its guarantee is declared by the caller, not checked by Partita.'
    """
    declared, law = checked_schema(schema), _noise_law(scale, variance)
    rule, fix = "must be what the other library promises", "pass for example Guarantee(epsilon=1)"
    promise = check_type(guarantee, Guarantee, "guarantee", rule, fix=fix)
    _check_claim(promise, law)
    view = _imported(counts, declared, law, promise, checked_text(source, "source"))
    check_ledger(ledger, dataset)
    origin = Provenance(
        version=partita.__version__,
        day=checked_day(None),
        dataset=None if dataset is None else checked_text(dataset, "dataset"),
        recorded=ledger is not None,
    )
    release = Release(views=(view,), guarantee=promise, provenance=origin)
    decode(encode(release))  # a file that could not be read back is refused before anything is spent
    with Place.checked(path).reserved() as store:
        if ledger is None or origin.dataset is None:
            return store.keep(release)
        budget = ledger_at(ledger)
        what, day = f"{view_name(view.columns)}, imported", origin.day
        debit = budget.debit(origin.dataset, promise, what=what, day=day, request={"imported": source})
        try:
            store.keep(release)
        except BaseException:
            if not store.kept:
                with suppress(PartitaError):
                    budget.mark_lost(debit)
            raise
        budget.mark_done(debit)
        return release


def _noise_law(scale: object, variance: object) -> NoiseLaw:
    """The scale of Laplace noise, or the law of Gaussian noise: exactly one is given."""
    given, fix = "both" if scale is not None else "none", "pass one of them"
    rule = "must be given for discrete Laplace noise, or variance for discrete Gaussian noise"
    check((scale is None) != (variance is None), "scale", rule, given=given, fix=fix)
    name, number, bits = ("scale", scale, 62) if variance is None else ("variance", variance, 124)
    exact, rule = rational(number, name), f"must be between 2^-20 and 2^{bits}"
    fix = f"pass the {name} that the noise was drawn with"
    check(Fraction(1, 2**20) <= exact <= 2**bits, name, rule, given=number, fix=fix)
    return exact if variance is None else Gaussian(exact)


def _check_claim(promise: Guarantee, law: NoiseLaw) -> None:
    """Refuse a guarantee that claims more than this noise gives to counts of rows, each in one cell."""
    fix = "pass the noise that was drawn, or the guarantee that the other library states"
    if isinstance(law, Gaussian):
        rho = squares_changed(promise.neighbors, promise.contributions) / (2 * law.variance)
        rule = f"must be in rho, and not below {rho}, which Gaussian noise of variance {law.variance} gives"
        check(promise.rho >= rho, "guarantee", rule, given=f"rho {promise.rho}", fix=fix)
        point = promise.rho, promise.epsilon, promise.delta
        single = squares_changed(promise.neighbors, promise.contributions) == 1
        told = follows(*point) or follows_by_curve(*point, law.variance, single=single)
        rule = "must state an epsilon and a delta that follow from its rho"
        check(told, "guarantee", rule, given=promise.price, fix="make it with Guarantee.concentrated")
        return
    least = rows_changed(promise.neighbors, promise.contributions) / law
    rule = f"must not claim less than epsilon {least}, which noise of scale {law} gives to counts of rows"
    check(promise.epsilon >= least, "guarantee", rule, given=f"epsilon {promise.epsilon}", fix=fix)
    rho = rho_of_laplace(least, rows_changed(promise.neighbors, promise.contributions))
    rule = f"must not claim less than rho {short(rho)}, which noise of scale {law} gives to counts of rows"
    check(not 0 < promise.rho < rho, "guarantee", rule, given=f"rho {promise.rho}", fix=fix)


def _imported(
    counts: ArrayLike, declared: Mapping[str, Domain], law: NoiseLaw, promise: Guarantee, source: str
) -> View | BoxView:
    """The view that has these counts, if they are integers and as many as there are cells."""
    array = as_array(counts, "counts")
    rule = "must be integers, with noise that was drawn as integers"
    fix = "measure integers, in OpenDP over dp.atom_domain(T=int): rounding would change the law of the noise"
    check(array.dtype.kind in "iuO" and array.size, "counts", rule, given=array.dtype, fix=fix)
    noisy, axes = integer_array(array, "counts"), tuple(map(Axis.of, declared.values()))
    most = MOST_CELLS if len(axes) > 1 else HistogramRelease.largest_size
    check(
        noisy.size <= most, "counts", f"must be at most {most:,}", given=noisy.size, fix="count fewer cells"
    )
    rule, fix = "must be integers of at most 127 bits", "check what the other library returned"
    short = max(abs(int(noisy.min())), abs(int(noisy.max()))) <= LARGEST_NUMBER
    check(short, "counts", rule, given="longer ones", fix=fix)
    facts = {"mechanism": IMPORTED, "why": f"Imported from {source}; its guarantee is {DECLARED}."}
    widths = tuple(axis.width for axis in axes)
    normal = isinstance(law, Gaussian)
    noise = {"variance": law.variance} if isinstance(law, Gaussian) else {"scale": law}
    about: dict[str, Any] = {**noise, "guarantee": promise, "imported": True}
    if len(axes) > 1:
        rule = f"must have a count for each position, special cells too: {' x '.join(map(str, widths))}"
        fix = "put them in the order of Axis.of(domain), with noise on the counts of special cells"
        check(noisy.shape == widths, "counts", rule, given=noisy.shape, fix=fix)
        grid: type[CellGrid] = GaussianGridRelease if normal else GridRelease
        boxes = grid(axes=axes, noisy=noisy_integers(noisy.ravel(), "counts"), **about)
        return BoxView(columns=tuple(declared), domains=tuple(declared.values()), boxes=boxes, **facts)
    ((column, domain),) = declared.items()
    rule = f"must be one for each of {domain.size} cells, or of {widths[0]} positions with special cells"
    fix = "pass them in the order of the cells; Axis.of(domain) has the positions"
    check(noisy.shape in ((domain.size,), widths), "counts", rule, given=noisy.shape, fix=fix)
    row, places = noisy_integers(noisy, "counts"), Axis.specials(domain)
    beside = {name: int(row[place]) for name, place in places.items() if row.size == widths[0]}
    first = axes[0].before if beside else 0
    cells = noisy_integers(row[first : first + domain.size], "counts")
    histogram: type[CellsRelease] = GaussianRelease if normal else HistogramRelease
    axis = histogram(noisy=cells, size=domain.size, **about)
    specials = Specials(counts=beside, scale=law)
    return View(column=column, domain=domain, axis=axis, specials=specials, **facts)


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
        if isinstance(released, ListedNames):
            _check_cells(released.text == domain, repr(released.text), repr(domain))
            domain = released.domain
        _check_cells(not isinstance(domain, Text), "ordered cells", "names")
        _check_cells(released.size == domain.size, f"{released.size} cells", f"{domain.size} cells")
        if isinstance(released, QuantileRelease):
            return QuantileView(column=column, domain=domain, selected=released, **facts)
        if specials is None:
            specials = Specials(counts={}, scale=Fraction(1))
        else:
            _check_specials(released.guarantee)
            specials = released.complete(specials) if isinstance(released, ListedNames) else specials
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
