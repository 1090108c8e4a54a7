"""Every sampler on every short tape: the law of the shipped code, within what is still undecided.

Probabilities are computed a second time here, with MPFR or with Fractions, from the laws that
docs/proofs/noise.md states and not from the code under test.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import gmpy2
import pytest
from flint import arb

from partita.testing import TapeLaw, tape_law, tape_noise
from partita.trusted.noise import laws, system
from partita.trusted.noise import laws as reals
from partita.trusted.noise import laws as tables
from partita.trusted.noise import system as selection
from partita.trusted.noise.hazard import Law
from partita.trusted.noise.laws import Exact, Tape, Uniform

ROUNDING = Fraction(1, 1 << 250)
WIDTHS = [(4, 4), (3, 6), (2, 8), (1, 16)]
SCALES = [Fraction(1, 2), Fraction(1), Fraction(3)]


@pytest.fixture(autouse=True)
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certified floors are kept: enumeration asks for the same ones thousands of times."""
    made = tables.ThresholdTable.__init__

    def with_memory(
        self: tables.ThresholdTable, tail: Callable[[int], Exact], *rest: Any, **options: Any
    ) -> None:
        made(self, cache(tail), *rest, **options)

    monkeypatch.setattr(tables.ThresholdTable, "__init__", with_memory)
    monkeypatch.setattr(reals, "floor", cache(reals.floor))


def fraction(value: Any) -> Fraction:
    numerator, denominator = value.as_integer_ratio()
    return Fraction(int(numerator), int(denominator))


def exp(x: Fraction) -> Fraction:
    """The exponential function to some 300 bits, by MPFR."""
    with gmpy2.context(gmpy2.get_context(), precision=320):
        return fraction(gmpy2.exp(gmpy2.mpq(x.numerator, x.denominator)))


def geometric_pmf(k: int, scale: Fraction) -> Fraction:
    return (1 - exp(-1 / scale)) * exp(-k / scale) if k >= 0 else Fraction(0)


def laplace_pmf(k: int, scale: Fraction) -> Fraction:
    a = exp(-1 / scale)
    return (1 - a) / (1 + a) * exp(-abs(k) / scale)


def exceeds(law: Law, level: int, scale: Fraction) -> Fraction:
    """P[noise > level]."""
    a = exp(-1 / scale)
    if law == "geometric":
        return exp(-(level + 1) / scale) if level >= 0 else Fraction(1)
    return exp(-(level + 1) / scale) / (1 + a) if level >= 0 else 1 - exp(level / scale) / (1 + a)


def check(law: TapeLaw[Any], pmf: Callable[[Any], Fraction], *, unresolved: Fraction) -> None:
    """The masses add up to one, and each is its probability but for tapes that ended too early."""
    assert sum(law.values()) + law.unresolved == 1
    assert law.unresolved <= unresolved
    assert law
    for outcome, mass in law.items():
        assert mass <= pmf(outcome) + ROUNDING, outcome
        assert pmf(outcome) <= mass + law.unresolved + ROUNDING, outcome


def rejected(law: TapeLaw[Any], pmf: Callable[[Any], Fraction]) -> bool:
    try:
        check(law, pmf, unresolved=Fraction(1))
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize(("bits", "words"), WIDTHS)
@pytest.mark.parametrize("scale", SCALES)
def test_discrete_laplace_noise_has_its_law(scale: Fraction, bits: int, words: int) -> None:
    """Over all tapes of 16 bits, each value has the probability (1-a)/(1+a) a^|k|."""
    law = tape_law(lambda tape: tape_noise(tape).discrete_laplace(scale), bits=bits, words=words)

    check(law, lambda k: laplace_pmf(k, scale), unresolved=Fraction(1, 400))


@pytest.mark.parametrize(("bits", "words"), WIDTHS)
@pytest.mark.parametrize("scale", SCALES)
def test_geometric_noise_has_its_law(scale: Fraction, bits: int, words: int) -> None:
    """Over all tapes of 16 bits, each value has the probability (1-a) a^k."""
    law = tape_law(lambda tape: tape_noise(tape).geometric(scale), bits=bits, words=words)

    check(law, lambda k: geometric_pmf(k, scale), unresolved=Fraction(1, 400))


@pytest.mark.parametrize(("name", "scale"), [("discrete_laplace", Fraction(40)), ("geometric", Fraction(70))])
@pytest.mark.thorough
def test_large_scales_in_mixed_radix_have_their_law(name: str, scale: Fraction) -> None:
    """With a low digit split off, no value is likelier than it may be, nor less likely."""
    pmf = laplace_pmf if name == "discrete_laplace" else geometric_pmf
    assert laws.tables(scale, 4).digits

    law = tape_law(lambda tape: getattr(tape_noise(tape), name)(scale), bits=4, words=4)

    check(law, lambda k: pmf(k, scale), unresolved=Fraction(3, 10))


