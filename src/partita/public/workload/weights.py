"""Private multiplicative weights: the budget, the fit to noisy measurements, and the release [HLM12].

The fit is the distribution of largest entropy that agrees with noisy answers as well as their noise allows.
The mass x over the cells minimises KL(x | even) / weight + sum of (answer - noisy)^2 / (2 variance), with a
given sum. Its dual has a number for each measurement: x is proportional to exp of the sum of these numbers
times the weights. Every step moves all of them at once, each as far as a bound on the curvature allows, with
momentum. There is no branch, so other array libraries compute the same up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Any, ClassVar, Final, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.arrays import Floats
from partita.errors import InvalidParameter, check
from partita.guarantee import Guarantee, measurement_rate, positive_epsilon, selection_rate, zcdp_budget
from partita.lazy import cached_property
from partita.numbers import Exact, check_probability, freeze, frozen, integer, parameter, rational
from partita.public.axis.base import Json, Parts, PartsReader
from partita.public.base import damaged, noisy_integers
from partita.public.bounds import half_width, laplace_variance
from partita.public.queries.operator import Operator, convert_like, convert_places, cumulative, namespace
from partita.public.queries.queries import Queries, Universe
from partita.public.workload.release import Change, WorkloadRelease

MOST_ROUNDS: Final = 200
"""The largest number of rounds that is chosen; users may ask for more."""

MOST_ROUNDS_ASKED: Final = 2**16  # that users may ask for, and that a file may hold
_TOTAL: Final = Fraction(1, 20)  # share of the total: only the rounds and bins depend on it
_WARM: Final = Fraction(3, 10)  # share of sums along axes: a better first guess for noisier rounds
_LEFT_OVER: Final = 1.5
"""After T rounds about this many times rows / T^2 of the error is left to be found; measured."""


class Rates(NamedTuple):
    """The epsilon of each measurement: the total, a marginal, a selection, an answer."""

    total: Fraction
    marginal: Fraction
    selection: Fraction
    answer: Fraction
    rule: str


@final
@frozen(kw_only=True)
class WeightsBudget:
    """Epsilon and delta between neighbours, the number of rounds if it is given, and the first guess's share.

    With delta, losses are added up as zero-concentrated ones, or as pure ones where that allows more.
    `counted` says that the total is measured; if not, it is public, and all is left to the rounds.

    >>> WeightsBudget(epsilon=1).rates(13, 2).answer
    Fraction(1, 40)
    """

    epsilon: Exact = parameter()
    delta: Exact = parameter(default=Fraction(0))
    rounds: int | None = None
    warm: Exact = parameter(default=_WARM)
    counted: bool = True

    def __post_init__(self) -> None:
        rounds = self.rounds
        freeze(
            self,
            epsilon=positive_epsilon(self.epsilon),
            delta=rational(self.delta, "delta"),
            rounds=None if rounds is None else integer(rounds, "rounds", low=1, high=MOST_ROUNDS_ASKED),
            warm=_share(self.warm),
        )

    @property
    def total(self) -> Fraction:
        """The epsilon of the total, which is released before the number of rounds is chosen."""
        if not self.counted:
            return Fraction(0)
        return measurement_rate(self._rho * _TOTAL) if self.delta else self.epsilon * _TOTAL

    def rates(self, rounds: int, marginals: int) -> Rates:
        """What each measurement may cost, so that all of them together stay within the budget."""
        pure = self._pure(rounds, marginals)
        if not self.delta:
            return pure
        return max(pure, self._concentrated(rounds, marginals), key=lambda rates: rates.answer)

    def uses_delta(self, queries: int, marginals: int) -> bool:
        """Whether zero-concentrated losses allow more for some number of rounds that may be chosen."""
        return self.rates(self._most_rounds(queries), marginals).rule != "pure"

    def rounds_for(self, rows: float, queries: int, marginals: int, reach: float = 1.0) -> int:
        """How many rounds suit about so many rows, of which a unit may change an answer by `reach`.

        More rounds follow the data more closely, and make every measurement noisier.
        """
        if self.rounds is not None:
            return self.rounds
        choices = range(1, self._most_rounds(queries) + 1)
        return min(choices, key=lambda rounds: self.cost(rows, rounds, marginals, reach))

    def cost(self, rows: float, rounds: int, marginals: int, reach: float = 1.0) -> float:
        """About the error that is left after so many rounds: what they did not find, and their noise."""
        return _LEFT_OVER * max(rows, 1.0) / rounds**2 + reach / self._loudness(rounds, marginals)

    def _most_rounds(self, queries: int) -> int:
        if self.rounds is not None:
            return self.rounds
        return max(1, min(queries, MOST_ROUNDS)) if self.counted else MOST_ROUNDS_ASKED

    def _loudness(self, rounds: int, marginals: int) -> float:
        """One over the noise of a selection and an answer together, in about the units of a row."""
        pure, concentrated = _one_round(self, marginals)
        return max(pure / rounds, concentrated / math.sqrt(rounds))

    @cached_property
    def _rho(self) -> Fraction:
        return zcdp_budget(self.epsilon, self.delta)

    def _pure(self, rounds: int, marginals: int) -> Rates:
        total = self.total
        warm = self.epsilon * self.warm if marginals else Fraction(0)
        each = (self.epsilon - total - warm) / (2 * rounds)
        return Rates(total, warm / max(1, marginals), each, each, "pure")

    def _concentrated(self, rounds: int, marginals: int) -> Rates:
        rho = self._rho
        warm = rho * self.warm if marginals else Fraction(0)
        half = (rho - (rho * _TOTAL if self.counted else 0) - warm) / 2
        marginal = measurement_rate(warm, marginals) if warm else Fraction(0)
        selection, answer = selection_rate(half, rounds), measurement_rate(half, rounds)
        return Rates(self.total, marginal, selection, answer, "zCDP")


@lru_cache(maxsize=64)
def _one_round(budget: WeightsBudget, marginals: int) -> tuple[float, float]:
    """The loudness of a single round by pure and by zero-concentrated accounting."""
    concentrated = _loudness_of(budget._concentrated(1, marginals)) if budget.delta else 0.0
    return _loudness_of(budget._pure(1, marginals)), concentrated


def _loudness_of(rates: Rates) -> float:
    return 1 / (2 / float(rates.selection) + 1 / float(rates.answer))


def _share(warm: object) -> Fraction:
    share = rational(warm, "warm")
    check(0 <= share <= Fraction(9, 10), "warm", "must lie in [0, 9/10]", given=warm, fix="leave it out")
    return share


@final
@dataclass(frozen=True)
class Margin:
    """The positions along one axis of a universe, cut into bins of about one width: for the first guess.

    >>> Margin((4, 3), axis=0, bins=2).sums(np.arange(12).reshape(4, 3)).tolist()
    [15, 51]
    """

    shape: tuple[int, ...]
    axis: int
    bins: int

    def __post_init__(self) -> None:
        axis = integer(self.axis, "axis", low=0, high=len(self.shape) - 1)
        freeze(self, axis=axis, bins=integer(self.bins, "bins", low=1, high=self.shape[axis]))

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """Where bins begin, and the end of the last one."""
        return np.arange(self.bins + 1) * self.shape[self.axis] // self.bins

    def sums(self, x: Any) -> Any:
        """The sum of x over each bin."""
        xp = namespace(x)
        others = tuple(axis for axis in range(len(self.shape)) if axis != self.axis)
        ends = xp.take(cumulative(xp.sum(x, axis=others)), convert_places(self.edges, x), axis=0)
        return ends[1:] - ends[:-1]

    def spread(self, y: Any) -> Any:
        """For each position the number of its bin, in a shape that fits the universe."""
        xp = namespace(y)
        along = [1] * len(self.shape)
        along[self.axis] = self.shape[self.axis]
        bins = np.repeat(np.arange(self.bins), np.diff(self.edges))
        return xp.reshape(xp.take(y, convert_places(bins, y), axis=0), tuple(along))


# The fit.


_WEIGHT: Final = 100.0
"""How many times more the fit trusts the measurements than the even distribution; measured."""

_LONGEST: Final = 1.0
"""No cell's exponent moves by much more in one step, whatever was released: each number moves by as much
over the number of measurements that cover its cells."""

_LEAST: Final = 1e-200  # keeps the quotient of two sums of no mass finite
_REFRESHED: Final = 5
"""Covers are computed again after so many steps: they change slowly, and cost as much as a step."""


@final
@dataclass(frozen=True, eq=False)
class NoisySums:
    """Noisy sums: how to take them and their adjoint, their values, and one over their variances.

    Both return new arrays. Sums that were not measured have a precision of zero. Weights are at most one;
    `signed` says that some are negative.
    """

    sums: Callable[[Any], Any]
    spread: Callable[[Any], Any]
    values: Floats
    precision: Floats
    signed: bool = False


@final
class WeightsFit:
    """Numbers for all measurements, and the mass over the universe that they stand for."""

    def __init__(
        self, shape: tuple[int, ...], mass: float, blocks: Sequence[NoisySums], arrays: Any = None
    ) -> None:
        self._arrays = np.zeros(()) if arrays is None else arrays
        self._shape, self._mass, self._blocks = shape, mass, tuple(blocks)
        self._duals = [self._array(np.zeros(block.values.size)) for block in self._blocks]

    @property
    def x(self) -> Any:
        """The mass of each cell."""
        return self._distribution(self._duals)

    def with_blocks(self, blocks: Sequence[NoisySums]) -> WeightsFit:
        """The same numbers, to go on from with more measurements of the same kinds, or of one kind more."""
        fit = WeightsFit(self._shape, self._mass, blocks, self._arrays)
        fit._duals[: len(self._duals)] = self._duals
        return fit

    def climb(self, steps: int) -> WeightsFit:
        """Move all numbers so many times towards the optimum."""
        now = last = self._duals
        cover, covers = self._cover(), list[Any]()
        for step in range(steps):
            push = step / (step + 3)
            ahead = [a + push * (a - b) for a, b in zip(now, last, strict=True)]
            x = self._distribution(ahead)
            if step % _REFRESHED == 0:
                covers = self._covers(x, x * cover)
            together = zip(self._blocks, ahead, covers, strict=True)
            last, now = now, [dual + self._step(block, dual, x, cover) for block, dual, cover in together]
        self._duals = now
        return self

    def _covers(self, x: Any, covered: Any) -> list[Any]:
        """How many times the mass of each sum is covered by all that was measured, on average."""
        masses = [(_mass_of(block, covered), _mass_of(block, x)) for block in self._blocks]
        return [(several + _LEAST) / (once + _LEAST) for several, once in masses]

    def _step(self, block: NoisySums, dual: Any, x: Any, cover: Any) -> Any:
        """Newton's step along each number, and no longer than moves exponents by about one together.

        The matrix of second derivatives is at most A diag(x) A', and that is at most the diagonal matrix
        of its row sums, because it has no negative entry: the mass of each sum times its cover. For signed
        weights all mass takes the place of theirs.
        """
        xp = namespace(x)
        trust, values = self._array(_WEIGHT * block.precision), self._array(block.values)
        answers = block.sums(x)
        curvature = cover * (xp.sum(x) if block.signed else answers)
        step = (trust * (values - answers) - dual) / (trust * curvature + 1.0)
        return xp.clip(step, -_LONGEST / cover, _LONGEST / cover)

    def _cover(self) -> Any:
        """For each cell the sum of its weights over what was measured; where some are negative, a bound."""
        cover = self._array(np.zeros((1,) * len(self._shape)))
        for block in self._blocks:
            seen = self._array((block.precision > 0).astype(np.float64))
            cover = cover + (namespace(seen).sum(seen) if block.signed else block.spread(seen))
        return cover

    def _distribution(self, duals: list[Any]) -> Any:
        exponent = self._exponent(duals)
        xp = namespace(exponent)
        exponent -= xp.max(exponent)
        weights = xp.exp(exponent)
        weights *= self._mass / xp.sum(weights)
        return weights

    def _exponent(self, duals: list[Any]) -> Any:
        """The sum of numbers times weights, in all cells; what has all axes is last, and comes first."""
        parts = [block.spread(dual) for block, dual in zip(self._blocks, duals, strict=True)]
        whole = bool(parts) and tuple(parts[-1].shape) == self._shape
        exponent = parts.pop() if whole else self._array(np.zeros(self._shape))
        for part in parts:
            exponent += part
        return exponent

    def _array(self, values: Floats) -> Any:
        return convert_like(values, self._arrays)


def _mass_of(block: NoisySums, x: Any) -> Any:
    """The mass in each sum; for signed weights, all mass."""
    return namespace(x).sum(x) if block.signed else block.sums(x)


def margin_block(margin: Margin, values: Floats, variance: float) -> NoisySums:
    """Noisy sums along one axis."""
    return NoisySums(margin.sums, margin.spread, values, np.full(values.size, 1.0 / variance))


def query_block(
    operator: Operator, indices: Sequence[int], values: Sequence[float], variance: float
) -> NoisySums:
    """Noisy answers to some queries, with all weights over the largest; several to one count together."""
    times, sums = np.zeros(len(operator)), np.zeros(len(operator))
    np.add.at(times, np.asarray(indices, np.int64), 1.0)
    np.add.at(sums, np.asarray(indices, np.int64), np.asarray(values, np.float64))
    largest = float(largest_weight(operator))
    return NoisySums(
        sums=lambda x: operator.answers(x) / largest,
        spread=lambda y: operator.combine(y / largest),
        values=sums / np.maximum(times, 1.0),
        precision=times / variance,
        signed=operator.lowest < 0,
    )


# The measurements, and the synthetic mass that follows from them.


_SETTLING: Final = 150
"""Steps from the even guess to the answers; measured: with twice as many they hardly change."""

_RECENT: Final = 5  # rounds that standard errors look back at: fewer are noisier, more are outdated
_FINE: Final = 30  # bits of the largest change of an answer: finer units than noise needs cost time
_ROUNDING: Final = 1e-9  # relative, for sums in floats


@final
@dataclass(frozen=True, kw_only=True)
class Scales:
    """The noise scale of each kind of measurement, in the integers that noise is added to."""

    total: Fraction
    marginal: Fraction
    selection: Fraction
    answer: Fraction


@dataclass(frozen=True, eq=False, kw_only=True)
class Measurements:
    """The noisy total, noisy sums along axes, and rounds: a query that was chosen and its noisy answer.

    A row has a mass of `unit`. Answers are counted in `grain` units of the operator's weights times mass,
    and each was rounded down before it met noise. Everything else follows: no choice is left open.
    """

    operator: Operator
    unit: int
    grain: int
    total: int
    margins: tuple[Margin, ...]
    marginals: NDArray[Any]
    indices: NDArray[np.int64]
    noisy: NDArray[Any]
    scales: Scales
    arrays: Any = None

    def __post_init__(self) -> None:
        if self.marginals.size != sum(margin.bins for margin in self.margins):
            raise damaged("marginals", "must have a number for each bin")
        if self.indices.size != self.noisy.size:
            raise damaged("noisy", "must have an answer for each round")
        if bool(((self.indices < 0) | (self.indices >= len(self.operator))).any()):
            raise damaged("indices", "must be of queries that there are")

    def add_round(self, index: int, noisy: int) -> Measurements:
        """The measurements with one more round; a guess that was computed before it is reused."""
        answers = noisy_integers(np.array([*self.noisy.tolist(), noisy], object), "noisy")
        grown = replace(self, indices=np.append(self.indices, index), noisy=answers)
        if "x" in vars(self):
            freeze(grown, _previous=self)
        return grown

    def first_rounds(self, rounds: int) -> Measurements:
        """The measurements of the first rounds."""
        return replace(self, indices=self.indices[:rounds], noisy=self.noisy[:rounds])

    @cached_property
    def mass(self) -> float:
        """The number of rows, from the total and the sums along axes by their precision; at least one."""
        totals, variances = [float(self.total)], [laplace_variance(self.scales.total)]
        for values in self._split:
            totals.append(float(values.sum()))
            variances.append(values.size * laplace_variance(self.scales.marginal))
        precision = 1.0 / np.array(variances)
        return max(1.0, float(precision @ totals / precision.sum()) / self.unit)

    @property
    def blocks(self) -> list[NoisySums]:
        """All that was measured, in rows, with weights over the largest: along axes, and queries if any."""
        variance = laplace_variance(self.scales.marginal) / self.unit**2
        both = zip(self.margins, self._split, strict=True)
        along = [margin_block(margin, values / self.unit, variance) for margin, values in both]
        if not self.indices.size:
            return along
        # One grain of an answer, in rows times weight over the largest weight.
        grain = self._answer * self.operator.granularity / largest_weight(self.operator)
        values = (self.noisy.astype(np.float64) * grain).tolist()
        variance = laplace_variance(self.scales.answer) * grain**2
        return [*along, query_block(self.operator, self.indices.tolist(), values, variance)]

    def fit_mass(self, steps: int | None = None) -> WeightsFit:
        """The synthetic mass that all measurements ask for, from the even guess on."""
        fit = WeightsFit(self.operator.shape, self.mass, self.blocks, self.arrays)
        return fit.climb(_SETTLING if steps is None else steps)

    @cached_property
    def x(self) -> Any:
        """The synthetic mass of each cell, in rows."""
        return self.fit_mass().x

    @cached_property
    def answers(self) -> Floats:
        """What the synthetic rows answer to every query."""
        return self.answer_from(self.x)

    def answer_from(self, x: Any) -> Floats:
        """What rows that are spread like x answer to every query."""
        return _floats(self.operator.answers(x)) / self.operator.granularity

    def to_grains(self, answers: Floats) -> NDArray[Any]:
        """Answers in whole grains, as true answers are counted: Python ints where 64 bits might not do."""
        grains = np.rint(answers / self._answer)
        if float(np.abs(grains).max()) < 2**62:
            return grains.astype(np.int64)
        return np.array([int(value) for value in grains], object)

    def bounds(self, beta: float) -> Floats:
        """How far each answer may be off: with probability 1 - beta none is further, whatever the data.

        In the last round the query that was chosen was among the worst, by the selection's tail, and how far
        it was off is known, by the noise's. That bounds all answers as they were then; the rest is what the
        last round has changed.
        """
        now, then = self.answers, self._previous.answers
        last, scale = int(self.indices[-1]), self.scales.answer
        noise = float(half_width(np.array(float(1 / scale)), np.array(math.log(beta / 2))))
        passed = float(self.scales.selection) * math.log(2 * len(self.operator) / beta)
        missed = abs(float(self.noisy[-1]) - float(self.to_grains(then)[last]))
        worst = (missed + noise + passed + 2.0) * self._answer
        return np.asarray((worst + np.abs(now - then)) * (1.0 + _ROUNDING))

    def error(self, beta: float) -> float:
        """With probability 1 - beta no answer at all misses the truth by more, whatever the data."""
        return float(self.bounds(beta).max())

    @cached_property
    def spread(self) -> float:
        """About the standard error of an answer: a model, no guarantee.

        The noise of one measurement, and what recent rounds still found, as if the query that they found
        were the largest of as many normal errors as there are queries.
        """
        recent = min(_RECENT, self.indices.size)
        then = self.to_grains(self.first_rounds(self.indices.size - recent).answers)
        missed = [
            abs(float(self.noisy[at]) - float(then[self.indices[at]])) * self._answer
            for at in range(self.indices.size - recent, self.indices.size)
        ]
        found = float(np.median(missed)) / math.sqrt(2.0 * math.log(len(self.operator) + 2))
        return math.hypot(math.sqrt(laplace_variance(self.scales.answer)) * self._answer, found)

    def losses(self, change: Change) -> tuple[Fraction, Fraction]:
        """What the noise costs between neighbours: the sum of all losses, and the zero-concentrated one."""
        answer = count_grains(change.of_answer(self.operator), self.grain)
        rounds, axes = self.indices.size, len(self.margins)
        total = change.of_total / self.scales.total
        marginal = change.of_cells / self.scales.marginal if axes else Fraction(0)
        selection, noise = 2 * answer / self.scales.selection, answer / self.scales.answer
        pure = total + axes * marginal + rounds * (selection + noise)
        squares = total**2 + axes * marginal**2 + rounds * (selection**2 / 4 + noise**2)
        return pure, squares / 2

    def parts(self) -> Parts:
        """Everything that was measured, and its noise."""
        return format_measurements(self)

    @cached_property
    def _previous(self) -> Measurements:
        """The measurements when the last query was chosen."""
        return self.first_rounds(self.indices.size - 1)

    @property
    def _answer(self) -> float:
        """One grain of an answer, in rows times weight."""
        return self.grain / (self.unit * self.operator.granularity)

    @property
    def _split(self) -> Sequence[Floats]:
        ends = np.cumsum([margin.bins for margin in self.margins])[:-1]
        return np.split(self.marginals.astype(np.float64), ends) if self.margins else []


def choose_grain(change: int) -> int:
    """How many units are counted as one where an answer may change by so many: noise needs no finer ones."""
    return max(1, change >> _FINE)


def count_grains(change: int, grain: int) -> int:
    """By how many grains an answer may change that is rounded down to whole grains."""
    return -(-change // grain)


def largest_weight(operator: Operator) -> int:
    """The largest absolute weight of any query, in units; at least one."""
    return max(abs(operator.lowest), abs(operator.highest), 1)


def _floats(values: Any) -> Floats:
    """Numbers of any array library, in memory."""
    on_cpu = values.cpu() if hasattr(values, "cpu") else values.get() if hasattr(values, "get") else values
    return np.asarray(on_cpu, np.float64)


# The parts of a file.


_SCALES: Final = tuple(field.name for field in fields(Scales))
MEASUREMENT_FACTS: Final = ("grain", *(f"{name}_scale" for name in _SCALES))
MEASUREMENT_SERIES: Final = ("total", "axes", "bins", "marginals", "indices", "noisy")

_LARGEST_GRAIN: Final = 2**62


def format_measurements(weighed: Measurements) -> Parts:
    """The measurements and their noise scales."""
    scales = {f"{name}_scale": str(getattr(weighed.scales, name)) for name in _SCALES}
    facts: dict[str, Json] = {"grain": weighed.grain, **scales}
    series: dict[str, Any] = {
        "total": noisy_integers(np.array([weighed.total], object), "total"),
        "axes": np.array([margin.axis for margin in weighed.margins], np.int64),
        "bins": np.array([margin.bins for margin in weighed.margins], np.int64),
        "marginals": weighed.marginals,
        "indices": weighed.indices,
        "noisy": weighed.noisy,
    }
    return Parts(facts, series)


def read_measurements(reader: PartsReader, operator: Operator, unit: int) -> Measurements:
    """The measurements that were written about these queries; anything else is an `InvalidRelease`."""
    margins = _margins(reader, operator)
    indices = reader.row("indices", np.int64)
    if not 1 <= indices.size <= MOST_ROUNDS_ASKED:
        raise damaged("indices", f"must be of 1 to {MOST_ROUNDS_ASKED} rounds")
    return Measurements(
        operator=operator,
        unit=unit,
        grain=reader.integer("grain", low=1, high=_LARGEST_GRAIN),
        total=int(reader.noisy("total", count=1)[0]),
        margins=margins,
        marginals=reader.noisy("marginals", count=sum(margin.bins for margin in margins)),
        indices=indices,
        noisy=reader.noisy("noisy", count=indices.size),
        scales=Scales(**{name: reader.scale(f"{name}_scale") for name in _SCALES}),
    )


def _margins(reader: PartsReader, operator: Operator) -> tuple[Margin, ...]:
    axes, bins = (reader.row(name, np.int64).tolist() for name in ("axes", "bins"))
    if len(axes) != len(bins) or len(set(axes)) != len(axes):
        raise damaged("axes", "must be distinct, with a number of bins for each")
    try:
        return tuple(Margin(operator.shape, axis, number) for axis, number in zip(axes, bins, strict=True))
    except InvalidParameter as error:
        raise damaged(error.parameter, "must fit the universe") from None


# The release.


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class WeightsRelease(WorkloadRelease):
    """Measurements of a total, of sums along axes, and of queries that were chosen, round by round.

    All answers are those of one synthetic mass over the universe, which follows from the measurements and
    is computed when first used. Standard errors are one model for all queries; bounds are guaranteed for
    all of them at once.
    """

    kind: ClassVar[str] = "weights"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"weights": ("HLM12",)}
    max_series: ClassVar[int] = 6

    weighed: Measurements

    @property
    def values(self) -> Floats:
        return self.weighed.answers

    @property
    def spreads(self) -> Floats:
        """About the standard errors of all answers: one number, a model."""
        return np.full(len(self), self.weighed.spread)

    @property
    def x(self) -> Any:
        """The synthetic rows of each cell of the universe."""
        return self.weighed.x

    def answer(self, index: int) -> Answer:
        """The answer to one query; its bounds hold together with those of all others."""
        place = integer(index, "index", low=0, high=len(self) - 1)
        value = float(self.values[place])

        def bounds(beta: float) -> tuple[float, float]:
            reach = float(self.weighed.bounds(beta)[place])
            return value - reach, value + reach

        least = 0.0 if self.operator.lowest >= 0 else -inf
        return Answer(value, lambda: self.weighed.spread, bounds, least)

    def error(self, beta: float) -> float:
        return self.weighed.error(float(check_probability(beta)))

    @property
    def story(self) -> str:
        rounds, rows = self.weighed.indices.size, max(0, round(self.weighed.total / self.weighed.unit))
        return (
            f"For a total of about {rows:,} rows it took {rounds:,} round{'s' * (rounds > 1)}; "
            f"{len(set(self.weighed.indices.tolist())):,} of {len(self):,} queries were measured."
        )

    @property
    def spent(self) -> Fraction:
        """What the noise costs between neighbours, by the better of pure and zero-concentrated accounting."""
        return compute_cost(self.weighed, self.guarantee)

    def on(self, arrays: Any) -> WeightsRelease:
        """The same release, computed with another array library: `arrays` is any float array of it."""
        return replace(self, weighed=replace(self.weighed, arrays=arrays))

    def parts(self) -> Parts:
        return self.weighed.parts()

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, queries: Queries, universe: Universe
    ) -> Self:
        operator = queries.over(universe)
        if "rows" in parts.facts:
            from partita.public.workload.printed_weights import PrintedMeasurements

            weighed: Measurements = PrintedMeasurements.read(parts, operator, guarantee)
        else:
            reader = PartsReader(parts)
            reader.expect(facts=MEASUREMENT_FACTS, series=MEASUREMENT_SERIES)
            weighed = read_measurements(reader, operator, unit=1)
        return cls(queries=queries, universe=universe, guarantee=guarantee, weighed=weighed)


def compute_cost(
    weighed: Measurements, guarantee: Guarantee | None, *, row: int = 1, moved: int = 0
) -> Fraction:
    """The epsilon that measurements cost between the neighbours of a guarantee, at its delta.

    A row has a mass of at most `row`, of which `moved` counts in one answer, or all. Zero-concentrated losses
    are converted at the guarantee's delta: if they fit, they cost no more than it promises.
    """
    if guarantee is None:
        return Fraction(0)
    change = Change.of(guarantee.neighbors, contributions=guarantee.contributions, row=row, moved=moved)
    pure, rho = weighed.losses(change)
    if 0 < guarantee.delta < 1 and rho <= zcdp_budget(guarantee.epsilon, guarantee.delta):
        return min(pure, guarantee.epsilon)
    return pure
