"""States as bytes: what goes in comes out, the size is public, and damage is refused."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import InvalidState
from partita.public.streams import WIDTH
from partita.trusted.streams.base import pack, unpack

_LARGE = st.integers(-(2 ** (8 * WIDTH - 1)), 2 ** (8 * WIDTH - 1) - 1)
_SMALL = st.integers(-(2**63), 2**63 - 1)


@given(st.dictionaries(st.text(max_size=5), st.lists(_LARGE, max_size=5), max_size=4))
def test_rows_come_back(fields: dict[str, list[int]]) -> None:
    """Any rows of integers, under any names."""
    assert unpack(pack("kind", 7, fields), "kind", 7) == fields


@given(st.lists(_SMALL, max_size=9))
def test_arrays_come_back_as_lists(row: list[int]) -> None:
    """Arrays of int64 take eight bytes a number."""
    state = pack("kind", 1, {"row": np.array(row, dtype=np.int64)})

    assert unpack(state, "kind", 1) == {"row": row}
    assert len(state) == len(pack("kind", 1, {"row": np.zeros(0, dtype=np.int64)})) + 8 * len(row)


@given(st.lists(_LARGE, min_size=3, max_size=3), st.lists(_LARGE, min_size=3, max_size=3))
def test_the_size_does_not_depend_on_the_numbers(one: list[int], other: list[int]) -> None:
    """Rows of one length take the same room whatever is in them."""
    assert len(pack("kind", 1, {"row": one})) == len(pack("kind", 1, {"row": other}))


def test_every_flipped_bit_is_seen() -> None:
    """No bit of a state can change."""
    state = pack("kind", 1, {"row": [1, 2]})
    for place in range(8 * len(state)):
        damaged = bytearray(state)
        damaged[place // 8] ^= 1 << place % 8
        with pytest.raises(InvalidState):
            unpack(bytes(damaged), "kind", 1)


def test_every_cut_is_seen() -> None:
    """A state that ends early, or holds more, is refused, also under a checksum of its own."""
    state = pack("kind", 1, {"row": [1, 2], "more": np.arange(3)})
    body = state[:-32]
    for end in range(len(body)):
        if end in _row_ends(body):
            continue
        cut = body[:end]
        with pytest.raises(InvalidState):
            unpack(cut + hashlib.sha256(cut).digest(), "kind", 1)


def _row_ends(body: bytes) -> list[int]:
    """Where a state with fewer rows would end."""
    return [body.index(name) - 4 for name in (b"row", b"more")]


@pytest.mark.parametrize(("kind", "version"), [("other", 1), ("kind", 2)])
def test_another_kind_or_version_is_refused(kind: str, version: int) -> None:
    """A state is read by its own class only."""
    with pytest.raises(InvalidState, match="own class"):
        unpack(pack("kind", 1, {}), kind, version)


@pytest.mark.parametrize("state", [None, "text", b"", b"partita-counter\n", bytes(100), 5])
def test_what_is_no_state_is_refused(state: object) -> None:
    """Anything but the bytes of a state."""
    with pytest.raises(InvalidState):
        unpack(state, "kind", 1)
