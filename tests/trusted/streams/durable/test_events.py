"""Events are counted once each, by feeder and number or by person and id."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import InvalidData, InvalidParameter
from partita.guarantee import Guarantee
from partita.public.streams import LARGEST, Settings
from partita.trusted.durable.events import CheckedEvent, Event, Name, check_events, split_events
from partita.trusted.durable.journal import SCHEMA, counted_by, remember
from tests.trusted.streams.durable.conftest import Opener


def made_settings(**named: object) -> Settings:
    usual: dict[str, object] = {
        "mechanism": "counter",
        "epsilon": 1,
        "period": 1,
        "start": 0,
        "horizon": None,
        "change": 1,
        "contributions": 1,
        "unit": None,
        "dataset": None,
        "options": {},
        "counter": "0" * 32,
    }
    return Settings.of(**(usual | named))  # type: ignore[arg-type]


@pytest.fixture
def tables() -> Iterator[sqlite3.Connection]:
    """The tables of a counter, in memory."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(SCHEMA)
        yield connection


def counted(connection: sqlite3.Connection, events: list[Event], settings: Settings) -> list[int]:
    return [
        sum(count for _, count in counted_by(event, settings)) if remember(connection, event, settings) else 0
        for event in check_events(events, settings)
    ]


def test_an_event_counts_once_for_its_feeder_and_number(opened: Opener) -> None:
    """The same number from another feeder is another event; after a restart it is still known."""
    with opened() as counter:
        for feeder, sequence in [("a", 1), ("a", 1), ("b", 1), ("a", 2), ("a", 1)]:
            counter.add(feeder=feeder, sequence=sequence)
        assert counter.tick(now=1)[0].value == 3
    with opened() as counter:
        counter.add(feeder="a", sequence=2)
        counter.add(feeder="b", sequence=2)
        assert counter.tick(now=2)[0].value == 4


def test_a_text_counts_once_for_its_feeder(opened: Opener, tmp_path: Path) -> None:
    """Whatever the count says, also after a restart; the text 1 is not the number 1, and none is stored."""
    with opened() as counter:
        counter.add(5, feeder="a", sequence="3f2a-secret")
        pairs: list[tuple[str, int | str]] = [
            ("a", "3f2a-secret"),
            ("b", "3f2a-secret"),
            ("a", 1),
            ("a", "1"),
        ]
        for feeder, sequence in pairs:
            counter.add(feeder=feeder, sequence=sequence)
        assert counter.tick(now=1)[0].value == 5 + 3
    with opened() as counter:
        counter.add(100, feeder="a", sequence="3f2a-secret")
        counter.add(1, feeder="a", sequence="k" * 200)
        counter.add(1, feeder="a3", sequence="f2a-secret")
        assert counter.tick(now=2)[0].value == 8 + 2

    assert b"3f2a" not in (tmp_path / "visits.db").read_bytes()


def test_a_text_takes_less_than_40_bytes(opened: Opener, tmp_path: Path) -> None:
    """For ever: 20,000 of them are remembered in less than 800,000 bytes."""
    with opened() as counter:
        before = (tmp_path / "visits.db").stat().st_size
        counter.add_many(Event("gate", f"key {number}") for number in range(20_000))
    grown = (tmp_path / "visits.db").stat().st_size - before

    assert 16 * 20_000 < grown < 40 * 20_000


