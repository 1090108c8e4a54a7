"""Run test stages and print one table: python scripts/run_stages.py [quick | slow | all | STAGE ...]

`quick` is `make test`, `all` is `make test-all`, and `slow` is what `all` adds. A stage that fails does not
stop the others. A stage installs the extras it needs. The only limit in time is a hang guard of one hour per
stage: a slow machine is no failure.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn
from xml.etree import ElementTree

ROOT: Final = Path(__file__).resolve().parent.parent
BIN: Final = Path(sys.executable).parent
REPORTS: Final = ROOT / "build" / "tests"
PYTEST: Final = (sys.executable, "-m", "pytest", "-q")
MARKED: Final = ("thorough", "statistics", "faults", "browser", "engines", "docs")
FAST: Final = f"sample or not ({' or '.join(MARKED)})"
HANG_GUARD: Final = 3600.0
"""Seconds after which a stage is taken to hang: more than ten times what the longest one takes."""

SIGN_OF_LIFE: Final = 20.0
"""Seconds after which the dots of a stage that runs beside another are shown, though their line goes on."""

PATHS: Final = ("src", "tests")
SPARK: Final = "src/partita/trusted/sources/spark"
"""Modules that cannot be imported without PySpark; their doctests are run by the stage `engines`."""

CORE: Final = ("test", "serve", "fast")


@dataclass(frozen=True)
class Stage:
    """Commands that are run one after the other, and the extras that they need.

    `marker` makes a stage of pytest; `workers` is how many processes that uses.
    """

    name: str
    extras: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...] = ()
    marker: str = ""
    workers: int = 1

    def all_commands(self) -> tuple[tuple[str, ...], ...]:
        if not self.marker:
            return self.commands
        spread = ("-n", str(self.workers)) if self.workers > 1 else ()
        report = f"--junitxml={self.report()}"
        doctests = ("--doctest-modules", f"--ignore={SPARK}") if self.marker == FAST else ()
        paths = PATHS if self.marker == FAST else PATHS[1:]
        return (*self.commands, (*PYTEST, *spread, "-m", self.marker, report, *doctests, *paths))

    def report(self) -> Path:
        return REPORTS / f"{self.name}.xml"


LINT: Final = (
    (sys.executable, "-m", "ruff", "check", "."),
    (sys.executable, "-m", "ruff", "format", "--check", "."),
)
CONTRACTS: Final = ((str(BIN / "lint-imports"), "--no-cache", "--no-logo"),)

QUICK: Final = (
    (
        Stage("types", CORE, ((sys.executable, "-m", "mypy"),)),
        Stage("lint", CORE, LINT),
        Stage("contracts", CORE, CONTRACTS),
    ),
    (Stage("fast", CORE, marker=FAST, workers=2),),
)
SLOW: Final = (
    (Stage("thorough", (*CORE, "dev"), marker="thorough and not sample", workers=2),),
    (Stage("statistics", (*CORE, "dev"), marker="statistics and not sample", workers=2),),
    (
        Stage("faults", (*CORE, "dev"), marker="faults and not sample"),
        Stage(
            "engines",
            (*CORE, "dev", "postgres", "spark"),
            ((*PYTEST, "--doctest-modules", SPARK),),
            marker="engines",
        ),
    ),
    (
        Stage("docs", (*CORE, "bench", "dev", "docs", "notebook"), marker="docs"),
        Stage("browser", (*CORE, "dev"), marker="browser"),
        Stage("wheels", (*CORE, "dev"), ((sys.executable, "-m", "scripts.release", "--rehearsal"),)),
    ),
)
"""Stages of a group run at the same time, two at the most, after the extras of the group are installed."""

STAGES: Final = {stage.name: stage for group in (*QUICK, *SLOW) for stage in group}


@dataclass(frozen=True)
class Result:
    """How a stage ended: numbers of tests (or of commands, where there are no tests), and what it cost."""

    stage: str
    passed: int
    failed: int
    skipped: tuple[str, ...]
    seconds: float
    cpu: float


@dataclass(frozen=True)
class Program:
    """A program that some tests need: what is looked for, and what brings it on Debian."""

    name: str
    looked_for: tuple[str, ...]
    package: str
    stage: str


PROGRAMS: Final = (
    Program("Chromium", ("chromium", os.environ.get("PARTITA_CHROMIUM", "chromium")), "chromium", "browser"),
    Program("npm", ("npm",), "npm", "browser"),
    Program("Java", ("java",), "openjdk-17-jre-headless", "engines"),
    Program("PostgreSQL", ("initdb", "/usr/lib/postgresql/*/bin/initdb"), "postgresql", "engines"),
    Program("R", ("Rscript",), "r-base-core", "docs"),
    Program("a C compiler", ("cc",), "gcc libc6-dev", "faults"),
)


def main(words: Sequence[str]) -> int:
    try:
        groups = chosen(words)
    except KeyError as unknown:
        print(
            f"no stage named {unknown.args[0]}; the stages are {', '.join(STAGES)}, or quick, slow, all",
            file=sys.stderr,
        )
        return 2
    signal.signal(signal.SIGTERM, stop)
    results: list[Result] = []
    try:
        for group in groups:
            results += run_group(group)
    except KeyboardInterrupt:
        print("\ninterrupted", flush=True)
        if results:  # of the groups that had ended
            print(table(results), flush=True)
        return 130
    finally:
        end_all()
    print(table(results), flush=True)
    for line in left_out([result.stage for result in results], results):
        print(line, flush=True)
    return int(any(result.failed for result in results))


def chosen(words: Sequence[str]) -> list[tuple[Stage, ...]]:
    """The groups to run, in order; KeyError with the word that names no stage."""
    named = {"quick": QUICK, "slow": SLOW, "all": (*QUICK, *SLOW)}
    wanted: set[str] = set()
    for word in words or ["quick"]:
        wanted |= (
            {stage.name for group in named[word] for stage in group} if word in named else {STAGES[word].name}
        )
    groups = (tuple(stage for stage in group if stage.name in wanted) for group in (*QUICK, *SLOW))
    return [group for group in groups if group]


# --- running ------------------------------------------------------------------------------------


def run_group(group: Sequence[Stage]) -> list[Result]:
    """Install what the group needs, then run its stages, two at a time."""
    extras = sorted({extra for stage in group for extra in stage.extras})
    command = (sys.executable, str(ROOT / "scripts" / "setup_env.py"), *extras)
    status, seconds, cpu = run_command(command, label="", guard=HANG_GUARD)
    if status:
        print(
            f"=== not run, because the installation failed: {', '.join(stage.name for stage in group)}",
            flush=True,
        )
        return [Result(stage.name, 0, 1, (), seconds, cpu) for stage in group]
    REPORTS.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(run_stage, stage, label=stage.name if group[1:] else "") for stage in group]
        try:
            return [each.result() for each in running]
        except BaseException:
            end_all()
            raise


def run_stage(stage: Stage, *, label: str = "", guard: float = HANG_GUARD) -> Result:
    """Run every command of a stage, whatever becomes of the ones before it."""
    announce(stage.name, "starts")
    stage.report().unlink(missing_ok=True)
    passed = failed = 0
    seconds = cpu = 0.0
    for command in stage.all_commands():
        status, took, used = run_command(command, label=label, guard=guard)
        seconds, cpu = seconds + took, cpu + used
        passed, failed = passed + (status == 0), failed + (status != 0)
    skipped: tuple[str, ...] = ()
    if stage.marker:
        passed, found, skipped = read_report(stage.report())
        failed = max(found, failed)  # a run that broke off counts as one failure at least
    announce(stage.name, f"{'FAILED' if failed else 'passed'} after {spoken(seconds)}")
    return Result(stage.name, passed, failed, skipped, seconds, cpu)


_running: set[int] = set()
_lock = threading.Lock()
_stopping = threading.Event()


def run_command(command: Sequence[str], *, label: str, guard: float) -> tuple[int, float, float]:
    """Status, seconds and CPU seconds of a command, run in a process group of its own.

    Nothing of the group survives the command. With a label, each line of output is marked with it.
    """
    say(f"{prefix(label)}+ {shown(command)}")
    start = time.monotonic()
    output = subprocess.PIPE if label else None
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, cwd=ROOT, start_new_session=True, stdout=output, stderr=subprocess.STDOUT if label else None,
        env=environment,
    )  # fmt: skip
    with _lock:
        _running.add(process.pid)
        if _stopping.is_set():
            end_group(process.pid)
    relay = threading.Thread(target=relay_lines, args=(process, label), daemon=True)
    relay.start()
    status, cpu = wait(process.pid, guard)
    process.returncode = status
    end_group(process.pid)
    with _lock:
        _running.discard(process.pid)
    relay.join()
    if status == -signal.SIGKILL and time.monotonic() - start >= guard:
        say(f"{prefix(label)}=== taken to hang after {spoken(guard)}: {shown(command)}")
    return status, time.monotonic() - start, cpu


def wait(pid: int, guard: float) -> tuple[int, float]:
    """The status of a child, which is killed after `guard`, and the CPU seconds of it and of its children."""
    deadline = time.monotonic() + guard
    while True:
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
        if time.monotonic() > deadline:
            end_group(pid)
        time.sleep(0.05)


def relay_lines(process: subprocess.Popen[bytes], label: str) -> None:
    if process.stdout is not None:
        with process.stdout as pipe:
            relay(iter(lambda: os.read(pipe.fileno(), 2**16), b""), label)


def relay(pieces: Iterable[bytes], label: str) -> None:
    """Print what comes, line by line; after a while an unfinished line too, as a sign of life."""
    held, printed = b"", time.monotonic()
    for piece in pieces:
        *lines, held = (held + piece).split(b"\n")
        if time.monotonic() - printed > SIGN_OF_LIFE:
            lines, held = [*lines, held], b""
        for line in lines:
            say(f"{prefix(label)}{line.decode(errors='replace').rstrip()}")
            printed = time.monotonic()
    if held:
        say(f"{prefix(label)}{held.decode(errors='replace').rstrip()}")


def end_group(pid: int) -> None:
    """Kill whatever is left of the process group that `pid` leads."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def end_all() -> None:
    """Kill every command that runs, and each that would be started from now on."""
    _stopping.set()
    with _lock:
        for pid in _running:
            end_group(pid)


