"""Columns of cells and of reports: reports drawn for many people at once, checked, and decoded.

A decoder counts the reports of one kind, and finds from the counts how many reports support each cell; in
integers throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Bools, Ints, UInts, as_array
from partita.domain.base import Domain, Special, is_domain
from partita.errors import check, check_data
from partita.local.encodings import HadamardResponse, LocalHashing, ProjectiveResponse
from partita.local.randomizer import FrequencyRandomizer, LocalLaw, RandomizedResponse, UnaryEncoding, clamped
from partita.numbers import check_cell_range
from partita.trusted.noise.laws import Words, WordSource, chances, flags, integers_below

Bytes = NDArray[np.uint8]
_BLOCK: Final = 1 << 14  # people at a time, so that their draws stay in the cache of the processor
_BLOCK_BYTES: Final = 1 << 22


@final
class ColumnDraws:
    """`Draws` for `count` people, independent of each other, from one source of words."""

    def __init__(self, count: int, source: WordSource) -> None:
        self._count = count
        self._source = source

    def chance(self, threshold: int | UInts) -> Bools:
        return chances(self._source, threshold, self._count)

    def below(self, count: int) -> Ints:
        return integers_below(self._source, count, self._count)

    def row(self, threshold: int, width: int) -> Bytes:
        """Packed rows of `width` bits."""
        drawn = flags(self._source, threshold, self._count * width)
        return np.packbits(drawn.reshape(self._count, width), axis=1, bitorder="little")

    def choose(self, condition: Bools, yes: Ints, no: Ints) -> Ints:
        return np.where(condition, yes, no)

    def with_bit(self, row: Bytes, place: Ints, bit: Ints) -> Bytes:
        people, byte, shift = np.arange(len(row)), place >> 3, (place & 7).astype(np.uint8)
        cleared = row[people, byte] & ~(np.uint8(1) << shift)
        row[people, byte] = cleared | (bit.astype(np.uint8) << shift)
        return row

    def ramp(self, start: int, step: int, x: Ints) -> UInts:
        return np.uint64(start) + np.uint64(step) * x.astype(np.uint64)

    def each(self, part: Ints, samplers: Sequence[Callable[[Ints, ColumnDraws], Ints]], x: Ints) -> Ints:
        made = np.empty(self._count, dtype=np.int64)
        for number, sampler in enumerate(samplers):
            people = np.flatnonzero(part == number)
            if people.size:
                made[people] = sampler(x[people], ColumnDraws(people.size, self._source))
        return made


def randomize_column(randomizer: LocalLaw, cells: object, words: WordSource | None) -> Any:
    """A report for every cell, block by block: a column of ints, or of rows of bytes."""
    source, xs = Words() if words is None else words, clip_cells(cells, randomizer.size)
    length = max(1, min(_BLOCK, _BLOCK_BYTES // randomizer.report_bytes))
    starts = range(0, len(xs), length) or range(1)
    blocks = [xs[start : start + length] for start in starts]
    return np.concatenate([randomizer.sample(block, ColumnDraws(len(block), source)) for block in blocks])


def clip_cells(cells: object, size: int) -> Ints:
    """The nearest cell of each; what is no whole number goes to the first cell. No row raises."""
    given = as_array(cells, "values", None if hasattr(cells, "dtype") else object)
    if given.dtype.kind in "iub":
        return given.ravel().clip(0, size - 1).astype(np.int64)
    return np.array([clamped(cell, size) for cell in given.ravel().tolist()], dtype=np.int64)


# The cells of a `Domain` on one line: the ordinary ones, then the special ones.


def domain_size(domain: Any) -> int:
    """The number of all cells, special ones included."""
    rule, fix = "must be a number of cells or a Domain", "pass for example 1024"
    check(is_domain(domain), "domain", rule, given=domain, fix=fix)
    return int(domain.size) + len(domain.specials)


def domain_cells(domain: Domain, values: object) -> Ints:
    """The cell of every value of a column."""
    encoded = domain.encode(values)
    places = np.zeros(len(Special), dtype=np.int64)
    for place, name in enumerate(domain.specials):
        places[Special.named(name).value] = domain.size + place
    ordinary = encoded.special == Special.ORDINARY.value
    return np.where(ordinary, encoded.cells.astype(np.int64), places[encoded.special])


def domain_label(domain: Domain, cell: int) -> str:
    """The value of an ordinary cell, or the name of a special one."""
    return str(domain.decode([cell])[0]) if cell < domain.size else domain.specials[cell - domain.size]


def domain_ends(domain: int | Domain, low: object, high: object) -> tuple[int, int]:
    """The first and the last cell from low to high; the first is behind the last if there is none between."""
    if isinstance(domain, int):
        return check_cell_range(low, high, first=0, last=domain - 1)
    first, last = domain.locate(low, name="low"), domain.locate(high, name="high")
    start = domain.size if first.special is Special.ABOVE else first.cell
    end = {Special.BELOW: -1, Special.ABOVE: domain.size - 1}.get(last.special, last.cell)
    swapped = start > end and Special.ORDINARY is first.special is last.special
    check(not swapped, "low", "must not be above high", given=None, fix="swap them")
    return start, end


# From reports to counts, and from counts to the number of reports that support each cell.


_BLOCK_BITS: Final = 1 << 22
_ONES: Final = np.array([byte.bit_count() for byte in range(256)], dtype=np.uint8)


@final
@dataclass(frozen=True)
class Decoder:
    """How the reports of one kind are counted.

    `tally` gives the counts of a column of reports, one for each cell or one for each report; `supports`
    gives from the counts how many reports support each cell. With `exclusive` the counts add up to the
    reports.
    """

    tally: Callable[[Any, Any], Ints]
    supports: Callable[[Any, Ints], Ints]
    exclusive: bool = True


def decoder_of(randomizer: FrequencyRandomizer) -> Decoder:
    """How to count the reports of a randomizer."""
    return _DECODERS[type(randomizer)]


def count_supports(randomizer: FrequencyRandomizer, counts: Ints) -> Ints:
    """How many reports support each cell, exactly."""
    return decoder_of(randomizer).supports(randomizer, counts)


def check_column(randomizer: Any, reports: Any) -> Any:
    """Reports as a column of integers in range, or as rows of bytes for unary encoding."""
    if isinstance(randomizer, UnaryEncoding):
        return _check_rows(randomizer, reports)
    given = as_array(reports, "reports")
    rule, fix = "must be one column of integers", "pass what randomize_many returned"
    check_data(given.ndim == 1 and (given.dtype.kind in "iu" or not given.size), "reports", rule, fix=fix)
    fits = not given.size or 0 <= int(given.min()) <= int(given.max()) < randomizer.reports
    check_data(fits, "reports", f"must lie below {randomizer.reports}", fix="drop what is no report")
    return given.astype(np.int64, copy=False)


def _check_rows(randomizer: UnaryEncoding, reports: Any) -> Any:
    rows = as_array(reports, "reports")
    fits = rows.ndim == 2 and rows.dtype == np.uint8 and rows.shape[1] == randomizer.report_bytes
    rule, fix = f"must be rows of {randomizer.report_bytes} bytes", "pass what randomize_many returned"
    check_data(fits, "reports", rule, fix=fix)
    spare = 8 * randomizer.report_bytes - randomizer.size
    rule, fix = f"must have {randomizer.size} bits", "drop what is no report"
    check_data(not spare or not (rows[:, -1] >> np.uint8(8 - spare)).any(), "reports", rule, fix=fix)
    least, most = randomizer.likely_ones
    ones = _ONES[rows].sum(axis=1, dtype=np.int64)
    rule, fix = f"must have {least} to {most} ones", "drop those that have not"
    check_data(not ((ones < least) | (ones > most)).any(), "reports", rule, fix=fix)
    return rows


def _count_reports(randomizer: FrequencyRandomizer, reports: Ints) -> Ints:
    return np.bincount(reports, minlength=randomizer.reports)


def _signs_to_supports(randomizer: HadamardResponse, counts: Ints) -> Ints:
    """Supporters of x are (n + the Hadamard transform of zeros less ones at x + 1) / 2."""
    transformed = walsh_hadamard(counts[0::2] - counts[1::2])
    supported: Ints = (int(counts.sum()) + transformed[1 : randomizer.size + 1]) // 2
    return supported


def walsh_hadamard(values: Any) -> Any:
    """The sums of values[j] (-1)^parity(i & j), for every i; in integers, if they are."""
    length, half = len(values), 1
    while half < length:
        pairs = values.reshape(-1, 2, half)
        values = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        half *= 2
    return values.reshape(-1)


def _bit_sums(randomizer: UnaryEncoding, rows: Any) -> Ints:
    length = max(1, _BLOCK_BITS // randomizer.size)
    total = np.zeros(randomizer.size, dtype=np.int64)
    for start in range(0, len(rows), length):
        bits = np.unpackbits(rows[start : start + length], axis=1, count=randomizer.size, bitorder="little")
        total += bits.sum(axis=0, dtype=np.int32)
    return total


def _hash_supports(randomizer: LocalHashing, reports: Ints) -> Ints:
    """For every cell, the reports whose hash function sends it to the bucket told."""
    cells = np.arange(randomizer.size, dtype=np.int64)
    length = max(1, _BLOCK_BITS // randomizer.size)
    total = np.zeros(randomizer.size, dtype=np.int64)
    for start in range(0, len(reports), length):
        block = reports[start : start + length, np.newaxis]
        total += (randomizer.hashed(block, cells) == block % randomizer.buckets).sum(axis=0)
    return total


# How many points lie on each hyperplane: one Fourier transform, rounded to exact integers.

_UNIT: Final = 2.0**-53
_ROUNDINGS: Final = 256  # of one stage of a transform, relative to the norm of its input: more than any makes


def hyperplane_hits(randomizer: ProjectiveResponse, counts: Ints) -> Ints:
    """For every cell the number of reports on its hyperplane, exactly.

    With c(y) reports of point y, put c(y) on all q - 1 nonzero multiples of y in F_q^d. The transform at x is
    F(x) = sum over y of c(y) (q [<x, y> = 0] - 1) = q hits(x) - n, so hits(x) = (F(x) + n) / q. Counts are
    transformed a few bits at a time, so few that rounding is exact: all at once unless there are very many.
    """
    bits = _safe_bits(randomizer)
    hits = np.zeros(randomizer.size, dtype=np.int64)
    for shift in range(0, max(1, int(counts.max(initial=0)).bit_length()), bits):
        hits += _round_hits(randomizer, (counts >> shift) & ((1 << bits) - 1)) << shift
    return hits


def _round_hits(randomizer: ProjectiveResponse, counts: Ints) -> Ints:
    q, d = randomizer.field, randomizer.dimension
    points = randomizer.point(np.arange(1, q**d, dtype=np.int64))
    spread = np.concatenate([[0.0], counts[points]]).reshape((q,) * d)
    transform = np.fft.fftn(spread).real.ravel()
    cells = randomizer.vector(np.arange(randomizer.size, dtype=np.int64))
    return np.rint((transform[cells] + float(counts.sum())) / q).astype(np.int64)


def _safe_bits(randomizer: ProjectiveResponse) -> int:
    """The largest width w such that counts below 2^w are transformed with an error below q / 4.

    The error is at most 256 u log2(N) |F| in the Euclidean norm, u = 2^-53, and |F| = sqrt(N) |f| with
    |f| <= sqrt(N) 2^w, N = q^d (docs/proofs/local_randomizers.md).
    """
    vectors = randomizer.field**randomizer.dimension
    error_of_one = _ROUNDINGS * _UNIT * log2(vectors) * vectors
    return max(1, int(log2(randomizer.field / 4 / error_of_one)))


_DECODERS: Final[Mapping[type[FrequencyRandomizer], Decoder]] = {
    RandomizedResponse: Decoder(_count_reports, lambda _, counts: counts),
    ProjectiveResponse: Decoder(_count_reports, hyperplane_hits),
    HadamardResponse: Decoder(_count_reports, _signs_to_supports),
    UnaryEncoding: Decoder(_bit_sums, lambda _, counts: counts, exclusive=False),
    LocalHashing: Decoder(_hash_supports, lambda _, counts: counts, exclusive=False),
}
