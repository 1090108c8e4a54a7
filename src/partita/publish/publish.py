"""`publish`: from a table to a release, its debit and its file, in an order that gives nothing away for free.

    validate, count, debit, draw, write beside the place, sync, rename, mark done

Where the bound on rows per person is chosen, rows are counted with their ranks, and the draw begins with the
choice.

What fails before the debit costs nothing. What fails after it has cost what it costs: noise may have been
drawn, and nobody can know who saw it. `phase` shows progress; `open_weights` opens a session of queries.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from html import escape
from pathlib import Path
from threading import Event, Thread
from types import ModuleType
from typing import Any, Final, Protocol, TypeAlias, final, runtime_checkable

import partita
from partita.domain.base import Domain
from partita.errors import (
    IncompatibleGuarantees,
    InvalidParameter,
    PartitaError,
    check,
    check_release,
    warn_once,
)
from partita.guarantee import Neighbors
from partita.html import kernel
from partita.ledger.entries import Debit, Part, checked_day, checked_part, checked_text, digest
from partita.ledger.ledger import Ledger, LedgerPlace, ledger_at
from partita.public.axis.names import ListedNames, NameTable
from partita.public.base import Provenance
from partita.public.contributions import AutoContributions
from partita.public.file import encode, load, reserve
from partita.public.file_entries import join_views, view_name
from partita.public.queries.queries import Queries, Universe
from partita.public.release import Release
from partita.public.results import AnyView
from partita.public.views import View
from partita.publish.request import (
    Request,
    Shares,
    bound_by,
    check_fits_in_file,
    check_readable,
    checked_schema,
    unit_by,
)
from partita.publish.views import MOST_FOUND, FoundRequest, Together, Views
from partita.publish.wants import Wants
from partita.storage import Temporary, check_path
from partita.trusted.mechanisms.catalogue import AUTO, MechanismOrName
from partita.trusted.mechanisms.online_weights import OnlineTerms, OnlineVariant, WeightsSession, open_session
from partita.trusted.sources.base import Source, check_column_names
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import RANK, Tally, tally

_BEAT: Final = 5.0  # seconds between two signs of life
_LONGEST_NAME: Final = 200  # characters of what a ledger writes down


@warn_once()
def publish(
    source: object,
    schema: Mapping[str, Domain],
    *,
    epsilon: object = None,
    rho: object = None,
    by: str | Sequence[str] | None = None,
    views: Views | None = None,
    shares: Shares | None = None,
    person: str | None = None,
    contributions: int | str | AutoContributions = 1,
    neighbors: Neighbors = "add-remove",
    mechanism: MechanismOrName = AUTO,
    quantiles: int | str | Sequence[object] | None = None,
    together: Together = (),
    options: Mapping[str, object] | None = None,
    sums: Sequence[str] = (),
    moments: Sequence[str] = (),
    queries: Queries | str | Sequence[Queries | str] | None = None,
    wants: Wants | str | None = None,
    delta: object = None,
    ledger: LedgerPlace | None = None,
    dataset: str | None = None,
    key: str | None = None,
    part: Part | None = None,
    path: str | os.PathLike[str] | None = None,
    delimiter: str = ",",
    header: Sequence[str] | None = None,
) -> Release:
    """Publish columns of a table once; the release answers questions forever.

    docs/reference/publishing.md has all parameters in a table. In short:

    - The rows are those of `source`: a path, a table, a data frame. `delimiter` and `header` are for CSV:
      every line is one row and no field may hold a line feed. `schema` has the domains of the columns.
    - The columns in `by`, or all of the schema, are the axes of the boxes that can be asked for; `views` has
      several such sets, which split epsilon equally or by `shares`. `mechanism` names one by hand, or is one
      of the caller's own; `options` are those of the mechanism that is named: `options={"branching": 16}`.
      `together` has sets of columns of a large table that matter: `together=[("age", "salary")]`.
    - `mechanism="quantiles"` releases `quantiles` of a column and nothing else: shares like
      `["1/4", "1/2"]`, a number of evenly spaced ones, or the median if none are named.
    - `sums` and `moments` name columns for sums, means and variances by the other columns of each view.
    - `queries` are answered all at once, and may spend `delta`; nothing else is published beside them
      without `by` or `views`.
    - `wants` are the statistics that are published, each by the best mechanism for it, and nothing else is:
      `wants=["median of salary", "mean of delay by dest"]`.
    - `epsilon` is the price, or `rho`: zero-concentrated privacy, in which many views cost less. With
      `rho`, `delta` is where the release states its epsilon, 10^-9 if left out. With `epsilon`, views
      without queries spend the rho that epsilon and `delta` allow, if that answers better than epsilon alone.
    - With `person`, the column of ids, at most `contributions` rows of each person count in a view, and
      the guarantee is about persons. Without it the guarantee is about rows. `contributions="auto"` chooses
      the bound from a public list, privately and for a small share of epsilon.
    - `ledger` and `dataset` name the budget that pays, `part` the rows that it pays for, `path` a new file
      for the release. With a `key` the same call returns what is stored, and draws nothing.

    Bad input and rows that cannot be read cost nothing. What fails after the debit has cost it.

    >>> from partita.domain import Integer
    >>> release = publish({"age": [30, 31, 30]}, {"age": Integer(0, 120)}, epsilon=1)
    >>> release.guarantee
    Guarantee(epsilon=1, neighbors=add-remove, unit=row)
    >>> both = {"age": Integer(0, 120), "visits": Integer(0, 9)}
    >>> publish({"age": [30, 31], "visits": [2, 0]}, both, epsilon=1).views[0].columns
    ('age', 'visits')
    >>> publish({"age": [30, 31], "visits": [2, 0]}, both, epsilon=1, by=[], sums=["visits"]).sums
    (SumView(sum of visits; level-trees),)
    """
    request = Request.checked(
        schema,
        epsilon=epsilon,
        rho=rho,
        by=by,
        views=views,
        shares=shares,
        sums=sums,
        moments=moments,
        queries=queries,
        wants=wants,
        delta=delta,
        person=person,
        contributions=contributions,
        neighbors=neighbors,
        mechanism=mechanism,
        quantiles=quantiles,
        together=together,
        options=options,
    )
    provenance = _check_provenance(request, ledger=ledger, dataset=dataset, key=key, part=part, path=path)
    place = Place.checked(path)
    reading = {
        "delimiter": str(delimiter),
        "header": None if header is None else check_column_names(header, "header"),
    }
    account = _account(request, provenance, ledger, key, reading)
    stored = None if account is None else account.stored(place)
    if stored is not None:
        return stored
    with place.reserved() as store:
        rows = open_source(source, delimiter=delimiter, header=header)
        counted = count(rows, request, provenance.dataset, provenance.part)

        def make() -> Release:
            return store.keep(draw(request, counted, provenance))

        return make() if account is None else account.pay(store, make)


def _check_provenance(
    request: Request, *, ledger: object, dataset: str | None, key: object, part: Part | None, path: object
) -> Provenance:
    """What the release will say of its origin, if the parameters agree and a file has room for it all."""
    _check_together(ledger=ledger, dataset=dataset, key=key, path=path, part=part)
    provenance = Provenance(
        version=partita.__version__,
        day=checked_day(None),
        dataset=None if dataset is None else checked_text(dataset, "dataset"),
        recorded=ledger is not None,
        person=request.person,
        part=checked_part(part),
        options=request.stated_options,
        contributions=request.state_choice(-1),
    )
    check_fits_in_file(request, provenance)
    if path is not None:
        check_readable(request)
    return provenance


def _account(
    request: Request,
    provenance: Provenance,
    ledger: LedgerPlace | None,
    key: str | None,
    reading: Mapping[str, object],
) -> BudgetAccount | None:
    if ledger is None or provenance.dataset is None:
        return None
    return BudgetAccount(
        ledger=ledger_at(ledger),
        dataset=provenance.dataset,
        request=request,
        reading=reading,
        key=None if key is None else checked_text(key, "key"),
        part=provenance.part,
        day=provenance.day,
    )


def check_ledger(ledger: object, dataset: object) -> None:
    """Refuse a ledger without the name of the budget in it."""
    rule, fix = "must name the budget in the ledger", 'pass for example "people"'
    check(ledger is None or dataset is not None, "dataset", rule, given=dataset, fix=fix)


def _check_together(*, ledger: object, dataset: object, key: object, path: object, part: object) -> None:
    """Refuse parameters that mean nothing without others."""
    check_ledger(ledger, dataset)
    for name, given in (("key", key), ("part", part)):
        fix = "pass ledger=, or leave it out"
        check(given is None or ledger is not None, name, "needs a ledger", given=given, fix=fix)
    rule = "needs a path: the same key returns what is stored there"
    check(key is None or path is not None, "key", rule, given=key, fix="pass path=")


# From rows to a release: count the columns of each view exactly, then draw.
@runtime_checkable
class _Tallying(Protocol):
    """A source that tallies its rows by itself, where they are."""

    @property
    def tally(self) -> Any:
        """As `sources.tally`, but for the source; the counts stay where the rows are."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class RankedCounts:
    """What `count` gives where the bound on rows per person is chosen after the debit.

    The tally of each view has the rows within the largest candidate, with the rank of each among those of its
    person: every other candidate is a part of it, and no row is read again.
    """

    request: Request
    tallies: Sequence[Any]

    @cached_property
    def within(self) -> list[int]:
        """How many rows count within each candidate: the same for every view, whichever rows it keeps."""
        ranks = self.tallies[0].column(RANK).histogram.spread()
        return [int(each) for each in ranks.cumsum()]

    def at(self, place: int) -> list[Any]:
        """The exact counts of each view within one candidate."""
        limits = self.request.auto.among if self.request.auto is not None else ()
        distinct = {id(tally): tally for tally in self.tallies}
        cut = {number: tally.within(limits, place) for number, tally in distinct.items()}
        views = zip(self.request.bounded[place].published, self.tallies, strict=True)
        return [view.counted(cut[id(tally)]) for view, tally in views]

    def __repr__(self) -> str:
        return f"RankedCounts({len(self.tallies)} views, secret)"


