"""Answers that are kept, here and by those who asked; and what can be downloaded."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from partita.public.file import decode
from partita.public.release import Release
from partita.service.reading.catalogue import LruCache
from partita.service.tokens import TokenFile

from .conftest import LIMITS, Client, served

KEPT = [
    "/releases/people/count?where=age < 50",
    "/releases/people.json",
    "/releases/people/view.json?x=age",
    "/releases/people/view.csv?x=age",
    "/releases/people/report.txt",
    "/releases/people/synthesize.csv?rows=5",
    "/releases/people/file",
]


@pytest.mark.parametrize("path", KEPT)
def test_who_has_an_answer_is_told_that_nothing_changed(client: Client, path: str) -> None:
    """By its tag, alone or among others, and without a body; any other tag gets the answer."""
    first = client.send("GET", path)
    tag = first.headers["etag"]

    again = client.send("GET", path, headers={"If-None-Match": f'"other", W/{tag}'})
    other = client.send("GET", path, headers={"If-None-Match": '"other"'})

    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert (other.status_code, other.content) == (200, first.content)


def test_a_tag_belongs_to_one_question(client: Client) -> None:
    """Another question, another confidence and another release have other tags."""
    paths = [
        *KEPT,
        "/releases/people/count?where=age < 51",
        "/releases/asked.json",
        f"{KEPT[0]}&confidence=0.9",
    ]

    assert len({client.send("GET", path).headers["etag"] for path in paths}) == len(paths)


def test_only_what_is_public_may_be_kept_by_caches_that_people_share(
    shelf: Path, client: Client, tmp_path: Path
) -> None:
    """Where reading takes a token, an answer is for the one who asked."""
    text = TokenFile(tmp_path / "tokens.json").create("reader", scopes=["read"], streams=None, expires=None)
    private = Client(served(shelf, public=False, tokens=tmp_path / "tokens.json"))

    mine = private.send("GET", KEPT[0], headers={"Authorization": f"Bearer {text}"})
    private.close()

    assert mine.headers["cache-control"] == "private, max-age=60"
    assert client.send("GET", KEPT[0]).headers["cache-control"] == "public, max-age=60"


def test_an_answer_is_made_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was answered before comes back without asking the release again."""
    first = client.get("/releases/people/count", where="age = 33")
    monkeypatch.setattr(Release, "count", None)

    assert client.get("/releases/people/count", where="age = 33").content == first.content


def test_errors_and_answers_to_bodies_are_not_kept(client: Client) -> None:
    """Nobody keeps a refusal, nor what no address stands for."""
    answers = [
        client.get("/releases/people/count", where="nowhere = 1"),
        client.get("/releases/nobody/count"),
        client.post("/releases/people/count", json={}),
        client.post("/releases/people/counts", json={"where": {"age": {"values": [1]}}}),
    ]

    assert {answer.headers["cache-control"] for answer in answers} == {"no-store"}


def test_the_file_is_the_file(client: Client, shelf: Path) -> None:
    """Byte by byte, so that it can be loaded elsewhere."""
    answer = client.get("/releases/people/file")

    assert answer.content == (shelf / "people.release.parquet").read_bytes()
    assert decode(answer.content).columns == ("age", "salary", "seen", "town")
    assert answer.headers["content-disposition"] == 'attachment; filename="people.release.parquet"'


def test_made_up_rows_are_those_of_the_release(client: Client, release: Release) -> None:
    """As CSV and as Parquet."""
    made = release.synthesize(50)

    rows = list(csv.DictReader(io.StringIO(client.get("/releases/people/synthesize.csv", rows=50).text)))
    table = pq.read_table(io.BytesIO(client.get("/releases/people/synthesize.parquet", rows=50).content))

    assert [row["seen"] for row in rows] == ["" if day is None else str(day) for day in made["seen"]]
    assert table.to_pydict() == made


def test_texts_are_those_of_the_release(client: Client, release: Release) -> None:
    """The report and the citation."""
    assert client.get("/releases/people/report.txt").text == release.report() + "\n"
    assert client.get("/releases/people/citation.bib").text == release.citation()


@pytest.mark.parametrize("rows", ["0", "-1", "nan", "1e3", "2001", "9" * 100, ""])
def test_no_more_rows_than_the_limit_are_made_up(client: Client, rows: str) -> None:
    """And no number of them that is none."""
    answer = client.get("/releases/people/synthesize.csv", rows=rows)

    assert 400 <= answer.status_code < 500
    assert LIMITS.rows == 2_000


def test_what_is_kept_has_room() -> None:
    """Replacing a value takes its weight away; what is too heavy for the room is not kept."""
    kept = LruCache[str, str](room=10)
    for key, weight in [("a", 6), ("a", 3), ("b", 7), ("c", 11)]:
        kept.put(key, key, weight)

    assert [kept.get(key) for key in "abc"] == ["a", "b", None]
    kept.put("d", "d", 7)
    assert [kept.get(key) for key in "abd"] == [None, None, "d"]