@pytest.mark.parametrize("scale", [Fraction(40), Fraction(70), Fraction(1000)])
@pytest.mark.spread(1)
def test_sign_and_high_part_share_a_table_with_their_law(scale: Fraction) -> None:
    """M = 2^shift H + L: H is geometric with unit 2^shift, and the sign is Bernoulli(a/(1+a))."""
    drawn = laws.GeometricTables(scale, 4)
    top, minus = scale / (1 << drawn.shift), exp(-1 / scale) / (1 + exp(-1 / scale))

    law = tape_law(lambda tape: int(drawn.top.draw(1, tape)[0]), bits=4, words=4)

    check(
        law,
        lambda c: geometric_pmf(c // 2, top) * (minus if c % 2 else 1 - minus),
        unresolved=Fraction(1, 80),
    )


@pytest.mark.parametrize("scale", [Fraction(40), Fraction(70), Fraction(1000)])
def test_a_low_digit_is_truncated_geometric(scale: Fraction) -> None:
    """L is the geometric law cut off at 2^shift."""
    drawn = laws.GeometricTables(scale, 4)
    ((place, table),) = drawn.digits
    count = 1 << drawn.shift
    total = sum(geometric_pmf(k, scale) for k in range(count))

    law = tape_law(lambda tape: int(table.draw(1, tape)[0]), bits=4, words=4)

    check(law, lambda k: geometric_pmf(k, scale) / total, unresolved=Fraction(count, 1 << 16))
    assert (place, set(law)) == (0, set(range(count)))


@pytest.mark.thorough
def test_digits_of_a_huge_scale_join_into_one_truncated_geometric_law() -> None:
    """Digit by digit, P[L = l] is proportional to a^l: each digit is geometric with unit 2^place."""
    scale = Fraction(1 << 20)
    for place, table in laws.GeometricTables(scale, 4).digits:
        unit = scale / (1 << place)
        total = 1 - exp(-(table.thresholds.size + 1) / unit)

        law = tape_law(lambda tape, table=table: int(table.draw(1, tape)[0]), bits=4, words=3)  # type: ignore[misc]

        check(law, lambda k, unit=unit, total=total: geometric_pmf(k, unit) / total, unresolved=Fraction(1))  # type: ignore[misc]


def test_two_samples_from_one_tape_are_independent() -> None:
    """A pair of draws has the product of the two probabilities."""
    scale = Fraction(1, 2)

    law = tape_law(lambda tape: tuple(tape_noise(tape).discrete_laplace(scale, 2)), bits=4, words=4)

    check(
        law,
        lambda pair: laplace_pmf(pair[0], scale) * laplace_pmf(pair[1], scale),
        unresolved=Fraction(1, 10),
    )


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.spread(1)
def test_units_have_the_law_of_their_own_scale(k: int) -> None:
    """Entry i of `discrete_laplace_units(unit, k)` is discrete Laplace of scale 1 / (unit k)."""
    unit = Fraction(1, 2)

    law = tape_law(lambda tape: int(tape_noise(tape).discrete_laplace_units(unit, [k])[0]), bits=4, words=4)

    check(law, lambda x: laplace_pmf(x, 1 / (unit * k)), unresolved=Fraction(1, 4))


def test_add_adds_discrete_laplace_noise() -> None:
    """add(x, scale) has the law of x plus discrete Laplace noise."""
    law = tape_law(lambda tape: tape_noise(tape).add(7, 1), bits=4, words=4)

    check(law, lambda y: laplace_pmf(y - 7, Fraction(1)), unresolved=Fraction(1, 400))


@pytest.mark.parametrize(("bits", "words"), WIDTHS)
@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(5, 16), Fraction(1, 1000), Fraction(999, 1000)])
def test_a_coin_of_rational_probability_is_exact(p: Fraction, bits: int, words: int) -> None:
    """bernoulli(p) is true with probability p."""
    law = tape_law(lambda tape: tape_noise(tape).bernoulli(p), bits=bits, words=words)

    check(law, lambda side: p if side else 1 - p, unresolved=Fraction(1, 1 << 16))


def test_a_dyadic_coin_is_settled_by_the_digits_it_has() -> None:
    """No tape is left undecided by a probability with finitely many binary digits."""
    law = tape_law(lambda tape: tape_noise(tape).bernoulli(Fraction(5, 16)), bits=2, words=2)

    assert (law[True], law[False], law.unresolved) == (Fraction(5, 16), Fraction(11, 16), Fraction(0))


@pytest.mark.parametrize(("p", "side"), [(0, False), (1, True)])
def test_a_coin_without_doubt_has_one_side(p: int, side: bool) -> None:
    """Probabilities zero and one are kept on every tape."""
    assert tape_law(lambda tape: tape_noise(tape).bernoulli(p), words=1) == {side: 1}


