"""Private multiplicative weights: output laws by enumeration, losses at the sampler, planted bugs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import InvalidData, InvalidParameter
from partita.guarantee import Neighbors
from partita.public.queries.operator import Operator
from partita.public.queries.product import Product
from partita.public.queries.ranges import SpanOperator
from partita.public.workload import weights
from partita.public.workload.release import Change
from partita.public.workload.weights import Rates, Scales, WeightsBudget, choose_grain, count_grains
from partita.testing import (
    EndlessTape,
    ForbiddenNoise,
    ZeroNoise,
    add_remove_pairs,
    change_one_pairs,
    law,
    privacy_loss,
    tape_noise,
)
from partita.trusted.mechanisms import weights as weights_rounds
from partita.trusted.mechanisms.weights import MeasurementPlan, noise_scales, plan_measurements, weigh
from tests.seams import SETTLING

from .weights_tools import Clamped, Counts, Recorder, Replayer, explicit, losses, output, released

BASE = Fraction(9, 10)
QUERIES = [[1, 0], [1, 1]]
FOUR = [[1, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]]


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is public may be computed in any way; a few steps are quick."""
    monkeypatch.setattr(SETTLING, 2)
    monkeypatch.setattr(weights_rounds, "_STEPS", 2)


def _law(
    counts: Counts, rows: Any, change: Change, budget: WeightsBudget, unit: Fraction, window: range
) -> Any:
    noise = Clamped(BASE, unit=unit, window=window)
    return law(lambda noise: output(released(counts, noise, rows, change, budget)), noise)


def _worst(
    pairs: Any, rows: Any, change: Change, budget: WeightsBudget, unit: Fraction, window: range
) -> Any:
    """The largest loss over pairs of neighbours, each law enumerated once."""
    laws: dict[Counts, Any] = {}
    found = []
    for pair in pairs:
        for counts in pair:
            if counts not in laws:
                laws[counts] = _law(counts, rows, change, budget, unit, window)
        found.append(privacy_loss(laws[pair[0]], laws[pair[1]], base=BASE, unit=unit))
    return max(found)


def test_two_rounds_lose_at_most_epsilon() -> None:
    """Enumerated over all small neighbours, two rounds cost no more than epsilon, and most of it."""
    budget = WeightsBudget(epsilon=1, rounds=2, warm=0)

    loss = _worst(add_remove_pairs(2, 1), QUERIES, Change(1), budget, Fraction(1, 160), range(3))

    assert float(loss) > 0.6
    assert loss <= 1


def test_one_round_with_a_first_guess_loses_at_most_epsilon() -> None:
    """Four queries over two cells: the total, the sum along the axis and a round stay within epsilon."""
    budget, four = WeightsBudget(epsilon=1, rounds=1), [*QUERIES, [0, 1], [1, 0]]

    loss = _worst(add_remove_pairs(2, 1), four, Change(1), budget, Fraction(1, 160), range(3))

    assert loss <= 1


def test_a_changed_row_loses_at_most_epsilon() -> None:
    """Under change-one a row that moves changes one answer by one, and the sums along an axis by two."""
    budget, change = WeightsBudget(epsilon=1, rounds=1), Change.of("change-one")

    loss = _worst(change_one_pairs(2, 1), QUERIES, change, budget, Fraction(1, 320), range(3))

    assert loss <= 1


