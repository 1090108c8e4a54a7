"""Digests of what every mechanism makes of fixed data on a fixed tape.

    python -m scripts.digests     write tests/fixtures/digests.json anew; only if an output changes on purpose

The same words from the same tape give the same release, report, state or output, however the code around a
mechanism changes. A digest is SHA-256 of a canonical form: of a release what its file holds, without version,
day, checksum and sentences; of anything else its numbers as text.

Mechanisms are found through the public API only, so the script survives when modules move.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest import mock

import numpy as np
import pyarrow.parquet as pq

import partita as pt
from partita import local
from partita.testing import EndlessTape, system_noise, tape_noise
from scripts.fixtures import DOMAINS, QUESTIONS, RELEASES, ROOT, SKETCHES, columns_of, plain, table

__all__ = ["CASES", "DIGESTS", "digest", "main"]

DIGESTS: Final = ROOT / "tests" / "fixtures" / "digests.json"
ROWS: Final = (400, 0)
_PROSE: Final = frozenset({"why", "checksum", "provenance"})

Case = Callable[[], Any]


def digest(case: Case) -> str:
    """SHA-256 of what a case returns, in hexadecimal."""
    text = json.dumps(plain(case()), ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _release(keywords: Mapping[str, Any], rows: int) -> Any:
    """What is in the file of a release made on a tape, column by column."""
    data = {name: values[:rows] for name, values in table().items()}
    with system_noise(tape_noise(EndlessTape((sorted(keywords), rows)))):
        release = pt.publish(data, columns_of(keywords), epsilon="3/2", **keywords)
    if release.guarantee is not None:
        raise RuntimeError("the noise did not come from the tape")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.release.parquet"
        release.save(path)
        file = pq.read_table(path)
    head = json.loads(file.schema.metadata[b"partita"])
    return [_without_prose(head), {name: file[name].to_pylist() for name in file.column_names}]


def _without_prose(head: Any) -> Any:
    """Facts of a file without sentences, day, version and checksum."""
    if isinstance(head, dict):
        return {key: _without_prose(head[key]) for key in sorted(head) if key not in _PROSE}
    return [_without_prose(each) for each in head] if isinstance(head, list) else head


def _partition(law: Any, size: int) -> Any:
    noise = tape_noise(EndlessTape((law, size)))
    return pt.Partition(size=size, epsilon=1, law=law).cut(_histogram(size), noise=noise).edges


def _cutter(law: Any, size: int) -> Any:
    """The same cut, item by item."""
    data = _histogram(size)
    cutter = pt.Partition(size=size, epsilon=1, law=law).online(noise=tape_noise(EndlessTape((law, size))))
    for cell, count in zip(data.cells.tolist(), data.counts.tolist(), strict=True):
        cutter.advance(cell - cutter.position)
        cutter.add(count)
    return cutter.finish().edges


def _histogram(size: int) -> pt.Histogram:
    cells = np.unique(np.arange(100, dtype=np.uint64) ** np.uint64(3) % np.uint64(min(size, 2**63)))
    return pt.Histogram.from_counts(cells, 1 + np.arange(cells.size) % 17, size=size)


def _linear_queries() -> Any:
    mechanism = pt.LinearQueries(queries=[[1, 1, 0, 2], [0, "1/2", 1, -1]], epsilon=1)
    return mechanism.release(_histogram(4), noise=tape_noise(EndlessTape("linear"))).noisy


def _hierarchy() -> Any:
    """Nodes of uneven depth, with the shares that follow from them."""
    mechanism = pt.HierarchyCounts(size=40, nodes=[(0, 29), (0, 9), (10, 29), (30, 30)], epsilon="1/2")
    return mechanism.release(_histogram(40), noise=tape_noise(EndlessTape("hierarchy"))).noisy


def _online() -> Any:
    """Answers of a session that measures some of its queries."""
    rows = {"visits": [number * number % 6 for number in range(400)]}
    with tempfile.TemporaryDirectory() as folder, system_noise(tape_noise(EndlessTape("online"))):
        path, schema = Path(folder) / "session", {"visits": DOMAINS["visits"]}
        with pt.open_weights(path, rows, schema, epsilon=1, updates=9, threshold=3) as session:
            asked = [session.ask(pt.between("visits", low, 4)).value for low in range(5) for _ in range(2)]
            return [
                asked,
                session.remaining,
                [session.public(pt.between("visits", 0, high)).value for high in range(5)],
            ]


COUNTERS: Final[dict[str, Callable[..., Any]]] = {
    "counter": partial(pt.Counter, horizon=64),
    "counter, endless": pt.Counter,
    "tree": partial(pt.TreeCounter, horizon=64),
    "sparse": partial(pt.SparseCounter, horizon=64, expected=9),
    "sliding": partial(pt.SlidingCounter, window=9),
    "pan-private": partial(pt.PanPrivateCounter, horizon=64),
    "per step": partial(pt.PerStepCounter, horizon=64),
    "direct": partial(pt.DirectCounter, horizon=64),
    "randomized response": partial(pt.RandomizedResponseCounter, horizon=64),
}


def _counter(name: str, epsilon: str) -> Any:
    """Outputs, the last one with its error, and the state as bytes.

    Errors and bounds are floats that differ in their last bit from one processor to the other: twelve digits
    of them are digested.
    """
    counter = COUNTERS[name](epsilon=epsilon, noise=tape_noise(EndlessTape((name, epsilon))))
    events = [number * number % 5 % 2 for number in range(40)]
    outputs = [*counter.update_many(events[:30]), *(counter.update(event) for event in events[30:])]
    answer = [f"{part:.12g}" if isinstance(part, float) else part for part in counter.answer()]
    return [outputs, answer, counter.state()]


def _family() -> Any:
    family = pt.CounterFamily(keys=3, epsilon=1, horizon=64, noise=tape_noise(EndlessTape("family")))
    return [family.update_many(np.arange(60).reshape(20, 3) % 4), family.state()]


def _local_column(name: str) -> Any:
    """Reports of a column, what was counted, and the estimate's numbers."""
    question = QUESTIONS[name]
    aggregator = question.aggregator()
    aggregator.add_many(question.randomize_many(_local_values(name), words=EndlessTape(name)))
    return json.loads(aggregator.to_bytes()) if aggregator.to_bytes()[:1] == b"{" else aggregator.to_bytes()


