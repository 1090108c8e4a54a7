"""Counts that are kept anywhere: folds, walks, gathering, and what is refused."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.domain import Integer
from partita.domain.axis import Axis
from partita.errors import InvalidData, InvalidParameter
from partita.public.axis.tree import Cut
from partita.public.queries.language import between
from partita.public.queries.queries import Universe
from partita.testing import ForbiddenNoise, Scattered, ScatteredPoints, ZeroNoise
from partita.trusted.mechanisms.base import PartNoise, noise_elsewhere
from partita.trusted.mechanisms.online_weights import OnlineTerms, open_session
from partita.trusted.mechanisms.partition import Partition
from partita.trusted.noise.system import KERNEL, SYSTEM
from partita.trusted.secret import Histogram, Points

HISTOGRAM = Histogram.dense((3, 0, 0, 5, 1, 0, 2, 9, 4))
AXES = [Axis(size=4, before=1, after=2), Axis(size=3)]
POINTS = Points.from_rows(
    [[0, 0], [1, 2], [4, 1], [5, 0], [6, 2], [1, 0]], axes=AXES, counts=[1, 2, 3, 4, 5, 6]
)


@pytest.mark.parametrize("blocks", [1, 2, 5, 20])
def test_sums_do_not_depend_on_blocks(blocks: int) -> None:
    """Totals, counts of all cells and weights of segments are those of the histogram."""
    scattered, cut = Scattered(HISTOGRAM, blocks=blocks), Cut(edges=np.array([4, 5, 8], np.uint64), start=2)

    assert scattered.total == HISTOGRAM.total == 24
    assert scattered.spread().tolist() == HISTOGRAM.spread().tolist() == [3, 0, 0, 5, 1, 0, 2, 9, 4]
    assert scattered.weigh(cut).tolist() == HISTOGRAM.weigh(cut).tolist() == [6, 0, 15]


def test_counts_of_one_axis_leave_special_cells_out() -> None:
    """`alone` keeps special cells, `along` does not and counts from the first ordinary cell."""
    for points in (POINTS, ScatteredPoints(POINTS)):
        assert points.alone(0).spread().tolist() == [1, 8, 0, 0, 3, 4, 5]
        assert points.along(0).spread().tolist() == [8, 0, 0, 3]
        assert points.along(1).spread().tolist() == [11, 3, 7]
        assert points.along(1).size == 3


def _shifted(by: int, state: Any) -> Any:
    cells, counts = state
    return cells + np.uint64(by), counts


def _pair(cells: Any, counts: Any) -> Any:
    return cells, counts


def _weighted(state: Any) -> Any:
    cells, counts = state
    return np.array([(cells.astype(np.int64) * counts).sum()])


def test_a_walk_is_the_same_remembered_and_replayed() -> None:
    """Steps are taken in order, and folds between them see the state so far."""
    seen = []
    for counts in (HISTOGRAM, Scattered(HISTOGRAM)):
        walk = counts.descent(_pair)
        first = int(walk.folded(_weighted)[0])
        walk.go(partial(_shifted, 2))
        walk.go(partial(_shifted, 3))
        seen.append((first, int(walk.folded(_weighted)[0])))

    assert seen[0] == seen[1]
    assert seen[0][1] == seen[0][0] + 5 * HISTOGRAM.total


def test_few_points_can_be_gathered() -> None:
    """All points, here, where there is room for every cell."""
    gathered = ScatteredPoints(POINTS).gathered()

    assert gathered.places.tolist() == POINTS.places.tolist()
    assert gathered.counts.tolist() == POINTS.counts.tolist()
    assert POINTS.gathered() is POINTS


def test_many_points_are_not_gathered() -> None:
    """Where there is no room for every cell the error says so, and points that are here stay."""
    points = Points.from_rows([[3], [2**40]], axes=[Axis(size=2**41)])

    assert points.gathered() is points
    with pytest.raises(InvalidParameter, match="at most 1048576 cells to be gathered"):
        ScatteredPoints(points).gathered()


def _terms(domain: Integer) -> OnlineTerms:
    return OnlineTerms.of(universe=Universe(["age"], [domain]), epsilon=1, updates=2, threshold=50)


def test_sessions_gather_points_before_anything_is_written(tmp_path: Path) -> None:
    """A session answers questions about gathered points; too many are refused before there is a file."""
    few, many = _terms(Integer(0, 9)), _terms(Integer(0, 2**21))
    axes, wide = few.universe.axes, many.universe.axes

    with open_session(tmp_path / "few", few, ScatteredPoints(Points.from_rows([[3]], axes=axes))) as session:
        assert session.ask(between("age", 2, 4)) is not None
    with pytest.raises(InvalidParameter, match="gathered"):
        open_session(tmp_path / "many", many, ScatteredPoints(Points.from_rows([[3]], axes=wide)))
    assert not (tmp_path / "many").exists()


def test_shards_are_cut_and_joined() -> None:
    """The cut of counts in two shards is the joined cut of both ranges."""
    partition = Partition(size=9, epsilon=1, threshold=3)
    halves = [range(4), range(4, 9)]

    cut = partition.cut(Scattered(HISTOGRAM, shards=halves), noise=ZeroNoise())

    assert cut == Cut.join([partition.cut(HISTOGRAM, within=half, noise=ZeroNoise()) for half in halves])


def test_a_range_is_cut_where_counts_are_here() -> None:
    """Counts that are elsewhere are cut as a whole; that is checked before anything is drawn."""
    with pytest.raises(InvalidData, match="must be a Histogram to be cut within a range"):
        Partition(size=9, epsilon=1).cut(Scattered(HISTOGRAM), within=range(4), noise=ForbiddenNoise())


@pytest.mark.parametrize("noise", [SYSTEM, KERNEL, PartNoise(SYSTEM.session()), PartNoise(PartNoise(SYSTEM))])
def test_other_machines_draw_the_noise_of_their_system(noise: Any) -> None:
    """Where the noise here protects people, the noise there does."""
    assert noise_elsewhere(noise) is SYSTEM


def test_other_machines_draw_no_other_noise() -> None:
    """Noise that protects nobody is not replaced in silence by noise that would."""
    with pytest.raises(InvalidParameter, match="the system's where other machines draw it, got 'ZeroNoise'"):
        noise_elsewhere(PartNoise(ZeroNoise()))


def test_counts_print_public_facts_only() -> None:
    """Nothing of the counts is shown."""
    assert repr(Scattered(HISTOGRAM)) == "Scattered(size=9, contributions=1, secret)"
    assert repr(ScatteredPoints(POINTS)) == "ScatteredPoints(2 axes, contributions=1, secret)"
