"""The SQ oracle and its learners: tolerance, disjoint groups, stumps, logistic regression, parities."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest

from partita.errors import BudgetExceeded, InvalidParameter
from partita.local import (
    BudgetMemory,
    LROracle,
    SQOracle,
    Stump,
    StumpTask,
    learn_logistic,
    parity_queries_needed,
    parity_signal,
    parity_suspects,
)
from partita.local.range_estimates import RangeEstimate
from partita.trusted.noise.laws import Tape
from tests.local.laws import column_law


def oracle(values: Any, *, cap: object = 1, epsilon: object = 1) -> SQOracle:
    return SQOracle(LROracle(values, BudgetMemory(people=len(values), cap=cap)), epsilon=epsilon)


def tape(words: int = 200_000) -> Tape:
    return Tape(np.random.default_rng(4).integers(0, 2**64, size=words, dtype=np.uint64))


def test_the_tolerance_is_that_of_hoeffding() -> None:
    """tau = ((e^eps + 1) / (e^eps - 1)) sqrt(ln(2/beta) / (2n)), and half a step of the grid."""
    asked = oracle(np.zeros(10))
    for people in (1, 1_000, 123_457):
        expected = (exp(1) + 1) / (exp(1) - 1) * sqrt(log(40) / (2 * people)) + 2.0**-21

        assert asked.tau(people) == pytest.approx(expected, rel=1e-9)
    for tau in (0.9, 0.1, 0.0123):
        assert asked.tau(asked.people(tau)) <= tau < asked.tau(asked.people(tau) - 1)


def test_answers_are_within_their_tolerance() -> None:
    """On a fixed tape: numbers, numbers beyond [0, 1], and rows on which phi fails."""
    asked = oracle(np.full(60_000, 0.3))
    answer = asked.ask(lambda x: x, tau=0.05, words=tape())

    assert abs(answer.value - 0.3) <= answer.tau <= 0.05
    assert asked.ask(lambda x: 7.0, tau=0.05, words=tape()).value == pytest.approx(1, abs=0.05)
    assert asked.ask(lambda x: 1 / 0, tau=0.05, words=tape()).value == pytest.approx(0.5, abs=0.05)
    assert asked.ask(lambda xs: xs**2, tau=0.05, columnwise=True, words=tape()).value == pytest.approx(
        0.09, abs=0.05
    )


def disjoint(asked: SQOracle) -> bool:
    """The checker: nobody is asked twice, though their budget would allow it, and then nobody is left."""
    seen: list[float] = []

    def phi(x: float) -> float:
        seen.append(x)
        return 0.5

    for _ in range(3):
        asked.ask(phi, tau=asked.tau(10))
    try:
        asked.ask(phi, tau=asked.tau(10))
    except BudgetExceeded:
        return sorted(seen) == list(range(30)) and asked.unasked == 2
    return False


def test_queries_have_disjoint_groups() -> None:
    """Each takes the next people who were never asked, or is refused."""
    assert disjoint(oracle(np.arange(32), cap=5))


def _asks_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SQOracle, "_group", lambda self, count: np.arange(count))


def _asks_whoever_has_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    def group(self: Any, count: int) -> Any:
        now = self.oracle.book.now
        return np.flatnonzero([now.left(at) >= self.question.epsilon for at in range(now.people)])[:count]

    monkeypatch.setattr(SQOracle, "_group", group)


@pytest.mark.parametrize("plant", [_asks_the_same_again, _asks_whoever_has_budget])
def test_a_group_used_again_is_caught(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """The checker sees people who are asked twice."""
    plant(monkeypatch)

    assert not disjoint(oracle(np.arange(32), cap=5))


def test_a_bit_has_both_stages_in_one_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    """P[bit = 1] is that of randomized response about a coin of chance phi, exactly."""
    question = oracle(np.zeros(1)).question
    truth = question.randomizer.chance
    for cell in (0, 1 << 18, 1 << 20):
        phi = Fraction(cell, 1 << 20)
        one = phi * truth + (1 - phi) * (1 - truth)

        assert column_law(monkeypatch, question.randomizer, [cell])[(1,)] == one


@pytest.mark.parametrize("tau", [0.0, 2.0**-22, 1.5, -1.0, float("nan")])
def test_tolerances_out_of_reach_are_refused(tau: float) -> None:
    """Before anybody is asked."""
    with pytest.raises(InvalidParameter, match="tau"):
        oracle(np.zeros(10)).ask(lambda x: 0.5, tau=tau)


def test_a_stump_is_read_off_one_sketch() -> None:
    """With exact shares it is the best of all stumps, whichever label is above."""
    task = StumpTask(size=10)
    for above in (0, 1):
        xs = np.arange(1_000) % 10
        labels = np.where(xs >= 6, above, 1 - above)
        shares = np.bincount(task.cells(xs, labels), minlength=2 * task.half) / xs.size
        stump = task.learned(_check_entries(task, shares))

        assert stump == Stump(6, above, stump.error)
        assert stump.error == pytest.approx(0)
        assert (stump.predict(xs) == labels).all()


def _check_entries(task: StumpTask, shares: Any) -> RangeEstimate:
    """An estimate that is the truth."""
    estimate: Any = object.__new__(RangeEstimate)
    object.__setattr__(estimate, "values", shares)
    made: RangeEstimate = estimate
    return made


def test_learning_refuses_before_it_asks() -> None:
    """If there are not enough people for all rounds, nobody is asked."""
    asked = oracle(np.zeros((100, 3)))

    with pytest.raises(InvalidParameter, match="tau must be larger"):
        learn_logistic(asked, rounds=5, tau=0.3)
    assert asked.unasked == 100


@pytest.mark.statistics
def test_a_stump_from_reports_is_nearly_the_best() -> None:
    """10^5 people at epsilon 1: its true error is within 0.05 of the least; fresh: in 298 of 300 runs."""
    places = np.arange(100_000)
    xs = places % 256
    labels = np.where(places % 10 == 0, xs < 90, xs >= 90).astype(int)
    task = StumpTask(size=256)
    question = task.question(epsilon=1)
    aggregator = question.aggregator()
    aggregator.add_many(question.randomize_many(task.cells(xs, labels)))
    stump = task.learned(aggregator.estimate())

    assert (stump.predict(xs) != labels).mean() <= 0.10 + 0.05


@pytest.mark.statistics
def test_logistic_regression_from_one_bit_of_each() -> None:
    """Five features, 4 10^5 people, epsilon 1: within 0.015 of the accuracy of the true weights.

    What is lost is about a square of four normal errors of the direction, 0.0015 in the mean of 40 runs: ten
    times as much comes in 10^-7 of runs.
    """
    features, labels, weights = logistic_people()
    asked = oracle(np.column_stack([features, labels]))
    learned = learn_logistic(asked, rounds=20, tau=asked.tau(4_000))
    accuracy = (learned.predict(features) == labels).mean()
    best = ((features @ weights > 0) == labels).mean()

    assert learned.people == 400_000
    assert accuracy >= best - 0.015


def logistic_people() -> tuple[Any, Any, Any]:
    """People whose labels follow a logistic law; the same ones in every run."""
    rng = np.random.default_rng(0)
    weights = np.array([3.2, -2.1, 2.6, 0.8, -2.8])
    features = rng.uniform(-1, 1, (400_000, 5))
    labels = (rng.random(400_000) < 1 / (1 + np.exp(-features @ weights))).astype(int)
    return features, labels, weights


@pytest.mark.statistics
def test_answers_keep_their_tolerance() -> None:
    """Of 400 answers at beta 1/20 at most 60 miss; more of them would, in less than 10^-12 of runs."""
    missed = 0
    for _ in range(400):
        answer = oracle(np.full(1_000, 0.37)).ask(lambda xs: xs, tau=0.099, columnwise=True)
        missed += abs(answer.value - 0.37) > answer.tau

    assert missed <= 60


def queries(dimension: int) -> dict[str, Any]:
    """Tables of queries that a learner might ask: about bits, labels, sums, and nonsense."""
    xs = np.arange(1 << dimension)
    bits = (xs[:, None] >> np.arange(dimension)) & 1
    label = np.tile([0.0, 1.0], (len(xs), 1))
    rng = np.random.default_rng(9)
    return {
        "label": label,
        "bit and label": label * bits[:, [0]],
        "agreement with a bit": (label == bits[:, [0]]) * 1.0,
        "gradient": (1 + (label - 0.5) * (2 * bits[:, [3]] - 1)) / 2,
        "majority": label * (bits.sum(1, keepdims=True) > dimension / 2),
        "nonsense": rng.random((len(xs), 2)),
    }


@pytest.mark.parametrize("name", queries(4))
@pytest.mark.parametrize("tau", [0.05, 0.2])
def test_few_parities_show_in_any_answer(name: str, tau: float) -> None:
    """Of 4,096 secrets at most 1/(4 tau^2) change the answer by more than tau: by Parseval, and counted."""
    phi = queries(12)[name]

    assert (parity_signal(phi) ** 2).sum() <= 1 / 4 + 1e-12
    assert parity_suspects(phi, tau) <= 1 / (4 * tau**2)


def test_the_signal_is_what_a_secret_changes() -> None:
    """Against the answer computed person by person, for every secret of six bits."""
    xs, dimension = np.arange(64), 6
    for phi in queries(dimension).values():
        middle = phi.mean()
        for secret in range(64):
            labels = np.array([bin(secret & x).count("1") % 2 for x in xs])

            assert phi[xs, labels].mean() - middle == pytest.approx(parity_signal(phi)[secret], abs=1e-12)


def test_one_answer_fits_nearly_every_parity() -> None:
    """An oracle that gives the answer without a secret is within tau for all but a few of 4,096 secrets.

    So six queries leave more than 4,000 secrets apart by nothing; ruling out half of 2^64 takes more
    queries than there are people.
    """
    tau, left = 0.1, np.ones(1 << 12, dtype=bool)
    for phi in queries(12).values():
        left &= np.abs(parity_signal(phi)) <= tau

    assert left.sum() >= 4_096 - 6 * 25
    assert parity_queries_needed(64, tau) > 8 * 10**9
