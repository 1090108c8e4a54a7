"""From reports to counts, and from counts to the number of reports that support each cell; integers only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from partita.arrays import as_array
from partita.errors.checks import check_data
from partita.errors.errors import InvalidData
from partita.local.encodings.hadamard import HadamardResponse
from partita.local.encodings.hashing import LocalHashing
from partita.local.encodings.projective import ProjectiveResponse
from partita.local.frequency.columns import Ints
from partita.local.frequency.projective_hits import hyperplane_hits
from partita.local.randomizer.randomizer import FrequencyRandomizer
from partita.local.randomizer.response import RandomizedResponse
from partita.local.randomizer.unary import UnaryEncoding

_BLOCK_BITS: Final = 1 << 22
_ONES: Final = np.array([byte.bit_count() for byte in range(256)], dtype=np.uint8)


@dataclass(frozen=True)
class _Decoder:
    """How the reports of one kind are counted; `exclusive` if each of them counts once."""

    width: Callable[[Any], int]
    tally: Callable[[Any, Any], Ints]
    supports: Callable[[Any, Ints], Ints]
    exclusive: bool = True


def width(randomizer: FrequencyRandomizer) -> int:
    """How many counts an aggregator keeps."""
    return _DECODERS[type(randomizer)].width(randomizer)


def exclusive(randomizer: FrequencyRandomizer) -> bool:
    """Whether the counts add up to the number of reports."""
    return _DECODERS[type(randomizer)].exclusive


def tallied(randomizer: FrequencyRandomizer, reports: Any) -> tuple[Ints, int]:
    """The counts of a column of reports, and how many reports there are; malformed ones are refused."""
    column = checked_column(randomizer, reports)
    return _DECODERS[type(randomizer)].tally(randomizer, column), len(column)


def supports(randomizer: FrequencyRandomizer, counts: Ints) -> Ints:
    """How many reports support each cell, exactly."""
    return _DECODERS[type(randomizer)].supports(randomizer, counts)


def checked_column(randomizer: Any, reports: Any) -> Any:
    """Reports as a column of integers in range, or as rows of bytes for unary encoding."""
    if isinstance(randomizer, UnaryEncoding):
        return _checked_rows(randomizer, reports)
    given = as_array(reports, "reports")
    rule, fix = "must be one column of integers", "pass what randomize_many returned"
    check_data(given.ndim == 1 and (given.dtype.kind in "iu" or not given.size), "reports", rule, fix=fix)
    if given.size and not 0 <= int(given.min()) <= int(given.max()) < randomizer.reports:
        raise InvalidData("reports", f"must lie below {randomizer.reports}", fix="drop what is no report")
    return given.astype(np.int64, copy=False)


def _checked_rows(randomizer: UnaryEncoding, reports: Any) -> Any:
    rows = as_array(reports, "reports")
    check_data(
        rows.ndim == 2 and rows.dtype == np.uint8 and rows.shape[1] == randomizer.report_bytes,
        "reports",
        f"must be rows of {randomizer.report_bytes} bytes",
        fix="pass what randomize_many returned",
    )
    spare = 8 * randomizer.report_bytes - randomizer.size
    rule, fix = f"must have {randomizer.size} bits", "drop what is no report"
    check_data(not spare or not (rows[:, -1] >> np.uint8(8 - spare)).any(), "reports", rule, fix=fix)
    least, most = randomizer.likely_ones
    ones = _ONES[rows].sum(axis=1, dtype=np.int64)
    rule, fix = f"must have {least} to {most} ones", "drop those that have not"
    check_data(not ((ones < least) | (ones > most)).any(), "reports", rule, fix=fix)
    return rows


def _bins(randomizer: FrequencyRandomizer, reports: Ints) -> Ints:
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


def _own(_: FrequencyRandomizer, counts: Ints) -> Ints:
    return counts


_DECODERS: Final[Mapping[type[FrequencyRandomizer], _Decoder]] = {
    RandomizedResponse: _Decoder(lambda response: response.size, _bins, _own),
    ProjectiveResponse: _Decoder(lambda response: response.reports, _bins, hyperplane_hits),
    HadamardResponse: _Decoder(lambda response: response.reports, _bins, _signs_to_supports),
    UnaryEncoding: _Decoder(lambda encoding: encoding.size, _bit_sums, _own, exclusive=False),
    LocalHashing: _Decoder(lambda hashing: hashing.size, _hash_supports, _own, exclusive=False),
}
