"""`partita stream feed` and `run`: they keep a counter going, and print what each period publishes."""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from partita.cli.common.arguments import Commands, Options, command
from partita.cli.common.output import Outcome, show
from partita.cli.stream.stream_lines import Feeder
from partita.cli.stream.stream_said import outputs_said
from partita.errors.checks import check
from partita.errors.errors import HorizonReached

if TYPE_CHECKING:
    from partita.public.streams.outputs import AnyOutput
    from partita.trusted.durable.open import AnyStream

_STDIN: Final = 0
_NOTHING: Final = Outcome("", [])
_LONGEST_SLEEP: Final = 60.0


def declare(acts: Commands) -> None:
    """What is fed, and who pays; `run` feeds nothing."""
    feed = _act(
        acts,
        "feed",
        _feed,
        says="count lines of stdin as they come, or times in a file; those of a family begin with a key",
        example="tail -f access.log | partita stream feed visits",
    )
    feed.add_argument(
        "--replay",
        metavar="NAME",
        help="stdin begins again where it began before under this name: count only lines that are new",
    )
    feed.add_argument(
        "--feeder", metavar="NAME", help="who feeds the file: its periods count once under each name"
    )
    feed.add_argument("--file", metavar="FILE", help="one time in each line, in place of stdin")
    feed.add_argument(
        "--column",
        metavar="NAME",
        help="the file is CSV with a header, and this has the times; whoever feeds it states that no field "
        "holds a line feed, since every line is one event",
    )
    feed.add_argument(
        "--key-column", metavar="NAME", help="the column that has the keys, for a family; needs --column"
    )
    feed.add_argument("--start", metavar="TIME", help="where the periods begin that the file is about")
    feed.add_argument("--end", metavar="TIME", help="where they end; both are public")
    run = _act(
        acts,
        "run",
        _run,
        says="close periods by the clock, and count nothing",
        example="partita stream run visits --once",
    )
    run.add_argument("--once", action="store_true", help="close those that have ended, and leave")


def _act(
    acts: Commands, name: str, run: Callable[[Options], Outcome], *, says: str, example: str
) -> argparse.ArgumentParser:
    declared = command(acts, name, run, says=says, example=example)
    declared.add_argument("counter", metavar="COUNTER", help="its path; endings are added")
    declared.add_argument("--ledger", metavar="FILE", help="the ledger that paid, if one did")
    declared.set_defaults(interrupted="go on with `partita stream feed` or `partita stream run`")
    return declared


def _feed(options: Options) -> Outcome:
    """Count until the input ends, and go on to the end of that period.

    A counter that comes to its end before its input does is an error, whether or not anything more came.
    """
    _check(options)
    with _resumed(options) as counter:
        if options.file is not None:
            return _feed_file(counter, options)
        feeder = Feeder(counter, _name(counter, options.replay))
        _publish(counter, options)
        _require_period(counter)
        feeder.start(_STDIN)
        _keep_going(counter, options, feeder)
        if not feeder.has_ended():
            _require_period(counter)
    return _NOTHING


def _run(options: Options) -> Outcome:
    """Close periods by the clock, until somebody stops it."""
    with _resumed(options) as counter:
        if options.once:
            return outputs_said(_closed(counter))
        _publish(counter, options)
        _keep_going(counter, options)
    return _NOTHING


def _check(options: Options) -> None:
    """A file needs a public start and end; what comes now needs none."""
    stretch = (options.start, options.end)
    if options.file is None and (any(stretch) or options.column or options.key_column or options.feeder):
        raise argparse.ArgumentTypeError(
            "--start, --end, --column, --key-column and --feeder are about a file; pass --file too"
        )
    if options.key_column is not None and options.column is None:
        raise argparse.ArgumentTypeError(
            "--key-column needs --column: the file has a header, and times in it"
        )
    if options.file is not None and options.replay is not None:
        raise argparse.ArgumentTypeError("--replay is about stdin; name a file that is fed again by --feeder")
    if options.file is not None and not all(stretch):
        raise argparse.ArgumentTypeError("--file needs --start and --end: which periods there are is public")


