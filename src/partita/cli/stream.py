"""`partita stream`: counters that publish one output for every period."""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, final

from partita.cli import common
from partita.errors import HorizonReached, check
from partita.public.records import Record

if TYPE_CHECKING:
    from partita.public.streams import AnyOutput, Settings
    from partita.trusted.durable.open import AnyStream

MECHANISMS: Final = ("counter", "tree", "sparse", "sliding", "pan-private")

_BETA: Final = "how often the bounds of a period may fail"
_OPTIONS: Final = ("expected", "window")
_USUAL_BETA: Final = 0.05

_STDIN: Final = 0
_PIECE: Final = 1 << 16  # bytes of one read
_LONGEST: Final = 1 << 12  # bytes of a line that are read; a key and two ids fit many times
_LONGEST_SLEEP: Final = 60.0  # seconds, after which the clock is read again: it may have been set


def declare(commands: common.Commands) -> None:
    """One act makes a counter, two keep it going, the others look at what it published."""
    acts = common.command_group(commands, "stream", "count events under continual observation")
    _declare_create(acts)
    declare_feed(acts)
    _declare_read(acts)
    info = "say what a counter promises, and how exact its last output is"
    common.add_beta(_add_action(acts, "info", _info, info), _BETA)
    says = "draw what was published, with bounds around it; needs the extra `plot`"
    plot = _add_action(acts, "plot", _plot, says, needs=" -o visits.png")
    common.add_picture(plot)
    common.add_beta(plot, _BETA)


def _add_action(
    acts: common.Commands, name: str, run: common.Action, says: str, *, needs: str = ""
) -> common.CommandParser:
    parser = common.command(acts, name, run, says, example=f"partita stream {name} visits{needs}")
    parser.add("COUNTER", "its path; endings are added")
    return parser


def _declare_create(acts: common.Commands) -> None:
    says = "make a counter, and pay for it, once and for all"
    parser = _add_action(acts, "create", _create, says, needs=" --epsilon 1 --period 1m")
    parser.add("--epsilon E", "of all outputs together", type=common.epsilon, required=True)
    parser.add("--period LENGTH", "of public time: 30s, 1m, 1h, 1d, 1w", required=True)
    parser.add("--start TIME", "when the first period begins; default: now")
    parser.add("--horizon N", "how many periods there will be, if known", type=common.whole("horizon"))
    parser.add("--mechanism", "default: counter", choices=MECHANISMS)
    says = "a counter for each of these public names, separated by commas; needs --horizon"
    parser.add("--keys KEYS", says)
    expected = "a public guess of the number of events in all, for the mechanism `sparse`"
    parser.add("--expected N", expected, type=common.whole("expected"))
    window = "count the last N periods, not all of them, for the mechanism `sliding`"
    parser.add("--window N", window, type=common.whole("window"))
    common.add_options(parser, "an option of the mechanism, for example branching=16; may be repeated")
    contributions = "protect users, not events: at most so many events of one are counted"
    parser.add("--contributions K", contributions, type=common.whole("contributions"))
    parser.add("--ledger FILE", "the ledger that is debited before noise is drawn")
    parser.add("--dataset NAME", "whose budget pays; needed with --ledger")


def _declare_read(acts: common.Commands) -> None:
    parser = _add_action(acts, "read", _read, "list what was published, one line for each period")
    parser.add("--since N", "only what comes after period N", type=common.whole("since", low=0), default=0)


def _create(options: common.Options) -> common.Outcome:
    """Make the files, pay, and say what is promised; nothing is counted yet."""
    from partita.trusted.durable.events import bound_new

    rule, fix = "must not exist yet", "go on with `partita stream feed`"
    check(not os.path.lexists(f"{options.counter}.outputs"), "counter", rule, given=options.counter, fix=fix)
    with _open_stream(options) as counter:
        settings, bound = counter.settings, bound_new(counter.settings, _USUAL_BETA)
    lines = [("counter", options.counter), *describe_settings(settings, bound)]
    return common.Outcome.of(
        common.table(lines, left=2), counter=options.counter, **settings_record(settings, bound)
    )


def _open_stream(options: common.Options) -> AnyStream:
    """A new counter, or a family if there are keys."""
    from partita.ledger.ledger import Ledger
    from partita.trusted.durable.events import read_stream_options
    from partita.trusted.durable.open import open_counter, open_family

    terms: dict[str, Any] = {
        "epsilon": options.epsilon,
        "period": options.period,
        "horizon": options.horizon,
        "start": options.start,
        "contributions": options.contributions or 1,
        "unit": None if options.contributions is None else "user",
        "ledger": None if options.ledger is None else Ledger(options.ledger),
        "dataset": options.dataset,
    }
    chosen = {name: getattr(options, name) for name in ("mechanism", *_OPTIONS)}
    given: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    named = dict(options.option)
    if named:
        kind = options.mechanism or MECHANISMS[0]
        given |= read_stream_options(kind, named)
    if options.keys is None:
        return open_counter(options.counter, **terms, **given)
    if given:
        message = f"--{next(iter(given))} is about one counter; leave it out, or --keys"
        raise argparse.ArgumentTypeError(message)
    return open_family(options.counter, keys=options.keys.split(","), **terms)


