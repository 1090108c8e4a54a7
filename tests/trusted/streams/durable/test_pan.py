"""A durable counter that is pan-private: two slots, no log, and a lost period is lost."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from partita.errors import InvalidData, InvalidParameter, StreamBusy, StreamError, StreamForked
from partita.guarantee import Guarantee
from partita.testing import RecordingNoise, ZeroNoise
from partita.trusted.durable.events import Event
from partita.trusted.durable.open import open_counter, resume_counter
from partita.trusted.durable.slots import PanStore
from tests.trusted.streams.durable.conftest import Opener

PAN: dict[str, Any] = {"mechanism": "pan-private", "horizon": 8}


def totals(counter: Any) -> list[int]:
    return [int(output.value) for output in counter.outputs()]


def test_it_counts_by_the_clock(opened: Opener, tmp_path: Path) -> None:
    """Events count in their period; there is a file of slots, the public file, and no database."""
    counter = opened(**PAN)
    counter.add(3)
    counter.tick(now=2)
    counter.add(2)
    counter.tick(now=3)

    assert totals(counter) == [3, 3, 5]
    assert sorted(os.listdir(tmp_path)) == ["visits.outputs", "visits.pan"]


def test_its_guarantee_covers_a_look(tmp_path: Path) -> None:
    """With noise from the kernel, before and after a restart."""
    expected = Guarantee(epsilon=1, unit="event", intrusions=1)
    with open_counter(tmp_path / "visits", epsilon=1, period=1, start=0, now=0, **PAN) as counter:
        assert counter.guarantee == expected
    with resume_counter(tmp_path / "visits", now=3) as counter:
        assert counter.guarantee == expected


def test_no_plain_count_waits_in_memory(opened: Opener) -> None:
    """Noise is drawn for the open period before any event comes, and again for its output."""
    noise = RecordingNoise(ZeroNoise())
    counter = opened(**PAN, noise=noise)
    drawn = len(noise.scales)
    counter.add(1000)
    quiet = len(noise.scales)
    counter.tick(now=1)

    assert 0 < drawn == quiet < len(noise.scales)


def test_the_state_on_disk_is_written_by_the_clock_only(opened: Opener, tmp_path: Path) -> None:
    """Events change no byte of any file until their period ends."""
    counter = opened(**PAN)
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    counter.add(3)
    counter.add(4, sequence=1)
    with pytest.raises(InvalidData):
        counter.add(4, sequence=2)

    assert before == {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ({"feeder": "gate"}, InvalidData),
        ({"feeder": "gate", "sequence": 2}, InvalidData),
        ({"sequence": 1}, InvalidData),
        ({"sequence": 3}, InvalidData),
        ({"sequence": 0}, InvalidData),
        ({"person": "ann"}, InvalidParameter),
        ({"id": 1}, InvalidParameter),
    ],
)
def test_nothing_is_known_of_an_event_but_its_period(
    opened: Opener, named: dict[str, Any], error: type[Exception]
) -> None:
    """Anything else is refused, and what was counted before in the open period stays."""
    counter = opened(**PAN)
    counter.tick(now=1)
    counter.add(3)
    with pytest.raises(error):
        counter.add(100, **named)
    counter.add(4, sequence=2)
    counter.add(5, sequence=2)

    assert counter.tick(now=2)[0].value == 12


def test_no_event_decides_whether_another_counts(opened: Opener, tmp_path: Path) -> None:
    """One event more, before or after all others, is one more in the output."""
    counts = []
    for place, before, after in (("a", 0, 0), ("b", 1, 0), ("c", 0, 1)):
        with open_counter(
            tmp_path / place, epsilon=1, period=1, start=0, now=0, noise=ZeroNoise(), **PAN
        ) as counter:
            counter.add_many([Event(None, 1)] * before + [Event(None, None)] * 9 + [Event(None, 1)] * after)
            counts.append(counter.tick(now=1)[0].value)

    assert counts == [9, 10, 10]


def test_a_lost_period_is_lost(opened: Opener) -> None:
    """What was counted after the last tick is gone after a restart, and the outputs go on."""
    with opened(**PAN) as counter:
        counter.add(3)
        counter.tick(now=1)
        counter.add(100)
    with opened(**PAN) as counter:
        counter.add(4)
        counter.tick(now=2)

        assert totals(counter) == [3, 7]


def test_a_restart_begins_a_new_block(opened: Opener) -> None:
    """The noise of a period that was lost is never used again: all of it is drawn afresh."""
    with opened(**PAN) as counter:
        counter.tick(now=3)
        assert counter._store.counter._start == 0  # type: ignore[union-attr]
    with opened(**PAN) as counter:
        assert counter._store.counter._start == 3  # type: ignore[union-attr]


def test_an_output_that_was_not_published_is_published_once(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between the state and the public file is made good at the next start, from the state."""
    with opened(**PAN, noise=None) as counter:
        counter.tick(now=2)
        with monkeypatch.context() as patched:
            patched.setattr(type(counter), "_publish", _die_after_the_first())
            with pytest.raises(KeyboardInterrupt):
                counter.tick(now=3)
        stored = counter._store.counter.exact  # type: ignore[union-attr]
        assert counter.periods == 2
    with opened(**PAN, noise=None) as counter:
        assert [output.exact for output in counter.outputs()][2:] == [stored]


