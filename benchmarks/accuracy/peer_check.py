"""Our versions of the peers beside the anchors: are the baselines good implementations?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks.accuracy.peers import ANCHORED
from benchmarks.accuracy.queries import misses
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Goal, Json, short, totals
from benchmarks.accuracy.work import peers_1d, shape_work, shapes

QUERIES = ("range", "prefix")


def cells(plan: Plan) -> Sequence[Cell]:
    return [partial(cell, plan, *shape, peer) for shape in shapes() for peer in ANCHORED]


def cell(plan: Plan, dataset: str, n: int, epsilon: str, peer: str) -> Json:
    """Mean errors of a peer written for the benchmark, against its figure in anchors_1d.csv."""
    work = shape_work(dataset, n, epsilon)
    found = misses(ANCHORED[peer], work, plan.trials)
    anchor = peers_1d(dataset, n, epsilon, (peer,))
    made: Json = {"row": "peers", "peer": peer, "dataset": dataset, "n": n, "epsilon": epsilon}
    for query in QUERIES:
        made[f"{query}_L1"] = short(found[query].L1)
        made[f"{query}_spread"] = short(found[query].spread)
        made[f"{query}_anchor"] = anchor[query][peer]
        made[f"{query}_ratio"] = short(found[query].L1 / anchor[query][peer])
    return made


def summary(rows: list[Json]) -> Iterator[Json]:
    """Each peer alone: near 1 where it is the same algorithm."""
    for peer in ANCHORED:
        mine = [row for row in rows if row["peer"] == peer]
        yield from totals(f"peers {peer}", mine, dict.fromkeys(QUERIES, Goal()))


PEER_CHECK = Row(cells, summary)
