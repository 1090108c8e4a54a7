"""A streaming query feeds a durable counter: every event once, in the period that is open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from partita.errors import InvalidData, InvalidParameter, SourceError
from partita.testing import ZeroNoise
from partita.trusted.durable.open import open_counter, open_family
from partita.trusted.durable.stream import DurableCounter, DurableFamily

pytest.importorskip("pyspark", reason="PySpark is not installed")

from partita.trusted.sources.spark import session

pytestmark = pytest.mark.engines

START = 1_000_000


class Dying:
    """A counter whose process dies right after it was fed: nobody hears that it was."""

    def __init__(self, counter: Any) -> None:
        self.counter, self.settings, self.fed = counter, counter.settings, 0

    def add_many(self, events: Any) -> None:
        self.counter.add_many(events)
        self.fed += 1
        raise RuntimeError("died")


def events(spark: Any, folder: Path) -> Any:
    """A stream of the lines in a folder of files: a person, an id and a place each."""
    return spark.readStream.schema("person string, event string, place string").csv(str(folder))


def write(folder: Path, name: str, *lines: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(f"{line}\n" for line in lines))


def opened(path: Path, **settings: Any) -> DurableCounter:
    return open_counter(
        path, epsilon=1, period=60, horizon=8, start=START, now=START, noise=ZeroNoise(), **settings
    )


def family_of(folder: Path, **settings: Any) -> DurableFamily:
    return open_family(
        folder / "family",
        keys=["north", "south"],
        epsilon=1,
        period=60,
        horizon=8,
        start=START,
        now=START,
        noise=ZeroNoise(),
        **settings,
    )


def run(query: Any) -> None:
    try:
        query.processAllAvailable()
    finally:
        query.stop()


def die(query: Any) -> None:
    with pytest.raises(Exception, match="died"):
        query.processAllAvailable()
    query.stop()


def test_a_batch_that_comes_again_counts_once(spark: Any, tmp_path: Path) -> None:
    """The query dies between the feeding and Spark's note of it, and goes on: each event counts once."""
    files = tmp_path / "files"
    options: dict[str, Any] = {"feeder": "visits", "checkpoint": tmp_path / "checkpoint"}
    write(files, "1.csv", "p,1,north", "p,2,north", "q,1,south")
    with opened(tmp_path / "counter") as counter:
        dying: Any = Dying(counter)
        die(session.feed(events(spark, files), dying, **options))
        assert dying.fed == 1
        assert counter.periods == 0

        run(session.feed(events(spark, files), counter, **options))
        write(files, "2.csv", "q,2,south")
        run(session.feed(events(spark, files), counter, **options))
        [first] = counter.tick(now=START + 60)
        write(files, "3.csv", "q,3,south", "q,4,south")
        run(session.feed(events(spark, files), counter, **options))
        [second] = counter.tick(now=START + 120)

    assert (first.value, second.value) == (4, 6)


def test_a_new_query_reads_its_stream_anew(spark: Any, tmp_path: Path) -> None:
    """With another checkpoint batches are numbered from zero again, and are others: none is mistaken."""
    files = tmp_path / "files"
    write(files, "1.csv", "p,1,north")
    with opened(tmp_path / "counter") as counter:
        for name in ("one", "two"):
            run(session.feed(events(spark, files), counter, feeder="visits", checkpoint=tmp_path / name))
        [output] = counter.tick(now=START + 60)

    assert output.value == 2


def test_a_family_counts_by_key(spark: Any, tmp_path: Path) -> None:
    """A key that the family does not have counts nowhere, and stops nobody."""
    files = tmp_path / "files"
    write(files, "1.csv", "p,1,north", "p,2,west", "q,1,south", "q,2,north", "r,1,")
    with family_of(tmp_path) as family:
        run(
            session.feed(
                events(spark, files), family, feeder="visits", checkpoint=tmp_path / "checkpoint", key="place"
            )
        )
        [output] = family.tick(now=START + 60)

    assert output.value == {"north": 2, "south": 1}


@pytest.mark.parametrize("by_key", [False, True])
def test_an_event_of_a_person_counts_once(spark: Any, tmp_path: Path, by_key: bool) -> None:
    """Whoever sends one again, whatever bytes the ids are; a row without person or id counts nowhere."""
    files = tmp_path / "files"
    write(files, "1.csv", "61ff,1,north", "61ff,1,north", "61fe,1,north", ",3,north", "62,,north", "63,1,fe")
    settings: dict[str, Any] = {"unit": "user", "contributions": 2}
    rows = events(spark, files).selectExpr("unhex(person) AS person", "event", "place")
    options: dict[str, Any] = {"feeder": "visits", "person": "person", "id": "event"}
    family = family_of(tmp_path, **settings) if by_key else opened(tmp_path / "counter", **settings)
    with family:
        for _ in range(2):
            key = {"key": "place"} if by_key else {}
            run(session.feed(rows, family, checkpoint=tmp_path / "checkpoint", **options, **key))
            write(files, "2.csv", "61ff,1,north", "61ff,2,north")
        [output] = family.tick(now=START + 60)

    assert output.value == ({"north": 3, "south": 0} if by_key else 4)


def test_ids_whose_text_depends_on_a_zone_are_refused(spark: Any, tmp_path: Path) -> None:
    """A moment is written in the zone of the session, and would be another id in another one."""
    files = tmp_path / "files"
    write(files, "1.csv", "p,1,north")
    rows = events(spark, files).selectExpr("person", "current_timestamp() AS event")

    with (
        opened(tmp_path / "counter", unit="user") as counter,
        pytest.raises(SourceError, match="column 'event' must hold integers or text"),
    ):
        session.feed(rows, counter, feeder="v", checkpoint=tmp_path / "c", person="person", id="event")


def test_what_cannot_be_counted_once_is_refused(spark: Any, tmp_path: Path) -> None:
    """Columns that a counter has no use for, a frame that is no stream, and a counter that forgets."""
    files = tmp_path / "files"
    options: dict[str, Any] = {"feeder": "visits", "checkpoint": tmp_path / "checkpoint"}
    write(files, "1.csv", "p,1,north")
    with opened(tmp_path / "counter") as counter:
        with pytest.raises(InvalidParameter, match="key must be left out"):
            session.feed(events(spark, files), counter, key="place", **options)
        with pytest.raises(InvalidData, match="streaming"):
            session.feed(spark.range(3), counter, **options)
    with (
        opened(tmp_path / "pan", mechanism="pan-private") as pan,
        pytest.raises(InvalidParameter, match="must remember"),
    ):
        session.feed(events(spark, files), pan, **options)
