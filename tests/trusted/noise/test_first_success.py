"""`FirstSuccess`: a pure function of the uniform, however runs are split and whoever decides."""

from __future__ import annotations

from fractions import Fraction

import gmpy2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.testing import EndlessTape, tape_noise
from partita.trusted.noise import hazard as hazard_module
from partita.trusted.noise.hazard import MARGIN, FirstSuccess, Law, hazard
from partita.trusted.noise.laws import Tape, Uniform

MARGINS = [MARGIN, 2.0**-8, 2.0**-4, 0.5]
LAWS: tuple[Law, ...] = ("laplace", "geometric")
Runs = list[tuple[int, int]]


def walk(found: FirstSuccess, runs: Runs) -> int | None:
    here = 0
    for level, length in runs:
        offset = found.run(level, length)
        if offset is not None:
            return here + offset
        here += length
    return None


def scattered(seed: int, scale: Fraction) -> Runs:
    """Some runs with levels of a few scales."""
    words = EndlessTape(("runs", seed)).take(24).tolist()
    spread = int(12 * scale) + 2
    return [
        (a % spread - spread // 8, b % (1 << (c % 40))) for a, b, c in zip(*[iter(words)] * 3, strict=True)
    ]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(50), Fraction(10**6)])
def test_margins_change_neither_position_nor_words(law: Law, scale: Fraction) -> None:
    """From no exact decision at all to nearly all of them, the outcome stays."""
    for seed in range(60):
        runs, outcomes = scattered(seed, scale), set()
        for margin in MARGINS:
            tape = EndlessTape((law, seed))
            outcomes.add((walk(tape_noise(tape, margin=margin).first_success(law, scale), runs), tape.used))

        assert len(outcomes) == 1


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("precision", [2, 8, 24, 64])
def test_the_first_precision_changes_neither_position_nor_words(
    monkeypatch: pytest.MonkeyPatch, law: Law, precision: int
) -> None:
    """Integers of a few bits bound the offset and double while there is doubt: the outcome stays."""
    scale = Fraction(7, 2)
    for seed in range(60):
        runs, outcomes = scattered(seed, scale), set()
        for bits in (192, precision):
            monkeypatch.setattr(hazard_module, "PRECISION", bits)
            tape = EndlessTape((law, seed))
            outcomes.add((walk(tape_noise(tape, margin=0.5).first_success(law, scale), runs), tape.used))

        assert len(outcomes) == 1


