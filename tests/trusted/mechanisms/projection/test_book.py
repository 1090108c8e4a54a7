"""Algorithm 18 as printed, and a public number of rows: where neighbours have equally many."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.domain import Category, Integer
from partita.errors import InvalidParameter, InvalidRelease
from partita.guarantee import Guarantee, advanced_rate, corollary_rate
from partita.public.queries.language import matrix, prefixes, ranges
from partita.public.queries.queries import Queries, Universe
from partita.public.workload.projection import Mirrored, ProjectedLaplaceRelease, exact_gap, project
from partita.testing import (
    CouplingBroken,
    EndlessTape,
    RecordingNoise,
    ZeroNoise,
    add_remove_pairs,
    change_one_pairs,
    coupled,
    tape_noise,
)
from partita.trusted.mechanisms.workload import NoisyWorkload, ProjectedLaplace
from partita.trusted.noise import Noise
from partita.trusted.secret import Points

Counts = tuple[int, ...]
LETTERS = Universe(["letter"], [Category(["a", "b"])])
AGES = Universe(["age"], [Integer(0, 19)])
DELTA = Fraction(1, 10**6)
SIGNED = matrix("letter", [{"a": 1, "b": "-1/2"}, {"b": 2}, {"a": "1/3"}])
PREFIXES = prefixes("letter")
EVERYBODY = matrix("letter", [{"a": 1, "b": 1}])


def made(queries: Queries = PREFIXES, universe: Universe = LETTERS, **given: Any) -> ProjectedLaplace:
    common = {"epsilon": 1, "neighbors": "change-one", **given}
    return ProjectedLaplace(queries=queries, universe=universe, **common)


def book(queries: Queries = PREFIXES, **given: Any) -> ProjectedLaplace:
    return made(queries, **{"variant": "book", "delta": DELTA, **given})


def points(counts: Counts, universe: Universe = LETTERS) -> Points:
    return Points.from_rows([[cell] for cell in range(len(counts))], axes=universe.axes, counts=counts)


def worst(mechanism: ProjectedLaplace, pairs: Iterator[tuple[Counts, Counts]]) -> Fraction | float:
    def run(counts: Counts, noise: Noise) -> tuple[Any, ...]:
        release = mechanism.release(points(counts), noise=noise)
        return (release.rows, *release.noisy.tolist(), *release.values.tolist())

    def loss(one: Counts, other: Counts) -> Fraction | float:
        try:
            return coupled(run, one, other, tape_noise(EndlessTape(3), path="numpy").session())
        except CouplingBroken:
            return float("inf")

    return max(loss(one, other) for one, other in pairs)


@pytest.mark.parametrize("queries", [prefixes("letter"), SIGNED, ranges("letter")], ids=str)
def test_a_public_number_of_rows_costs_nothing(queries: Queries) -> None:
    """Between tables of equally many rows all of epsilon goes to the answers, and some move costs it."""
    mechanism = made(queries, epsilon="1/3")
    recorder = RecordingNoise(ZeroNoise())
    release = mechanism.release(points((3, 1, 0, 2)), noise=recorder)

    assert recorder.scales == [mechanism.scale]
    assert (release.rows, release.rows_scale, release.most_rows) == (6, None, 6)
    assert mechanism.answers_epsilon == Fraction(1, 3)
    assert worst(mechanism, change_one_pairs(4, 1)) == Fraction(1, 3)
    assert "public" in " ".join(mechanism.plan_lines(6))


def test_rows_that_come_or_go_show_a_public_number() -> None:
    """The same mechanism between tables that differ by a row loses everything: the number is there."""
    assert worst(made(), add_remove_pairs(4, 1)) == float("inf")


@pytest.mark.parametrize(
    "given", [{"unit": "person"}, {"contributions": 2}, {"neighbors": "add-remove"}], ids=str
)
def test_a_number_of_rows_that_neighbours_do_not_share_gets_noise(given: dict[str, Any]) -> None:
    """A person may have fewer rows after a change, or none, so n is secret there and the book is refused."""
    assert made(**given).rows_scale is not None
    with pytest.raises(InvalidParameter) as refused:
        book(**given)
    assert refused.value.parameter == "variant"


def test_half_the_noise_of_moved_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exact change of a move is not more than is needed: half of the scale costs twice epsilon."""
    full = made().scale
    monkeypatch.setattr(NoisyWorkload, "scale", property(lambda self: full / 2))

    assert worst(made(), change_one_pairs(4, 1)) == 2


