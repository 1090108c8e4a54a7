"""What is published again, and what is refused, when a counter is opened."""

from __future__ import annotations

from partita.errors import StreamForked
from partita.streams.durable.keeper import Keeper
from partita.streams.durable.outputs import OutputsFile

__all__ = ["reconcile"]


def reconcile(keeper: Keeper, outputs: OutputsFile, periods: int) -> None:
    """Bring the public file up to the state: records that are stored and not published are published now.

    So are records that a power cut has torn. A file that is ahead of the state, or that tells another story,
    shows that the state is an old copy.
    """
    if outputs.record(periods + 1) != outputs.blank:
        raise _forked(outputs, "has periods that the state does not know")
    published = _whole(keeper, outputs, _written(outputs, periods))
    outputs.write(published, keeper.records(since=published))


def _written(outputs: OutputsFile, periods: int) -> int:
    """The last period of which there is anything in the file."""
    while periods and outputs.record(periods) == outputs.blank:
        periods -= 1
    return periods


def _whole(keeper: Keeper, outputs: OutputsFile, written: int) -> int:
    """Up to which period the file is whole: only what was written at once, in the end, can be torn."""
    whole, begin = written, max(0, written - keeper.at_once)
    for period, found in enumerate(outputs.records(since=begin), begin + 1):
        stored = keeper.record(period)
        if stored is None or found == stored:
            continue
        if not _is_torn(found, stored):
            raise _forked(outputs, "differs from what the state has published")
        whole = min(whole, period - 1)
    return whole


def _is_torn(found: bytes, stored: bytes) -> bool:
    """Whether all that is left of a record is as it is stored, and the rest was never written."""
    return all(byte in (0, whole) for byte, whole in zip(found, stored, strict=True))


def _forked(outputs: OutputsFile, rule: str) -> StreamForked:
    return StreamForked(
        f"counter file {str(outputs.path)!r} {rule}: the state is an old copy, and to go on from it would "
        "publish periods twice; restore the latest state, or start a new counter"
    )
