"""One call is one moment: all of it counts in one period, and no period waits for it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import HorizonReached, StreamError
from partita.public.streams import Settings
from partita.testing import ZeroNoise
from partita.trusted.durable import journal
from partita.trusted.durable.events import CheckedEvent, Event, check_events, group_calls
from partita.trusted.durable.journal import SCHEMA, Journal, forget, remember
from partita.trusted.durable.open import open_counter, open_family
from partita.trusted.durable.slots import _pieces
from partita.trusted.durable.stream import DurableStream
from partita.trusted.sources.spark import session
from partita.trusted.sources.spark.session import Cluster

KEYS = ("north", "south")
PORTION = 4
"""How many events a transaction has here."""

Turns = set[int]
KINDS = ("counter", "family", "users", "pan-private")


@pytest.fixture(autouse=True)
def _short_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few events in a transaction, and nobody waits for the disk: nothing here is about power cuts."""
    monkeypatch.setattr(journal, "AT_ONCE", PORTION)
    careless = ("PRAGMA locking_mode = EXCLUSIVE", "PRAGMA synchronous = OFF")
    monkeypatch.setattr(journal, "_FORMAT", replace(journal._FORMAT, pragmas=careless))


def opened(path: Path, kind: str) -> Any:
    """A stream of this kind without noise, over eight periods of a second."""
    usual: dict[str, Any] = {
        "epsilon": 1,
        "period": 1,
        "horizon": 8,
        "start": 0,
        "now": 0,
        "noise": ZeroNoise(),
    }
    if kind == "family":
        return open_family(path, keys=KEYS, **usual)
    kinds: dict[str, dict[str, Any]] = {
        "counter": {},
        "users": {"contributions": 3},
        "pan-private": {"mechanism": "pan-private"},
    }
    return open_counter(path, **(usual | kinds[kind]))


def events(kind: str, count: int) -> list[Event]:
    """Events of this kind; every third one is large, and under another key."""
    made = []
    for number in range(count):
        size = 500 if number % 3 == 2 else 1
        if kind == "family":
            made.append(Event("gate", number, {KEYS[number % 2]: size}))
        elif kind == "users":
            made.append(Event(f"p{number % 5}", number))
        elif kind == "pan-private":
            made.append(Event(None, None, size))
        else:
            made.append(Event("gate", number, size))
    return made


def one_more(kind: str) -> Event:
    """An event that is in the one stream and not in the other."""
    if kind == "family":
        return Event("door", 1, {"north": 1})
    return {
        "counter": Event("door", 1),
        "users": Event("somebody else", 1),
        "pan-private": Event(None, None),
    }[kind]


class Clock:
    """Closes a period between two transactions of events, after those with given numbers."""

    def __init__(self, patch: pytest.MonkeyPatch, after: Turns) -> None:
        self._stored, self._seconds, self._due = 0, 0, False
        add, feeding = Journal.add, DurableStream._feeding

        def adding(store: Journal, *given: Any, **named: Any) -> None:
            add(store, *given, **named)
            self._stored += 1
            self._due = self._stored in after

        def turn(stream: DurableStream[Any]) -> AbstractContextManager[None]:
            if self._due:
                self._due = False
                self._seconds += 1
                stream.tick(now=self._seconds)
            return feeding(stream)

        patch.setattr(Journal, "add", adding)
        patch.setattr(DurableStream, "_feeding", turn)


def cells(stream: Any) -> list[tuple[int, ...]]:
    """What each period has counted, for each key."""
    stream.tick(now=6)
    totals = [
        tuple(map(int, output.exact.values() if isinstance(output.exact, dict) else (output.exact,)))
        for output in stream.outputs()
    ]
    before = [(0,) * len(totals[0]), *totals]
    return [tuple(b - a for a, b in zip(*pair, strict=True)) for pair in zip(before, totals, strict=False)]


def changed(one: list[tuple[int, ...]], other: list[tuple[int, ...]]) -> list[int]:
    """By how much the cells differ, where they do."""
    pairs = zip(one, other, strict=True)
    return [b - a for first, second in pairs for a, b in zip(first, second, strict=True) if a != b]


@pytest.fixture
def fed(tmp_path: Path) -> Callable[..., list[tuple[int, ...]]]:
    """Feeds a new stream while the clock takes its turns: what each period counted then."""
    numbers = iter(range(1000))

    def feed(kind: str, turns: Turns, feeding: Callable[[Any], None]) -> list[tuple[int, ...]]:
        with opened(tmp_path / f"stream-{next(numbers)}", kind) as stream:
            with pytest.MonkeyPatch.context() as patch:
                Clock(patch, turns)
                feeding(stream)
            return cells(stream)

    return feed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("turns", [{1}, {2}, {1, 2}])
def test_one_event_more_changes_one_cell(fed: Any, kind: str, turns: Turns) -> None:
    """With turns of the clock between portions, an event at the front moves no other event."""
    for count in (9, 11):
        rest = events(kind, count)
        without = fed(kind, turns, lambda stream, rest=rest: stream.add_many(rest))
        with_it = fed(kind, turns, lambda stream, rest=rest: stream.add_many([one_more(kind), *rest]))
        assert changed(without, with_it) == [1]
        assert len([cell for cell in with_it if any(cell)]) == 1


