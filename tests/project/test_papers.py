"""docs/papers.md names classes, options, functions and tests that exist, and every mechanism of a paper."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import partita
import partita.local
import partita.pan

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "papers.md"
NAMESPACES = (partita, partita.local, partita.pan)
CLASS = re.compile(r"([A-Z]\w+)(?:\((.*)\))?")
OPTION = re.compile(r"(\w+)=")
OF_THE_PAPERS = {
    "TreeCounter", "SparseCounter", "PanPrivateCounter", "PerStepCounter", "DirectCounter",
    "RandomizedResponseCounter", "Partition", "PaperIntervals", "PaperRectangles", "Tree", "Thresholds",
    "Laplace", "ProjectedLaplace", "MultiplicativeWeights", "Normalization", "GlobalTruncation",
    "InstanceTruncation",
    "ComposedTruncation", "SingleTruncation", "Density", "LROracle", "SQOracle",
}  # fmt: skip


def _rows() -> list[list[str]]:
    """The cells of every row of a table, without headings."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def _spans() -> list[str]:
    """All that stands in code spans of tables."""
    return [span for row in _rows() for cell in row for span in re.findall(r"`([^`]+)`", cell)]


def _found(name: str) -> Any:
    return next((getattr(space, name) for space in NAMESPACES if hasattr(space, name)), None)


def _named() -> dict[str, set[str]]:
    """The classes of the tables, each with the options that it is written with."""
    named: dict[str, set[str]] = {}
    for span in _spans():
        match = CLASS.fullmatch(span)
        if match and _found(match[1]) is not None:
            named.setdefault(match[1], set()).update(OPTION.findall(match[2] or ""))
    return named


def test_every_path_exists() -> None:
    """Tests and examples."""
    paths = [span for span in _spans() if "/" in span and " " not in span]

    assert len(paths) > 60
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_row_of_a_class_has_a_test() -> None:
    """A row without one says that it is out of scope, or is a heading or a measurement."""
    rows = [row for row in _rows() if len(row) == 4 and "here" not in row]

    assert len(rows) > 60
    assert [row for row in rows if "`tests/" not in row[3] and not row[2].startswith("out of scope")] == []


def test_every_class_exists_and_has_its_options() -> None:
    """In the package itself, in its local model, or in its sketches; an option is one of its parameters."""
    named = _named()
    missing = [
        f"{name}({option}=)"
        for name, options in named.items()
        for option in options - set(inspect.signature(_found(name)).parameters)
    ]

    assert len(named) > 40
    assert missing == []


def test_no_span_names_nothing() -> None:
    """What begins like a class is one: here, or in the examples."""
    examples = (ROOT / "examples" / "theorems.py").read_text()
    classes = [match[1] for span in _spans() if (match := CLASS.fullmatch(span))]
    functions = [span for span in _spans() if re.fullmatch(r"[a-z]+_[a-z_0-9]+", span)]

    assert [name for name in classes if _found(name) is None and f"class {name}" not in examples] == []
    assert [
        name
        for name in functions
        if not any(f"def {name}(" in text for text in (examples, *_sources())) and _found(name) is None
    ] == []


def _sources() -> list[str]:
    return [path.read_text() for path in (ROOT / "src").rglob("*.py")]


@pytest.mark.parametrize("dotted", ["benchmarks.streams.packing.least_error"])
def test_functions_of_benchmarks_exist(dotted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their full names."""
    monkeypatch.syspath_prepend(ROOT)
    module, _, name = dotted.rpartition(".")

    assert dotted in _spans()
    assert callable(getattr(import_module(module), name))


def test_no_mechanism_of_the_papers_is_left_out() -> None:
    """Every class that a document describes has a row."""
    assert OF_THE_PAPERS - _named().keys() == set()
