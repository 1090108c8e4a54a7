"""A streaming query that feeds a durable counter or family: every event counts once, whatever fails.

A micro-batch is fed in one piece, under the number that Spark gives it and the name of the query. If it comes
again, because somebody died between the feeding and Spark's own note of it, it is known and counts
nothing. It is not a step: its events count in one period, the one that is open when all of them are stored,
and only the clock closes that one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from partita.errors.checks import check, check_data, check_source
from partita.errors.errors import InvalidParameter
from partita.trusted.durable.events.events import Event
from partita.trusted.durable.stream.stream import DurableCounter, DurableFamily
from partita.trusted.sources.spark.session.session import Cluster, Frame, numbered

_QUERY: Final = "sql.streaming.queryId"
_LONGEST: Final = 100


def feed(
    stream: Frame,
    counter: DurableCounter | DurableFamily,
    *,
    feeder: str,
    checkpoint: str | os.PathLike[str],
    key: str | None = None,
    person: str | None = None,
    id: str | None = None,
) -> Any:
    """Start a query that counts every row of a stream, and return it: a pyspark StreamingQuery.

    `checkpoint` is a directory where Spark notes how far it has come; with another one the stream is read
    and counted from its beginning. A family counts by the text in the column `key`, and rows with a text that
    is none of its keys nowhere. A counter whose unit is the user needs the columns `person` and `id`, and a
    row without one of the two counts nowhere; such a micro-batch comes to the driver, so keep it small.
    Persons and ids are known by the bytes of their text, numbers by those of their digits. The caller closes
    periods, with `counter.running()`.
    """
    Cluster.of(stream)
    fix = "make it with spark.readStream"
    check_data(getattr(stream, "isStreaming", False), "stream", "must be a streaming DataFrame", fix=fix)
    fix = 'pass for example "visits"'
    check(0 < len(feeder) <= _LONGEST, "feeder", "must be a short name", given=feeder, fix=fix)
    sink = _sink(counter, feeder, key=key, person=person, id=id)
    _check(stream, sink.columns, ids=[name for name in (person, id) if name is not None])
    writer = stream.writeStream.foreachBatch(sink).option("checkpointLocation", os.fspath(checkpoint))
    return writer.start()


def _check(stream: Frame, columns: Sequence[str], *, ids: Sequence[str]) -> None:
    """Refuse columns that are not there, and ids whose text is not always the same, such as times."""
    from partita.trusted.sources.spark.source.raw import Raw

    raw = Raw.of(stream, columns)
    for name in ids:
        raw.require_ids(name)


@final
@dataclass(frozen=True)
class _Sink:
    """What Spark calls with every micro-batch and its number."""

    counter: DurableCounter | DurableFamily
    feeder: str
    columns: tuple[str, ...]
    events: Callable[[Cluster, Frame, str, int], Iterator[Event]]

    def __call__(self, batch: Frame, number: int) -> None:
        """Feed one micro-batch in one call, so that all of it counts in one period."""
        cluster = Cluster.of(batch)
        query = batch.sparkSession.sparkContext.getLocalProperty(_QUERY)
        check_source(query, "query", "must be known by an id", fix="use feed, not foreachBatch")
        events = self.events(cluster, numbered(batch, self.columns), f"{self.feeder} {query}", number)
        self.counter.add_many(events)


def _sink(
    counter: DurableCounter | DurableFamily,
    feeder: str,
    *,
    key: str | None,
    person: str | None,
    id: str | None,
) -> _Sink:
    """The sink for this counter, if the columns that it needs are named, and no others."""
    settings = counter.settings
    rule = "must remember what it was fed to count it once"
    fix = "feed it by add, at most once or at least once"
    check(not settings.pan_private, "counter", rule, given="a pan-private one", fix=fix)
    by_person = settings.unit == "user"
    _needed("key", key, bool(settings.keys))
    _needed("person", person, by_person)
    _needed("id", id, by_person)
    named = tuple(name for name in (person, id, key) if name is not None)
    if by_person:
        return _Sink(counter, feeder, named, _ByPerson(settings.keys))
    return _Sink(counter, feeder, named, _ByKey(settings.keys) if settings.keys else _whole)


def _needed(parameter: str, column: str | None, needed: bool) -> None:
    if (column is not None) == needed:
        return
    rule = "must name a column for this counter" if needed else "must be left out for this counter"
    raise InvalidParameter(parameter, rule, given=column, fix="see counter.settings")


def _whole(cluster: Cluster, rows: Frame, source: str, number: int) -> Iterator[Event]:
    """All rows together are one event."""
    yield Event(source, number, int(cluster.run(rows.count)))


@final
@dataclass(frozen=True)
class _ByKey:
    """All rows together are one event, with a count for each key."""

    keys: tuple[str, ...]

    def __call__(self, cluster: Cluster, rows: Frame, source: str, number: int) -> Iterator[Event]:
        def found() -> dict[str, int]:
            counted = _known(_bytes(rows), self.keys).groupBy("k0").count().collect()
            return {bytes(row["k0"]).decode(): int(row["count"]) for row in counted}

        yield Event(source, number, cluster.run(found))


@final
@dataclass(frozen=True)
class _ByPerson:
    """Each row is an event of a person, who is known with the id of the event."""

    keys: tuple[str, ...]

    def __call__(self, cluster: Cluster, rows: Frame, source: str, number: int) -> Iterator[Event]:
        def found() -> list[tuple[bytes, ...]]:
            complete = _bytes(rows).dropna()
            table = (_known(complete, self.keys) if self.keys else complete).toArrow()
            return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

        for person, id, *key in cluster.run(found):
            yield Event(person, id, {each.decode(): 1 for each in key} or 1)


def _known(rows: Frame, keys: Sequence[str]) -> Frame:
    """Those whose last column is one of the keys, byte by byte: what is none may be no text at all."""
    return rows.where(rows[rows.columns[-1]].isin([key.encode() for key in keys]))


def _bytes(rows: Frame) -> Frame:
    """The same rows, with every column as the bytes of its text."""
    from partita.trusted.sources.spark.source.raw import Raw

    return Raw.of(rows, rows.columns).as_bytes()
