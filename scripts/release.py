"""Make a release ready: python -m scripts.release [--rehearsal] [--json]

Checks that version, changelog and citation agree and that nothing is uncommitted, builds the distributions
into build/dist, and tries the wheel in a clean environment of every supported Python that is found. A
rehearsal names what is not ready and goes on. What to do before and after: docs/releasing.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts.setup_env import ROOT, ask
from scripts.wheels import Trial, WheelFailed, built, pythons, tried

DIST = ROOT / "build" / "dist"


def main(arguments: Sequence[str]) -> int:
    options = parsed(arguments)
    missing = list(not_ready(ROOT))
    for line in missing:
        print(f"not ready: {line}", file=sys.stderr)
    if missing and not options.rehearsal:
        return 1
    try:
        files, trials = made()
    except WheelFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    print(as_json(files, trials) if options.json else as_table(files, trials))
    return 0


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts.release", description="Make a release ready.")
    parser.add_argument("--rehearsal", action="store_true", help="go on although something is not ready")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser.parse_args(arguments)


def not_ready(root: Path) -> Iterator[str]:
    """What stands in the way of a release, one sentence each."""
    version = version_of(root)
    if f"\nversion: {version}\n" not in (root / "CITATION.cff").read_text():
        yield f"CITATION.cff has another version than {version}, that of the package"
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog(root), re.MULTILINE):
        yield f"CHANGELOG.md has no heading with the day of version {version}"
    if re.search(r"^## \[Unreleased\]\n+(?!## )\S", changelog(root), re.MULTILINE):
        yield "CHANGELOG.md has lines under Unreleased; they belong to this version"
    if ask(["git", "-C", root, "status", "--porcelain"]) != "":
        yield "something is not committed, or this is no Git checkout"


def version_of(root: Path) -> str:
    found = re.search(
        r'^__version__ = "([^"]+)"$', (root / "src/partita/__init__.py").read_text(), re.MULTILINE
    )
    assert found, "the package has no version"
    return found.group(1)


def changelog(root: Path) -> str:
    return (root / "CHANGELOG.md").read_text()


def made() -> tuple[list[Path], list[Trial]]:
    """Fresh distributions, and a trial of the wheel on each Python."""
    shutil.rmtree(DIST, ignore_errors=True)
    files, trials = built(DIST), []
    for python in pythons():
        with tempfile.TemporaryDirectory(prefix="partita-wheel-") as folder:
            trials.append(tried(python, files[-1], Path(folder)))
            print(
                f"Python {trials[-1].python}: installed, demo and audit passed", file=sys.stderr, flush=True
            )
    return files, trials


def as_json(files: Sequence[Path], trials: Sequence[Trial]) -> str:
    sizes = {file.name: file.stat().st_size for file in files}
    return json.dumps({"files": sizes, "trials": [dataclasses.asdict(trial) for trial in trials]})


def as_table(files: Sequence[Path], trials: Sequence[Trial]) -> str:
    """Two Markdown tables: what was built, and what was installed."""
    lines = ["| file | size |", "|---|---|"]
    lines += [f"| {file.name} | {megabytes(file.stat().st_size)} |" for file in files]
    lines += [
        "",
        "| Python | partita | with all it needs | import | import of every name |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {trial.python} | {megabytes(trial.package_bytes)} | {megabytes(trial.installed_bytes)} "
        f"| {trial.import_seconds:.3f} s CPU | {trial.import_everything_seconds:.2f} s CPU |"
        for trial in trials
    ]
    return "\n".join(lines)


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
