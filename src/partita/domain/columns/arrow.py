"""Arrow arrays of every type, as columns. Arrow is imported when a column is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from partita.domain.columns.columns import (
    Blank,
    Coded,
    Column,
    Content,
    Exacts,
    Flags,
    Floats,
    Moments,
    Part,
    Scaled,
    Texts,
)
from partita.domain.columns.moments import Unit, day_and_nanosecond

ArrowArray: TypeAlias = Any
ArrowType: TypeAlias = Any


def read_arrow(array: ArrowArray) -> Column:
    """An Arrow Array or ChunkedArray as a column; a null is missing, in a dictionary too."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        return _chunks(array)
    if isinstance(array, pa.ExtensionArray):
        return read_arrow(array.storage)
    if isinstance(array, pa.RunEndEncodedArray):
        return Column.of(_runs(array), len(array))
    if isinstance(array, pa.DictionaryArray):
        codes = array.indices
        coded = Coded(_integers(codes.drop_null()), read_arrow(array.dictionary))
        return Column.split(_present(codes), coded, Blank.MISSING)
    if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
        array = array.cast(pa.large_binary())
    reader = _reader(array.type)
    content = reader(array.drop_null()) if reader else Blank.INVALID
    return Column.split(_present(array), content, Blank.MISSING)


def texts(array: ArrowArray) -> Coded:
    """Text or bytes without nulls: each distinct value once."""
    import pyarrow as pa

    encoded = array.cast(pa.large_binary()).dictionary_encode()
    distinct = Column.of(Texts(encoded.dictionary), len(encoded.dictionary))
    return Coded(_integers(encoded.indices), distinct)


def cast_texts(
    distinct: Texts, plain: Mapping[str, ArrowType], read_others: Callable[[list[bytes]], Column]
) -> Column:
    """Texts cast by Arrow where they match one of the patterns, and read one by one where not.

    The patterns are disjoint, and admit only ASCII text that the cast to their type accepts.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    parts: list[Part] = []
    others = np.ones(len(distinct), np.bool_)
    for pattern, kind in plain.items():
        matches = pc.match_substring_regex(distinct.values, pattern).to_numpy(zero_copy_only=False)
        chosen = distinct.values.filter(pa.array(matches)).cast(pa.large_string())
        parts.append((matches, read_arrow(chosen.cast(kind))))
        others &= ~matches
    rest = distinct.values.filter(pa.array(others)).to_pylist()
    return Column(len(distinct), [*parts, (others, read_others(rest))])


def _chunks(array: ArrowArray) -> Column:
    parts: list[Part] = []
    start = 0
    for chunk in array.iterchunks():
        parts.append((slice(start, start + len(chunk)), read_arrow(chunk)))
        start += len(chunk)
    return Column(len(array), parts)


def _runs(array: ArrowArray) -> Coded:
    """Runs of equal values; the ends count from before the first row of a slice."""
    rows = np.arange(array.offset, array.offset + len(array))
    codes = np.searchsorted(_integers(array.run_ends), rows, side="right")
    return Coded(codes.astype(np.int64), read_arrow(array.values))


def _present(array: ArrowArray) -> npt.NDArray[np.bool_]:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False))


def _integers(array: ArrowArray) -> npt.NDArray[np.int64]:
    return np.asarray(array.to_numpy(), np.int64)


def _reader(kind: ArrowType) -> Callable[[ArrowArray], Content] | None:
    """What reads arrays of this type without nulls; None if no domain knows the type."""
    from pyarrow import types

    readers: list[tuple[Callable[[ArrowType], bool], Callable[[ArrowArray], Content]]] = [
        (types.is_unsigned_integer, lambda array: Scaled(array.to_numpy().astype(np.uint64, copy=False))),
        (types.is_signed_integer, lambda array: Scaled(_integers(array))),
        (types.is_floating, lambda array: Floats.widened(array.to_numpy())),
        (types.is_boolean, lambda array: Flags(array.to_numpy(zero_copy_only=False))),
        (types.is_decimal, _decimals),
        (types.is_timestamp, _moments),
        (types.is_date, _moments),
        (types.is_unicode, texts),
        (types.is_large_unicode, texts),
        (types.is_binary, texts),
        (types.is_large_binary, texts),
        (types.is_fixed_size_binary, texts),
    ]
    return next((reader for fits, reader in readers if fits(kind)), None)


def _moments(array: ArrowArray) -> Moments:
    import pyarrow as pa

    dated = pa.types.is_date(array.type)
    unit: Unit = ("D" if pa.types.is_date32(array.type) else "ms") if dated else array.type.unit
    counts = array.cast(pa.int32()).to_numpy() if unit == "D" else array.cast(pa.int64()).to_numpy()
    day, nanosecond = day_and_nanosecond(counts.astype(np.int64), unit)
    return Moments(day, nanosecond, aware=not dated and array.type.tz is not None, dated=dated)


def _decimals(array: ArrowArray) -> Column:
    """Decimals whose unscaled integer fits 64 bits are read at once, the others one by one.

    Arrow keeps an unscaled integer in 64-bit limbs, the lowest first; it fits the lowest
    one if all the others only repeat its sign.
    """
    import pyarrow as pa

    if array.type.bit_width < 128:
        array = array.cast(pa.decimal128(38, array.type.scale))
    width = array.type.bit_width // 64
    limbs = np.frombuffer(array.buffers()[1] or b"", np.int64, len(array) * width, array.offset * width * 8)
    limbs = limbs.reshape(-1, width)
    small = (limbs[:, 1:] == (limbs[:, :1] >> 63)).all(axis=1)
    unit = Fraction(10) ** -array.type.scale
    large = [Fraction(value) for value in array.filter(pa.array(~small)).to_pylist()]
    return Column.split(small, Scaled(limbs[small, 0], unit), Exacts(large))
