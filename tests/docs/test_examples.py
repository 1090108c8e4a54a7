"""Every example runs to its end, draws what its page shows, and tells the truth."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Final
from xml.etree import ElementTree

import pytest

from tests.docs.run import ROOT

pytestmark = pytest.mark.docs

EXAMPLES: Final = ("salaries", "flights", "influenza", "clinic_density", "browser_telemetry")
PICTURES: Final = ROOT / "docs" / "pictures" / "examples"
LARGEST: Final = 100_000
CHECK: Final = re.compile(r"^check: .*: the truth (\S+) lies in \[(\S+), (\S+)\]$", re.MULTILINE)
SAID: Final = {"clinic_density": ("quarter 4 ", "a subpoena"), "salaries": ("a second release is refused",)}
SHOWN: Final = re.compile(r"!\[[^]]+\]\(\.\./pictures/examples/(\S+)\)")


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_tells_its_story_to_the_end(name: str, tmp_path: Path) -> None:
    """It exits well, its checks hold, its pictures are those of its page, and it says what a reader can do.

    Each check fails once in 10^9 runs.
    """
    told = subprocess.run(
        [sys.executable, ROOT / "examples" / f"{name}.py", tmp_path / "pictures"],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    checks = [tuple(map(float, found)) for found in CHECK.findall(told.stdout)]
    drawn = sorted(path.name for path in (tmp_path / "pictures").glob("*.svg"))

    assert told.returncode == 0, told.stderr
    assert checks
    assert all(low <= truth <= high for truth, low, high in checks)
    assert drawn == sorted(SHOWN.findall((ROOT / "docs" / "examples" / f"{name}.md").read_text()))
    assert all(words in told.stdout for words in SAID.get(name, ()))
    assert "What you can do now\n-------------------\n1. " in told.stdout


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_a_notebook(name: str) -> None:
    """It has cells, and nothing of it is left for a main function that cells would not run."""
    text = (ROOT / "examples" / f"{name}.py").read_text()

    assert text.count("\n# %%") >= 5
    assert "__main__" not in text


def test_the_pictures_of_the_pages_are_small_and_harmless() -> None:
    """Whole SVG, without scripts and without anything from elsewhere."""
    pictures = sorted(PICTURES.iterdir())

    assert {path.name.rsplit("_", 1)[0] for path in pictures} == set(EXAMPLES)
    for path in pictures:
        tags = {element.tag.rsplit("}", 1)[-1] for element in ElementTree.parse(path).iter()}
        assert path.stat().st_size < LARGEST
        assert "script" not in tags
        assert not re.search(r'href="(?!#|data:)', path.read_text())


def test_a_check_that_fails_ends_the_story(telling: ModuleType, tmp_path: Path) -> None:
    """Planted bug: a truth outside its bounds."""
    told = telling.Told("story")

    told.check("what holds", 1.0, (0.0, 2.0))
    with pytest.raises(SystemExit, match="what does not: the truth lies outside"):
        told.check("what does not", 3.0, (0.0, 2.0))


@pytest.fixture
def telling(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What the examples share, as a script would have it."""
    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.setattr(matplotlib, "rcParams", matplotlib.rcParams.copy())
    monkeypatch.setattr(sys, "argv", ["story.py"])
    spec = importlib.util.spec_from_file_location("telling", ROOT / "examples" / "telling.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
