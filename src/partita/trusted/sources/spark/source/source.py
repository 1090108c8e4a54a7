"""A DataFrame of Spark as a source that counts where its rows are. Spark is imported when it counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from partita.domain.base.base import Domain
from partita.numbers import integer
from partita.trusted.sources.base.protocol import Table
from partita.trusted.sources.spark.session.session import Cluster, Frame

if TYPE_CHECKING:
    from partita.trusted.sources.spark.counts.tallied import SparkTally


@final
@dataclass(frozen=True, repr=False)
class SparkSource:
    """Rows of a DataFrame, which stay on their cluster.

    A universe of more than 2^20 cells is cut in public shards: at most `shards` equal parts, and the first of
    them split again at powers of four. By default it is twice `spark.default.parallelism` if the session was
    started with one, else 16; never by how many machines there are now, which may follow the rows. Each shard
    adds at most one segment to a partition.
    """

    frame: Frame
    shards: int | None = None

    def __post_init__(self) -> None:
        Cluster.of(self.frame)
        if self.shards is not None:
            integer(self.shards, "shards", low=1, high=2**12)

    def tally(
        self,
        schema: Mapping[str, Domain],
        by: Sequence[str] | None = None,
        *,
        person: str | None = None,
        contributions: int = 1,
        salt: str = "",
        where: tuple[str, str] | None = None,
    ) -> SparkTally:
        """Count cells as `sources.tally` does, on the cluster, where the counts stay."""
        from partita.trusted.sources.spark.source.counting import tallied

        return tallied(
            self.frame,
            schema,
            by,
            parts=self.shards,
            person=person,
            contributions=contributions,
            salt=salt,
            where=where,
        )

    def counts(self, keys: Sequence[str], sums: Sequence[str] = ()) -> Table:
        """Exact counts of distinct raw values, brought here; see `Source.counts`. `publish` never asks."""
        from partita.trusted.sources.spark.source.collected import collected

        return collected(self.frame, keys, sums)

    def __repr__(self) -> str:
        return "Source(Spark, secret)"