def count(
    source: Source, request: Request, dataset: str | None, part: tuple[str, str] | None = None
) -> Counted:
    """The exact counts that each view asked for needs, each with the rows of a person bounded for itself.

    A person has at most k rows in each view, which is what the guarantee of each view needs; their
    sum is what the release costs. Views of the same columns are made of the same rows, which are counted
    once. Of a `part`, a column and a value, no other rows are counted.
    """
    rows = cache(partial(_rows, source, request, dataset, part))
    first = {frozenset(view.columns): view.columns for view in reversed(request.published)}
    counted = []
    for view in request.published:
        with phase(f"counting {view.name}"):
            found = rows(first[frozenset(view.columns)])
            counted.append(found if request.choice is not None else view.counted(found))
    if request.choice is None:
        return counted
    ranked = RankedCounts(request, counted)
    _ = ranked.within
    return ranked


def _rows(
    source: Source,
    request: Request,
    dataset: str | None,
    part: tuple[str, str] | None,
    columns: tuple[str, ...],
) -> Tally:
    """The rows by the cells of these columns, at most so many of each person."""
    rows: Tally = tallying(source)(
        {column: request.declared[column] for column in columns},
        person=request.person,
        contributions=request.guarantee.contributions if request.auto is None else request.auto.among,
        salt=salt(dataset, *columns),
        where=part,
    )
    return rows


