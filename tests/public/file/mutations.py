"""Damaged and hostile release files, each a function of a seed: python's own generator, for tests only."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from partita.errors import PartitaError
from partita.public.file import SPEC, columns_of, unpack
from partita.public.file_entries import FileColumn, checksum
from partita.public.file_parquet import to_parquet

__all__ = ["damaged", "forged"]

Values = list[tuple[str, NDArray[Any]]]

INTEGERS: Final = (0, 1, -1, 2, 3, 7, 255, 2**31, 2**53, 2**62, -(2**63), 2**63 - 1, 2**63, 2**64 - 1, 2**64)
ATOMS: Final[tuple[Any, ...]] = (
    None, True, False, "", "0", "1", "-1", "1/3", "1/0", "2/4", "1e9", "10" * 99, "1/" + "9" * 180, "9" * 199,
    "nan", "age", "integer", "category", "tree", "add-remove", "change-one", "row", "person",
    "\ud800", "\x1b[2J", 1.5, float("nan"), 10**30, [], {}, [[]], [0], {"kind": "integer"}, *INTEGERS,
)  # fmt: skip


def damaged(files: Sequence[bytes], seed: int) -> bytes:
    """A file with one to three accidents in its bytes."""
    dice = Random(f"damaged {seed}")
    data = bytearray(dice.choice(files))
    for _ in range(dice.choice((1, 1, 2, 3))):
        if data:
            dice.choice(ACCIDENTS)(data, dice, files)
    return bytes(data)


def forged(files: Sequence[bytes], seed: int) -> bytes:
    """A well-formed file with a right checksum whose content was changed on purpose."""
    dice = Random(f"forged {seed}")
    stored, _ = unpack(dice.choice(files), largest=2**30)
    spec, values = copy.deepcopy(stored.spec), _taken_apart(stored.spec, stored.values)
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        dice.choice(FORGERIES)(spec, values, dice)
    return _put_together(spec, values)


def _flip(data: bytearray, dice: Random, files: Sequence[bytes]) -> None:
    for _ in range(dice.choice((1, 1, 2, 8))):
        data[_place(data, dice)] ^= 1 << dice.randrange(8)


def _overwrite(data: bytearray, dice: Random, files: Sequence[bytes]) -> None:
    place = _place(data, dice)
    data[place : place + 1] = bytes([dice.choice((0, 1, 127, 128, 255, dice.randrange(256)))])


def _truncate(data: bytearray, dice: Random, files: Sequence[bytes]) -> None:
    del data[_place(data, dice) :]


def _cut_out(data: bytearray, dice: Random, files: Sequence[bytes]) -> None:
    place = _place(data, dice)
    del data[place : place + dice.choice((1, 2, 4, 8, 64))]


def _repeat(data: bytearray, dice: Random, files: Sequence[bytes]) -> None:
    place, length = _place(data, dice), dice.choice((1, 4, 16, 200))
    data[place:place] = data[place : place + length] * dice.choice((1, 2, 50))


def _splice(data: bytearray, dice: Random, files: Sequence[bytes]) -> None:
    other = dice.choice(files)
    start, length = dice.randrange(len(other)), dice.choice((1, 4, 16, 200))
    place = _place(data, dice)
    data[place : place + length] = other[start : start + length]


def _large_number(data: bytearray, dice: Random, files: Sequence[bytes]) -> None:
    place, length = _place(data, dice), dice.randrange(1, 10)
    data[place : place + length] = bytes([255] * (length - 1) + [dice.choice((1, 15, 127))])


def _move_footer(data: bytearray, dice: Random, files: Sequence[bytes]) -> None:
    data[-8:-4] = dice.choice((0, 1, len(data), 2**31, 2**32 - 1, dice.randrange(len(data) + 9))).to_bytes(
        4, "little"
    )


def _edit_digit(data: bytearray, dice: Random, files: Sequence[bytes]) -> None:
    digits = [place for place, byte in enumerate(data) if 48 <= byte <= 57]
    if digits:
        data[dice.choice(digits)] = dice.choice(b"0123456789-.e/")


ACCIDENTS: Final = (
    _flip, _flip, _flip, _overwrite, _overwrite, _truncate, _cut_out, _repeat, _splice, _large_number,
    _move_footer, _edit_digit,
)  # fmt: skip


def _place(data: bytearray, dice: Random) -> int:
    """Anywhere, or in the pages, or behind them."""
    pages = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    if not 4 < pages < len(data) or dice.random() < 0.3:
        return dice.randrange(len(data))
    return dice.randrange(4, pages) if dice.random() < 0.6 else dice.randrange(pages, len(data))


def _replace_entry(spec: Any, values: Values, dice: Random) -> None:
    holder, key = dice.choice(list(_places(spec)))
    holder[key] = copy.deepcopy(dice.choice(ATOMS))


def _nudge_number(spec: Any, values: Values, dice: Random) -> None:
    """A number, or one written as text, becomes another one."""
    places = [(holder, key) for holder, key in _places(spec) if _is_number(holder[key])]
    holder, key = dice.choice(places)
    number = dice.choice((int(holder[key]) + 1, int(holder[key]) - 1, -int(holder[key]), *INTEGERS))
    holder[key] = str(number) if isinstance(holder[key], str) else number


def _move_entry(spec: Any, values: Values, dice: Random) -> None:
    places = list(_places(spec))
    (holder, key), (other, place) = dice.choice(places), dice.choice(places)
    holder[key] = copy.deepcopy(other[place])


def _drop_entry(spec: Any, values: Values, dice: Random) -> None:
    holder, key = dice.choice(list(_places(spec)))
    del holder[key]


def _add_entry(spec: Any, values: Values, dice: Random) -> None:
    mappings = [spec, *(holder[key] for holder, key in _places(spec) if isinstance(holder[key], dict))]
    dice.choice(mappings)[dice.choice(("extra", "size", "kind"))] = copy.deepcopy(dice.choice(ATOMS))


def _change_value(spec: Any, values: Values, dice: Random) -> None:
    _, array = dice.choice(values)
    if array.size:
        limits = np.iinfo(array.dtype)
        near = int(array[dice.randrange(array.size)])
        value = dice.choice((near + 1, near - 1, -near, limits.min, limits.max, dice.choice(INTEGERS)))
        array[dice.randrange(array.size)] = min(max(value, limits.min), limits.max)


def _reorder(spec: Any, values: Values, dice: Random) -> None:
    _, array = dice.choice(values)
    array[:] = dice.choice(
        (array[::-1].copy(), np.sort(array), np.roll(array, 1), np.full_like(array, array[:1].sum()))
    )


def _resize(spec: Any, values: Values, dice: Random) -> None:
    """A column gets another length, and most often the specification says so."""
    index = dice.randrange(len(values))
    name, array = values[index]
    length = max(0, dice.choice((0, 1, array.size - 1, array.size + 1, 2 * array.size, 1000)))
    values[index] = name, np.resize(array, length) if array.size else np.zeros(length, array.dtype)
    if dice.random() < 0.9:
        for holder, _ in _places(spec):
            if isinstance(holder, dict) and name.endswith(f".{holder.get('name')}"):
                holder["length"] = length


FORGERIES: Final[tuple[Callable[[Any, Values, Random], None], ...]] = (
    _replace_entry, _replace_entry, _nudge_number, _nudge_number, _nudge_number, _move_entry, _drop_entry,
    _add_entry, _change_value, _change_value, _change_value, _change_value, _reorder, _reorder,
    _resize, _resize,
)  # fmt: skip


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a specification, as a container and a key or an index."""
    for key in list(node) if isinstance(node, dict) else range(len(node)):
        yield node, key
        if isinstance(node[key], (dict, list)):
            yield from _places(node[key])


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return value.lstrip("-").isdecimal() and len(value) < 100
    return isinstance(value, int) and not isinstance(value, bool)


def _taken_apart(spec: Any, values: Sequence[NDArray[Any]]) -> Values:
    return [(column.name, array.copy()) for column, array in zip(columns_of(spec), values, strict=True)]


def _put_together(spec: Any, values: Values) -> bytes:
    arrays = [array for _, array in values]
    try:
        spec["checksum"] = checksum(spec, arrays)
        text = json.dumps(spec, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    except (PartitaError, UnicodeEncodeError):
        text = json.dumps(spec, sort_keys=True, separators=(",", ":")).encode()
    columns = [FileColumn(name, str(array.dtype), array.size) for name, array in values]
    return to_parquet(columns, arrays, {SPEC: text})
