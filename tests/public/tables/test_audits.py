"""Audits of table releases: which there are, what they expect, and the error bars that follow."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from partita.domain.axis import Axis
from partita.public.bounds import Gaussian
from partita.public.boxes.base import BoxTerm
from partita.public.boxes.bins import AxisBins
from partita.public.tables import audits
from partita.public.tables.audits import (
    CELLS,
    FINE,
    MEASURED,
    PAIRS,
    STRONG,
    TAIL,
    TRIPLES,
    WEAK,
    Audit,
    AuditPlan,
    ErrorModel,
    SideShares,
    expect_sum,
)
from partita.public.tables.graph import TableGraphRelease
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.graph import TableGraph
from partita.trusted.secret import Points

AXES = (
    Axis(size=12),
    Axis(size=4, labels=True),
    Axis(size=90),
    Axis(size=3, labels=True),
    *((Axis(size=10),) * 3),
)
ONE = 2**20
"""One, as audits store numbers."""


@cache
def _release() -> TableGraphRelease:
    """About 2,000 rows of columns that depend on each other, at epsilon 1."""
    drawn = np.random.default_rng(7)
    common = drawn.random(2_000)
    columns = [(axis.size * (common + drawn.random(2_000)) / 2).astype(np.int64) for axis in AXES]
    points = Points.from_rows(np.stack(columns, axis=1), axes=AXES)
    return TableGraph(axes=AXES, epsilon=1).release(points, noise=tape_noise(EndlessTape(5)))


@pytest.mark.parametrize(
    ("factor", "kinds"),
    [
        (10, {PAIRS, TRIPLES}),
        (2, {MEASURED, WEAK, TRIPLES}),
        (Fraction(1, 3), {MEASURED, STRONG, WEAK, TRIPLES, TAIL}),
    ],
)
def test_classes_of_pairs_have_audits_where_rows_times_epsilon_are_many(
    factor: Fraction, kinds: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer audits share four percent of epsilon where noise would hide them."""
    monkeypatch.setattr(audits, "_POOLED_BELOW", 500 * factor)
    monkeypatch.setattr(audits, "_SPLIT_FROM", 2_500 * factor)
    release = _release.__wrapped__()
    spent = sum((audit.spent for audit in release.audits), Fraction(0))

    assert {audit.kind for audit in release.audits if audit.groups != CELLS} == kinds
    assert len(release.audits) == AuditPlan(release.fit).number
    assert Fraction(39, 1000) < spent <= Fraction(4, 100)


def test_labels_that_share_bins_are_audited_one_by_one() -> None:
    """They come before neighbours of an ordered column, of which more share bins."""
    axes = (Axis(size=60), Axis(size=45, labels=True), Axis(size=2))
    drawn = np.random.default_rng(3)
    points = Points.from_rows(np.stack([drawn.integers(0, a.size, 900) for a in axes], axis=1), axes=axes)
    fit = TableGraph(axes=axes, epsilon=1).release(points, noise=tape_noise(EndlessTape(2))).fit

    assert 60 - fit.sizes[0] > 45 - fit.sizes[1] > 0
    assert AuditPlan(fit).celled == [(1, 0), (1, 2)]


@pytest.mark.parametrize("noisy", [-30.0, 0.0, 4.0, 10.0, 35.0])
def test_the_expected_sum_is_the_mean_over_all_sums(noisy: float) -> None:
    """Each sum from zero on weighs as much as the noise makes it likely: a fine grid gives the same mean."""
    sums = np.arange(0.0005, 400.0, 0.001)
    weights = np.exp(-np.abs(sums - noisy) / 10.0)

    assert expect_sum(noisy, Fraction(10)) == pytest.approx(float(sums @ weights / weights.sum()), rel=1e-4)