Counted: TypeAlias = Sequence[Any] | RankedCounts
"""The secrets of all views, or rows from which those within any candidate can be taken."""


def tallying(source: Source) -> Callable[..., Any]:
    """What tallies the rows of a source: as `sources.tally`, but for the source."""
    return source.tally if isinstance(source, _Tallying) else partial(tally, source)


def draw(request: Request, counted: Counted, provenance: Provenance) -> Release:
    """The release: fresh noise on every count. What is cut by released counts is released after them.

    A bound on rows per person that is to be chosen is chosen first.
    """
    if isinstance(counted, RankedCounts):
        return _draw_bounded(request, counted, provenance)
    return _draw_views(request, counted, provenance)


def _draw_bounded(request: Request, counted: RankedCounts, provenance: Provenance) -> Release:
    assert request.choice is not None
    with phase("choosing contributions"):
        drawn = request.choice.draw(counted.within)
        secrets = counted.at(drawn.place)
    stated = replace(provenance, contributions=request.state_choice(drawn.place))
    return _draw_views(request.bounded[drawn.place], secrets, stated, secure=drawn.secure)


def _draw_views(
    request: Request, counted: Sequence[Any], provenance: Provenance, *, secure: bool = True
) -> Release:
    """The views, for a bound that is known."""
    secrets = iter(counted)
    with phase("drawing noise"):
        views = _draw_counts(request, secrets)
        sums = tuple(view.release(next(secrets), views) for view in request.sums)
        queries = None if request.queries is None else request.queries.release(next(secrets))
        quantiles = tuple(view.release(next(secrets)) for view in request.quantiles)
        wanted = tuple(view.release(next(secrets)) for view in request.wanted)
    published = join_views(views, sums, queries, quantiles, wanted)
    secure = secure and all(view.guarantee is not None for view in published)
    return Release(
        views=views,
        sums=sums,
        queries=queries,
        quantiles=quantiles,
        wanted=wanted,
        guarantee=request.promise(provenance.contributions) if secure else None,
        wants=request.wants,
        provenance=provenance,
    )


