"""From a DataFrame to a tally on its cluster: group raw values, encode what is distinct, and group cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import pyarrow as pa

from partita.domain.base.base import Domain
from partita.trusted.sources.base.protocol import Table
from partita.trusted.sources.spark.counts.packed import columns
from partita.trusted.sources.spark.counts.tallied import SparkTally
from partita.trusted.sources.spark.session.session import Cluster, Frame
from partita.trusted.sources.spark.source.encoding import Encoding
from partita.trusted.sources.spark.source.integers import are_integers, integer_cells
from partita.trusted.sources.spark.source.raw import Raw
from partita.trusted.sources.tally.tally import tally


def tallied(
    frame: Frame, schema: Mapping[str, Domain], by: Sequence[str] | None, *, parts: int | None, **facts: Any
) -> SparkTally:
    """The tally of a DataFrame; what is wrong with the question is said before anything runs."""
    cluster, asked = Cluster.of(frame), _Asked(frame)
    cluster.require_no_races()
    checked = tally(asked, schema, by, **facts)
    parts = parts or cluster.parts
    cells = cluster.run(lambda: _encoded(cluster, asked.raw, checked.schema, parts=parts, **facts))
    return SparkTally.of(checked.schema, checked.contributions, parts, cluster, cells)


def _encoded(
    cluster: Cluster,
    raw: Raw,
    schema: Mapping[str, Domain],
    *,
    parts: int,
    person: str | None,
    **facts: Any,
) -> Frame:
    """The cells of grouped raw values; those of one person are encoded, and bounded, together."""
    if person is None and facts["where"] is None and are_integers(schema, raw):
        return integer_cells(schema, raw)
    grouped = raw.grouped() if person is None else raw.by_person(person, parts=parts)
    encoding = Encoding(schema=schema, keys=raw.names, person=person, **facts)
    return cluster.mapped(grouped, encoding, columns(len(schema)))


@final
@dataclass(eq=False)
class _Asked:
    """A source without rows: it tells which columns a tally is made of, and lets it check them."""

    frame: Frame
    found: list[Raw] = field(default_factory=list)

    @property
    def raw(self) -> Raw:
        """The columns that were asked for."""
        return self.found[-1]

    def counts(self, keys: Sequence[str], sums: Sequence[str] = ()) -> Table:
        """No rows, in columns of the right types."""
        self.found.append(Raw.of(self.frame, keys))
        empty = [pa.chunked_array([], kind) for kind in self.raw.kinds]
        return pa.table([*empty, pa.chunked_array([], pa.int64())], names=[*keys, "count"])
