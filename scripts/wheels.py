"""Build the wheel, and try it in a clean environment of every supported Python that is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.setup_env import CONSTRAINTS, ROOT, SUPPORTED, candidates, environment, python_version, spoken

PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
MEASURE_IMPORT = """
import json, time
before = time.process_time()
import partita
bare = time.process_time() - before
for name in partita.__all__:
    getattr(partita, name)
print(json.dumps({"bare": bare, "everything": time.process_time() - before}))
"""


class WheelFailed(Exception):
    """A distribution does not build, or does not work where it was installed."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What a clean environment of one Python showed."""

    python: str
    package_bytes: int
    installed_bytes: int
    import_seconds: float
    import_everything_seconds: float


def built(folder: Path) -> list[Path]:
    """The source distribution, and the wheel that is built from it."""
    call([sys.executable, "-m", "build", "--quiet", "--outdir", folder, ROOT])
    [wheel], [source] = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    return [source, wheel]


def pythons() -> list[str]:
    """One of each supported version that is found: on the path, or kept by pyenv."""
    found: dict[tuple[int, ...], str] = {}
    for candidate in (*candidates(), *kept_by_pyenv()):
        version = python_version(candidate)
        if version in SUPPORTED:
            found.setdefault(version, candidate)
    return [found[version] for version in sorted(found)]


def kept_by_pyenv() -> Iterator[str]:
    for major, minor in SUPPORTED:
        yield from map(str, sorted(PYENV.glob(f"{major}.{minor}.*/bin/python")))


def tried(python: str, wheel: Path, folder: Path) -> Trial:
    """Install the wheel and what it needs, nothing else, and do the main job with it."""
    call([python, "-m", "venv", folder])
    inside = folder / "bin" / "python"
    before = size(folder)
    call(
        [inside, "-m", "pip", "install", "--quiet", "--only-binary=:all:", "--constraint", CONSTRAINTS, wheel]
    )
    measured = imported(inside)
    use(inside, folder)
    return Trial(
        python=spoken([python_version(inside) or ()]),
        package_bytes=sum(map(size, folder.glob("lib/*/site-packages/partita*"))),
        installed_bytes=size(folder) - before,
        import_seconds=measured["bare"],
        import_everything_seconds=measured["everything"],
    )


def imported(python: Path) -> dict[str, float]:
    """CPU seconds of the import; the middle one of five fresh processes, after one that writes bytecode."""
    runs = [json.loads(call([python, "-I", "-c", MEASURE_IMPORT])) for _ in range(6)][1:]
    return {name: sorted(run[name] for run in runs)[2] for name in runs[0]}


def use(python: Path, folder: Path) -> None:
    """What a new user does first: ask for the version, run the demo; and what an auditor does."""
    command = folder / "bin" / "partita"
    call([command, "--version"])
    call([python, "-I", ROOT / "examples" / "demo.py"])
    call([command, "audit", "--depth", "quick"])


def size(path: Path) -> int:
    """Bytes of all files in a folder, or of a file."""
    files = path.rglob("*") if path.is_dir() else iter([path])
    return sum(file.stat().st_size for file in files if file.is_file() and not file.is_symlink())


def call(command: Sequence[object]) -> str:
    """What a program prints; if it fails, its last lines are the reason."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=environment(), check=False, text=True,
    )  # fmt: skip
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-15:])
        raise WheelFailed(f"{' '.join(words)} ended with status {done.returncode}:\n{tail}")
    return done.stdout
