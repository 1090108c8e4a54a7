"""A table of several columns is planned, published and told about from a shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.public.file import load

from .conftest import CANARY, JOINT, Run

TABLE = JOINT.replace("grid", "graph").replace('"40000"', '"1"') + 'together = [["age", "wage"]]\n'


@pytest.fixture
def joint_spec(folder: Path) -> Path:
    """Three columns, of which two matter together."""
    path = folder / "table.toml"
    path.write_text(TABLE)
    return path


def test_a_spec_and_an_option_name_columns_that_matter_together(run: Run, joint_spec: Path) -> None:
    """An option replaces what the spec says, and may be repeated."""
    told = run("plan", "--spec", joint_spec, "--rows", 400)
    changed = run(
        "plan", "--spec", joint_spec, "--rows", 400, "--together", "age,region", "--together", "wage,region"
    )

    assert "Measured together in any case: age x wage." in told.out
    assert "Measured together in any case: age x region, wage x region." in changed.out


def test_a_plan_warns_on_the_command_line(run: Run, joint_spec: Path) -> None:
    """In print and in JSON, before anything is spent."""
    done = run("plan", "--spec", joint_spec, "--rows", 400)
    [record] = run("plan", "--spec", joint_spec, "--rows", 400, "--json").records

    assert "Beware: for 400 rows, a single value of age: ± " in done.out
    [line] = record["expected"]
    assert [each["column"] for each in line["by_column"]] == ["age", "wage", "region"]
    assert any("age" in warning for warning in line["warnings"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("age,wag", "together must name columns of the schema, got 'wag'; did you mean 'wage'?"),
        ("age", "together must name two or more columns in each set"),
        ("age,age", "together must name each column once"),
    ],
)
def test_bad_sets_are_refused_before_any_debit(
    run: Run, people: Path, joint_spec: Path, given: str, said: str
) -> None:
    """The budget stays as it was, and nothing is written."""
    run("ledger", "open", "people", "--epsilon", 3)

    done = run(
        *("publish", people, "--spec", joint_spec, "--together", given, "-o", "t.release.parquet"),
        *("--ledger", "budget.db", "--dataset", "people"),
    )

    assert done.code == 1
    assert said in done.err
    assert not Path("t.release.parquet").exists()
    assert run("ledger", "entries", "people", "--json").records == []


def test_names_that_are_not_names_are_a_usage_error(run: Run, joint_spec: Path) -> None:
    """As for --by and --view."""
    assert run("plan", "--spec", joint_spec, "--together", "age,,wage").code == 2


def test_a_receipt_tells_what_a_table_says(run: Run, people: Path, joint_spec: Path) -> None:
    """Errors of single cells, measured pairs and audits: functions of released numbers."""
    done = run("publish", people, "--spec", joint_spec, "-o", "t.release.parquet")

    assert done.code == 0
    for head in ("single     95% of one cell: age ± ", "pairs      ", "audits     "):
        assert f"\n{head}" in done.out
    assert CANARY not in done.out
    release = load("t.release.parquet")
    assert release.count(age=(20, 40), wage=(10, 50)).basis == "measured"


def test_a_receipt_has_the_same_in_json(run: Run, people: Path, joint_spec: Path) -> None:
    """One entry for each table release."""
    [record] = run("publish", people, "--spec", joint_spec, "-o", "t.release.parquet", "--json").records

    [table] = record["tables"]
    assert table["view"] == "age x wage x region"
    assert [each["column"] for each in table["columns"]] == ["age", "wage", "region"]
    assert 1 <= table["measured"] <= table["pairs"] == 3


def test_a_plan_is_tried_out_on_a_public_table(run: Run, people: Path, joint_spec: Path) -> None:
    """Labels, cells and boxes are measured."""
    done = run("plan", "--spec", joint_spec, "--rows", 400, "--simulate", people)

    assert done.code == 0
    for kind in ("labels", "ranges", "cells", "boxes"):
        assert f" {kind} " in done.out
