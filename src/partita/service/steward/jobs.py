"""Jobs of publishing: one at a time, in the order in which they came, and what became of them.

Records are kept in memory, the latest ones. What must outlive the process is elsewhere: the ledger knows
the key of every request that was charged, and the release lies in its folder.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, Literal, TypeAlias, final

from partita.errors import KeyReused
from partita.noise.kernel import token
from partita.service.web.errors import Refusal

__all__ = ["Job", "Jobs", "Order"]

State: TypeAlias = Literal["queued", "running", "done", "failed"]
Phase: TypeAlias = Callable[[str], None]

_REMEMBERED: Final = 1_000


@final
@dataclass(frozen=True, kw_only=True)
class Order:
    """What an admin asks for: a spec by its name, a name for the release, and a key for repeating it."""

    spec: str
    name: str
    key: str
    epsilon: Fraction | None = None


@final
@dataclass(frozen=True, kw_only=True)
class Job:
    """An order, how far it is, and why it failed if it did. No time is noted: it would tell of the data."""

    id: str
    order: Order
    state: State = "queued"
    phases: tuple[str, ...] = ()
    error: str | None = None


@final
@dataclass
class Jobs:
    """All jobs of a process. `run` does one, tells its phases, and returns why it failed, or None.

    A thread does the work and dies with the process; what it has started then goes on to its end.
    """

    run: Callable[[Order, Phase], str | None]
    most: int
    _jobs: dict[str, Job] = field(default_factory=dict)
    _waiting: queue.Queue[str] = field(default_factory=queue.Queue)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _worker: threading.Thread | None = None

    def submit(self, order: Order) -> tuple[Job, bool]:
        """The job of an order, and whether it is new; the same order under the same key is one job."""
        with self._lock:
            for job in self._jobs.values():
                if job.order.key == order.key and job.state != "failed":
                    return _same(job, order), False
            if sum(job.state == "queued" for job in self._jobs.values()) >= self.most:
                raise Refusal(503, "QueueFull", "too many jobs are waiting; try again later")
            job = Job(id=token(8), order=order)
            self._jobs[job.id] = job
            self._forget()
            self._start()
        self._waiting.put(job.id)
        return job, True

    def all(self) -> list[Job]:
        """Every job that is remembered, the oldest first."""
        with self._lock:
            return list(self._jobs.values())

    def get(self, id: str) -> Job | None:
        """A job by its id."""
        return self._jobs.get(id)

    def join(self) -> None:
        """Wait until nothing is left to do."""
        self._waiting.join()

    def _start(self) -> None:
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, daemon=True, name="publishing")
            self._worker.start()

    def _work(self) -> None:
        while True:
            id = self._waiting.get()
            self._keep(replace(self._jobs[id], state="running"))
            error = self._attempt(id)
            self._keep(replace(self._jobs[id], state="done" if error is None else "failed", error=error))
            self._waiting.task_done()

    def _attempt(self, id: str) -> str | None:
        def phase(name: str) -> None:
            job = self._jobs[id]
            self._keep(replace(job, phases=(*job.phases, name)))

        try:
            return self.run(self._jobs[id].order, phase)
        except Exception:
            return "the job could not be started"

    def _keep(self, job: Job) -> None:
        with self._lock:
            self._jobs[job.id] = job

    def _forget(self) -> None:
        ended = [id for id, job in self._jobs.items() if job.state in ("done", "failed")]
        for id in ended[: max(0, len(self._jobs) - _REMEMBERED)]:
            del self._jobs[id]


def _same(job: Job, order: Order) -> Job:
    if job.order != order:
        raise KeyReused("the key belongs to another request; use a new one")
    return job
