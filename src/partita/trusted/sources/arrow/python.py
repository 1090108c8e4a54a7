"""Columns of Python values, each kept as what it is, whatever stands beside it.

A list has no declared type. To infer one from its values would let one person's value change
how everybody else's is read, so each value is written as a tag and some bytes on its own, and
read back by itself when a domain encodes it. Engines group the bytes.

    s text   b bytes   t boolean   i integer   f float   q fraction   d decimal
    D day    T time    ! a value that no domain can read
"""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa

_MISSING: Final = {"NoneType", "NAType", "NaTType"}
_NO_VALUE: Final[tuple[object, ...]] = ()


class PythonScalar(pa.ExtensionScalar):  # type: ignore[misc]
    """One such value."""

    def as_py(self, **options: Any) -> Any:
        """The Python value itself."""
        del options
        return None if self.value is None else from_bytes(self.value.as_py())


class PythonType(pa.ExtensionType):  # type: ignore[misc]
    """The Arrow type of such a column: tagged bytes."""

    def __init__(self) -> None:
        super().__init__(pa.large_binary(), "partita.python")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: Any, serialized: bytes) -> PythonType:
        return cls()

    def __arrow_ext_scalar_class__(self) -> type[PythonScalar]:
        return PythonScalar


PYTHON: Final = PythonType()


def python_array(values: list[Any]) -> Any:
    """A list of any Python values as a column. None, pandas.NA and NaT are null; none raises."""
    storage = pa.array([to_bytes(value) for value in values], pa.large_binary())
    return pa.ExtensionArray.from_storage(PYTHON, storage)


def to_bytes(value: object) -> bytes | None:
    """The tagged bytes of a value; equal ones for equal values of a kind.

    >>> [to_bytes(value) for value in (5, "5", True, None, [5])]
    [b'i5', b's5', b't1', None, b'!']
    """
    try:
        return _tagged(value.item() if isinstance(value, np.generic) else value)
    except Exception:
        return b"!"


def from_bytes(tagged: bytes) -> Any:
    """The value that `to_bytes` wrote; an empty tuple, which no domain reads, if there was none.

    >>> [from_bytes(tagged) for tagged in (b"i5", b"s5", b"q1/3", b"!")]
    [5, '5', Fraction(1, 3), ()]
    """
    return _READERS[tagged[:1]](tagged[1:])


def _tagged(value: Any) -> bytes | None:
    if type(value).__name__ in _MISSING:
        return None
    for kinds, tag, write in _WRITERS:
        if isinstance(value, kinds):
            return tag + bytes(write(value))
    return b"!"


def _float(value: float) -> bytes:
    """Eight bytes, the same for both zeros and for all NaNs."""
    return struct.pack(">d", float("nan") if value != value else float(value) + 0.0)


def _time(value: datetime.datetime) -> bytes:
    moment = value.replace(fold=0) if value.utcoffset() is None else value.astimezone(datetime.UTC)
    return moment.isoformat().encode()


_WRITERS: Final[tuple[tuple[Any, bytes, Any], ...]] = (
    (str, b"s", lambda value: value.encode("utf-8", "surrogatepass")),
    ((bytes, bytearray), b"b", bytes),
    (bool, b"t", lambda value: b"1" if value else b"0"),
    (int, b"i", lambda value: str(Decimal(int(value))).encode()),
    (float, b"f", _float),
    (Fraction, b"q", lambda value: f"{Decimal(value.numerator)}/{Decimal(value.denominator)}".encode()),
    (Decimal, b"d", lambda value: str(value).encode()),
    (datetime.datetime, b"T", _time),
    (datetime.date, b"D", lambda value: value.isoformat().encode()),
)

_READERS: Final[dict[bytes, Any]] = {
    b"s": lambda text: text.decode("utf-8", "surrogatepass"),
    b"b": bytes,
    b"t": lambda text: text == b"1",
    b"i": lambda text: int(Decimal(text.decode())),
    b"f": lambda text: struct.unpack(">d", text)[0],
    b"q": lambda text: Fraction(*(int(Decimal(part)) for part in text.decode().split("/"))),
    b"d": lambda text: Decimal(text.decode()),
    b"T": lambda text: datetime.datetime.fromisoformat(text.decode()),
    b"D": lambda text: datetime.date.fromisoformat(text.decode()),
    b"!": lambda text: _NO_VALUE,
}
