"""The spending tree: what it releases, what it answers, and the data that break mechanisms."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidParameter
from partita.public.axis.base import Term
from partita.public.axis.spending_tree import SpendingPlan, SpendingTreeRelease
from partita.public.axis.tree_solver import UNITS
from partita.testing import EndlessTape, ZeroNoise, check_mechanism, tape_noise
from partita.trusted.mechanisms.spending_tree import SpendingTree
from partita.trusted.secret import Histogram


def _released(counts: dict[int, int], size: int, seed: int = 0, **changes: Any) -> SpendingTreeRelease:
    data = Histogram.from_counts(sorted(counts), [counts[cell] for cell in sorted(counts)], size=size)
    tree = SpendingTree(size=size, **{"epsilon": 1, "total": sum(counts.values()), **changes})
    return tree.release(data, noise=tape_noise(EndlessTape(seed)))


def _cells(*cells: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return np.array(cells, np.uint64)


def test_it_passes_every_check_of_a_mechanism() -> None:
    """Frozen, documented, honest about its guarantee, and deaf to the data before it draws."""
    check_mechanism(SpendingTree)


def test_the_levels_of_a_plan_make_up_the_universe() -> None:
    """Bits are cut from the top, as many at a time as the branching has, and the last level has cells."""
    plan = SpendingTree(size=2**10 - 1, epsilon=1).plan

    assert [(step.children, step.width, step.left) for step in plan.steps] == [
        (16, 64, 3),
        (16, 4, 2),
        (4, 1, 1),
    ]


def test_shares_of_the_levels_add_up() -> None:
    """What R levels spend, each its share of what is left, grows by the ratio asked for."""
    plan = SpendingTree(size=2**12, epsilon=1, branching=8, growth="3/4").plan
    left, spent = 1.0, []
    for depth in (4, 3, 2, 1):
        spent.append(left * plan.shares[depth])
        left -= spent[-1]

    assert left == pytest.approx(0)
    assert [after / before for before, after in pairwise(spent)] == pytest.approx([0.75] * 3)


@pytest.mark.parametrize(
    ("gain", "depth"), [(-5, 1), (0, 1), (32, 1), (32.1, 2), (128, 2), (129, 3), (9e9, 3)]
)
def test_a_node_is_worth_as_many_levels_as_its_count_can_feed(gain: float, depth: int) -> None:
    """One level more for each factor of children^(1/2) in its count, up to the levels that are there."""
    plan: SpendingPlan = SpendingTree(size=2**12, epsilon=1, worth=8).plan

    assert plan._depth(plan.steps[0], np.array([gain])).tolist() == [depth]


def test_without_noise_every_cell_of_a_rich_column_is_exact() -> None:
    """Zero noise and many rows: the tree goes down to cells, and the looks are the counts."""
    counts = np.arange(256) % 7 * 1000 + 500
    release = SpendingTree(size=256, epsilon=1, total=int(counts.sum())).release(
        Histogram.dense(counts), noise=ZeroNoise()
    )

    assert release.shape.widths[release.shape.leaves].tolist() == [1.0] * 256
    first, last = release.shape.first.astype(int), release.shape.last.astype(int)
    before = np.concatenate([[0], np.cumsum(counts)])
    assert (release.looks.noisy == (before[last + 1] - before[first])[release.looks.nodes]).all()
    assert release.counts(_cells(0), _cells(255)) == pytest.approx([counts.sum()], rel=1e-3)


def test_only_the_public_total_begins_the_tree() -> None:
    """A total of zero spends everything on the root's children; a large one keeps some for theirs."""
    flat = _released({3: 1000}, 4096, total=0)
    deep = _released({3: 1000}, 4096)

    assert flat.shape.levels.tolist() == [1, 16]
    assert set(flat.looks.units.tolist()) == {UNITS}
    assert deep.shape.levels.size > 2


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100, 1000, 2**16 + 1, 2**63])
@pytest.mark.parametrize("rows", [0, 1, 100_000])
def test_any_universe_gives_sane_answers(size: int, rows: int) -> None:
    """Whatever the size, also with nobody or everybody in the last cell, the total is about right."""
    release = _released({size - 1: rows} if rows else {}, size)

    total = release.count(0, size - 1)

    assert abs(total.value - rows) < 200
    assert total.worst(0.01)[0] <= rows <= total.worst(0.01)[1]
    assert release.curve.ends[-1] == size - 1
    assert float(release.curve.counts.min()) >= 0
    assert np.isfinite(release.error(0.05))


def test_an_atom_in_a_quiet_place_is_found() -> None:
    """One cell with 30% of the rows is told apart from its neighbours, in a universe of 2^40 cells."""
    atom = 2**39 + 12345
    quiet = {int(cell): 1 for cell in np.linspace(0, 2**40 - 1, 7000).astype(np.int64)}
    release = _released({**quiet, atom: 3000}, 2**40)

    assert release.count(atom - 1, atom + 1).value == pytest.approx(3000, abs=150)
    assert release.count(atom - 2**20, atom - 2).value < 300


