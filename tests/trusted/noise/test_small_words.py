"""The first words of all: E = -ln(1 - U) is tiny, and an absolute error of it is a large part of it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpfr

from partita import Histogram, Partition
from partita.testing import EndlessTape, tape_noise
from partita.trusted.noise import laws
from partita.trusted.noise.hazard import MARGIN, Law
from partita.trusted.noise.laws import Tape
from partita.trusted.noise.system import Path

LAWS: tuple[Law, ...] = ("geometric", "laplace")
PATHS: tuple[Path, ...] = ("exact", "numpy", "compiled") if laws.available() else ("exact", "numpy")
THRESHOLD = 60
UNIT = 32
"""A hazard is about the target of this word: multiples of it lie next to whole numbers of hazards."""


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with gmpy2.context(gmpy2.get_context(), precision=300):
        yield


def target(word: int) -> Any:
    """-ln(1 - word / 2^64)."""
    return 64 * gmpy2.log(mpfr(2)) - gmpy2.log(mpfr(2**64 - word))


def hazard(law: Law, rate: Any) -> Any:
    """-ln P[noise <= THRESHOLD] at scale 1 / rate."""
    beyond = gmpy2.exp(-(THRESHOLD + 1) * rate)
    return -gmpy2.log1p(-beyond if law == "geometric" else -beyond / (1 + gmpy2.exp(-rate)))


def rate_of(law: Law, wanted: Any) -> Fraction:
    """The rate at which the hazard of the threshold is `wanted`, to thirty digits or more."""
    low, high = mpfr(1) / 100, mpfr(10)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if hazard(law, middle) > wanted else (low, middle)
    return Fraction(int(low * 2**120), 2**120)


def outcomes(
    partition: Partition, words: list[int], data: Any = (), margin: float = MARGIN
) -> list[tuple[list[int], int]]:
    """The edges and the number of words used, on every path."""
    found = []
    for path in PATHS:
        tape = Tape([*words, *[2**63] * 9_000])
        edges = partition.cut(data, noise=tape_noise(tape, path=path, margin=margin)).edges
        found.append((edges.tolist(), tape.used))
    return found


def test_a_word_of_the_first_thousand_seals_where_the_exact_path_seals() -> None:
    """Five hazards are more than E of word 683 by a part of 10^-11, so the segment ends at cell 4, not 5."""
    rate = rate_of("geometric", target(683) / 5 * (1 + mpfr(10) ** -11))
    partition = Partition(size=2**40, threshold=THRESHOLD, epsilon=rate)

    for edges, used in outcomes(partition, [0, 683, 0, 0, 0]):
        assert (edges, used) == ([4, 5, 2**40 - 1], 7)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("size", [2**31, 2**40])
def test_small_words_seal_alike_on_all_paths(law: Law, size: int) -> None:
    """Words below 32 and words next to multiples of 32, up to 6,400, give one cut on all paths.

    Pairs of floats are off by up to a part of 2.2e-11 above and 4e-13 below. A target that lies less than
    that below a whole number of hazards must not be taken for one above it, nor the other way round.
    """
    multiples = range(UNIT, 6_401, UNIT)
    # No noise on the threshold, the word, and a second word that decides on which side the uniform lies.
    below = [word for each in multiples for word in (0, each, 0)]
    above = [word for each in multiples for word in (0, each - 1, 2**64 - 1)]
    first = [word for each in range(UNIT) for word in (0, each)]
    for apart, words in ((1e-12, [*below, *first]), (-2e-13, [*above, *first])):
        wanted = target(UNIT) * (1 + mpfr(apart))
        partition = Partition(size=size, threshold=THRESHOLD, epsilon=rate_of(law, wanted), law=law)

        exact, *others = outcomes(partition, words)

        assert len(exact[0]) > len(multiples)
        assert all(other == exact for other in others)


@pytest.mark.parametrize("margin", [MARGIN, 2.0**-8, 0.5])
def test_small_words_behind_items_seal_alike(margin: float) -> None:
    """With weights under way, and whatever is left to exact arithmetic, small words give one cut."""
    words = (EndlessTape("small").take(300) % np.uint64(1 << 13)).tolist()
    cells = np.unique(EndlessTape("cells").take(400) % np.uint64(1 << 12))
    data = Histogram.from_cells(cells.astype(np.int64), size=2**40)
    partition = Partition(size=2**40, threshold=THRESHOLD, epsilon=rate_of("geometric", target(UNIT)))

    exact, *others = outcomes(partition, words, data, margin)

    assert len(exact[0]) > 20
    assert all(other == exact for other in others)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("size", [2**31, 2**40, 2**64])
def test_word_zero_at_a_level_without_hazard_seals_alike(law: Law, size: int) -> None:
    """Word 0 may end a segment at once, also at a level whose hazard no pair of floats holds."""
    partition = Partition(size=size, threshold=300, epsilon=1, law=law)

    exact, *others = outcomes(partition, [2**63, 0, 0, 0])

    assert all(other == exact for other in others)


def test_the_number_of_cells_chooses_who_computes_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether compiled code pays depends on how many cells hold something; edges and words used do not."""
    cells = np.arange(0, 3_000, 7)
    data = Histogram.from_cells(cells, size=2**40)
    partition = Partition(size=2**40, epsilon=1)
    found = []
    for worthwhile in (False, laws.available()):
        monkeypatch.setattr(laws, "worthwhile", lambda count, *, large, answer=worthwhile: answer)
        tape = EndlessTape("choice")
        found.append((partition.cut(data, noise=tape_noise(tape)).edges.tolist(), tape.used))

    assert found[0] == found[1]


def test_kernels_that_cannot_be_loaded_do_not_fail_for_large_data_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If loading the kernels fails, the same cut is computed without them."""
    data = Histogram.from_cells(np.arange(5_000), size=2**40)
    partition = Partition(size=2**40, epsilon=1)

    def fail(name: str) -> None:
        raise ImportError(name)

    expected = partition.cut(data, noise=tape_noise(EndlessTape("load"), path="numpy")).edges.tolist()
    monkeypatch.setattr(laws, "find_spec", lambda name: object())
    monkeypatch.setattr(laws, "import_module", fail)
    monkeypatch.setattr(laws, "POSITIONS", 1)
    for remembered in (laws.available, laws.kernels, laws._loads):
        remembered.cache_clear()
    try:
        found = partition.cut(data, noise=tape_noise(EndlessTape("load"))).edges.tolist()
    finally:
        for remembered in (laws.available, laws.kernels, laws._loads):
            remembered.cache_clear()

    assert found == expected
