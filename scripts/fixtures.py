"""Files written by one version of Partita, and how this version reads them.

    python -m scripts.fixtures write     write new files and their answers; only for a new version of a format
    python -m scripts.fixtures answers   write down the answers of the files that are there

`tests/fixtures/version-0.1` holds a file of each kind: releases, a ledger, durable streams, a session of
online weights, local reports and states, pan-private sketches. `answers.json` beside them holds what the
version that wrote them answered. A test opens each file with the present version and compares, bit for bit.

Everything goes through the public API, so the script survives when modules move. Releases and states are
written with the system's noise, since a release made with other noise carries no guarantee: writing them
again gives other files. Where a state draws noise while it is read, it draws from a fixed tape.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from runpy import run_module
from typing import Any, Final
from unittest import mock

import numpy as np

import partita as pt
from partita import local, pan
from partita.testing import EndlessTape, tape_noise
from scripts.house import http_client

__all__ = [
    "ANSWERS",
    "DOMAINS",
    "FIXTURES",
    "QUESTIONS",
    "READERS",
    "RELEASES",
    "ROOT",
    "SKETCHES",
    "answers",
    "columns_of",
    "copy_files",
    "main",
    "plain",
    "table",
    "write",
]

ROOT: Final = Path(__file__).resolve().parents[1]
FIXTURES: Final = ROOT / "tests" / "fixtures" / "version-0.1"
ANSWERS: Final = "answers.json"
ROWS: Final = 600
DATE: Final = re.compile(r"\b\d{4}-\d\d-\d\d\b")

Read = Callable[[Path], Any]

DOMAINS: Final[dict[str, pt.Domain]] = {
    "age": pt.Integer(0, 119),
    "wide": pt.Integer(0, 2**64 - 1),
    "broad": pt.Integer(0, 2**16),
    "wage": pt.Real(0, 200, step="0.5"),
    "town": pt.Category(["north", "söuth", "east", "west"]),
    "day": pt.Date("2024-01-01", "2024-02-29"),
    "at": pt.Timestamp("2024-01-01", "2024-01-02", "1m"),
    "visits": pt.Integer(0, 5),
}
START: Final = datetime(2024, 1, 1, tzinfo=UTC)

CONDITIONS: Final[dict[str, tuple[Any, ...]]] = {
    "age": ((30, 39), 42, (65, None), (None, 17), pt.NULL, pt.ABOVE, {3, 5, 70}),
    "wide": ((10, 10**6), 7, (2**40, None), (None, 2**63)),
    "broad": ((10, 10**4), 7, (2**13, None)),
    "wage": ((10, 25.5), 20, (100, None), pt.INVALID),
    "town": ("north", ["söuth", "west"], ("north", "east"), pt.OTHER),
    "day": ((date(2024, 1, 5), date(2024, 1, 20)), date(2024, 2, 29), (date(2024, 2, 1), None)),
    "at": ((START, START + timedelta(hours=6)), (START + timedelta(hours=20), None)),
    "visits": ((1, 3), 0, (4, None), pt.NULL),
}
"""Conditions on each column: ranges, values, open ends, sets, special cells."""

_OF_QUERIES: Final = {
    "linear": "ranges(visits, (0, 3), (2, 5)) * marginal(town)",
    "projection": "ranges(visits) * marginal(town)",
    "weights": "ranges(visits) * marginal(town)",
    "composition": "marginal(town) * value(visits)",
    "global-truncation": "marginal(town) * value(visits)",
    "instance-specific": "marginal(town) * value(visits)",
    "normalization": "marginal(town) * value(visits)",
    "single-truncation": "value(visits)",
}
RELEASES: Final[dict[str, dict[str, Any]]] = {
    "intervals": {"by": "age", "mechanism": "intervals"},
    "intervals-wide": {"by": "wide", "mechanism": "intervals"},
    "intervals-times": {"by": "at", "mechanism": "intervals"},
    "intervals-paper": {"by": "wide", "mechanism": "intervals-paper"},
    "partition-tents": {"by": "wide", "mechanism": "partition-tents"},
    "spending-tree": {"by": "wage", "mechanism": "spending-tree"},
    "tree": {"by": "age", "mechanism": "tree"},
    "tents": {"by": "day", "mechanism": "tents"},
    "thresholds": {"by": "visits", "mechanism": "thresholds"},
    "laplace": {"by": "visits", "mechanism": "laplace"},
    "histogram": {"by": "town", "mechanism": "histogram"},
    "grid": {"by": ["visits", "town"], "mechanism": "grid"},
    "rectangles": {"by": ["age", "wage"], "mechanism": "rectangles"},
    "rectangles-three": {"by": ["visits", "town", "day"], "mechanism": "rectangles"},
    "rectangles-paper": {"by": ["wage", "visits"], "mechanism": "rectangles-paper"},
    "rank-boxes": {"by": ["broad", "town"], "mechanism": "rank-boxes"},
    "spending-boxes": {"by": ["broad", "age"], "mechanism": "spending-boxes"},
    "level-trees": {"by": ["visits", "town"], "sums": ["wage"]},
    "moments": {"by": "visits", "moments": ["age"]},
    "log-tree": {"by": "age", "sums": ["age"]},
    "whole-sum": {"by": [], "sums": ["wage"]},
    "views": {
        "views": [("age",), ("age", "wage"), ("town",)],
        "shares": {"age": 1, ("age", "wage"): 2, "town": 1},
        "person": "id",
        "contributions": 2,
    },
    "change-one": {"by": "age", "neighbors": "change-one"},
    "part": {"by": "age", "part": ("region", "north")},
    "queries-beside": {"by": "visits", "queries": "marginal(town) * value(visits)"},
    **{f"queries-{name}": {"queries": queries, "mechanism": name} for name, queries in _OF_QUERIES.items()},
}
"""Keywords of `publish` for each release file; columns that they do not name are left out."""


def write(folder: Path) -> None:
    """Write a file of each kind, and the answers to them."""
    folder.mkdir(parents=True)
    for name, keywords in RELEASES.items():
        _published(keywords).save(folder / f"{name}.release.parquet")
    _write_signed(folder)
    _write_ledger(folder / "budget.ledger")
    for name in STREAMS:
        _write_stream(folder, name)
    with _session(folder) as session:
        for low, high in ((0, 2), (1, 4), (3, 3)):
            session.ask(pt.between("visits", low, high))
    _write_local(folder)
    for name, make in SKETCHES.items():
        with pan.SketchFile.create(folder / f"{name}.pan", make()) as file:
            file.update_many(_ids(0, 300))
            file.release(file.sketch.names[0])
    for path in folder.iterdir():
        if path.stat().st_size == 0:  # locks and empty journals
            path.unlink()
    write_answers(folder)


def write_answers(folder: Path) -> None:
    """Write down what the files of a folder answer."""
    text = json.dumps(answers(folder), indent=1, ensure_ascii=False)
    (folder / ANSWERS).write_text(text + "\n", encoding="utf-8")


def answers(folder: Path) -> dict[str, Any]:
    """The answers of each file; they are read from copies, since some files change when they are read."""
    found = {}
    for name, read in READERS.items():
        with tempfile.TemporaryDirectory() as place:
            found[name] = read(copy_files(folder, Path(place) / "copies"))
    return found


def copy_files(folder: Path, to: Path) -> Path:
    """A copy that only its owner can read: a pan-private state is not opened otherwise."""
    shutil.copytree(folder, to)
    for path in to.iterdir():
        path.chmod(0o600)
    return to


def table() -> dict[str, list[object]]:
    """Rows with values of every kind: in the domains, beyond them, missing, malformed."""
    turn = [(7 * row * row + 3 * row) % 1009 for row in range(ROWS)]
    towns = ["north", "söuth", "east", "west", "moon", None]
    return {
        "id": [place % 350 for place in range(ROWS)],
        "age": [None if number % 97 == 5 else number % 131 for number in turn],
        "wide": [pow(number + 2, 1 + place % 6) % 2**64 for place, number in enumerate(turn)],
        "broad": [number * number % 2**16 for number in turn],
        "wage": [None if number % 89 == 7 else float(number % 60) ** 1.25 for number in turn],
        "town": [towns[number % 6 if number % 7 else 0] for number in turn],
        "day": [date(2023, 12, 30) + timedelta(days=number % 65) for number in turn],
        "at": [START + timedelta(minutes=number % 1500) for number in turn],
        "visits": [number % 11 % 7 for number in turn],
        "region": ["north" if number % 3 else "south" for number in turn],
    }


def plain(value: Any) -> Any:
    """A value as JSON that tells every bit of it; floats as their shortest text."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, pt.Answer | pt.SumAnswer | pt.Ratio | pt.Quantile):
        return _plain_answer(value)
    if isinstance(value, pt.Running):
        return plain(value._asdict())
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [plain(each) for each in value]
    return repr(value) if isinstance(value, float | bytes) else str(value)