def stop(signum: int, _frame: object) -> NoReturn:
    end_all()
    raise SystemExit(128 + signum)


# --- what is said -------------------------------------------------------------------------------


def read_report(path: Path) -> tuple[int, int, tuple[str, ...]]:
    """Numbers of passed and failed tests and the reasons of skips, from a JUnit file; zeros without one."""
    try:
        suites = list(ElementTree.parse(path).getroot().iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        return 0, 0, ()
    ran = sum(int(suite.get("tests", 0)) for suite in suites)
    failed = sum(int(suite.get(kind, 0)) for suite in suites for kind in ("failures", "errors"))
    skipped = tuple(reason(skip) for suite in suites for skip in suite.iter("skipped"))
    return ran - failed - len(skipped), failed, skipped


def reason(skip: ElementTree.Element) -> str:
    """Why a test was skipped; of a whole file, it is the end of the text: ('PATH', LINE, 'Skipped: WHY')."""
    _, _, of_file = (skip.text or "").rpartition("Skipped: ")
    message = skip.get("message", "")
    return of_file.rstrip("')\\n ") if message == "collection skipped" and of_file else message


def table(results: Sequence[Result]) -> str:
    """A row per stage and their sum, in columns."""
    rows: list[tuple[str, ...]] = [("stage", "passed", "failed", "skipped", "seconds", "CPU seconds")]
    for each in results:
        counts = (each.passed, each.failed, len(each.skipped), round(each.seconds), round(each.cpu))
        rows.append((each.stage, *map(str, counts)))
    sums = [sum(int(row[column]) for row in rows[1:]) for column in range(1, 6)]
    rows.append(("all", *map(str, sums)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(word.rjust(width) for word, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(["", *lines, "", f"{sums[0]} passed, {sums[1]} failed, {sums[2]} skipped"])


def left_out(stages: Sequence[str], results: Sequence[Result]) -> Iterator[str]:
    """What was skipped and why, what programs are missing, and which stages were not part of this run."""
    reasons = Counter(reason for result in results for reason in result.skipped)
    for reason, number in reasons.most_common():
        yield f"skipped {number}: {reason}"
    for program in PROGRAMS:
        if not present(program):
            install = f"apt-get install {program.package}"
            yield f"{program.name} is missing: {install}, then make test-{program.stage} runs what needs it"
    others = [name for name in STAGES if name not in stages]
    if others:
        yield f"not part of this run: {', '.join(others)} (make test-all: all, make test-NAME: one stage)"


def present(program: Program) -> bool:
    return any(shutil.which(place) or list(Path("/").glob(place.lstrip("/"))) for place in program.looked_for)


def say(line: str) -> None:
    """Print a line as one piece: stages that run side by side must not mix theirs."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def announce(name: str, what: str) -> None:
    say(f"=== stage {name} {what}")


def prefix(label: str) -> str:
    return f"[{label}] " if label else ""


def shown(command: Sequence[str]) -> str:
    words = [Path(word).name if word.startswith(str(BIN)) else word for word in command]
    return " ".join(f'"{word}"' if " " in word else word for word in words).replace(f"{ROOT}{os.sep}", "")


def spoken(seconds: float) -> str:
    """A time as people say it: 75 is '1 min 15 s'."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
