"""What an intruder sees of a counter: an integer-linear function of its noise and of the events.

view = A noise + B events + what is public. An event is hidden exactly if A shift = B event has an integer
solution. If it has none, some combination of what is seen is the event itself. If it has, the masses of all
noises that give one view are summed, and the loss is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from flint import fmpz_mat
from numpy.typing import ArrayLike

from partita.testing import EndlessTape, Loss, ZeroNoise, tape_noise
from partita.trusted.noise.system import Noise
from partita.trusted.streams.base import unpack
from partita.trusted.streams.pan_private import PanPrivateCounter

Make = Callable[[Noise], Any]
Vector = list[int]
Step = tuple[str, int]


class GivenNoise(ZeroNoise):
    """Noise from a list, zero beyond its end; the scales asked for are kept."""

    def __init__(self, numbers: Sequence[int] = ()) -> None:
        self.numbers = list(numbers)
        self.scales: list[Fraction] = []

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        values = np.asarray(x, dtype=np.int64)
        first = len(self.scales)
        finer = np.broadcast_to(np.asarray(1 if parts is None else parts), values.shape)
        self.scales += [Fraction(scale) / int(part) for part in finer.flat]
        given = [*self.numbers[first:], *[0] * values.size][: values.size]
        noisy = values + np.array(given, dtype=np.int64).reshape(values.shape)
        return noisy if noisy.ndim else int(noisy)


def look(counter: Any) -> Vector:
    """Every number in the state of a counter."""
    rows = unpack(counter.state(), counter.name, 1).values()
    return [number for row in rows for number in row]


class Script(NamedTuple):
    """What is done to a counter, step by step; events are numbered."""

    steps: list[Step]
    events: int

    @classmethod
    def periods(cls, count: int, *, announced: Iterable[int] = ()) -> Script:
        """Every event in a period of its own; some periods are announced looks away from the last."""
        steps: list[Step] = []
        for period in range(count):
            steps += [("announce", 0)] if period in announced else []
            steps.append(("update", period))
        return cls(steps, count)

    @classmethod
    def live(cls, count: int, adds: int = 2) -> Script:
        """Several events in every period, counted one by one."""
        steps: list[Step] = []
        for period in range(count):
            steps.append(("open", 0))
            steps += [("add", adds * period + i) for i in range(adds)]
            steps.append(("close", 0))
        return cls(steps, adds * count)

    def view(self, make: Make, events: Sequence[int], noise: Noise, looks: Iterable[int]) -> Vector:
        """All outputs, and the state before each of the steps that are looked at (or after the last)."""
        counter, seen, looked = make(noise), [], set(looks)
        for number, (act, event) in enumerate([*self.steps, ("end", 0)]):
            if number in looked:
                seen += look(counter)
            if act == "update":
                seen.append(int(counter.update(events[event])))
            elif act == "close":
                seen.append(int(counter.update()))
            elif act == "add":
                counter.add(events[event])
            elif act == "open":
                counter.open()
            elif act == "announce":
                counter.announce_intrusion()
        return seen

    def views(self, make: Make, looks: Iterable[int]) -> Views:
        """A and B, column by column, from the counter itself."""
        looked, nothing = list(looks), [0] * self.events
        recorder = GivenNoise()
        public = self.view(make, nothing, recorder, looked)

        def column(events: Vector, noise: Vector) -> Vector:
            seen = self.view(make, events, GivenNoise(noise), looked)
            return [a - b for a, b in zip(seen, public, strict=True)]

        draws = len(recorder.scales)
        of_noise = [column(nothing, unit(i, draws)) for i in range(draws)]
        of_events = [column(unit(i, self.events), []) for i in range(self.events)]
        places = [i for i, row in enumerate(zip(*of_noise, *of_events, strict=True)) if any(row)]
        return Views(
            of_noise=[_picked(column, places) for column in of_noise],
            of_events=[_picked(column, places) for column in of_events],
            rates=[1 / scale for scale in recorder.scales],
            public=public,
            places=places,
        )


@dataclass(frozen=True)
class Views:
    """view = sum noise_i of_noise[i] + sum event_i of_events[i] + public, at the places where it may vary."""

    of_noise: list[Vector]
    of_events: list[Vector]
    rates: list[Fraction]
    public: Vector
    places: list[int]

    def secret(self, view: Vector) -> Vector:
        """What is left of a view without what is public."""
        return _picked([a - b for a, b in zip(view, self.public, strict=True)], self.places)

    def shift(self, event: int) -> Vector | None:
        """Noise that looks like the event; None if there is no such noise."""
        return solution(self.of_noise, self.of_events[event])

    def attack(self, event: int) -> Vector | None:
        """Weights with which the view adds up to a multiple of the event, whatever the noise."""
        transposed = [list(row) for row in zip(*self.of_noise, strict=True)]
        for weights in kernel(transposed):
            if dot(weights, self.of_events[event]):
                return weights
        return None

    def cost(self, event: int) -> Fraction:
        """What the cheapest shift that was found costs: at least the loss."""
        shift = self.shift(event)
        assert shift is not None
        basis = kernel(self.of_noise)
        moves = [[sum(c * k[i] for c, k in zip(by, basis, strict=True)) for i in range(len(shift))]
                 for by in product((-1, 0, 1), repeat=len(basis))]  # fmt: skip
        return min(
            sum((rate * abs(s + m) for rate, s, m in zip(self.rates, shift, move, strict=True)), Fraction(0))
            for move in moves
        )

    def loss(self, event: int, *, reach: int = 5) -> Loss:
        """The exact loss on all noises in a box; infinite where the event is not hidden at all.

        The noises that give one view are a coset of the kernel. Where it falls into independent lines, the
        ratio of masses is a product over them, and so is its maximum.
        """
        unit = _unit(self.rates)
        base = Fraction(math.exp(-unit)).limit_denominator(1000)
        powers = [int(rate / unit) for rate in self.rates]
        shift = self.shift(event)
        if shift is None:
            return Loss(None, base, unit)
        ratio = Fraction(1)
        free = set(range(len(shift)))
        for line in _lines(kernel(self.of_noise)):
            held = [i for i, step in enumerate(line) if step]
            free -= set(held)
            picked = ([vector[i] for i in held] for vector in (line, powers, shift))
            ratio *= _worst(*picked, base=base, reach=reach)
        for i in free:
            ratio *= base ** -(powers[i] * abs(shift[i]))
        return Loss(ratio, base, unit)


def _worst(line: Vector, powers: Vector, shift: Vector, *, base: Fraction, reach: int) -> Fraction:
    """The greatest mass(noise) / mass(noise - shift) in a box; by symmetry the inverse is no greater."""
    if not any(shift):
        return Fraction(1)
    masses: dict[tuple[int, ...], Fraction] = {}

    def mass(noise: tuple[int, ...]) -> Fraction:
        if noise not in masses:
            masses[noise] = _mass(noise, line, powers, base)
        return masses[noise]

    box = product(range(-reach, reach + 1), repeat=len(line) - 1)
    noises = ((*some, last) for some in box for last in (0, 1))
    return max(
        mass(noise) / mass(tuple(n - s for n, s in zip(noise, shift, strict=True))) for noise in noises
    )


def _mass(noise: Sequence[int], line: Vector, powers: Vector, base: Fraction) -> Fraction:
    """The sum over all k of base^(sum powers |noise + k line|): some terms and two geometric tails."""

    def exponent(k: int) -> int:
        return sum(p * abs(n + k * d) for p, n, d in zip(powers, noise, line, strict=True))

    turns = [-Fraction(n, d) for n, d in zip(noise, line, strict=True)]
    low, high = math.floor(min(turns)), math.ceil(max(turns))
    step = base ** sum(p * abs(d) for p, d in zip(powers, line, strict=True))
    inside = sum((base ** exponent(k) for k in range(low, high + 1)), Fraction(0))
    return inside + (base ** exponent(low) + base ** exponent(high)) * step / (1 - step)


def _lines(basis: list[Vector]) -> list[Vector]:
    """The basis, if no two of its vectors share a noise."""
    used = [i for vector in basis for i, step in enumerate(vector) if step]
    assert len(used) == len(set(used)), "the kernel does not fall into lines; use `cost`"
    return basis


def solution(columns: list[Vector], goal: Vector) -> Vector | None:
    """Integers with sum s_i columns[i] = goal, or None."""
    rest, found = list(goal), [0] * len(columns)
    for row, made_of in _echelon(columns):
        pivot = next((i for i, entry in enumerate(row) if entry), None)
        if pivot is None:
            break
        times, left = divmod(rest[pivot], row[pivot])
        if left:
            return None
        rest = [a - times * b for a, b in zip(rest, row, strict=True)]
        found = [a + times * b for a, b in zip(found, made_of, strict=True)]
    return None if any(rest) else found


def kernel(columns: list[Vector]) -> list[Vector]:
    """A short basis of all integers with sum k_i columns[i] = 0."""
    basis = [made_of for row, made_of in _echelon(columns) if not any(row)]
    if not basis:
        return []
    return [[int(entry) for entry in row] for row in fmpz_mat(basis).lll().tolist()]


def _echelon(columns: list[Vector]) -> list[tuple[Vector, Vector]]:
    """Combinations of the columns in echelon form, and what each is made of."""
    count, length = len(columns), len(columns[0])
    wide = fmpz_mat([[*column, *unit(i, count)] for i, column in enumerate(columns)]).hnf()
    rows = [[int(entry) for entry in row] for row in wide.tolist()]
    return [(row[:length], row[length:]) for row in rows]


def _picked(vector: Vector, places: list[int]) -> Vector:
    return [vector[i] for i in places]


def unit(place: int, size: int) -> Vector:
    return [int(i == place) for i in range(size)]


def dot(weights: Sequence[int], view: Sequence[int]) -> int:
    return sum(w * v for w, v in zip(weights, view, strict=True))


def _unit(rates: list[Fraction]) -> Fraction:
    denominator = math.lcm(*(rate.denominator for rate in rates))
    return Fraction(math.gcd(*(int(rate * denominator) for rate in rates)), denominator)


def pan_private(**parameters: Any) -> Make:
    """A maker of counters with epsilon 1."""
    return lambda noise: PanPrivateCounter(epsilon=1, noise=noise, **parameters)


def taped(**parameters: Any) -> PanPrivateCounter:
    """A counter with epsilon 1 on a fixed tape, unless told otherwise."""
    return PanPrivateCounter(**{"epsilon": 1, "noise": tape_noise(EndlessTape("pan")), **parameters})
