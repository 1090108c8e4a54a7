"""A durable counter that is pan-private: two slots, no log, and a lost period is lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from partita.errors import InvalidParameter, StreamBusy, StreamError, StreamForked
from partita.guarantee import Guarantee
from partita.streams.durable import open_counter, resume_counter
from partita.streams.slots_file import PanStore
from partita.testing import RecordingNoise, ZeroNoise
from tests.streams.durable.conftest import Opener

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

    assert before == {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}


def test_numbers_rise(opened: Opener) -> None:
    """A delivery counts if its number is above all before, also after a restart; one without always does."""
    with opened(**PAN) as counter:
        for count, sequence in [(1, 1), (10, 1), (100, 5), (1000, 4), (10_000, None)]:
            counter.add(count, sequence=sequence)
        counter.tick(now=1)
    with opened(**PAN) as counter:
        counter.add(10**6, sequence=5)
        counter.add(1, sequence=6)
        counter.tick(now=2)

        assert totals(counter) == [10_101, 10_102]


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
        assert counter._keeper.counter._start == 0  # type: ignore[union-attr]
    with opened(**PAN) as counter:
        assert counter._keeper.counter._start == 3  # type: ignore[union-attr]


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
        stored = counter._keeper.counter.exact  # type: ignore[union-attr]
        assert counter.periods == 2
    with opened(**PAN, noise=None) as counter:
        assert [output.exact for output in counter.outputs()][2:] == [stored]


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
    """Each period is a delivery with a public number."""
    counter = opened(**PAN)
    for _ in range(2):
        counter.feed_timestamps([2.5, 3.5, 3.7, 99], start=2, end=6)

    assert totals(counter) == [0, 0, 1, 3, 3, 4]


def test_what_is_on_disk_knows_periods_and_nothing_of_events(opened: Opener, tmp_path: Path) -> None:
    """After many events without numbers the sequence number is as at first."""
    with opened(**PAN) as counter:
        for _ in range(20):
            counter.add()
        counter.tick(now=1)
    with PanStore(tmp_path / "visits.pan") as store:
        saved = store.load()

    assert saved is not None
    assert saved.sequence == 0
