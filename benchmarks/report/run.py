"""One run: every question, in every setting, by us, by the papers and by the peers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.peers.worker import Problem, measured
from benchmarks.report.environments import ROOT, Environment, NotInstalled, environment, last_line
from benchmarks.report.model import Effort, Failure, Question, Row, Setting, row_of
from benchmarks.report.peers import Offer, Peer

PATIENCE = 300
"""Seconds that a peer may take for all releases in one setting."""

Say = Callable[[str], None]


class WorkerFailed(Exception):
    """A worker did not answer; the message says why in one line."""


@dataclass(frozen=True)
class Bench:
    """The peers that could be installed, and a record of what could not be done."""

    effort: Effort
    peers: Mapping[str, tuple[Peer, Environment]]
    failures: list[Failure] = field(default_factory=list)
    say: Say = lambda text: None

    @classmethod
    def set_up(cls, peers: Sequence[Peer], folder: Path, effort: Effort, say: Say) -> Bench:
        """Make the environments; those that cannot be made are on record."""
        found: dict[str, tuple[Peer, Environment]] = {}
        failures = []
        for peer in peers:
            say(f"installing {peer.title}")
            try:
                made = environment(folder / peer.worker, peer.requirements, install=not effort.quick)
                found[peer.worker] = (peer, made)
            except NotInstalled as reason:
                failures.append(Failure(peer.title, "install", str(reason)))
        return cls(effort, found, failures, say)

    def rows(self, question: Question) -> Iterator[Row]:
        """All methods in all settings of a question."""
        for setting in self.effort.first(question.settings(self.effort)):
            self.say(f"{question.title}: {setting.label}")
            yield from self._ours_and_papers(question, setting)
            yield from self._peers(question, setting)

    def _ours_and_papers(self, question: Question, setting: Setting) -> Iterator[Row]:
        for each in question.contestants:
            yield row_of(question, setting, each.name, each.kind, measured(each.method, setting.problem))

    def _peers(self, question: Question, setting: Setting) -> Iterator[Row]:
        for peer, made in self.peers.values():
            for offer in peer.offers:
                if offer.question == question.name:
                    yield from self._offer(question, setting, peer, made, offer)

    def _offer(
        self, question: Question, setting: Setting, peer: Peer, made: Environment, offer: Offer
    ) -> Iterator[Row]:
        problem = {**setting.problem, "releases": self.effort.some(offer.releases)}
        try:
            found = worked(made, peer.module, offer.method, problem)
            yield row_of(question, setting, offer.title, "peer", found)
        except WorkerFailed as reason:
            what = f"{question.title.lower()} ({offer.title}): {setting.label}"
            self.failures.append(Failure(peer.title, what, str(reason)))


def worked(
    made: Environment, module: str, method: str, problem: Problem, *, patience: float = PATIENCE
) -> dict[str, Any]:
    """What a worker measured, in its own process and environment."""
    with TemporaryDirectory() as folder:
        asked, told = Path(folder, "problem.npz"), Path(folder, "answers.npz")
        known: dict[str, Any] = {name: value for name, value in problem.items() if name != "truth"}
        np.savez(asked, **known)
        command = [str(made.python), "-W", "ignore", "-m", module, method, str(asked), str(told)]
        finished(command, patience)
        with np.load(told) as stored:
            found = dict(stored)
    if not np.isfinite(found["answers"]).all():
        raise WorkerFailed("answers that are not numbers")
    return found


def finished(command: Sequence[str], patience: float = PATIENCE) -> None:
    """Run a worker to its end, if it comes within so many seconds."""
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, check=False, text=True, timeout=patience
        )
    except subprocess.TimeoutExpired:
        raise WorkerFailed(f"took longer than {patience:.0f} s") from None
    if done.returncode:
        raise WorkerFailed(last_line(done.stderr) or f"status {done.returncode}")


def on_terminal(text: str) -> None:
    """For whoever watches."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
