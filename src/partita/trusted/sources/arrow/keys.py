"""Columns of every Arrow type, as a few types that all engines group alike.

An engine may round time stamps, show whichever zero came first or refuse bytes that are not text. So a
column is first widened to one of the types that `Source.counts` promises, and times travel
through the engine as plain integers.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from partita.errors.errors import SourceError
from partita.trusted.sources.arrow.python import PYTHON

UNREADABLE: Final = b"\xff"
"""The value of a cell that could not be read: no UTF-8, so every domain finds it invalid, or other."""

_DIGITS: Final = 38


def wide_type(kind: Any, name: str) -> Any:
    """The type that a column of this type has in a grouped count."""
    if kind == PYTHON:
        return kind
    if isinstance(kind, pa.BaseExtensionType):
        return wide_type(kind.storage_type, name)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return wide_type(kind.value_type, name)
    if types.is_boolean(kind):
        return kind
    if types.is_integer(kind):
        return kind if types.is_uint64(kind) else pa.int64()
    if types.is_floating(kind):
        return pa.float64()
    if types.is_decimal(kind) and kind.scale >= 0 and kind.precision <= _DIGITS:
        return pa.decimal128(_DIGITS, kind.scale)
    if types.is_date(kind):
        return kind
    if types.is_timestamp(kind):
        return pa.timestamp(kind.unit, None if kind.tz is None else "UTC")
    if _is_text(kind) or types.is_decimal(kind) or types.is_null(kind):
        return pa.large_binary()
    rule = f"must hold numbers, text, dates or times, not {_family(kind)}"
    fix = "choose another column, or take out one field of it first"
    raise SourceError(f"column {name!r}", rule, fix=fix)


def wide(array: Any, name: str) -> Any:
    """The same rows in the type that `wide_type` says."""
    kind = wide_type(array.type, name)
    if kind == PYTHON:
        return array
    plain = _plain(array)
    if types.is_floating(kind):
        return _one_zero_one_nan(plain.cast(kind))
    if types.is_decimal(plain.type) and types.is_large_binary(kind):
        return plain.cast(pa.large_string()).cast(kind)
    return plain.cast(kind)


def to_engine(array: Any) -> Any:
    """A wide column as the engine sees it: times as integers, Python values as bytes."""
    if array.type == PYTHON:
        return array.storage
    if types.is_date32(array.type):
        return array.cast(pa.int32()).cast(pa.int64())
    return array.cast(pa.int64()) if types.is_temporal(array.type) else array


def from_engine(array: Any, kind: Any) -> Any:
    """A column that an engine has grouped, in its wide type again."""
    if kind == PYTHON:
        return pa.ExtensionArray.from_storage(PYTHON, array.combine_chunks())
    if types.is_date32(kind):
        return array.cast(pa.int32()).cast(kind)
    return array.cast(kind)


def distinct(column: Any) -> tuple[Any, Any]:
    """The distinct values of a wide column, as a domain reads them, and which one each row has."""
    whole = column.combine_chunks()
    coded = to_engine(whole).dictionary_encode(null_encoding="encode")
    values = from_engine(pa.chunked_array([coded.dictionary]), whole.type)
    listed = values.to_pylist() if whole.type == PYTHON else values
    return listed, coded.indices.to_numpy().astype(np.int64)


def sort(table: Any, keys: int) -> Any:
    """A grouped count in the order that `Source.counts` promises, whatever engine counted."""
    return table.take(_order(table, keys)).combine_chunks()


def check_sum(kind: Any, name: str) -> None:
    """Refuse to add up a column that is not of integers."""
    if types.is_integer(kind):
        return
    rule = "must hold integers to be added up, because a sum of floats depends on the order of the rows"
    fix = "name it among the keys and weigh its values by their counts"
    raise SourceError(f"column {name!r}", rule, fix=fix)


def _order(table: Any, keys: int) -> Any:
    """Where the rows of a grouped count, which are distinct, stand in their order."""
    if keys == 1 and types.is_integer(table.column(0).type):
        return _order_of_integers(table.column(0))
    numbered = table.rename_columns([str(column) for column in range(table.num_columns)])
    return pc.sort_indices(numbered, [(str(key), "ascending") for key in range(keys)])


def _order_of_integers(column: Any) -> Any:
    """The same for one column of distinct integers, several times faster; null last."""
    order = np.argsort(column.fill_null(0).to_numpy())
    null = column.is_null().to_numpy()[order]
    return np.concatenate([order[~null], order[null]])


def _plain(array: Any) -> Any:
    """The same rows without an extension type, dictionary, run-end encoding or views."""
    if isinstance(array, pa.ExtensionArray):
        return _plain(array.storage)
    if types.is_run_end_encoded(array.type):
        return _plain(pc.run_end_decode(array))
    if types.is_dictionary(array.type):
        return _unviewed(_plain(array.dictionary)).take(array.indices)
    return array


def _unviewed(array: Any) -> Any:
    """The same rows, where they are views of text or bytes, as bytes: Arrow takes rows of those only."""
    viewed = types.is_string_view(array.type) or types.is_binary_view(array.type)
    return array.cast(pa.large_binary()) if viewed else array


def _one_zero_one_nan(floats: Any) -> Any:
    """Adding 0.0 turns -0.0 into 0.0, and any NaN becomes the usual one."""
    return pc.if_else(pc.is_nan(floats), pa.scalar(np.nan, pa.float64()), pc.add(floats, 0.0))


def _is_text(kind: Any) -> bool:
    return bool(
        types.is_unicode(kind)
        or types.is_large_unicode(kind)
        or types.is_string_view(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    )


def _family(kind: Any) -> str:
    """What kind of type it is; the names of its fields might come from the data, and stay out."""
    if types.is_nested(kind):
        return "lists, structures or maps"
    return "times of day, durations or intervals" if types.is_temporal(kind) else "values of another type"