def _read(options: common.Options) -> common.Outcome:
    """What the public file has; no lock, no secret."""
    from partita.public.streams import read_outputs

    return describe_outputs(read_outputs(options.counter, since=options.since).outputs)


def _info(options: common.Options) -> common.Outcome:
    """What was promised, and the last output with its bounds; from the public file."""
    from partita.public.stream_errors import bound_outputs, error_band
    from partita.public.streams import read_outputs

    published = read_outputs(options.counter, since=-1)
    last, closed = published.outputs, sum(output.period for output in published.outputs)
    bound = bound_outputs(published.settings, options.beta)
    lines = [("counter", options.counter), *describe_settings(published.settings, bound, options.beta)]
    lines.append(("closed", f"{closed:,} periods"))
    record = {**settings_record(published.settings, bound), "closed": closed}
    off = error_band(last, published.settings, options.beta)
    if last:
        record |= {**output_record(last[0]), "beta": options.beta, "off": None}
        lines.append(("last", format_values(last[0])))
    if last and off is not None:
        record |= {"off": float(off[0])}
        lines.append(("off by", f"at most {off[0]:,.1f}, but for probability {options.beta:g}"))
    return common.Outcome(common.table(lines, left=2), [record])


def _plot(options: common.Options) -> common.Outcome:
    """Draw what the public file has."""
    from partita.public.stream_plot import plot
    from partita.public.streams import read_outputs

    published, name = read_outputs(options.counter), Path(options.counter).name
    common.draw(lambda: plot(published.outputs, published.settings, beta=options.beta, name=name), options)
    return common.Outcome.of(f"drew {name} in {options.output}", path=options.output, counter=options.counter)


# `partita stream feed` and `run`: they keep a counter going, and print what each period publishes.
def declare_feed(acts: common.Commands) -> None:
    """What is fed, and who pays; `run` feeds nothing."""
    says = "count lines of stdin as they come, or times in a file; those of a family begin with a key"
    feed = _add_writer(acts, "feed", _feed, says, example="tail -f access.log | partita stream feed visits")
    says = "stdin begins again where it began before under this name: count only lines that are new"
    feed.add("--replay NAME", says)
    feed.add("--feeder NAME", "who feeds the file: its periods count once under each name")
    feed.add("--file FILE", "one time in each line, in place of stdin")
    feed.add(
        "--column NAME",
        (
            "the file is CSV with a header, and this has the times; the feeder states that no field "
            "holds a line feed, since every line is one event"
        ),
    )
    feed.add("--key-column NAME", "the column that has the keys, for a family; needs --column")
    feed.add("--start TIME", "where the periods begin that the file is about")
    feed.add("--end TIME", "where they end; both are public")
    says = "close periods by the clock, and count nothing"
    run = _add_writer(acts, "run", _run, says, example="partita stream run visits --once")
    run.add("--once", "close those that have ended, and leave")


def _add_writer(
    acts: common.Commands, name: str, run: common.Action, says: str, *, example: str
) -> common.CommandParser:
    parser = common.command(acts, name, run, says, example=example)
    parser.add("COUNTER", "its path; endings are added")
    parser.add("--ledger FILE", "the ledger that paid, if one did")
    parser.set_defaults(interrupted="go on with `partita stream feed` or `partita stream run`")
    return parser


def _feed(options: common.Options) -> common.Outcome:
    """Count until the input ends, and go on to the end of that period.

    A counter that comes to its end before its input does is an error, whether or not anything more came.
    """
    _check(options)
    with _resume(options) as counter:
        if options.file is not None:
            return _feed_file(counter, options)
        feeder = Feeder(counter, _name(counter, options.replay))
        _publish(counter, options)
        _require_period(counter)
        feeder.start(_STDIN)
        _keep_going(counter, options, feeder)
        if not feeder.has_ended():
            _require_period(counter)
    return common.NOTHING


def _run(options: common.Options) -> common.Outcome:
    """Close periods by the clock, until somebody stops it."""
    with _resume(options) as counter:
        if options.once:
            return describe_outputs(_close_ended(counter))
        _publish(counter, options)
        _keep_going(counter, options)
    return common.NOTHING


