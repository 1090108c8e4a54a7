"""Who came: ids as bytes, and the register that belongs to an id of a public universe.

What is no id, or none of the universe, is left out without a word: an error would be seen, and it would
say that somebody came.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias, TypeGuard, final

import numpy as np
from numpy.typing import NDArray

from partita.errors.checks import check
from partita.errors.errors import InvalidData, InvalidParameter
from partita.errors.unchained import unchained
from partita.numbers import integer
from partita.pan.sketch.draws import Bools, Ints

Ids: TypeAlias = "int | Sequence[str | int | bytes]"
"""A universe as people give it: its size, for the ids 0, ..., size-1, or all of its ids."""

LARGEST_UNIVERSE: Final = 2**27

_DIGEST: Final = 32


def written(name: object) -> bytes | None:
    """An id as bytes, different for different ids; None if it is neither text, nor bytes, nor a whole number.

    Text is no number: "7" and 7 are two ids. 7.0 is 7.

    >>> written("7"), written(7), written(7.0), written(7.5)
    (b's7', b'i7', b'i7', None)
    """
    if isinstance(name, str):
        return b"s" + name.encode("utf-8", "surrogatepass")
    if isinstance(name, bytes):
        return b"b" + name
    return b"i%d" % int(name) if _is_whole(name) else None


def digest_of(name: bytes, salt: bytes = b"") -> int:
    """A public function of an id that spreads ids evenly over 64 bits."""
    return int.from_bytes(hashlib.blake2b(name, digest_size=8, salt=salt).digest(), "big")


@final
@dataclass(frozen=True)
class Universe:
    """The ids that may come, in a public order; `fingerprint` tells one list of names from another."""

    size: int
    fingerprint: bytes = b""
    places: Mapping[bytes, int] | None = None

    @classmethod
    def of(cls, universe: Ids) -> Self:
        """A universe as people give it."""
        if isinstance(universe, (str, bytes)) or not isinstance(universe, Sequence | np.ndarray):
            return cls(size=integer(universe, "universe", low=1, high=LARGEST_UNIVERSE))
        names = [written(name) for name in universe]
        places = {name: place for place, name in enumerate(names) if name is not None}
        rule, fix = "must hold different texts or integers", "list each id once"
        check(0 < len(places) == len(names) <= LARGEST_UNIVERSE, "universe", rule, given=universe, fix=fix)
        return cls(size=len(names), fingerprint=_fingerprint(places), places=places)

    @classmethod
    def unpacked(cls, row: Sequence[int]) -> Self:
        """The universe from a row of a state; its names, where it has some, must be given again."""
        size, *fingerprint = row
        if len(fingerprint) not in (0, _DIGEST):
            raise ValueError("no universe")
        return cls(
            size=integer(size, "universe", low=1, high=LARGEST_UNIVERSE), fingerprint=bytes(fingerprint)
        )

    def packed(self) -> list[int]:
        """As a row of a state, in which no name can be read."""
        return [self.size, *self.fingerprint]

    def named(self, universe: Ids) -> Universe:
        """The same universe with its names, if they are the same."""
        given = Universe.of(universe)
        fits = (given.size, given.fingerprint) == (self.size, self.fingerprint)
        rule = "must be the one that the sketch was made with, in the same order"
        fix = "pass that one"
        check(fits, "universe", rule, given=universe, fix=fix)
        return given

    def find(self, ids: Iterable[object]) -> Ints:
        """The places of those ids that are in the universe, in the order in which they come: a new array.

        What is not a whole number, such as NaN, is none of them.
        """
        if self.fingerprint:
            return self._find_names(ids)
        if isinstance(ids, np.ndarray) and ids.dtype.kind in "iuf" and ids.ndim == 1:
            return _as_places(ids[_whole_below(ids, self.size)])
        found = [int(place) for place in each_of(ids) if _is_whole(place) and 0 <= place < self.size]
        return np.array(found, dtype=np.int64)

    def _find_names(self, ids: Iterable[object]) -> Ints:
        if self.places is None:
            fix = "pass the same list"
            raise InvalidParameter("universe", "must be given again with its names", given=None, fix=fix)
        names = (written(name) for name in each_of(ids))
        found = [self.places[name] for name in names if name is not None and name in self.places]
        return np.array(found, dtype=np.int64)


def each_of(ids: object) -> Iterator[object]:
    """The ids one by one; a text is one id, not a list of them, and what is no list at all is refused."""
    listed: Any = ids.tolist() if isinstance(ids, np.ndarray) else ids
    failure = InvalidData("ids", "must be a list or an array of ids", fix="pass [id] for one id")
    if isinstance(listed, (str, bytes)):
        raise failure
    return unchained(lambda: iter(listed), failure, Exception)


def _whole_below(ids: NDArray[Any], size: int) -> Bools:
    """Where a number of a column is one of 0, ..., size-1; no copy of the column is left in memory."""
    within = np.asarray((ids >= 0) & (ids < size))
    if ids.dtype.kind == "f":
        within &= np.remainder(ids, 1, out=np.ones_like(ids), where=within) == 0
    return within


def _as_places(chosen: NDArray[Any]) -> Ints:
    """The same numbers as places; if that takes a copy, what was copied is overwritten."""
    places = chosen.astype(np.int64, copy=False)
    if places is not chosen:
        chosen.fill(0)
    return places


def _is_whole(name: object) -> TypeGuard[int]:
    if isinstance(name, (float, np.floating)):
        return name.is_integer()
    return isinstance(name, (int, np.integer)) and not isinstance(name, bool)


def _fingerprint(names: Iterable[bytes]) -> bytes:
    digest = hashlib.sha256()
    for name in names:
        digest.update(len(name).to_bytes(8, "big") + name)
    return digest.digest()
