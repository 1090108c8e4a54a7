"""The log tree: cells that make up the line, exact counts, sums near the truth, epsilon by the row."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.domain import Integer, Real
from partita.domain.axis import Axis
from partita.public.boxes.base import BoxTerm
from partita.public.sums.base import ValueLine
from partita.public.sums.log_tree import LogCells, LogTreeRelease, LogTrees
from partita.testing import EndlessTape, ZeroNoise, coupled, tape_noise
from partita.trusted.mechanisms.sums import LogTree
from partita.trusted.secret import Points

LINES = [
    Integer(0, 0),
    Integer(0, 1),
    Integer(-5, 0),
    Integer(-5, 5),
    Integer(10, 3000),
    Integer(-(2**62), 2**62 - 1),
]


@pytest.mark.parametrize("domain", LINES, ids=str)
def test_cells_make_up_the_line(domain: Integer) -> None:
    """Cells follow each other over all positions; special cells and offsets below 256 are by themselves."""
    cells = LogCells(ValueLine.of(domain))
    ends = cells.ends.astype(object)

    assert (ends[0], ends[-1]) == (0, domain.size + 3)
    assert bool((np.diff(ends) > 0).all())
    alone = [0, domain.size + 1, domain.size + 2, domain.size + 3]
    near = range(max(0, cells.line.down - 255), min(domain.size, cells.line.down + 256))
    places = np.array([*alone, *(cell + 1 for cell in near)], np.uint64)
    found = cells.of(places)
    assert cells.starts[found].tolist() == cells.ends[found].tolist() == places.tolist()


def test_cells_are_narrow_for_their_values() -> None:
    """No cell is wider than 1/128 of its smallest value, so that a middle misses by at most 1/256."""
    cells = LogCells(ValueLine.of(Integer(0, 2**40)))
    ordinary = slice(257, cells.size - 3)
    widths = (cells.ends - cells.starts)[ordinary].astype(np.float64) + 1.0
    assert float((widths / (cells.starts[ordinary].astype(np.float64) - 1.0)).max()) <= 1 / 128


@pytest.mark.parametrize("domain", LINES, ids=str)
def test_octaves_end_with_powers_of_two(domain: Integer) -> None:
    """A cell lies in one octave as a whole, however far out: both of its ends have as many bits."""
    cells = LogCells(ValueLine.of(domain))
    far = np.abs(cells.line.offsets(cells.starts)), np.abs(cells.line.offsets(cells.ends))
    bits = [[offset.bit_length() for offset in each.tolist()] for each in far]
    assert bits[0] == bits[1] == cells.octaves.tolist()


@pytest.mark.parametrize("domain", [Integer(0, 250), Integer(-100, 200), Real(0, 60, step="0.25")], ids=str)
def test_small_values_are_exact_without_noise(domain: Any) -> None:
    """Noise off, with cells for single values, every count, sum, mean and variance is that of the rows."""
    cells = np.random.default_rng(2).integers(0, domain.size, 3000)
    release = LogTree(value=domain, epsilon=1000).release(
        Points.from_rows((cells + 1)[:, None], axes=[Axis.of(domain)]), noise=ZeroNoise()
    )
    values = np.array([float(value) for value in domain.decode(cells.tolist())])
    for low, high in ((0, domain.size - 1), (20, 120)):
        chosen = values[(cells >= low) & (cells <= high)]
        terms = [BoxTerm((low + 1,), (high + 1,))]
        assert release.count(terms).value == pytest.approx(chosen.size)
        assert release.sum(terms).value == pytest.approx(chosen.sum())
        assert release.mean(terms).value == pytest.approx(chosen.mean())
        assert release.variance(terms).value == pytest.approx(chosen.var())
        assert release.sum(terms).covers.everything


def test_large_values_are_near_without_noise() -> None:
    """Noise off, a sum over whole and cut cells misses by at most a part in 128, and bounds hold it."""
    values = np.minimum(np.random.default_rng(2).lognormal(12, 2, 20_000), 2**40).astype(np.int64)
    domain = Integer(0, 2**40)
    release = LogTree(value=domain, epsilon=1000).release(
        Points.from_rows((values + 1)[:, None], axes=[Axis.of(domain)]), noise=ZeroNoise()
    )
    for low, high in ((0, 2**40), (10_000, 1_000_000), (12_345, 23_456)):
        truth = float(values[(values >= low) & (values <= high)].sum())
        found = release.sum([BoxTerm((low + 1,), (high + 1,))])
        assert found.value == pytest.approx(truth, rel=1 / 128)
        assert found.worst()[0] <= truth <= found.worst()[1]


@pytest.mark.parametrize(("neighbors", "rows"), [("add-remove", 1), ("change-one", 2)])
def test_a_row_costs_exactly_epsilon(neighbors: Any, rows: int) -> None:
    """One row in one node of each level: neighbours lose epsilon, with special cells, too."""
    domain = Integer(-3, 900)
    mechanism = LogTree(value=domain, epsilon=1, neighbors=neighbors)

    def run(places: Any, noise: Any) -> Any:
        points = Points.from_rows(np.array(places)[:, None], axes=[Axis.of(domain)])
        return mechanism.release(points, noise=noise).noisy.tolist()

    for place in (0, 1, 4, 700, 905, 906, 907):
        loss = coupled(run, [5, 6], [5, 6, place], tape_noise(EndlessTape(place)))
        assert loss == Fraction(1, rows)


def test_the_release_says_what_it_spent() -> None:
    """What a row costs, by the scale of the release, is epsilon."""
    domain = Integer(0, 2**32)
    points = Points.from_rows([[4]], axes=[Axis.of(domain)])
    release = LogTree(value=domain, epsilon="1/7").release(points)
    assert release.spent == Fraction(1, 7)


SALARY = Integer(0, 10**6)


def _salaries(tapes: int) -> list[LogTreeRelease]:
    """Releases of 3,000 values below 2^16."""
    values = np.random.default_rng(4).integers(20_000, 2**16, 3000)
    points = Points.from_rows((values + 1)[:, None], axes=[Axis.of(SALARY)])
    mechanism = LogTree(value=SALARY, epsilon=1)
    return [mechanism.release(points, noise=tape_noise(EndlessTape(seed))) for seed in range(tapes)]


def _reaches(releases: list[LogTreeRelease]) -> set[float]:
    """How far the means of all values from 50,000 on go."""
    return {release.mean([BoxTerm((50_001,), (SALARY.size,))]).covers.high for release in releases}


def test_octaves_without_rows_are_not_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    """However their noise falls; were every octave taken to hold rows, some tapes would reach beyond."""
    assert _reaches(_salaries(30)) == {2.0**16 - 1}
    monkeypatch.setattr(LogTrees, "clear", (20, 0))
    assert max(_reaches(_salaries(30))) > 2**16


def test_a_mean_that_is_not_determinable_lies_in_the_range_that_was_asked_for() -> None:
    """Where there may be no rows, interval and guaranteed bounds are the asked range, and no more."""
    [release] = _salaries(1)
    found = release.mean([BoxTerm((900_001,), (950_001,))])
    assert not found.determinable
    assert found.interval() == found.worst() == (900_000, 950_000)
    assert release.std([BoxTerm((900_001,), (950_001,))]).interval() == (0.0, 25_000.0)
    assert release.mean([BoxTerm((10**6 + 3,), (10**6 + 4,))]).interval() == (0, 10**6)


def test_special_cells_are_counted_by_name() -> None:
    """Noise off, rows below, above, invalid and null are those of the data."""
    places = [0] * 5 + [3] * 70 + [SALARY.size + 1] * 6 + [SALARY.size + 2] * 7 + [SALARY.size + 3] * 8
    release = LogTree(value=SALARY, epsilon=1).release(
        Points.from_rows(np.array(places)[:, None], axes=[Axis.of(SALARY)]), noise=ZeroNoise()
    )
    found = {name: each.value for name, each in release.specials.items()}
    assert found == pytest.approx({"below": 5, "above": 6, "invalid": 7, "null": 8})
