"""Speed that is no part of a question: noise, start, and what an installation weighs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.report.environments import ROOT, Environment, NotInstalled, environment
from benchmarks.report.model import Failure, Kind, short
from benchmarks.report.run import Bench, WorkerFailed, worked
from partita.trusted.noise import SystemNoise

SCALE, DRAWS, PEER_DRAWS = 20, 1 << 20, 1 << 15
BARE = "pass"
CORE, EVERYTHING = "import partita", "import partita\nfor name in partita.__all__: getattr(partita, name)"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number of one library: draws a second, seconds of CPU, or megabytes."""

    table: str
    method: str
    kind: Kind
    figure: float
    spread: float
    note: str


def noise(bench: Bench) -> Iterator[Figure]:
    """Draws of Laplace noise of scale 20 in a second."""
    paths = ["numpy", *(["compiled"] if find_spec("numba") else [])]
    draws = bench.effort.rows(DRAWS)
    for path in paths:
        draw = partial(SystemNoise(path=path).discrete_laplace, SCALE, draws)  # type: ignore[arg-type]
        yield rate(f"Partita, {path} path", "ours", timed(draw, 5), draws, "exact integers, secure")
    plain = partial(np.random.default_rng().laplace, 0, SCALE, draws)
    yield rate("NumPy", "paper", timed(plain, 5), draws, "floats, not secure: protects nobody")
    yield from peer_noise(bench)


def peer_noise(bench: Bench) -> Iterator[Figure]:
    """The same by the peers that have it."""
    draws = bench.effort.rows(PEER_DRAWS)
    problem = {"scale": float(SCALE), "draws": draws, "releases": bench.effort.some(5)}
    for peer, made in bench.peers.values():
        if not peer.noise:
            continue
        try:
            seconds = worked(made, peer.module, "noise", problem)["releasing"].tolist()
            yield rate(peer.title, "peer", seconds, draws, NOISES.get(peer.worker, ""))
        except WorkerFailed as reason:
            bench.failures.append(Failure(peer.title, "noise", str(reason)))


NOISES = {
    "opendp": "exact integers, secure; one call on a vector",
    "diffprivlib": "integers, one call for each",
    "pydp": "snapped floats, secure; one call for each",
}


def timed(call: Any, rounds: int) -> list[float]:
    """Seconds of a call, after one that does not count."""
    call()
    found = []
    for _ in range(rounds):
        start = perf_counter()
        call()
        found.append(perf_counter() - start)
    return found


def rate(method: str, kind: Kind, seconds: list[float], items: int, note: str) -> Figure:
    rates = [items / each for each in seconds]
    spread = float(np.std(rates, ddof=1) / len(rates) ** 0.5) if len(rates) > 1 else 0.0
    figure, error = short(median(rates)), short(spread)
    return Figure(table="noise", method=method, kind=kind, figure=figure, spread=error, note=note)


def installations(bench: Bench, folder: Path) -> Iterator[Figure]:
    """What `pip install` of each library weighs in a fresh environment, and what importing it costs."""
    ours = partita_alone(bench, folder)
    named: list[tuple[str, Kind, Environment, str]] = (
        [
            ("Partita", "ours", ours, CORE),
            ("Partita, every public name", "ours", ours, EVERYTHING),
        ]
        if ours
        else []
    )
    named += [(peer.title, "peer", made, peer.imports) for peer, made in bench.peers.values()]
    for method, kind, made, code in named:
        yield from start(bench, method, kind, made, code)
        if code != EVERYTHING:
            note = f"Python {made.version}"
            weight = short(made.megabytes)
            yield Figure(table="install", method=method, kind=kind, figure=weight, spread=0.0, note=note)


def partita_alone(bench: Bench, folder: Path) -> Environment | None:
    """Partita as pip installs it from this folder, without extras."""
    try:
        quick = bench.effort.quick
        return environment(folder / "partita", (str(ROOT),), install=not quick, fresh=not quick)
    except NotInstalled as reason:
        bench.failures.append(Failure("Partita", "install alone", str(reason)))
        return None


def start(bench: Bench, method: str, kind: Kind, made: Environment, code: str) -> Iterator[Figure]:
    """CPU seconds of fresh processes that import a library, less those of a bare interpreter."""
    rounds = bench.effort.some(5)
    try:
        cpu(made, code)
        spent = [cpu(made, code) - cpu(made, BARE) for _ in range(rounds)]
    except RuntimeError as reason:
        bench.failures.append(Failure(method, "import", str(reason)))
        return
    spread = float(np.std(spent, ddof=1) / rounds**0.5)
    figure, error = short(median(spent)), short(spread)
    note = f"`{code.splitlines()[0]}`" + (", then every public name" if code == EVERYTHING else "")
    yield Figure(table="import", method=method, kind=kind, figure=figure, spread=error, note=note)


def cpu(made: Environment, code: str) -> float:
    """User and system seconds of a fresh interpreter that runs `code`."""
    command = [str(made.python), "-W", "ignore", "-c", code]
    nowhere = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    child = os.posix_spawn(command[0], command, os.environ, file_actions=nowhere)
    _, status, usage = os.wait4(child, 0)
    if status:
        raise RuntimeError(f"status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime
