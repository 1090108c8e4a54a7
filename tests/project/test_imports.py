"""Every module can be imported, and every name that is imported from ours exists.

Modules of the package, the benchmarks, the campaign and the scripts are imported. Examples and tests are
read: examples do their work when they are imported. Only a package of somebody else may be missing.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache, reduce
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ("partita", "benchmarks", "campaign", "scripts", "examples", "tests")
READ = ("benchmarks", "campaign", "scripts", "examples", "tests")
DOTTED = re.compile(r"partita(\.[A-Za-z_]\w*)+")
IMPORTING = f"""
import json, sys, traceback
from importlib import import_module

broken = {{}}
for name in json.load(sys.stdin):
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "partita").split(".")[0] in {OURS!r}:
            broken[name] = traceback.format_exc(limit=-2)
    except BaseException:
        broken[name] = traceback.format_exc(limit=-2)
json.dump(broken, sys.stdout)
"""


def modules() -> Iterator[str]:
    """Names of the modules that do nothing but define when they are imported."""
    for base, folder in ((ROOT / "src", "partita"), *((ROOT, name) for name in READ[:3])):
        for path in sorted((base / folder).rglob("*.py")):
            parts = path.relative_to(base).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def trees() -> list[tuple[str, ast.Module]]:
    """Files that use ours, read and not run."""
    paths = (path for folder in READ for path in sorted((ROOT / folder).rglob("*.py")))
    return [(str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def named(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Every module of ours that is imported, with the name that is taken from it, if any."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)


def exists(module: str, name: str = "") -> bool:
    """Whether a module of ours is there, and the name in it; what needs somebody else's package may be."""
    try:
        home = import_module(module)
    except ModuleNotFoundError as error:
        return (error.name or "partita").split(".")[0] not in OURS
    if not name or hasattr(home, name):
        return True
    return hasattr(home, "__path__") and find_spec(f"{module}.{name}") is not None


def resolves(text: str) -> bool:
    """Whether dotted text leads to a module, or to an object in one."""
    parts = text.split(".")
    split = next(place for place in range(len(parts), 0, -1) if exists(".".join(parts[:place])))
    try:
        reduce(getattr, parts[split:], import_module(".".join(parts[:split])))
    except ModuleNotFoundError:
        return True  # somebody else's package is missing
    except AttributeError:
        return False
    return True


def missing_names(tree: ast.Module) -> list[str]:
    """The names that a file imports from ours and that nobody has."""
    found = sorted({(home, name) for home, name in named(tree) if home.split(".")[0] in OURS[:4]})
    return [f"{home}: {name}" for home, name in found if not exists(home, name)]


def test_every_module_can_be_imported() -> None:
    """In a process of its own, so that none of them finds what another test has loaded."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", IMPORTING],
        input=json.dumps(list(modules())),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )

    assert json.loads(ran.stdout) == {}


def test_every_name_that_is_imported_exists() -> None:
    """Benchmarks, campaign, scripts, examples and tests, functions and type checkers' imports included."""
    assert {path: names for path, tree in trees() if (names := missing_names(tree))} == {}


def test_every_name_in_text_exists() -> None:
    """What is patched, started or loaded by its dotted name, in the same files."""
    texts = {
        (path, node.value)
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and DOTTED.fullmatch(node.value)
    }

    assert [(path, text) for path, text in sorted(texts) if not resolves(text)] == []


def test_a_name_that_is_gone_is_found() -> None:
    """A module, a name of a module, and one that is only imported in a function."""
    text = (
        "import partita.nowhere\n"
        "from partita.errors import Nothing, PartitaError\n"
        "def f():\n    from partita import gone\n"
    )

    assert missing_names(ast.parse(text)) == [
        "partita: gone",
        "partita.errors: Nothing",
        "partita.nowhere: ",
    ]
    assert resolves("partita.errors.PartitaError.__init__")
    assert not resolves("partita" + ".errors.Nothing")
    assert not resolves("partita" + ".nowhere.gone")
