"""What neighbours can tell from numerical queries by multiplicative weights: whole runs, and planted bugs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from partita.domain import Integer
from partita.guarantee import Neighbors
from partita.public.queries.language import ranges, value
from partita.public.queries.queries import Universe
from partita.public.sums.knots import clear_level, near_level
from partita.public.workload import decomposition as hat
from partita.public.workload.decomposition import (
    Binary,
    GradedQueries,
    Piece,
    PlainSpace,
    choose_shared_top,
    find_octaves,
)
from partita.public.workload.release import Change
from partita.testing import EndlessTape, ZeroNoise, tape_noise
from partita.trusted.mechanisms import numerical
from partita.trusted.mechanisms.numerical import (
    GlobalTruncation,
    InstanceTruncation,
    Normalization,
    WeightsMechanism,
    _Peaks,
)
from partita.trusted.mechanisms.weights import plan_measurements, weigh
from partita.trusted.noise import Noise
from partita.trusted.secret import Points
from tests.seams import SETTLING

UNIVERSE = Universe(["age", "income"], [Integer(0, 1), Integer(0, 7)])
QUERIES = ranges("age") * value("income")
WAYS: list[type[WeightsMechanism]] = [Normalization, GlobalTruncation, InstanceTruncation]
Row = tuple[int, int]
Rows = tuple[Row, ...]


@pytest.fixture(autouse=True)
def _short_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guesses follow from released numbers: with fewer steps they are worse, and cost the same."""
    monkeypatch.setattr(SETTLING, 5)


class Unpaid(AssertionError):
    """The two runs asked for different noise, or published different numbers."""


@dataclass
class _First(ZeroNoise):
    """Draws noise from a tape and remembers every look: what was secret, its scale, what came out."""

    noise: Noise
    looks: list[tuple[Any, Fraction, Any]] = field(default_factory=list)

    def session(self) -> Any:
        return self

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        return self._look(x, scale, self.noise.add(x, scale))

    def exponential(self, scores: ArrayLike, scale: Fraction) -> int:
        return int(self._look(scores, scale, self.noise.exponential(scores, scale)))

    def _look(self, secret: ArrayLike, scale: Fraction, out: Any) -> Any:
        self.looks.append((np.array(secret, dtype=object).reshape(-1), scale, out))
        return out


@dataclass
class _Second(ZeroNoise):
    """Lets the same things come out on a neighbour, and adds up what that costs."""

    looks: list[tuple[Any, Fraction, Any]]
    loss: Fraction = Fraction(0)

    def session(self) -> Any:
        return self

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        apart, out = self._look(x, scale)
        self.loss += int(np.abs(apart).sum()) / scale
        return out

    def exponential(self, scores: ArrayLike, scale: Fraction) -> int:
        """exp(score / scale) and its sum over all candidates each change by the largest change of a score."""
        apart, out = self._look(scores, scale)
        self.loss += 2 * int(np.abs(apart).max()) / scale
        return int(out)

    def _look(self, secret: ArrayLike, scale: Fraction) -> Any:
        if not self.looks:
            raise Unpaid
        before, same, out = self.looks.pop(0)
        now = np.array(secret, dtype=object).reshape(-1)
        if same != scale or now.shape != before.shape:
            raise Unpaid
        return now - before, out


def _release(mechanism: WeightsMechanism, rows: Rows, noise: Noise) -> Any:
    before = np.array([axis.before for axis in UNIVERSE.axes])
    places = np.array(rows, np.int64).reshape(-1, 2) + before
    crowd = np.repeat(np.array([[0, 2], [0, 1], [1, 1], [1, 2]]) + before, 400, axis=0)
    data = Points.from_rows(
        np.concatenate([places, crowd]), axes=UNIVERSE.axes, contributions=mechanism.contributions
    )
    return mechanism.release(data, noise=noise).parts().digest


def _loss(mechanism: WeightsMechanism, one: Rows, other: Rows, seed: int) -> Fraction | float:
    first = _First(tape_noise(EndlessTape(seed), path="numpy").session())
    output = _release(mechanism, one, first)
    second = _Second(first.looks)
    try:
        same = _release(mechanism, other, second) == output and not second.looks
    except Unpaid:
        return float("inf")
    return second.loss if same else float("inf")


CELLS: list[Row] = [(0, 7), (1, 6), (0, 0), (1, 3)]


def _pairs(neighbors: Neighbors, contributions: int) -> Iterator[tuple[Rows, Rows]]:
    """Everybody who may be there, against nobody or against everybody else."""
    people = list(combinations_with_replacement(CELLS, contributions))
    if neighbors == "add-remove":
        yield from (((), person) for person in people)
    else:
        yield from ((one, other) for one in people[::2] for other in people if one != other)