def _check(options: common.Options) -> None:
    """A file needs a public start and end; what comes now needs none."""
    stretch = (options.start, options.end)
    if options.file is None and (any(stretch) or options.column or options.key_column or options.feeder):
        message = "--start, --end, --column, --key-column and --feeder are about a file; pass --file too"
        raise argparse.ArgumentTypeError(message)
    if options.key_column is not None and options.column is None:
        message = "--key-column needs --column: the file has a header, and times in it"
        raise argparse.ArgumentTypeError(message)
    if options.file is not None and options.replay is not None:
        raise argparse.ArgumentTypeError("--replay is about stdin; name a file that is fed again by --feeder")
    if options.file is not None and not all(stretch):
        raise argparse.ArgumentTypeError("--file needs --start and --end: which periods there are is public")


def _name(counter: AnyStream, name: str | None) -> str | None:
    """The name that lines are numbered under, where there may be one."""
    if name is not None and (counter.settings.pan_private or counter.settings.unit == "user"):
        raise argparse.ArgumentTypeError("this counter keeps no numbers of lines; leave --replay out")
    return name


def _resume(options: common.Options) -> AbstractContextManager[AnyStream]:
    from partita.ledger.ledger import Ledger
    from partita.trusted.durable.open import resume_stream

    ledger = None if options.ledger is None else Ledger(options.ledger)
    return resume_stream(options.counter, ledger=ledger, catch_up=False)


def _feed_file(counter: AnyStream, options: common.Options) -> common.Outcome:
    """Count each time in its period, and close all of them."""
    before, times = counter.periods, _times(options, counter.settings.keys)
    counter.feed_timestamps(times, start=options.start, end=options.end, feeder=options.feeder)
    return describe_outputs(list(counter.outputs(since=before)))


def _times(options: common.Options, keys: Sequence[str]) -> Any:
    """The times in a file; for a family those of each key, and what is under no key of it counts nowhere."""
    if bool(keys) != (options.key_column is not None):
        raise argparse.ArgumentTypeError("--key-column goes with a family, and a file of a family needs it")
    if keys:
        return _times_by_key(options, keys)
    if options.column is None:
        return options.file
    return (moment for (moment,) in _columns(options.file, [options.column]))


def _times_by_key(options: common.Options, keys: Sequence[str]) -> dict[str, list[str]]:
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


def _keep_going(counter: AnyStream, options: common.Options, feeder: Feeder | None = None) -> None:
    """Close each period when it ends, until there are no more, the input has ended, or something fails.

    The end of the input is checked at the ends of periods only, so its time is not visible.
    """
    ended, failed = False, Event() if feeder is None else feeder.failed
    while not ended and not _is_over(counter):
        _wait(counter, failed)
        if feeder is not None:
            ended = feeder.has_ended()
        _publish(counter, options)


def _publish(counter: AnyStream, options: common.Options) -> None:
    """Close the periods that have ended, and print their outputs."""
    common.show(describe_outputs(_close_ended(counter)), as_json=options.json)


def _close_ended(counter: AnyStream) -> Sequence[AnyOutput]:
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
    from partita.public.streams import SECOND

    end = counter.settings.schedule.end(counter.periods + 1)
    while not failed.is_set() and (left := end - time.time_ns()) > 0:
        _sleep(min(left / SECOND, _LONGEST_SLEEP), failed)


def _sleep(seconds: float, failed: Event) -> None:
    failed.wait(seconds)


# Lines as events: counted as they come, by a thread that prints nothing and closes nothing.
@final
class LineReader:
    r"""Whole lines out of pieces of input; of a line the first 4,096 bytes are kept.

    >>> lines = LineReader()
    >>> lines.more(b"one\ntwo\nth"), lines.more(b"ree\n"), lines.rest()
    ([b'one', b'two'], [b'three'], [])
    """

    def __init__(self) -> None:
        self._open = b""

    def more(self, piece: bytes) -> list[bytes]:
        """The lines that end in this piece."""
        *ended, last = (self._open + piece).split(b"\n")
        self._open = last[:_LONGEST]
        return [line[:_LONGEST] for line in ended]

    def rest(self) -> list[bytes]:
        """The last line, if it has no line feed."""
        return [self._open] if self._open else []


