"""Discrete Gaussian noise: every short tape, thresholds by MPFR, one output on all paths, and planted bugs.

Probabilities are computed a second time here, by MPFR, from the law in docs/proofs/gaussian_noise.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import gmpy2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.errors import InvalidData, InvalidParameter
from partita.testing import EndlessTape, TapeLaw, tape_law, tape_noise
from partita.trusted.noise import laws
from partita.trusted.noise.gaussian import GaussianTables, gaussian_tables
from partita.trusted.noise.hazard import MARGIN
from partita.trusted.noise.laws import BLOCK, Exact, Tape, ThresholdTable, Uniform
from partita.trusted.noise.system import Path

ROUNDING = Fraction(1, 1 << 250)
VARIANCES = [Fraction(1, 4), Fraction(1), Fraction(9, 2)]
WIDTHS = [(4, 4), (3, 6), (2, 8), (1, 16)]
PATHS: tuple[Path, ...] = ("exact", "numpy", "compiled") if laws.available() else ("exact", "numpy")
THOROUGH = [pytest.param(*each, marks=pytest.mark.thorough) for each in ((3, 5, 9), (4, 4, 9), (4, 4, 50))]
WIDE = [Fraction(2) ** 15, Fraction(10**6), Fraction(10**12, 7), Fraction(2**90), Fraction(2**124)]


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    with gmpy2.context(gmpy2.get_context(), precision=320):
        yield


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certified floors are kept: enumeration asks for the same ones thousands of times."""
    made = ThresholdTable.__init__

    def with_memory(self: ThresholdTable, tail: Callable[[int], Exact], *rest: Any, **options: Any) -> None:
        made(self, cache(tail), *rest, **options)

    monkeypatch.setattr(ThresholdTable, "__init__", with_memory)
    monkeypatch.setattr(laws, "floor", cache(laws.floor))


def weight(k: int, variance: Fraction) -> Any:
    return gmpy2.exp(-gmpy2.mpq(k * k) / (2 * gmpy2.mpq(variance.numerator, variance.denominator)))


@cache
def total(variance: Fraction) -> Any:
    """The sum of the weights of all integers, to 300 bits."""
    found, k = weight(0, variance), 1
    while True:
        more = weight(k, variance)
        if more < gmpy2.exp2(-310):
            return found
        found, k = found + 2 * more, k + 1


def pmf(k: int, variance: Fraction) -> Fraction:
    numerator, denominator = (weight(k, variance) / total(variance)).as_integer_ratio()
    return Fraction(int(numerator), int(denominator))


def check(law: TapeLaw[Any], probability: Callable[[Any], Fraction], *, unresolved: Fraction) -> None:
    """The masses add up to one, and each is its probability but for tapes that ended too early."""
    assert sum(law.values()) + law.unresolved == 1
    assert law.unresolved <= unresolved
    assert law
    for outcome, mass in law.items():
        assert mass <= probability(outcome) + ROUNDING, outcome
        assert probability(outcome) <= mass + law.unresolved + ROUNDING, outcome


def rejected(law: TapeLaw[Any], probability: Callable[[Any], Fraction]) -> bool:
    try:
        check(law, probability, unresolved=Fraction(1))
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize(("bits", "words"), WIDTHS)
@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.usefixtures("remembered")
@pytest.mark.spread(6)
def test_discrete_gaussian_noise_has_its_law(variance: Fraction, bits: int, words: int) -> None:
    """Over all tapes of 16 bits, each value has a probability proportional to exp(-k^2 / (2 variance))."""
    law = tape_law(lambda tape: tape_noise(tape).discrete_gaussian(variance), bits=bits, words=words)

    check(law, lambda k: pmf(k, variance), unresolved=Fraction(1, 400))


def proposals(tables: GaussianTables) -> Callable[[Tape], int]:
    """One sample from tables, through as many proposals as it takes."""

    def draw(tape: Tape) -> int:
        drawn = tables.blocks(1, tape, margin=MARGIN, fast=False, compiled=False)
        return int(next(block for block in drawn if block.size)[0])

    return draw


