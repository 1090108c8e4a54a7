"""Every randomizer keeps its epsilon: exact ratios over all pairs of cells, of the sampler that ships."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

from partita.errors import InvalidParameter
from partita.local.encodings import LocalHashing, OneBit, Piecewise, ProjectiveResponse
from partita.local.question import FREQUENCY_KINDS, MEAN_KINDS
from partita.local.randomizer import WHOLE, Randomizer

from .laws import (
    EPSILONS,
    column_law,
    device_law,
    loses_at_most,
    loses_more_than,
    made,
    supporting,
    total,
)

SIZES = (2, 3, 7, 16)
ONE = (Fraction(1),)


def every(
    sizes: tuple[int, ...] = SIZES,
    kinds: tuple[str, ...] = FREQUENCY_KINDS + MEAN_KINDS,
    epsilons: tuple[Fraction, ...] = EPSILONS,
) -> pytest.MarkDecorator:
    randomizers = [made(kind, size, epsilon) for kind in kinds for size in sizes for epsilon in epsilons]
    return pytest.mark.parametrize("randomizer", randomizers, ids=lambda r: f"{r.kind}-{r.size}-{r.epsilon}")


def geometry(randomizer: Randomizer) -> dict[str, object]:
    """What a randomizer has beside size, epsilon and threshold."""
    return {
        k: v
        for k, v in randomizer.to_json().items()
        if k in ("buckets", "prime", "window", "field", "dimension")
    }


def pairs(randomizer: Randomizer) -> list[tuple[int, int]]:
    """All pairs of cells; for unary encoding of many cells, whose bits are alike, those with the first."""
    cells = range(randomizer.size)
    alike = randomizer.kind == "unary" and randomizer.size > 8
    return [(0, other) for other in cells[1:]] if alike else list(combinations(cells, 2))


@every()
@pytest.mark.spread(24)
def test_probabilities_add_up_and_keep_epsilon(randomizer: Randomizer) -> None:
    """Each law sums to one, and no report tells two cells apart by more than e^epsilon."""
    laws = [randomizer.pmf(x) for x in range(randomizer.size)]

    assert {total(each) for each in laws} == {1}
    assert all(loses_at_most(randomizer.epsilon, laws[x], laws[y]) for x, y in pairs(randomizer))


@every()
def test_the_threshold_is_the_largest_private_one(randomizer: Randomizer) -> None:
    """One more unit of 2^-64, or of the step of one bit, would lose more than epsilon; it is refused."""
    unit = randomizer.size - 1 if isinstance(randomizer, OneBit) else 1
    rest = {name: getattr(randomizer, name) for name in geometry(randomizer)}
    with pytest.raises(InvalidParameter, match="threshold must lie between"):
        type(randomizer)(
            size=randomizer.size,
            epsilon=randomizer.epsilon,
            threshold=randomizer.threshold + unit,
            **rest,
        )

    object.__setattr__(randomizer, "threshold", randomizer.threshold + unit)
    too_much = loses_more_than(randomizer.epsilon, randomizer.pmf(0), randomizer.pmf(randomizer.size - 1))
    object.__setattr__(randomizer, "threshold", randomizer.threshold - unit)

    assert too_much


@every((2, 5), epsilons=ONE)
def test_a_device_samples_exactly_its_law(randomizer: Randomizer) -> None:
    """Over all branches of all draws, every report has the probability that `pmf` says."""
    for x in range(randomizer.size):
        expected = {report: chance for report, chance in randomizer.pmf(x).items() if chance}

        assert device_law(randomizer, x) == expected


@every((16,), ("response", "hadamard", "one-bit", "piecewise"), ONE)
def test_a_device_samples_exactly_its_law_of_sixteen_cells(randomizer: Randomizer) -> None:
    """The same for the first, a middle and the last of sixteen cells."""
    for x in (0, 6, 15):
        assert device_law(randomizer, x) == randomizer.pmf(x)


@pytest.mark.parametrize(
    "randomizer",
    [
        ProjectiveResponse(size=7, epsilon=Fraction(1), field=2, dimension=3),
        ProjectiveResponse(size=13, epsilon=Fraction(1), field=3, dimension=3),
        ProjectiveResponse(size=6, epsilon=Fraction(1), field=5, dimension=2),
        ProjectiveResponse(size=16, epsilon=Fraction(1), field=2, dimension=5),
        LocalHashing(size=16, epsilon=Fraction(1)),
    ],
    ids=lambda r: f"{r.kind}-{geometry(r)}",
)
def test_a_device_samples_exactly_its_law_in_larger_spaces(randomizer: Randomizer) -> None:
    """Projective spaces over three fields, and hashing of sixteen cells: for a middle and the last cell."""
    for x in (randomizer.size // 2, randomizer.size - 1):
        assert device_law(randomizer, x) == randomizer.pmf(x)


@every((2, 4), epsilons=ONE)
def test_a_column_has_the_same_law(monkeypatch: pytest.MonkeyPatch, randomizer: Randomizer) -> None:
    """`randomize_many` of one cell is the same law, for every cell."""
    for x in range(randomizer.size):
        expected = {(report,): chance for report, chance in randomizer.pmf(x).items() if chance}

        assert column_law(monkeypatch, randomizer, [x]) == expected


@pytest.mark.parametrize("kind", ["response", "projective", "hadamard", "one-bit", "piecewise"])
def test_reports_of_a_column_are_independent(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The law of two reports in one column is the product of their laws."""
    randomizer = made(kind, 3, Fraction(1))
    first, second = randomizer.pmf(2), randomizer.pmf(0)

    expected = {(a, b): p * q for a, p in first.items() for b, q in second.items()}

    assert column_law(monkeypatch, randomizer, [2, 0]) == expected