def _plain_answer(answer: Any) -> dict[str, Any]:
    parts = ("value", "error", "q", "covers", "determinable")
    found = {part: plain(getattr(answer, part)) for part in parts if hasattr(answer, part)}
    return found | {
        "interval": plain(answer.interval(0.9)),
        "worst": plain(answer.worst(0.05)),
        "text": str(answer),
    }


def columns_of(keywords: Mapping[str, Any]) -> dict[str, pt.Domain]:
    """The domains of the columns that keywords of `publish` name."""
    text = repr({key: value for key, value in keywords.items() if key != "part"})
    return {name: domain for name, domain in DOMAINS.items() if re.search(rf"\b{name}\b", text)}


def _published(keywords: Mapping[str, Any]) -> pt.Release:
    """A release of some columns of the table."""
    rows, schema = table(), columns_of(keywords)
    with tempfile.TemporaryDirectory() as folder:
        ledger = pt.Ledger(Path(folder) / "budget")
        ledger.open(
            "people",
            epsilon=5,
            unit="person" if "person" in keywords else "row",
            contributions=keywords.get("contributions"),
            neighbors=keywords.get("neighbors", "add-remove"),
            constant=("region",),
        )
        return pt.publish(rows, schema, epsilon="3/2", dataset="people", ledger=ledger, **keywords)


