"""`partita serve` as it is: a release, tokens, folders, and the processes, for as long as a block runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import partita as pt
from benchmarks.load.client import Service
from partita.service.tokens import TokenFile

RATE = 1_000_000
PEOPLE = 100_000


@dataclass(frozen=True)
class Place:
    """The folders and tokens of a service; they stay where processes come and go."""

    folder: Path
    feed: str
    admin: str

    @classmethod
    def made(cls, folder: Path) -> Place:
        """New folders, with one feeder and one admin."""
        (folder / "public").mkdir()
        tokens = TokenFile(folder / "tokens.json")
        return cls(folder, tokens.create("gate", scopes=["feed"]), tokens.create("boss", scopes=["admin"]))

    def publish(self) -> None:
        """Put a release of made-up people into the public folder."""
        draws = np.random.default_rng(1)
        people = {"age": draws.integers(0, 100, PEOPLE), "salary": draws.integers(0, 2**16, PEOPLE)}
        schema = {"age": pt.Integer(0, 120), "salary": pt.Integer(0, 2**16 - 1)}
        release = pt.publish(people, schema, epsilon=1, views=[("age",), ("salary",)])
        release.save(self.folder / "public" / "people.release.parquet")
        self._publish_together(people, draws.integers(0, 200, PEOPLE))

    def _publish_together(self, people: dict[str, Any], town: Any) -> None:
        """Put a release of three columns together there, whose questions are the most work."""
        schema = {"age": pt.Integer(0, 120), "salary": pt.Integer(0, 2**16 - 1), "town": pt.Integer(0, 199)}
        release = pt.publish({**people, "town": town}, schema, epsilon=1, views=[("age", "salary", "town")])
        release.save(self.folder / "public" / "together.release.parquet")


@dataclass(frozen=True)
class Processes:
    """A running service."""

    reading: Service
    steward: Service
    admin: Service
    supervisor: subprocess.Popen[str]

    def kill_steward(self) -> None:
        """End the process that is fed, at once; the supervisor then ends the rest."""
        os.kill(self._steward_id(), signal.SIGKILL)
        self.supervisor.wait(60)

    def _steward_id(self) -> int:
        pid = self.supervisor.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        lines = {int(child): Path(f"/proc/{child}/cmdline").read_bytes() for child in children}
        return next(child for child, line in lines.items() if b"steward" in line.split(b"\0"))


@contextmanager
def served(place: Place, *, workers: int = 1) -> Iterator[Processes]:
    """The service on free ports of loopback, until the block ends."""
    supervisor = subprocess.Popen(
        _command(place, workers), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert supervisor.stdout is not None
        said = [json.loads(supervisor.stdout.readline()) for _ in range(2)]
        address = {line["process"]: line["address"] for line in said}
        yield Processes(
            Service(address["reading"]),
            Service(address["steward"], place.feed),
            Service(address["steward"], place.admin),
            supervisor,
        )
    finally:
        supervisor.terminate()
        supervisor.wait(60)
        if supervisor.stdout is not None:
            supervisor.stdout.close()


def _command(place: Place, workers: int) -> list[str]:
    folder = place.folder
    named = ["--streams", folder / "secret", "--tokens", folder / "tokens.json", "--rate", RATE]
    named += ["--workers", workers]
    ports = ["--port", 0, "--steward-port", 0, "--public", "--json"]
    return [sys.executable, "-m", "partita", "serve", *map(str, [folder / "public", *named, *ports])]
