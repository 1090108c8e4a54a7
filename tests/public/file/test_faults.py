"""Crashes, limits, and twenty thousand hostile files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from partita.public.axis.base import AxisRelease
from partita.public.boxes.base import BoxRelease
from partita.public.file import encode, load, save
from partita.public.sums.base import SumRelease
from partita.public.workload.release import WorkloadRelease

from .specimens import release

pytestmark = pytest.mark.faults

ROOT = Path(__file__).parents[3]
FILES = 20_000
PROCESSES = 2
STEPS = 16


def start(module: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", f"tests.public.file.{module}", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_hostile_files_give_typed_errors_or_answers(tmp_path: Path) -> None:
    """No file of twenty thousand crashes the reader, costs it a gigabyte or ten seconds, or surprises it.

    Half are damaged in their bytes; half are forged: well-formed, with a right checksum and changed
    content. Whatever is accepted is asked everything, and answers with finite numbers.
    """
    for kind in (*AxisRelease.kinds(), *BoxRelease.kinds(), *SumRelease.kinds(), *WorkloadRelease.kinds()):
        (tmp_path / f"{kind}.parquet").write_bytes(encode(release(kind)))
    share = FILES // PROCESSES
    workers = [start("fuzz", tmp_path, first, first + share) for first in range(0, FILES, share)]
    said = [worker.communicate() for worker in workers]

    assert [worker.returncode for worker in workers] == [0] * PROCESSES, "".join(error for _, error in said)
    outcomes = sum((Counter(json.loads(lines)) for lines, _ in said), start=Counter[str]())
    assert sum(outcomes.values()) == FILES
    assert outcomes["forged: answered"] > FILES // 20
    assert outcomes["forged: refused"] > FILES // 20
    assert outcomes["damaged: refused"] > FILES // 4


@pytest.mark.parametrize("mode", ["new", "overwrite"])
def test_kill_9_at_any_step_leaves_a_whole_file_or_none(tmp_path: Path, mode: str) -> None:
    """A process that dies between any two calls to the system leaves what was there, or all that is new."""
    source, folder = tmp_path / "from.parquet", tmp_path / "folder"
    save(release("tree"), source)
    targets = [folder / str(step) / "a.parquet" for step in range(STEPS)]
    for target in targets:
        target.parent.mkdir(parents=True)
        if mode == "overwrite":
            save(release("laplace"), target)
    codes = [int(line) for line in start("saver", source, folder, mode).communicate()[0].split()]
    found = [load(target).columns[0] if target.exists() else "nothing" for target in targets]

    old = "laplace" if mode == "overwrite" else "nothing"
    died = codes.count(-signal.SIGKILL)
    assert codes == [-signal.SIGKILL] * died + [0] * (STEPS - died)
    assert found == sorted(found, key=[old, "tree"].index)
    assert found.count(old) >= 3
    assert found[died - 1] == "tree"


def test_kill_9_at_any_moment_leaves_a_whole_file(tmp_path: Path) -> None:
    """While a file is replaced again and again, it can be read at any time."""
    source, target = tmp_path / "from.parquet", tmp_path / "a.parquet"
    save(release(), source)
    whole = len(release().views)
    for turns in (1, 2, 3, 5, 8):
        saver = start("saver", source, tmp_path, "forever")
        assert saver.stdout is not None
        for _ in range(turns):
            assert saver.stdout.readline() == "saved\n"
            assert len(load(target).views) == whole
        saver.kill()
        saver.communicate()
        assert len(load(target).views) == whole


LIMITED = """
import os, resource, sys
from partita.errors import PartitaError
from partita.public.file import load, reserve, save
release = load(sys.argv[1])
if sys.argv[3] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
elif os.geteuid() == 0:
    os.seteuid(65534)
try:
    save(release, sys.argv[2])
except PartitaError as error:
    print(error)
try:
    load(sys.argv[2])
except PartitaError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("limit", "mode", "write", "read"),
    [
        ("full", 0o755, "File too large", "No such file"),
        ("permission", 0o555, "Permission denied", "No such file"),
        ("permission", 0o000, "Permission denied", "Permission denied"),
    ],
)
def test_a_disk_that_refuses_is_named_and_left_clean(
    tmp_path: Path, limit: str, mode: int, write: str, read: str
) -> None:
    """A full disk and a closed folder give errors of ours, and nothing half-written."""
    save(release("tree"), tmp_path / "from.parquet")
    folder = tmp_path / "folder"
    folder.mkdir()
    for above in (tmp_path, *list(tmp_path.parents)[:2]):
        above.chmod(0o755)
    folder.chmod(mode)
    command = [
        sys.executable,
        "-c",
        LIMITED,
        str(tmp_path / "from.parquet"),
        str(folder / "a.parquet"),
        limit,
    ]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    folder.chmod(0o755)

    assert [line.split(" ")[0] for line in said] == ["path", "release"]
    assert write in said[0]
    assert read in said[1]
    assert os.listdir(folder) == []