def _draw_counts(request: Request, secrets: Iterator[Any]) -> tuple[AnyView, ...]:
    """The views of counts: names of text are found first, and are then labels of the others."""
    counted = [(view, next(secrets)) for view in request.views]
    drawn = {
        place: view.release(rows)
        for place, (view, rows) in enumerate(counted)
        if not isinstance(view, FoundRequest)
    }
    found = {
        view.column: NameTable.of(view.column, view.axis).top(MOST_FOUND).domain
        for view in drawn.values()
        if isinstance(view, View) and isinstance(view.axis, ListedNames)
    }
    return tuple(
        view.release(rows, found) if isinstance(view, FoundRequest) else drawn[place]
        for place, (view, rows) in enumerate(counted)
    )


def salt(dataset: str | None, *columns: str) -> str:
    """The public text that chooses which rows of a person with too many are kept.

    It follows from names that are in the release, so that everybody can say what the rule was.

    >>> salt("people", "age"), salt("people", "age", "salary")
    ('partita 1 people age', 'partita 1 people age x salary')
    """
    return f"partita 1 {dataset or ''} {view_name(columns)}"


# A release, its debit and its file.
@final
@dataclass(frozen=True, kw_only=True)
class BudgetAccount:
    """The budget of a dataset in a ledger, and the request that is to be paid from it.

    `reading` says how the rows are read, as far as callers choose it: a part of the request.
    """

    ledger: Ledger
    dataset: str
    request: Request
    reading: Mapping[str, Any]
    key: str | None
    part: Part | None
    day: str

    def stored(self, place: Place) -> Release | None:
        """What an earlier call with the same key has stored; None if the key is new. Charges nothing.

        A key that was charged and has nothing stored is a `BudgetLost`. Where a crash came between the
        rename and the mark, the release is there, and the mark is made now: nobody else has asked for
        the same, so it can only be that one.
        """
        entries = self.ledger.entries(self.dataset)
        earlier = next((entry for entry in entries if self.key is not None and entry.key == self.key), None)
        if earlier is None:
            self._check_room()
            return None
        alike = [entry for entry in entries if entry.request == digest(self._request_entries)]
        if earlier.state == "debited" and alike == [earlier] and place.taken:
            release = self._load(place, earlier)
            self.ledger.mark_done(earlier)
            return release
        return self._load(place, self._debit())

    def pay(self, store: FileTarget, make: Callable[[], Release]) -> Release:
        """Debit, make, mark done; `make` draws and stores, and is called once the debit is on disk."""
        debit = self._debit()
        if debit.state == "done":
            return self._load(store.place, debit)
        try:
            release = make()
        except BaseException:
            if not store.kept:
                self._mark_lost(debit)
            raise
        self.ledger.mark_done(debit)
        return release

    @property
    def _request_entries(self) -> dict[str, Any]:
        return {**self.request.to_json(), "reading": self.reading, "part": self.part}

    def _check_room(self) -> None:
        """Refuse at once what cannot be paid: what is left never grows, so that debit is refused."""
        try:
            affordable = self.ledger.forecast(self.dataset, self.request.guarantee, part=self.part)
        except IncompatibleGuarantees as error:
            raise IncompatibleGuarantees(f"dataset {self.dataset!r} cannot pay: {error}") from None
        if affordable == 0:
            self._debit()

    def _debit(self) -> Debit:
        return self.ledger.debit(
            self.dataset,
            self.request.guarantee,
            what=_name(self.request),
            key=self.key,
            request=self._request_entries,
            part=self.part,
            day=self.day,
        )

    def _mark_lost(self, debit: Debit) -> None:
        """The debit stays, and nothing will come of it."""
        with suppress(PartitaError):
            self.ledger.mark_lost(debit)

    def _load(self, place: Place, debit: Debit) -> Release:
        """What stands at the place, if it is the release that this debit has paid for."""
        release = place.load()
        origin = release.provenance
        facts = (origin.recorded, origin.dataset, origin.part, origin.day)
        paid = facts == (True, self.dataset, self.part, debit.day)
        rule, fix = "must hold the release of this key", "pass the path of the first call"
        check_release(paid and self.request.describes(release), "path", rule, fix=fix)
        return release


