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


def test_a_ledger_in_rho(run: Run, people: Path, spec: Path) -> None:
    """Opened, debited, looked at and forecast in rho; the balance tells epsilon at three deltas."""
    opened = run("ledger", "open", "people", "--rho", "1/2")
    run(*("publish", people, "--spec", spec, "-o", "out.parquet", "--rho", "1/8"), *_PAID)

    [terms] = run("ledger", "datasets", "--json").records
    [entry] = run("ledger", "entries", "people", "--json").records
    [balance] = run("ledger", "balance", "people", "--json").records
    [forecast] = run("ledger", "forecast", "people", "--rho", "1/16", "--json").records
    text = run("ledger", "balance", "people").out

    assert "has rho 1/2 under add-remove per row" in opened.out
    assert (terms["rho"], entry["rho"], forecast["releases"]) == ("1/2", "1/8", 6)
    assert [balance[name]["rho"] for name in ("total", "spent", "left")] == ["1/2", "1/8", "3/8"]
    assert [point["delta"] for point in balance["curve"]] == ["1/1000000", "1/1000000000", "1/1000000000000"]
    assert "at delta 1e-9" in text
    assert "epsilon 3.05813 is spent of 6.47408" in text
    assert "rho 1/8" in run("ledger", "entries", "people").out


_PAID = ("--ledger", "budget.db", "--dataset", "people")


@pytest.mark.parametrize("act", [("open", "people"), ("forecast", "people")])
@pytest.mark.parametrize("budget", [(), ("--epsilon", "1", "--rho", "1")])
def test_a_budget_is_epsilon_or_rho(run: Run, act: tuple[str, ...], budget: tuple[str, ...]) -> None:
    """Both, or none, is a usage error."""
    if act[0] == "forecast":
        run("ledger", "open", "people", "--epsilon", 1)

    done = run("ledger", *act, *budget)

    assert done.code == 2
    assert "pass one of --epsilon and --rho" in done.err


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