@pytest.mark.parametrize("x", [Fraction(1, 7), Fraction(1), Fraction(9, 2)])
def test_a_coin_of_real_probability_is_exact(x: Fraction) -> None:
    """bernoulli of the real exp(-x) is true with probability exp(-x)."""
    real = lambda: (-arb(x.numerator) / x.denominator).exp()  # noqa: E731

    law = tape_law(lambda tape: tape_noise(tape).bernoulli(real), bits=4, words=4)

    check(law, lambda side: exp(-x) if side else 1 - exp(-x), unresolved=Fraction(1, 1 << 16))


WEIGHTS: list[Sequence[int | Fraction]] = [
    [1, 1, 1],
    [0, 3, 0, 0, 4, 0],
    [1, 2, 1, 4],
    [Fraction(1, 3), Fraction(1, 6), 0, Fraction(1, 2)],
    [1, 1000, 0, 1],
    list(range(20)),
]


@pytest.mark.parametrize(("bits", "words"), WIDTHS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_category_has_the_probability_of_its_weight(
    weights: Sequence[int | Fraction], bits: int, words: int
) -> None:
    """categorical(weights) is i with probability weights[i] / sum(weights), and never a zero weight."""
    total = sum(map(Fraction, weights))

    law = tape_law(lambda tape: tape_noise(tape).categorical(weights), bits=bits, words=words)

    check(law, lambda i: weights[i] / total, unresolved=Fraction(len(weights), 1 << 16))
    assert all(weights[i] for i in law)


def test_dyadic_categories_are_settled_by_the_digits_they_have() -> None:
    """Weights that fill a power of two leave nothing undecided."""
    law = tape_law(lambda tape: tape_noise(tape).categorical([1, 2, 1, 4]), bits=4, words=1)

    assert law == {0: Fraction(1, 8), 1: Fraction(1, 4), 2: Fraction(1, 8), 3: Fraction(1, 2)}


def softmax(scores: Sequence[int], scale: Fraction) -> Callable[[int], Fraction]:
    weights = [exp(score / scale) for score in scores]
    return lambda i: weights[i] / sum(weights)


@pytest.mark.parametrize(
    ("scores", "scale"),
    [
        ([0, 1], Fraction(1)),
        ([2, 0, 2, 1], Fraction(1)),
        ([-5, 3, 3, 3, -5], Fraction(7, 2)),
        ([0, 1, 2, 3, 4], Fraction(10)),
        ([4, 4, 4], Fraction(1, 3)),
        ([2**70, 2**70 - 1, 2**70 - 1], Fraction(1)),
        ([2**63 - 1, -(2**63), 0], Fraction(2**62)),
    ],
)
def test_a_candidate_has_the_probability_of_its_score(scores: list[int], scale: Fraction) -> None:
    """exponential(scores, scale) is i with probability proportional to exp(scores[i] / scale)."""
    law = tape_law(lambda tape: tape_noise(tape).exponential(scores, scale), bits=4, words=4)

    check(law, softmax([score - max(scores) for score in scores], scale), unresolved=Fraction(1, 20))


Runs = list[tuple[int, int]]
LAYOUTS: list[Runs] = [
    [(0, 1)],
    [(0, 3), (1, 2), (2, 4)],
    [(2, 1), (0, 0), (1, 2), (2, 1), (0, 3)],
    [(6, 40), (3, 2)],
    [(12, 5), (0, 1), (12, 5)],
]
BELOW_ZERO: list[Runs] = [[(1, 2), (-1, 2)], [(-2, 1), (-1, 2), (0, 2)], [(3, 2), (-3, 1), (5, 9)]]


def walk(tape: Tape, law: Law, scale: Fraction, runs: Runs) -> int | None:
    """The position of the first success over all runs."""
    positions, here = tape_noise(tape).first_success(law, scale), 0
    for level, length in runs:
        offset = positions.run(level, length)
        if offset is not None:
            return here + offset
        here += length
    return None


def position_pmf(law: Law, scale: Fraction, runs: Runs) -> Callable[[int | None], Fraction]:
    """Fresh noise at each position, one after another."""
    probabilities: dict[int | None, Fraction] = {}
    none = Fraction(1)
    for position, level in enumerate(level for level, length in runs for _ in range(length)):
        probabilities[position] = none * exceeds(law, level, scale)
        none *= 1 - exceeds(law, level, scale)
    probabilities[None] = none
    return lambda position: probabilities[position]


@pytest.mark.parametrize(("bits", "words"), [(4, 4), (3, 5)])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3)])
@pytest.mark.parametrize("runs", LAYOUTS + BELOW_ZERO)
@pytest.mark.parametrize("law", ["laplace", "geometric"])
@pytest.mark.spread(41)
def test_the_first_success_has_its_law(law: Law, runs: Runs, scale: Fraction, bits: int, words: int) -> None:
    """The position, or none, is that of the first fresh noise above its level."""
    found = tape_law(lambda tape: walk(tape, law, scale, runs), bits=bits, words=words)

    check(found, position_pmf(law, scale, runs), unresolved=Fraction(60, 1 << (bits * words)))


