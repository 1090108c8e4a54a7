"""Distances of the local tools, from a bound that holds for every unbiased estimate of one report each.

Let n people hold one of D cells each, and let everybody send one epsilon-local report, of a law that was
fixed beforehand. Let A have a row for each of q linear questions about the frequencies of the cells, and
let their estimates be unbiased. On average over questions, and over all data, their variance is at least

    (V |B|^2 - |B|_F^2) / (n q D),      V = 4 e^epsilon / (e^epsilon - 1)^2,

B is A with the mean of its columns taken from each, |B| the sum and |B|_F^2 the sum of squares of its
singular values.

*Proof.* Given the data, reports are independent. So the variance of an estimate is at least the sum over
people of that of its projection on the one report, g, and E[g | x] = a_x / n up to a constant, a_x column x
of A [Hoeffding 1948; Efron and Stein 1981]. Take one person, n = 1, g centred. Let p be the mean of the D
laws of the report and r_x the ratio of law x to p, so that their mean is 1. E_p[(r_x - 1) g] = b_x, column
x of B. With G = E_p[(r - 1)(r - 1)'], E_p|g|^2 >= tr(B G^-1 B') by Cauchy and Schwarz, which is at least
|B|^2 / tr G. For every report the r_x lie between some m and m e^epsilon and add up to D, so by convexity
the sum of r_x^2 is at most D (m (1 + e^epsilon) - m^2 e^epsilon) <= D (1 + e^epsilon)^2 / (4 e^epsilon): tr
G <= D / V. What is left of E_p|g|^2 when the spread of the means b_x is taken from it, |B|_F^2 / D on
average, is the variance. QED

For frequencies, A the identity, this is what subset selection has, up to rounding; that it is the best
constant for many people was proved in [YB17].
"""

from __future__ import annotations

from math import exp, sqrt
from typing import Any

import numpy as np

from benchmarks.distance.row import Distance, Measured
from partita.local import BudgetMemory, Frequency, LROracle, Mean, Range, Rectangles, SQOracle
from partita.testing import EndlessTape

ONE_REPORT = "every unbiased estimate from one epsilon-local report each, on average over all data"

_EPSILON = 1
_PEOPLE = 20_480
_CELLS = 1_024
_SIDE = 32


def local_frequency(trials: int) -> Distance:
    """Everybody equally often in each of many cells."""
    question, cells = Frequency(_CELLS, epsilon=_EPSILON), np.arange(_PEOPLE) % _CELLS
    tables = (_collected(question, cells, trial).values for trial in range(trials))
    squares = [((table - 1 / _CELLS) ** 2).mean() for table in tables]
    return Distance(
        mechanism="local_frequency",
        setting=f"{_CELLS:,} cells, {_PEOPLE:,} people, epsilon 1",
        what="root mean square error of a frequency",
        measured=Measured.root(squares),
        bound=sqrt(least_variance(np.eye(_CELLS), _CELLS)),
        source=f"{ONE_REPORT}; the constant is that of [YB17]",
    )


def local_mean(trials: int) -> Distance:
    """Everybody in the middle, where one bit is worst; the bound is for the ends, where somebody may be."""
    question = Mean(0, 1, epsilon=_EPSILON)
    worst, ends = (
        Measured.root([_mean_error(question, number, trial) ** 2 for trial in range(trials)])
        for number in (0.5, 1.0)
    )
    return Distance(
        mechanism="local_mean",
        setting=f"{_PEOPLE:,} numbers in [0, 1], epsilon 1",
        what="root mean square error of the mean, all numbers 1/2",
        measured=worst,
        bound=sqrt(best_bit(_EPSILON) / _PEOPLE),
        source="every unbiased estimate from one epsilon-local report each, numbers at an end [CR51]",
        note=f"all numbers 1: {ends.value:.3g}",
    )