@pytest.mark.parametrize("kind", ["counter", "family"])
@pytest.mark.parametrize("turns", [{1}, {2}, {1, 2}])
def test_one_event_more_in_a_request_moves_no_other_request(fed: Any, kind: str, turns: Turns) -> None:
    """Requests that are stored together count each at its moment, whatever the others hold."""
    single = Event("far gate", 1, {"south": 7} if kind == "family" else 7)
    for listed in (events(kind, 1), events(kind, 3)):
        for requests in ([listed, single, single], [single, listed, single]):
            longer = [[one_more(kind), *each] if each is listed else each for each in requests]
            without = fed(kind, turns, lambda stream, calls=requests: stream.add_calls(calls))
            with_it = fed(kind, turns, lambda stream, calls=longer: stream.add_calls(calls))
            assert changed(without, with_it) == [1]


def test_single_events_are_put_together_by_their_number() -> None:
    """A list stays alone, whatever its length, and breaks a row of single events."""
    a, b, c, d = (CheckedEvent("gate", number, ((0, 1),)) for number in range(4))

    assert list(group_calls([a, b, c, d], most=3)) == [[a, b, c], [d]]
    assert list(group_calls([a, [b], c, d], most=3)) == [[a], [b], [c, d]]
    assert list(group_calls([[], [a, b]], most=3)) == [[], [a, b]]


def test_a_period_that_ends_has_nothing_of_a_call_that_is_being_stored(fed: Any) -> None:
    """It does not wait, and the call counts as a whole in the period that is open when it is complete."""
    for turns, period in (({1}, 1), ({1, 2}, 2), ({3}, 0)):
        counted = fed("counter", turns, lambda stream: stream.add_many(events("counter", 11)))
        assert [index for index, (count,) in enumerate(counted) if count] == [period]


@pytest.mark.parametrize("kind", ["counter", "family", "users"])
def test_nothing_is_left_of_a_call_that_was_counted_but_its_count(kind: str, tmp_path: Path) -> None:
    """Sent again it counts nothing, and its notes are removed."""
    with opened(tmp_path / "visits", kind) as stream:
        for _ in range(2):
            stream.add_many(events(kind, 11))
        counted = cells(stream)
    with opened(tmp_path / "other", kind) as stream:
        for event in events(kind, 11):
            stream.add_many([event])
        assert cells(stream) == counted

    assert tables(tmp_path / "visits.db") == tables(tmp_path / "other.db")


def tables(path: Path) -> dict[str, list[Any]]:
    """What a closed secret file remembers of events."""
    names = ("runs", "deliveries", "people", "staged")
    with closing(sqlite3.connect(path)) as connection:
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names}


def mixed(kind: str) -> list[Event]:
    """Numbers with gaps, texts, and numbers that are known; persons who have come before."""
    if kind == "users":
        return events(kind, 13)
    known = {"family": {"north": 2}}.get(kind, 2)
    numbers: list[int | str] = [9, 3, "a text", 5, 4, 1, 30, "another", 2, 31, 29, 7, 8]
    return [Event("gate", number, known) for number in numbers]


class Cut(BaseException):
    """The process is killed here."""


def cut_after(patch: pytest.MonkeyPatch, transactions: int, error: type[BaseException]) -> None:
    """Fail in the transaction after so many."""
    add, done = Journal.add, iter(range(transactions))

    def adding(store: Journal, *given: Any, **named: Any) -> None:
        if next(done, None) is None:
            raise error("the disk is full")
        add(store, *given, **named)

    patch.setattr(Journal, "add", adding)


@pytest.mark.parametrize("kind", ["counter", "family", "users"])
@pytest.mark.parametrize("portions", [1, 2, 3])
def test_a_call_that_is_killed_counts_nothing_and_is_forgotten(
    kind: str, portions: int, tmp_path: Path
) -> None:
    """After a restart the file remembers what it did before the call; sent again, all of it counts once."""
    path, before = tmp_path / "visits", [one_more(kind), *mixed(kind)[5:7]]
    with opened(path, kind) as stream:
        stream.add_many(before)
    known = tables(path.with_suffix(".db"))
    with opened(path, kind) as stream, pytest.MonkeyPatch.context() as patch:
        cut_after(patch, portions, Cut)
        patch.setattr(DurableStream, "_settle_calls", lambda stream: None)
        with pytest.raises(Cut):
            stream.add_many(mixed(kind))
    assert tables(path.with_suffix(".db"))["staged"] != []
    opened(path, kind).close()
    assert tables(path.with_suffix(".db")) == known
    with opened(path, kind) as stream:
        stream.add_many(mixed(kind))
        counted = cells(stream)
    with opened(tmp_path / "other", kind) as stream:
        stream.add_many(before)
        stream.add_many(mixed(kind))
        assert cells(stream) == counted


