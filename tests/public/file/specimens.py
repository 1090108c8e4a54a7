"""Small releases of every kind, made by the shipped mechanisms on fixed tapes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial, reduce
from operator import add
from typing import Any, Final, cast

import numpy as np

import partita as pt
from partita.domain import Category, Date, Domain, Integer, Real, Text
from partita.domain.axis import Axis
from partita.guarantee import Guarantee
from partita.public.axis.base import AxisRelease, Specials
from partita.public.axis.flat import GaussianRelease
from partita.public.axis.names import ListedNames
from partita.public.base import Provenance
from partita.public.boxes.base import BoxRelease
from partita.public.file_entries import Published, join_views
from partita.public.queries.language import marginal, ranges, value
from partita.public.queries.queries import Universe
from partita.public.release import Release
from partita.public.sums.base import SumRelease
from partita.public.sums.view import SumView, ViewKeyCounts
from partita.public.views import BoxView, View
from partita.public.workload.release import QueryView, WorkloadRelease
from partita.testing import EndlessTape, tape_noise
from partita.trusted.secret import AxisCounts, Histogram, NameCounts, Points

__all__ = [
    "BOX_MECHANISMS",
    "MECHANISMS",
    "QUERY_MECHANISMS",
    "SUM_MECHANISMS",
    "axis",
    "box_mechanism",
    "box_view",
    "boxes",
    "mechanism",
    "places",
    "query_view",
    "release",
    "rows",
    "sum_mechanism",
    "sum_view",
    "view",
]

MECHANISMS: Final = {
    "gaussian-histogram": "GaussianCounts",
    "hierarchy": "HierarchyCounts",
    "histogram": "HistogramCounts",
    "intervals-paper": "PaperIntervals",
    "laplace": "Laplace",
    "names": "Names",
    "partition-tents": "PartitionTents",
    "spending-tree": "SpendingTree",
    "stability": "StableNames",
    "tents": "Tents",
    "thresholds": "Thresholds",
    "tree": "Tree",
}
"""The mechanism that makes a release of each kind."""

DOMAINS: Final[dict[str, Domain]] = {
    "gaussian-histogram": Category(["a", "b", "c"]),
    "hierarchy": Category(
        {"Kent": {"T1": ["döver", "deal"], "T2": ["ash"]}, "city": None}, ["county", "tract", "town"]
    ),
    "histogram": Category(["north", "söuth", "east", "west"]),
    "intervals-paper": Integer(0, 2**64 - 1),
    "laplace": Integer(-2, 3),
    "names": Text(2, "abcü"),
    "partition-tents": Integer(-(2**63), 2**63 - 1),
    "spending-tree": Real(0, 20, step="0.01"),
    "stability": Text(2, "abcü"),
    "tents": Date("2024-01-01", "2024-01-24"),
    "thresholds": Integer(1, 9),
    "tree": Integer(0, 36),
}

BOX_MECHANISMS: Final = {
    "gaussian-grid": "GaussianGrid",
    "graph": "TableGraph",
    "grid": "GridCounts",
    "rank-boxes": "RankBoxes",
    "rectangles": "Rectangles",
    "rectangles-paper": "PaperRectangles",
    "spending-boxes": "SpendingBoxes",
    "viewed-boxes": "ViewedBoxes",
}
"""The same for releases over several axes."""

BOX_DOMAINS: Final[dict[str, tuple[Domain, ...]]] = {
    "gaussian-grid": (Integer(0, 4), Category(["x", "y"])),
    "graph": (Integer(0, 5), Category(["a", "b", "c"]), Real(0, 20, step="0.01"), Category(["x", "y"])),
    "grid": (Integer(0, 5), Category(["north", "söuth"])),
    "rank-boxes": (Integer(0, 2**16), Category(["a", "b", "c"]), Date("2024-01-01", "2024-01-24")),
    "rectangles": (Integer(0, 9), Category(["a", "b", "c"]), Integer(0, 4)),
    "rectangles-paper": (Real(0, 20, step="0.01"), Integer(1, 9)),
    "spending-boxes": (Integer(-(2**62), 2**62 - 1), Real(0, 1, step="0.01"), Category(["a", "b"])),
    "viewed-boxes": (Integer(0, 99), Category(["a", "b", "c"])),
}

SUM_MECHANISMS: Final = {
    "group-means": "GroupMeans",
    "level-trees": "LevelTrees",
    "log-tree": "LogTree",
    "totals": "KnotTotal",
}
"""The same for releases of sums."""

SUMMED: Final = Integer(-40, 10**6)
"""The domain of the summed column."""

QUERY_MECHANISMS: Final = {
    "global-truncation": "GlobalTruncation",
    "instance-specific": "InstanceTruncation",
    "linear": "LinearWorkload",
    "normalization": "Normalization",
    "projected-laplace": "ProjectedLaplace",
    "truncation": "ComposedTruncation",
    "weights": "MultiplicativeWeights",
}
"""The same for releases of answers to queries."""

UNIVERSE: Final = Universe(["year", "town"], [Integer(0, 11), Category(["a", "b"])])
QUERIES: Final = ranges("year", [(0, 3), (2, 11)]) * marginal("town") + value("year")

CONTRIBUTIONS: Final = 3
EPSILON: Final = Fraction(2, 9)
"""That of each view; of all kinds together it is below 5."""


def mechanism(kind: str) -> Any:
    """The mechanism of a kind over its domain."""
    made, domain = getattr(pt, MECHANISMS[kind]), DOMAINS[kind]
    if isinstance(domain, Category) and domain.tree:
        made = partial(made, nodes=domain.tree.ranges)
    if isinstance(DOMAINS[kind], Text):
        return made(text=DOMAINS[kind], epsilon=EPSILON, unit="person", contributions=CONTRIBUTIONS)
    return made(size=DOMAINS[kind].size, epsilon=EPSILON, unit="person", contributions=CONTRIBUTIONS)


def axis(kind: str, seed: object = 0) -> AxisRelease:
    """What the mechanism releases about a hundred rows; its guarantee is put back for the tests."""
    made = mechanism(kind)
    released = made.release(rows(kind), noise=tape_noise(EndlessTape((kind, seed))))
    return cast(AxisRelease, replace(released, guarantee=made.guarantee))


def rows(kind: str) -> AxisCounts:
    """A hundred rows; of text more."""
    made = mechanism(kind)
    if isinstance(DOMAINS[kind], Text):
        return NameCounts.from_texts(["ab"] * 900 + ["ü"] * 700 + ["c"] * 9, made.text)
    cells = np.arange(100, dtype=np.uint64) ** np.uint64(2) % np.uint64(min(made.size, 2**63))
    return Histogram.from_cells(np.sort(cells), size=made.size)


def view(kind: str, column: str = "age", seed: object = 0, released: AxisRelease | None = None) -> View:
    """A column with its special cells; its axis is `released`, or that of the kind."""
    domain, made = DOMAINS[kind], released or axis(kind, seed)
    counts = {cell: 7 * number - 10 for number, cell in enumerate(domain.specials)}
    law = made.law if isinstance(made, GaussianRelease) else CONTRIBUTIONS / EPSILON
    specials = Specials(counts=counts, scale=law)
    if isinstance(made, ListedNames):
        domain, specials = made.domain, made.complete(specials)
    return View(
        column=column,
        domain=domain,
        axis=made,
        specials=specials,
        mechanism=kind,
        why="It was asked for by name.",
    )


def box_mechanism(kind: str) -> Any:
    """The mechanism of a kind over several axes, those of its domains."""
    made = getattr(pt, BOX_MECHANISMS[kind])
    axes = [Axis.of(domain) for domain in BOX_DOMAINS[kind]]
    return made(axes=axes, epsilon=EPSILON, unit="person", contributions=CONTRIBUTIONS)


def places(axes: tuple[Axis, ...], rows: int = 100) -> Points:
    """Rows at positions of every kind, special cells too."""
    turn = [
        [(place + 2) ** (number + 2) % axis.width for number, axis in enumerate(axes)]
        for place in range(rows)
    ]
    return Points.from_rows(np.array(turn, np.uint64), axes=axes)


def boxes(kind: str, seed: object = 0) -> BoxRelease:
    """What the mechanism releases about a hundred rows; its guarantee is put back for the tests."""
    made = box_mechanism(kind)
    released = made.release(places(made.axes), noise=tape_noise(EndlessTape((kind, seed))))
    return cast(BoxRelease, replace(released, guarantee=made.guarantee))


def box_view(kind: str, seed: object = 0) -> BoxView:
    """Columns together, named after the kind."""
    domains = BOX_DOMAINS[kind]
    return BoxView(
        columns=tuple(f"{kind} {number}" for number in range(len(domains))),
        domains=domains,
        boxes=boxes(kind, seed),
        mechanism=kind,
        why="It was asked for by name.",
    )


def sum_keys(kind: str) -> dict[str, Domain]:
    """The keys of the sums of a kind: two columns, one, the summed column itself, or none."""
    one: dict[str, Domain] = {"grid 0": Integer(0, 5)}
    keys: dict[str, dict[str, Domain]] = {"log-tree": {"wage": SUMMED}, "totals": {}, "group-means": one}
    return keys.get(kind, {**one, "grid 1": BOX_DOMAINS["grid"][1]})


def sum_mechanism(kind: str) -> Any:
    """The mechanism of a kind of sums."""
    keyed = kind in ("level-trees", "group-means")
    keys = {"keys": tuple(map(Axis.of, sum_keys(kind).values()))} if keyed else {}
    made = getattr(pt, SUM_MECHANISMS[kind])
    return made(**keys, value=SUMMED, epsilon=EPSILON, unit="person", contributions=CONTRIBUTIONS)


def sum_view(kind: str, seed: object = 0) -> SumView:
    """Sums of about a hundred wages."""
    made, keys = sum_mechanism(kind), sum_keys(kind)
    declared = {**keys, "wage": SUMMED}
    points = places(tuple(map(Axis.of, declared.values())))
    released = made.release(points, noise=tape_noise(EndlessTape((kind, seed))))
    return SumView(
        keys=tuple(keys),
        column="wage",
        declared=declared,
        sums=replace(released, guarantee=made.guarantee),
        beside=ViewKeyCounts.of_sums((box_view("grid"),), tuple(keys), "wage")
        if released.reads_counts
        else None,
        mechanism=kind,
        why="It was asked for by name.",
    )


def query_view(kind: str, seed: object = 0) -> QueryView:
    """Answers about a hundred rows."""
    made = getattr(pt, QUERY_MECHANISMS[kind])(
        queries=QUERIES, universe=UNIVERSE, epsilon=EPSILON, unit="person", contributions=CONTRIBUTIONS
    )
    released = made.release(places(UNIVERSE.axes), noise=tape_noise(EndlessTape((kind, seed))))
    return QueryView(
        columns=UNIVERSE.columns,
        domains=UNIVERSE.domains,
        queries=QUERIES,
        answers=replace(released, guarantee=made.guarantee),
        mechanism=made.name,
        why="It was asked for by name.",
    )


def promised(*views: Published) -> Guarantee | None:
    """What views promise together."""
    return reduce(add, cast(list[Guarantee], [each.guarantee for each in views]))


def release(*kinds: str) -> Release:
    """A view for each kind, in columns of that name; sums stand beside the counts of their keys.

    Of queries a release has one view at most. All kinds are those that are pure or state rho: beside a delta
    without rho, epsilons add up to more than 5.
    """
    axes = [kind for kind in AxisRelease.kinds() if kind != "stability"]
    listed = kinds or (*axes, *BoxRelease.kinds(), *SumRelease.kinds(), "linear")
    keyed = ["grid"] if "level-trees" in listed and "grid" not in listed else []
    counted = [kind for kind in listed if kind not in (*SumRelease.kinds(), *WorkloadRelease.kinds())]
    views = tuple(
        view(kind, column=kind) if kind in AxisRelease.kinds() else box_view(kind)
        for kind in (*counted, *keyed)
    )
    sums = tuple(sum_view(kind) for kind in listed if kind in SumRelease.kinds())
    queries = next((query_view(kind) for kind in listed if kind in WorkloadRelease.kinds()), None)
    return Release(
        views=views,
        sums=sums,
        queries=queries,
        guarantee=promised(*join_views(views, sums, queries)),
        provenance=Provenance(
            version="0.1.0", day="2026-11-15", dataset="people", recorded=True, part=("región", "north")
        ),
    )
