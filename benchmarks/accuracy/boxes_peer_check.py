"""Our versions of the peers over two columns beside the anchors: are the baselines good implementations?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks.accuracy.boxes_peers import ANCHORED
from benchmarks.accuracy.boxes_work import flat_peers, flat_shapes, flat_work
from benchmarks.accuracy.peer_check import beside, by_peer
from benchmarks.accuracy.rows import Cell, Plan, Row
from benchmarks.accuracy.score import Json


def cells(plan: Plan) -> Sequence[Cell]:
    return [partial(cell, plan, *shape, peer) for shape in flat_shapes() for peer in ANCHORED]


def cell(plan: Plan, dataset: str, n: int, epsilon: str, peer: str) -> Json:
    """Mean errors of a peer written for the benchmark, against its figure in anchors_2d.csv."""
    work, anchor = flat_work(dataset, n, epsilon), flat_peers(dataset, n, epsilon, (peer,))
    return beside("boxespeers", peer, ANCHORED[peer], work, anchor, plan.trials)


def summary(rows: list[Json]) -> Iterator[Json]:
    return by_peer("boxespeers", rows, ("box",))


BOXES_PEER_CHECK = Row(cells, summary)
