"""Publishing over HTTP, for admins: `partita publish` from a spec on the disk of the server.

Jobs run one at a time, in the order in which they came. Each is a process of its own: the service never
opens data. Where the data lie is written in a file beside the spec, by the steward; a request cannot name
it.
"""

from __future__ import annotations

import os
import pty
import queue
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, final

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from partita.concentrated import positive
from partita.domain.axis import MOST_COLUMNS
from partita.errors import InvalidParameter, KeyReused, check
from partita.guarantee import positive_epsilon
from partita.ledger.entries import checked_text
from partita.public.contributions import read_contributions
from partita.service.errors import ERRORS, Refusal, not_found, strip_folders
from partita.service.settings import NAME, ServiceSettings
from partita.trusted.noise.kernel import token

# ---- jobs ----

State: TypeAlias = Literal["queued", "running", "done", "failed"]
Phase: TypeAlias = Callable[[str], None]

_REMEMBERED: Final = 1_000  # jobs in memory; the ledger knows the keys of all that were charged


@final
@dataclass(frozen=True, kw_only=True)
class PublishOrder:
    """The request of an admin: the name of a spec, a name for the release, and an idempotency key."""

    spec: str
    name: str
    key: str
    epsilon: Fraction | None = None
    rho: Fraction | None = None
    together: tuple[tuple[str, ...], ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    contributions: str | None = None


@final
@dataclass(frozen=True, kw_only=True)
class Job:
    """An order, its state, and its error if it failed. No time is recorded: it would tell of the data."""

    id: str
    order: PublishOrder
    state: State = "queued"
    phases: tuple[str, ...] = ()
    error: str | None = None


@final
@dataclass
class JobQueue:
    """All jobs of a process. `run` does one, reports its phases, and returns its error, or None.

    Jobs run one at a time. A thread does the work and ends with the process; a publishing process that it
    has started goes on to its end. Jobs are kept in memory only: the ledger knows the key of every charged
    request, and the release lies in its folder.
    """

    run: Callable[[PublishOrder, Phase], str | None]
    most: int
    _jobs: dict[str, Job] = field(default_factory=dict)
    _waiting: queue.Queue[str] = field(default_factory=queue.Queue)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _worker: threading.Thread | None = None

    def submit(self, order: PublishOrder) -> tuple[Job, bool]:
        """The job of an order, and whether it is new; the same order under the same key is one job."""
        with self._lock:
            for job in self._jobs.values():
                if job.order.key == order.key and job.state != "failed":
                    return _check_same_order(job, order), False
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
            self._store(replace(self._jobs[id], state="running"))
            error = self._attempt(id)
            self._store(replace(self._jobs[id], state="done" if error is None else "failed", error=error))
            self._waiting.task_done()

    def _attempt(self, id: str) -> str | None:
        def phase(name: str) -> None:
            job = self._jobs[id]
            self._store(replace(job, phases=(*job.phases, name)))

        try:
            return self.run(self._jobs[id].order, phase)
        except Exception:
            return "the job could not be started"

    def _store(self, job: Job) -> None:
        with self._lock:
            self._jobs[job.id] = job

    def _forget(self) -> None:
        ended = [id for id, job in self._jobs.items() if job.state in ("done", "failed")]
        for id in ended[: max(0, len(self._jobs) - _REMEMBERED)]:
            del self._jobs[id]


def _check_same_order(job: Job, order: PublishOrder) -> Job:
    if job.order != order:
        raise KeyReused("the key belongs to another request; use a new one")
    return job


# ---- the publishing process ----

_PASSED_VARIABLES: Final = ("HOME", "LANG", "LC_ALL", "PATH", "PGPASSFILE", "TMPDIR", "TZ")
_LIBRARY: Final = str(Path(__file__).resolve().parents[3])
_LARGEST: Final = 2**16  # bytes of a job file, and characters of output, that are read
_PHASE: Final = re.compile(r"partita: ([^:\r\n]+?) \.\.\.")
_ERROR_LINE: Final = re.compile(r"partita: (?:error|refused): ([^\r\n]+)")
_NO_ERROR: Final = "the job ended without a message; run it by hand to see why"


@final
@dataclass(frozen=True)
class Publisher:
    """Publishes specs of a folder into the public folder, charged to the ledger of the service."""

    settings: ServiceSettings

    def check(self, spec: str) -> None:
        """Refuse a spec that is not there, or does not say where its data are."""
        self._data(spec)

    def run(self, order: PublishOrder, phase: Callable[[str], None]) -> str | None:
        """Publish, and wait for the end; the error, or None.

        The process is in a session of its own, so it outlives the service: killed after its debit, it
        would lose what was charged.
        """
        master, slave = pty.openpty()
        try:
            process = subprocess.Popen(
                self.command(order),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=slave,
                cwd=self._specs,
                env=_environment(),
                start_new_session=True,
            )
        finally:
            os.close(slave)
        output = TerminalOutput(phase)
        for piece in _read_terminal(master):
            output.read(piece)
        return None if process.wait() == 0 else output.last_error

    def command(self, order: PublishOrder) -> list[str]:
        """The command line, one argument each: no shell ever reads any of it."""
        spec, output = (
            self._specs / f"{order.spec}.toml",
            self.settings.folder / f"{order.name}.release.parquet",
        )
        budgets = {"epsilon": order.epsilon, "rho": order.rho}
        budget = [f"--{name}={amount}" for name, amount in budgets.items() if amount is not None]
        together = [f"--together={_join_names(columns)}" for columns in order.together]
        chosen = [f"--option={name}={value}" for name, value in order.options]
        charged = [f"--ledger={self.settings.ledger}", f"--key={order.key}"]
        publish = [sys.executable, "-P", "-m", "partita", "publish", f"--spec={spec}", f"--output={output}"]
        bound = [] if order.contributions is None else [f"--contributions={order.contributions}"]
        given = [*budget, *together, *chosen, *bound]
        return [*publish, *charged, *given, "--json", "--", *self._data(order.spec)]

    @property
    def _specs(self) -> Path:
        assert self.settings.specs is not None
        return self.settings.specs

    def _data(self, spec: str) -> list[str]:
        """Where the data of a spec are: `data` in the file SPEC.job.toml, relative to its folder."""
        if not (self._specs / f"{spec}.toml").is_file():
            raise not_found("spec")
        data = _entries(self._specs / f"{spec}.job.toml").get("data")
        listed = [data] if isinstance(data, str) else data
        if isinstance(listed, list) and listed and all(isinstance(each, str) and each for each in listed):
            return listed
        raise InvalidParameter(
            "spec",
            "must say where its data are",
            given=spec,
            fix=f'write data = "people.parquet" into {spec}.job.toml beside it',
        )


@final
class TerminalOutput:
    r"""The terminal output of a process: the phases that it begins, and its last error. Times are dropped.

    >>> phases: list[str] = []
    >>> output = TerminalOutput(phases.append)
    >>> output.read("partita: counting age ..."); output.read(". 3.1 s\npartita: drawing noise ...")
    >>> phases
    ['counting age', 'drawing noise']
    """

    def __init__(self, phase: Callable[[str], None]) -> None:
        self._phase, self._text = phase, ""

    @property
    def last_error(self) -> str:
        """The error that the process ended with, without folders."""
        errors = _ERROR_LINE.findall(self._text)
        return strip_folders(errors[-1]) if errors else _NO_ERROR

    def read(self, piece: str) -> None:
        """Parse more output; only the end of it is stored."""
        self._text = (self._text + piece)[-_LARGEST:]
        found = _PHASE.search(self._text)
        while found is not None:
            self._phase(found[1])
            self._text = self._text[found.end() :]
            found = _PHASE.search(self._text)


def _read_terminal(master: int) -> Iterator[str]:
    """The output of a terminal until the last writer has closed it."""
    with open(master, "rb", buffering=0) as terminal:
        while True:
            try:
                piece = terminal.read(4096)
            except OSError:
                return
            if not piece:
                return
            yield piece.decode("utf-8", "replace")


def _join_names(columns: Sequence[str]) -> str:
    """Names between commas as the command line reads them, each in double quotes.

    >>> _join_names(("age", 'a "large", name'))
    '"age","a ""large"", name"'
    """
    return ",".join('"' + name.replace('"', '""') + '"' for name in columns)


def _entries(path: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(path.read_bytes()[:_LARGEST].decode())
    except (OSError, ValueError, RecursionError):
        return {}


def _environment() -> dict[str, str]:
    """The variables of a publishing process: paths of programs, this library and a password file."""
    passed = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    return passed | {"PYTHONPATH": _LIBRARY}


# ---- routes ----

_ACCEPTED: Final = 202
_MOST_OPTIONS: Final = 20
_MOST_SETS: Final = 100  # of columns that matter together, in one request

Name = Annotated[str, Field(pattern=f"^{NAME.pattern}$")]
ColumnName = Annotated[StrictStr, Field(min_length=1, max_length=200)]
ColumnSet = Annotated[list[ColumnName], Field(min_length=2, max_length=MOST_COLUMNS)]


OptionName = Annotated[StrictStr, Field(pattern="^[a-z][a-z0-9_]*$", max_length=40)]
OptionText = Annotated[StrictStr, Field(min_length=1, max_length=200)]


def _option_text(value: str | int | bool) -> str:
    """The value of an option as a command line has it."""
    return str(value).lower() if isinstance(value, bool) else checked_text(str(value), "options")


class PublishRequest(BaseModel):
    """A request to publish. The path of the data is written on the server, and cannot be chosen here."""

    model_config = ConfigDict(extra="forbid")

    spec: Name = Field(description="a spec in the folder of specs, without `.toml`", examples=["people"])
    name: Name = Field(description="what the release is to be called", examples=["people-2026"])
    key: str = Field(
        description="makes the request repeatable: the same key is charged once",
        min_length=1,
        max_length=200,
        examples=["2026-11-people"],
    )
    epsilon: StrictStr | StrictInt | StrictFloat | None = Field(
        default=None, description="what it may cost; default: what the spec says", examples=["1/2", 1]
    )

    rho: StrictStr | StrictInt | StrictFloat | None = Field(
        default=None,
        description="what it may cost in zero-concentrated privacy, in place of epsilon",
        examples=["1/8"],
    )

    together: list[ColumnSet] = Field(
        default=[],
        description="sets of columns of a table that matter in combination; default: what the spec says",
        max_length=_MOST_SETS,
        examples=[[["age", "salary"]]],
    )

    options: dict[OptionName, OptionText | StrictInt | StrictBool] = Field(
        default={},
        description="options of the mechanism that the spec names, as text; beside those that the spec gives",
        max_length=_MOST_OPTIONS,
        examples=[{"branching": 16}],
    )

    contributions: StrictInt | StrictStr | None = Field(
        default=None,
        description="how many rows of a person count at most, or auto: a bound that is chosen privately; "
        "default: what the spec says",
        examples=["auto", 8],
    )

    def order(self) -> PublishOrder:
        """The same, checked and exact."""
        rule, fix = "must come without rho, or rho without it", "choose one of them"
        check(self.epsilon is None or self.rho is None, "epsilon", rule, given=self.epsilon, fix=fix)
        return PublishOrder(
            spec=self.spec,
            name=self.name,
            key=checked_text(self.key, "key"),
            epsilon=None if self.epsilon is None else positive_epsilon(self.epsilon),
            rho=None if self.rho is None else positive(self.rho, "rho", example='"1/8"'),
            together=tuple(tuple(checked_text(name, "together") for name in each) for each in self.together),
            options=tuple((name, _option_text(self.options[name])) for name in sorted(self.options)),
            contributions=None if self.contributions is None else str(read_contributions(self.contributions)),
        )


class JobBody(BaseModel):
    """A job of publishing; no times, since how long it takes depends on the data."""

    id: str
    spec: str
    name: str
    state: str = Field(description="queued, running, done or failed")
    phases: list[str] = Field(description="what it has begun so far: counting, drawing noise, writing")
    error: str | None = Field(description="why it failed")

    @staticmethod
    def of(job: Job) -> JobBody:
        spec, name, phases = job.order.spec, job.order.name, list(job.phases)
        return JobBody(id=job.id, spec=spec, name=name, state=job.state, phases=phases, error=job.error)


class JobsBody(BaseModel):
    """Every job that the process remembers, the oldest first."""

    jobs: list[JobBody]


def publishing_router(settings: ServiceSettings, *, jobs: JobQueue | None = None) -> APIRouter:
    """The addresses of publishing; the guard lets in admins only."""
    publisher = Publisher(settings)
    jobs = jobs or JobQueue(publisher.run, settings.limits.jobs)
    router = APIRouter(tags=["publishing"], responses=_errors())

    @router.post("/releases", status_code=_ACCEPTED, summary="Publish a release from a spec of the server")
    def publish(publishing: PublishRequest, response: Response) -> JobBody:
        order = publishing.order()
        publisher.check(order.spec)
        job, new = jobs.submit(order)
        response.status_code = _ACCEPTED if new else 200
        return JobBody.of(job)

    @router.get("/jobs", summary="Every job")
    def listed() -> JobsBody:
        return JobsBody(jobs=[JobBody.of(job) for job in jobs.all()])

    @router.get("/jobs/{id}", summary="One job")
    def one(id: str) -> JobBody:
        job = jobs.get(id)
        if job is None:
            raise not_found("job")
        return JobBody.of(job)

    return router


def _errors() -> dict[int | str, dict[str, Any]]:
    return {200: {"model": JobBody, "description": "The job of the same request, made before"}, **ERRORS}
