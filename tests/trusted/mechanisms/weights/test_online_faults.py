"""Sessions that are killed: what was told is on disk, and no run is ever begun twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from partita.domain import Integer
from partita.public.queries.language import between
from partita.public.queries.queries import Universe
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.online_weights import OnlineTerms, WeightsSession, open_session
from partita.trusted.secret import Points

pytestmark = pytest.mark.faults

UNIVERSE = Universe(["age", "pay"], [Integer(0, 3), Integer(0, 3)])
DATA = Points.from_rows([[at, at] for at in range(1, 5)], axes=UNIVERSE.axes, counts=[300] * 4)
UPDATES = 12

CHILD = """
import os, signal, sys
from pathlib import Path
from partita.trusted.mechanisms import online_weights as online_store
from tests.trusted.mechanisms.weights.test_online_faults import asked, opened

left = int(sys.argv[2])
def counting(name):
    real = getattr(online_store.OnlineStore, name)
    def step(self, *given):
        global left
        if sys.argv[3] == "before" and left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        made = real(self, *given)
        left -= 1
        if sys.argv[3] == "after" and left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return made
    setattr(online_store.OnlineStore, name, step)

for name in ("act", "begin", "record"):
    counting(name)
asked(opened(Path(sys.argv[1])))
"""


def opened(path: Path) -> WeightsSession:
    """The session of these tests."""
    noise = tape_noise(EndlessTape("killed"))
    terms = OnlineTerms.of(universe=UNIVERSE, epsilon=5, updates=UPDATES, threshold=10)
    return open_session(path, terms, DATA, noise=noise)


def asked(session: WeightsSession) -> None:
    """Four questions; what is measured is told when it is answered."""
    for at in range(4):
        session.ask(between("age", at, at) * between("pay", at, at))
        for update in session.measured:
            print(f"{update.query}\t{update.noisy}", flush=True)


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("steps", [2, 3, 4, 5])
def test_a_killed_session_has_counted_and_stored_what_it_told(tmp_path: Path, steps: int, side: str) -> None:
    """Killed before or after any act, a session has on disk all that it told, and every run that it began."""
    root = Path(__file__).parents[4]
    command = [sys.executable, "-c", CHILD, str(tmp_path / "s"), str(steps), side]
    killed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    told = {tuple(line.split("\t")) for line in killed.stdout.splitlines()}

    with opened(tmp_path / "s") as session:
        stored = {(update.query, str(update.noisy)) for update in session.measured}
        begun = UPDATES - session.remaining

        assert killed.returncode == -9
        assert told <= stored
        assert len(stored) <= begun <= len(stored) + 1
