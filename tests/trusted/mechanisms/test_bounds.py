"""Bounds before data: each holds at its rate on releases of the shipped classes, and is near their errors.

The data are those that the theorems are about: sets for partitions, as dense as they can be.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

import partita as pt
from partita.domain.axis import Axis
from partita.errors import InvalidParameter
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.boxes import GridCounts
from partita.trusted.mechanisms.catalogue import (
    axis_mechanisms,
    box_mechanisms,
    mean_mechanisms,
    quantile_mechanisms,
    query_mechanisms,
    total_mechanisms,
)
from partita.trusted.mechanisms.flat import HistogramCounts, Laplace, Thresholds
from partita.trusted.mechanisms.gaussian_counts import GaussianCounts, GaussianGrid
from partita.trusted.mechanisms.paper_boxes import PaperRectangles
from partita.trusted.mechanisms.partition import Partition
from partita.trusted.mechanisms.tree import PaperIntervals, Tree
from partita.trusted.mechanisms.weights import MultiplicativeWeights
from partita.trusted.mechanisms.workload import LinearWorkload, ProjectedLaplace
from partita.trusted.noise import SYSTEM
from partita.trusted.secret import Histogram, Points

pytestmark = pytest.mark.filterwarnings("ignore::partita.PrivacyWarning")

BETA: Final = 0.1
SIZE: Final = 200
CELLS: Final = [cell for cell in range(SIZE) if cell % 7]
"""A set: no two rows share a cell."""

COUNTS: Final = Histogram.from_cells(CELLS, size=SIZE)
LOWS, HIGHS = (ends.astype(np.uint64) for ends in np.triu_indices(SIZE))
BEFORE: Final = np.concatenate([[0], np.cumsum(np.isin(np.arange(SIZE), CELLS))])
TRUTHS: Final = BEFORE[HIGHS.astype(int) + 1] - BEFORE[LOWS.astype(int)]

AXES: Final = (Axis(size=12), Axis(size=9, after=1))
PLACES: Final = [(row % 12, row % 10) for row in range(500)]
UNIVERSE: Final = pt.Universe(["age"], [pt.Integer(0, 14)])
PREFIXES: Final = pt.ranges("age")
SIDE: Final = 64
SET_AXES: Final = (Axis(size=SIDE), Axis(size=SIDE))
SET_PLACES: Final = np.array([(at, at * 27 % SIDE) for at in range(SIDE) if at % 5])
SET: Final = Points.from_rows(SET_PLACES, axes=SET_AXES)
"""No two rows share a position along an axis."""

ROWS: Final = 60
POINTS: Final = Points.from_rows([(4 + row % 15,) for row in range(ROWS)], axes=UNIVERSE.axes)


class Case(NamedTuple):
    """A mechanism, how far its release is off, and the public number of rows."""

    mechanism: Any
    miss: Callable[[Any, Any], float]
    rows: int
    far: int = 8
    """By how much the bound may exceed the largest of 200 errors: theorems for all boxes at once are far."""


def _miss_ranges(mechanism: Any, noise: Any) -> float:
    release = mechanism.release(COUNTS, noise=noise)
    return float(np.abs(release.counts(LOWS, HIGHS) - TRUTHS).max())


def _heaviest(mechanism: Any, noise: Any) -> float:
    cut = mechanism.cut(COUNTS, noise=noise)
    return float(COUNTS.weigh(cut).max())


def _miss_boxes(mechanism: Any, noise: Any) -> float:
    points = Points.from_rows(PLACES, axes=AXES)
    table, noisy = points.spread(), mechanism.release(points, noise=noise)
    rows = np.array(
        [(a, c, b, d) for a in range(12) for b in range(a, 12) for c in range(10) for d in range(c, 10)]
    )
    sums = np.zeros((13, 11), int)
    sums[1:, 1:] = table.cumsum(axis=0).cumsum(axis=1)
    a, c, b, d = rows.T
    truths = sums[b + 1, d + 1] - sums[a, d + 1] - sums[b + 1, c] + sums[a, c]
    lows, highs = rows[:, :2].astype(np.uint64), rows[:, 2:].astype(np.uint64)
    return float(np.abs(noisy.counts(lows, highs) - truths).max())


def _miss_set_boxes(mechanism: Any, noise: Any) -> float:
    release, edges = mechanism.release(SET, noise=noise), np.arange(0, SIDE, 4)
    grid = np.stack(np.meshgrid(edges, edges, edges, edges), axis=-1).reshape(-1, 2, 2)
    lows, highs = grid.min(axis=1), grid.max(axis=1)
    inside = ((lows[:, None] <= SET_PLACES) & (highs[:, None] >= SET_PLACES)).all(axis=2).sum(axis=1)
    return float(np.abs(release.counts(lows.astype(np.uint64), highs.astype(np.uint64)) - inside).max())


def _truth(mechanism: Any) -> Any:
    return np.asarray(mechanism.truth(POINTS)) / mechanism.operator.granularity


def _miss_answers(mechanism: Any, noise: Any) -> float:
    return float(np.abs(mechanism.release(POINTS, noise=noise).values - _truth(mechanism)).max())


def _miss_together(mechanism: Any, noise: Any) -> float:
    release = mechanism.release(POINTS, noise=noise)
    assert release.projection is not None
    return float(np.sqrt(np.mean((release.values - _truth(mechanism)) ** 2)))


_FACTS: Final[dict[str, Any]] = {"size": SIZE, "epsilon": 2}
_ASKED: Final[dict[str, Any]] = {"queries": PREFIXES, "universe": UNIVERSE, "epsilon": 2}
_PRINTED: Final[dict[str, Any]] = {**_ASKED, "neighbors": "change-one", "variant": "printed"}
_SET: Final[dict[str, Any]] = {"axes": SET_AXES, "epsilon": 40}
_CUT: Final[dict[str, Any]] = {**_FACTS, "beta": "1/10"}
CASES: Final = {
    "histogram": Case(HistogramCounts(**_FACTS), _miss_ranges, len(CELLS)),
    "gaussian-histogram": Case(GaussianCounts(size=SIZE, rho=2), _miss_ranges, len(CELLS)),
    "laplace": Case(Laplace(**_FACTS), _miss_ranges, len(CELLS)),
    "thresholds": Case(Thresholds(**_FACTS), _miss_ranges, len(CELLS)),
    "tree": Case(Tree(**_FACTS), _miss_ranges, len(CELLS)),
    "tree of 4": Case(
        Tree(**_FACTS, branching=4, root=False, weights=(1, 2, 3, 4)), _miss_ranges, len(CELLS)
    ),
    "partition": Case(Partition(**_CUT), _heaviest, len(CELLS)),
    "partition with a low threshold": Case(Partition(**_CUT, threshold=2), _heaviest, len(CELLS)),
    "partition of the paper": Case(
        Partition(**_CUT, law="laplace", threshold="paper"), _heaviest, len(CELLS)
    ),
    "intervals of the paper": Case(PaperIntervals(size=SIZE, epsilon=5), _miss_ranges, len(CELLS)),
    "grid": Case(GridCounts(axes=AXES, epsilon="1/2"), _miss_boxes, len(PLACES)),
    "gaussian-grid": Case(GaussianGrid(axes=AXES, rho="1/8"), _miss_boxes, len(PLACES)),
    "theorem 3.3": Case(PaperRectangles(**_SET, pruned=False), _miss_set_boxes, len(SET_PLACES), far=40),
    "remark 3.4": Case(PaperRectangles(**_SET), _miss_set_boxes, len(SET_PLACES), far=40),
    "trees over raw axes": Case(
        PaperRectangles(**_SET, pruned=False, cuts="cells"), _miss_set_boxes, len(SET_PLACES), far=40
    ),
    "printed weights": Case(MultiplicativeWeights(**_PRINTED), _miss_answers, ROWS, far=20),
    "linear": Case(LinearWorkload(**_ASKED), _miss_answers, ROWS),
    "projection": Case(ProjectedLaplace(**_ASKED), _miss_together, ROWS),
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def _failures(case: Case, bound: float, noises: list[Any]) -> int:
    return sum(case.miss(case.mechanism, noise) > bound for noise in noises)


@cases
def test_bound_holds_on_fixed_tapes(case: Case) -> None:
    """Of 12 releases at most 5 miss by more than the bound that one in ten may exceed."""
    bound = case.mechanism.bound(BETA, rows=case.rows)

    assert _failures(case, bound, [tape_noise(EndlessTape(seed)) for seed in range(12)]) <= 5


@pytest.mark.statistics
@cases
def test_bound_holds_at_its_rate_and_is_near_the_errors(case: Case) -> None:
    """More than 38 of 200 releases beyond it have a chance below 1e-4, and it is no idle one."""
    bound = case.mechanism.bound(BETA, rows=case.rows)
    misses = np.array([case.miss(case.mechanism, SYSTEM) for _ in range(200)])

    assert int((misses > bound).sum()) <= 38
    assert misses.max() > bound / case.far


@pytest.mark.parametrize("name", ["laplace", "thresholds", "linear"])
def test_bound_for_half_the_noise_is_caught(name: str) -> None:
    """The bound of twice the epsilon is exceeded by most of the same releases."""
    case = CASES[name]
    facts = _ASKED if name == "linear" else _FACTS
    other = type(case.mechanism)(**{**facts, "epsilon": 4})

    noises = [tape_noise(EndlessTape(seed)) for seed in range(12)]
    assert _failures(case, other.bound(BETA, rows=case.rows), noises) >= 7


@cases
def test_bound_grows_as_beta_and_epsilon_fall(case: Case) -> None:
    """A rarer failure costs more, and so does less epsilon."""
    mechanism, rows = case.mechanism, case.rows
    bounds = [mechanism.bound(beta, rows=rows) for beta in ("1/2", "0.05", "1e-9")]

    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1]
    assert all(isinstance(bound, float) and np.isfinite(bound) for bound in bounds)


def test_bounds_of_the_paper_follow_its_theorems() -> None:
    """Segments weigh less than Theorem 2.1 says, and ranges err by less than n beyond some n."""
    for size, rows in ((2**16, 1_000), (2**32, 10**5), (2**64, 10**6)):
        cut = Partition(size=size, epsilon=1, law="laplace", threshold="paper")
        theorem = 5 * (np.log(float(size)) + np.log(1 / 0.05))
        assert cut.bound("0.05", rows=rows) <= theorem

    intervals = PaperIntervals(size=2**32, epsilon=1)
    assert intervals.bound(rows=10**5) < 10**5 / 30
    assert intervals.bound(rows=10**8) < 4 * intervals.bound(rows=10**4)


def test_empty_segments_are_counted_where_the_threshold_lets_them_through() -> None:
    """With a threshold that leaves thousands of them, the bound has room for more segments than rows."""
    usual, low = Partition(size=2**20, epsilon=1), Partition(size=2**20, epsilon=1, threshold=5)

    assert usual.most_segments(10, Fraction(1, 20)) == 11
    expected = float(low.empty_segments)
    assert low.most_segments(10, Fraction(1, 20)) == 11 + int(20 * expected) > 10_000
    assert Partition(size=7, epsilon=1).most_segments(100, Fraction(1, 20)) == 7


@pytest.mark.parametrize(
    "name", ["partition", "intervals of the paper", "theorem 3.3", "printed weights", "projection"]
)
def test_bound_that_grows_with_rows_asks_for_them(name: str) -> None:
    """A typed error names the rows where they are missing, and where they are none."""
    mechanism = CASES[name].mechanism

    with pytest.raises(InvalidParameter, match="rows must be given: this bound grows with them"):
        mechanism.bound()
    with pytest.raises(InvalidParameter, match="rows must be at least 0"):
        mechanism.bound(rows=-1)
    with pytest.raises(InvalidParameter, match="beta must lie between 0 and 1"):
        mechanism.bound(0, rows=1)


def test_every_bound_says_what_it_is_about() -> None:
    """A mechanism with a bound is tested here and has the words that a plan shows."""
    found = (axis_mechanisms, box_mechanisms, query_mechanisms, total_mechanisms, mean_mechanisms)
    known = [kind for each in (*found, quantile_mechanisms) for kind in each().values()]
    bounded = {kind for kind in known if hasattr(kind, "bound")}
    words = [case.mechanism.bound_of for case in CASES.values()]

    assert all(isinstance(each, str) and each for each in words)
    assert {kind for kind in known if hasattr(kind, "bound_of")} == bounded
    assert bounded - {type(case.mechanism) for case in CASES.values()} == set()


def test_plan_shows_each_bound_and_says_where_there_is_none() -> None:
    """As text, as a page and as JSON; a bound at another beta is another one."""
    schema = {"age": pt.Integer(0, 199), "code": pt.Integer(0, 2**40)}
    tree, none = (pt.plan({name: schema[name]}, epsilon=2, rows=500, mechanism=mechanism)
                  for name, mechanism in (("age", "tree"), ("code", "intervals")))  # fmt: skip
    expected = CASES["tree"].mechanism.bound(rows=500)

    assert tree.rows()[0]["bound"] == expected
    assert tree.rows()[0]["bound_of"] == "any range between two values"
    assert f"{expected:.0f}" in str(tree)
    assert "of any range between two values." in " ".join(str(tree).split())
    assert none.rows()[0]["bound"] is None
    assert none.to_json()["expected"][0]["bound_of"] is None
    assert "No theorem bounds code before there are data" in " ".join(str(none).split())
    assert " none " in str(none)
    assert pt.plan({"age": schema["age"]}, epsilon=2, mechanism="tree", beta="1/1000").rows()[0][
        "bound"
    ] == CASES["tree"].mechanism.bound("1/1000")
    assert "is proved before any data" in tree._repr_html_()


def test_plan_shows_theorem_3_3_and_not_where_it_says_nothing() -> None:
    """Pruned and not, and none for a number of rows over which not all nodes fit."""
    schema = {"a": pt.Integer(0, 2**32 - 1), "b": pt.Integer(0, 2**32 - 1)}
    rows = [100, 10**8]
    options = {"pruned": False}
    plan = pt.plan(schema, epsilon=2, rows=rows, by=["a", "b"], mechanism="rectangles-paper", options=options)
    few, many = plan.rows()
    (view,) = plan.request.published

    assert few["bound"] == view.choice.mechanism.bound(rows=100)
    assert few["bound_of"] == "any box, if no two rows share a position along an axis"
    assert many["bound"] is None


def test_plan_asks_the_printed_weights_alone() -> None:
    """The theorem is about their steps: for the default a plan says that there is none."""
    common: dict[str, Any] = {
        "queries": PREFIXES, "epsilon": 2, "rows": ROWS, "neighbors": "change-one", "mechanism": "weights",
    }  # fmt: skip
    schema = {"age": pt.Integer(0, 14)}
    printed = pt.plan(schema, options={"variant": "printed"}, **common)
    fitted = pt.plan(schema, **common)

    assert printed.rows()[0]["bound"] == CASES["printed weights"].mechanism.bound(rows=ROWS)
    assert printed.rows()[0]["bound_of"] == "any answer"
    assert fitted.rows()[0]["bound"] is None
    assert "No theorem bounds" in " ".join(str(fitted).split())
