"""Feeding a counter: what is printed, and when, follows the clock and never the events."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from partita.cli import stream as stream_feed
from partita.cli.stream import Feeder, LineReader
from partita.errors import StreamError
from partita.trusted.durable.open import resume_counter
from partita.trusted.durable.stream import DurableCounter

from .conftest import CANARY, Done, Run
from .test_shell import interrupted

EXACT = ("--epsilon", "40000", "--period", "1m")
"""So large an epsilon that noise is 0, but for a probability below 10^-100; a warning says so each time."""
WARNING = "partita: warning: epsilon 40000 is above 5"

Feed = Callable[..., Done]


class Clock:
    """Nanoseconds since 1970 that pass only when somebody sleeps."""

    now = 0

    def sleep(self, seconds: float, failed: threading.Event) -> None:
        self.now += round(seconds * 10**9)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Clock:
    """The only clock there is; a working directory too."""
    clock = Clock()
    monkeypatch.setattr("time.time_ns", lambda: clock.now)
    monkeypatch.setattr(stream_feed, "_sleep", clock.sleep)
    return clock


@pytest.fixture
def feed(run: Run, clock: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Feed:
    """`partita stream feed` with one piece of input in each period; it ends with the last of them."""

    def fed(*pieces: bytes, arguments: tuple[object, ...] = ("visits",)) -> Done:
        (read, write), null = os.pipe(), os.open(os.devnull, os.O_WRONLY)
        due, pages = list(pieces), [capsys.readouterr()][:0]
        counted, count = threading.Semaphore(0), Feeder._count

        def counting(self: Feeder, lines: list[bytes]) -> None:
            try:
                count(self, lines)
            finally:
                counted.release()

        def end_input() -> None:
            os.dup2(null, write)
            _join_feeders()

        def sleep(seconds: float, failed: threading.Event) -> None:
            pages.append(capsys.readouterr())
            if due:
                if piece := due.pop(0):
                    os.write(write, piece)
                    assert counted.acquire(timeout=3600)
                if not due:
                    end_input()
            assert capsys.readouterr() == ("", ""), "something was said on arrival"
            clock.sleep(seconds, failed)

        with monkeypatch.context() as patch:
            patch.setattr(stream_feed, "_sleep", sleep)
            patch.setattr(stream_feed, "_STDIN", read)
            patch.setattr(Feeder, "_count", counting)
            done = run("stream", "feed", *arguments)
            end_input()
        for handle in (read, write, null):
            os.close(handle)
        out, err = ("".join(each[stream] for each in pages) for stream in (0, 1))
        return Done(done.code, out + done.out, err + done.err)

    return fed


def _join_feeders() -> None:
    for thread in threading.enumerate():
        if thread.name == "partita-feeder":
            thread.join(60)


def values(done: Done) -> list[float]:
    """The counts on the lines of an output."""
    assert (done.code, complaints(done)) == (0, [])
    return [float(line.split()[-1].replace(",", "")) for line in done.out.splitlines()]


def complaints(done: Done) -> list[str]:
    """What was said on stderr, but for the warning."""
    return [line for line in done.err.splitlines() if not line.startswith(WARNING)]


def public(done: Done) -> tuple[int, list[list[str]], str]:
    """All that a command showed but for the counts themselves."""
    return done.code, [line.split()[:-1] for line in done.out.splitlines()], done.err


def test_lines_count_in_the_period_they_come_in(run: Run, feed: Feed) -> None:
    """One output for each period, the count so far; it ends with the period its input ends in."""
    run("stream", "create", "visits", *EXACT)

    done = feed(b"a\nb\n", b"", b"c\nd\ne\n", b"f")

    assert values(done) == [2, 2, 5, 6]
    assert done.out.splitlines()[0] == "1970-01-01T00:01:00+00:00       1  2.0"


def test_many_lines_count_at_once(run: Run, feed: Feed) -> None:
    """More than one transaction holds."""
    run("stream", "create", "visits", *EXACT)

    assert values(feed(b"x\n" * 2500)) == [2500]


def test_a_line_in_pieces_counts_where_it_ends(run: Run, feed: Feed) -> None:
    """What has begun is no event yet."""
    run("stream", "create", "visits", *EXACT)

    assert values(feed(b"a\nbe", b"gun", b" and ended\n")) == [1, 1, 2]


def test_what_is_shown_does_not_depend_on_events(run: Run, feed: Feed, clock: Clock) -> None:
    """Other events, as many or none: the same lines at the same times, but for the counts; no file of the
    public side has another size.
    """
    shown: list[object] = []
    sizes = []
    for pieces in ([b"", b"", b""], [b"x\n" * 500, b"", b"y\n"], [b"", b"z" * 9000, b"\n\n"]):
        clock.now, name = 0, f"counter-{len(shown)}"
        run("stream", "create", name, "--epsilon", "1", "--period", "1m")
        done = feed(*pieces, arguments=(name,))
        assert len(values(done)) == 3
        shown.append(public(done))
        sizes.append(os.path.getsize(f"{name}.outputs"))

    assert shown == [shown[0]] * 3
    assert sizes == [sizes[0]] * 3


def test_missed_periods_are_closed_first(run: Run, feed: Feed, clock: Clock) -> None:
    """They are empty: what comes now counts now."""
    run("stream", "create", "visits", *EXACT)
    clock.now = 185 * 10**9

    assert values(feed(b"late\n")) == [0, 0, 0, 1]


def test_a_counter_goes_on(run: Run, feed: Feed) -> None:
    """From one command to the next; lines without a feeder are new ones."""
    run("stream", "create", "visits", *EXACT)

    assert values(feed(b"a\nb\n")) == [2]
    assert values(feed(b"a\nb\n", b"c\n")) == [4, 5]


def test_lines_of_a_later_session_are_new(run: Run, feed: Feed) -> None:
    """They are numbered from 1 again, and none of them is taken for one of an earlier session."""
    run("stream", "create", "visits", *EXACT)

    assert values(feed(b"1\n2\n3\n")) == [3]
    assert values(feed(b"4\n5\n")) == [5]


def test_replayed_lines_count_once(run: Run, feed: Feed) -> None:
    """Input that is fed again from its beginning counts from where it got to."""
    run("stream", "create", "visits", *EXACT)
    named = ("visits", "--replay", "gate")

    assert values(feed(b"1\n2\n3\n", arguments=named)) == [3]
    assert values(feed(b"1\n2\n", b"3\n4\n", arguments=named)) == [3, 4]


def test_at_user_level_a_line_is_a_person_and_an_id(run: Run, feed: Feed) -> None:
    """Ids count once for each person, and no more of them than contributions."""
    run("stream", "create", "visits", *EXACT, "--contributions", 2)

    done = feed(b"ann 1\nann 1\nbob 1\n", b"ann 2\nann 3\nann 4\n", b"bob 2\n\n")

    assert values(done) == [2, 3, 5]


def test_a_pan_private_counter_is_fed(run: Run, feed: Feed, clock: Clock) -> None:
    """It has no list of lines, and refuses a replay that would need one."""
    run("stream", "create", "visits", *EXACT, "--mechanism", "pan-private", "--horizon", 64)

    assert values(feed(b"a\nb\n", b"c\n")) == [2, 3]
    assert feed(arguments=("visits", "--replay", "gate")).code == 2
    assert not Path("visits.db").exists()


def test_outputs_are_json_if_asked(run: Run, feed: Feed) -> None:
    """One object for each period."""
    run("stream", "create", "visits", *EXACT)

    done = feed(b"a\n", b"", arguments=("visits", "--json"))

    assert [record["value"] for record in done.records] == [1, 1]
    assert done.records[1]["end"] == "1970-01-01T00:02:00+00:00"


def test_a_counter_ends_with_its_horizon(run: Run, feed: Feed) -> None:
    """All is well if its input ends by then; to feed it again is refused."""
    run("stream", "create", "visits", *EXACT, "--horizon", 2)

    assert values(feed(b"a\n", b"b\n")) == [1, 2]
    again = feed(b"e\n")
    assert (again.code, again.out) == (1, "")
    assert "2 periods in all" in again.err


@pytest.mark.parametrize("later", [(b"c\n", b"d\n"), (b"", b"")])
def test_a_counter_that_ends_before_its_input_is_an_error(
    run: Run, feed: Feed, later: tuple[bytes, bytes]
) -> None:
    """All outputs are printed, and then that no more is counted: the same words whether or not more came."""
    run("stream", "create", "visits", *EXACT, "--horizon", 2)

    done = feed(b"a\n", b"b\n", *later)

    assert (done.code, [line.split()[-1] for line in done.out.splitlines()]) == (1, ["1.0", "2.0"])
    assert complaints(done) == [
        "partita: error: the counter has 2 periods in all, and they are over; "
        "what comes now is not counted, start a new one for it"
    ]


def test_lines_beyond_the_horizon_are_not_taken_for_counted(run: Run, clock: Clock) -> None:
    """A feeder whose lines the counter refuses has not ended, and has not failed."""
    run("stream", "create", "visits", "--epsilon", "1", "--period", "1m", "--horizon", 1)
    read, write = os.pipe()
    with resume_counter("visits", now=0) as counter:
        counter.tick(now=60)
        feeder = Feeder(counter, None)
        os.write(write, b"late\n")
        os.close(write)
        feeder.start(read)
        _join_feeders()

    os.close(read)
    assert (feeder.has_ended(), feeder.failed.is_set()) == (False, False)


def test_run_closes_periods_and_counts_nothing(run: Run, feed: Feed, clock: Clock) -> None:
    """Once, those that have ended; else until the end of the counter."""
    run("stream", "create", "visits", *EXACT, "--horizon", 5)
    clock.now = 125 * 10**9

    assert values(run("stream", "run", "visits", "--once")) == [0, 0]
    assert values(run("stream", "run", "visits", "--once")) == []
    assert values(run("stream", "run", "visits")) == [0, 0, 0]


def test_what_stops_the_feeder_stops_the_command(
    run: Run, feed: Feed, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is said; nothing else is."""

    def full(self: DurableCounter, events: object) -> None:
        raise StreamError("counter file cannot grow") from RuntimeError(CANARY)

    run("stream", "create", "visits", *EXACT)
    monkeypatch.setattr(DurableCounter, "add_many", full)

    done = feed(b"a\n", b"", b"")

    assert (done.code, done.out, complaints(done)) == (1, "", ["partita: error: counter file cannot grow"])


