"""A kind of question is a record in the table and a method of a release, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from partita.public.conditions import Range, Where
from partita.public.file import load
from partita.public.grammar import parse_question
from partita.public.questions import KINDS, Parameter, QueryRunner, QuestionKind, Type
from partita.public.records import NUMBER, Cell, ColumnResult, TableResult, to_plain
from partita.public.release import Release
from tests.cli.conftest import Run
from tests.service.reading.conftest import Client, served

COLUMN = Parameter("column", Type.COLUMN, "the name of a column")
WHERE = Parameter("where", Type.CONDITIONS, "which rows", default={})


def others(release: Release, where: Where) -> Any:
    """How many rows do not fulfil the conditions."""
    return release.count() + -release.count(where)


def quartiles(release: Release, column: str, where: Where) -> Any:
    """Three values of a column."""
    return release.quantile(column, [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)], where)


OTHERS = QuestionKind(
    name="others",
    forms={"others [than {where}]": "others than age >= 30"},
    parameters=(WHERE,),
    ask=others,
    result=NUMBER,
    title="How many other rows there are",
    help="How many rows do not fulfil the conditions.",
)
QUARTILES = QuestionKind(
    name="quartiles",
    forms={"quartiles of {column} [where {where}]": "quartiles of age"},
    parameters=(COLUMN, WHERE),
    ask=quartiles,
    result=TableResult(
        "quartiles",
        "Three values.",
        "A value.",
        (ColumnResult("share", Cell.SHARE, "share"), ColumnResult("value", Cell.VALUE, "value")),
        lambda found: [(float(each.q), each.value) for each in found],
    ),
    title="Quartiles of a column",
    help="Three values of a column.",
)


@pytest.fixture(autouse=True)
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both kinds are in the table."""
    for kind in (OTHERS, QUARTILES):
        monkeypatch.setitem(KINDS, kind.name, kind)


@pytest.fixture
def client(shelf: Path, added: None) -> Iterator[Client]:
    """A client of a service that started with both kinds."""
    client = Client(served(shelf))
    yield client
    client.close()


def test_the_grammar_reads_and_writes_it() -> None:
    """By its form, with the same conditions as all others; a mistake gets its example."""
    asked = parse_question("OTHERS than age between 30 and 39")

    assert asked == OTHERS(where={"age": Range("30", "39")})
    assert str(asked) == "others than age between 30 and 39"
    assert str(parse_question("quartiles of age where age<9")) == "quartiles of age where age < 9"


def test_a_release_is_asked(shelf: Path) -> None:
    """The record has what its kind of result says."""
    release = load(shelf / "people.release.parquet")
    runner = QueryRunner(release=release, confidence=0.9, beta=0.1)

    record = runner.answer(parse_question("others than age >= 30"))

    expected = others(release, {"age": (30, None)})
    assert (record["value"], record["error"]) == (expected.value, expected.error)
    assert {"interval", "worst"} <= set(record)


def test_the_command_line_shows_it(run: Run, shelf: Path) -> None:
    """A number in the table of numbers, and rows under their heads."""
    release = shelf / "people.release.parquet"

    done = run("query", release, "others than age >= 30", "quartiles of age")

    assert done.code == 0
    assert "others than age >= 30" in done.out.splitlines()[1]
    assert [line.split() for line in done.out.splitlines()][-4] == ["share", "value"]
    assert run("query", release, "quartiles of age", "--json").records[0]["quartiles"][1]["share"] == 0.5


def test_the_service_answers_it(client: Client, shelf: Path) -> None:
    """By an address, by a body and as text; the document has models of it."""
    release = load(shelf / "people.release.parquet")
    text = "others than age between 30 and 39"
    expected = to_plain(QueryRunner(release=release, confidence=0.95, beta=0.1).answer(parse_question(text)))

    found = [
        client.get("/releases/people/others", where="age between 30 and 39", beta=0.1),
        client.post("/releases/people/others", json={"where": {"age": [30, 39]}, "beta": 0.1}),
        client.get("/releases/people/ask", q=text, beta=0.1),
    ]
    for answer in found:
        shown = answer.json()
        assert {name: shown[name] for name in expected} == expected  # type: ignore[attr-defined]
        assert shown["half"] > 0

    rows = client.get("/releases/people/quartiles", column="age").json()["quartiles"]
    document = client.get("/openapi.json").json()
    assert [row["share"] for row in rows] == [0.25, 0.5, 0.75]
    assert set(rows[0]) == set(document["components"]["schemas"]["QuartilesRow"]["properties"])
    assert "/releases/{name}/others" in document["paths"]
