"""The clock does not wait for a batch: one transaction at most."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from partita.errors import HorizonReached
from partita.trusted.durable.events import Event
from partita.trusted.durable.journal import Journal
from partita.trusted.durable.stream import ClockPriorityLock, DurableCounter
from tests.trusted.streams.durable.conftest import Opener

Sizes = list[int]


def batch_of(number: int) -> list[Event]:
    return [Event("gate", sequence) for sequence in range(number)]


@pytest.fixture
def each_transaction(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], None]], Sizes]:
    """Calls a function within each transaction of events, and says how many each of them holds."""

    def watched(act: Callable[[int], None]) -> Sizes:
        sizes, add = Sizes(), Journal.add

        def adding(self: Journal, events: Any, **named: Any) -> None:
            sizes.append(len(events))
            add(self, events, **named)
            act(len(sizes))

        monkeypatch.setattr(Journal, "add", adding)
        return sizes

    return watched


@contextmanager
def waiting_clock(counter: DurableCounter, now: int) -> Iterator[Callable[[int], None]]:
    """A clock that comes within the second transaction, and is at the door when that goes on."""
    clock = threading.Thread(target=counter.tick, args=(now,))

    def come(transaction: int) -> None:
        if transaction == 2:
            clock.start()
            while not counter._lock._due:
                pass

    yield come
    clock.join(60)


def test_a_batch_is_some_transactions(
    opened: Opener, each_transaction: Callable[[Callable[[int], None]], Sizes]
) -> None:
    """Of a thousand events each; all of them count."""
    counter, sizes = opened(), each_transaction(lambda transaction: None)
    counter.add_many(batch_of(2500))

    assert sizes == [1000, 1000, 500]
    assert counter.tick(now=1)[0].value == 2500


def test_a_period_that_ends_waits_for_one_transaction(
    opened: Opener, each_transaction: Callable[[Callable[[int], None]], Sizes]
) -> None:
    """The clock has the next turn, and the whole call counts in the period that is open at its end."""
    counter = opened()
    with waiting_clock(counter, now=1) as come:
        each_transaction(come)
        counter.add_many(batch_of(5000))
    counter.tick(now=2)

    assert [output.value for output in counter.outputs()] == [0, 5000]


def test_a_batch_that_the_horizon_cuts_is_an_error(
    opened: Opener, each_transaction: Callable[[Callable[[int], None]], Sizes]
) -> None:
    """Nothing of a call counts that was not stored before the last period ended, and the error says so."""
    counter = opened(horizon=1)
    with waiting_clock(counter, now=1) as come:
        each_transaction(come)
        with pytest.raises(HorizonReached):
            counter.add_many(batch_of(5000))

    assert counter.value == 0


def test_the_urgent_goes_first() -> None:
    """Whoever had a turn gets another one only after the clock, every time."""
    lock, order = ClockPriorityLock(), []

    def tick() -> None:
        with lock.for_clock():
            order.append("clock")

    for _ in range(100):
        clock = threading.Thread(target=tick)
        with lock.for_others():
            clock.start()
            while not lock._due:
                pass
        with lock.for_others():
            order.append("feeder")
        clock.join(60)

    assert order == ["clock", "feeder"] * 100


def test_a_clock_that_fails_lets_others_go_on() -> None:
    """Nobody waits for it any more."""
    lock = ClockPriorityLock()
    with pytest.raises(ZeroDivisionError), lock.for_clock(), lock.for_clock():
        raise ZeroDivisionError
    with lock.for_others():
        assert not lock._due
