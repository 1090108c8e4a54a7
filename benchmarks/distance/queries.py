"""Distances of the mechanisms for linear queries: from the best count, from strategies, from packings."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.distance.row import Distance, Measured, count_bound, linear_bound, noises
from benchmarks.distance.sums import two_points
from partita import Histogram
from partita.domain import Integer
from partita.public.queries.language import matrix, prefixes
from partita.public.queries.queries import Universe
from partita.trusted.mechanisms.online_weights import OnlineTerms, open_session
from partita.trusted.mechanisms.weights import MultiplicativeWeights
from partita.trusted.mechanisms.workload import LinearQueries, LinearWorkload, ProjectedLaplace
from partita.trusted.secret import Points

Bools = NDArray[np.bool_]

_EPSILON: Final = 1
_CELLS: Final = 64
_QUERIES: Final = 1_000
_ROWS: Final = 1_000
_DISJOINT: Final = 256
_ENOUGH: Final = 10
"""Releases that take seconds are measured as often, if more trials are asked for."""

_ASKED: Final = 100
_UPDATES: Final = 10
_UNIVERSE: Final = Universe(["age"], [Integer(0, _CELLS - 1)])
_CELL_BY_CELL: Final = "two rows more or not in each cell, any mechanism [Yu97]"
_SETTING: Final = "1,000 random sets of 64 cells, 1,000 rows, epsilon 1"


def linear_queries(trials: int) -> Distance:
    """Disjoint counts, each of which no mechanism answers better."""
    counts = np.eye(_DISJOINT, dtype=np.int64).tolist()
    mechanism = LinearQueries(queries=counts, epsilon=_EPSILON)
    empty = Histogram.dense([0] * _DISJOINT)
    released = [mechanism.release(empty, noise=noise) for noise in noises(trials)]
    return Distance(
        mechanism="linear_queries",
        setting=f"{_DISJOINT} counts of disjoint cells, epsilon 1",
        what="root mean square error of a count",
        measured=Measured.root([np.mean(each.noisy.astype(float) ** 2) for each in released]),
        bound=count_bound(_EPSILON),
        source="geometric noise is best for one count, any mechanism [GRS12]",
    )


def linear_workload(trials: int) -> Distance:
    """All prefixes of a line, against every strategy of measured counts with Laplace noise."""
    mechanism = LinearWorkload(queries=prefixes("age"), universe=_UNIVERSE, epsilon=_EPSILON)
    nobody = Points.from_rows(np.zeros((0, 1), np.int64), axes=_UNIVERSE.axes)
    table = np.tril(np.ones((_CELLS, _CELLS)))
    released = [mechanism.release(nobody, noise=noise) for noise in noises(trials)]
    return Distance(
        mechanism="linear_workload",
        setting=f"all {len(mechanism.operator)} prefixes of {_CELLS} cells, epsilon 1",
        what="root mean square error over the prefixes",
        measured=Measured.root([np.mean(each.values.astype(float) ** 2) for each in released]),
        bound=linear_bound(table.T @ table, _CELLS, _EPSILON),
        source="nuclear norm: any linear answers from Laplace noise [LM13]",
        note="the bound is for Laplace noise on any list of counts, not for every mechanism",
    )


def projected_laplace(trials: int) -> Distance:
    """Many random sets, against a packing of cells."""
    sets, points = _sets(), _points()
    mechanism = ProjectedLaplace(queries=_asked(sets), universe=_UNIVERSE, epsilon=_EPSILON)
    truth = _truth(sets)
    released = [mechanism.release(points, noise=noise) for noise in noises(min(trials, _ENOUGH))]
    plain = sqrt(2.0) * float(mechanism.scale)
    return Distance(
        mechanism="projected_laplace",
        setting=_SETTING,
        what="root mean square error over the queries",
        measured=Measured.root([np.mean((each.values - truth) ** 2) for each in released]),
        bound=_cells_bound(sets),
        source=_CELL_BY_CELL,
        note=f"without the projection {plain:.4g}; {_histogram_note(sets)}",
    )


def multiplicative_weights(trials: int) -> Distance:
    """The same sets and rows as for the projection."""
    sets, points = _sets(), _points()
    mechanism = MultiplicativeWeights(queries=_asked(sets), universe=_UNIVERSE, epsilon=_EPSILON)
    truth = _truth(sets)
    released = [mechanism.release(points, noise=noise) for noise in noises(min(trials, _ENOUGH))]
    return Distance(
        mechanism="multiplicative_weights",
        setting=_SETTING,
        what="root mean square error over the queries",
        measured=Measured.root([np.mean((each.values - truth) ** 2) for each in released]),
        bound=_cells_bound(sets),
        source=_CELL_BY_CELL,
        note=_histogram_note(sets),
    )


def online_weights(trials: int) -> Distance:
    """The first hundred of the same sets, asked one after the other."""
    sets = _sets()[:_ASKED]
    squares = [_session_error(sets, noise) for noise in noises(min(trials, _ENOUGH))]
    return Distance(
        mechanism="online_weights",
        setting="100 random sets of 64 cells, one by one, 10 updates, 1,000 rows, epsilon 1",
        what="root mean square error over the queries",
        measured=Measured.root(squares),
        bound=_cells_bound(sets),
        source=_CELL_BY_CELL,
        note=_histogram_note(sets),
    )


def _session_error(sets: Bools, noise: Any) -> float:
    """The mean square over all queries; what comes after the last update is answered by the guess."""
    terms = OnlineTerms.of(universe=_UNIVERSE, epsilon=_EPSILON, updates=_UPDATES)
    found = []
    with (
        TemporaryDirectory() as folder,
        open_session(Path(folder) / "session", terms, _points(), noise=noise) as session,
    ):
        for chosen in sets:
            query = _asked(chosen[None])
            going = session.remaining > 0
            found.append((session.ask if going else session.public)(query).value)
    return float(np.mean((np.array(found) - _truth(sets)) ** 2))


def _sets() -> Bools:
    """Random sets: each cell is in half of them."""
    return np.random.default_rng(12).random((_QUERIES, _CELLS)) < 0.5


def _asked(sets: Bools) -> Any:
    return matrix("age", [dict.fromkeys(np.flatnonzero(chosen).tolist(), 1) for chosen in sets])


def _ages() -> NDArray[np.int64]:
    """Rows around a typical age."""
    return np.clip(np.rint(np.random.default_rng(13).normal(25, 8, _ROWS)), 0, _CELLS - 1).astype(np.int64)


def _points() -> Points:
    return Points.from_rows((_ages() + _UNIVERSE.axes[0].before)[:, None], axes=_UNIVERSE.axes)


def _truth(sets: Bools) -> NDArray[np.int64]:
    return np.asarray(sets @ np.bincount(_ages(), minlength=_CELLS))


def _histogram_note(sets: Bools) -> str:
    """What a noisy count of every cell would do, exactly: so few cells are its best case."""
    error = sqrt(float(sets.sum(axis=1).mean())) * count_bound(_EPSILON)
    return f"a noisy histogram of the 64 cells {error:.3g}"


def _cells_bound(sets: Bools) -> float:
    """Answers tell the counts of the first cells apart, and each of these has an error of its own."""
    gram = sets.T.astype(float) @ sets
    least = [np.linalg.eigvalsh(gram[:cells, :cells])[0] for cells in range(1, _CELLS + 1)]
    told = max(cells * float(eigenvalue) for cells, eigenvalue in enumerate(least, start=1))
    return sqrt(told / len(sets)) * two_points(range(1, 50), _EPSILON)
