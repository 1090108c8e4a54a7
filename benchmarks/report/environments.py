"""Environments of the peers: made by name with pip, one folder each, and what they weigh."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.11", "3.12")
"""What all pinned versions have wheels for."""

MAKING, INSTALLING = 120, 900
"""Seconds that may be spent."""

LONGEST = 200
"""Characters of a reason."""

NOT_COUNTED = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "__pycache__")
"""In every environment, whatever is installed."""


class NotInstalled(Exception):
    """The environment could not be made; the message says why in one line."""


@dataclass(frozen=True)
class Environment:
    """A folder with a Python of its own."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        """Where pip puts what it installs."""
        return next((self.folder / "lib").glob("python3*/site-packages"))

    @property
    def megabytes(self) -> float:
        """What was installed, dependencies included, without pip."""
        return sum(map(size, self._installed())) / 1e6

    def _installed(self) -> Iterator[Path]:
        for path in self.packages.iterdir():
            if not path.name.startswith(NOT_COUNTED):
                yield path

    @property
    def version(self) -> str:
        """Of its Python."""
        return self.packages.parent.name.removeprefix("python")


def environment(
    folder: Path, requirements: Sequence[str], *, install: bool = True, fresh: bool = False
) -> Environment:
    """The environment of that folder: as it was left if it holds just these requirements, or a fresh one."""
    made, wanted = Environment(folder), "\n".join(requirements)
    stamp = folder / "requirements.txt"
    if not fresh and stamp.is_file() and stamp.read_text() == wanted:
        return made
    if not install:
        raise NotInstalled("not installed, and a quick run installs nothing")
    shutil.rmtree(folder, ignore_errors=True)
    call([working_python(), "-m", "venv", str(folder)], seconds=MAKING)
    call(
        [str(made.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements],
        seconds=INSTALLING,
    )
    stamp.write_text(wanted)
    return made


def working_python() -> str:
    """A Python that the pinned versions support: this one, one on the path, or one of pyenv."""
    for candidate in candidates():
        if answers(candidate):
            return candidate
    raise NotInstalled(f"no Python {' or '.join(PYTHONS)} was found")


def candidates() -> Iterator[str]:
    """Pythons that may work, the best guess first."""
    yield sys.executable
    yield from (f"python{version}" for version in PYTHONS)
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for version in PYTHONS:
        yield from (str(found) for found in sorted(root.glob(f"{version}.*/bin/python3")))


def answers(python: str) -> bool:
    """Whether it starts and is of a supported version."""
    asked = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        told = subprocess.run(asked, capture_output=True, check=False, text=True, timeout=MAKING)
    except OSError:
        return False
    return told.returncode == 0 and told.stdout.strip() in PYTHONS


def call(command: Sequence[str], *, seconds: float) -> None:
    """Run a command; what goes wrong is said in one line."""
    try:
        done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"took longer than {seconds:.0f} s") from None
    if done.returncode:
        raise NotInstalled(last_line(done.stderr) or f"status {done.returncode}")


def last_line(text: str) -> str:
    """The last line that says something, of pip the first error; without the folder of this project."""
    lines = [line.strip() for line in text.replace(str(ROOT), ".").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines[::-1] or [""])[0][:LONGEST]


def size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    if not path.is_dir():
        return path.stat().st_size
    files = (each for each in path.rglob("*") if "__pycache__" not in each.parts and each.is_file())
    return sum(each.stat().st_size for each in files)