def test_half_the_noise_is_caught_by_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law shows it if answers are measured with half of their noise."""
    monkeypatch.setattr(
        weights_rounds,
        "noise_scales",
        lambda *args: _with(noise_scales(*args), answer=noise_scales(*args).answer / 2),
    )
    budget = WeightsBudget(epsilon=1, rounds=1, warm=0)

    loss = _worst(add_remove_pairs(2, 1), QUERIES, Change(1), budget, Fraction(1, 160), range(3))

    assert loss > 1


def _with(scales: Scales, **changed: Fraction) -> Scales:
    return replace(scales, **changed)


PLANE = Product((2, 2), [((0,), SpanOperator(2, [0, 0], [1, 2])), ((1,), SpanOperator(2, [0, 1], [2, 2]))])


def _pairs(neighbors: Neighbors) -> Iterator[tuple[Counts, Counts]]:
    return add_remove_pairs(4, 1) if neighbors == "add-remove" else change_one_pairs(4, 1)


def _run(neighbors: Neighbors = "add-remove", operator: Operator = PLANE, **given: Any) -> Any:
    change = Change.of(neighbors)
    budget = WeightsBudget(**{"epsilon": 1, "rounds": 3, **given})

    def run(counts: Counts, noise: Any) -> Any:
        data = np.array(counts, np.int64).reshape(operator.shape)
        return output(
            weigh(data, operator=operator, unit=1, change=change, budget=budget, session=noise.session())
        )

    return run


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_every_look_is_paid_for(neighbors: Neighbors) -> None:
    """Seen at the sampler, the looks cost at most epsilon for all neighbours, and once all of it."""
    worst = max(losses(_run(neighbors), _pairs(neighbors), seeds=1))

    assert worst <= 1
    assert worst == 1 or neighbors == "change-one"


def test_negative_weights_are_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A moved row may change an answer by the whole spread of weights, not by the largest of them only."""
    signed = explicit([[1, -1], [0, 0]])
    run = _run("change-one", signed, warm=0)
    assert max(losses(run, change_one_pairs(2, 2), seeds=4)) <= 1

    monkeypatch.setattr(Change, "of_answer", lambda self, operator: self.mass * operator.highest)

    assert max(losses(run, change_one_pairs(2, 2), seeds=4)) > 1


def test_zero_concentrated_losses_add_up() -> None:
    """With delta, the squares of all losses stay within the budget that converts to epsilon and delta."""
    budget = WeightsBudget(epsilon=1, delta="1e-6", rounds=40)
    data = np.zeros(PLANE.shape, np.int64)

    weighed = weigh(data, operator=PLANE, unit=1, change=Change(1), budget=budget, session=ZeroNoise())
    pure, rho = weighed.losses(Change(1))

    assert pure > 1
    assert Fraction(99, 100) * budget._rho < rho <= budget._rho


BUGS: dict[str, Any] = {
    "the scale over the number of dimensions": lambda scales: _with(scales, answer=scales.answer / 2),
    "a selection without its factor two": lambda scales: _with(scales, selection=scales.selection / 2),
    "one share for all axes": lambda scales: _with(scales, marginal=scales.marginal / 2),
}


@pytest.mark.parametrize("bug", BUGS)
def test_wrong_scales_are_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any scale that is too small costs more than epsilon."""

    def wrong(rates: Rates, change: Change, operator: Operator) -> Scales:
        scales: Scales = BUGS[bug](noise_scales(rates, change, operator))
        return scales

    monkeypatch.setattr(weights_rounds, "noise_scales", wrong)

    assert max(losses(_run(rounds=2), _pairs("add-remove"), seeds=1)) > 1


def test_the_true_total_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """If mass or rounds come from the number of rows itself, neighbours show different outputs."""
    real = weights.Measurements

    def leaking(**fields: Any) -> Any:
        return real(**{**fields, "total": int(secret[0].sum())})

    secret: list[Any] = []
    run = _run()

    def watched(counts: Counts, noise: Any) -> Any:
        secret[:] = [np.array(counts)]
        return run(counts, noise)

    monkeypatch.setattr(weights_rounds, "Measurements", leaking)

    with pytest.raises(AssertionError, match="unpaid"):
        list(losses(watched, _pairs("add-remove"), seeds=1))


BANDS = Product(
    (8, 8), [((0,), SpanOperator(8, [0, 0, 2], [1, 4, 8])), ((1,), SpanOperator(8, [0, 3, 5], [3, 8, 8]))]
)
"""Nine queries over two axes: up to nine rounds, and up to eight bins along each axis."""


def _borders(changed: Any, budget: WeightsBudget) -> list[int]:
    """The numbers of rows at which one more row changes something of the plan."""
    plans = [plan_measurements(float(rows), BANDS, 1, Change(1), budget) for rows in range(1, 2_000)]
    return [rows for rows in range(1, 1_999) if changed(plans[rows - 1]) != changed(plans[rows])]


def _bins(plan: MeasurementPlan) -> list[int]:
    return [margin.bins for margin in plan.margins]


@pytest.mark.parametrize("changed", [lambda plan: plan.rounds, _bins], ids=["rounds", "bins"])
def test_what_is_measured_follows_from_the_noisy_total(changed: Any) -> None:
    """Where one row would change rounds or bins, neighbours with the same noisy total have the same."""
    run = _run("add-remove", BANDS, rounds=None)
    borders = _borders(changed, WeightsBudget(epsilon=1))
    pairs = [((rows, *[0] * 63), (rows + 1, *[0] * 63)) for rows in borders]

    assert len(borders) >= 3
    assert max(losses(run, iter(pairs), seeds=1)) <= 1


PLANTED: dict[str, tuple[Any, Any]] = {
    "rounds": (lambda plan: plan.rounds, lambda right, true: right._replace(rounds=true.rounds)),
    "bins": (_bins, lambda right, true: right._replace(margins=true.margins)),
    "all of the plan": (_bins, lambda right, true: true),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_plan_for_the_true_total_is_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If rounds, bins or all of it are planned for the true number of rows, neighbours show it."""
    changed, wrong = PLANTED[bug]
    run, secret = _run("add-remove", BANDS, rounds=None), [0]

    def leaking(rows: float, *rest: Any) -> MeasurementPlan:
        return cast(
            MeasurementPlan, wrong(plan_measurements(rows, *rest), plan_measurements(float(secret[0]), *rest))
        )

    def watched(counts: Counts, noise: Any) -> Any:
        secret[0] = sum(counts)
        return run(counts, noise)

    monkeypatch.setattr(weights_rounds, "plan_measurements", leaking)
    rows = _borders(changed, WeightsBudget(epsilon=1))[0]

    with pytest.raises(AssertionError, match=r"depends on the data|unpaid"):
        list(losses(watched, iter([((rows, *[0] * 63), (rows + 1, *[0] * 63))]), seeds=1))


