"""Whole tables of many columns: total variation of pairs and triples, against views of all pairs and peers.

Every method is judged on all pairs of columns and on 25 triples, at the full resolution of the cells. AIM and
ours under rho are (epsilon, 1e-9)-DP, all others are pure. Peers run with `--peers` only: AIM takes minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np

import partita as pt
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json, short
from benchmarks.accuracy.tables_read import read_table, table_variations
from benchmarks.accuracy.tables_sets import SETS, WIDE, Table, is_held_out
from benchmarks.peers.tables import Subset, variations
from benchmarks.report.environments import ROOT, NotInstalled, environment
from benchmarks.report.run import WorkerFailed, worked
from partita.arrays import Floats
from partita.concentrated import rho_within

EPSILONS = ("0.1", "1", "10")
VIEWS = 30
"""Pair views in one release: the file of a release has no room for all 91 of Adult."""

REQUIREMENTS = ("dpmm==0.1.9",)
PATIENCE = 3 * 3600
"""Seconds that a peer may take for one release."""

DELTA = "1e-9"
"""That of AIM, and of our release under rho."""
RHO = "partita, rho"

PEERS = {
    "AIM": ("dpmm", "aim"),
    "PrivBayes, dpmm": ("dpmm", "priv-bayes"),
    "AIM, pure": ("pure_tables", "aim"),
    "PrivBayes, pure": ("pure_tables", "priv-bayes"),
}
"""The worker and the method of each peer."""

GOALS = {("adult", "0.1"): 0.105, ("adult", "1"): 0.039, ("adult", "10"): 0.022}
"""What the mean over the pairs should not exceed."""
RATIOS = {"0.1": 1.0, "1": 0.7}
"""What the mean over the pairs of a survey should not exceed, over that of AIM."""

Found = tuple[Floats, Floats]
"""The total variation of each pair and of each triple; no triples where a method has none."""


def ours(table: Table, epsilon: str) -> Found:
    """One release of all columns, as `publish` makes it by default."""
    release = pt.publish(table.source, table.schema, epsilon=epsilon)
    return tuple_of(table, lambda subset: read_table(release, table, subset))


def ours_in_rho(table: Table, epsilon: str) -> Found:
    """The same under the largest rho that is (epsilon, 1e-9)-DP."""
    release = pt.publish(table.source, table.schema, rho=rho_within(epsilon, DELTA))
    return tuple_of(table, lambda subset: read_table(release, table, subset))


def pair_views(table: Table, epsilon: str) -> Found:
    """A view of every pair, which share epsilon equally; in several releases."""
    found, pairs = [], table.pairs
    for start in range(0, len(pairs), VIEWS):
        some = pairs[start : start + VIEWS]
        views = [tuple(table.columns[column] for column in pair) for pair in some]
        share = Fraction(epsilon) * len(some) / len(pairs)
        release = pt.publish(table.source, table.schema, epsilon=share, views=views)
        found.append(table_variations(release, table, some))
    return np.concatenate(found), np.array([])


def column_views(table: Table, epsilon: str) -> Found:
    """A view of every column, which share epsilon equally; columns are taken to be independent."""
    views = [(column,) for column in table.columns]
    release = pt.publish(table.source, table.schema, epsilon=epsilon, views=views)
    lines = [np.maximum(read_table(release, table, (column,)), 0.0) for column in range(len(views))]

    def project(subset: Subset) -> Any:
        shape = tuple(table.sizes[column] for column in subset)
        grids = np.ix_(*(lines[column] for column in subset))
        return np.broadcast_to(np.prod(np.broadcast_arrays(*grids), axis=0), shape)

    return tuple_of(table, project)


def tuple_of(table: Table, project: Callable[[Subset], Any]) -> Found:
    """The total variation of pairs and of triples."""
    pairs, triples = (
        variations(table.rows, table.sizes, some, project) for some in (table.pairs, table.triples)
    )
    return pairs, triples


def peer(table: Table, epsilon: str, *, module: str, method: str) -> Found:
    """A peer in the environment of dpmm."""
    made = environment(ROOT / "build/peers/dpmm", REQUIREMENTS)
    told = worked(made, f"benchmarks.peers.{module}", method, problem(table, epsilon), patience=PATIENCE)
    return told["answers"][0, : len(table.pairs)], told["answers"][0, len(table.pairs) :]


def problem(table: Table, epsilon: str) -> dict[str, Any]:
    """What a worker is asked: subsets are rows of column numbers, filled up with -1."""
    subsets = [[*subset, -1][:3] for subset in (*table.pairs, *table.triples)]
    facts = {"rows": table.rows, "sizes": np.array(table.sizes), "subsets": np.array(subsets)}
    return {**facts, "epsilon": float(epsilon), "releases": 1}


OWN: dict[str, Callable[[Table, str], Found]] = {
    "partita": ours,
    RHO: ours_in_rho,
    "pair views": pair_views,
    "column views": column_views,
}
METHODS = OWN | {
    name: partial(peer, module=module, method=method) for name, (module, method) in PEERS.items()
}


def cells(plan: Plan) -> Sequence[Cell]:
    methods = METHODS if plan.peers else OWN
    return [partial(cell, plan, *key) for key in product(plan.chosen(WIDE), EPSILONS, methods)]


def cell(plan: Plan, name: str, epsilon: str, method: str) -> Json:
    """Means over pairs and triples, fresh releases; one release of a peer, and of views of all pairs."""
    table, trials = SETS[name](), plan.trials if method in ("partita", RHO, "column views") else 1
    made: Json = {"row": "tables", "dataset": name, "n": len(table.rows), "epsilon": epsilon}
    made |= {"held_out": is_held_out(name), "method": method, "trials": trials}
    start = perf_counter()
    try:
        found = [METHODS[method](table, epsilon) for _ in range(trials)]
    except (pt.PartitaError, NotInstalled, WorkerFailed) as refused:
        return {**made, "refused": str(refused)[:200]}
    pairs = [float(each.mean()) for each, _ in found]
    triples = [float(each.mean()) for _, each in found if each.size]
    return {
        **made,
        "pairs": short(float(np.mean(pairs))),
        "pairs_spread": [short(min(pairs)), short(max(pairs))],
        "triples": short(float(np.mean(triples))) if triples else None,
        "seconds": short((perf_counter() - start) / trials),
    }


def summary(rows: list[Json]) -> Iterator[Json]:
    """For each set and epsilon all methods side by side."""
    for name, epsilon in dict.fromkeys((row["dataset"], row["epsilon"]) for row in rows):
        yield total([row for row in rows if (row["dataset"], row["epsilon"]) == (name, epsilon)])


def total(rows: list[Json]) -> Json:
    """One set at one epsilon."""
    name, epsilon = rows[0]["dataset"], rows[0]["epsilon"]
    pairs, triples = (
        {row["method"]: row[figure] for row in rows if row.get(figure)} for figure in ("pairs", "triples")
    )
    most = GOALS.get((name, epsilon))
    if name != "adult" and epsilon in RATIOS and "AIM" in pairs:
        most = short(RATIOS[epsilon] * pairs["AIM"])
    own = pairs.get("partita")
    return {
        "row": "tables",
        "total": name + (" (held out)" if is_held_out(name) else ""),
        "epsilon": epsilon,
        "pairs": pairs,
        "triples": triples,
        "target": most,
        "met": None if most is None or own is None else own <= most,
        "rho_target": pairs.get("AIM"),
        "rho_met": None if RHO not in pairs or "AIM" not in pairs else pairs[RHO] <= pairs["AIM"],
    }


TABLES = Row(cells, summary)