@pytest.mark.parametrize(("bits", "words", "variance"), [(5, 3, 9), *THOROUGH])
@pytest.mark.usefixtures("remembered")
def test_large_variances_in_blocks_have_their_law(bits: int, words: int, variance: int) -> None:
    """With blocks of 4 or 8 values and rejection, no value is likelier than it may be, nor less likely."""
    tables = GaussianTables(Fraction(variance), bits, top_deviation=1)
    assert tables.shift > 1
    assert tables.shares_word == (2 * tables.shift <= bits)

    law = tape_law(proposals(tables), bits=bits, words=words)

    check(law, lambda k: pmf(k, Fraction(variance)), unresolved=Fraction(1, 2))


@pytest.mark.usefixtures("remembered")
def test_two_samples_from_one_tape_are_independent() -> None:
    """A pair of draws has the product of the two probabilities."""
    one = Fraction(1, 4)

    law = tape_law(lambda tape: tuple(tape_noise(tape).discrete_gaussian(one, 2).tolist()), bits=5, words=3)

    check(law, lambda pair: pmf(pair[0], one) * pmf(pair[1], one), unresolved=Fraction(1, 10))


def test_add_gaussian_adds_discrete_gaussian_noise() -> None:
    """add_gaussian(x, variance) is x plus the noise that the same words draw."""
    x = np.arange(300).reshape(3, 100)
    for variance in (Fraction(2), Fraction(10**6)):
        noisy = tape_noise(EndlessTape(1)).add_gaussian(x, variance)
        noise = tape_noise(EndlessTape(1)).discrete_gaussian(variance, 300)

        assert (noisy == x + noise.reshape(3, 100)).all()
        assert isinstance(tape_noise(EndlessTape(1)).add_gaussian(7, variance), int)


# Planted bugs: each is a way to be wrong about the law, and the enumeration sees it.
class VarianceForDeviation(GaussianTables):
    """The variance is taken for the standard deviation."""

    def __init__(self, variance: Fraction, bits: int, **options: Any) -> None:
        super().__init__(variance**2, bits, **options)


class HalfVariance(GaussianTables):
    """exp(-k^2 / variance)."""

    def __init__(self, variance: Fraction, bits: int, **options: Any) -> None:
        super().__init__(variance / 2, bits, **options)


class TwoZeros(GaussianTables):
    """A sign beside |k|, so that zero is counted twice."""

    def _block(self, *given: Any) -> Any:
        x = super()._block(*given)
        return np.where(x < 0, x + 1, x)

    def _tail(self, category: int) -> Any:
        self._beyond = 0
        return super()._tail(category)


class OneSided(GaussianTables):
    """The sign is lost."""

    def _block(self, *given: Any) -> Any:
        return abs(super()._block(*given))


class CutTail(GaussianTables):
    """The sums of weights end with the ninth: the rest of the tail is forgotten."""

    def _rest(self, first: int) -> Any:
        return super()._rest(first) * 0

    def _weight(self, j: int) -> Any:
        return super()._weight(j) * (j < 2)


class AllAccepted(GaussianTables):
    """Every proposal is accepted: the envelope is not corrected."""

    def _decide(self, *_: Any) -> bool:
        return True


class SignForgotten(GaussianTables):
    """The complement of a value is weighed as if it were the value."""

    def _decide(self, top: int, *rest: Any) -> bool:
        return super()._decide(int(top) & ~1, *rest)


class StaleChance(GaussianTables):
    """The chance is made of the bits that already chose the place."""

    def _accept(self, top: Any, low: Any, chances: Any, *rest: Any) -> Any:
        return super()._accept(top, low, (low << (self.chance_bits - self.shift)).astype(np.uint64), *rest)


