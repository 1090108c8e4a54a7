"""What is published again, and what is refused, when a counter is opened."""

from __future__ import annotations

from partita.errors import StreamForked
from partita.streams.durable.keeper import Keeper
from partita.streams.durable.outputs import OutputsFile

__all__ = ["reconcile"]


def reconcile(keeper: Keeper, outputs: OutputsFile, periods: int) -> None:
    """Bring the public file up to the state: records that are stored and not published are published now.

    A file that is ahead of the state, or that tells another story, shows that the state is an old copy.
    """
    if outputs.record(periods + 1) != outputs.blank:
        raise _forked(outputs, "has periods that the state does not know")
    published = periods
    while published and outputs.record(published) == outputs.blank:
        published -= 1
    stored = keeper.record(published)
    if stored is not None and stored != outputs.record(published):
        raise _forked(outputs, "differs from what the state has published")
    outputs.write(published, keeper.records(since=published))


def _forked(outputs: OutputsFile, rule: str) -> StreamForked:
    return StreamForked(
        f"counter file {str(outputs.path)!r} {rule}: the state is an old copy, and to go on from it would "
        "publish periods twice; restore the latest state, or start a new counter"
    )