def _write_signed(folder: Path) -> None:
    path, keys = folder / "signed.release.parquet", [folder / "private.pem", folder / "public.pem"]
    _published(RELEASES["grid"]).save(path)
    _command("keygen", "--private", str(keys[0]), "--public", str(keys[1]))
    _command("sign", str(path), "--key", str(keys[0]))
    keys[0].unlink()


def _write_ledger(path: Path) -> None:
    """A budget with every state of a debit, a part, a key, and a dataset that nobody has spent of."""
    ledger = pt.Ledger(path)
    ledger.open("people", epsilon=5, delta="1/1000000", constant=("region",))
    ledger.open("clinic", epsilon="7/3", unit="person", contributions=4, neighbors="change-one")
    ledger.open("unspent", epsilon=1)
    row = pt.Guarantee(epsilon=Fraction(1, 3))
    ledger.debit("people", row, what="left as it is", day="2026-11-15")
    done = ledger.debit(
        "people", row, what="stored", key="monthly", request={"by": ["age"]}, day="2026-11-16"
    )
    ledger.mark_done(done)
    ledger.mark_lost(ledger.debit("people", row, what="never stored", day="2026-11-16"))
    for region in ("north", "south"):
        ledger.debit("people", row + row, what=f"a part: {region}", part=("region", region), day="2026-11-17")
    person = pt.Guarantee(epsilon=Fraction(1, 5), unit="person", contributions=4, neighbors="change-one")
    ledger.debit("clinic", person, what="persons", day="2026-11-18")


STREAMS: Final[dict[str, dict[str, Any]]] = {
    "counter": {"horizon": 40},
    "sparse": {"mechanism": "sparse", "horizon": 40, "expected": 9},
    "sliding": {"mechanism": "sliding", "window": 5},
    "pan-private": {"mechanism": "pan-private", "horizon": 40},
    "users": {"horizon": 40, "unit": "user", "contributions": 3},
    "family": {"horizon": 40, "keys": ["north", "söuth"]},
}
"""Keywords of `open_counter`, or with keys of `open_family`, for each durable stream."""


def _write_stream(folder: Path, name: str) -> None:
    """Twelve closed periods of a second, and events in the open one."""
    keywords = {"epsilon": "1/2", "period": 1, "start": 0, "now": 0} | STREAMS[name]
    opener: Any = pt.open_family if "keys" in keywords else pt.open_counter
    with opener(folder / name, **keywords) as stream:
        for period in range(1, 13):
            _feed(stream, name, period)
            stream.tick(now=period)
        _feed(stream, name, 13)


def _feed(stream: Any, name: str, period: int) -> None:
    count = period % 3
    if name == "family":
        stream.add({"north": count, "söuth": 1}, feeder="gate", sequence=period)
    elif name == "users":
        stream.add(count, person=f"person {period % 4}", id=f"visit {period}")
    elif name == "pan-private":
        stream.add(count)
    else:
        stream.add(count, feeder="gate", sequence=period)


def _session(folder: Path) -> pt.WeightsSession:
    rows = {"visits": [min(max(int(str(each)), 0), 5) for each in table()["visits"]]}
    schema = {"visits": DOMAINS["visits"]}
    return pt.open_weights(folder / "online.weights", rows, schema, epsilon="3/2", updates=6, threshold=4)