def _name(request: Request) -> str:
    """The views as a ledger writes them, or how many columns there are where they cannot be written."""
    listed = ", ".join(view.name for view in request.published)
    writable = listed.isprintable() and listed == listed.strip() and len(listed) <= _LONGEST_NAME
    return listed if writable else f"{len(request.columns)} columns"


# Where a release is stored: under a name that is free, whole or not at all.
@final
@dataclass(frozen=True)
class Place:
    """A path to store a release at, or None to keep it in memory only."""

    path: Path | None

    @staticmethod
    def checked(path: object) -> Place:
        """The place that a path names."""
        return Place(None if path is None else check_path(path))

    @property
    def taken(self) -> bool:
        """Whether anything stands at the path, be it a broken link."""
        return self.path is not None and os.path.lexists(self.path)

    @contextmanager
    def reserved(self) -> Iterator[FileTarget]:
        """A way to store one release; a path that is taken or cannot be written is refused now.

        Whatever ends the block, nothing half-written is left behind.
        """
        if self.path is None:
            yield FileTarget(self, None)
            return
        fix = "choose another, or remove the file"
        check(not self.taken, "path", "must not exist yet", given=str(self.path), fix=fix)
        with reserve(self.path) as temporary:
            yield FileTarget(self, temporary)

    def load(self) -> Release:
        """The release that stands at the path."""
        if self.path is None or not self.taken:
            rule, fix = "must be where the release of this key was stored", "pass the path of the first call"
            raise InvalidParameter("path", rule, given=None if self.path is None else str(self.path), fix=fix)
        return load(self.path)


@final
@dataclass(frozen=True)
class FileTarget:
    """A place, and the file beside it that is about to move there; None where nothing is stored."""

    place: Place
    temporary: Temporary | None

    @property
    def kept(self) -> bool:
        """Whether the file stands at its place, whatever was said while it moved there."""
        return self.temporary is not None and self.temporary.arrived

    def keep(self, release: Release) -> Release:
        """Write, sync, rename; the same release."""
        if self.temporary is not None:
            with phase("writing"):
                self.temporary.write(encode(release))
                self.temporary.commit()
        return release