def test_a_level_below_zero_is_a_certain_success_of_geometric_noise() -> None:
    """One-sided noise always exceeds a negative level."""
    assert tape_law(lambda tape: walk(tape, "geometric", Fraction(1), [(-1, 5)]), words=1) == {0: 1}


def test_uniform_integers_are_uniform() -> None:
    """floor(count U) is each of 0, ..., count-1 with probability 1/count."""
    law = tape_law(lambda tape: Uniform(tape).integer_below(7), bits=4, words=4)

    check(law, lambda _: Fraction(1, 7), unresolved=Fraction(7, 1 << 16))
    assert set(law) == set(range(7))


def laplace_law() -> TapeLaw[int]:
    return tape_law(lambda tape: tape_noise(tape).discrete_laplace(1), bits=4, words=4)


def unit_pmf(k: int) -> Fraction:
    return laplace_pmf(k, Fraction(1))


@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize("index", range(5))
def test_a_threshold_that_is_off_by_one_is_caught(
    monkeypatch: pytest.MonkeyPatch, index: int, by: int
) -> None:
    """One threshold one word too high or too low does not pass the check."""
    planted = laws.GeometricTables(Fraction(1), 4)
    thresholds = planted.top.thresholds.astype(int)
    thresholds[index] += by
    planted.top.thresholds[:] = thresholds.clip(0, 15)
    planted.top._padded[:-1] = planted.top.thresholds
    monkeypatch.setattr(system, "tables", lambda scale, bits: planted)

    assert rejected(laplace_law(), unit_pmf)


@pytest.mark.parametrize("wrong", [Fraction(1, 2), Fraction(2), Fraction(50, 49)])
def test_a_wrong_scale_is_caught(monkeypatch: pytest.MonkeyPatch, wrong: Fraction) -> None:
    """Half or twice the scale, or one that is 2% off, does not pass the check."""
    planted = laws.GeometricTables(wrong, 4)
    monkeypatch.setattr(system, "tables", lambda scale, bits: planted)

    assert rejected(laplace_law(), unit_pmf)


def test_a_fair_sign_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sign of probability 1/2 instead of a/(1+a) does not pass the check."""

    def fair(self: laws.GeometricTables, category: int) -> Any:
        high, minus = divmod(category, 2)
        above, step = self._survival(high), self._survival(1)
        return lambda: above() * (1 + step()) / 2 if minus else above()

    monkeypatch.setattr(laws.GeometricTables, "_signed_tail", fair)
    planted = laws.GeometricTables(Fraction(1), 4)
    monkeypatch.setattr(system, "tables", lambda scale, bits: planted)

    assert rejected(laplace_law(), unit_pmf)


def test_a_lost_candidate_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class of equal scores that counts once instead of twice does not pass the check."""
    scores, made = [1, 0, 0], selection.Softmax.__init__

    def once(self: selection.Softmax, *given: Any) -> None:
        made(self, *given)
        self._counts = [1] * len(self._counts)

    monkeypatch.setattr(selection.Softmax, "__init__", once)
    law = tape_law(lambda tape: tape_noise(tape).exponential(scores, 1), bits=4, words=4)

    assert rejected(law, softmax(scores, Fraction(1)))


def test_an_off_by_one_level_is_caught() -> None:
    """A first success at noise >= level instead of noise > level does not pass the check."""
    runs = [(1, 3), (2, 2)]
    law = tape_law(lambda tape: walk(tape, "laplace", Fraction(1), [(k - 1, n) for k, n in runs]))

    assert rejected(law, position_pmf("laplace", Fraction(1), runs))


def test_words_used_twice_are_caught() -> None:
    """Two draws that share their words do not pass for independent ones."""

    def reused(tape: Tape) -> Hashable:
        first = tape_noise(tape).discrete_laplace(1)
        return first, first

    law = tape_law(reused, bits=4, words=4)

    assert rejected(law, lambda pair: unit_pmf(pair[0]) * unit_pmf(pair[1]))


@pytest.mark.parametrize("path", ["exact", "numpy", "compiled", "auto"])
def test_narrow_words_are_drawn_alike_on_every_path(path: system.Path) -> None:
    """The law that is enumerated is the law of every path."""
    law = tape_law(lambda tape: tape_noise(tape, path=path).discrete_laplace(3), bits=4, words=3)

    assert law == tape_law(lambda tape: tape_noise(tape).discrete_laplace(3), bits=4, words=3)
