"""docs/command-line.md tells the truth about the command line."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partita.cli.main import parser
from partita.cli.spec import COLUMN_KEYS, read_spec

from .conftest import Run, table

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "command-line.md").read_text()


def commands(root: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command and act, with its parser."""
    for action in root._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, declared in action.choices.items():
                yield name, declared
                yield from commands(declared)


def test_every_command_and_option_is_on_the_page() -> None:
    """Nothing is left to be found by chance."""
    options = {
        option
        for _, declared in commands(parser())
        for action in declared._actions
        for option in action.option_strings
        if option.startswith("--")
    }

    assert [name for name, _ in commands(parser()) if name not in PAGE] == []
    assert sorted(option for option in options - {"--output"} if option not in PAGE) == []


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.spread(1)
def test_the_commands_on_the_page_run(run: Run, folder: Path, as_json: bool) -> None:
    """One block after the other, in an empty folder with a table called people.parquet; in JSON too."""
    rows = table()
    pq.write_table(pa.table({"age": rows["age"], "salary": rows["wage"]}), "people.parquet")
    lines = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]

    for line in lines:
        program, *arguments = shlex.split(line)
        done = run(*arguments, *["--json"][:as_json])
        assert (program, done.code, done.err) == ("partita", 0, ""), line
        assert not as_json or done.records, line
    assert len(lines) >= 10


def test_the_spec_on_the_page_is_read(folder: Path) -> None:
    """It shows every type of column and every key of a release but `by` and `rho`, which replace others."""
    [block] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    Path("release.toml").write_text(block)

    spec = read_spec("release.toml")

    assert {name.lower() for name in (type(each).__name__ for each in spec.columns.values())} == set(
        COLUMN_KEYS
    )
    assert [key for key, value in vars(spec).items() if value is None] == ["by", "rho"]
    assert "`by = " in PAGE
    assert 'or rho = "1/8"' in PAGE
