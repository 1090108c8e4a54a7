"""`Sweep` against `FirstSuccess`: the same ends from the same words, in Python and compiled."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from partita.arrays import Ints, UInts
from partita.testing import EndlessTape, tape_noise
from partita.trusted.noise import laws
from partita.trusted.noise.hazard import MARGIN, Law
from partita.trusted.noise.laws import Tape
from partita.trusted.noise.system import Path

LAWS: tuple[Law, ...] = ("laplace", "geometric")
PATHS: tuple[Path, ...] = ("numpy", "compiled")

pytestmark = pytest.mark.skipif(not laws.available(), reason="the compiled path needs the `fast` extra")


class Stream(NamedTuple):
    law: Law
    scale: Fraction
    threshold: int
    positions: UInts
    weights: Ints
    last: int


def stream(seed: int, law: Law, scale: Fraction, last: int, items: int, most: int) -> Stream:
    """Random items, and a threshold at which about one end in e universes is pure chance."""
    words = EndlessTape(("stream", seed)).take(2 * items)
    positions = np.unique(words[:items] if last == 2**64 - 1 else words[:items] % np.uint64(last + 1))
    weights = (words[items : items + positions.size] % np.uint64(most)).astype(np.int64) + 1
    return Stream(law, scale, math.ceil(scale * (math.log(last + 1) + 1)), positions, weights, last)


def end_by_runs(given: Stream, start: int, tape: Tape | EndlessTape) -> int:
    """The end of one segment: run by run, exactly."""
    noise = tape_noise(tape, path="exact")
    level = given.threshold + noise.draw(given.law, given.scale)
    found, here = noise.first_success(given.law, given.scale), start
    items = zip(given.positions.tolist(), given.weights.tolist(), strict=True)
    for position, weight in [*(item for item in items if item[0] >= start), (given.last + 1, 0)]:
        offset = found.run(level, position - here)
        if offset is not None:
            return here + offset
        here, level = position, level - weight
    return given.last


def ends_by_runs(given: Stream, tape: Tape | EndlessTape) -> list[int]:
    ends: list[int] = []
    while not ends or ends[-1] < given.last:
        ends.append(end_by_runs(given, ends[-1] + 1 if ends else 0, tape))
    return ends


def ends_by_sweep(
    given: Stream, tape: Tape | EndlessTape, path: Path, margin: float
) -> tuple[list[int], int]:
    """The ends, and how many of them the sweep left to the exact code."""
    sweep = tape_noise(tape, path=path, margin=margin).segments(*given)
    assert sweep is not None
    ends: list[int] = []
    doubts = 0
    while not ends or ends[-1] < given.last:
        ends += sweep.ends(ends[-1] + 1 if ends else 0).tolist()
        if not ends or ends[-1] < given.last:
            ends.append(end_by_runs(given, ends[-1] + 1 if ends else 0, tape))
            doubts += 1
    return ends, doubts


CASES = [(Fraction(1, 2), 300, 200, 3), (Fraction(2), 10**4, 500, 4), (Fraction(30), 2**40, 300, 60)]
WIDE = [
    (Fraction(5), 2**64 - 1, 300, 20),
    (Fraction(1000), 2**64 - 1, 100, 5000),
    (Fraction(10**7), 2**50, 50, 10**7),
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("scale", "last", "items", "most"), CASES + WIDE)
@pytest.mark.spread(4)
def test_a_sweep_finds_the_ends_that_runs_find(
    path: Path, law: Law, scale: Fraction, last: int, items: int, most: int
) -> None:
    """From the same words come the same ends, and the same words are used up."""
    doubts = segments = 0
    for seed in range(8):
        given = stream(seed, law, scale, last, items, most)
        tapes = [EndlessTape((law, seed)) for _ in range(2)]

        expected = ends_by_runs(given, tapes[0])
        found, doubtful = ends_by_sweep(given, tapes[1], path, MARGIN)

        assert found == expected
        assert tapes[0].used == tapes[1].used
        doubts, segments = doubts + doubtful, segments + len(found)
    assert scale >= 1000 or doubts <= segments / 2


@pytest.mark.parametrize("margin", [2.0**-8, 2.0**-4, 0.5])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("scale", "last", "items", "most"), [CASES[1], WIDE[0]])
@pytest.mark.spread(8)
def test_margins_change_no_end(
    margin: float, path: Path, law: Law, scale: Fraction, last: int, items: int, most: int
) -> None:
    """However many segments are in doubt, the ends and the words stay."""
    given = stream(99, law, scale, last, items, most)
    tapes = [EndlessTape(law) for _ in range(2)]

    expected = ends_by_runs(given, tapes[0])
    found, doubtful = ends_by_sweep(given, tapes[1], path, margin)

    assert found == expected
    assert tapes[0].used == tapes[1].used
    assert doubtful or margin < 0.5


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 2, 2**64 - 1])
@pytest.mark.parametrize("last", [0, 5, 2**64 - 1])
def test_extreme_words_end_segments_alike(path: Path, word: int, last: int) -> None:
    """The first and the last words, as noise and as uniform, give the ends that runs give."""
    items = np.array([[0, 3, 5], [1, 90, 2]])[:, : 1 + last]
    given = Stream("laplace", Fraction(1), 50, items[0].astype(np.uint64), items[1], last)
    for words in ([word, 9], [9, word]):
        tapes = [Tape([*words, *EndlessTape(word).take(9_000).tolist()]) for _ in range(2)]

        expected = end_by_runs(given, 0, tapes[0])
        sweep = tape_noise(tapes[1], path=path).segments(*given)
        assert sweep is not None
        found = sweep.ends(0).tolist() or [end_by_runs(given, 0, tapes[1])]

        assert found[0] == expected


@pytest.mark.parametrize("path", PATHS)
def test_a_stream_without_items_has_ends_too(path: Path) -> None:
    """An empty stream is one run."""
    given = Stream(
        "laplace", Fraction(2), 12, np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64), 5_000
    )
    tapes = [EndlessTape("empty") for _ in range(2)]

    expected = ends_by_runs(given, tapes[0])

    assert ends_by_sweep(given, tapes[1], path, MARGIN)[0] == expected
    assert tapes[0].used == tapes[1].used
    assert len(expected) > 3


def test_the_exact_path_has_no_sweep() -> None:
    """Narrow words, universes beyond 64 bits and the exact path are left to runs."""
    empty = (np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64))

    assert tape_noise(EndlessTape(1), path="exact").segments("laplace", Fraction(1), 5, *empty, 9) is None
    assert tape_noise(EndlessTape(1)).segments("laplace", Fraction(1), 5, *empty, 2**64) is None
    assert tape_noise(Tape([1], bits=4)).segments("laplace", Fraction(1), 5, *empty, 9) is None
