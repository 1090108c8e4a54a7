"""The figures of the structure are counted rightly, in trees made for it and in ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.house import ROUTES, House, main, walk

MANY_LINES = "".join(f"NUMBER_{number} = {number}\n" for number in range(60))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with one class in two modules, one name of a module in two folders, and few imports."""
    files = {
        "__init__.py": '"""A package."""\n',
        "first/__init__.py": "",
        "first/shape.py": '"""One."""\n\n# Why it is here.\nclass Square: ...\nclass _Own: ...\n'
        + MANY_LINES,
        "second/__init__.py": "",
        "second/shape.py": "import os  # noqa\nclass Square: ...\nclass _Own: ...\n",
        "second/user.py": (
            "from typing import TYPE_CHECKING\n"
            "if TYPE_CHECKING:\n    from package.first.shape import Square\n"
            "def use():\n    from package.second import shape\n    from . import shape\n"
        ),
        "other.py": "from package.first import shape\n",
    }
    for name, text in files.items():
        path = tmp_path / "package" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "package"


def test_repetitions_are_found(package: Path) -> None:
    """Public classes of one name, and modules of one name, with the places."""
    house, both = House.read(package), ["package.first.shape", "package.second.shape"]

    assert house.repeated_classes() == {"Square": both}
    assert house.repeated_names() == {"shape": both}


def test_lines_and_importers_are_counted(package: Path) -> None:
    """Imports in functions and for type checkers count; comments and docstrings are no code."""
    house = House.read(package)
    figures = house.figures()

    assert house.single_importers() == {"package.second.shape": "package.second.user"}
    assert figures["files"] == 7
    assert figures["import lines"] == 6
    assert figures["code lines"] == 62 + 3 + 6 + 1
    assert figures["comment lines"] == 1
    assert "package.first.shape" not in house.small()


def test_the_figures_of_the_package_are_plausible(capsys: pytest.CaptureFixture[str]) -> None:
    """Many files, and the least of them in a count that was asked before."""
    assert main(["--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    files = {route: found["files"] for route, found in figures["routes"].items()}

    assert figures["files"] > 100
    assert figures["lines"] > 10_000
    assert set(files) == set(ROUTES)
    assert 0 < files["count-again"] <= files["count"] < files["publish"]


def test_a_route_enters_the_files_that_it_must() -> None:
    """A count calls a function of the module of releases, and nothing that publishes."""
    files = walk("count").calls

    assert any(Path(file).name == "release.py" for file in files)
    assert not any("publish" in file for file in files)
