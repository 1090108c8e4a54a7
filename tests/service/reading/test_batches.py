"""Many counts at once, in JSON and in Arrow."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from partita.errors import InvalidParameter
from partita.releases.release import Release
from partita.service.reading import batches

from .conftest import LIMITS, Client

ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}
COUNTS = "/releases/people/counts"

LOWS = [0, 18, None, 65]
HIGHS = [17, 64, 30, None]


def stream(*, compression: str | None = None, batch: int | None = None, **columns: Any) -> bytes:
    """A table as an Arrow stream, in batches of so many rows."""
    table = pa.table({name.replace("_", "."): values for name, values in columns.items()})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=batch)
    return bytes(sink.getvalue())


def unpacked(body: bytes) -> dict[str, list[Any]]:
    """The columns of an Arrow stream."""
    with pa.ipc.open_stream(body) as reader:
        found: dict[str, list[Any]] = reader.read_all().to_pydict()
    return found


def test_many_counts_are_those_of_the_release(client: Client, release: Release) -> None:
    """Open ends are null; errors come if they are asked for."""
    expected = release.counts({"age": (LOWS, HIGHS)})

    shown = client.post(COUNTS, json={"where": {"age": {"low": LOWS, "high": HIGHS}}, "errors": True}).json()
    packed = client.post(f"{COUNTS}?errors=true", content=stream(age_low=LOWS, age_high=HIGHS), headers=ARROW)

    assert shown == {"values": expected.values.tolist(), "errors": expected.error.tolist()}
    assert unpacked(packed.content) == {"value": shown["values"], "error": shown["errors"]}
    assert packed.headers["content-type"] == ARROW["Content-Type"]


def test_a_batch_in_json_is_shorter_than_one_in_arrow(client: Client) -> None:
    """It is parsed in one piece, during which nobody else is answered."""
    padded = b'{"where": {"age": {"values": [1]}}' + b" " * 4 * 2**20 + b"}"

    answer = client.post(COUNTS, content=padded, headers={"Content-Type": "application/json"})

    assert (answer.status_code, answer.json()["error"]["kind"]) == (413, "BodyTooLarge")


def test_each_of_many_counts_is_a_count(client: Client) -> None:
    """A batch of one range says what the count of that range says, of its value and of its error."""
    one = client.get("/releases/people/count", where="age between 18 and 64").json()

    many = client.post(COUNTS, json={"where": {"age": {"low": [18], "high": [64]}}, "errors": True}).json()

    assert many == {"values": [one["value"]], "errors": [one["error"]]}


def test_conditions_go_with_all_ranges(client: Client, release: Release) -> None:
    """In JSON beside the arrays, in Arrow as text in the address."""
    lows, highs = [0, 20, 40], [19, 39, 59]
    expected = release.counts({"age": (lows, highs), "town": "Rome"}, closed={"age": "left"})
    both = release.counts({"age": (lows, highs), "town": "Rome"})
    ranges = {"low": lows, "high": highs, "closed": "left"}

    shown = client.post(COUNTS, json={"where": {"age": ranges, "town": "Rome"}}).json()
    packed = client.post(
        f"{COUNTS}?where=town = Rome", content=stream(age_low=lows, age_high=highs), headers=ARROW
    )

    assert shown["values"] == expected.values.tolist()
    assert unpacked(packed.content) == {"value": both.values.tolist()}


def test_single_values_have_no_ends(client: Client, release: Release) -> None:
    """Of numbers and of labels."""
    ages = client.post(COUNTS, json={"where": {"age": {"values": [1, 2, 2]}}}).json()["values"]
    towns = client.post(COUNTS, content=stream(town=["Rome", "Bari"]), headers=ARROW)

    assert ages == release.counts({"age": [1, 2, 2]}).values.tolist()
    assert unpacked(towns.content)["value"] == release.counts({"town": ["Rome", "Bari"]}).values.tolist()


def test_arrays_of_any_numbers_are_read(client: Client, release: Release) -> None:
    """Also those that have no type in common, and numbers as text."""
    lows, highs = [0, "10.5", 2.5], [3, 11, "400"]

    shown = client.post(COUNTS, json={"where": {"salary": {"low": lows, "high": highs}}}).json()

    assert shown["values"] == release.counts({"salary": (lows, highs)}).values.tolist()


def test_there_are_at_most_so_many_ranges(client: Client) -> None:
    """One more is refused, with the limit and no number of the caller's data."""
    ends = np.zeros(LIMITS.ranges + 1, np.int64)

    for batch in (None, 500):
        packed = client.post(COUNTS, content=stream(age_low=ends, age_high=ends, batch=batch), headers=ARROW)

        assert packed.status_code == 400
        assert "at most 6,000 ranges" in packed.json()["error"]["message"]


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_what_is_compressed_is_not_unpacked(client: Client, compression: str) -> None:
    """However little it is: a few bytes of it may be any number of rows."""
    body = stream(age_low=[1] * 99, age_high=[2] * 99, compression=compression)

    answer = client.post(COUNTS, content=body, headers=ARROW)

    assert (answer.status_code, answer.json()["error"]["parameter"]) == (400, "body")
    assert "uncompressed" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "column",
    [
        pa.nulls(3),
        pa.array([1, 2, 3]).dictionary_encode(),
        pa.array([[1], [2], [3]]),
        pa.array([b""] * 3, pa.binary(0)),
    ],
    ids=["nulls", "dictionary", "lists", "no bytes"],
)
def test_rows_that_take_no_bytes_of_their_own_are_refused(client: Client, column: pa.Array) -> None:
    """Only plain columns are read, so the limit of a body bounds what it costs."""
    answer = client.post(COUNTS, content=stream(age_low=column, age_high=[4, 5, 6]), headers=ARROW)

    assert (answer.status_code, answer.json()["error"]["parameter"]) == (400, "body")


