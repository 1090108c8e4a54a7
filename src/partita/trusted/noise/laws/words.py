"""Uniform random words: where every draw begins.

A source hands out words strictly in order. A caller that took more than it needed gives
the rest back, so compiled code may look ahead and still leave the same tape behind.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, ClassVar, Final, NoReturn, Protocol, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.errors.errors import EntropyError, InvalidParameter, TapeExhausted
from partita.trusted.noise.kernel import entropy

UInts = NDArray[np.uint64]

_WORD_BYTES: Final = 8


class WordSource(Protocol):
    """Independent uniform integers below 2^bits."""

    @property
    def bits(self) -> int:
        """Width of a word; 64 outside tests."""

    def take(self, count: int) -> UInts:
        """Exactly `count` fresh words."""

    def take_up_to(self, count: int) -> UInts:
        """`count` fresh words, or all that a finite tape has left."""

    def give_back(self, words: UInts) -> None:
        """Return the unread end of the last words taken; they are handed out next."""


class Uncopyable:
    """What holds drawn or drawable noise exists once: a copy would release it twice."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise EntropyError("what holds noise cannot be copied or pickled; make a new one where you need it")


class _Fresh(Uncopyable):
    """Fresh words, and words given back, which are handed out before any fresh one.

    Safe to share between threads. A forked child forgets what its parent had and starts over.
    Copying and pickling are refused: two generators must never hand out the same words.
    """

    bits: Final = 64
    _alive: ClassVar[weakref.WeakSet[_Fresh]] = weakref.WeakSet()

    def __init__(self) -> None:
        self._start_over()
        self._alive.add(self)

    def _start_over(self) -> None:
        self._lock = threading.Lock()
        self._returned: list[UInts] = []
        self._owner = os.getpid()

    @classmethod
    def after_fork(cls) -> None:
        """In a child: no generator goes on where its parent was."""
        for words in list(cls._alive):
            words._start_over()

    def take(self, count: int) -> UInts:
        """Exactly `count` fresh words."""
        if os.getpid() != self._owner:
            self._start_over()
        with self._lock:
            return self._take(count)

    def take_up_to(self, count: int) -> UInts:
        """`count` fresh words; there are always enough."""
        return self.take(count)

    def give_back(self, words: UInts) -> None:
        """Return the unread end of the last words taken."""
        with self._lock:
            if words.size:
                self._returned.append(words)

    def _take(self, count: int) -> UInts:
        if not self._returned:
            return self._fresh(count)
        words = self._returned.pop()
        if words.size > count:
            self._returned.append(words[count:])
            return words[:count]
        return words if words.size == count else np.concatenate([words, self._take(count - words.size)])

    def _fresh(self, count: int) -> UInts:
        raise NotImplementedError


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Fresh.after_fork)


@final
class Words(_Fresh):
    """An AES-256-CTR keystream under a key from the kernel. It has no seed and repeats nowhere.

    Drop the object and its key is gone with it.
    """

    def _start_over(self) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        super()._start_over()
        self._stream = Cipher(algorithms.AES(entropy(32)), modes.CTR(entropy(16))).encryptor()

    def _fresh(self, count: int) -> UInts:
        words = np.zeros(count + 2, dtype=np.uint64)
        plain = bytes(count * _WORD_BYTES)
        self._stream.update_into(plain, words.data.cast("B"))
        return words[:count]


@final
class KernelWords(_Fresh):
    """Words straight from the kernel at the time of the draw.

    For pan-private state: no key in memory, so an intruder who reads the process learns
    nothing about noise that is still to be drawn.
    """

    def _fresh(self, count: int) -> UInts:
        return np.frombuffer(entropy(count * _WORD_BYTES), dtype=np.uint64).copy()


@final
class Tape:
    """Given words, replayed in order: the injected randomness of tests."""

    def __init__(self, words: ArrayLike, *, bits: int = 64) -> None:
        self.bits = bits
        self._words = _checked_words(words, bits)
        self._next = 0

    @property
    def used(self) -> int:
        """How many words were taken and kept."""
        return self._next

    def take(self, count: int) -> UInts:
        if count > self._words.size - self._next:
            raise TapeExhausted("the tape has no word left; make it longer")
        return self.take_up_to(count)

    def take_up_to(self, count: int) -> UInts:
        words = self._words[self._next : self._next + count]
        self._next += words.size
        return words

    def give_back(self, words: UInts) -> None:
        self._next -= words.size


def _checked_words(words: ArrayLike, bits: int) -> UInts:
    array = np.atleast_1d(np.asarray(words, dtype=np.uint64))
    if bits < 64 and bool((array >> np.uint64(bits)).any()):
        raise InvalidParameter("words", f"must lie below 2^{bits}", given=words, fix="narrow the words")
    return array