def test_a_counter_has_one_writer(run: Run, feed: Feed, clock: Clock) -> None:
    """Who comes second is told, and whoever only reads is not disturbed."""
    run("stream", "create", "visits", "--epsilon", "1", "--period", "1m")
    feed(b"a\n")

    with resume_counter("visits"):
        busy, read = run("stream", "run", "visits", "--once"), run("stream", "read", "visits")

    assert (busy.code, busy.out) == (1, "")
    assert "one writer" in busy.err
    assert len(values(read)) == 1


TIMES = """\
when,what
1969-12-31T23:00,before
1970-01-01T00:00:10,a
1970-01-01T00:00:50+00:00,b
,none
1970-01-01T00:01:10,seconds
not a time,c
1970-01-01T02:04,zoned
1999-01-01,after
"""


STRETCH = ("--start", "1970-01-01", "--end", "1970-01-01T00:04")


@pytest.mark.parametrize("column", [True, False])
def test_a_file_of_times_is_fed(run: Run, clock: Clock, column: bool) -> None:
    """Each time in its period, those outside at the ends, and what is no time nowhere."""
    run("stream", "create", "visits", *EXACT)
    bare = "".join(f"{line.partition(',')[0]}\n" for line in TIMES.splitlines())
    Path("times.csv").write_text(TIMES if column else bare)
    feed = ("stream", "feed", "visits", "--file", "times.csv", *STRETCH, *["--column", "when"][: 2 * column])

    assert values(run(*feed)) == [3, 4, 4, 6]
    assert "feeder must be named" in run(*feed).err
    assert values(run(*feed, "--feeder", "timestamps")) == []
    assert values(run("stream", "read", "visits")) == [3, 4, 4, 6]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--file", "times.csv"), "needs --start and --end"),
        (("--file", "times.csv", "--start", "1970-01-01"), "needs --start and --end"),
        (("--start", "1970-01-01"), "pass --file too"),
        (("--column", "when"), "pass --file too"),
        (("--feeder", "gate"), "pass --file too"),
        (("--file", "times.csv", *STRETCH, "--replay", "gate"), "--replay is about stdin"),
    ],
)
def test_what_goes_together_is_said(run: Run, clock: Clock, arguments: tuple[str, ...], said: str) -> None:
    """Which periods a file is about is public, and nobody guesses it from the data."""
    run("stream", "create", "visits", *EXACT)

    done = run("stream", "feed", "visits", *arguments)

    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_no_message_about_a_file_shows_its_contents(run: Run, clock: Clock) -> None:
    """A column that is not there, a file that is not there, and one that cannot be read."""
    run("stream", "create", "visits", *EXACT)
    stretch = ("--start", "1970-01-01", "--end", "1970-01-01T00:04", "--column", "when")
    errors = []
    Path("times.csv").write_text(f"{CANARY},b\n1,2\n")
    for name in ("times.csv", "nowhere.csv", "."):
        errors.append(run("stream", "feed", "visits", "--file", name, *stretch))

    assert [done.code for done in errors] == [1, 1, 1]
    assert not re.search(f"{CANARY}|Traceback", "".join(done.err + done.out for done in errors))