@pytest.mark.parametrize("planted", [VarianceForDeviation, HalfVariance, TwoZeros, OneSided, CutTail])
@pytest.mark.usefixtures("remembered")
def test_a_wrong_law_is_seen_on_short_tapes(planted: type[GaussianTables]) -> None:
    """A bug in the table puts some mass outside of what its tapes leave open."""
    for made, bad in ((GaussianTables, False), (planted, True)):
        tables = made(Fraction(9, 2), 4)

        law = tape_law(proposals(tables), bits=4, words=3)

        assert rejected(law, lambda k: pmf(k, Fraction(9, 2))) == bad


@pytest.mark.parametrize("planted", [AllAccepted, StaleChance])
@pytest.mark.usefixtures("remembered")
@pytest.mark.thorough
def test_a_wrong_rejection_is_seen_on_short_tapes(planted: type[GaussianTables]) -> None:
    """A bug in the acceptance of proposals puts some mass outside of what its tapes leave open."""
    for made, bad in ((GaussianTables, False), (planted, True)):
        tables = made(Fraction(9), 5, top_deviation=1)

        law = tape_law(proposals(tables), bits=5, words=3)

        assert rejected(law, lambda k: pmf(k, Fraction(9))) == bad


@pytest.mark.parametrize("planted", [AllAccepted, SignForgotten])
@pytest.mark.usefixtures("remembered")
def test_a_wrong_decision_is_seen_at_once(planted: type[GaussianTables]) -> None:
    """Whether one proposal is accepted has the probability that the ratio of the densities says."""
    top, low = 3, 2  # block 1, complement: -1 - (4 + 2) = -7, and the largest density is that of -4 or 4
    ratio = weight(7, Fraction(9)) / weight(4, Fraction(9))
    expected = Fraction(*(int(part) for part in ratio.as_integer_ratio()))
    for made, bad in ((GaussianTables, False), (planted, True)):
        tables = made(Fraction(9), 4, top_deviation=1)

        law = tape_law(
            lambda tape, tables=tables: tables._decide(top, low, int(tape.take(1)[0]) >> 2, tape),  # type: ignore[misc]
            bits=4,
            words=4,
        )

        assert rejected(law, lambda yes: expected if yes else 1 - expected) == bad