def _local_device(name: str) -> Any:
    """Single reports, as a device makes them."""
    with _kernel_tape(name):
        return [QUESTIONS[name].randomize(value) for value in _local_singles(name)]


def _local_values(name: str) -> Any:
    numbers = np.arange(120) ** 2 % 20
    if name == "labels":
        return [("north", "söuth", "east", "west")[each % 4] for each in numbers.tolist()]
    return {"x": numbers % 8, "y": numbers % 10} if name == "rectangles" else numbers


def _local_singles(name: str) -> list[Any]:
    if name == "labels":
        return ["north", "söuth", "moon"]
    return [{"x": place, "y": place + 1} for place in range(5)] if name == "rectangles" else list(range(8))


def _oracle() -> Any:
    """Reports of a law that is asked for, and the answer to a statistical query."""
    values, words = np.arange(4000) % 2, EndlessTape("oracle")
    asked = local.LROracle(values, local.BudgetMemory(people=4000, cap=2))
    reports = asked.ask(range(50), local.RandomizedResponse(size=2, epsilon=Fraction(1)), words=words)
    answer = local.SQOracle(asked, epsilon=1).ask(lambda row: float(row) * 0.75, tau=0.1, words=words)
    return [reports, answer.value, answer.tau]


def _sketch(name: str) -> Any:
    """The state after events, an output, and the state after it."""
    with _kernel_tape(name):
        sketch = SKETCHES[name]()
        sketch.update_many(number * number % 499 for number in range(200))
        state = sketch.state()
        answer = sketch.release(sketch.names[0])
        return [state, answer, sketch.state()]


def _noise(path: Any) -> Any:
    """Every sampler, one after the other."""
    noise = tape_noise(EndlessTape("noise"), path=path)
    drawn: list[Any] = []
    for scale in (Fraction(1, 3), Fraction(7, 2), Fraction(10**6, 7)):
        drawn += [noise.discrete_laplace(scale, 20), noise.geometric(scale, 20), noise.add([3, -4], scale)]
        drawn += [noise.discrete_laplace(scale), noise.exponential([0, 2, 5], scale)]
        drawn += [noise.draw(law, scale) for law in LAWS]
        drawn += [noise.first_success(law, scale).run(3, 50) for law in LAWS]
    drawn += [noise.discrete_laplace_units(Fraction(1, 9), np.arange(1, 9)), noise.bernoulli(Fraction(1, 3))]
    return [*drawn, noise.categorical([1, Fraction(5, 2), 3])]


def _kernel() -> Any:
    """The sampler of devices and pan-private state."""
    drawn: list[Any] = []
    with _kernel_tape("kernel"):
        for scale in (Fraction(1, 3), Fraction(7, 2), Fraction(100)):
            drawn += [pt.noise.KERNEL.discrete_laplace(scale, 4), pt.noise.KERNEL.geometric(scale, 4)]
    return drawn


@contextmanager
def _kernel_tape(seed: object) -> Iterator[None]:
    """The kernel's bytes come from a tape; nothing else is random where the kernel is used directly."""
    tape = EndlessTape(("kernel", seed))

    def take(size: int) -> bytes:
        return tape.take((size + 7) // 8).tobytes()[:size]

    with mock.patch.object(os, "urandom", take):
        yield


LAWS: Final = ("laplace", "geometric")
CASES: Final[dict[str, Case]] = {
    **{
        f"release {name}, {rows} rows": partial(_release, keywords, rows)
        for name, keywords in RELEASES.items()
        if "part" not in keywords
        for rows in ROWS
    },
    **{
        f"partition {law}, {size}": partial(_partition, law, size)
        for law in LAWS
        for size in (9, 1000, 2**64)
    },
    **{f"cutter {law}, {size}": partial(_cutter, law, size) for law in LAWS for size in (9, 1000)},
    "linear queries": _linear_queries,
    "hierarchy": _hierarchy,
    "online weights": _online,
    **{f"counter {name}, {eps}": partial(_counter, name, eps) for name in COUNTERS for eps in ("1/3", "2")},
    "counter family": _family,
    **{f"local column {name}": partial(_local_column, name) for name in QUESTIONS},
    **{f"local device {name}": partial(_local_device, name) for name in QUESTIONS},
    "local oracles": _oracle,
    **{f"sketch {name}": partial(_sketch, name) for name in SKETCHES},
    **{f"noise {path}": partial(_noise, path) for path in ("auto", "numpy", "exact")},
    "kernel": _kernel,
}
"""What is digested, by name."""


def main() -> None:
    """Write the digests of the present tree."""
    digests = {name: digest(case) for name, case in CASES.items()}
    DIGESTS.write_text(json.dumps(digests, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
