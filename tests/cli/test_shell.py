"""The command line as a shell runs it: processes, pipes and signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import CANARY, Run

PARTITA = (sys.executable, "-m", "partita")


def start(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """A process of its own, with pipes for all that is not said."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([*PARTITA, *map(str, arguments)], text=True, **{**pipes, **options})


def loaded_after(*arguments: str) -> set[str]:
    """The modules that a command has loaded when it ends."""
    code = (
        "import sys\nfrom partita.cli import main\n"
        f"main({list(arguments)!r})\nprint(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", [("--help",), ("publish", "--help"), ("query", "x", "cuont")])
def test_help_loads_nothing_heavy(arguments: tuple[str, ...]) -> None:
    """Help and usage errors come at once: what is heavy is loaded by the commands that use it."""
    heavy = {"numpy", "pyarrow", "duckdb", "numba", "matplotlib", "flint", "cryptography", "sqlite3"}

    assert loaded_after(*arguments) & heavy == set()


def test_a_query_loads_no_engine(release: Path) -> None:
    """Whoever asks a release needs no DuckDB."""
    assert loaded_after("query", str(release), "count") & {"duckdb", "numba", "matplotlib"} == set()


def test_the_module_and_the_script_are_one(folder: Path) -> None:
    """`python -m partita` and `partita` run the same function."""
    done = subprocess.run([*PARTITA, "--version"], capture_output=True, text=True, check=True)
    scripts = [each for each in (Path(sys.executable).parent / "partita",) if each.exists()]
    said = [subprocess.check_output([script, "--version"], text=True) for script in scripts]

    assert done.stdout.startswith("partita ")
    assert set(said) <= {done.stdout}


@pytest.mark.faults
def test_a_reader_that_leaves_is_no_error(release: Path) -> None:
    """`partita query ... | head -1` ends without a word on stderr."""
    read, write = os.pipe()
    os.close(read)

    with start("query", release, "histogram of wage in 9999 bins", stdout=write) as process:
        os.close(write)
        _, said = process.communicate()

    assert (process.returncode, said) == (141, "")


@pytest.mark.faults
def test_a_full_disk_under_stdout_is_said(release: Path) -> None:
    """The result could not be shown, and the exit code tells."""
    with open("/dev/full", "w") as full, start("query", release, "count", stdout=full) as process:
        _, said = process.communicate()

    assert process.returncode == 1
    assert said == "partita: error: the system says No space left on device\n"


def interrupted(patch: str, *arguments: object) -> tuple[int, str]:
    """The exit code and stderr of a command that gets Ctrl-C once it has reached `stop` in the patch."""
    code = (
        "import signal, sys\n"
        "def stop(*_):\n    print('here', flush=True)\n    signal.pause()\n"
        f"{patch}\n"
        "from partita.cli import main\nsys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "here\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    return process.returncode, said


@pytest.mark.faults
def test_an_interrupted_query_ends_quietly(release: Path) -> None:
    """Ctrl-C while it waits for questions: exit code 130, one word, no traceback."""
    patch = "import types\nsys.stdin = types.SimpleNamespace(read=stop)"

    assert interrupted(patch, "query", release, "-") == (130, "partita: interrupted\n")


@pytest.mark.faults
@pytest.mark.parametrize(
    "patch",
    [
        "import partita.trusted.sources.engine as place\nplace.LocalSource.counts = stop",
        "from partita.publish import publish as place\nplace.draw = stop",
    ],
)
def test_an_interrupted_publish_leaves_nothing(run: Run, people: Path, spec: Path, patch: str) -> None:
    """Ctrl-C while rows are read or noise is drawn: no release and no temporary file."""
    run("check", people, "--spec", spec)
    before = {path.name for path in people.parent.iterdir()}

    done = interrupted(patch, "publish", people, "--spec", spec, "-o", people.parent / "out.parquet")

    assert done == (130, "partita: interrupted\n")
    assert {path.name for path in people.parent.iterdir()} == before


@pytest.mark.faults
def test_no_stream_shows_a_value(people: Path, spec: Path) -> None:
    """Whether it succeeds or fails, `publish` writes no value of the table to stdout or stderr."""
    wrong = people.parent / "wrong.toml"
    wrong.write_text(spec.read_text().replace("columns.age", "columns.aeg").replace('["age"]', '["aeg"]'))
    ends = []
    for path in (spec, wrong):
        done = subprocess.run(
            [*PARTITA, "publish", people, "--spec", path, "-o", people.parent / f"{path.stem}.out"],
            capture_output=True,
            text=True,
            check=False,
        )
        ends.append(done.returncode)
        assert CANARY not in done.stdout + done.stderr

    assert ends == [0, 1]


@pytest.mark.faults
def test_a_terminal_of_ascii_is_enough(release: Path) -> None:
    """Bars and signs are drawn with what there is."""
    done = subprocess.run(
        [*PARTITA, "info", release],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )

    assert done.stdout.isascii()
    assert b"#" in done.stdout