def _mechanism(way: Any, **options: Any) -> WeightsMechanism:
    made: WeightsMechanism = way(
        **{"queries": QUERIES, "universe": UNIVERSE, "epsilon": 1, "rounds": 1, **options}
    )
    return made


def _worst(mechanism: WeightsMechanism) -> Fraction | float:
    pairs = list(_pairs(mechanism.neighbors, mechanism.contributions))[:3]
    return max(_loss(mechanism, one, other, seed) for seed, (one, other) in enumerate(pairs))


@pytest.mark.parametrize("decomposition", ["none", "hat", "binary"])
@pytest.mark.parametrize("way", WAYS)
def test_whole_runs_lose_at_most_epsilon(way: Any, decomposition: Any) -> None:
    """Over all rows that come or go, all looks together cost no more than epsilon; the noise is not idle."""
    worst = _worst(_mechanism(way, decomposition=decomposition))

    assert Fraction(1, 8) < worst <= 1


@pytest.mark.parametrize(
    ("neighbors", "contributions"), [("change-one", 1), ("change-one", 2), ("add-remove", 3)]
)
@pytest.mark.parametrize("decomposition", ["hat", "binary"])
def test_all_neighbors_are_paid_for(neighbors: Neighbors, contributions: int, decomposition: Any) -> None:
    """Rows that change, and people with several rows."""
    options = {"neighbors": neighbors, "contributions": contributions, "unit": "person"}

    assert _worst(_mechanism(GlobalTruncation, decomposition=decomposition, **options)) <= 1


@pytest.mark.parametrize("decomposition", ["none", "binary"])
def test_a_row_of_many_digits_costs_all_of_the_total(decomposition: Any) -> None:
    """What a row costs in the noisy total is its share: three tuples of at most three in binary."""
    mechanism = _mechanism(Normalization, decomposition=decomposition)
    first = _First(tape_noise(EndlessTape(1)).session())
    _release(mechanism, (), first)
    total, scale, _ = first.looks[0]
    more = _First(tape_noise(EndlessTape(1)).session())
    _release(mechanism, ((0, 7),), more)

    assert int(more.looks[0][0][0] - total[0]) / scale == mechanism.budget.total


def _crowd_loss(mechanism: WeightsMechanism, one: Any, other: Any, seed: object) -> Fraction | float:
    """What neighbours cost that have so many rows in each cell of the universe."""

    def run(counts: Any, noise: Any) -> Any:
        return mechanism.release(_cells(counts), noise=noise).parts().digest

    first = _First(tape_noise(EndlessTape(seed), path="numpy").session())
    output = run(one, first)
    second = _Second(first.looks)
    try:
        same = run(other, second) == output and not second.looks
    except Unpaid:
        return float("inf")
    return second.loss if same else float("inf")


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
@pytest.mark.parametrize("contributions", [1, 2, 3])
def test_the_noise_of_octaves_grows_with_what_neighbors_change(
    neighbors: Neighbors, contributions: int
) -> None:
    """Neighbours differ in the octaves by the same share of epsilon, whoever they are."""
    mechanism = _mechanism(GlobalTruncation, neighbors=neighbors, contributions=contributions)
    share = 1 / _first_look(_mechanism(GlobalTruncation), ())[1]

    losses = []
    for one, other in _pairs(neighbors, contributions):
        (here, scale), (there, same) = (_first_look(mechanism, rows) for rows in (one, other))
        assert scale == same
        losses.append(int(np.abs(here - there).sum()) / scale)

    assert max(losses) == share


def _first_look(mechanism: WeightsMechanism, rows: Rows) -> tuple[Any, Fraction]:
    """The numbers that get noise first, and its scale."""
    noise = _First(tape_noise(EndlessTape("octaves"), path="numpy").session())
    _release(mechanism, rows, noise)
    return noise.looks[0][:2]


@pytest.mark.parametrize("decomposition", ["none", "hat", "binary"])
@pytest.mark.parametrize("octave", ["clear", "near"])
def test_the_shared_threshold_follows_from_noisy_octaves(decomposition: Any, octave: str) -> None:
    """Where one row would move the threshold, neighbours with the same noisy octaves have the same one."""
    mechanism = _mechanism(GlobalTruncation, decomposition=decomposition, epsilon=4)
    scale, tops = mechanism.octave_scale, mechanism.space.tops  # type: ignore[attr-defined]
    below = next(v for v in range(8) if find_octaves(np.array([v]), tops)[0] == len(tops) - 2)
    crowd, border = {(0, 0): 400}, clear_level(scale, len(tops) - 1)
    if octave == "near":
        crowd, border = {**crowd, (0, below): 300}, near_level(scale)
    one, other = ({**crowd, (1, 7): rows} for rows in (border, border + 1))
    exact = [mechanism._octaves(_cells(counts)) for counts in (one, other)]  # type: ignore[attr-defined]

    assert choose_shared_top(exact[0], scale, tops) != choose_shared_top(exact[1], scale, tops)
    assert max(_crowd_loss(mechanism, one, other, seed) for seed in range(3)) <= 4


