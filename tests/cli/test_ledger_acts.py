"""`partita ledger`: budgets opened and looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run


def test_a_ledger_is_opened_and_looked_at(run: Run, people: Path, spec: Path) -> None:
    """Terms, balance, entries and forecast, in exact numbers."""
    run(
        "ledger",
        "open",
        "people",
        "--epsilon",
        "13/3",
        "--unit",
        "person",
        "--contributions",
        2,
        "--constant",
        "region",
    )
    run(
        *(
            "publish",
            people,
            "--spec",
            spec,
            "-o",
            "out.parquet",
            "--ledger",
            "budget.db",
            "--dataset",
            "people",
        ),
        *("--person", "id", "--contributions", 2),
    )

    [terms] = run("ledger", "datasets", "--json").records
    [entry] = run("ledger", "entries", "people", "--json").records
    [balance] = run("ledger", "balance", "people", "--json").records
    [forecast] = run("ledger", "forecast", "people", "--epsilon", "1/9", "--json").records
    assert (terms["dataset"], terms["epsilon"], terms["constant"]) == ("people", "13/3", ["region"])
    assert (entry["state"], entry["epsilon"], entry["key"]) == ("done", "4", None)
    assert {name: balance[name]["epsilon"] for name in ("total", "spent", "left")} == {
        "total": "13/3",
        "spent": "4",
        "left": "1/3",
    }
    assert forecast["releases"] == 3


@pytest.mark.parametrize(
    "act",
    [("balance", "people"), ("entries", "people"), ("forecast", "people", "--epsilon", "1"), ("datasets",)],
)
def test_a_ledger_in_text(run: Run, folder: Path, act: tuple[str, ...]) -> None:
    """Every act has something to say about a fresh ledger."""
    run("ledger", "open", "people", "--epsilon", 1)

    done = run("ledger", *act)

    assert done.code == 0
    assert done.out.strip()


@pytest.mark.parametrize("act", [("balance", "people"), ("datasets",)])
def test_looking_makes_no_ledger(run: Run, folder: Path, act: tuple[str, ...]) -> None:
    """A wrong path is an error, not a new and empty ledger."""
    done = run("ledger", *act, "--ledger", "bugdet.db")

    assert done.code == 1
    assert "does not exist" in done.err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("act", [("balance",), ("entries",), ("forecast", "--epsilon", "1")])
def test_an_unknown_dataset_is_refused(run: Run, folder: Path, act: tuple[str, ...]) -> None:
    """With exit code 3: the ledger is sound, and says no."""
    run("ledger", "open", "people", "--epsilon", 1)

    assert run("ledger", act[0], "poeple", *act[1:]).code == 3


def test_terms_never_change(run: Run, folder: Path) -> None:
    """Opening again with other terms is refused with exit code 3."""
    assert run("ledger", "open", "people", "--epsilon", 1).code == 0
    assert run("ledger", "open", "people", "--epsilon", 1).code == 0
    assert run("ledger", "open", "people", "--epsilon", 2).code == 3


def test_a_fresh_dataset_has_no_entries(run: Run, folder: Path) -> None:
    """In JSON that is no line at all, and in text a sentence."""
    run("ledger", "open", "people", "--epsilon", 1)

    assert run("ledger", "entries", "people", "--json") == (0, "", "")
    assert run("ledger", "entries", "people") == (0, "no debit yet\n", "")
