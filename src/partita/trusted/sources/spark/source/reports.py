"""Reports of the local model, counted where they are: aggregators add up in any order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from pyarrow import types

from partita.errors.checks import check
from partita.errors.errors import SourceError
from partita.local.aggregate.aggregator import Aggregator
from partita.local.question.question import Question
from partita.trusted.sources.spark.counts.blocks import blocks
from partita.trusted.sources.spark.session.session import Cluster, Frame, numbered
from partita.trusted.sources.spark.session.workers import Batch

_MADE: Final = "state binary"


def aggregate(frame: Frame, column: str, question: Question) -> Aggregator[Any]:
    """The aggregator of all reports in a column: integers, or bytes for unary encoding, as devices make them.

    Every row counts. Where a report may have come twice, leave one: `frame.dropDuplicates(["report_id"])`.
    """
    fix = "pass for example Frequency(8, epsilon=1)"
    check(isinstance(question, Question), "question", "must be a question", given=question, fix=fix)
    cluster = Cluster.of(frame)
    reports = numbered(frame, [column])

    def run() -> list[bytes]:
        parts = cluster.mapped(reports, _Counting(question), _MADE)
        merged = cluster.mapped(parts.repartition(1), _Merging(question), _MADE)
        return [bytes(row["state"]) for row in merged.collect()]

    states = cluster.run(run, failure=_refused(column))
    return _merged(question, states)


@final
@dataclass(frozen=True)
class _Counting:
    """A worker that counts the reports of its partition."""

    question: Question

    def __call__(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        aggregator = self.question.aggregator()
        for table in blocks(batches):
            aggregator.add_many(_reports(table.column(0).combine_chunks()))
        yield _state(aggregator)


@final
@dataclass(frozen=True)
class _Merging:
    """A worker that makes one aggregator of all, so that one comes to the driver."""

    question: Question

    def __call__(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        states = [state for batch in batches for state in batch.column(0).to_pylist()]
        yield _state(_merged(self.question, states))


def _merged(question: Question, states: list[bytes]) -> Aggregator[Any]:
    """One aggregator of all; that of no report if there are none."""
    empty = question.aggregator()
    read = (type(empty).from_bytes(question, state) for state in states)
    return reduce(lambda one, other: one.merge(other), read, empty)


def _state(aggregator: Aggregator[Any]) -> Batch:
    return pa.record_batch([pa.array([aggregator.to_bytes()], pa.binary())], names=["state"])


def _reports(column: Any) -> Any:
    """A column of Spark as `Aggregator.add_many` takes it; null is no report."""
    if column.null_count:
        raise ValueError("a row without a report")
    if not types.is_binary(column.type) and not types.is_large_binary(column.type):
        return column.to_numpy()
    rows = column.to_pylist()
    if len({len(row) for row in rows}) > 1:
        raise ValueError("reports of several lengths")
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), len(rows[0]) if rows else 0)


def _refused(column: str) -> SourceError:
    fix = "drop what is no report, and check that each executor has partita"
    return SourceError(f"column {column!r}", "must hold a report to this question in each row", fix=fix)