KINDS: Final = ("response", "unary", "hashing", "hadamard", "projective")
QUESTIONS: Final[dict[str, Any]] = {
    **{f"frequency-{kind}": local.Frequency(20, epsilon=1, kind=kind) for kind in KINDS},
    "labels": local.Frequency(DOMAINS["town"], epsilon=2),
    "mean": local.Mean(0, 24, epsilon=1),
    "mean-piecewise": local.Mean(0, 24, epsilon=1, kind="piecewise"),
    "range": local.Range(pt.Integer(0, 19), epsilon=1),
    "rectangles": local.Rectangles({"x": 8, "y": pt.Integer(0, 9)}, epsilon=1),
}
SKETCHES: Final[dict[str, Callable[[], Any]]] = {
    "density": lambda: pan.Density(universe=2_000, epsilon=1, releases=3),
    "distinct": lambda: pan.Distinct(epsilon=1, buckets=64, most=10**5, releases=3),
    "registers": lambda: pan.Registers(universe=500, epsilon=1, most=6, releases=3),
    "ramp-registers": lambda: pan.RampRegisters(universe=500, epsilon=2, tops=[1, 2], releases=3),
}


def _write_local(folder: Path) -> None:
    """Questions, reports and states of aggregators, and the memory of a device."""
    for name, question in QUESTIONS.items():
        (folder / f"{name}.question.json").write_text(json.dumps(question.to_json()), encoding="utf-8")
        aggregator = question.aggregator()
        aggregator.add_many(question.randomize_many(_values(name)))
        (folder / f"{name}.state").write_bytes(aggregator.to_bytes())
    device, lines = local.Device(folder / "device.json", budget=4), []
    for name in ("mean", "range"):
        lines.append(json.dumps(device.answer(QUESTIONS[name], 7).to_json()))
    (folder / "device.reports").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _values(name: str) -> Any:
    numbers = np.arange(200) ** 2 % 20
    if name == "labels":
        return [("north", "söuth", "east", "west")[each % 4] for each in numbers.tolist()]
    if name == "rectangles":
        return {"x": numbers % 8, "y": numbers % 10}
    return numbers


def _ids(first: int, last: int) -> list[int]:
    return [number * number % 499 for number in range(first, last)]


def _read_release(name: str) -> Read:
    def read(folder: Path) -> Any:
        release = pt.load(folder / f"{name}.release.parquet")
        return (
            {
                "guarantee": str(release.guarantee),
                "columns": plain(release.columns),
                "views": [str(view).partition("(")[2] for view in release.published],
                "report": DATE.sub("DATE", release.report()).splitlines(),
                "citation": hashlib.sha256(release.citation().encode()).hexdigest(),
            }
            | _counts(release)
            | _boxes(release)
            | _sums(release)
            | _queries(release)
        )

    return read


def _counts(release: pt.Release) -> dict[str, Any]:
    """Questions about each column. Of many counts at once only the values are recorded."""
    if not release.views:
        return {}
    found: dict[str, Any] = {
        "count": plain(release.count()),
        "error": plain(release.error(0.1)),
        "synthesize": plain(release.synthesize(6)),
    }
    for column in release.columns:
        asked = CONDITIONS[column]
        ordered = [each for each in asked if isinstance(each, tuple) and None not in each]
        lows, highs = (list(ends) for ends in zip(*ordered, strict=True))
        found[column] = {
            "count": [plain(release.count({column: each})) for each in asked],
            "open": plain(release.count({column: ordered[0]}, closed="neither")),
            "difference": plain(release.difference({column: asked[0]}, {column: asked[1]})),
            "counts": plain(release.counts({column: (lows, highs)}).values),
            "histogram": _bins(release.histogram(column, 4)),
        }
        if column != "town":
            cdf = release.cdf(column, lows + highs)
            found[column]["quantile"] = [plain(each) for each in release.quantile(column, [0.1, 0.5, 0.75])]
            found[column]["cdf"] = plain([cdf.counts.values, cdf.fractions])
    return found


def _bins(bins: pt.Bins) -> Any:
    return plain([bins.lows, bins.highs, bins.counts.values])