@pytest.mark.parametrize("seed", range(3))
def test_the_plan_is_that_of_the_noisy_total(seed: int) -> None:
    """Rounds, bins and scales of a release are those planned for its total, which is not the true one."""
    budget, data = WeightsBudget(epsilon=1), np.zeros(BANDS.shape, np.int64)
    data[1, 1] = 900

    weighed = weigh(
        data,
        operator=BANDS,
        unit=1,
        change=Change(1),
        budget=budget,
        session=tape_noise(EndlessTape(("plan", seed))).session(),
    )
    plan = plan_measurements(max(1.0, float(weighed.total)), BANDS, 1, Change(1), budget)

    assert weighed.total != 900
    assert (weighed.indices.size, weighed.margins, weighed.scales) == plan


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_every_scale_is_by_how_much_neighbors_differ(neighbors: Neighbors, delta: object) -> None:
    """A row that moves changes two bins of an axis and the total not at all; scales are these over rates."""
    rates = WeightsBudget(epsilon=1, delta=delta, rounds=9).rates(9, 2)
    signed = explicit([[3, -2, 0], [1, 0, 0]])
    both = neighbors == "change-one"

    scales = noise_scales(rates, Change.of(neighbors, contributions=5), signed)

    assert scales.total * rates.total == 5
    assert scales.marginal * rates.marginal == (10 if both else 5)
    assert scales.selection * rates.selection == 2 * (25 if both else 15)
    assert scales.answer * rates.answer == (25 if both else 15)


def test_bins_of_neighbors_who_change_a_row_cost_their_share() -> None:
    """At the sampler, a row that moves along both axes costs all that the axes have, and no more."""
    run, paid = _run("change-one", BANDS, rounds=1), list[Fraction]()
    one, other = (np.eye(64, dtype=np.int64)[at] + 100 for at in (0, 63))
    first = Recorder(tape_noise(EndlessTape("moved")).session())
    run(tuple(one.tolist()), first)
    looks = list(first.looks)
    run(tuple(other.tolist()), Replayer(first.looks, seen=paid))

    bins = [loss for look, loss in zip(looks, paid, strict=True) if np.size(look.secret) == 8]
    assert bins == [Fraction(3, 20)] * 2


@given(st.integers(1, 2**70), st.integers(0, 2**80), st.data())
def test_steps_hold_every_change_of_what_is_rounded(change: int, answer: int, data: Any) -> None:
    """Rounded down to grains, answers that differ by at most a change differ by at most its steps."""
    grain = choose_grain(change)
    moved = data.draw(st.integers(0, change))
    steps = count_grains(change, grain)

    assert (answer + moved) // grain - answer // grain <= steps
    assert steps == max(
        (rest + change) // grain for rest in {0, 1, grain - 1, -change % grain} if rest < grain
    )


