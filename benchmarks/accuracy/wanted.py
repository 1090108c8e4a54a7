"""Just what is wanted, against other libraries on the same fresh columns: medians, totals, means by group.

    PARTITA_DATA=... python -m benchmarks.accuracy --rows wanted --sets median --trials 20 --peers

Every trial is a column that no other row of the benchmark draws. All methods get the same columns, at both
epsilons, and answer each as often as their `draws` say. Peers run with `--peers` only, in environments below
build/peers. Nothing is chosen on these columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.accuracy import sums_sets, wanted_quantiles, wanted_totals
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json, short
from benchmarks.accuracy.work import NoData
from benchmarks.peers.worker import OF_COLUMNS, Method, Problem, column_of, measured
from benchmarks.report.environments import ROOT, NotInstalled, environment
from benchmarks.report.peers import DIFFPRIVLIB, GOOGLE, OPENDP, SMARTNOISE_SQL, Peer
from benchmarks.report.quantiles import rank_miss
from benchmarks.report.quantiles import wanted as wanted_median
from benchmarks.report.run import WorkerFailed, worked
from benchmarks.report.sums import wanted_means, wanted_sums

ROWS, MANY_ROWS = 10_000, 100_000
EPSILONS = ("0.1", "1")
BOUNDS = ("tight", "wide")
"""The declared bound of a value: the largest value of the column, or 2^32 - 1."""
FEWEST = 20
"""Rows of a group whose mean counts; of fewer even the true mean says little."""
FRESH = 1_000
"""The seed of the first column; other rows of the benchmark have smaller ones."""
PATIENCE = 1_800
OURS = "Partita"


class Offer(NamedTuple):
    """A method of a worker, how often it answers each column, and with which bounds only, if not with all."""

    peer: Peer
    method: str
    title: str
    draws: int = 3
    bound: str = ""


class Kind(NamedTuple):
    """What is wanted, in which settings: our method and its draws of each column, and the peers."""

    settings: Callable[[], list[tuple[Any, ...]]]
    problem: Callable[..., Problem]
    method: Method
    draws: int
    offers: Sequence[Offer]
    nothing: float
    """Added to errors in ratios: one row, for ranks."""


# Columns: the problem of a setting, with as many fresh columns as there are trials.
def median_settings() -> list[tuple[Any, ...]]:
    return [(name,) for name in wanted_quantiles.families()]


def median_problem(trials: int, family: str) -> Problem:
    drawn = [wanted_quantiles.column(family, FRESH + trial) for trial in range(trials)]
    return {
        "values": np.array([values for values, _ in drawn]),
        "size": drawn[0][1],
        "alphas": np.array([0.5]),
    }


def total_settings() -> list[tuple[Any, ...]]:
    held_out = [name for name, family in wanted_totals.FAMILIES.items() if family.group != "tuned"]
    return list(product(there([*held_out, "wages", "diamonds"], draw_total), BOUNDS))


def total_problem(trials: int, family: str, bound: str) -> Problem:
    values = [draw_total(family, np.random.default_rng([FRESH + t, *family.encode()])) for t in range(trials)]
    return sums_problem(np.zeros((trials, ROWS), np.int64), np.array(values), 1, bound)


def draw_total(family: str, rng: np.random.Generator) -> Any:
    if family == "diamonds":
        return draw_table(family, rng)[1]
    values = wanted_totals.FAMILIES[family].draw(ROWS, rng)
    return np.minimum(values, sums_sets.LARGEST).astype(np.int64)


def group_settings(ways: Sequence[tuple[int, str]]) -> list[tuple[Any, ...]]:
    return [(name, *way) for way, name in product(ways, there(sums_sets.SETS, draw_table))]


def group_problem(trials: int, name: str, groups: int, bound: str) -> Problem:
    drawn = [draw_table(name, np.random.default_rng([FRESH + t, *name.encode()])) for t in range(trials)]
    keys = np.array([each for each, _ in drawn]) * groups // sums_sets.SETS[name].cells
    return sums_problem(keys, np.array([values for _, values in drawn]), groups, bound)


def mean_problem(trials: int, name: str, groups: int, bound: str) -> Problem:
    """As sums by group; the truth of a group that hardly has rows is not a number, and does not count."""
    problem = group_problem(trials, name, groups, bound)
    sizes = np.array([np.bincount(keys, minlength=groups) for keys in problem["keys"]])
    sums = problem["truth"][:, :-1]
    return {**problem, "truth": np.where(sizes >= FEWEST, sums / np.maximum(sizes, 1), np.nan)}


def sums_problem(keys: Any, values: Any, groups: int, bound: str) -> Problem:
    tight = values.max(axis=1)
    sums = [np.bincount(k, v, groups) for k, v in zip(keys, values, strict=True)]
    return {
        "keys": keys,
        "values": values,
        "groups": groups,
        "largest": tight if bound == "tight" else np.full_like(tight, sums_sets.LARGEST),
        "truth": np.array([[*each, each.sum()] for each in sums]),
    }


def draw_table(name: str, rng: np.random.Generator) -> tuple[Any, Any]:
    """Keys and values of rows; of a real table a fresh sample."""
    keys, values = sums_sets.SETS[name].draw(ROWS, rng)
    rows = rng.integers(0, keys.size, ROWS) if keys.size != ROWS else np.arange(ROWS)
    return keys[rows], values[rows]


def there(names: Any, draw: Callable[..., Any]) -> list[str]:
    """Those of the sets whose data are here."""
    found = []
    for name in names:
        try:
            draw(name, np.random.default_rng(0))
        except NoData:
            continue
        found.append(name)
    return found


SUM_OFFERS = (
    Offer(OPENDP, "sums", "OpenDP, own cap", 2),
    Offer(OPENDP, "declared-sums", "OpenDP, declared", bound="tight"),
    Offer(DIFFPRIVLIB, "capped-sums", "diffprivlib, own cap"),
    Offer(DIFFPRIVLIB, "declared-sums", "diffprivlib, declared", bound="tight"),
    Offer(GOOGLE, "sums", "Google, own bounds"),
    Offer(GOOGLE, "declared-sums", "Google, declared", bound="tight"),
    Offer(SMARTNOISE_SQL, "sums", "SmartNoise, own bounds", 1),
    Offer(SMARTNOISE_SQL, "declared-sums", "SmartNoise, declared", 1, bound="tight"),
)
KINDS = {
    "median": Kind(
        median_settings,
        median_problem,
        wanted_median,
        5,
        (
            Offer(OPENDP, "median", "OpenDP, cells", 5),
            Offer(OPENDP, "grid-median", "OpenDP, grid", 5),
            Offer(OPENDP, "spread-median", "OpenDP, spread"),
            Offer(DIFFPRIVLIB, "median", "diffprivlib"),
            Offer(DIFFPRIVLIB, "quantiles", "diffprivlib, spread"),
            Offer(GOOGLE, "quantiles", "Google tree"),
            Offer(GOOGLE, "median", "Google Median"),
        ),
        1.0,
    ),
    "totals": Kind(total_settings, total_problem, wanted_sums, 3, SUM_OFFERS, 0.0),
    "group-totals": Kind(
        partial(group_settings, ((8, "wide"), (32, "wide"), (8, "tight"))),
        group_problem,
        wanted_sums,
        2,
        SUM_OFFERS,
        0.0,
    ),
    "group-means": Kind(
        partial(group_settings, ((8, "wide"), (64, "wide"), (8, "tight"))),
        mean_problem,
        wanted_means,
        2,
        (
            Offer(GOOGLE, "means", "Google, own bounds"),
            Offer(GOOGLE, "declared-means", "Google, declared", bound="tight"),
            Offer(SMARTNOISE_SQL, "means", "SmartNoise, own bounds", 1),
            Offer(SMARTNOISE_SQL, "declared-means", "SmartNoise, declared", 1, bound="tight"),
        ),
        0.0,
    ),
}
SETS = (*KINDS, "seconds")


def cells(plan: Plan) -> Sequence[Cell]:
    chosen = plan.chosen(SETS)
    compared = [
        partial(compare, plan, name, setting)
        for name in chosen
        if name in KINDS
        for setting in KINDS[name].settings()
    ]
    timed = [partial(time_want, name, plan.trials) for name in TIMED if "seconds" in chosen]
    return [*compared, *timed]


def compare(plan: Plan, name: str, setting: tuple[Any, ...]) -> Json:
    """Errors of ours and of each peer, standard errors over columns, and ratios to the best peer.

    Each is a pair, for the two epsilons.
    """
    kind = KINDS[name]
    problem = with_epsilons(kind.problem(plan.trials, *setting), plan.trials)
    ours = measured(kind.method, {**problem, "releases": kind.draws * int(problem["columns"])})
    found, failed = {OURS: errors_of(problem, ours["answers"])}, dict[str, str]()
    for offer in kind.offers if plan.peers else ():
        if offer.bound and offer.bound not in setting:
            continue
        try:
            found[offer.title] = errors_of(problem, ask_peer(offer, problem))
        except (NotInstalled, WorkerFailed) as reason:
            failed[offer.title] = str(reason)
    mean = {title: each.mean(axis=(0, 2)) for title, each in found.items()}
    best = [best_of(mean, place) for place in range(len(EPSILONS))]
    ratios = [
        short((mean[OURS][place] + kind.nothing) / (mean[title][place] + kind.nothing)) if title else None
        for place, title in enumerate(best)
    ]
    return {
        "row": "wanted",
        "set": name,
        "setting": ", ".join(map(str, setting)),
        "epsilon": list(EPSILONS),
        "columns": plan.trials,
        "draws": {title: each.size // len(EPSILONS) for title, each in found.items()},
        "errors": {title: list(map(short, each)) for title, each in mean.items()},
        "spread": {title: standard_errors(each.mean(axis=0)) for title, each in found.items()},
        "best": best,
        "ratio": ratios,
        "failed": failed,
    }


def with_epsilons(problem: Problem, trials: int) -> Problem:
    """Every column at one epsilon, then every column at the other."""
    times = len(EPSILONS)
    stacked = {
        key: np.concatenate([problem[key]] * times) for key in (*OF_COLUMNS, "truth") if key in problem
    }
    epsilon = np.repeat(np.array(EPSILONS, np.float64), trials)
    return {**problem, **stacked, "epsilon": epsilon, "columns": times * trials}


def best_of(errors: dict[str, Any], place: int) -> str | None:
    """The peer with the least error at that epsilon."""
    others = [title for title in errors if title != OURS]
    return min(others, key=lambda title: float(errors[title][place]), default=None)


def ask_peer(offer: Offer, problem: Problem) -> Any:
    """The answers of a peer to all columns, in its own environment."""
    made = environment(ROOT / "build/peers" / offer.peer.worker, offer.peer.requirements)
    asked = {**problem, "releases": offer.draws * int(problem["columns"])}
    return worked(made, offer.peer.module, offer.method, asked, patience=PATIENCE)["answers"]


def errors_of(problem: Problem, answers: Any) -> Any:
    """The error of each release: an axis for draws, one for epsilons, one for columns.

    Of a median it is the rows missed, otherwise the mean distance over the mean true figure.
    """
    columns = int(problem["columns"])
    by_column = answers.reshape(-1, columns, answers[0].size)
    if "truth" in problem:
        truth = problem["truth"]
        found = np.nanmean(np.abs(by_column - truth), axis=2) / np.nanmean(np.abs(truth), axis=1)
    else:
        each = [column_of(problem, number) for number in range(columns)]
        found = np.array([list(map(rank_miss, each, answered)) for answered in by_column])
    return found.reshape(len(found), len(EPSILONS), -1)


def standard_errors(columns: Any) -> list[float]:
    """Of the mean over columns, for each epsilon."""
    number = columns.shape[1]
    return [short(each) for each in columns.std(axis=1, ddof=1 if number > 1 else 0) / math.sqrt(number)]


def timed_sums(groups: int) -> Problem:
    rng = np.random.default_rng(FRESH)
    keys, values = rng.integers(0, groups, MANY_ROWS), np.exp(rng.normal(9, 1.5, MANY_ROWS)).astype(np.int64)
    return {"keys": keys, "values": values, "groups": groups, "largest": sums_sets.LARGEST, "epsilon": 1.0}


def timed_median() -> Problem:
    values = np.random.default_rng(FRESH).integers(0, 10**6, MANY_ROWS)
    return {"values": values, "size": 10**6, "alphas": np.array([0.5]), "epsilon": 1.0}


TIMED: dict[str, tuple[Method, Callable[[], Problem]]] = {
    "median": (wanted_median, timed_median),
    "total": (wanted_sums, partial(timed_sums, 1)),
    "total, 8 groups": (wanted_sums, partial(timed_sums, 8)),
    "total, 32 groups": (wanted_sums, partial(timed_sums, 32)),
    "mean, 8 groups": (wanted_means, partial(timed_sums, 8)),
    "mean, 64 groups": (wanted_means, partial(timed_sums, 64)),
}


def time_want(name: str, trials: int) -> Json:
    """Medians over releases of 100,000 rows with all answers, after one that is not counted."""
    method, make = TIMED[name]
    problem, wall, cpu = make(), list[float](), list[float]()
    for _ in range(trials + 1):
        start, spent = perf_counter(), process_time()
        method(problem)()
        wall.append(perf_counter() - start)
        cpu.append(process_time() - spent)
    seconds, busy = (short(float(np.median(each[1:]))) for each in (wall, cpu))
    return {"row": "wanted", "set": "seconds", "setting": name, "seconds": seconds, "cpu_seconds": busy}


def totals(rows: list[Json]) -> Iterator[Json]:
    """Every setting beside its best peer; of each set the geometric mean and the largest of the ratios."""
    for name in KINDS:
        mine = [row for row in rows if row["set"] == name]
        yield from map(line, mine)
        ratios = [ratio for row in mine for ratio in row["ratio"] if ratio is not None]
        if ratios:
            mean = math.exp(float(np.mean(np.log(ratios))))
            yield {"row": "wanted", "total": name, "ratio": short(mean), "worst": max(ratios)}
    yield from ({**row, "total": "seconds"} for row in rows if row["set"] == "seconds")


def line(row: Json) -> Json:
    """A setting: all errors at both epsilons, ours with standard errors, and the best peers."""
    said = {title: " / ".join(f"{each:.3g}" for each in pair) for title, pair in row["errors"].items()}
    spread = " / ".join(f"{each:.2g}" for each in row["spread"][OURS])
    return {
        "total": row["set"],
        "setting": row["setting"],
        "ours": f"{said.pop(OURS)} (± {spread})",
        "peers": said,
        "best": row["best"],
        "ratio": row["ratio"],
    }


WANTED = Row(cells, totals, clocked=True)