def test_dense_smooth_data_are_smoothed() -> None:
    """Where siblings look flat, the solved cells of a smooth column lie nearer than half of their noise."""
    data = Histogram.dense(np.full(4096, 25))
    release = SpendingTree(size=4096, epsilon="1/5", total=data.total).release(
        data, noise=tape_noise(EndlessTape(1))
    )
    leaves = release.shape.leaves
    truth = 25 * release.shape.widths[leaves]
    seen = release.looks.values[release.looks.last(release.shape.first.size)[leaves]]

    assert np.abs(release.curve.counts - truth).mean() < np.abs(seen - truth).mean() / 2


def test_answers_and_arrays_agree() -> None:
    """`counts` gives the values of `answer`, and `errors` its standard errors."""
    release = _released({cell: cell % 5 * 20 for cell in range(1000)}, 1000)
    lows, highs = _cells(0, 17, 300, 999), _cells(999, 18, 777, 999)
    answers = [release.count(int(low), int(high)) for low, high in zip(lows, highs, strict=True)]

    assert release.counts(lows, highs) == pytest.approx([answer.value for answer in answers])
    assert release.errors(lows, highs) == pytest.approx([answer.error for answer in answers], rel=1e-12)


def test_a_difference_is_one_question() -> None:
    """Ranges that share most cells differ with the error of what they do not share."""
    release = _released({cell: cell % 5 * 20 for cell in range(1000)}, 1000)

    difference = release.answer(Term(0, 800), Term(0, 790, -1))

    assert difference.value == pytest.approx(release.count(791, 800).value)
    assert difference.error == pytest.approx(release.count(791, 800).error)
    assert difference.worst(0.05) == pytest.approx(release.count(791, 800).worst(0.05))
    assert release.answer(Term(0, 9), Term(990, 999, -1)).worst(0.05)[0] < 0


def test_bounds_grow_as_they_fail_less() -> None:
    """A smaller beta gives wider bounds, around the value."""
    release = _released(dict.fromkeys(range(0, 1000, 7), 3), 1000)
    answer = release.count(100, 555)
    bounds = [answer.worst(beta) for beta in (0.5, 0.05, 1e-3, 1e-9)]

    assert [low for low, _ in bounds] == sorted((low for low, _ in bounds), reverse=True)
    assert [high for _, high in bounds] == sorted(high for _, high in bounds)
    assert all(low <= answer.value <= high for low, high in bounds)
    assert release.error(0.5) < release.error(0.05) < release.error(1e-9)


def test_every_bound_is_within_the_bound_for_all_ranges() -> None:
    """No range's value can be farther from a truth that all nodes allow than `error` says."""
    counts = {cell: cell % 11 * 5 for cell in range(64)}
    release = _released(counts, 64)
    worst = release.error(0.1)
    nodes = release._intervals(0.1)
    for low in range(0, 64, 5):
        for high in range(low, 64, 3):
            bottom, top = nodes.between(low, high)
            truth = sum(counts[cell] for cell in range(low, high + 1))
            assert bottom <= truth <= top
            assert abs(release.count(low, high).value - truth) <= worst


def test_scales_far_from_one_stay_exact() -> None:
    """Huge and tiny epsilons give finite answers; noisy counts may be larger than 64 bits hold."""
    for epsilon in (Fraction(1, 2**41), Fraction(1, 10**6), Fraction(5)):
        release = _released({3: 10, 900: 5}, 1000, epsilon=epsilon)
        assert np.isfinite(release.count(0, 999).value)
        assert np.isfinite(release.errors(_cells(0), _cells(999))).all()


@pytest.mark.parametrize(
    "changes",
    [
        {"size": 2**63 + 1},
        {"branching": 1},
        {"branching": 12},
        {"branching": 512},
        {"branching": 16.0},
        {"total": 1.5},
        {"total": 2**200},
        {"total_scale": 0},
        {"growth": 0},
        {"growth": "nan"},
        {"worth": -8},
        {"depth_power": "3/2"},
        {"epsilon": Fraction(1, 2**80)},
        {"epsilon": 0},
    ],
    ids=str,
)
def test_bad_parameters_are_named(changes: dict[str, Any]) -> None:
    """The error names the parameter that breaks its rule."""
    with pytest.raises(InvalidParameter) as error:
        SpendingTree(**{"size": 8, "epsilon": 1, **changes})

    assert [error.value.parameter] == list(changes)


@pytest.mark.parametrize(("low", "high"), [(-1, 3), (0, 8), (5, 4), (0.0, 3), (0, "3")], ids=str)
def test_bad_ranges_are_refused(low: Any, high: Any) -> None:
    """A range runs from a cell to one not before it."""
    with pytest.raises(InvalidParameter):
        _released({}, 8).count(low, high)