@pytest.mark.parametrize("line", ['1970-01-01T00:01,"open', "x" * 200_000, "1970-01-01T00:01\ra", "\0", '"'])
def test_no_line_of_a_file_changes_another(run: Run, clock: Clock, line: str) -> None:
    """A quote that is never closed, a cell too long for CSV, odd signs: other lines count as they did."""
    stretch = ("--start", "1970-01-01", "--end", "1970-01-01T00:02", "--column", "when")
    totals = []
    for name, extra in (("with", f"{line}\n"), ("without", "")):
        Path("times.csv").write_text(f"when,what\n1970-01-01,a\n{extra}1970-01-01,b\n1970-01-01,c\n")
        run("stream", "create", name, *EXACT)
        totals.append(values(run("stream", "feed", name, "--file", "times.csv", *stretch))[-1])

    assert totals[1] == 3
    assert 0 <= totals[0] - totals[1] <= 1


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_are_the_same_in_any_pieces(size: int) -> None:
    """However the input was cut, it has the same lines."""
    text, lines = b"one\n\ntwo three\n" + b"x" * 9 + b"\nlast", LineReader()
    pieces = [text[place : place + size] for place in range(0, len(text), size)]

    assert [line for piece in pieces for line in lines.more(piece)] + lines.rest() == text.split(b"\n")