def _boxes(release: pt.Release) -> dict[str, Any]:
    """Questions about columns that were released together."""
    found: dict[str, Any] = {}
    for view in release.views:
        columns: tuple[str, ...] = getattr(view, "columns", ())
        if len(columns) < 2:
            continue
        first, second = columns[:2]
        boxes = [{name: CONDITIONS[name][place] for name in columns} for place in (0, 1)]
        low, high = CONDITIONS[first][0]
        one = CONDITIONS[second][1]
        heat = release.histogram(first, second, 3).counts
        found[" x ".join(columns)] = {
            "count": [plain(release.count(box)) for box in boxes],
            "difference": plain(release.difference(*boxes)),
            "counts": plain(release.counts({first: ([low, low], [high, None]), second: one}).values),
            "heat": plain(heat.values),
            "histogram": _bins(release.histogram(second, 3, where={first: CONDITIONS[first][0]})),
            "quantile": plain(release.quantile(first, 0.5, {second: one})),
        }
    return found


def _sums(release: pt.Release) -> dict[str, Any]:
    """Questions about sums, whole and by each key."""
    found: dict[str, Any] = {}
    for view in release.sums:
        kinds = ("sum", "mean", "variance", "std") if view.moments else ("sum", "mean")
        asked = [{}, *({key: CONDITIONS[key][0]} for key in view.keys)]
        found[view.name] = {
            kind: [plain(getattr(release, kind)(view.column, each)) for each in asked] for kind in kinds
        }
    return found


def _queries(release: pt.Release) -> dict[str, Any]:
    """Every answer to queries that were published."""
    if release.queries is None:
        return {}
    return {
        "labels": release.labels(),
        "answers": plain([release.answers().values, release.answers().error]),
        "answer": [plain(release.answer(index)) for index in range(0, len(release.labels()), 3)],
    }


def _read_signed(folder: Path) -> Any:
    path = str(folder / "signed.release.parquet")
    said = _command("verify", path, "--key", str(folder / "public.pem"), "--json")
    asked = _command("query", path, "count where visits between 1 and 3", "count", "--json")
    return {
        "verify": "signed.release.parquet" in said,
        "query": [json.loads(line) for line in asked.splitlines()],
    }


def _read_ledger(folder: Path) -> Any:
    ledger = pt.Ledger(folder / "budget.ledger")
    price = pt.Guarantee(epsilon=Fraction(1, 3))
    stored = ledger.debit("people", price, what="stored", key="monthly", request={"by": ["age"]})
    return {
        name: {
            "terms": str(terms),
            "balance": str(ledger.balance(name)),
            "entries": [str(entry) for entry in ledger.entries(name)],
        }
        for name, terms in ledger.datasets().items()
    } | {"forecast": ledger.forecast("people", price), "asked again": str(stored)}


def _read_stream(name: str) -> Read:
    def read(folder: Path) -> Any:
        public = pt.read_outputs(folder / name)
        found = {
            "settings": plain(asdict(public.settings)),
            "outputs": plain(each._asdict() for each in public.outputs),
        }
        noise = tape_noise(EndlessTape(name))
        stream: Any
        with pt.resume_stream(folder / name, now=12, noise=noise) as stream:
            keys = STREAMS[name].get("keys")
            found["value"] = plain(stream.value)
            found["answer"] = plain(stream.answer() if keys is None else [stream.answer(key) for key in keys])
            for period in range(13, 17):
                _feed(stream, name, period)
                stream.tick(now=period)
            found["next"] = plain(each.exact for each in stream.outputs(since=12))
        return found

    return read


def _read_session(folder: Path) -> Any:
    with _session(folder) as session:
        return {
            "guarantee": str(session.guarantee),
            "remaining": session.remaining,
            "measured": len(session.measured),
            "public": [plain(session.public(pt.between("visits", 0, high))) for high in range(5)],
        }


def _read_local(name: str) -> Read:
    def read(folder: Path) -> Any:
        described = json.loads((folder / f"{name}.question.json").read_text(encoding="utf-8"))
        question: Any = local.question_from(described)
        aggregator = type(question.aggregator()).from_bytes(question, (folder / f"{name}.state").read_bytes())
        estimate = aggregator.estimate()
        found: dict[str, Any] = {"n": aggregator.n, "guarantee": str(aggregator.guarantee)}
        if name.startswith("mean"):
            return found | {"mean": plain(estimate)}
        if name == "range":
            return found | {
                "count": plain(estimate.count(3, 9)),
                "values": plain(estimate.values),
                "median": plain(estimate.quantile(0.5)),
            }
        if name == "rectangles":
            return found | {"count": plain(estimate.count({"x": (1, 5), "y": (2, 9)}))}
        return found | {"values": plain(estimate.values), "error": plain(estimate.error)}

    return read


