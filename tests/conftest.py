"""What repeats itself in tests, and what looks for news: examples of Hypothesis, and the kernel's bytes."""

from __future__ import annotations

import gc
import hashlib
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings

from partita.trusted.noise import kernel
from tests.seams import SETTLING

# Folders whose tests need a package that only their own stage installs.
_NEEDS = {"browser": "playwright", "docs": "griffe"}
collect_ignore = [folder for folder, package in _NEEDS.items() if find_spec(package) is None]

# Folders whose tests publish with the noise of the system: the same in each run.
_PUBLISHING = [Path(__file__).parent / folder for folder in ("publish", "trusted/mechanisms")]
_READING = [Path(__file__).parent / folder for folder in ("public", "cli", "core")]  # releases are kept there
_NOISE = "tests/trusted/noise"  # where fresh bytes are what is tested

settings.register_profile("fast", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("fresh", deadline=None, max_examples=1_000, print_blob=True)
settings.load_profile("fast")


def pytest_addoption(parser: pytest.Parser) -> None:
    engines = "duckdb,polars-arrow,pandas,spark,postgres"
    parser.addoption("--fresh", action="store_true", help="samples of the statistics stage are new each time")
    parser.addoption("--engine", default="", help=f"some of {engines}; default: all that are there")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test marked `spread(n)`, n evenly spread cases run in `make test`; the others are thorough."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("spread"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for same in cases.values():
        marker = same[0].get_closest_marker("spread")
        assert marker
        [quick] = marker.args
        chosen = {round((i + 0.5) * len(same) / quick - 0.5) for i in range(quick)}
        for index, item in enumerate(same):
            if index not in chosen:
                item.add_marker(pytest.mark.thorough)


def pytest_collection_finish() -> None:
    """What is loaded by now lives to the end: the garbage collector need not look at it again."""
    gc.freeze()


def pytest_unconfigure() -> None:
    """At the end everything is collected, or DuckDB reports its objects as leaks."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def fixed_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test draws the same noise in each run, with the shipped code on top of fixed bytes.

    That is for large samples, and for what is published with the noise of the system. What the tests of a
    module share is the same, whichever comes first. Tests of the words
    themselves, marked `statistics(fresh=True)`, ask the kernel, and with `--fresh` all do.
    """
    marker = request.node.get_closest_marker("statistics")
    fresh = marker and marker.kwargs.get("fresh")
    parents = request.node.path.parents
    kept = any(folder in parents for folder in _READING)
    wanted = marker or kept or any(folder in parents for folder in _PUBLISHING)
    if wanted and not fresh and not request.config.getoption("--fresh"):
        monkeypatch.setattr(kernel, "os", _fixed_os(request.node.path.name if kept else request.node.name))


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Any:
    """What several tests share is made of the same noise in each run, whichever test comes first.

    Such fixtures are made before `fixed_bytes` of a test, so that it cannot reach them.
    """
    own = fixturedef.scope == "function" or fixturedef.baseid.startswith(_NOISE)
    if own or request.config.getoption("--fresh"):
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        name = f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param_index', 0)}"
        patch.setattr(kernel, "os", _fixed_os(name))
        return (yield)


def _fixed_os(name: str) -> SimpleNamespace:
    """In place of the module `os`: bytes that depend on a name, and on how many have been drawn."""
    numbers = count()

    def urandom(size: int) -> bytes:
        return hashlib.shake_256(f"{name} {next(numbers)}".encode()).digest(size)

    return SimpleNamespace(urandom=urandom)


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    """Pictures of a test are closed at its end: pyplot keeps them, and complains about the twenty-first."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture
def quick_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights settle their guess in few steps: what is public may be computed in any way."""
    monkeypatch.setattr(SETTLING, 40)
