"""Make `.venv` ready: python3 scripts/setup_env.py [EXTRA ...]

The environment uses the oldest supported Python on the machine, holds the project
(editable) with the versions of constraints.txt, and is stamped, so that a second run
is instant while pyproject.toml and constraints.txt stay as they are.

This file needs the standard library only and runs on any Python from 3.8 on; the
Python that runs it need not be the one that ends up in the environment.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "partita-stamp.json"
CONSTRAINTS = ROOT / "constraints.txt"
SUPPORTED = ((3, 11), (3, 12), (3, 13), (3, 14))
BACKEND = ("hatchling", "editables")  # what the editable build itself needs
SOURCE_ONLY = {"spark": "pyspark"}  # extras whose package has no wheel in the registry, and that package


class SetupFailed(Exception):
    """The environment cannot be made; the message says what is missing and what to do."""


def main(extras: Sequence[str]) -> int:
    try:
        prepare(sorted(set(extras)))
    except SetupFailed as failure:
        print(f"setup: {failure}", file=sys.stderr)
        return 1
    return 0


def prepare(extras: Sequence[str]) -> None:
    """Bring `.venv` to the wanted state, or leave a ready one alone."""
    stamp = read_stamp()
    wanted = sorted({*extras, *stamp.get("extras", [])})
    works = bool(stamp) and python_version(venv_python()) in SUPPORTED
    if works and stamp == new_stamp(wanted):
        return
    STAMP.unlink(missing_ok=True)
    if not works:
        create_venv(oldest_python())
    install(wanted)
    STAMP.write_text(json.dumps(new_stamp(wanted)))


# --- which Python -----------------------------------------------------------------------------


def oldest_python() -> str:
    """The oldest supported Python that really runs."""
    for candidate in candidates():
        if python_version(candidate) in SUPPORTED:
            return candidate
    raise SetupFailed(
        f"no supported Python found: Partita needs one of {spoken(SUPPORTED)}, "
        f"and this is {sys.version.split()[0]}; install one and put it on PATH"
    )


def candidates() -> Iterator[str]:
    """Every place to look, oldest version first, the running Python last."""
    for major, minor in SUPPORTED:
        yield from on_path(f"python{major}.{minor}")
    yield from on_path("python3")
    yield sys.executable


def on_path(name: str) -> Iterator[str]:
    """All programs of that name, not only the first: a pyenv shim may hide a working Python."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found = shutil.which(name, path=folder) if folder else None
        if found and not inside_venv(found):
            yield found


def inside_venv(program: str) -> bool:
    return VENV in Path(os.path.abspath(program)).parents


def python_version(python: object) -> tuple[int, ...] | None:
    """(major, minor), or None where it does not run."""
    output = ask([python, "-c", "import sys, venv; print(*sys.version_info[:2])"])
    return tuple(map(int, output.split())) if output else None


def spoken(versions: Sequence[tuple[int, ...]]) -> str:
    return ", ".join(".".join(map(str, version)) for version in versions)


# --- the environment --------------------------------------------------------------------------


def venv_python() -> Path:
    return VENV / "bin" / "python"


def create_venv(python: str) -> None:
    """An empty environment with a pip: from ensurepip, or borrowed where that is missing."""
    say(f"creating .venv with Python {spoken([python_version(python) or ()])}")
    shutil.rmtree(VENV, ignore_errors=True)
    run([python, "-m", "venv", "--without-pip", VENV])
    if ask([venv_python(), "-m", "ensurepip"]) is None or not has_pip(venv_python()):
        borrow_pip()


def has_pip(python: object) -> bool:
    return ask([python, "-m", "pip", "--version"]) is not None


def borrow_pip() -> None:
    """Let some pip on the machine fetch pip's wheel, and unpack it into the environment.

    That pip may be old (19.2 will do) and belong to any Python. A pure wheel is a zip of
    what belongs into site-packages, so unpacking is installing.
    """
    with tempfile.TemporaryDirectory() as folder:
        for pip in pips():
            if ask([*pip, *download(folder)]) is not None:
                (wheel,) = Path(folder).glob("pip-*.whl")
                zipfile.ZipFile(wheel).extractall(site_packages())
                return
    raise SetupFailed(
        "no pip found that could fetch one for .venv; install pip for a recent Python "
        "(on Debian: apt-get install python3-pip) and check that it reaches its package index"
    )


def pips() -> Iterator[list[str]]:
    """The command line of every pip that answers, those of supported Pythons first."""
    for candidate in (*candidates(), *on_path("python")):
        if has_pip(candidate):
            yield [candidate, "-m", "pip"]
    for candidate in (*on_path("pip3"), *on_path("pip")):
        if ask([candidate, "--version"]) is not None:
            yield [candidate]


def download(folder: str) -> list[str]:
    """The words that make a pip fetch the pinned pip for the Python of the environment."""
    version = ".".join(map(str, python_version(venv_python()) or ()))
    wheel_only = ["--no-deps", "--only-binary=:all:", "--python-version", version]
    return ["download", *wheel_only, "--constraint", str(CONSTRAINTS), "--dest", folder, "pip"]


def site_packages() -> Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path((ask([venv_python(), "-c", code]) or "").strip())


def install(extras: Sequence[str]) -> None:
    """The build backend first, then the project without build isolation: every version is pinned.

    Everything comes as a wheel, so that a dependency that would have to be built fails on every machine, not
    just on those without its compiler or its cached wheel. The packages of SOURCE_ONLY are an exception. They
    are built with isolation, which brings the build tools that they ask for.
    """
    project = f"{ROOT}[{','.join(extras)}]" if extras else str(ROOT)
    say(f"installing partita{project[len(str(ROOT)) :]}, versions as in constraints.txt")
    pip = [
        venv_python(),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--constraint",
        CONSTRAINTS,
        "--only-binary=:all:",
    ]
    run([*pip, *BACKEND])
    for name in (SOURCE_ONLY[extra] for extra in extras if extra in SOURCE_ONLY):
        run([*pip, f"--no-binary={name}", name])
    run([*pip, "--no-build-isolation", "--editable", project])


# --- the stamp --------------------------------------------------------------------------------


def sources() -> str:
    """A digest of the files that decide what is installed."""
    files = (ROOT / "pyproject.toml", CONSTRAINTS)
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def read_stamp() -> dict[str, Any]:
    """What was installed; empty where nothing was, or where the folder has moved since."""
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) and stamp.get("root") == str(ROOT) else {}


def new_stamp(extras: Sequence[str]) -> dict[str, Any]:
    return {"root": str(ROOT), "sources": sources(), "extras": list(extras)}


# --- talking to other programs ----------------------------------------------------------------


def ask(command: Sequence[object]) -> str | None:
    """What a program prints, or None where it cannot be run or fails."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=environment(), timeout=300, check=False, text=True,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def run(command: Sequence[object]) -> None:
    words = [str(word) for word in command]
    if subprocess.run(words, stdin=subprocess.DEVNULL, env=environment(), check=False).returncode:
        raise SetupFailed(f"this command failed, see its message above: {' '.join(words)}")


def environment() -> dict[str, str]:
    """The caller's environment, without what would lead a fresh Python astray."""
    astray = ("PYTHONHOME", "PYTHONPATH", "__PYVENV_LAUNCHER__")
    kept = {name: value for name, value in os.environ.items() if name not in astray}
    return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_REQUIRE_VIRTUALENV": "0"}


def say(message: str) -> None:
    print(f"setup: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