def test_rounding_to_grains_is_paid_for() -> None:
    """A change that is no whole number of grains may cross one grain more, and noise is scaled for it."""
    heavy, budget = explicit([[2**31 + 1, 1]]), WeightsBudget(epsilon=1, rounds=1, warm=0)
    run, paid = _run("add-remove", heavy, warm=0, rounds=1), list[Fraction]()
    first = Recorder(tape_noise(EndlessTape("grains")).session())
    run((0, 1), first)
    run((1, 1), Replayer(first.looks, seen=paid))

    assert choose_grain(2**31 + 1) == 2
    assert paid[-1] == budget.rates(1, 0).answer


def test_scores_in_other_units_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that are not counted in the grains that noise is scaled for cost more."""
    heavy = explicit([[2**32, 0, 2**31], [0, 2**32, 1]])
    run = _run("add-remove", heavy, warm=0)
    assert max(losses(run, add_remove_pairs(3, 1), seeds=1)) <= 1

    monkeypatch.setattr(weights_rounds, "count_grains", lambda change, grain: change // grain // 4)

    assert max(losses(run, add_remove_pairs(3, 1), seeds=1)) > 1


class _RoundedLate:
    """Answers that are rounded only after they were taken from the truth, halves to even numbers."""

    __array_ufunc__ = None

    def __init__(self, answers: Any) -> None:
        self.answers = answers

    def __rsub__(self, truth: Any) -> Any:
        return np.rint(truth - self.answers).astype(np.int64)


def test_scores_of_differences_that_were_rounded_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounded after the difference, a score may change by two where the truth changes by one."""
    run = _run("add-remove", explicit([[1, 1, 0, 0], [1, 0, 1, 0]]), warm=0, rounds=1)
    pair = (0, 40, 0, 0), (1, 40, 0, 0)
    assert max(losses(run, iter([pair]), seeds=30)) == 1

    monkeypatch.setattr(weights.Measurements, "to_grains", lambda self, answers: _RoundedLate(answers))

    assert max(losses(run, iter([pair]), seeds=30)) > 1


def test_scores_that_are_not_rounded_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Floats differ by a little more than one where the truth changes by one; no noise is drawn for them."""
    monkeypatch.setattr(weights.Measurements, "to_grains", lambda self, answers: answers)

    with pytest.raises(InvalidData, match="scores"):
        _run()((1,) * 4, tape_noise(EndlessTape(0)))


def test_without_noise_measurements_are_exact() -> None:
    """Zero noise releases the true total, true sums along axes and true answers."""
    data = np.arange(4, dtype=np.int64).reshape(PLANE.shape) * 1000

    weighed = weigh(
        data,
        operator=PLANE,
        unit=1,
        change=Change(1),
        budget=WeightsBudget(epsilon=1, rounds=3),
        session=ZeroNoise(),
    )

    assert weighed.total == 6000
    assert weighed.marginals.tolist() == [1000, 5000, 2000, 4000]
    assert weighed.noisy.tolist() == PLANE.answers(data)[weighed.indices].tolist()


def test_masses_of_several_cells_cost_their_norm() -> None:
    """A row that is spread over cells counts by its mass: if less is allowed for, it costs too much."""
    budget = WeightsBudget(epsilon=1, rounds=2, warm=0)

    def run(counts: Counts, noise: Any, mass: int) -> Any:
        data = np.array([[3, 1, 0], [0, 2, 2], [1, 1, 2]]).T @ np.array(counts)
        operator = explicit(FOUR)
        return output(
            weigh(
                data, operator=operator, unit=4, change=Change(mass), budget=budget, session=noise.session()
            )
        )

    assert max(losses(lambda c, n: run(c, n, 4), add_remove_pairs(3, 1), seeds=2)) <= 1
    assert max(losses(lambda c, n: run(c, n, 2), add_remove_pairs(3, 1), seeds=2)) > 1


def test_nothing_is_drawn_before_parameters_are_checked() -> None:
    """A wrong share or number of rounds is refused without noise."""
    for name, value in (("rounds", 0), ("warm", 1), ("epsilon", 0)):
        with pytest.raises(InvalidParameter, match=name):
            _run("add-remove", PLANE, **{name: value})((0,) * 4, ForbiddenNoise())