@pytest.mark.parametrize("variant", ["tight", "book"])
def test_no_move_of_the_printed_algorithm_loses_more_than_epsilon(variant: Any) -> None:
    """For few queries the printed noise is more than pure epsilon needs, over all moves of a small table."""
    assert worst(made(variant=variant, delta=DELTA), change_one_pairs(4, 1)) <= 1


@pytest.mark.parametrize("queries", [prefixes("age"), ranges("age")], ids=str)
@pytest.mark.parametrize("epsilon", ["1/10", 1])
def test_the_noise_is_the_printed_one(queries: Queries, epsilon: object) -> None:
    """It is sqrt(8 k ln 1/delta) / epsilon, to rounding, and Theorem 3.20 allows it in exact arithmetic."""
    mechanism = book(queries, universe=AGES, epsilon=epsilon)
    count, exact = len(mechanism.operator), mechanism.epsilon
    printed = math.sqrt(8 * count * math.log(1 / DELTA)) / float(exact)

    assert float(mechanism.scale) == pytest.approx(printed, rel=1e-12)
    assert 1 / mechanism.scale == corollary_rate(exact, DELTA, count) <= advanced_rate(exact, DELTA, count)
    assert mechanism.scale > made(queries, universe=AGES, epsilon=epsilon, delta=DELTA).scale
    assert mechanism.guarantee == Guarantee(epsilon=exact, delta=DELTA, neighbors="change-one")


@pytest.mark.parametrize(
    ("parameter", "given"),
    [
        ("delta", {"delta": 0}),
        ("delta", {"delta": "0.9"}),
        ("epsilon", {"epsilon": 2}),
        ("variant", {"variant": "printed"}),
        ("queries", {"queries": SIGNED}),
    ],
)
def test_the_book_is_refused_where_its_theorem_says_nothing(parameter: str, given: dict[str, Any]) -> None:
    """Without delta, for epsilon above 1, and for weights beyond 0 and 1 there is no theorem."""
    with pytest.raises(InvalidParameter) as refused:
        book(**given)

    assert refused.value.parameter == parameter


@pytest.mark.parametrize(
    ("noise", "hull", "nonnegative"), [(700, 1000, 1000), (-900, 100, 100), (-5000, -1000, 0)]
)
def test_the_printed_hull_holds_the_negatives_of_answers(noise: int, hull: float, nonnegative: float) -> None:
    """The query that counts everybody is projected on -n, ..., n as printed, and on 0, ..., n otherwise."""
    operator, n = EVERYBODY.over(LETTERS), 1_000
    noisy = np.array([n + noise])

    found = [project(each, noisy, rows=n, deviation=1.0) for each in (Mirrored(operator), operator)]

    assert [each.values[0] for each in found if each] == pytest.approx([hull, nonnegative], abs=0.02)


def test_the_mirrored_operator_is_the_matrix_beside_its_negative() -> None:
    """Answers, slopes and gaps are those of [A, -A], computed from the dense matrix in fractions."""
    operator = (prefixes("letter") + SIGNED).over(LETTERS)
    cells = np.arange(LETTERS.size, dtype=np.uint64)[:, None]
    dense = np.asarray(operator.weights_at(cells)).astype(object)
    both, mirrored = np.concatenate([dense, -dense], axis=1), Mirrored(operator)
    tape = EndlessTape("mirrored")
    x = (tape.take(2 * LETTERS.size) % 50).astype(np.int64)
    y = (tape.take(len(operator)) % 900).astype(np.int64) - 400

    residuals = both @ x - y
    least = min(0, min(both.T @ residuals))
    gap = Fraction(int(residuals @ (both @ x)) - int(x.sum()) * int(least), operator.granularity**2)

    assert mirrored.answers(x.reshape(mirrored.shape)).tolist() == (both @ x).tolist()
    assert mirrored.combine(y).ravel().tolist() == (both.T @ y).tolist()
    assert mirrored.highest == -mirrored.lowest == int(abs(dense).max())
    assert exact_gap(mirrored, both @ x, y, rows=int(x.sum()), bits=0) == gap


