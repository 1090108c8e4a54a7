"""Many counts at once."""

from __future__ import annotations

import pytest

from partita.public.release import Release

from .conftest import LIMITS, Client

COUNTS = "/releases/people/counts"

LOWS = [0, 18, None, 65]
HIGHS = [17, 64, 30, None]


def test_many_counts_are_those_of_the_release(client: Client, release: Release) -> None:
    """Open ends are null; errors come if they are asked for."""
    expected = release.counts({"age": (LOWS, HIGHS)})

    shown = client.post(COUNTS, json={"where": {"age": {"low": LOWS, "high": HIGHS}}, "errors": True}).json()

    assert shown == {"values": expected.values.tolist(), "errors": expected.error.tolist()}


def test_a_batch_has_at_most_4_mib(client: Client) -> None:
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
    """They stand beside the arrays."""
    lows, highs = [0, 20, 40], [19, 39, 59]
    expected = release.counts({"age": (lows, highs), "town": "Rome"}, closed={"age": "left"})
    ranges = {"low": lows, "high": highs, "closed": "left"}

    shown = client.post(COUNTS, json={"where": {"age": ranges, "town": "Rome"}}).json()

    assert shown["values"] == expected.values.tolist()


def test_single_values_have_no_ends(client: Client, release: Release) -> None:
    """Of numbers and of labels."""
    ages = client.post(COUNTS, json={"where": {"age": {"values": [1, 2, 2]}}}).json()["values"]
    towns = client.post(COUNTS, json={"where": {"town": {"values": ["Rome", "Bari"]}}}).json()["values"]

    assert ages == release.counts({"age": [1, 2, 2]}).values.tolist()
    assert towns == release.counts({"town": ["Rome", "Bari"]}).values.tolist()


def test_arrays_of_any_numbers_are_read(client: Client, release: Release) -> None:
    """Also those that have no type in common, and numbers as text."""
    lows, highs = [0, "10.5", 2.5], [3, 11, "400"]

    shown = client.post(COUNTS, json={"where": {"salary": {"low": lows, "high": highs}}}).json()

    assert shown["values"] == release.counts({"salary": (lows, highs)}).values.tolist()


def test_there_are_at_most_so_many_ranges(client: Client) -> None:
    """One more is refused, with the limit and no number of the caller's data."""
    ends = [0] * (LIMITS.ranges + 1)

    answer = client.post(COUNTS, json={"where": {"age": {"low": ends, "high": ends}}})

    assert answer.status_code == 400
    assert "at most 6,000 ranges" in answer.json()["error"]["message"]


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


@pytest.mark.parametrize("kind", ["text/csv", "application/vnd.apache.arrow.stream"])
def test_other_kinds_of_bodies_are_not_read(client: Client, kind: str) -> None:
    """The answer says which one there is."""
    answer = client.post(COUNTS, content=b"age,1", headers={"Content-Type": kind})

    assert (answer.status_code, answer.json()["error"]["kind"]) == (415, "UnsupportedMediaType")
    assert "application/json" in answer.json()["error"]["message"]


def test_a_batch_has_no_parameters_in_its_address(client: Client) -> None:
    """One that is given there is refused, rather than ignored."""
    answer = client.post(f"{COUNTS}?errors=true", json={"where": {"age": {"values": [1]}}})

    assert (answer.status_code, answer.json()["error"]["kind"]) == (422, "InvalidRequest")