@pytest.mark.parametrize("kind", ["counter", "family", "users"])
def test_a_call_that_the_disk_refuses_counts_nothing(kind: str, tmp_path: Path) -> None:
    """Others go on in the same process, and the call may be made again."""
    with opened(tmp_path / "visits", kind) as stream:
        with pytest.MonkeyPatch.context() as patch:
            cut_after(patch, 2, StreamError)
            with pytest.raises(StreamError):
                stream.add_many(mixed(kind))
        stream.add_many([one_more(kind)])
        stream.tick(now=1)
        stream.add_many(mixed(kind))
        first, second, *_ = cells(stream)
    with opened(tmp_path / "other", kind) as stream:
        stream.add_many(mixed(kind))
        whole, *_ = cells(stream)

    assert (sum(first), second) == (1, whole)


@pytest.mark.parametrize("kind", ["counter", "users"])
def test_what_could_not_be_undone_is_undone_by_the_next_call(kind: str, tmp_path: Path) -> None:
    """If the disk refuses that too, nothing else counts until it is done."""

    def refuse(*_: Any) -> bool:
        raise StreamError("full")

    with opened(tmp_path / "visits", kind) as stream:
        with pytest.MonkeyPatch.context() as patch:
            cut_after(patch, 2, StreamError)
            patch.setattr(journal, "drop_portion", refuse)
            for _ in range(2):
                with pytest.raises(StreamError):
                    stream.add_many(mixed(kind))
        stream.add_many([one_more(kind)])

        assert sum(cells(stream)[0]) == 1


def test_a_tick_that_fails_between_portions_loses_nothing_of_the_call(tmp_path: Path) -> None:
    """The total of a call outlives the counter in memory, which is dropped and read again."""
    with opened(tmp_path / "visits", "counter") as stream:
        add, done = Journal.add, iter(range(2))

        def adding(store: Journal, *given: Any, **named: Any) -> None:
            add(store, *given, **named)
            if next(done, None) == 1:
                store._counter = None

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Journal, "add", adding)
            stream.add_many([Event("gate", number) for number in range(11)])

        assert cells(stream)[0] == (11,)


def test_a_call_whose_last_period_ends_counts_nothing(tmp_path: Path) -> None:
    """It is refused as a whole, and nothing of it is known."""
    usual: dict[str, Any] = {"epsilon": 1, "period": 1, "horizon": 1, "start": 0, "now": 0}
    with open_counter(tmp_path / "visits", noise=ZeroNoise(), **usual) as stream:
        with pytest.MonkeyPatch.context() as patch:
            Clock(patch, {2})
            with pytest.raises(HorizonReached):
                stream.add_many(events("counter", 11))
        assert stream.value == 0

    assert tables(tmp_path / "visits.db")["runs"] == []


@given(st.lists(st.integers(0, 15), unique=True), st.lists(st.integers(0, 15), unique=True))
def test_what_is_forgotten_was_never_known(before: list[int], call: list[int]) -> None:
    """For any numbers before, and any of a call that come in any order, the runs are as they were."""
    settings = Settings.of(
        mechanism="counter",
        epsilon=1,
        period=1,
        start=0,
        horizon=8,
        change=1,
        contributions=1,
        unit=None,
        dataset=None,
        options={},
        counter="0" * 32,
    )
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(SCHEMA)

        def runs() -> list[Any]:
            return connection.execute("SELECT * FROM runs ORDER BY first").fetchall()

        def new(numbers: list[int]) -> list[CheckedEvent]:
            checked = check_events([Event("gate", number) for number in numbers], settings)
            return [event for event in checked if remember(connection, event, settings)]

        assert len(new(before)) == len(before)
        known = runs()
        for event in new(call):
            forget(connection, event, settings)

        assert runs() == known


@pytest.mark.parametrize("total", [0, 1, -1, 2**62, -(2**62), 2**63 - 1, -(2**63), 2**63, 10**30, -(10**30)])
def test_a_total_of_any_size_is_counted_modulo_the_cells(total: int) -> None:
    """In pieces that a counter takes, always as many."""
    pieces = list(_pieces(total))

    assert len(pieces) == 3
    assert all(abs(piece) < 2**62 for piece in pieces)
    assert (sum(pieces) - total) % 2**64 == 0


def test_a_micro_batch_of_spark_is_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it has many events of persons: none of it can count in another period than the rest."""
    calls: list[list[Event]] = []
    made = [Event(f"p{number}", number) for number in range(25_000)]

    def found(*_: object) -> Iterator[Event]:
        return iter(made)

    counter: Any = SimpleNamespace(add_many=lambda some: calls.append(list(some)))
    context = SimpleNamespace(getLocalProperty=lambda name: "query")
    batch: Any = SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=context))
    monkeypatch.setattr(Cluster, "of", lambda frame: None)
    monkeypatch.setattr(session, "number_columns", lambda frame, columns: frame)
    columns: Sequence[str] = ("person", "id")
    session._Sink(counter, "visits", tuple(columns), found)(batch, 1)

    assert calls == [made]