def test_a_file_of_before_takes_texts(opened: Opener, tmp_path: Path) -> None:
    """The table for them is made when such a file is opened."""
    opened().close()
    with closing(sqlite3.connect(tmp_path / "visits.db")) as connection:
        connection.execute("DROP TABLE deliveries")
    with opened() as counter:
        for _ in range(2):
            counter.add(feeder="gate", sequence="a text")
        assert counter.tick(now=1)[0].value == 1


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 12)), max_size=60))
def test_any_order_of_numbers_counts_each_once(pairs: list[tuple[str, int]]) -> None:
    """Gaps and returns change nothing; the runs that are kept hold exactly the numbers that came."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(SCHEMA)
        fresh = counted(connection, [Event(*pair) for pair in pairs], made_settings())
        runs = connection.execute("SELECT feeder, first, last FROM runs ORDER BY feeder, first").fetchall()

    assert fresh == [int(pair not in pairs[:place]) for place, pair in enumerate(pairs)]
    assert {(feeder, n) for feeder, first, last in runs for n in range(first, last + 1)} == set(pairs)
    assert all(a[0] != b[0] or a[2] + 1 < b[1] for a, b in pairwise(runs))


def test_a_feeder_in_order_needs_one_row(tables: sqlite3.Connection) -> None:
    """However many events it sends, and wherever its numbers begin."""
    counted(tables, [Event("gate", number) for number in range(1000, 1500)], made_settings())

    assert tables.execute("SELECT * FROM runs").fetchall() == [("gate", 1000, 1499)]


def test_a_transaction_is_short_however_long_its_events_are() -> None:
    """Portions hold all events in order, and so many counts at most, unless one event has more."""
    lengths = [3, 0, 5, 1, 1, 12, 4, 6, 1]
    events = [CheckedEvent("gate", number, ((0, 1),) * length) for number, length in enumerate(lengths)]

    some = list(split_events(events, most=10))

    assert [event for portion in some for event in portion] == events
    assert [[len(event.counts) for event in portion] for portion in some] == [
        [3, 0, 5, 1],
        [1],
        [12],
        [4, 6],
        [1],
    ]
    assert list(split_events([], most=10)) == []


def test_an_id_counts_once_for_a_person_and_never_across_people(opened: Opener) -> None:
    """Two people with the same id move the count by two; 7 and "7" are two names."""
    counter = opened(unit="user", contributions=5)
    pairs: list[tuple[Name, Name]] = [("ann", 7), ("bob", 7), ("ann", 7), ("ann", "7"), (7, "ann")]
    for person, name in pairs:
        counter.add(person=person, id=name)

    assert counter.tick(now=1)[0].value == 4


def test_a_person_counts_no_more_often_than_agreed(opened: Opener) -> None:
    """The first events count, over all periods and restarts, and each by at most the change."""
    with opened(contributions=2, change=3) as counter:
        for event in range(5):
            counter.add(10, person="ann", id=event)
        counter.add(-10, person="bob", id=1)
        assert counter.tick(now=1)[0].value == 2 * 3 - 3
        assert counter.settings.guarantee == Guarantee(epsilon=1, unit="user", contributions=2)
    with opened(contributions=2, change=3) as counter:
        counter.add(person="ann", id=99)
        counter.add(person="bob", id=2)
        counter.add(person="bob", id=3)
        assert counter.tick(now=2)[0].value == 4


def test_one_person_moves_the_count_by_their_bound_at_most(tables: sqlite3.Connection) -> None:
    """Whatever a person sends, the others count as they would without that person."""
    settings = made_settings(contributions=2)
    others = [Event(f"p{i % 3}", i) for i in range(9)]
    mixed = [event for other in others for event in (Event("ann", other.number), other)]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as alone:
        alone.executescript(SCHEMA)
        without = counted(alone, others, settings)

    assert counted(tables, mixed, settings)[1::2] == without
    assert sum(counted(tables, mixed, settings)) == 0


def test_names_of_people_are_not_in_the_file(opened: Opener, tmp_path: Path) -> None:
    """What is kept of a person and an id is a digest of fixed size."""
    with opened(unit="user") as counter:
        counter.add(person="Ada Lovelace", id="admission-17")
    data = (tmp_path / "visits.db").read_bytes()

    assert b"Lovelace" not in data
    assert b"admission" not in data


def test_a_batch_counts_wholly_or_not_at_all(opened: Opener) -> None:
    """An event that is malformed is refused before any of its batch counts, and no error shows a value."""
    counter = opened()
    with pytest.raises(InvalidData) as refused:
        counter.add_many([Event("gate", 1), Event("gate", -271828)])
    counter.add_many([Event("gate", 1), Event("gate", 2, count=4)])

    assert "271828" not in str(refused.value)
    assert counter.tick(now=1)[0].value == 5


@pytest.mark.parametrize(
    "event",
    [
        Event("", 1),
        Event(None, 1),
        Event("gate", None),
        Event("gate", True),
        Event("gate", ""),
        Event("gate", "k" * 201),
        Event("gate", b"1"),
        Event("gate", 1, count={"north": 1}),
        Event("gate", 1, count=1.5),  # type: ignore[arg-type]
        Event("gate", 1, count=LARGEST),
        ("gate", 1),
    ],
)
def test_malformed_events_are_refused(event: Event) -> None:
    """The error names the rule."""
    with pytest.raises(InvalidData, match=r"must (be|have)"):
        check_events([event], made_settings())


def test_totals_stay_within_what_a_counter_takes(opened: Opener) -> None:
    """A period that would hold too much holds the most there is, and can still be closed."""
    counter = opened()
    for sequence in range(3):
        counter.add(LARGEST - 1, feeder="gate", sequence=sequence)

    assert counter.tick(now=1)[0].exact == LARGEST - 1


@pytest.mark.parametrize(
    ("unit", "names"),
    [("event", {"person": "ann", "id": 1}), ("user", {"feeder": "gate", "sequence": 1})],
)
def test_events_are_known_by_what_the_counter_was_opened_for(
    opened: Opener, unit: str, names: dict[str, Any]
) -> None:
    """People are capped, feeders are not: the two are never mixed."""
    with pytest.raises(InvalidParameter, match=r"^unit decides"):
        opened(unit=unit).add(**names)