def local_ranges(trials: int) -> Distance:
    """All ranges of a line, before the projection, which the bound does not cover."""
    question, cells = Range(_CELLS, epsilon=_EPSILON), np.arange(_PEOPLE) % _CELLS
    weights, number = _covering(_CELLS), _CELLS * (_CELLS + 1) / 2
    unbiased: list[float] = []
    projected: list[float] = []
    for trial in range(trials):
        estimate = _collected(question, cells, trial)
        for squares, table in ((unbiased, estimate.unbiased), (projected, estimate.values)):
            error = table - 1 / _CELLS
            squares.append(float(error @ weights @ error) / number)
    return Distance(
        mechanism="local_ranges",
        setting=f"{_CELLS:,} cells, {_PEOPLE:,} people, epsilon 1",
        what="root mean square error over all ranges, before the projection",
        measured=Measured.root(unbiased),
        bound=sqrt(least_variance(weights, number)),
        source=ONE_REPORT,
        note=f"projected, no longer unbiased: {Measured.root(projected).value:.3g}",
    )


def local_rectangles(trials: int) -> Distance:
    """All boxes of two columns, before the projection."""
    question = Rectangles({"x": _SIDE, "y": _SIDE}, epsilon=_EPSILON)
    cells = np.arange(_PEOPLE) % _SIDE**2
    people = {"x": cells // _SIDE, "y": cells % _SIDE}
    side, number = _covering(_SIDE), (_SIDE * (_SIDE + 1) / 2) ** 2
    squares = []
    for trial in range(trials):
        evidence = _collected(question, people, trial).evidence
        error = evidence.details.table(tuple(line.height for line in evidence.lines)) - 1 / _SIDE**2
        squares.append(float((error * (side @ error @ side)).sum()) / number)
    return Distance(
        mechanism="local_rectangles",
        setting=f"{_SIDE} x {_SIDE} cells, {_PEOPLE:,} people, epsilon 1",
        what="root mean square error over all boxes, before the projection",
        measured=Measured.root(squares),
        bound=sqrt(least_variance(np.kron(side, side), number)),
        source=ONE_REPORT,
    )


def local_oracles(trials: int) -> Distance:
    """One statistical query into {0, 1}: the bound is that of a bit of each."""
    rows = np.arange(_PEOPLE) % 10
    errors = []
    for trial in range(trials):
        book = BudgetMemory(people=_PEOPLE, cap=_EPSILON)
        oracle = SQOracle(LROracle(rows, book, universe=range(10)), epsilon=_EPSILON)
        answer = oracle.ask(
            lambda column: column < 3, tau=oracle.tau(_PEOPLE), columnwise=True, words=EndlessTape(trial)
        )
        errors.append((answer.value - 0.3) ** 2)
    return Distance(
        mechanism="local_oracles",
        setting=f"one query into {{0, 1}} of {_PEOPLE:,} people, epsilon 1",
        what="root mean square error of the answer",
        measured=Measured.root(errors),
        bound=sqrt(best_bit(_EPSILON) / _PEOPLE),
        source="every unbiased estimate from one epsilon-local report each [CR51]",
    )


def least_variance(weights: Any, questions: float) -> float:
    """The bound for questions A with A'A = weights: what every two cells have in common."""
    cells = len(weights)
    centred = weights - weights.mean(axis=0)
    centred = centred - centred.mean(axis=1)[:, None]
    values = np.linalg.eigvalsh(centred).clip(0)
    odds = exp(_EPSILON)
    spread = 4 * odds / (odds - 1) ** 2
    return float(spread * np.sqrt(values).sum() ** 2 - values.sum()) / (_PEOPLE * questions * cells)


def best_bit(epsilon: float) -> float:
    """The least variance of an unbiased estimate of one bit from one report: that of randomized response."""
    return exp(epsilon) / (exp(epsilon) - 1) ** 2


def _covering(cells: int) -> Any:
    """How many ranges hold both of two cells."""
    places = np.arange(cells)
    return (np.minimum.outer(places, places) + 1.0) * (cells - np.maximum.outer(places, places))


def _collected(question: Any, values: Any, trial: int) -> Any:
    aggregator = question.aggregator()
    aggregator.add_many(question.randomize_many(values, words=EndlessTape(trial)))
    return aggregator.estimate()


def _mean_error(question: Mean, number: float, trial: int) -> float:
    return float(_collected(question, np.full(_PEOPLE, number), trial).value) - number