# `open_weights`: from a table to a session that answers queries one at a time.
@warn_once()
def open_weights(
    path: str | os.PathLike[str],
    source: object,
    schema: Mapping[str, Domain],
    *,
    epsilon: object,
    updates: int,
    threshold: object = None,
    delta: object = 0,
    granularity: int = 1,
    variant: OnlineVariant = "fitted",
    person: str | None = None,
    contributions: int = 1,
    neighbors: Neighbors = "add-remove",
    ledger: LedgerPlace | None = None,
    dataset: str | None = None,
    delimiter: str = ",",
    header: Sequence[str] | None = None,
) -> WeightsSession:
    """Open a session at `path` that answers linear queries about a table as they come.

    `source`, `schema`, `person`, `contributions`, `neighbors` and how files are read are as in `publish`. The
    session answers from a public guess, and measures at most `updates` queries, those whose guess is off by
    more than about `threshold` rows. Weights lie between 0 and 1, in multiples of 1/`granularity`.
    `variant="printed"` is the algorithm of [DR14], for `neighbors="change-one"` and a threshold of your own.

    All of epsilon and delta is debited at the first opening. The file has only what was published; to go on
    later, open it again with the same rows and the same terms.

    >>> import tempfile
    >>> from partita.domain import Integer
    >>> from partita import between
    >>> rows, schema = {"age": [30, 31, 30]}, {"age": Integer(0, 120)}
    >>> folder = tempfile.TemporaryDirectory()
    >>> with folder, open_weights(f"{folder.name}/s", rows, schema, epsilon=1, updates=5) as session:
    ...     answer = session.ask(between("age", 30, 39))
    """
    declared = checked_schema(schema)
    terms = OnlineTerms.of(
        universe=Universe.of(declared, list(declared)),
        epsilon=epsilon,
        updates=updates,
        threshold=threshold,
        delta=delta,
        neighbors=neighbors,
        contributions=bound_by(contributions, person),
        unit=unit_by(person),
        granularity=granularity,
        variant=variant,
    )
    budget = None if ledger is None else ledger_at(ledger)
    rows = tally(
        open_source(source, delimiter=delimiter, header=header),
        declared,
        person=person,
        contributions=contributions,
        salt=salt(dataset, *declared),
    )
    return open_session(path, terms, rows.points(list(declared)), ledger=budget, dataset=dataset)


# Progress, for whoever started the work.
@contextmanager
def phase(name: str, *, patience: float = 0.0) -> Iterator[None]:
    """Say on a terminal which phase has begun, that it still lasts, and how long it took once it is done.

    What takes less than `patience` seconds is not worth a word. Nothing but public names and elapsed
    time is shown, and nothing at all where standard error is neither a terminal nor a notebook: no log ever
    holds how long the data took. A notebook is a file that people pass on, so there is no time in it either:
    the phase is shown in its place, and then that it is done. A terminal that goes away disturbs nothing.
    """
    line = _open_progress(name, patience)
    if line is None:
        yield
        return
    try:
        yield
    except BaseException:
        line.end(done=False)
        raise
    line.end(done=True)


def _open_progress(name: str, patience: float) -> _TerminalLine | _NotebookCell | None:
    """Where progress is shown, if anywhere."""
    if sys.stderr is not None and sys.stderr.isatty():
        return _TerminalLine(name, patience)
    notebook = kernel()
    return None if notebook is None else _NotebookCell(name, notebook)


@final
class _NotebookCell:
    """A place in a notebook that says what is done, with a bar that moves by itself and tells no time.

    It is there from the first moment whatever `patience` says: whether it is there tells no time either.
    """

    def __init__(self, name: str, notebook: ModuleType) -> None:
        self._name = name
        bundle = self._bundle('<progress style="width: 8em"></progress>', "...")
        self._shown = notebook.display.display(bundle, raw=True, display_id=True)

    def end(self, *, done: bool) -> None:
        """Say whether it came to its end, in the same place."""
        words = "done" if done else "stopped"
        self._shown.update(self._bundle(words, words), raw=True)

    def _bundle(self, html: str, text: str) -> dict[str, str]:
        name = f"partita: {self._name}"
        return {"text/html": f"<div>{escape(name)} {html}</div>", "text/plain": f"{name} {text}"}


@final
class _TerminalLine:
    """A line on the terminal, begun after some patience and kept alive by dots."""

    def __init__(self, name: str, patience: float) -> None:
        self._start = time.monotonic()
        self._begun, self._over = False, Event()
        self._name, self._patience = name, patience
        if not patience:
            self._begin()
        self._thread = Thread(target=self._live, daemon=True)
        self._thread.start()

    def end(self, *, done: bool) -> None:
        """The last words of the line, if it was begun: how long it took."""
        self._over.set()
        self._thread.join()
        if self._begun:
            _write(f" {time.monotonic() - self._start:.1f} s\n" if done else " stopped\n")

    def _begin(self) -> None:
        self._begun = True
        _write(f"partita: {self._name} ...")

    def _live(self) -> None:
        if not self._begun and not self._over.wait(self._patience):
            self._begin()
        while not self._over.wait(_BEAT):
            _write(".")


def _write(text: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()