def test_a_line_takes_little_memory() -> None:
    """Of a line without end only the beginning is kept."""
    lines = LineReader()
    for _ in range(100):
        assert lines.more(b"x" * 10_000) == []

    assert [len(line) for line in lines.rest()] == [4096]


@pytest.mark.faults
@pytest.mark.parametrize("act", ["feed", "run"])
def test_an_interrupted_command_ends_quietly(run: Run, folder: Path, act: str) -> None:
    """Ctrl-C while it waits for a period to end: exit code 130, how to go on, and nothing about debits."""
    paid = ("--ledger", folder / "budget.db")
    run("ledger", "open", "people", "--epsilon", 1, "--unit", "event")
    run("stream", "create", "visits", "--epsilon", "1", "--period", "1w", *paid, "--dataset", "people")
    patch = "import partita.cli.stream as place\nplace._sleep = stop"

    done = interrupted(patch, "stream", act, folder / "visits", *paid)

    assert done == (
        130,
        "partita: interrupted; go on with `partita stream feed` or `partita stream run`\n",
    )
    assert run("stream", "run", "visits", "--once", *paid).code == 0


def test_help_says_that_a_line_of_csv_is_an_event(run: Run) -> None:
    """Whoever feeds a CSV file is told what they state: no field of it holds a line feed."""
    said = " ".join(run("stream", "feed", "--help").out.split())

    assert "no field holds a line feed, since every line is one event" in said