def _read_device(folder: Path) -> Any:
    """A device repeats its answers, and has spent what it had spent."""
    device = local.Device(folder / "device.json", budget=4)
    lines = (folder / "device.reports").read_text(encoding="utf-8").splitlines()
    again = [json.dumps(device.answer(QUESTIONS[name], 7).to_json()) for name in ("mean", "range")]
    read = [local.Report.from_json(json.loads(line)) for line in lines]
    return {"spent": str(device.spent), "same": again == lines, "reports": [each.to_json() for each in read]}


def _read_sketch(name: str) -> Read:
    def read(folder: Path) -> Any:
        with pan.SketchFile(folder / f"{name}.pan") as file:
            sketch = file.sketch
            found = {"sketch": repr(sketch), "left": sketch.releases_left, "promise": str(sketch.promise)}
            state = sketch.state()
        again = type(sketch).from_state(state, noise=tape_noise(EndlessTape(name)))
        again.update_many(_ids(300, 400))
        return found | {"next": [plain(again.release(each)) for each in again.names[:1]]}

    return read


ASKED: Final[dict[str, tuple[str, ...]]] = {
    "views": (
        "count",
        "count where age between 30 and 39 and wage >= 20",
        "count where age in (3, 5) and wage < 12.5",
        "count where age is null",
        "count where town is other",
        "count where 2*age - 0.5*wage <= 40",
        "quantile 0.9 of age where wage > 10",
        "median of wage",
        "cdf of age at 18, 65 where wage >= 20",
        "histogram of age in 3 bins",
        "histogram of age, wage in 3 by 2 bins",
        "difference between (age < 30) and (age >= 60 and wage > 5)",
    ),
    "moments": ("sum of age", "mean of age where visits = 2", "variance of age", "std of age"),
    "queries-beside": ("answers",),
}
"""Every kind of question as text, for the releases that have an answer to it."""


def _read_by_command(folder: Path) -> Any:
    """Questions and facts as the command line prints them, as text and as JSON."""
    found: dict[str, Any] = {}
    for name, asked in ASKED.items():
        path = str(folder / f"{name}.release.parquet")
        found[name] = {
            "text": _command("query", path, *asked).splitlines(),
            "json": _command("query", path, *asked, "--json").splitlines(),
            "info": DATE.sub("DATE", _command("info", path)).replace(str(folder), "FOLDER").splitlines(),
        }
    return found


def _read_by_service(folder: Path) -> Any:
    """The same questions over HTTP, with guaranteed bounds; of `counts` only the values are recorded."""
    ask = http_client(folder)
    found: dict[str, Any] = {
        f"{name}: {question}": ask(f"/releases/{name}/ask", {"q": question, "beta": "0.1"})
        for name, questions in ASKED.items()
        for question in questions
    }
    ranges = {"age": {"low": [0, 18], "high": [17, None]}, "wage": [10, 20]}
    found["counts"] = ask("/releases/views/counts", body={"where": ranges})
    found["stream"] = ask("/streams/counter/outputs.json", {})
    return found


READERS: Final[dict[str, Read]] = {
    **{f"{name}.release.parquet": _read_release(name) for name in RELEASES},
    "signed.release.parquet": _read_signed,
    "budget.ledger": _read_ledger,
    **{f"stream {name}": _read_stream(name) for name in STREAMS},
    "online.weights": _read_session,
    **{f"{name}.state": _read_local(name) for name in QUESTIONS},
    "device.json": _read_device,
    **{f"{name}.pan": _read_sketch(name) for name in SKETCHES},
    "command line": _read_by_command,
    "service": _read_by_service,
}
"""How each fixture is read; the argument is a folder with copies of all of them."""


def _command(*words: str) -> str:
    """What the command line prints; it runs in this process, which is much faster."""
    said, argv = io.StringIO(), ["partita", *words]
    width = mock.patch.dict(os.environ, {"COLUMNS": "100"})
    with width, mock.patch.object(sys, "argv", argv), redirect_stdout(said), redirect_stderr(said):
        try:
            run_module("partita", run_name="__main__")
        except SystemExit as ended:
            if ended.code:
                raise RuntimeError(said.getvalue()) from None
    return said.getvalue()


def main(argv: list[str] | None = None) -> None:
    """Write the files with their answers, or the answers alone."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("act", choices=("write", "answers"))
    if parser.parse_args(argv).act == "write":
        write(FIXTURES)
    else:
        write_answers(FIXTURES)


if __name__ == "__main__":
    main()
