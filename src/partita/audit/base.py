"""A case: one mechanism on one tiny universe, all of its pairs of neighbours, and what each pair loses."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any, Final, Literal, Protocol, TypeAlias, cast, final, get_args

import numpy as np
from numpy.typing import ArrayLike

import partita
from partita import local, pan
from partita.domain.axis import Axis
from partita.domain.text import Text
from partita.errors import PartitaError, check
from partita.guarantee import Neighbors
from partita.local.randomizer import LocalLaw
from partita.pan.sketch import Sketch
from partita.testing.doubles import RecordingNoise
from partita.testing.laws import Loss
from partita.testing.replay import ReplayedLoss
from partita.trusted.mechanisms.catalogue import mechanisms
from partita.trusted.noise.system import SYSTEM
from partita.trusted.secret import Histogram, NameCounts, Points
from partita.trusted.streams.base import ContinualCounter, Stepping
from partita.trusted.streams.family import CounterFamily

Depth: TypeAlias = Literal["quick", "standard", "deep"]
Way: TypeAlias = Literal[
    "law", "coupling", "coupling in rho", "box", "replay", "replay in rho", "coupling or law"
]
Pair: TypeAlias = tuple[Any, Any]
LossOf: TypeAlias = Callable[[Any, Any], "Loss | ReplayedLoss | Compared | float"]


class Compared(Protocol):
    """A loss, or what an outcome costs of rho."""

    def __le__(self, amount: Fraction, /) -> bool: ...

    def __float__(self) -> float: ...


DEPTHS: Final = get_args(Depth)

WAYS: Final[dict[Way, str]] = {
    "law": "noise took every branch of an exact law, mostly with 1/2 in the place of a power of e, so the "
    "loss over all outcomes is known; values beyond all true ones are one outcome",
    "coupling": "the mechanism was run on both with noise that gives one and the same output; what that "
    "noise costs bounds the loss on this outcome, and says nothing of other outcomes",
    "coupling in rho": "the mechanism promises rho; it was run on both with noise that gives one and the "
    "same output, and what that noise costs of rho was added up, whatever comes out",
    "box": "all noise vectors of a small box were matched with those of a larger one; outcomes that "
    "need larger noise were not met",
    "replay": "`publish` was run on both tables with noise that gives one and the same file; the exact "
    "probabilities of that noise under both give the loss on this outcome, and say nothing of others",
    "replay in rho": "`publish` spent rho on both tables with noise that gives one and the same file; what "
    "that noise costs of rho was added up: for Gaussian noise on all outcomes, else on this one",
    "coupling or law": "by coupling, which bounds the loss on the outcomes of three runs; where no "
    "coupling exists, by the output laws of both, values far from the true ones taken together",
}
"""How the loss of a pair is found."""

TOLERANCE: Final = 1e-9
"""Losses that are floats, because true powers of e are in them, may be beyond epsilon by so much."""


@final
@dataclass(frozen=True)
class Case:
    """What is compared: `loss(one, other)` for each of `pairs()`, against epsilon, or against rho."""

    mechanism: str
    about: str
    way: Way
    epsilon: Fraction
    pairs: Callable[[], Iterable[Pair]]
    loss: LossOf


@final
@dataclass(frozen=True)
class CaseCount:
    """What came of a case: how many pairs, the largest loss, and how many pairs lost more than epsilon."""

    mechanism: str
    about: str
    way: Way
    epsilon: Fraction
    pairs: int
    loss: float
    violations: int


def count_case(case: Case) -> CaseCount:
    """Compare all pairs of a case."""
    losses = list(_losses(case))
    worst, beyond = max(map(float, losses), default=0.0), sum(_exceeds(loss, case.epsilon) for loss in losses)
    return CaseCount(case.mechanism, case.about, case.way, case.epsilon, len(losses), worst, beyond)


def _losses(case: Case) -> Iterator[Compared | float]:
    """The loss of each pair: infinite where a coupling breaks, and where one of both is refused."""
    for one, other in case.pairs():
        try:
            yield case.loss(one, other)
        except (AssertionError, PartitaError):
            yield float("inf")


def _exceeds(loss: Compared | float, epsilon: Fraction) -> bool:
    if isinstance(loss, float):
        return loss > float(epsilon) + TOLERANCE
    return not loss <= epsilon


def step(depth: Depth, quick: int, standard: int, deep: int) -> int:
    """The number for this depth."""
    return {"quick": quick, "standard": standard, "deep": deep}[depth]


def checked_depth(depth: object) -> Depth:
    """The depth, if it is one."""
    rule = f"must be one of {', '.join(DEPTHS)}"
    check(depth in DEPTHS, "depth", rule, given=depth, fix="pass standard")
    return cast("Depth", depth)


# Probabilities of being wrong that hold for every sample size: Chernoff's bound and Holm's procedure.
# No limit theorem is used, so an error probability that is stated is kept, not approached.
def divergence(share: float, chance: float) -> float:
    """The Kullback-Leibler divergence of two coins, in nats.

    >>> divergence(0.5, 0.5)
    0.0
    """
    return _term(share, chance) + _term(1 - share, 1 - chance)


def _term(share: float, chance: float) -> float:
    if share <= 0.0:
        return 0.0
    return share * math.log(share / chance) if chance > 0.0 else math.inf


def p_value(hits: int, draws: int, chance: float) -> float:
    """At least the probability of so many hits, or of as few, if each draw hits with this chance [Chernoff].

    >>> p_value(5_000, 10_000, 0.5)
    1.0
    """
    return min(1.0, 2 * math.exp(-draws * divergence(hits / draws, chance)))


def least_chance(hits: int, draws: int, error: float) -> float:
    """A chance that the true one lies above, but for the error probability."""
    return _bound(hits, draws, error, low=0.0, high=hits / draws)


def most_chance(hits: int, draws: int, error: float) -> float:
    """A chance that the true one lies below, but for the error probability."""
    return _bound(hits, draws, error, low=1.0, high=hits / draws)


def _bound(hits: int, draws: int, error: float, *, low: float, high: float) -> float:
    """Between `low`, where the divergence is too large, and `high`, where it is none."""
    allowed = math.log(1 / error) / draws
    for _ in range(60):
        middle = (low + high) / 2
        if divergence(hits / draws, middle) > allowed:
            low = middle
        else:
            high = middle
    return low


def holm(p_values: Sequence[float], family_wise: float) -> list[int]:
    """The places of the p-values that Holm's procedure rejects: some correct one, at most so often.

    >>> holm([0.5, 1e-9, 0.01], 1e-3)
    [1]
    """
    rejected: list[int] = []
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for place in order:
        if p_values[place] > family_wise / (len(p_values) - len(rejected)):
            break
        rejected.append(place)
    return rejected


# Every public mechanism of the installed version, found by what it is.
Family: TypeAlias = Literal["release", "counter", "sketch", "randomizer", "own"]

COVERED_BY: Final = {
    "Capped": "the counter behind its cap on how many events of a user count; the cap draws no noise",
    "Cutter": "Partition, whose law a cut in the making has",
    "DurableCounter": "the counter that it keeps in a file",
    "DurableFamily": "CounterFamily, which it keeps in a file",
    "WeightsSession": "MultiplicativeWeights; the law of a session is enumerated by the tests of the project",
}
"""Public names that draw no noise of their own kind, and what covers them."""


def public_mechanisms() -> dict[str, Family]:
    """The names of all public mechanisms, and to which family each belongs."""
    found: dict[str, Family] = {}
    found |= dict.fromkeys(mechanisms(), "release")
    found |= dict.fromkeys(_named(partita, _counts), "counter")
    found |= dict.fromkeys(_named(pan, lambda each: issubclass(each, Sketch)), "sketch")
    found |= dict.fromkeys(_named(local, lambda each: issubclass(each, LocalLaw)), "randomizer")
    return {name: family for name, family in found.items() if name not in COVERED_BY}


def _named(package: Any, wanted: Any) -> Iterator[str]:
    """The concrete classes of a package that are of this kind."""
    for name in package.__all__:
        each = getattr(package, name)
        if inspect.isclass(each) and not inspect.isabstract(each) and wanted(each):
            yield name


def _counts(each: type[Any]) -> bool:
    return issubclass(each, ContinualCounter | CounterFamily) and issubclass(each, Stepping)


# Tiny universes: all data sets of few rows, all persons with so many, and counts as mechanisms take them.
Counts: TypeAlias = tuple[int, ...]


def neighbours(
    cells: int, rows: int, *, neighbors: Neighbors = "add-remove", contributions: int = 1
) -> Iterator[tuple[Counts, Counts]]:
    """Every pair over so many cells in which others have at most `rows` rows, once.

    Under add-remove a person with `contributions` rows comes; under change-one their rows become others.

    >>> len(list(neighbours(2, 1))), len(list(neighbours(2, 1, neighbors="change-one")))
    (6, 3)
    """
    people = list(_multisets(cells, contributions))
    for others in (held for count in range(rows + 1) for held in _multisets(cells, count)):
        for number, person in enumerate(people):
            if neighbors == "add-remove":
                yield others, sum_of(others, person)
            else:
                yield from ((sum_of(others, person), sum_of(others, another)) for another in people[:number])


def moved(cells: int, rows: int, *, contributions: int) -> Iterator[tuple[Counts, Counts]]:
    """Others have at most `rows` rows, and a person moves all of theirs from any cell to the next.

    >>> list(moved(2, 0, contributions=3))
    [((3, 0), (0, 3)), ((0, 3), (3, 0))]
    """
    whole = [tuple(contributions * (cell == place) for cell in range(cells)) for place in range(cells)]
    for others in (held for count in range(rows + 1) for held in _multisets(cells, count)):
        for place in range(cells):
            yield sum_of(others, whole[place]), sum_of(others, whole[(place + 1) % cells])


def _multisets(cells: int, rows: int) -> Iterator[Counts]:
    for places in combinations_with_replacement(range(cells), rows):
        yield tuple(places.count(cell) for cell in range(cells))


def sum_of(one: Counts, other: Counts) -> Counts:
    """The rows of both."""
    return tuple(a + b for a, b in zip(one, other, strict=True))


def histogram(counts: Counts, contributions: int = 1) -> Histogram:
    """So many rows in each cell of one axis."""
    return Histogram.dense(counts, contributions=contributions)


def texts(text: Text, counts: Counts, contributions: int = 1) -> NameCounts:
    """So many rows with each text of a column, in their order; later texts have none."""
    held = np.flatnonzero(counts)
    words = text.words_of([text.name(int(cell)) for cell in held])
    return NameCounts(text, words, np.array(counts, np.int64)[held], contributions)


def points(axes: Sequence[Axis], counts: Counts, contributions: int = 1) -> Points:
    """So many rows in each position of several axes, the last one fastest; special cells included."""
    places = np.array(list(product(*(range(axis.width) for axis in axes))), np.uint64)
    held = np.flatnonzero(counts)
    rows, numbers = places[held].reshape(held.size, len(axes)), np.array(counts, np.int64)[held]
    return Points.from_rows(rows, axes=list(axes), counts=numbers, contributions=contributions)


# Noise that watches what it is given: secrets must be integers, and scales exact.
class WatchingNoise(RecordingNoise):
    """Shipped noise that notes the first secret which is a float, and the first scale which is not exact."""

    def __init__(self) -> None:
        super().__init__(SYSTEM.session())
        self.problem: str | None = None
        self.chose = False

    def session(self) -> WatchingNoise:
        return self

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        self._watch(x, scale)
        return super().add(x, scale, parts=parts)

    def add_gaussian(self, x: ArrayLike, variance: Fraction) -> Any:
        self._watch(x, variance)
        return super().add_gaussian(x, variance)

    def exponential(self, scores: ArrayLike, scale: Fraction) -> int:
        self._watch(scores, scale)
        return super().exponential(scores, scale)

    def permute_and_flip(self, scores: ArrayLike, lengths: ArrayLike, scale: Fraction) -> int:
        self._watch(scores, scale)
        self._watch(lengths, scale)
        return super().permute_and_flip(scores, lengths, scale)

    def bernoulli(self, probability: Any) -> bool:
        self.chose = True
        return super().bernoulli(probability)

    def categorical(self, weights: Any) -> int:
        self.chose = True
        return super().categorical(weights)

    def _watch(self, secret: ArrayLike, scale: object) -> None:
        array = np.asarray(secret)
        whole = array.dtype.kind in "iu" or all(isinstance(each, int) for each in array.flat)
        if not whole:
            self.problem = self.problem or "a float was given to the noise"
        if not isinstance(scale, Fraction | int):
            self.problem = self.problem or "a scale was not exact"


def find_off_grid(published: object, unit: Fraction) -> str | None:
    """Whether some published number is no multiple of the unit."""
    for number in list_numbers(published):
        if (Fraction(number) / unit).denominator != 1:
            return f"a published number is no multiple of {unit}"
    return None


def list_numbers(published: object) -> list[Any]:
    """All numbers in lists and tuples of lists and tuples."""
    if isinstance(published, list | tuple):
        return [number for each in published for number in list_numbers(each)]
    whole = isinstance(published, int | float | Fraction) and not isinstance(published, bool)
    return [published] if whole else []
