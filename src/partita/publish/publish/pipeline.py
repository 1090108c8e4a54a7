"""`publish`: one call from a table to a release."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import partita
from partita.domain.base.base import Domain
from partita.errors.checks import check
from partita.guarantee.guarantee import Neighbors
from partita.ledger.entries import Part, checked_day, checked_part, checked_text
from partita.ledger.ledger.ledger import LedgerPlace, ledger_at
from partita.public.base.provenance import Provenance
from partita.public.queries.queries.queries import Queries
from partita.public.release.release import Release
from partita.publish.publish.account import Account
from partita.publish.publish.making import count, draw
from partita.publish.publish.place import Place, Store
from partita.publish.request.request import Request
from partita.publish.request.room import check_room
from partita.publish.request.shares import Shares
from partita.publish.views.views import Views
from partita.trusted.mechanisms.catalogue import AUTO
from partita.trusted.sources.base.names import checked
from partita.trusted.sources.open import open_source


def publish(
    source: object,
    schema: Mapping[str, Domain],
    *,
    epsilon: object,
    by: str | Sequence[str] | None = None,
    views: Views | None = None,
    shares: Shares | None = None,
    person: str | None = None,
    contributions: int = 1,
    neighbors: Neighbors = "add-remove",
    mechanism: str = AUTO,
    sums: Sequence[str] = (),
    moments: Sequence[str] = (),
    queries: Queries | str | Sequence[Queries | str] | None = None,
    delta: object = 0,
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

    - The rows are those of `source` (see `partita.sources.open_source`; `delimiter` and `header` are for CSV,
      where every line is one row and no field may hold a line feed), with the domains in `schema`.
    - The columns in `by`, or all of the schema, are the axes of the boxes that can be asked for; `views` has
      several such sets, which split epsilon equally or by `shares`. `mechanism` names one by hand.
    - `sums` and `moments` name columns for sums, means and variances by the other columns of each view.
    - `queries` are answered all at once, and may spend `delta`; nothing else is published beside them
      without `by` or `views`.
    - With `person`, the column of ids, at most `contributions` rows of each person count in a view, and
      the guarantee is about persons. Without it the guarantee is about rows.
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
        by=by,
        views=views,
        shares=shares,
        sums=sums,
        moments=moments,
        queries=queries,
        delta=delta,
        person=person,
        contributions=contributions,
        neighbors=neighbors,
        mechanism=mechanism,
    )
    provenance = _checked(request, ledger=ledger, dataset=dataset, key=key, part=part, path=path)
    place = Place.checked(path)
    account = _account(request, provenance, ledger, key, _reading(delimiter, header))
    stored = None if account is None else account.stored(place)
    if stored is not None:
        return stored
    with place.reserved() as store:
        rows = open_source(source, delimiter=delimiter, header=header)
        counted = count(rows, request, provenance.dataset, provenance.part)
        make = partial(_make, store, request, counted, provenance)
        return make() if account is None else account.pay(store, make)


def _checked(
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
    )
    check_room(request, provenance)
    return provenance


def _make(store: Store, request: Request, counted: Sequence[Any], provenance: Provenance) -> Release:
    return store.keep(draw(request, counted, provenance))


def _reading(delimiter: object, header: object) -> dict[str, object]:
    """How the rows of a file are read, as far as callers choose it."""
    return {"delimiter": str(delimiter), "header": None if header is None else checked(header, "header")}


def _account(
    request: Request,
    provenance: Provenance,
    ledger: LedgerPlace | None,
    key: str | None,
    reading: Mapping[str, object],
) -> Account | None:
    if ledger is None or provenance.dataset is None:
        return None
    return Account(
        ledger=ledger_at(ledger),
        dataset=provenance.dataset,
        request=request,
        reading=reading,
        key=None if key is None else checked_text(key, "key"),
        part=provenance.part,
        day=provenance.day,
    )


def _check_together(*, ledger: object, dataset: object, key: object, path: object, part: object) -> None:
    """Refuse parameters that mean nothing without others."""
    rule, fix = "must name the budget in the ledger", 'pass for example "people"'
    check(ledger is None or dataset is not None, "dataset", rule, given=dataset, fix=fix)
    for name, given in (("key", key), ("part", part)):
        fix = "pass ledger=, or leave it out"
        check(given is None or ledger is not None, name, "needs a ledger", given=given, fix=fix)
    rule = "needs a path: the same key returns what is stored there"
    check(key is None or path is not None, "key", rule, given=key, fix="pass path=")