# Thresholds by a second library.
@pytest.mark.parametrize("variance", [Fraction(1, 100), Fraction(1), Fraction(400, 7), Fraction(100**2)])
def test_every_threshold_of_a_value_is_the_floor_of_its_probability(variance: Fraction) -> None:
    """Values stand in the order 0, -1, 1, -2, 2, ... and t(i) = floor(2^64 P[one of the first i+1])."""
    thresholds = GaussianTables(variance, 64).top.thresholds.tolist()
    cumulative, expected = gmpy2.mpfr(0), []
    for category in range(len(thresholds)):
        cumulative += weight((category + 1) // 2, variance) / total(variance)
        expected.append(int(gmpy2.floor(gmpy2.mul_2exp(cumulative, 64))))

    assert thresholds == expected
    assert expected.index(2**64 - 1) == len(expected) - 1


@pytest.mark.parametrize("variance", WIDE)
def test_every_threshold_of_a_block_is_the_floor_of_its_probability(variance: Fraction) -> None:
    """Block j and its complement weigh exp(-(2^shift j)^2 / (2 variance)) each."""
    tables = GaussianTables(variance, 64)
    scaled = variance / (1 << 2 * tables.shift)
    half = (total(scaled) + 1) / 2  # over all blocks j >= 0
    cumulative, expected = gmpy2.mpfr(0), []
    for category in range(tables.top.thresholds.size):
        cumulative += weight(category // 2, scaled) / (2 * half)
        expected.append(int(gmpy2.floor(gmpy2.mul_2exp(cumulative, 64))))

    assert tables.top.thresholds.tolist() == expected
    assert 64**2 < scaled <= 128**2


@pytest.mark.parametrize("variance", WIDE)
def test_a_chance_that_is_sure_is_below_every_ratio_of_its_block(variance: Fraction) -> None:
    """The farthest place, that of the complement at 2^shift, has the least ratio; it is above the number."""
    tables = GaussianTables(variance, 64)
    for block, sure in enumerate(tables.sure.tolist()):
        start = block << tables.shift
        squares = (start + (1 << tables.shift)) ** 2 - start**2
        ratio = gmpy2.exp(-gmpy2.mpq(Fraction(squares) / (2 * variance)))

        assert sure <= gmpy2.mul_2exp(ratio, tables.chance_bits)
    assert tables.sure[0] > 0.99 * 2.0**tables.chance_bits


# One tape, one output.
def by_definition(variance: Fraction, size: int, tape: Tape | EndlessTape) -> list[int]:
    """The samples one by one: the words of a block in order, then exact comparisons only."""
    tables = gaussian_tables(variance, 64)
    out: list[int] = []
    while len(out) < size:
        count = min(BLOCK, size - len(out))
        words = tape.take(count).tolist()
        places = tape.take(count).tolist() if tables.shift else [0] * count
        chances = tape.take(count).tolist() if tables.shift and not tables.shares_word else places
        tops = [tables.top.category(Uniform(tape, word)) for word in words]
        for top, place, chance in zip(tops, places, chances, strict=True):
            low = place >> (64 - tables.shift)
            start = (top >> 1) << tables.shift
            away = low + (top & 1)
            gap = ((start + away) ** 2 - start**2) / (2 * variance)
            first = Uniform(tape, chance % 2**tables.chance_bits, bits=tables.chance_bits)
            if not tables.shift or first.below(lambda gap=gap: (-laws.enclose(gap)).exp()):  # type: ignore[misc]
                out.append(-1 - start - low if top & 1 else start + low)
    return out


@pytest.mark.parametrize("variance", [*VARIANCES, Fraction(128**2), Fraction(128**2) + 1, *WIDE])
def test_every_path_draws_what_exact_comparisons_give(variance: Fraction) -> None:
    """One sample at a time, each compared with certified probabilities, gives what every path gives."""
    for seed in range(2):
        tape = EndlessTape(seed)
        expected = by_definition(variance, 150, tape)
        for path in PATHS:
            again = EndlessTape(seed)

            assert tape_noise(again, path=path).discrete_gaussian(variance, 150).tolist() == expected
            assert again.used == tape.used


@given(
    st.fractions(min_value=Fraction(1, 2**20), max_value=2**100),
    st.integers(1, 300),
    st.integers(0, 10**6),
    st.sampled_from([MARGIN, 2.0**-8, 2.0**-4, 0.5]),
)
@settings(max_examples=25)
def test_paths_and_margins_change_nothing(variance: Fraction, size: int, seed: int, margin: float) -> None:
    """Whoever computes, and however much is left to enclosures, values and words used are the same."""
    tapes = [EndlessTape(seed) for _ in PATHS]
    first, *others = [
        tape_noise(tape, path=path, margin=margin if path != "exact" else MARGIN)
        .discrete_gaussian(variance, size)
        .tolist()
        for tape, path in zip(tapes, PATHS, strict=True)
    ]

    assert all(other == first for other in others)
    assert len({tape.used for tape in tapes}) == 1


@pytest.mark.parametrize("variance", [Fraction(10**6), Fraction(2**90)])
def test_blocks_follow_each_other_alike(variance: Fraction) -> None:
    """More samples than a block, rejected proposals among them, are the same with NumPy and compiled."""
    drawn = [
        tape_noise(EndlessTape(5), path=path).discrete_gaussian(variance, 2 * BLOCK + 5) for path in PATHS[1:]
    ]

    assert all((each == drawn[0]).all() for each in drawn)
    assert drawn[0].size == 2 * BLOCK + 5


def tied_tapes(variance: Fraction) -> Iterator[list[int]]:
    """Tapes for one sample on which the first word equals a threshold, or the chance is in doubt."""
    tables = gaussian_tables(variance, 64)
    thresholds = tables.top.thresholds.tolist()
    for tie in thresholds[:: max(1, len(thresholds) // 6)]:
        for further in (0, 1 << 63, 2**64 - 1):
            yield [tie, 5, 5, further, *[7] * 30] if not tables.shares_word else [tie, 5, further, *[7] * 30]
    if not tables.shift:
        return
    for top in (0, 1, 40, 41):
        place = (1 << tables.shift) * 2 // 3
        start, away = (top >> 1) << tables.shift, place + (top & 1)
        gap = Fraction((start + away) ** 2 - start**2) / (2 * variance)
        chance = laws.floor(lambda gap=gap: (-laws.enclose(gap)).exp(), tables.chance_bits)  # type: ignore[misc]
        word = (thresholds[top] + (thresholds[top - 1] if top else 0)) // 2
        for further in (0, 2**64 - 1):
            if tables.shares_word:
                yield [word, (place << tables.chance_bits) | chance, further, *[7] * 30]
            else:
                yield [word, place << (64 - tables.shift), chance, further, *[7] * 30]


@pytest.mark.parametrize("variance", [Fraction(1), Fraction(10**4), Fraction(10**6), Fraction(2**90)])
def test_ties_are_settled_alike_on_every_path(variance: Fraction) -> None:
    """Words that equal a threshold, and chances that equal a ratio, cost one word more on every path."""
    settled = 0
    for words in tied_tapes(variance):
        tape = Tape(words)
        expected = by_definition(variance, 1, tape)
        settled += 1
        for path in PATHS:
            again = Tape(words)

            assert tape_noise(again, path=path).discrete_gaussian(variance, 1).tolist() == expected
            assert again.used == tape.used
    assert settled > 10


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 2, 2**64 - 1])
@pytest.mark.parametrize("variance", [Fraction(1, 2**20), Fraction(1), Fraction(10**6), Fraction(2**124)])
def test_extreme_words_are_drawn_alike(variance: Fraction, word: int) -> None:
    """The first and the last words give equal noise on every path."""
    words = [word] * 6 + [5] * 60

    outputs = [tape_noise(Tape(words), path=path).discrete_gaussian(variance, 2).tolist() for path in PATHS]

    assert all(output == outputs[0] for output in outputs)


# The range of variances, and bad input.
def test_the_smallest_variance_draws_zero() -> None:
    """At variance 2^-20 another value has a probability below exp(-2^18)."""
    assert tape_noise(EndlessTape(1)).discrete_gaussian(Fraction(1, 2**20), 4).tolist() == [0, 0, 0, 0]


def test_the_largest_variance_draws_python_ints() -> None:
    """Beyond a variance of 2^100 nothing can wrap: noise is made of Python ints, some beyond int64."""
    top = gaussian_tables(Fraction(2**124), 64).top.thresholds.tolist()
    far = len(top) - 800
    words = [(top[far - 1] + top[far]) // 2, 2**64 - 1, 0]
    for path in PATHS:
        (drawn,) = tape_noise(Tape(words), path=path).discrete_gaussian(Fraction(2**124), 1)

        assert type(drawn) is int
        assert abs(drawn) > 2**64
        assert tape_noise(EndlessTape(2), path=path).add_gaussian([2**70], Fraction(1)).dtype == object


@pytest.mark.parametrize(
    "variance", [Fraction(1, 2**21), 2**124 + 1, 0, -1, float("nan"), None, True, "much"]
)
def test_a_bad_variance_is_refused(variance: Any) -> None:
    """Everything but a number from 2^-20 to 2^124 is an InvalidParameter named variance."""
    noise = tape_noise(Tape([]))
    calls: list[Callable[[], Any]] = [
        lambda: noise.discrete_gaussian(variance),
        lambda: noise.add_gaussian([1], variance),
    ]
    for call in calls:
        with pytest.raises(InvalidParameter, match=r"^variance "):
            call()


def test_what_is_no_integer_gets_no_noise() -> None:
    """A float is refused before any word is drawn, without showing it."""
    with pytest.raises((InvalidData, InvalidParameter)) as error:
        tape_noise(Tape([])).add_gaussian([987654321.5], Fraction(1))

    assert "987654321" not in str(error.value)
