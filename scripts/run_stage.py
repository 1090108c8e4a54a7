"""Run the test stages, each within its budget: python scripts/run_stage.py [STAGE ...]

Without a name, all stages run in the order of the table. A stage that overruns its
budget is killed with everything it started, and fails.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

ROOT: Final = Path(__file__).resolve().parent.parent
BIN: Final = Path(sys.executable).parent
PYTEST: Final = (sys.executable, "-m", "pytest")
FAST: Final = "not statistics and not faults and not browser and not engines and not docs"


@dataclass(frozen=True)
class Stage:
    name: str
    minutes: float
    commands: tuple[tuple[str, ...], ...]


STAGES: Final = (
    Stage(
        "fast",
        12,
        (
            (sys.executable, "-m", "ruff", "check", "."),
            (sys.executable, "-m", "ruff", "format", "--check", "."),
            (sys.executable, "-m", "mypy"),
            (str(BIN / "lint-imports"), "--no-cache", "--no-logo"),
            (*PYTEST, "-n2", "-m", FAST, "--doctest-modules", "src", "tests"),
        ),
    ),
    Stage("statistics", 8, ((*PYTEST, "-n2", "-m", "statistics", "tests"),)),
    Stage("faults", 18, ((*PYTEST, "-m", "faults", "tests"),)),
    Stage("engines", 15, ((*PYTEST, "-m", "engines", "tests"),)),
    Stage("browser", 6, ((*PYTEST, "-m", "browser", "tests"),)),
    Stage("docs", 15, ((*PYTEST, "-n2", "-m", "docs", "tests"),)),
    Stage("wheels", 8, ((sys.executable, "-m", "scripts.release", "--rehearsal"),)),
)


class StageFailed(Exception):
    """A command of the stage failed or the stage overran its budget."""


def main(names: Sequence[str]) -> int:
    known = {stage.name: stage for stage in STAGES}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no stage named {', '.join(unknown)}; the stages are {', '.join(known)}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, stop)
    try:
        for name in names or known:
            run_stage(known[name])
    except StageFailed as failure:
        print(f"=== {failure}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def run_stage(stage: Stage) -> None:
    """Run the commands of a stage one after the other; stop at the first that fails."""
    print(f"=== stage {stage.name}: budget {spoken(stage.minutes * 60)}", flush=True)
    start = time.monotonic()
    for command in stage.commands:
        print("+", shown(command), flush=True)
        run_command(stage, command, deadline=start + stage.minutes * 60)
    elapsed = time.monotonic() - start
    print(f"=== stage {stage.name} passed: {spoken(elapsed)} of {spoken(stage.minutes * 60)}", flush=True)


def run_command(stage: Stage, command: Sequence[str], *, deadline: float) -> None:
    """Run one command in a process group of its own, so that nothing of it survives."""
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        status = process.wait(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        budget = spoken(stage.minutes * 60)
        raise StageFailed(f"stage {stage.name} overran its budget of {budget} in: {shown(command)}") from None
    finally:
        end_group(process)
    if status:
        raise StageFailed(f"stage {stage.name} failed with status {status} in: {shown(command)}")


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill whatever is left of the group that `process` leads."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def stop(signum: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + signum)


def shown(command: Sequence[str]) -> str:
    words = [Path(word).name if word.startswith(str(BIN)) else word for word in command]
    return " ".join(f'"{word}"' if " " in word else word for word in words)


def spoken(seconds: float) -> str:
    """A time as people say it: 75 is '1 min 15 s'."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
