"""`open_weights`: from a table to a session that answers queries one at a time."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from partita.domain.base.base import Domain
from partita.guarantee.guarantee import Neighbors
from partita.ledger.ledger.ledger import LedgerPlace, ledger_at
from partita.public.queries.queries.universe import Universe
from partita.publish.publish.making import salt
from partita.publish.request.request import bound_by, checked_schema, unit_by
from partita.trusted.mechanisms.online_weights.online_terms import OnlineTerms
from partita.trusted.mechanisms.online_weights.online_weights import WeightsSession, open_session
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally.tally import tally


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

    All of epsilon and delta is debited at the first opening. The file has only what was published; to go on
    later, open it again with the same rows and the same terms.

    >>> import tempfile
    >>> from partita.domain import Integer
    >>> from partita.queries import between
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
