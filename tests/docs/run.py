"""Run what stands in the fences of pages: python -m tests.docs.run [--show] PAGE ...

A page is typed in from top to bottom, in one Python and one fresh folder: `python` blocks share a namespace,
`sh` lines find `partita` and `python`, `sql` goes to DuckDB. Python that reaches for the network is refused.
With --show, the values of bare expressions and the rows of queries are printed, as at a prompt.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.docs.fences import RUN, Fence, fences
from tests.docs.settings import SETTINGS

ROOT: Final = Path(__file__).resolve().parents[2]
BIN: Final = str(Path(sys.executable).parent)
HERE: Final = ("127.0.0.1", "::1", "localhost")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.docs.run", description=__doc__)
    parser.add_argument("--show", action="store_true", help="print values, as at a prompt")
    parser.add_argument("pages", nargs="+", type=Path)
    options = parser.parse_args(arguments)
    sys.addaudithook(refuse_network)
    os.environ |= {"MPLBACKEND": "Agg", "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    for page in [page.resolve() for page in options.pages]:
        run_page(page, show=options.show)
    return 0


def refuse_network(event: str, details: tuple[Any, ...]) -> None:
    """Pages run offline: only sockets of this machine are connected."""
    if event == "socket.connect" and isinstance(details[1], tuple) and details[1][0] not in HERE:
        raise RuntimeError("a page must not use the network")


def run_page(page: Path, *, show: bool = False) -> None:
    """Type in one page, in a folder that is gone afterwards."""
    name = spoken(page)
    blocks = list(fences(page.read_text()))
    for block in blocks:
        block.check(name)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        typed = Typed(name, show=show)
        typed.python(Fence(language="python", text=SETTINGS.get(name, ""), line=1))
        for block in blocks:
            if block.language in RUN:
                typed.run(block)
        os.chdir(ROOT)


def spoken(page: Path) -> str:
    """The name of a page in the project, or its path if it lies elsewhere."""
    return page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else str(page)


class Typed:
    """What was typed in so far: the names of Python and the connection to DuckDB."""

    def __init__(self, page: str, *, show: bool) -> None:
        self.page = page
        self.names: dict[str, Any] = {"__name__": "__main__", "__file__": page}
        self.show = show
        self.connection: Any = None

    def run(self, block: Fence) -> None:
        """Run a block in its language; whatever it raises says where it stands."""
        try:
            getattr(self, block.language)(block)
        except Exception as error:
            error.add_note(f"in the block at {self.page}:{block.line}")
            raise

    def python(self, block: Fence) -> None:
        """Run a block with the names of those before; tracebacks name the page and its line."""
        tree = ast.parse(block.text, filename=self.page)
        ast.increment_lineno(tree, block.line - 1)
        if self.show:
            exec(compile(ast.Interactive(tree.body), self.page, "single"), self.names)
        else:
            exec(compile(tree, self.page, "exec"), self.names)

    def sh(self, block: Fence) -> None:
        """Run a block in one shell, which stops at the first command that fails."""
        sys.stdout.flush()
        quiet = None if self.show else subprocess.PIPE
        done = subprocess.run(["bash", "-eo", "pipefail", "-c", block.text], stdout=quiet, stderr=quiet)
        if done.returncode:
            said = b"" if self.show else done.stdout + done.stderr
            raise RuntimeError(f"status {done.returncode}\n{said.decode()}")

    def sql(self, block: Fence) -> None:
        """Run a block on the one connection of the page."""
        import duckdb

        self.connection = self.connection or duckdb.connect()
        rows = self.connection.sql(block.text)
        if self.show and rows is not None:
            print(rows)
        elif rows is not None:
            rows.fetchall()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