@pytest.mark.parametrize("noisy", [0.0, 4.0, 10.0, 35.0])
def test_the_expected_sum_under_gaussian_noise_is_the_mean_over_all_sums(noisy: float) -> None:
    """From zero on; below zero it stays as it is there."""
    sums = np.arange(0.0005, 400.0, 0.001)
    weights = np.exp(-((sums - noisy) ** 2) / 200.0)
    law = Gaussian(Fraction(100))

    assert expect_sum(noisy, law) == pytest.approx(float(sums @ weights / weights.sum()), rel=1e-4)
    assert expect_sum(-noisy, law) == expect_sum(0.0, law)


def _audit(kind: str, noisy: int, *, groups: int = FINE, noise: int = 0) -> Audit:
    return Audit(kind, groups, 1, noisy, Fraction(1), 10_000 * ONE, -2 * ONE, noise * ONE)


def test_misses_of_unbiased_tables_are_near_their_noise() -> None:
    """An audit that noise has moved far cannot say that a fit errs by far more or less than its tables."""
    means = [_audit(MEASURED, noisy, noise=100).mean for noisy in (0, 60, 500)]

    assert means == pytest.approx([50 / 10_000, 60 / 10_000, 80 / 10_000], rel=1e-6)


def test_a_class_without_an_audit_has_that_of_all_pairs() -> None:
    """Or that of pairs that were not measured, or of those that were."""
    share = np.array([0.1])
    pooled = ErrorModel((_audit(PAIRS, 100), _audit(TRIPLES, 300)))
    joined = ErrorModel((_audit(MEASURED, 100), _audit(WEAK, 200)))

    assert (
        pooled.mean_miss(MEASURED, share) == pooled.mean_miss(STRONG, share) == pooled.mean_miss(WEAK, share)
    )
    assert (
        joined.mean_miss(STRONG, share) == joined.mean_miss(WEAK, share) > joined.mean_miss(MEASURED, share)
    )


def test_triples_are_not_added_to_pairs() -> None:
    """Tables of three columns miss what their pairs miss, and more."""
    sides = {c: SideShares(*(np.array([each]) for each in (0.5, 0.5, 0.0, False))) for c in range(3)}
    pairs = {pair: np.array([250.0]) for pair in ((0, 1), (0, 2), (1, 2))}
    fit: Any = _release().fit

    def deviation(triple: int) -> float:
        model = ErrorModel((_audit(PAIRS, 100), _audit(TRIPLES, triple)))
        return float(model.deviations(sides, np.array([125.0]), pairs, lambda _: WEAK, fit)[0])

    assert deviation(2) == deviation(20) < deviation(400)


def test_a_side_that_is_the_whole_column_adds_no_doubt() -> None:
    """The model has the number of rows from all views: the noise of one view does not matter beside it."""
    release = _release()
    reader = release.readers[1]
    one, most, every = (reader.side(((0, last, 1),)) for last in (0, 2, AXES[1].width - 1))

    assert 0 < one.doubt < one.alone.error
    assert every.doubt == pytest.approx(0.0, abs=1e-6)
    assert every.alone.error > one.alone.error
    assert most.doubt < most.alone.error


def test_many_boxes_have_the_errors_of_single_ones() -> None:
    """Errors of arrays of boxes are those of answers."""
    release = _release()
    last = [axis.width - 1 for axis in AXES]
    lows, highs = np.zeros((3, len(AXES)), np.uint64), np.array([last] * 3, np.uint64)
    highs[0, [0, 1]], highs[1, [1, 3]], highs[2, [0, 1, 2]] = (5, 1), (2, 0), (3, 2, 40)
    boxes = [BoxTerm(tuple(a), tuple(b)) for a, b in zip(lows.tolist(), highs.tolist(), strict=True)]

    assert release.errors(lows, highs) == pytest.approx([release.answer(box).error for box in boxes])


def test_a_usual_tail_is_taken_where_none_was_audited() -> None:
    """Intervals are a little wider than those of normal misses."""
    assert ErrorModel((_audit(PAIRS, 100),)).widening == pytest.approx(1.12)
    assert audits._USUAL_TAIL == 0.1


