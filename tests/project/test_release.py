"""Making a release ready: what stands in the way is said, and a wheel that does not work is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import release, wheels
from scripts.setup_env import SUPPORTED, python_version


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A small project of which everything is ready."""
    (tmp_path / "src" / "partita").mkdir(parents=True)
    (tmp_path / "src" / "partita" / "__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CITATION.cff").write_text("title: x\nversion: 1.2.3\nlicense: y\n")
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-31\n\n- x\n"
    )
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    return tmp_path


def test_nothing_stands_in_the_way_of_what_is_ready(ready: Path) -> None:
    """Version, changelog and citation agree, and everything is committed."""
    assert list(release.not_ready(ready)) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("CITATION.cff", "1.2.3", "1.2.2", "CITATION.cff has another version"),
        ("CHANGELOG.md", "2026-01-31", "unreleased", "no heading with the day"),
        ("CHANGELOG.md", "1.2.3", "1.2.2", "no heading with the day"),
        ("CHANGELOG.md", "[Unreleased]\n", "[Unreleased]\n\n- news\n", "lines under Unreleased"),
        ("src/partita/__init__.py", "1.2.3", "1.3.0", "CITATION.cff has another version"),
    ],
)
def test_what_is_not_ready_is_said(ready: Path, file: str, old: str, new: str, said: str) -> None:
    """Each of them by itself; and a change that is not committed is one more."""
    path = ready / file
    path.write_text(path.read_text().replace(old, new))

    lines = list(release.not_ready(ready))

    assert any(said in line for line in lines)
    assert any("not committed" in line for line in lines)


def test_a_folder_without_git_is_not_ready(ready: Path) -> None:
    """Nobody can say which commit such a release would be."""
    (ready / ".git").rename(ready / "elsewhere")

    assert any("no Git checkout" in line for line in release.not_ready(ready))


def test_every_supported_python_is_found_once() -> None:
    """Each version one time, the oldest first, the running one among them."""
    versions = [python_version(python) for python in wheels.pythons()]

    assert versions == sorted(set(SUPPORTED) & set(versions))
    assert sys.version_info[:2] in versions


def test_a_program_that_fails_says_why() -> None:
    """With its own last lines."""
    with pytest.raises(wheels.WheelFailed, match="status 3:\nbroken here"):
        wheels.call([sys.executable, "-c", "print('broken here'); raise SystemExit(3)"])


def test_the_size_of_a_folder_is_that_of_its_files(tmp_path: Path) -> None:
    """Links are not counted a second time."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(bytes(1000))
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "file")

    assert wheels.size(tmp_path) == wheels.size(tmp_path / "deep" / "file") == 1000
