"""A restart changes nothing that was published, and loses nothing that was acknowledged."""

from __future__ import annotations

import shutil

import pytest

from partita.errors import StreamError, StreamForked
from partita.public.streams import SECOND
from partita.service.steward.app import steward_app
from partita.service.steward.streams import PeriodClock
from tests.service.streams.conftest import Service
from tests.trusted.streams.durable.test_pan_file import stored


def test_a_restart_loses_nothing_and_changes_nothing(service: Service) -> None:
    """Published periods stay, acknowledged events count once, and missed periods are closed."""
    service.create()
    service.create("regions", keys=["north", "south"], horizon=100)
    service.feed({"count": 3})
    service.at(11)
    service.feed({"count": 4}, "k2")
    service.feed({"counts": {"south": 9}}, "k2", name="regions")
    before = (service.folder / "visits.outputs").read_bytes()
    service.stop()
    service.nanoseconds = 41 * SECOND
    service.start()
    for key, count in (("k1", 3), ("k2", 4)):
        assert service.feed({"count": count}, key).status_code == 204
    service.at(51)

    assert (service.folder / "visits.outputs").read_bytes().startswith(before)
    assert service.values() == [3, 7, 7, 7, 7]
    assert service.values("regions")[0] == {"north": 0, "south": 0}
    assert service.values("regions")[-1] == {"north": 0, "south": 9}


def test_an_old_copy_of_a_state_keeps_the_service_from_starting(service: Service) -> None:
    """It would publish periods twice."""
    service.create()
    service.stop()
    copies = {path: path.read_bytes() for path in service.secret.iterdir()}
    service.start()
    service.at(11)
    service.stop()
    for path, content in copies.items():
        path.write_bytes(content)

    with pytest.raises(StreamForked):
        steward_app(service.settings, now=service.now).state.streams.resume()


def test_a_state_without_its_public_file_keeps_the_service_from_starting(service: Service) -> None:
    """Nothing tells whether it is the latest."""
    service.create()
    service.at(11)
    service.stop()
    (service.folder / "visits.outputs").unlink()

    with pytest.raises(StreamError):
        steward_app(service.settings, now=service.now).state.streams.resume()


def test_files_that_are_no_streams_are_left_alone(service: Service) -> None:
    """Locks, journals and what a crash left of a pan-private stream that was never begun."""
    service.create(mechanism="pan-private", horizon=64)
    service.stop()
    shutil.copy(service.secret / "visits.pan", service.secret / "visits.pan.bak")
    (service.secret / "notes.txt").write_text("of the steward")
    service.start()

    assert service.steward.state.streams.names() == ["visits"]


def test_a_pan_private_stream_has_no_cells_on_disk(service: Service) -> None:
    """Neither within a period nor after it, nor after a restart: the file has what was published."""
    service.create(mechanism="pan-private", horizon=64)
    path = service.secret / "visits.pan"
    for seconds in (10, 20, 30):
        service.feed({"count": 3}, key=None)
        assert not any(stored(path)["cells"])
        service.at(seconds)
        assert not any(stored(path)["cells"])
    service.stop()
    service.nanoseconds = 31 * SECOND
    service.start()

    assert not any(stored(path)["cells"])
    assert service.values() == [3, 6, 9]


def test_the_clock_ticks_when_any_period_ends_and_stops_when_told(service: Service) -> None:
    """It waits for the nearest end of all streams, and a second at most."""
    service.create(period=10)
    service.create("minutes", period="1m")
    streams = service.steward.state.streams
    clock = PeriodClock(streams, now=service.now)
    waits = []
    for seconds in (0, 9.75, 10, 59.5):
        service.nanoseconds = round(seconds * SECOND)
        waits.append(clock._until_next())
    with clock.run():
        pass

    assert waits == [SECOND, SECOND // 4, SECOND, SECOND // 2]
    assert streams.next_end() == 60 * SECOND