def test_theorem_12_8_holds_with_the_constant_that_we_prove() -> None:
    """No squared error of 100 fixed releases exceeds 16 k n sqrt(ln 1/delta ln 2X/beta) / epsilon."""
    mechanism = book(ranges("age"), universe=AGES)
    counts = (0, *[(7 * age) % 13 for age in range(20)], 0, 0, 0)
    data, count = points(counts, AGES), len(mechanism.operator)
    truth, cells = np.asarray(mechanism.truth(data), np.float64), AGES.size
    bound = 16 * count * sum(counts) * math.sqrt(math.log(1 / DELTA) * math.log(2 * cells / 0.05))

    releases = [mechanism.release(data, noise=tape_noise(EndlessTape(("book", seed)))) for seed in range(100)]
    errors = [float(np.square(release.values - truth).sum()) for release in releases]
    unprojected = [float(np.square(release.unprojected - truth).sum()) for release in releases]

    assert all(release.projection is not None for release in releases)
    assert max(errors) < bound
    assert np.mean(errors) < np.mean(unprojected) / 3
    assert all(release.distance(0.05) ** 2 <= bound for release in releases)


def again(
    release: ProjectedLaplaceRelease, guarantee: Guarantee | None, **facts: Any
) -> ProjectedLaplaceRelease:
    parts = release.parts()
    changed = parts._replace(facts={**parts.facts, **facts})
    return ProjectedLaplaceRelease.from_parts(changed, guarantee, release.queries, release.universe)


@pytest.mark.parametrize("variant", ["tight", "book"])
def test_parts_put_together_say_the_same(variant: Any) -> None:
    """The variant and the public number of rows are in the file, and its claim is what was spent."""
    mechanism = made(ranges("age"), AGES, variant=variant, delta=DELTA)
    release = mechanism.release(points(tuple(range(24)), AGES))

    read = again(release, release.guarantee)

    assert (read.book, read.rows, read.rows_scale) == (variant == "book", 276, None)
    assert read.values.tolist() == release.values.tolist()
    assert read.answer(3).worst(0.05) == release.answer(3).worst(0.05)
    assert read.error(0.05) == release.error(0.05)
    assert 0 < read.spent <= 1
    assert ("negatives" in read.story) is (variant == "book")


def test_a_file_without_noise_on_a_secret_number_of_rows_is_refused() -> None:
    """An exact number of rows goes with neighbours who have equally many, and with no others."""
    release = made(ranges("age"), AGES).release(points((4,) * 24, AGES))
    for promise in (Guarantee(epsilon=1), Guarantee(epsilon=1, neighbors="change-one", unit="person")):
        with pytest.raises(InvalidRelease):
            again(release, promise)
    for facts in ({"rows": "-1"}, {"book": "yes"}, {"book": None}, {"rows_scale": 3}):
        with pytest.raises(InvalidRelease):
            again(release, release.guarantee, **facts)


def test_a_file_of_an_earlier_version_has_noise_on_the_number_of_rows() -> None:
    """Change-one files that spent a twentieth of epsilon on it are read as before, and keep their promise."""
    release = made(ranges("age"), AGES).release(points((4,) * 24, AGES))
    older = replace(
        release,
        rows_scale=Fraction(20),
        rows=101,
        scale=release.scale * Fraction(2 * 20, 19),
        projection=None,
    )

    read = again(older, release.guarantee)

    assert read.most_rows > 101
    assert read.spent <= 1
    assert pt.Guarantee(epsilon=1, neighbors="change-one") == read.guarantee