def test_a_period_that_was_not_stored_is_not_published(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the file can be neither written nor read when a period ends, that output is never published."""
    with opened(**PAN) as counter:
        counter.add(3)
        counter.tick(now=1)
        counter.add(5)
        with monkeypatch.context() as patched:
            patched.setattr(os, "pwrite", _refused)
            patched.setattr(os, "pread", _refused)
            with pytest.raises(StreamError):
                counter.tick(now=2)
        assert totals(counter) == [3]
        counter.tick(now=2)

        assert totals(counter) == [3, 3]
    with opened(**PAN) as counter:
        assert totals(counter) == [3, 3]


def _refused(*_: object) -> None:
    raise OSError(errno.EIO, "refused")


def _die_after_the_first() -> Any:
    calls = iter([None])

    def publish(self: Any) -> None:
        if next(calls, "dead") == "dead":
            raise KeyboardInterrupt

    return publish


def test_old_states_are_refused(opened: Opener, tmp_path: Path) -> None:
    """The public file knows better; and outputs that are lost cannot be made up."""
    with opened(**PAN) as counter:
        counter.tick(now=1)
    old = (tmp_path / "visits.pan").read_bytes()
    with opened(**PAN) as counter:
        counter.tick(now=4)
    latest = (tmp_path / "visits.pan").read_bytes()
    (tmp_path / "visits.pan").write_bytes(old)
    with pytest.raises(StreamForked):
        opened(**PAN)
    (tmp_path / "visits.pan").write_bytes(latest)
    outputs = (tmp_path / "visits.outputs").read_bytes()
    (tmp_path / "visits.outputs").write_bytes(outputs[: 1024 + 64])
    with pytest.raises(StreamError, match="has lost outputs"):
        opened(**PAN)


def test_it_has_one_writer(opened: Opener) -> None:
    """A second one is refused."""
    with opened(**PAN), pytest.raises((InvalidParameter, StreamBusy)):
        opened(**PAN)


def test_feeding_times(opened: Opener) -> None:
    """What is refused is refused before anything is lost: no name is taken, no closed period fed again."""
    counter = opened(**PAN)
    counter.feed_timestamps([2.5, 3.5, 3.7, 99], start=2, end=6)
    counter.add(2)
    with pytest.raises(InvalidParameter, match=r"^start must be where no period is closed"):
        counter.feed_timestamps([5.5], start=5, end=7)
    with pytest.raises(InvalidData, match=r"^feeder must be None"):
        counter.feed_timestamps([6.5], start=6, end=7, feeder="gate")
    counter.feed_timestamps([6.5], start=6, end=7)

    assert totals(counter) == [0, 0, 1, 3, 3, 4, 7]


def test_what_is_on_disk_knows_periods_and_nothing_of_events(opened: Opener, tmp_path: Path) -> None:
    """After many events, with and without a number, the one on disk is that of the closed periods."""
    with opened(**PAN) as counter:
        for _ in range(20):
            counter.add()
            counter.add(sequence=1)
        counter.tick(now=3)
    with PanStore(tmp_path / "visits.pan") as store:
        saved = store.load()

    assert saved is not None
    assert saved.sequence == 3
