"""Who came last is in no array of the process when `update_many` has returned."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from partita.pan import Density, Distinct, RampRegisters, Registers
from partita.pan.sketch import Universe, erase_after
from partita.testing import ZeroNoise

from .remembering import SKETCHES

REMEMBERING = Path(__file__).with_name("remembering.py")
START, STEP = 54_321, 997


@pytest.mark.parametrize(
    "make",
    [
        lambda: Density(universe=50, epsilon=1),
        lambda: Registers(universe=50, epsilon=1),
        lambda: RampRegisters(universe=50, epsilon=1, tops=[2]),
        lambda: Distinct(epsilon=1, buckets=8, most=100),
    ],
)
@pytest.mark.parametrize("fails", [False, True])
def test_the_places_of_a_batch_are_overwritten(
    make: Any, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the step fails: then an interrupted update leaves nothing either."""
    sketch, found = make(), []
    find = sketch._find

    def watched(ids: Any) -> Any:
        found.append(find(ids))
        return found[-1]

    monkeypatch.setattr(sketch, "_find", watched)
    if fails:
        monkeypatch.setattr(sketch, "_step", _interrupted)
    with pytest.raises(KeyboardInterrupt) if fails else nullcontext():
        sketch.update_many([7, 9, 7])

    [places] = found
    assert places.tolist() == [0, 0, 0]


def _interrupted() -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint64, np.float64])
def test_the_caller_keeps_the_ids_that_were_passed(kind: type) -> None:
    """Only our copy is overwritten, whatever the type of the column is."""
    ids: Any = np.array([7, 9, 7], dtype=kind)
    with erase_after(Universe.of(50).find(ids)) as places:
        assert places.tolist() == [7, 9, 7]
    assert ids.tolist() == [7, 9, 7]


def test_whole_floats_are_ids_and_nothing_else_is() -> None:
    """A column with a missing value is one of floats; NaN, infinities and halves are nobody."""
    column = np.array([3.0, np.nan, np.inf, -np.inf, 2.5, 49.0, 50.0, -1.0])
    for given in (column, column.tolist(), column.astype(np.float32), list(column)):
        assert Universe.of(50).find(given).tolist() == [3, 49]
    assert Universe.of(["a", 3]).find([3.0, np.float64(3), 3.5, np.nan]).tolist() == [1, 1]
    states = []
    for given in ([3, 5], [3.0, 5.0], np.array([3.0, np.nan, 5.0])):
        sketch = Distinct(epsilon=1, buckets=8, most=100, noise=ZeroNoise())
        sketch.update_many(given)
        states.append(sketch.state())
    assert len(set(states)) == 1


def _memory(pid: int) -> bytes:
    """All that a process can write to."""
    found = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            start, end, rights = re.match(r"(\w+)-(\w+) (\S+)", line).groups()  # type: ignore[union-attr]
            if rights.startswith("rw"):
                memory.seek(int(start, 16))
                found.append(memory.read(int(end, 16) - int(start, 16)))
    return b"".join(found)


def _copies(kind: str, erased: bool) -> int:
    """How often eight ids that came one after the other are found in the memory of a process."""
    command = [sys.executable, str(REMEMBERING), kind, str(START), str(STEP), str(int(erased))]
    needle = (START + STEP * np.arange(500, 508)).tobytes()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"waiting\n"
            return _memory(process.pid).count(needle)
        except PermissionError:
            pytest.skip("this system lets no process read another")
        finally:
            process.kill()


@pytest.mark.faults
@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs /proc")
@pytest.mark.parametrize("kind", SKETCHES)
def test_no_copy_of_a_batch_stays_in_memory(kind: str) -> None:
    """The caller's array is found as long as it is there, and once; when it is overwritten nothing is."""
    assert _copies(kind, erased=False) == 1
    assert _copies(kind, erased=True) == 0
