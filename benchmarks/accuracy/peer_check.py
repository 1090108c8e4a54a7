"""Our versions of the peers beside the anchors: are the baselines good implementations?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks.accuracy.peers import ANCHORED
from benchmarks.accuracy.queries import Data, Method, Work, misses
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Goal, Json, short, totals
from benchmarks.accuracy.work import Peers, peers_1d, shape_work, shapes

QUERIES = ("range", "prefix")


def cells(plan: Plan) -> Sequence[Cell]:
    return [partial(cell, plan, *shape, peer) for shape in shapes() for peer in ANCHORED]


def cell(plan: Plan, dataset: str, n: int, epsilon: str, peer: str) -> Json:
    """Mean errors of a peer written for the benchmark, against its figure in anchors_1d.csv."""
    work, anchor = shape_work(dataset, n, epsilon), peers_1d(dataset, n, epsilon, (peer,))
    return beside("peers", peer, ANCHORED[peer], work, anchor, plan.trials)


def beside(
    benchmark: str, peer: str, method: Method[Data], work: Work[Data], anchor: Peers, trials: int
) -> Json:
    """A peer on each list of questions, and its anchor."""
    made: Json = {
        "row": benchmark,
        "peer": peer,
        "dataset": work.dataset,
        "n": work.n,
        "epsilon": work.epsilon,
    }
    for query, found in misses(method, work, trials).items():
        made[f"{query}_L1"] = short(found.L1)
        made[f"{query}_spread"] = short(found.spread)
        made[f"{query}_anchor"] = anchor[query][peer]
        made[f"{query}_ratio"] = short(found.L1 / anchor[query][peer])
    return made


def by_peer(benchmark: str, rows: list[Json], queries: Sequence[str]) -> Iterator[Json]:
    """Each peer alone: near 1 where it is the same algorithm."""
    for peer in dict.fromkeys(row["peer"] for row in rows):
        mine = [row for row in rows if row["peer"] == peer]
        yield from totals(f"{benchmark} {peer}", mine, dict.fromkeys(queries, Goal()))


def summary(rows: list[Json]) -> Iterator[Json]:
    return by_peer("peers", rows, QUERIES)


PEER_CHECK = Row(cells, summary)
