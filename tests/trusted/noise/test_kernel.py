"""The sampler of `os.urandom` and Python ints: exact, and free of everything else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import gmpy2
import pytest

from partita.trusted.noise import kernel


class Rejected(Exception):
    """The feed ran dry: the sampler asked for another try."""


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """os.urandom gives these bytes, then refuses."""
    left = [data]

    def urandom(count: int) -> bytes:
        if count > len(left[0]):
            raise Rejected
        given, left[0] = left[0][:count], left[0][count:]
        return given

    monkeypatch.setattr(os, "urandom", urandom)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Rejected:
        return "again"


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7, 8, 100, 255, 256])
def test_below_is_uniform_over_all_byte_values(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Of the 256 first bytes, every result has equally many, and the rest ask for another byte."""
    found: Counter[Any] = Counter()
    for byte in range(256):
        feed(monkeypatch, bytes([byte]))
        found[outcome(lambda: kernel.below(count))] += 1

    again = found.pop("again", 0)
    assert found == dict.fromkeys(range(count), (256 - again) // count)
    assert again <= 128


def test_below_uses_two_bytes_where_one_is_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all 65,536 pairs of bytes, 0..999 come equally often."""
    found: Counter[Any] = Counter()
    for pair in range(1 << 16):
        feed(monkeypatch, pair.to_bytes(2, "little"))
        found[outcome(lambda: kernel.below(1000))] += 1

    assert found.pop("again") == 24 * 64
    assert found == dict.fromkeys(range(1000), 64)


def test_below_tries_again_with_fresh_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rejected byte is followed by the next one."""
    feed(monkeypatch, bytes([7, 6, 5, 2]))

    assert kernel.below(5) == 2


@pytest.mark.parametrize(
    "p", [Fraction(0), Fraction(1, 2), Fraction(3, 8), Fraction(2, 7), Fraction(1), Fraction(199, 200)]
)
def test_a_coin_has_its_probability_over_all_byte_values(
    monkeypatch: pytest.MonkeyPatch, p: Fraction
) -> None:
    """Among the bytes that decide, the share of true ones is exactly p."""
    found: Counter[Any] = Counter()
    for byte in range(256):
        feed(monkeypatch, bytes([byte]))
        found[outcome(lambda: kernel.bernoulli(p))] += 1

    assert Fraction(found[True], found[True] + found[False]) == p


class Branches:
    """Every way that uniform integers can fall, with its mass, down to a least mass."""

    def __init__(self, least: Fraction) -> None:
        self.least = least
        self.plan: list[tuple[int, int]] = []

    def laws(self, call: Callable[[], int]) -> Iterator[tuple[int | None, Fraction]]:
        while True:
            self.depth, self.mass = 0, Fraction(1)
            try:
                yield call(), self.mass
            except Rejected:
                yield None, self.mass
            del self.plan[self.depth :]
            while self.plan and self.plan[-1][0] + 1 == self.plan[-1][1]:
                self.plan.pop()
            if not self.plan:
                return
            choice, count = self.plan[-1]
            self.plan[-1] = (choice + 1, count)

    def below(self, count: int) -> int:
        if self.mass < self.least:
            raise Rejected
        if self.depth == len(self.plan):
            self.plan.append((0, count))
        choice, planned = self.plan[self.depth]
        assert planned == count
        self.depth += 1
        self.mass /= count
        return choice


def law_of(
    monkeypatch: pytest.MonkeyPatch, call: Callable[[], int], least: Fraction
) -> tuple[dict[int, Fraction], Fraction]:
    """The mass of each result and of what was cut off, with `below` exactly uniform."""
    branches = Branches(least)
    monkeypatch.setattr(kernel, "below", branches.below)
    monkeypatch.setattr(kernel, "bernoulli", lambda p: _coin(branches, p))
    law: dict[int, Fraction] = {}
    undecided = Fraction(0)
    for result, mass in branches.laws(call):
        if result is None:
            undecided += mass
        else:
            law[result] = law.get(result, Fraction(0)) + mass
    return law, undecided


def _coin(branches: Branches, p: Fraction) -> bool:
    """A coin in two branches of unequal mass."""
    if p in (0, 1):
        return p == 1
    tails = branches.below(2) == 1
    branches.mass *= 2 * (1 - p if tails else p)
    return not tails


def exp(x: Fraction) -> Fraction:
    with gmpy2.context(gmpy2.get_context(), precision=300):
        numerator, denominator = gmpy2.exp(gmpy2.mpq(x.numerator, x.denominator)).as_integer_ratio()
        return Fraction(int(numerator), int(denominator))


def check(
    law: dict[int, Fraction], undecided: Fraction, pmf: Callable[[int], Fraction], most: Fraction
) -> None:
    assert sum(law.values()) + undecided == 1
    assert undecided <= most
    for result, mass in law.items():
        assert mass <= pmf(result) + Fraction(1, 2**200)
        assert pmf(result) <= mass + undecided + Fraction(1, 2**200)


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(4)])
def test_an_exponential_coin_has_its_probability(monkeypatch: pytest.MonkeyPatch, x: Fraction) -> None:
    """bernoulli_exp(x) is true with probability exp(-x), but for branches below 2^-40."""
    law, undecided = law_of(monkeypatch, lambda: int(kernel.bernoulli_exp(x)), Fraction(1, 2**40))

    check(law, undecided, lambda side: exp(-x) if side else 1 - exp(-x), Fraction(1, 2**30))


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(2), Fraction(3, 2)])
def test_geometric_reports_have_their_law(monkeypatch: pytest.MonkeyPatch, scale: Fraction) -> None:
    """k has probability (1-a) a^k, but for branches below 2^-12."""
    law, undecided = law_of(monkeypatch, lambda: kernel.geometric(scale), Fraction(1, 2**12))

    check(law, undecided, lambda k: (1 - exp(-1 / scale)) * exp(-k / scale), Fraction(1, 10))


def test_laplace_reports_have_their_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """k has probability (1-a)/(1+a) a^|k|, but for branches below 2^-11."""
    law, undecided = law_of(monkeypatch, lambda: kernel.discrete_laplace(Fraction(1, 2)), Fraction(1, 2**11))
    a = exp(Fraction(-2))

    check(law, undecided, lambda k: (1 - a) / (1 + a) * exp(Fraction(-2 * abs(k))), Fraction(1, 4))


def test_a_wrong_scale_of_reports_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same check refuses half the scale."""
    law, undecided = law_of(monkeypatch, lambda: kernel.geometric(Fraction(1, 2)), Fraction(1, 2**12))

    with pytest.raises(AssertionError):
        check(law, undecided, lambda k: (1 - exp(Fraction(-1))) * exp(Fraction(-k)), Fraction(1, 10))


@pytest.mark.parametrize("size", [1, 16, 33])
def test_a_token_names_its_bytes(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """A token of n bytes is their 2n hexadecimal digits."""
    feed(monkeypatch, bytes(range(64)))

    assert kernel.token(size) == bytes(range(size)).hex()


def test_a_token_has_sixteen_bytes_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """128 bits: names do not meet by chance."""
    feed(monkeypatch, bytes(64))

    assert kernel.token() == "0" * 32


@pytest.mark.faults
def test_the_kernel_sampler_needs_the_standard_library_only() -> None:
    """Importing it loads neither numpy nor flint nor a cipher."""
    program = (
        "import sys, partita.trusted.noise.kernel as k;"
        "k.discrete_laplace(__import__('fractions').Fraction(2));"
        "print(sorted({'numpy', 'flint', 'cryptography', 'pyarrow', 'numba', 'random'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