def _name(counter: AnyStream, name: str | None) -> str | None:
    """The name that lines are numbered under, where there may be one."""
    if name is not None and (counter.settings.pan_private or counter.settings.unit == "user"):
        raise argparse.ArgumentTypeError("this counter keeps no numbers of lines; leave --replay out")
    return name


def _resumed(options: Options) -> AbstractContextManager[AnyStream]:
    from partita.ledger.ledger.ledger import Ledger
    from partita.trusted.durable.open import resume_stream

    ledger = None if options.ledger is None else Ledger(options.ledger)
    return resume_stream(options.counter, ledger=ledger, catch_up=False)


def _feed_file(counter: AnyStream, options: Options) -> Outcome:
    """Count each time in its period, and close all of them."""
    before, times = counter.periods, _times(options, counter.settings.keys)
    counter.feed_timestamps(times, start=options.start, end=options.end, feeder=options.feeder)
    return outputs_said(list(counter.outputs(since=before)))


def _times(options: Options, keys: Sequence[str]) -> Any:
    """The times in a file; for a family those of each key, and what is under no key of it counts nowhere."""
    if bool(keys) != (options.key_column is not None):
        raise argparse.ArgumentTypeError("--key-column goes with a family, and a file of a family needs it")
    if keys:
        return _times_by_key(options, keys)
    if options.column is None:
        return options.file
    return (moment for (moment,) in _columns(options.file, [options.column]))


def _times_by_key(options: Options, keys: Sequence[str]) -> dict[str, list[str]]:
    times: dict[str, list[str]] = {key: [] for key in keys}
    for key, moment in _columns(options.file, [options.key_column, options.column]):
        times.get(key, []).append(moment)
    return times


def _columns(path: str, names: list[str]) -> Iterator[list[str]]:
    """The entries of columns, line by line: what one line says is never a matter of another."""
    with open(path, encoding="utf-8", errors="replace", newline="\n") as lines:
        header = _cells(next(lines, ""))
        for name in names:
            fix = "check its name"
            check(name in header, "column", "must be in the header of the file", given=name, fix=fix)
        places = [header.index(name) for name in names]
        for line in lines:
            cells = _cells(line)
            yield ["".join(cells[place : place + 1]) for place in places]


def _cells(line: str) -> list[str]:
    """A line of CSV; none if it is not."""
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _keep_going(counter: AnyStream, options: Options, feeder: Feeder | None = None) -> None:
    """Close each period when it ends, until there are no more, the input has ended, or something fails.

    Whether the input has ended is asked at the ends of periods only: nobody sees when it did.
    """
    ended, failed = False, Event() if feeder is None else feeder.failed
    while not ended and not _is_over(counter):
        _wait(counter, failed)
        if feeder is not None:
            ended = feeder.has_ended()
        _publish(counter, options)


def _publish(counter: AnyStream, options: Options) -> None:
    """Close the periods that have ended, and print their outputs."""
    show(outputs_said(_closed(counter)), as_json=options.json)


def _closed(counter: AnyStream) -> Sequence[AnyOutput]:
    """Close the periods that have ended, as far as the horizon: their outputs."""
    with suppress(HorizonReached):
        return counter.tick()
    return []


def _is_over(counter: AnyStream) -> bool:
    return counter.periods == counter.settings.horizon


def _require_period(counter: AnyStream) -> None:
    if _is_over(counter):
        raise HorizonReached(
            f"the counter has {counter.periods} periods in all, and they are over; "
            "what comes now is not counted, start a new one for it"
        )


def _wait(counter: AnyStream, failed: Event) -> None:
    """Until the open period has ended, as the clock says then, or something has failed."""
    from partita.public.streams.settings import SECOND

    end = counter.settings.schedule.end(counter.periods + 1)
    while not failed.is_set() and (left := end - time.time_ns()) > 0:
        _sleep(min(left / SECOND, _LONGEST_SLEEP), failed)


def _sleep(seconds: float, failed: Event) -> None:
    failed.wait(seconds)