def test_nearly_all_rows_in_one_bin_leave_the_others_groups_of_their_own() -> None:
    """Else the column would have one group, in which nothing can be missed."""
    mass = np.array([960.0, 12.0, 9.0, 10.0, 9.0])

    for labels in (False, True):
        for scale in (audits.COARSE, FINE):
            groups = audits.group_masses(mass, labels, scale)
            assert (groups[1:] != groups[0]).all()
            assert groups.max() >= 2


def test_an_ordered_column_is_grouped_in_runs_on_both_sides_of_a_heavy_bin() -> None:
    """Runs of bins stay runs of positions."""
    groups = audits.group_masses(np.array([3.0, 2.0, 4.0, 900.0, 5.0, 1.0]), False, audits.COARSE)

    assert (np.diff(groups) >= 0).all()
    assert groups[2] < groups[3] < groups[4]


@cache
def _dominated() -> TableGraphRelease:
    """Two columns of which 97% of the rows have one value, and those that have not go together."""
    axes = (Axis(size=4, labels=True), Axis(size=12), Axis(size=5, labels=True), Axis(size=40), Axis(size=3))
    drawn = np.random.default_rng(5)
    rare = drawn.random(6_000) < 0.03
    columns = [drawn.integers(0, axis.size, 6_000) for axis in axes]
    columns[0], columns[1] = (np.where(rare, 1 + columns[c] % (axes[c].size - 1), 0) for c in (0, 1))
    points = Points.from_rows(np.stack(columns, axis=1), axes=axes)
    return TableGraph(axes=axes, epsilon=1).release(points, noise=tape_noise(EndlessTape(11)))


def test_narrow_pairs_have_an_audit_of_their_own() -> None:
    """Pairs of a column with nearly all rows in one bin are narrow, and triples are audited without it."""
    release = _dominated()
    (narrow,) = (audit for audit in release.audits if audit.kind == audits.NARROW)

    assert audits.find_narrow(release.fit) == {0, 1}
    assert narrow.number == 7
    assert release.kind_of((0, 4)) == release.kind_of((0, 1)) == audits.NARROW != release.kind_of((2, 3))
    assert AuditPlan(release.fit).triples == [(2, 3, 4)]


def test_a_file_without_narrow_audits_has_the_classes_of_its_version() -> None:
    """Then narrow pairs have the audits of the others."""
    release = _dominated()
    old = replace(release, audits=tuple(a for a in release.audits if a.kind != audits.NARROW))

    assert old.kind_of((0, 4)) in (MEASURED, STRONG, WEAK)
    assert old.kind_of((0, 1)) in (MEASURED, STRONG, WEAK)


def test_a_box_errs_as_the_rest_of_its_column_does() -> None:
    """A side with 97% of the rows misses what the other 3% miss, which is more than a side of half."""
    model = ErrorModel((_audit(PAIRS, 100, groups=audits.COARSE), _audit(PAIRS, 300), _audit(TRIPLES, 1)))
    fit: Any = _release().fit

    def deviation(share: float) -> float:
        sides = {c: SideShares(*(np.array([e]) for e in (share, share, 0.0, 0.0))) for c in range(2)}
        return float(model.deviations(sides, np.array([0.0]), {}, lambda _: WEAK, fit)[0])

    assert deviation(0.97) == pytest.approx(deviation(0.03))


def test_labels_in_a_bin_are_as_unlike_as_bins_are() -> None:
    """One of two labels in a bin may have all rows or none of what depends on it; whole bins add nothing."""
    reader = replace(
        _release().readers[1], bins=AxisBins.from_lookup([0, 0, 1, 2]), mass=np.array([400.0, 300.0, 300.0])
    )
    held = np.array([[400.0, 0.0, 300.0]])
    half, whole = np.array([[0.5, 0.0, 0.0]]), np.array([[1.0, 0.0, 1.0]])

    assert float(reader.joined_variance(half, held)[0]) > 50.0**2
    assert float(reader.joined_variance(whole, held)[0]) == pytest.approx(0.0, abs=1e-6)
    assert float(reader.joined_variance(half, 0.7 * reader.mass[None, :])[0]) == pytest.approx(0.0, abs=1e-6)
