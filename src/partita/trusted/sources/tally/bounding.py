"""At most k rows of each person, chosen by a rule that looks at that person's rows alone.

Each row of a person gets a number, the MD5 of these bytes:

    the length of the salt in 8 bytes, the salt,
    the length of the person's id in 8 bytes, the id,
    for each column in order: its `Special` code in 1 byte, its cell in 8 bytes,
    the occurrence in 8 bytes: 0, 1, 2, ... among the person's rows with the same cells.

Integers are big-endian. The k rows with the smallest numbers are kept; on a tie, which MD5
makes all but impossible, the smaller bytes win. Nothing of another person enters, so adding or removing
other people's rows never changes which of mine are kept. If I add one row, either it is
left out, or it is kept and, when I already had k, exactly one other row leaves.

An id is hashed as text: integers by their digits, other numbers by their shortest decimal, and
so 17, 17.0 and "17" choose alike in a Parquet, a NumPy and a CSV source. Rows without an id
(null, NaN, empty text, or a line that could not be read) count as one person, with no bytes.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from pyarrow import types

from partita.domain.base.base import Encoded
from partita.domain.columns.text import number_text
from partita.errors.errors import SourceError
from partita.trusted.sources.arrow.keys import UNREADABLE, distinct
from partita.trusted.sources.arrow.python import PYTHON
from partita.trusted.sources.tally.regroup import firsts, regroup

Ints: TypeAlias = npt.NDArray[np.int64]


def people(column: Any, name: str) -> tuple[Ints, list[bytes]]:
    """A number for the person of each row, and the bytes that stand for each person."""
    if not _can_identify(column.type):
        fix = "choose an id column"
        raise SourceError(f"column {name!r}", "must hold integers or text to tell persons apart", fix=fix)
    values, rows = distinct(column)
    listed = values if isinstance(values, list) else values.to_pylist()
    texts = [_identity(value) for value in listed]
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    codes = np.array([numbers[text] for text in texts], np.int64)
    return codes[rows], list(numbers)


def bound(
    persons: Ints, names: Sequence[bytes], cells: Sequence[Encoded], counts: Ints, *, limit: int, salt: bytes
) -> tuple[list[Encoded], Ints]:
    """The cells that are kept and how often, out of rows grouped by person and raw values."""
    keys = [key for column in cells for key in (column.special, column.cells)]
    (person, *rows), weights = regroup([persons, *keys], counts)
    first = firsts([person])
    totals = np.add.reduceat(weights, first) if len(first) else weights
    edges = np.append(first, len(person))
    kept = weights.copy()
    packed = _packed(rows)
    for group in np.flatnonzero(totals > limit).tolist():
        low, high = int(edges[group]), int(edges[group + 1])
        prefix = _prefixed(salt) + _prefixed(names[person[low]])
        kept[low:high] = _kept(prefix, packed[low:high], weights[low:high].tolist(), limit)
    there = kept > 0
    pairs = zip(rows[0::2], rows[1::2], strict=True)
    return [Encoded(cell[there], special[there]) for special, cell in pairs], kept[there]


def _packed(rows: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.void]:
    """The cells of each row as the bytes that are hashed."""
    flat = np.rec.fromarrays([row.astype(row.dtype.newbyteorder(">")) for row in rows])
    return flat.view(f"V{flat.dtype.itemsize}")


def _kept(prefix: bytes, packed: npt.NDArray[np.void], weights: Sequence[int], limit: int) -> list[int]:
    """How many of a person's rows in each combination of cells are among the smallest."""
    kept = [0] * len(weights)
    for _, place, _ in heapq.nsmallest(limit, _numbered(prefix, packed.tolist(), weights)):
        kept[place] += 1
    return kept


def _numbered(
    prefix: bytes, packed: Sequence[bytes], weights: Sequence[int]
) -> Iterator[tuple[bytes, int, int]]:
    for place, (cells, weight) in enumerate(zip(packed, weights, strict=True)):
        start = hashlib.md5(prefix + cells, usedforsecurity=False)
        for occurrence in range(weight):
            number = start.copy()
            number.update(occurrence.to_bytes(8, "big"))
            yield number.digest(), place, occurrence


def _prefixed(text: bytes) -> bytes:
    return len(text).to_bytes(8, "big") + text


def _identity(value: object) -> bytes:
    """The text of an id; none for what is no id."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return b"" if value == UNREADABLE else value
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, int):
        return str(Decimal(value)).encode()
    if isinstance(value, (float, Decimal, Fraction)):
        return _number(value)
    return b""


def _number(value: float | Decimal | Fraction) -> bytes:
    if not isinstance(value, Fraction) and not math.isfinite(value):
        return b"" if math.isnan(value) else str(value).encode()
    return number_text(Fraction(repr(value) if isinstance(value, float) else value)).encode()


def _can_identify(kind: Any) -> bool:
    return bool(
        kind == PYTHON
        or types.is_integer(kind)
        or types.is_large_binary(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
    )
