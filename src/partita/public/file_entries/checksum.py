"""The checksum of a release: SHA-256 over its specification and every number."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partita.public.axis.base.ranges import Json
from partita.public.file_entries.file_json import to_canonical


def checksum(spec: Mapping[str, Json], columns: Iterable[NDArray[Any]]) -> str:
    """SHA-256, in hex, of the canonical JSON without its own entry, then of each column in order.

    A column is hashed as its numbers of eight bytes, the lowest byte first. Lengths are part of the
    JSON, so no two releases have the same bytes.

    >>> checksum({"version": 1}, [np.array([1, 2])])[:16]
    'f6b93305eb5179bb'
    """
    digest = hashlib.sha256(to_canonical({key: spec[key] for key in spec if key != "checksum"}))
    for column in columns:
        digest.update(np.ascontiguousarray(column, column.dtype.newbyteorder("<")).data)
    return digest.hexdigest()