@every((2, 5), FREQUENCY_KINDS, ONE)
def test_estimates_are_unbiased_exactly(randomizer: Any) -> None:
    """The shipped decoder supports a cell with probability `hit` if it is the true one, else `miss`."""
    for x in range(randomizer.size):
        support = supporting(randomizer, x)
        for true in range(randomizer.size):
            chance = sum((p for report, p in randomizer.pmf(true).items() if report in support), Fraction(0))

            assert chance == (randomizer.hit if true == x else randomizer.miss)


@every((2, 5, 16), MEAN_KINDS)
def test_means_are_unbiased_exactly(randomizer: Any) -> None:
    """The expected report is offset + slope x, without any rounding."""
    for x in range(randomizer.size):
        expected = sum(report * chance for report, chance in randomizer.pmf(x).items())

        assert expected == randomizer.offset + randomizer.slope * x


@every((5, 16), MEAN_KINDS)
def test_the_largest_variance_of_a_mean_is_known(randomizer: Any) -> None:
    """No number has a larger variance than `largest_variance` says, and one has it; a coin's is bounded."""
    found = []
    for x in range(randomizer.size):
        law = randomizer.pmf(x)
        mean = sum(report * chance for report, chance in law.items())
        variance = sum(report**2 * chance for report, chance in law.items()) - mean**2
        found.append(float(variance / (randomizer.slope * (randomizer.size - 1)) ** 2))

    if isinstance(randomizer, Piecewise):
        assert max(found) == pytest.approx(randomizer.largest_variance)
    else:
        assert max(found) <= randomizer.largest_variance * (1 + 1e-12)


def test_the_step_of_one_bit_is_whole() -> None:
    """The chance of a one runs from 2^64 - threshold to threshold in equal whole steps."""
    bit = OneBit(epsilon=Fraction(1))

    assert WHOLE - bit.threshold + bit.step * (bit.size - 1) == bit.threshold
    with pytest.raises(InvalidParameter, match="multiple of size - 1"):
        OneBit(epsilon=Fraction(1), threshold=bit.threshold - 1)


def test_a_projective_space_has_equal_hyperplanes() -> None:
    """Every hyperplane of 40 points has 13, and two of them meet in 4."""
    space = ProjectiveResponse(size=40, epsilon=Fraction(1), field=3, dimension=4)
    planes = [{y for y in range(40) if not space.meets(x, y)} for x in range(40)]

    assert {len(plane) for plane in planes} == {13} == {space.odds[0]}
    assert {len(one & other) for one, other in combinations(planes, 2)} == {4}