@final
class Feeder:
    """Counts the lines of a stream in the open period, whichever it is, as soon as they come.

    Lines are numbered from 1 under a name, and no number is counted twice under it. Each session has a fresh
    one, so all its lines are new. A name is given only to input that begins again where it began before. For
    a family each line begins with its key; one that begins with anything else counts nowhere.
    `failed` is set if lines cannot be counted, and not because the counter has come to its end.
    """

    def __init__(self, counter: AnyStream, replay: str | None) -> None:
        from partita.trusted.noise.kernel import token

        self._counter = counter
        self._name = token() if replay is None else replay
        self._keys = {key.encode(): {key: 1} for key in counter.settings.keys}
        self._number = 0
        self._ended = False
        self.failed = Event()
        self._error: Exception | None = None

    def has_ended(self) -> bool:
        """Whether all lines are counted, and no more will come; raises what made that impossible."""
        if self._error is not None:
            raise self._error
        return self._ended

    def start(self, handle: int) -> None:
        """Begin to read from a file descriptor."""
        Thread(target=self._read, args=(handle,), name="partita-feeder", daemon=True).start()

    def _read(self, handle: int) -> None:
        lines = LineReader()
        try:
            while piece := os.read(handle, _PIECE):
                self._count(lines.more(piece))
            self._count(lines.rest())
            self._ended = True
        except HorizonReached:
            return
        except Exception as error:
            self._error = error
            self.failed.set()

    def _count(self, lines: list[bytes]) -> None:
        self._counter.add_many(self._events(lines))

    def _events(self, lines: list[bytes]) -> Iterator[Any]:
        """What each line is known by: a person and an id, its number under a name, or nothing at all."""
        from partita.trusted.durable.events import Event as Counted

        settings = self._counter.settings
        for line in lines:
            self._number += 1
            count, rest = self._parse_line(line.strip())
            if settings.unit == "user":
                person, _, event = rest.partition(b" ")
                if count:
                    yield Counted(person, event.strip(), count)
            elif settings.pan_private:
                yield Counted(None, None)
            else:
                yield Counted(self._name, self._number, count)

    def _parse_line(self, line: bytes) -> tuple[Any, bytes]:
        """What a line counts, and what it says besides: one, or one under the key that it begins with."""
        if not self._keys:
            return 1, line
        key, _, rest = line.partition(b" ")
        return self._keys.get(key, {}), rest.strip()


# Counters and their outputs, for people and for programs.
def describe_outputs(outputs: Sequence[AnyOutput]) -> common.Outcome:
    """A line for each output: when its period ended, the number of the period, and the count so far.

    A family has a count for each key.
    """
    lines = [f"{each.end.isoformat()}  {each.period:>6}  {format_values(each)}" for each in outputs]
    return common.Outcome("\n".join(lines), [output_record(output) for output in outputs])


def format_values(output: AnyOutput) -> str:
    """The count, or that of each key with its name."""
    if isinstance(output.value, dict):
        return "  ".join(f"{key} {value:,.1f}" for key, value in output.value.items())
    return f"{output.value:,.1f}"


def output_record(output: AnyOutput) -> Record:
    """An output for programs: `value` of a counter, `values` of a family."""
    name = "values" if isinstance(output.value, dict) else "value"
    return {"period": output.period, "end": output.end, name: output.value, "exact": output.exact}


def _format_options(settings: Settings) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.options.items())


def _format_bound(settings: Settings, bound: float | None, beta: float) -> str:
    """What no output will miss by, in words; or why nobody can know."""
    if bound is not None:
        events = settings.options.get("weight", settings.options.get("expected"))
        most = "" if events is None else f" if at most {events:,} events come"
        return f"no output is off by more than {bound:,.1f}{most}, but for probability {beta:g}"
    if settings.horizon is None:
        return "none before it runs: no horizon is known"
    return "none before it runs: it depends on how many events come"


def describe_settings(
    settings: Settings, bound: float | None, beta: float = _USUAL_BETA
) -> list[tuple[str, str]]:
    """What a counter promises, in words."""
    from partita.public.streams import SECOND

    known = "without end" if settings.horizon is None else f"{settings.horizon:,}"
    return [
        ("mechanism", settings.mechanism),
        *([("keys", ", ".join(settings.keys))] if settings.keys else []),
        *([("options", _format_options(settings))] if settings.options else []),
        ("guarantee", str(settings.guarantee)),
        ("bound", _format_bound(settings, bound, beta)),
        ("periods", f"{known}, of {settings.period / SECOND:,g} seconds from {_start(settings)}"),
        ("ledger", "not recorded" if settings.dataset is None else f"paid by dataset {settings.dataset!r}"),
    ]


def settings_record(settings: Settings, bound: float | None) -> Record:
    """What everybody may know about a counter."""
    from partita.public.file_entries import guarantee_entries
    from partita.public.streams import SECOND

    return {
        "mechanism": settings.mechanism,
        "keys": list(settings.keys) or None,
        "guarantee": guarantee_entries(settings.guarantee),
        "period_seconds": settings.period / SECOND,
        "start": _start(settings),
        "horizon": settings.horizon,
        "change": settings.change,
        "dataset": settings.dataset,
        "options": dict(settings.options),
        "bound": bound,
    }


def _start(settings: Settings) -> str:
    from partita.public.streams import to_datetime as moment_of

    return moment_of(settings.start).isoformat()
