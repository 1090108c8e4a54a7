"""Arrow arrays of every type, as columns. Arrow is imported when a column is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from partita.domain.columns import (
    Coded,
    Column,
    Content,
    Exacts,
    Flags,
    Floats,
    Invalid,
    Moments,
    Part,
    Scaled,
    Texts,
    with_missing,
)
from partita.domain.moments import Unit, day_and_nanosecond

__all__ = ["cast_texts", "read_arrow", "texts"]

ArrowArray: TypeAlias = Any
ArrowType: TypeAlias = Any


def read_arrow(array: ArrowArray) -> Column:
    """An Arrow Array or ChunkedArray as a column; a null is missing."""
    if hasattr(array, "iterchunks"):
        return _chunks(array)
    plain = _plain(array)
    present = plain.is_valid().to_numpy(zero_copy_only=False)
    return with_missing(present, lambda: _content(plain.drop_null() if plain.null_count else plain))


def texts(array: ArrowArray) -> Coded:
    """Text or bytes without nulls: each distinct value once."""
    import pyarrow as pa

    encoded = array.cast(pa.large_binary()).dictionary_encode()
    distinct = Column.of(Texts(encoded.dictionary), len(encoded.dictionary))
    return Coded(encoded.indices.to_numpy().astype(np.int64), distinct)


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
        parts.append((np.flatnonzero(matches), read_arrow(chosen.cast(kind))))
        others &= ~matches
    rest = distinct.values.filter(pa.array(others)).to_pylist()
    return Column(len(distinct), [*parts, (np.flatnonzero(others), read_others(rest))])


def _chunks(array: ArrowArray) -> Column:
    ends = np.cumsum([0, *(len(chunk) for chunk in array.iterchunks())])
    return Column(
        len(array),
        [
            (slice(start, start + len(chunk)), read_arrow(chunk))
            for start, chunk in zip(ends.tolist(), array.iterchunks(), strict=False)
        ],
    )


def _plain(array: ArrowArray) -> ArrowArray:
    """The same rows without an extension type, run-end encoding or views."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(array, pa.ExtensionArray):
        return _plain(array.storage)
    if pa.types.is_run_end_encoded(array.type):
        return _plain(pc.run_end_decode(array))
    if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    return array


def _content(array: ArrowArray) -> Content:
    from pyarrow import types

    kind = array.type
    if types.is_integer(kind):
        wide = np.uint64 if types.is_unsigned_integer(kind) else np.int64
        return Scaled(array.to_numpy().astype(wide, copy=False))
    if types.is_floating(kind):
        return Floats.widened(array.to_numpy())
    if types.is_boolean(kind):
        return Flags(array.to_numpy(zero_copy_only=False))
    if types.is_decimal(kind):
        return _decimals(array)
    if types.is_dictionary(kind):
        return Coded(array.indices.to_numpy().astype(np.int64), read_arrow(array.dictionary))
    if types.is_timestamp(kind) or types.is_date(kind):
        return _moments(array)
    if types.is_unicode(kind) or types.is_large_unicode(kind) or _is_bytes(kind):
        return texts(array)
    return Invalid(len(array))


def _is_bytes(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))


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
    limbs = np.frombuffer(array.buffers()[1], np.int64)[array.offset * width :][: len(array) * width]
    limbs = limbs.reshape(-1, width)
    small = (limbs[:, 1:] == (limbs[:, :1] >> 63)).all(axis=1)
    unit = Fraction(10) ** -array.type.scale
    large = [Fraction(value) for value in array.filter(pa.array(~small)).to_pylist()]
    return Column(
        len(array),
        [
            (np.flatnonzero(small), Scaled(limbs[small, 0], unit)),
            (np.flatnonzero(~small), Exacts(large)),
        ],
    )
