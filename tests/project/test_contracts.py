"""The trust boundary holds, and the rules that guard it have teeth."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "partita"
LINT = Path(sys.executable).parent / "lint-imports"
RANDOM_MODULES = {"random", "secrets", "numpy.random"}
RANDOM_NAMES = {"urandom", "getrandom", "uuid1", "uuid4", "SystemRandom"}

LAYERS = "Lower layers never import higher ones"
PUBLIC = "The public side cannot reach noise, rows or the ledger"
TRUSTED = "Sources, mechanisms and streams stand on noise and secret counts"
RANDOMNESS = "Only partita.trusted.noise imports a source of randomness"
TESTING = "Only tests and the auditor import partita.testing"
DUCKDB = "Only partita.trusted.sources.engine imports DuckDB"
LEDGER = "The ledger knows guarantees, SQLite and PostgreSQL only"
NOISE = "Noise knows nothing of data and releases"
SERVICE = "The service cannot open data"
SPARK = "Only partita.trusted.sources.spark imports Spark"
POSTGRES = "Only the Postgres source and the Postgres ledger import psycopg"
SQLITE = "Only partita.storage imports SQLite"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package and its contracts, to plant violations in."""
    shutil.copytree(PACKAGE, tmp_path / "src" / "partita", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT, "--no-cache"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def plant(root: Path, module: str, line: str) -> None:
    """Append an import to a module, or make the module where there is none."""
    file = root / "src" / f"{module}.py"
    file.parent.mkdir(exist_ok=True)
    with file.open("a") as stream:
        stream.write(f"\n{line}\n")


def test_contracts_hold_on_an_untouched_copy(copy: Path) -> None:
    """The copies below break their contract because of what is planted, and of nothing else."""
    done = lint(copy)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("partita/public/planted", "import partita.trusted.noise", PUBLIC),
        ("partita/public/axis/planted", "from partita.trusted import secret", PUBLIC),
        ("partita/domain/planted", "import partita.trusted.noise.planted", PUBLIC),
        ("partita/public/planted", "import partita.ledger", PUBLIC),
        ("partita/trusted/mechanisms/planted", "import random", RANDOMNESS),
        ("partita/trusted/mechanisms/planted", "def f() -> None:\n    import secrets", RANDOMNESS),
        ("partita/trusted/secret", "import partita.testing", TESTING),
        ("partita/trusted/noise/planted", "import partita.trusted.mechanisms", TRUSTED),
        ("partita/trusted/noise/planted", "import partita.trusted.secret", NOISE),
        ("partita/errors", "from partita import numbers", LAYERS),
        ("partita/ledger/planted", "import partita.domain", LEDGER),
        ("partita/trusted/sources/__init__", "import partita.publish", LAYERS),
        ("partita/trusted/sources/planted", "import duckdb", DUCKDB),
        ("partita/service/planted", "import partita.trusted.sources", SERVICE),
        ("partita/service/planted", "from partita.publish.publish import publish", SERVICE),
        ("partita/service/planted", "import partita.cli", LAYERS),
        ("partita/trusted/sources/planted", "import pyspark", SPARK),
        ("partita/ledger/planted", "import psycopg", POSTGRES),
        ("partita/ledger/planted", "import sqlite3", SQLITE),
        ("partita/unplaced", "import partita.errors", LAYERS),
    ],
)
@pytest.mark.spread(6)
def test_a_planted_import_breaks_its_contract(copy: Path, module: str, line: str, contract: str) -> None:
    """Each forbidden import, also one of a module still to come, is found and named."""
    plant(copy, "partita/trusted/noise/planted", "VALUE = 1")
    plant(copy, module, line)

    done = lint(copy)

    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{contract} BROKEN" in done.stdout


def test_a_path_over_a_third_module_counts(copy: Path) -> None:
    """The public side may not reach noise indirectly either."""
    plant(copy, "partita/public/planted", "import partita.bridge")
    plant(copy, "partita/bridge", "import partita.trusted.noise")

    assert f"{PUBLIC} BROKEN" in lint(copy).stdout


def test_only_noise_draws_randomness() -> None:
    """No module outside partita.trusted.noise names a source of randomness, imported or not."""
    outside = [path for path in PACKAGE.rglob("*.py") if PACKAGE / "trusted" / "noise" not in path.parents]

    assert [use for path in outside for use in draws(path.read_text(), path.name)] == []


@pytest.mark.parametrize(
    "source",
    [
        "import os\nkey = os.urandom(32)",
        "from os import getrandom",
        "import numpy as np\nrng = np.random.default_rng()",
        "from numpy import random as r",
        "from numpy.random import default_rng",
        "import numpy.random as r",
        "import random",
        "from secrets import token_bytes",
        "import uuid\nname = uuid.uuid4()",
        "import importlib\nimportlib.import_module('secrets')",
        "open('/dev/urandom', 'rb')",
    ],
)
def test_the_search_for_randomness_has_teeth(source: str) -> None:
    """Every usual way to a random number is seen."""
    assert list(draws(source, "planted.py"))


def test_the_search_for_randomness_lets_prose_pass() -> None:
    """Words in a docstring and names of our own are no draws."""
    source = '"""No random draws here; see random and secrets."""\n\nrandomness = "random response"\n'

    assert list(draws(source, "clean.py")) == []


def draws(source: str, name: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if any(suspicious(word) for word in words(node)):
            yield f"{name}:{getattr(node, 'lineno', 0)}: {ast.unparse(node)}"


def words(node: ast.AST) -> list[str]:
    """The dotted names that a node imports, reads or spells."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    if isinstance(node, ast.Attribute):
        return [ast.unparse(node).replace("np.", "numpy.", 1)]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value.removeprefix("/dev/")]
    return []


def suspicious(word: str) -> bool:
    return word in RANDOM_MODULES or word.rpartition(".")[2] in RANDOM_NAMES
