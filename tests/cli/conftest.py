"""A small table, a spec and a release of it, and the command line in this process."""

from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partita.cli import main
from partita.publish import check

CANARY = "Quetzalcoatlus"
"""A word that stands in the data only: wherever else it is seen, something leaked."""

SPEC = """
[columns.age]
type = "integer"
low = 0
high = 120

[columns.wage]
type = "real"
low = 0
high = 1e3
step = 0.05

[columns.hired]
type = "date"
start = 2020-01-01
end = 2023-12-31

[columns.region]
type = "category"
labels = ["north", "south"]

[release]
views = [["age"], ["wage"], ["hired"], ["region"]]
epsilon = "4"
mechanism = "tree"
"""


JOINT = """
[columns.age]
type = "integer"
low = 0
high = 120

[columns.wage]
type = "real"
low = 0
high = 99.75
step = 0.25

[columns.region]
type = "category"
labels = ["north", "south"]

[release]
epsilon = "40000"
mechanism = "grid"
"""
"""Three columns published together, by a mechanism that has no error where it has no noise."""


class Done(NamedTuple):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[Any]:
        """The JSON objects on stdout, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Done]


@pytest.fixture(autouse=True, scope="session")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for what is noted about checks, in place of that of the user."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks have been run before: `publish` has nothing to note."""
    monkeypatch.setattr(check, "was_checked", lambda *_: True)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process."""

    def ran(*arguments: object) -> Done:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return ran


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, its spec and three releases of it, made once; tests get copies."""
    shelf = tmp_path_factory.mktemp("shelf")
    pq.write_table(pa.table(table()), shelf / "people.parquet")
    (shelf / "release.toml").write_text(SPEC)
    (shelf / "joint.toml").write_text(JOINT)
    publish = ["publish", str(shelf / "people.parquet"), "--spec", str(shelf / "release.toml"), "-o"]
    assert main([*publish, str(shelf / "people.release.parquet")]) == 0
    assert main([*publish, str(shelf / "exact.release.parquet"), "--epsilon", "40000"]) == 0
    publish[3] = str(shelf / "joint.toml")
    assert main([*publish, str(shelf / "joint.release.parquet")]) == 0
    return shelf


def table() -> dict[str, list[Any]]:
    """Four hundred people, one of whom has a region that nobody may read in any message."""
    start, rows = datetime.date(2020, 1, 1), range(400)
    return {
        "id": list(rows),
        "age": [None if row % 50 == 0 else row % 90 for row in rows],
        "wage": [row * 0.25 for row in rows],
        "hired": [start + datetime.timedelta(days=row) for row in rows],
        "region": [CANARY if row == 7 else ("north", "south")[row % 2] for row in rows],
    }


@pytest.fixture
def people(shelf: Path, folder: Path) -> Path:
    """The table, in the working directory."""
    return Path(shutil.copy(shelf / "people.parquet", folder))


@pytest.fixture
def spec(shelf: Path, folder: Path) -> Path:
    """What the steward wrote down about the table."""
    return Path(shutil.copy(shelf / "release.toml", folder))


@pytest.fixture
def exact(shelf: Path, folder: Path) -> Path:
    """A release with so large an epsilon that its noise is 0, but for a probability below 10^-100."""
    return Path(shutil.copy(shelf / "exact.release.parquet", folder))


@pytest.fixture
def release(shelf: Path, folder: Path) -> Path:
    """The release of the table."""
    return Path(shutil.copy(shelf / "people.release.parquet", folder))


@pytest.fixture
def joint(shelf: Path, folder: Path) -> Path:
    """A release of three columns together with so large an epsilon that its noise is 0, as good as surely."""
    return Path(shutil.copy(shelf / "joint.release.parquet", folder))