def test_bytes_that_were_changed_are_read_or_refused() -> None:
    """Two thousand streams, some bytes of each changed: no other error comes, and no more rows than may."""
    whole, chance = stream(age_low=[1, None, 3], age_high=[4, 5, 6]), random.Random(3)
    refused = 0
    for _ in range(2_000):
        body = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        try:
            assert batches._table(bytes(body), LIMITS).num_rows <= LIMITS.ranges
        except InvalidParameter:
            refused += 1

    assert 0 < refused < 2_000


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"where": {}}',
        b'{"where": {"age": {"low": [NaN], "high": [1]}}}',
        b'{"where": {"age": {"low": [1e999], "high": [1]}}}',
        b'{"where": {"age": {"low": [1], "high": [' + b"9" * 100_000 + b"]}}}",
        b'{"where": {"age": {"low": [1, 2], "high": [2, 3, 4]}}}',
        b'{"where": {"age": {"low": [3], "high": [2]}}}',
        b'{"where": {"age": {"low": [[1]], "high": [[2]]}}}',
        b'{"where": {"age": {"low": [{}], "high": [true]}}}',
        b'{"where": {"nowhere": {"values": [1]}}}',
        b'{"where": {"age": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        b'{"where": {"age": {"low": ["\xed\xa0\x80"], "high": [2]}}}',
        b'{"where": {"age": {"values": ["\\ud800"]}}}',
        b'{"where": {"seen": {"values": [1]}}, "errors": "maybe"}',
    ],
    ids=range(16),
)
def test_a_body_that_makes_no_sense_is_refused(client: Client, body: bytes) -> None:
    """With a typed error; nothing of the body comes back but what is short and public."""
    answer = client.post(COUNTS, content=body, headers={"Content-Type": "application/json"})

    assert 400 <= answer.status_code < 500
    assert set(answer.json()["error"]) >= {"kind", "message"}
    assert len(answer.content) < 1_000


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not Arrow",
        stream(age_low=[1]),
        stream(age_low=[1], age_high=[2], other=[3]),
        stream(age_low=[[1]], age_high=[[2]]),
        stream(age_low=["x"], age_high=["y"]),
        stream(age_low=[1.0], age_high=[float("inf")]),
        stream(age_low=[1, 2], age_high=[3, 1]),
        stream(age_low=[1, 2], age_high=[3, 4])[:-40],
        stream(nowhere=[1]),
        stream(),
    ],
    ids=range(11),
)
def test_arrow_that_makes_no_sense_is_refused(client: Client, body: bytes) -> None:
    """The same way."""
    answer = client.post(COUNTS, content=body, headers=ARROW)

    assert 400 <= answer.status_code < 500
    assert set(answer.json()["error"]) >= {"kind", "message"}


def test_other_kinds_of_bodies_are_not_read(client: Client) -> None:
    """The answer says which two there are."""
    answer = client.post(COUNTS, content=b"age,1", headers={"Content-Type": "text/csv"})

    assert (answer.status_code, answer.json()["error"]["kind"]) == (415, "UnsupportedMediaType")
