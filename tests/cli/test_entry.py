"""Whatever happens inside a command, the shell gets an exit code and no traceback."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

from partita.cli import main, publish
from partita.cli.common import Options, Outcome, printable
from partita.errors import (
    BudgetExceeded,
    BudgetLost,
    EntropyError,
    InvalidData,
    InvalidParameter,
    KeyReused,
    LedgerError,
    PrivacyWarning,
    TermsDiffer,
    UnknownDataset,
)
from partita.public.records import to_plain

from .conftest import CANARY, Run

Command = Callable[[Options], Outcome]


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Callable[[Command], None]:
    """Puts other work in the place of `partita mechanisms`."""

    def planted(work: Command) -> None:
        monkeypatch.setattr(publish, "run_mechanisms", work)

    return planted


def failing(error: BaseException) -> Command:
    """A command that fails with this exception, caused by another one that carries data."""

    def work(options: Options) -> Outcome:
        raise error from RuntimeError(CANARY)

    return work


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InvalidParameter("epsilon", "must be positive", given=0, fix="pass 1"), 1, "error: epsilon must be"),
        (InvalidData("cells", "must be sorted", fix="sort them"), 1, "error: cells must be sorted"),
        (LedgerError("the ledger is damaged"), 1, "error: the ledger is damaged"),
        (EntropyError("no randomness"), 1, "error: no randomness"),
        (BudgetExceeded("too much"), 3, "refused: too much"),
        (BudgetLost("gone"), 3, "refused: gone"),
        (KeyReused("used"), 3, "refused: used"),
        (TermsDiffer("other"), 3, "refused: other"),
        (UnknownDataset("who"), 3, "refused: who"),
        (KeyboardInterrupt(CANARY), 130, "interrupted"),
        (ValueError(CANARY), 1, "error: unexpected ValueError"),
        (RecursionError(CANARY), 1, "error: unexpected RecursionError"),
        (MemoryError(CANARY), 1, "error: unexpected MemoryError"),
        (OSError(28, "No space left on device", CANARY), 1, "error: the system says No space left on device"),
        (OSError(CANARY), 1, "error: the system says OSError"),
        (SystemExit(CANARY), 1, ""),
    ],
)
def test_every_exception_has_its_exit_code(
    run: Run, plant: Callable[[Command], None], error: BaseException, code: int, said: str
) -> None:
    """The message is one line on stderr; of an exception that is not ours it holds the type only."""
    plant(failing(error))

    done = run("mechanisms")

    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(f"partita: {said}" if said else "")
    assert done.err.count("\n") == bool(said)
    assert CANARY not in done.err
    assert "Traceback" not in done.err


def test_a_privacy_warning_is_a_message(run: Run, plant: Callable[[Command], None]) -> None:
    """It is said once. Warnings of other libraries, which may quote a row, are not passed on."""

    def work(options: Options) -> Outcome:
        for _ in range(2):
            warnings.warn("epsilon 9 is large", PrivacyWarning, stacklevel=1)
        warnings.warn(CANARY, UserWarning, stacklevel=1)
        return Outcome.of("done")

    plant(work)
    done = run("mechanisms")

    assert done == (0, "done\n", "partita: warning: epsilon 9 is large\n")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["--nonsense"],
        ["query"],
        ["query", "x.parquet", "--confidence", "2", "count"],
        ["query", "x.parquet", "--beta", "nan", "count"],
        ["query", "x.parquet", "cuont"],
        ["plan", "--epsilon", "1"],
        ["plan", "--column", "age:integer(0,9)"],
        ["plan", "--epsilon", "0", "--column", "age:integer(0,9)"],
        ["plan", "--epsilon", "1", "--column", "age:integer"],
        ["plan", "--epsilon", "1", "--column", "age:integer(0,9)", "--rows", "many"],
        ["publish", "x.parquet", "--epsilon", "1"],
        ["publish", "x.parquet", "--eps", "1"],
        ["publish", "x.parquet", "-o", "y", "--epsilon", "1", "--neighbors", "next-door"],
        ["publish", "x.parquet", "-o", "y", "--epsilon", "1", "--part", "north"],
        ["plot", "x.parquet", "age", "-o", "age.doc"],
        ["ledger"],
        ["ledger", "open", "people"],
        ["ledger", "open", "people", "--epsilon", "1" + 500 * "0"],
    ],
)
def test_a_command_line_that_is_not_understood(run: Run, arguments: list[str]) -> None:
    """Exit code 2, a message on stderr, and nothing on stdout."""
    done = run(*arguments)

    assert (done.code, done.out) == (2, "")
    assert "error: " in done.err


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["ledger", "open", "--help"]])
def test_help_goes_to_stdout(run: Run, arguments: list[str]) -> None:
    """It was asked for, so that it is a result."""
    done = run(*arguments)

    assert done.code == 0
    assert "partita" in done.out
    assert done.err == ""


def test_a_missing_stdout_is_no_reason_to_fail(
    plant: Callable[[Command], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that was started without one, or without stderr, still does its work."""
    plant(lambda options: Outcome.of("done"))
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", None)

    assert main(["mechanisms"]) == 0
    assert main(["query", "missing.parquet", "count"]) == 1


# --- output -----------------------------------------------------------------------------------


def test_text_cannot_steer_a_terminal(run: Run, plant: Callable[[Command], None]) -> None:
    """A release may come from anybody, and so may the names in it."""
    plant(lambda options: Outcome.of("a\x1b]0;title\x07\r\x9b2Jb\nc"))

    assert run("mechanisms").out == "a\\x1b]0;title\\x07\\r\\x9b2Jb\nc\n"


def test_json_is_valid_whatever_the_numbers(run: Run, plant: Callable[[Command], None]) -> None:
    """JSON knows neither infinity nor NaN."""
    plant(lambda options: Outcome.of("", high=float("inf"), low=[float("nan")], text="\x1b±"))

    assert run("mechanisms", "--json").records == [{"high": None, "low": [None], "text": "\x1b±"}]


def test_a_narrow_encoding_is_enough() -> None:
    """What it cannot write is replaced, not raised."""

    class Narrow:
        encoding = "ascii"

    assert printable("1 ± 2", Narrow()) == "1 ? 2"  # type: ignore[arg-type]


def test_plain_values_stay() -> None:
    """Text, whole numbers, truth and nothing are JSON already."""
    assert to_plain(["a", 1, True, None, 0.5]) == ["a", 1, True, None, 0.5]
