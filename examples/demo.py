"""A first walk through Partita: publish where 200,000 salaries lie, without betraying any of them.

The data are made up, from a hash, so that everybody sees the same ones. Only because they are
made up may the truth be printed beside the noisy answers. The noise is real: it differs from run
to run, and now and then an error bar misses.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable
from textwrap import fill

import numpy as np

import partita as pt
from partita.domain import Encoded, Special

PEOPLE = 200_000
TOP_CODE = 150_000_00
BANDS = 64
BAND_WIDTH = 2_500_00
PICTURE_STEP = 10_000_00
SEGMENTS_PER_MARK = 15
WIDTH = 96


def main() -> None:
    """The whole story, in the order in which a data steward would live it."""
    salaries = made_up_salaries()
    domain = pt.Integer(0, 2**64 - 1)
    encoded = show_the_data(salaries, domain)

    partition = pt.Partition(size=domain.size, epsilon=1)
    histogram = pt.Histogram.from_cells(ordinary_cells(encoded), size=domain.size)
    cut = partition.cut(histogram)
    show_the_cut(partition, cut)

    tree = pt.Tree(size=BANDS, epsilon="0.5")
    bands = pt.Histogram.from_cells(bands_of(ordinary_cells(encoded)), size=BANDS)
    release = tree.release(bands)
    show_the_counts(tree, release, bands)

    show_the_budget(cut, release)
    show_the_errors()


# --- the secret data ----------------------------------------------------------------------------


def made_up_salaries() -> list[object]:
    """Yearly salaries in cents: lognormal, with heaps at round thousands, top-coded, and a few bad rows."""
    normal = np.sqrt(-2 * np.log(shares("radius"))) * np.cos(2 * np.pi * shares("angle"))
    cents = np.rint(36_000_00 * np.exp(0.5 * normal)).astype(np.int64)
    heaps = shares("rounded") < 0.3
    cents[heaps] = (cents[heaps] + 500_00) // 1_000_00 * 1_000_00
    rows: list[object] = np.minimum(cents, TOP_CODE).tolist()
    rows[::10_000] = [None] * len(rows[::10_000])
    rows[1::25_000] = ["on leave"] * len(rows[1::25_000])
    rows[2::50_000] = [-1] * len(rows[2::50_000])
    return rows


def shares(label: str) -> np.ndarray:
    """A number strictly between 0 and 1 for each person, the same in every run."""
    words = np.frombuffer(hashlib.shake_256(label.encode()).digest(4 * PEOPLE), dtype=np.uint32)
    return (words + 0.5) / 2**32


def ordinary_cells(encoded: Encoded) -> np.ndarray:
    """The cells of the rows that hold a proper value."""
    return encoded.cells[encoded.special == Special.ORDINARY]


def bands_of(cells: np.ndarray) -> np.ndarray:
    """The public salary band of each cell; the last band is open above."""
    return np.minimum(cells // BAND_WIDTH, BANDS - 1)


# --- what is shown ------------------------------------------------------------------------------


def show_the_data(salaries: list[object], domain: pt.Integer) -> Encoded:
    """Encode every row; none raises an error, whatever it holds."""
    heading("1. The secret column and its public domain")
    encoded = domain.encode(salaries)
    kinds = Counter(str(Special(code)) for code in encoded.special.tolist())
    say(
        f"{len(salaries):,} made-up salaries in cents, one row per person. Public, and declared without a "
        "look at the data: a salary is a whole number from 0 to 2^64 - 1. Every row has a cell; rows that "
        "hold no such number are counted apart, in special cells:"
    )
    print("   ", ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items())), "(the truth)")
    return encoded


def show_the_cut(partition: pt.Partition, cut: pt.Cut) -> None:
    """The released segments: where they are narrow, many people earn about that much."""
    heading("2. A private partition of 2^64 cells")
    say(in_words(partition.guarantee))
    say(
        f"Public threshold: a segment is closed at about {partition.threshold} people. Released: "
        f"{len(cut):,} segments. Where they end, by salary (# for every {SEGMENTS_PER_MARK}):"
    )
    shown = draw_segments(cut)
    say(
        f"The rest of the universe, up to {cut.last / 100:.2g}, took {len(cut) - shown} more: what nobody "
        f"earns costs next to nothing. A heap in one cell, like that at {TOP_CODE // 100:,}, cannot be cut."
    )


def draw_segments(cut: pt.Cut) -> int:
    """Print how many segments end in each ten thousand; returns how many that were in all."""
    bounds = np.arange(0, TOP_CODE + 2 * PICTURE_STEP, PICTURE_STEP, dtype=np.uint64)
    before = np.searchsorted(cut.edges, bounds)
    for low, count in zip(bounds.tolist(), np.diff(before).tolist(), strict=False):
        marks = "#" * math.ceil(count / SEGMENTS_PER_MARK)
        print(f"{low // 100:>8,} to {(low + PICTURE_STEP) // 100:>7,} {count:>5}  {marks}")
    return int(before[-1])


def show_the_counts(tree: pt.Tree, release: pt.TreeRelease, truth: pt.Histogram) -> None:
    """Noisy counts of any run of bands, each with two kinds of error bar."""
    heading(f"3. Noisy counts in {BANDS} public bands of {BAND_WIDTH // 100:,} each")
    say(f"{in_words(tree.guarantee)} Every count of the tree has noise of scale {tree.scale}.")
    print(f"{'salary':>20} {'count':>9}   {'95% interval':^19}   {'worst case, 95%':^19} {'(truth)':>9}")
    for low, high in ((0, 7), (8, 11), (12, 12), (13, 13), (14, 31), (32, 63)):
        answer = release.count(low, high)
        exact = int(truth.within(low, high + 1)[1].sum())
        bars = f"{pair(answer.interval(0.95))}   {pair(answer.worst(0.05))}"
        print(f"{band_name(low, high):>20} {answer.value:>9,.0f}   {bars} {exact:>9,}")
    say(
        "The interval is a normal model; the worst case is a theorem, whatever the data. The truth can be "
        "shown only because the data are made up: never print it beside a real release."
    )


def show_the_budget(cut: pt.Cut, release: pt.TreeRelease) -> None:
    """Two releases about the same people: their guarantees add up."""
    heading("4. What it cost")
    total = cut.guarantee + release.guarantee
    say(
        f"Both releases are about the same people, so both spend budget and the guarantees add up: "
        f"{cut.guarantee.epsilon} + {release.guarantee.epsilon} = {total.epsilon}. {in_words(total)} "
        "Questions to what is released are free."
    )


def show_the_errors() -> None:
    """Three mistakes; an error says what to do and never shows a value of the data."""
    heading("5. Three mistakes")
    attempt("epsilon=0", lambda: pt.Partition(size=2**64, epsilon=0))
    attempt("unsorted cells", lambda: pt.Partition(size=2**64, epsilon=1).cut([3_100_000, 42]))
    attempt("threshold=3", lambda: pt.Partition(size=2**64, epsilon=1, threshold=3))


# --- words and layout ---------------------------------------------------------------------------


def in_words(guarantee: pt.Guarantee) -> str:
    """What the guarantee promises, for somebody who has not met epsilon."""
    kind = "pure" if guarantee.pure else f"delta {guarantee.delta}"
    return (
        f"Guarantee: epsilon {guarantee.epsilon}, {kind}. Whether any one {guarantee.unit} is in the data or "
        f"not changes the probability of any output by a factor of at most {math.exp(guarantee.epsilon):.2f}."
    )


def attempt(label: str, mistake: Callable[[], object]) -> None:
    """Make a mistake and show what Partita says."""
    try:
        mistake()
    except pt.PartitaError as error:
        say(f"{label}: {type(error).__name__}: {error}")


def band_name(low: int, high: int) -> str:
    start, stop = low * BAND_WIDTH // 100, (high + 1) * BAND_WIDTH // 100
    return f"{start:,} and more" if high == BANDS - 1 else f"{start:,} to {stop:,}"


def pair(bounds: tuple[float, float]) -> str:
    return f"{bounds[0]:>8,.0f} .. {bounds[1]:>7,.0f}"


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def say(text: str) -> None:
    print(fill(text, WIDTH))


if __name__ == "__main__":
    main()