def test_the_widest_margin_sends_most_decisions_to_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the margins compare are different code paths: floats decide runs at 2^-36, never near 1."""
    counted: list[float] = []
    settled = FirstSuccess._settled

    def count(self: FirstSuccess, level: int, length: int) -> int:
        counted.append(self._margin)
        return settled(self, level, length)

    monkeypatch.setattr(FirstSuccess, "_settled", count)
    runs = [(9, 3)] * 200
    widest = 1 - 2.0**-20
    for margin in (MARGIN, widest):
        walk(tape_noise(Tape([1 << 63]), margin=margin).first_success("laplace", Fraction(1)), runs)

    assert (counted.count(MARGIN), counted.count(widest)) == (0, 200)


@given(
    st.sampled_from(LAWS),
    st.sampled_from([Fraction(1, 2), Fraction(2), Fraction(100)]),
    st.lists(st.tuples(st.integers(-3, 40), st.integers(0, 30)), min_size=1, max_size=8),
    st.integers(0, 2**64 - 1),
    st.data(),
)
def test_runs_may_be_split_at_will(
    law: Law, scale: Fraction, runs: Runs, word: int, data: st.DataObject
) -> None:
    """Any cut of a run into shorter ones finds the same position from the same words."""
    split: Runs = []
    for level, length in runs:
        cut = data.draw(st.integers(0, length))
        split += [(level, cut), (level, length - cut)]
    tapes = [Tape([word, 7, 7, 7]) for _ in range(2)]

    whole, pieces = (
        walk(tape_noise(tape).first_success(law, scale), each)
        for tape, each in zip(tapes, (runs, split), strict=True)
    )

    assert whole == pieces
    assert tapes[0].used == tapes[1].used


@given(
    st.sampled_from(LAWS), st.integers(0, 2**64 - 1), st.lists(st.integers(1, 2**62), min_size=1, max_size=4)
)
def test_long_runs_may_be_split_too(law: Law, word: int, lengths: list[int]) -> None:
    """One run of up to 2^64 positions is the same as its parts."""
    scale, level = Fraction(30), 30 * 43
    whole = walk(tape_noise(Tape([word, 1, 1])).first_success(law, scale), [(level, sum(lengths))])
    pieces = walk(tape_noise(Tape([word, 1, 1])).first_success(law, scale), [(level, n) for n in lengths])

    assert whole == pieces


def test_positions_of_a_run_do_not_depend_on_its_length() -> None:
    """A success found in a long run is found at the same offset in any run that holds it."""
    word = EndlessTape(5).take(1).tolist()[0]
    offset = tape_noise(Tape([word, 1, 1])).first_success("laplace", Fraction(5)).run(40, 2**64)
    assert offset is not None

    for length in (offset + 1, offset + 2, 10**12):
        assert tape_noise(Tape([word, 1, 1])).first_success("laplace", Fraction(5)).run(40, length) == offset
    assert tape_noise(Tape([word, 1, 1])).first_success("laplace", Fraction(5)).run(40, offset) is None


@pytest.mark.parametrize("law", LAWS)
def test_a_larger_word_never_succeeds_earlier(law: Law) -> None:
    """The position grows with the uniform."""
    words = [0, 1, 2**20, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2**20, 2**64 - 2, 2**64 - 1]
    found = [tape_noise(Tape([word, 9, 9])).first_success(law, Fraction(3)).run(30, 10**9) for word in words]

    assert found == sorted(offset for offset in found if offset is not None)


def test_a_rare_success_is_compared_before_it_is_cast() -> None:
    """With hazards near 2^-76, where offsets pass int64, 2^64 positions hold no success."""
    found = tape_noise(Tape([1 << 63])).first_success("geometric", Fraction(1))

    assert found.run(53, 2**64) is None


def test_a_hazard_too_small_for_a_float_ends_no_run() -> None:
    """Levels so high that hazards underflow pass without a success, and without a doubt."""
    tape = Tape([1])

    assert tape_noise(tape).first_success("laplace", Fraction(1)).run(2**62, 2**64) is None
    assert tape.used == 1


def test_the_least_word_succeeds_at_the_first_position() -> None:
    """U below 2^-64 lies below any hazard larger than that."""
    assert tape_noise(Tape([0, 0])).first_success("laplace", Fraction(1)).run(3, 10) == 0


def test_an_empty_run_is_no_success() -> None:
    """A run without positions draws nothing and returns None."""
    found = tape_noise(Tape([0])).first_success("geometric", Fraction(1))

    assert found.run(-5, 0) is None


def test_a_boundary_word_asks_for_more_digits() -> None:
    """Where the first word leaves two offsets possible, the next word decides."""
    for margin in MARGINS:
        tapes = [Tape([_tie(), further, 3]) for further in (0, 2**64 - 1)]
        offsets = [
            FirstSuccess(hazard("geometric", Fraction(1)), Uniform(tape), margin=margin).run(0, 5)
            for tape in tapes
        ]

        assert offsets == [0, 1]
        assert [tape.used for tape in tapes] == [2, 2]


def _tie() -> int:
    """floor(2^64 P[noise > 0]): the word that leaves open whether the first position succeeds."""
    with gmpy2.context(gmpy2.get_context(), precision=200):
        return int(gmpy2.floor(gmpy2.exp(-1) * 2**64))


def test_hazards_are_made_once() -> None:
    """A law and a scale share one table of hazards."""
    assert hazard("laplace", Fraction(3)) is hazard("laplace", Fraction(3))
