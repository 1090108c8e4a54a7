"""Fixed randomness for tests: endless tapes from a seed, and every short tape there is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from itertools import product
from typing import TypeVar

import numpy as np

from partita.errors.errors import TapeExhausted
from partita.trusted.noise.hazard.hazard import MARGIN
from partita.trusted.noise.laws.words import Tape, UInts
from partita.trusted.noise.system.system import Path, SystemNoise

Outcome = TypeVar("Outcome", bound=Hashable)


class EndlessTape:
    """Words from a seed, without end: SHAKE-256 of the seed and a block number.

    >>> EndlessTape(1).take(2).tolist() == EndlessTape(1).take(2).tolist()
    True
    """

    bits = 64

    def __init__(self, seed: object) -> None:
        self._seed = repr(seed).encode()
        self._blocks = self._generate()
        self._ready: UInts = np.zeros(0, dtype=np.uint64)
        self.used = 0

    def take(self, count: int) -> UInts:
        """The next words."""
        while self._ready.size < count:
            self._ready = np.concatenate([self._ready, next(self._blocks)])
        taken, self._ready = self._ready[:count], self._ready[count:]
        self.used += count
        return taken

    def take_up_to(self, count: int) -> UInts:
        """The next words; there are always enough."""
        return self.take(count)

    def give_back(self, words: UInts) -> None:
        """Put words back in front."""
        self._ready = np.concatenate([words, self._ready])
        self.used -= words.size

    def _generate(self) -> Iterator[UInts]:
        block = 0
        while True:
            digest = hashlib.shake_256(self._seed + block.to_bytes(8, "little")).digest(1 << 15)
            yield np.frombuffer(digest, dtype=np.uint64)
            block += 1


def tape_noise(tape: Tape | EndlessTape, *, path: Path = "auto", margin: float = MARGIN) -> SystemNoise:
    """The shipped sampler on given words."""
    return SystemNoise(lambda: tape, path=path, margin=margin)


class TapeLaw(dict[Outcome, Fraction]):
    """The mass of each outcome over all tapes of a length, and the mass of tapes that ended too early."""

    unresolved: Fraction = Fraction(0)


def tape_law(draw: Callable[[Tape], Outcome], *, bits: int = 4, words: int = 4) -> TapeLaw[Outcome]:
    """Run a sampler on every tape of up to `words` words of `bits` bits.

    A sampler that stops after k words has mass 2^(-bits k) on that tape; what is still undecided
    at the last word is `unresolved`. The masses add up to one exactly.
    """
    law: TapeLaw[Outcome] = TapeLaw()
    pending: list[tuple[int, ...]] = [()]
    while pending:
        prefix = pending.pop()
        tape = Tape(list(prefix), bits=bits)
        mass = Fraction(1, 1 << (bits * len(prefix)))
        try:
            outcome = draw(tape)
        except TapeExhausted:
            if len(prefix) == words:
                law.unresolved += mass
            else:
                pending += [(*prefix, *more) for more in product(range(1 << bits))]
        else:
            law[outcome] = law.get(outcome, Fraction(0)) + mass
    return law
