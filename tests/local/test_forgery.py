"""Forged reports: how far they move estimates, which of them are refused, and when a warning says so."""

from __future__ import annotations

import warnings
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest

from partita.errors import ImplausibleReports, InvalidData
from partita.local import Frequency, Mean, Range, Rectangles, UnaryEncoding
from partita.local.question import FREQUENCY_KINDS
from partita.trusted.noise.laws import Tape
from tests.local.laws import EPSILONS, made

ONE = Fraction(1)
HONEST = 400


def tape(seed: int, words: int) -> Tape:
    return Tape(np.random.default_rng(seed).integers(0, 2**64, size=words, dtype=np.uint64))


def quietly(aggregator: Any) -> Any:
    """What an aggregator says, warnings apart."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImplausibleReports)
        return aggregator.estimate()


def honest(kind: str, size: int, epsilon: Fraction) -> Any:
    """An aggregator of honest reports."""
    question = Frequency.of(size, made(kind, size, epsilon))
    aggregator = question.aggregator()
    values = np.arange(HONEST) % size
    aggregator.add_many(question.randomize_many(values, words=tape(size, 40 * HONEST * size)))
    return aggregator


def moved(kind: str, size: int, epsilon: Fraction, report: int, times: int = 1) -> Any:
    """By how much so many forged reports, all alike, move the estimated counts."""
    aggregator = honest(kind, size, epsilon)
    before = quietly(aggregator).counts
    for _ in range(times):
        aggregator.add(report)
    return quietly(aggregator).counts - before


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", FREQUENCY_KINDS)
def test_no_report_moves_a_count_further_than_it_says(kind: str, epsilon: Fraction) -> None:
    """Every report that an aggregator accepts, forged one by one: the farthest is the property, exactly."""
    law: Any = made(kind, 5, epsilon)
    aggregator = honest(kind, 5, epsilon)
    base = quietly(aggregator).counts
    shifts, cells = [], []
    for report in range(law.reports):
        forged = Frequency.of(5, law).aggregator()
        try:
            forged.add(report)
        except InvalidData:
            continue
        cells.append(int((forged.supports() > 0).sum()))
        shifts.append(np.abs(quietly(aggregator.merge(forged)).counts - base).max())

    assert max(shifts) == pytest.approx(float(law.forged_report_shift), rel=1e-9)
    assert max(cells) <= law.forged_report_cells
    assert max(cells) == law.forged_report_cells or kind == "projective"


def test_many_forged_reports_move_as_many_times_as_much() -> None:
    """m equal reports are m times one report."""
    for kind, report in (("response", 3), ("projective", 3), ("hadamard", 2), ("hashing", 7)):
        law: Any = made(kind, 16, ONE)
        once, often = (np.abs(moved(kind, 16, ONE, report, times)).max() for times in (1, 30))

        assert often == pytest.approx(30 * once, rel=1e-9)
        assert once <= float(law.forged_report_shift) * (1 + 1e-9)


def _ones(law: UnaryEncoding, count: int) -> int:
    return (1 << count) - 1


FORGED = {
    "response": (0, 596.4, 1),
    "projective": (3, 2.745, 364),
    "hadamard": (0, 2.164, 1024),
    "unary": ((1 << 300) - 1, 3.164, 416),
    "hashing": (0, 3.328, 1024),
}


@pytest.mark.parametrize("kind", FREQUENCY_KINDS)
def test_the_figures_of_the_guide(kind: str) -> None:
    """Epsilon 1 and 1,024 cells: one forged report, sent to the aggregator, moves a count by this much."""
    law: Any = made(kind, 1024, ONE)
    report, shift, cells = FORGED[kind]
    empty = Frequency.of(1024, law).aggregator()
    empty.add(report)

    assert np.abs(quietly(empty).counts).max() == pytest.approx(float(law.forged_report_shift), rel=1e-9)
    assert float(law.forged_report_shift) == pytest.approx(shift, rel=1e-3)
    assert law.forged_report_cells == cells


@pytest.mark.parametrize("kind", ["one-bit", "piecewise"])
def test_no_report_moves_a_sum_further_than_it_says(kind: Any) -> None:
    """In units of the distance of the bounds, from the lower one; both ends were sent."""
    question = Mean(-5, 15, epsilon=1, kind=kind)
    law = question.randomizer
    sums = []
    for report in (0, law.reports - 1):
        aggregator = question.aggregator()
        aggregator.add(report)
        sums.append((quietly(aggregator).value + 5) / 20)

    assert max(map(abs, sums)) == pytest.approx(float(law.forged_report_shift), rel=1e-9)
    assert float(law.forged_report_shift) == pytest.approx(
        {"one-bit": 1.582, "piecewise": 2.542}[kind], rel=1e-3
    )


def test_a_report_of_a_view_counts_for_all_views() -> None:
    """With as many reports of each view, one more moves the share of a node by the property over n."""
    question = Range(16, epsilon=1)
    mixture: Any = question.randomizer
    views = np.arange(4_000) % len(mixture.views)
    reports = question.randomize_many(np.arange(4_000) % 16, views=views, words=tape(3, 100_000))
    shifts = []
    for number, part in enumerate(mixture.parts):
        for report in range(part.reports):
            aggregator = question.aggregator()
            aggregator.add_many(reports)
            before = aggregator.evidence()
            aggregator.add(int(mixture.starts[number]) + report)
            pairs = zip(before.details.looks, aggregator.evidence().details.looks, strict=True)
            shifts.append(max(float(np.abs(new.table - old.table).max()) for old, new in pairs))

    assert 4_000 * max(shifts) == pytest.approx(float(mixture.forged_report_shift), rel=0.01)


def tail(law: UnaryEncoding) -> Fraction:
    """The exact probability that an honest report has a number of ones that is refused."""
    least, most = law.likely_ones
    others, one, zero = law.size - 1, law.miss, 1 - law.miss
    chances = [comb(others, k) * one**k * zero ** (others - k) for k in range(others + 1)]
    inside = sum((chances[k] for k in range(max(0, least), min(others, most) + 1)), Fraction(0))
    shifted = sum((chances[k] for k in range(max(0, least - 1), min(others, most - 1) + 1)), Fraction(0))
    return 1 - (inside + shifted) / 2


@pytest.mark.parametrize("epsilon", [*EPSILONS, Fraction(8)])
@pytest.mark.parametrize("size", [2, 9, 64, 200])
def test_honest_unary_reports_are_not_refused(size: int, epsilon: Fraction) -> None:
    """The exact probability of a refusal is at most 2^-64, and nothing at all for few cells."""
    law = UnaryEncoding(size=size, epsilon=epsilon)

    assert 0 <= tail(law) <= Fraction(1, 2**64)


def test_impossible_unary_reports_are_refused() -> None:
    """All ones and none, in a column, alone and by a check; nothing is counted."""
    question = Frequency(1024, epsilon=1, kind="unary")
    law: Any = question.randomizer
    least, most = law.likely_ones

    assert (least, most) == (150, 416)
    for ones in (0, least - 1, most + 1, 1024):
        aggregator, report = question.aggregator(), _ones(law, ones)
        rows = np.frombuffer(report.to_bytes(128, "little"), dtype=np.uint8).reshape(1, 128)
        with pytest.raises(InvalidData, match="150 to 416 ones"):
            aggregator.add(report)
        with pytest.raises(InvalidData, match="150 to 416 ones"):
            aggregator.add_many(rows)
        assert aggregator.n == 0
    for ones in (least, most):
        aggregator = question.aggregator()
        aggregator.add(_ones(law, ones))
        assert aggregator.n == 1


ATTACKS: dict[str, tuple[int, int]] = {
    "response": (0, 30),
    "projective": (3, 1_500),
    "hadamard": (2, 1_500),
    "unary": ((1 << 300) - 1, 1_500),
    "hashing": (5, 1_500),
}


@pytest.mark.parametrize("kind", FREQUENCY_KINDS)
def test_a_warning_says_that_reports_are_forged(kind: Any) -> None:
    """A thousand honest reports are no reason for one; as many forged ones that agree are."""
    question = Frequency(1024, epsilon=1, kind=kind)
    aggregator = question.aggregator()
    words = tape(7, 2_000_000)
    aggregator.add_many(question.randomize_many(np.arange(1_000), words=words))
    assert not aggregator.estimate().implausible.size

    report, times = ATTACKS[kind]
    for _ in range(times):
        aggregator.add(report)
    with pytest.warns(ImplausibleReports, match="more than noise explains"):
        aggregator.estimate()


def test_reports_that_support_everything_are_seen() -> None:
    """No single estimate leaves [0, 1], and their sum is far from 1."""
    question = Frequency(64, epsilon=1, kind="hadamard")
    aggregator = question.aggregator()
    aggregator.add_many(question.randomize_many(np.arange(2_000) % 64, words=tape(2, 20_000)))
    for _ in range(700):
        aggregator.add(0)

    with pytest.warns(ImplausibleReports):
        assert not aggregator.estimate().implausible.size


def test_means_and_ranges_warn_too() -> None:
    """All ones make a mean beyond its bounds; one node named by all is a share above 1."""
    mean = Mean(0, 1, epsilon=1).aggregator()
    mean.add_many(np.ones(500, dtype=np.int64))
    with pytest.warns(ImplausibleReports):
        mean.estimate()
    for question in (Range(16, epsilon=1), Rectangles({"x": 4, "y": 4}, epsilon=1)):
        aggregator = question.aggregator()
        aggregator.add_many(np.zeros(500, dtype=np.int64))
        with pytest.warns(ImplausibleReports):
            aggregator.estimate()


@pytest.mark.parametrize("kind", FREQUENCY_KINDS)
def test_honest_reports_warn_of_nothing(kind: Any) -> None:
    """Everybody in one cell, which makes the largest shares, and few people, who make the noisiest."""
    for people, size in ((1, 3), (2, 200), (20, 8), (3_000, 8)):
        question = Frequency(size, epsilon=Fraction(1, 2), kind=kind)
        for seed in range(5):
            aggregator = question.aggregator()
            words = tape(seed, 20 * people * size + 1_000)
            aggregator.add_many(question.randomize_many([1] * people, words=words))
            aggregator.estimate()


def test_auto_takes_what_forgers_can_use_least() -> None:
    """Up to epsilon 4 one report moves a count by less than 3.3 times what it does with Hadamard response."""
    for epsilon in (Fraction(1, 10), Fraction(1, 2), ONE, Fraction(2), Fraction(7, 2), Fraction(4)):
        for size in (2, 4, 8, 9, 16, 20, 32, 64, 79, 128, 256, 1024, 4096):
            law = Frequency(size, epsilon=epsilon).randomizer
            least: Any = made("hadamard", size, epsilon)

            assert law.forged_report_shift < Fraction(33, 10) * least.forged_report_shift


def test_auto_prefers_a_robust_kind_that_costs_little() -> None:
    """5,233 cells at epsilon 5: a twentieth more variance, and a thirtieth of the shift."""
    for size, epsilon in ((5_233, 5), (3_622, 5)):
        chosen = Frequency(size, epsilon=epsilon).randomizer
        response: Any = made("response", size, Fraction(epsilon))
        share = Fraction(1, size)

        assert chosen.kind == "projective"
        assert 2 * chosen.forged_report_shift <= response.forged_report_shift
        assert 1 < chosen.exact_variance(share) / response.exact_variance(share) <= Fraction(3, 2)
    assert Frequency(3_622, epsilon=6).randomizer.kind == "response"