def _cells(counts: Any) -> Points:
    before = np.array([axis.before for axis in UNIVERSE.axes])
    return Points.from_rows(
        np.array([*counts]) + before, axes=UNIVERSE.axes, counts=np.array([*counts.values()])
    )


@pytest.mark.parametrize("way", WAYS)
def test_rounds_and_bins_follow_from_the_noisy_total(way: Any) -> None:
    """Where one row would change the plan, neighbours with the same noisy total have the same one."""
    mechanism = _mechanism(way, decomposition="none", rounds=None, epsilon=4)

    def plan(rows: int) -> Any:
        return plan_measurements(
            rows, mechanism.widest, mechanism.space.unit, mechanism.change, mechanism.budget
        )

    borders = [rows for rows in range(50, 400) if plan(rows) != plan(rows + 1)]
    assert borders
    for rows in (borders[0], borders[-1]):
        one, other = {(0, 2): 40, (1, 3): rows - 40}, {(0, 2): 40, (1, 3): rows - 39}
        assert _crowd_loss(mechanism, one, other, rows) <= 4


def _true_threshold(self: GlobalTruncation, points: Points) -> Any:
    """Octaves that all rows are said to be in, the one of the largest weight of all."""
    peaks = find_octaves(
        _Peaks(self.operator, self.decomposed).at(points.places, points.counts), self.space.tops
    )
    counts = np.zeros(len(self.space.tops), np.int64)
    counts[int(peaks.max())] = 10**6
    return counts


def _with_true_total(data: Any, **options: Any) -> Any:
    """GradedQueries by the true number of rows."""
    operator = options.pop("operator")
    many = GradedQueries(
        operator.inner, operator.tops * (int(np.asarray(data).sum()) % 7 + 1), operator.granularity
    )
    return weigh(data, operator=many, **options)


def _by_dimensions(data: Any, **options: Any) -> Any:
    change = options.pop("change")
    return weigh(data, change=Change(-(-change.mass // (2 * data.ndim)), change.sides), **options)


def _doubled(self: Any, values: Any) -> Any:
    """Both knots of a value get all of its mass."""
    first, mass = self._hats.laid(values)
    for side in range(2):
        yield Piece(first + side, np.full(len(mass), self.unit))


def _uncut(self: PlainSpace, top: int) -> GradedQueries:
    return self._grade(self.operator, np.full(len(self.operator), top, object))


BUGS: dict[str, tuple[Any, Any, str, Any]] = {
    "tuples of a row forgotten": ("binary", Binary, "most", property(lambda self: 1)),
    "sums graded by one tuple": ("binary", Binary, "largest_sum", lambda self, weights: max(weights)),
    "scales divided by dimensions": ("hat", numerical, "weigh", _by_dimensions),
    "the true maximum": ("hat", GlobalTruncation, "_octaves", _true_threshold),
    "the true number of rows": ("none", numerical, "weigh", _with_true_total),
    "all mass on both knots": ("hat", hat.Hat, "pieces", _doubled),
    "the unit of mass forgotten": ("hat", hat.Hat, "most", property(lambda self: 1)),
    "weights that are not cut": ("none", PlainSpace, "cut", _uncut),
    "no noise to speak of on octaves": ("none", GlobalTruncation, "octave_scale", Fraction(1, 2)),
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them costs more than epsilon between some neighbours, or lets data through unpaid."""
    decomposition, owner, name, wrong = BUGS[bug]
    monkeypatch.setattr(owner, name, wrong)
    mechanism = _mechanism(GlobalTruncation, decomposition=decomposition)

    assert _worst(mechanism) > 1


def test_a_joint_run_costs_what_one_run_costs() -> None:
    """Counts and cut queries share every look: as many looks as a run over the cut queries alone."""
    first = [_First(tape_noise(EndlessTape(2)).session()) for _ in range(2)]
    for noise, way in zip(first, (Normalization, InstanceTruncation), strict=True):
        _release(_mechanism(way), (), noise)

    assert [scale for _, scale, _ in first[0].looks] == [scale for _, scale, _ in first[1].looks]
