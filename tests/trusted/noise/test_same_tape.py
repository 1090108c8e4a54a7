"""One tape, one output: who does the arithmetic never changes what comes out or what is used up."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from partita.testing import EndlessTape, tape_noise
from partita.trusted.noise import laws
from partita.trusted.noise.laws import BLOCK, Tape, ThresholdTable, Uniform, floor, tables
from partita.trusted.noise.system import Path, SystemNoise

BOTH: tuple[Path, ...] = ("numpy", "compiled")
PATHS: tuple[Path, ...] = ("exact", "numpy", "compiled", "auto")
SCALES = [Fraction(scale) for scale in ("1/1000", "1/4", "1", "7/3", "20", "32", "33", "1000", "123457/10")]
CASES_PER_SCALE = 250

pytestmark = pytest.mark.skipif(not laws.available(), reason="the compiled path needs the `fast` extra")


def by_category(name: str, scale: Fraction, size: int, tape: Tape | EndlessTape) -> list[int]:
    """The samples one by one: the words of a block in order, then exact comparisons only."""
    drawn, out = tables(scale, 64), []
    for count in [BLOCK] * (size // BLOCK) + [size % BLOCK]:
        parts = [drawn.top, *(table for _, table in drawn.digits)]
        rows = [tape.take(count).tolist() for _ in parts]
        top, *digits = [
            [_category(table, word, tape) for word in row] for table, row in zip(parts, rows, strict=True)
        ]
        for i in range(count):
            low = sum(digit[i] << place for (place, _), digit in zip(drawn.digits, digits, strict=True))
            high, minus = divmod(top[i], 2)
            magnitude = (high << drawn.shift) + low
            out.append(-1 - magnitude if minus and name == "discrete_laplace" else magnitude)
    return out


def _category(table: ThresholdTable, word: int, tape: Tape | EndlessTape) -> int:
    return table.category(Uniform(tape, word))


def drawn(noise: SystemNoise, name: str, scale: Fraction, size: int) -> list[int]:
    if name == "discrete_laplace_units":
        values: Any = noise.discrete_laplace_units(1 / scale, np.arange(1, size + 1))
    else:
        values = getattr(noise, name)(scale, size)
    return [int(value) for value in values]


@pytest.mark.parametrize("name", ["discrete_laplace", "geometric", "discrete_laplace_units"])
@pytest.mark.parametrize("scale", SCALES)
def test_numpy_and_compiled_code_draw_the_same(scale: Fraction, name: str) -> None:
    """On random sizes and tapes, both paths give equal noise and use equally many words."""
    for seed in range(CASES_PER_SCALE // 2):
        size = (seed * 37) % 101
        tapes = [EndlessTape((name, seed)) for _ in range(2)]
        outputs = [
            drawn(tape_noise(tape, path=path), name, scale, size)
            for tape, path in zip(tapes, BOTH, strict=True)
        ]

        assert outputs[0] == outputs[1]
        assert tapes[0].used == tapes[1].used > 0 or size == 0


@pytest.mark.parametrize("name", ["discrete_laplace", "geometric"])
@pytest.mark.parametrize("scale", [*SCALES, Fraction(2**50), Fraction(2**62)])
def test_every_path_draws_what_exact_comparisons_give(scale: Fraction, name: str) -> None:
    """One sample at a time, each compared with certified cumulative probabilities."""
    for seed in range(5):
        expected = by_category(name, scale, 20, EndlessTape(seed))
        for path in PATHS:
            assert drawn(tape_noise(EndlessTape(seed), path=path), name, scale, 20) == expected


def test_blocks_change_nothing_but_the_order_of_words() -> None:
    """One sample more than a block gives what exact comparisons give, block by block."""
    size = BLOCK + 1
    expected = by_category("geometric", Fraction(40), size, EndlessTape(size))

    for path in PATHS:
        assert drawn(tape_noise(EndlessTape(size), path=path), "geometric", Fraction(40), size) == expected


def tied_tapes(scale: Fraction) -> list[list[int]]:
    """Tapes for two samples on which a first word equals a threshold, in every table."""
    drawn = tables(scale, 64)
    parts = [drawn.top, *(table for _, table in drawn.digits)]
    found = []
    for place, table in enumerate(parts):
        for tie in table.thresholds[:: max(1, table.thresholds.size // 4)].tolist():
            for sample in range(2):
                for further in (0, 1 << 63, 2**64 - 1):
                    words = EndlessTape((place, tie)).take(2 * len(parts)).tolist()
                    words[2 * place + sample] = tie
                    found.append([*words, further, 5, 5])
    return found


@pytest.mark.parametrize("name", ["discrete_laplace", "geometric"])
@pytest.mark.parametrize("scale", [Fraction(1, 4), Fraction(1), Fraction(40), Fraction(2**30)])
def test_ties_are_settled_alike_on_every_path(scale: Fraction, name: str) -> None:
    """Words that equal a threshold cost one word more, and the outcome is the exact one."""
    first = 2 * tables(scale, 64).words_per_sample
    for words in tied_tapes(scale):
        expected_tape = Tape(words)
        expected = by_category(name, scale, 2, expected_tape)
        assert expected_tape.used > first
        for path in PATHS:
            tape = Tape(words)

            assert drawn(tape_noise(tape, path=path), name, scale, 2) == expected
            assert tape.used == expected_tape.used


def test_the_next_word_of_a_tie_decides_which_side_it_falls_on() -> None:
    """Behind a word that equals the first threshold, a low word stays below it and a high word passes."""
    tie = int(tables(Fraction(1), 64).top.thresholds[0])
    for path in PATHS:
        low, high = (
            tape_noise(Tape([tie, further]), path=path).discrete_laplace(1) for further in (0, 2**64 - 1)
        )

        assert (low, high) == (0, -1)


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(40)])
def test_a_tie_with_two_equal_words_asks_for_a_third(scale: Fraction) -> None:
    """A second word that equals the next digits of the threshold leaves the doubt for the word behind it."""
    drawn = tables(scale, 64)
    second = ~floor(drawn.top._tail(1), 128) & (2**64 - 1)
    rest = [0] * len(drawn.digits)
    for path in PATHS:
        tapes = [Tape([int(drawn.top.thresholds[0]), *rest, second, third]) for third in (0, 2**64 - 1)]
        outcomes = [tape_noise(tape, path=path).discrete_laplace(scale) for tape in tapes]

        assert [tape.used for tape in tapes] == [len(rest) + 3] * 2
        assert outcomes == [0, -1]


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 2, 2**64 - 1])
@pytest.mark.parametrize("scale", SCALES)
def test_extreme_words_are_drawn_alike(scale: Fraction, word: int) -> None:
    """The first and the last words give equal noise on every path."""
    first = 3 * tables(scale, 64).words_per_sample
    tapes = [Tape([word] * first + [5] * 20) for _ in PATHS]
    outputs = [
        drawn(tape_noise(tape, path=path), "discrete_laplace", scale, 3)
        for tape, path in zip(tapes, PATHS, strict=True)
    ]

    assert all(a == b for a, b in pairwise(outputs))
    assert all(a.used == b.used for a, b in pairwise(tapes))


def test_a_session_continues_on_the_words_that_follow() -> None:
    """Two draws of a session are the two halves of one tape."""
    session = tape_noise(EndlessTape(3)).session()
    both = [session.discrete_laplace(5), session.discrete_laplace(5)]

    assert tape_noise(EndlessTape(3)).discrete_laplace(5, 2).tolist() == both
