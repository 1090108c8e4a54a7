"""Families from a shell: a counter for each public key."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.public.stream_plot import plot
from partita.public.streams import read_outputs

from .conftest import Run
from .test_stream_feed import EXACT, Clock, Feed, clock, complaints, feed

__all__ = ["clock", "feed"]

FAMILY = (*EXACT, "--keys", "south,north", "--horizon", 100)

TIMES = """town,when
north,1970-01-01T00:00:10
south,1970-01-01T00:00:50
west,1970-01-01T00:00:50
north,1970-01-01T00:01:10
,1970-01-01T00:01:10
north,not a time
"""


def test_create_says_which_keys_there_are(run: Run, folder: Path) -> None:
    """In words and in JSON; a counter has none."""
    done = run("stream", "create", "visits", *FAMILY)
    [record] = run("stream", "create", "other", *FAMILY, "--json").records
    [alone] = run("stream", "create", "alone", *EXACT, "--json").records

    assert (done.code, complaints(done)) == (0, [])
    assert "keys       south, north" in done.out
    assert (record["mechanism"], record["keys"]) == ("family", ["south", "north"])
    assert alone["keys"] is None


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--keys", "a,a", "--horizon", 9), 1, "keys must be distinct"),
        (("--keys", "a,,b", "--horizon", 9), 1, "keys must be printable names"),
        (("--keys", "a,b"), 1, "horizon must"),
        (("--keys", "a,b", "--horizon", 9, "--mechanism", "tree"), 2, "--mechanism is about one counter"),
        (("--keys", "a,b", "--horizon", 9, "--window", 3), 2, "--window is about one counter"),
    ],
)
def test_what_is_wrong_makes_nothing(
    run: Run, folder: Path, options: tuple[object, ...], code: int, said: str
) -> None:
    """The message names the parameter."""
    done = run("stream", "create", "visits", *EXACT, *options)

    assert (done.code, done.out, list(folder.iterdir())) == (code, "", [])
    assert said in done.err


def test_lines_begin_with_their_key(run: Run, feed: Feed) -> None:
    """What begins with another word counts nowhere, and changes nothing that is shown."""
    run("stream", "create", "visits", *FAMILY)

    done = feed(b"north GET /\nsouth\nwest x\n", b"\nnorth\nnorth-1\n")

    assert (done.code, complaints(done)) == (0, [])
    assert [line.split()[1:] for line in done.out.splitlines()] == [
        ["1", "south", "1.0", "north", "1.0"],
        ["2", "south", "1.0", "north", "2.0"],
    ]


def test_at_user_level_a_person_and_an_id_follow_the_key(run: Run, feed: Feed) -> None:
    """A person has so many events over all keys together."""
    run("stream", "create", "visits", *FAMILY, "--contributions", 2)

    feed(b"north ann 1\nsouth ann 2\nnorth ann 3\nwest bob 1\nnorth bob 1\nnorth bob 1\n")
    [record] = run("stream", "read", "visits", "--json").records

    assert {key: round(value) for key, value in record["values"].items()} == {"south": 1, "north": 2}


def test_a_file_of_keys_and_times_is_fed(run: Run, clock: Clock) -> None:
    """Each time under its key in its period; what has no key of the family, or no time, counts nowhere."""
    run("stream", "create", "visits", *FAMILY)
    Path("times.csv").write_text(TIMES)
    stretch = ("--file", "times.csv", "--start", "1970-01-01", "--end", "1970-01-01T00:02")
    columns = ("--column", "when", "--key-column", "town")
    for missing in ((), columns[:2], columns[2:]):
        assert "--key-column" in run("stream", "feed", "visits", *stretch, *missing).err
    run("stream", "feed", "visits", *stretch, *columns)
    records = run("stream", "read", "visits", "--json").records
    told = run("stream", "info", "visits").out

    assert [[round(value) for value in record["values"].values()] for record in records] == [[1, 1], [1, 2]]
    assert "last       south 1.0  north 2.0" in told
    assert "off by" in told


def test_a_picture_has_a_line_for_each_key(run: Run, folder: Path) -> None:
    """With its name, and a band around it."""
    run("stream", "create", "visits", "--epsilon", 1, *FAMILY[2:], "--start", "2026-01-01")
    run("stream", "run", "visits", "--once")
    published = read_outputs("visits")
    axes = plot(published.outputs, published.settings)

    assert [line.get_label() for line in axes.get_lines()] == ["south", "north"]
    assert len(axes.collections) == 2
