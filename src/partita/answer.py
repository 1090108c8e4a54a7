"""Answers: the only floats that leave a release, each with its error."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Number
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias, TypeGuard, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Floats
from partita.errors import check
from partita.frames import Tabular
from partita.html import card, ends, grid, shortlist, span, whisker, with_interval, with_margin
from partita.lazy import cached_property
from partita.numbers import check_probability

Bounds = Callable[[float], tuple[float, float]]

LEAST_VARIANCE: Final = 1e-12
"""Of an answer that is combined with others: noise so small that its variance is rounded to nothing."""

CLEAR_DEVIATIONS: Final = 3.5
"""A number this many standard deviations above zero is truly positive: noise alone hardly ever gets there."""

_MOST_READINGS: Final = 64
"""The covariances of a sum of more answers are not looked up: each pair is a question."""


class Reading(Protocol):
    """What an answer was read from: a question to a release."""

    def covariance(self, other: Reading) -> float | None:
        """With the noise of another answer; None if it is not known."""

    def difference(self, other: Reading) -> Answer | None:
        """What this answer is less the other, as one question, if both are of one view."""


Readings: TypeAlias = tuple[tuple[float, Reading], ...]
"""A number as a weighted sum of answers; of one that is not such a sum, how it changes with each."""


class NoisyNumber(Tabular):
    """A number with its error: it can be added, subtracted, multiplied and divided, and formatted.

    The result is an `Answer`. Answers of one release share noise, and their covariance is looked up; answers
    of different releases have independent noise. Where the covariance is not known, the error is the sum of
    both errors, which is the most that it can be, and the result says so when it is printed.
    """

    if TYPE_CHECKING:  # fields of some, and computed by others

        @property
        def value(self) -> float:
            """The number; NaN if it is not determinable."""

        @property
        def error(self) -> float:
            """The standard error."""

        @property
        def basis(self) -> str:
            """What the value rests on, as `Answer` says it."""

        @property
        def readings(self) -> Readings:
            """What the number was made of; empty if that is not known."""

    @property
    def determinable(self) -> bool:
        """Whether there is a value."""
        return not math.isnan(self.value)

    @abstractmethod
    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds that hold with about this confidence."""

    @abstractmethod
    def worst(self, beta: float = 0.05) -> tuple[float, float]:
        """Bounds that fail with probability at most beta, whatever the data."""

    def frame(self) -> Mapping[str, Sequence[Any]]:
        """One row: the value, its 95% interval, and what it rests on."""
        low, high = self.interval()
        return {"value": [self.value], "low": [low], "high": [high], "basis": [self.basis]}

    def __float__(self) -> float:
        return float(self.value)

    def __format__(self, spec: str) -> str:
        """The value in this format; without one, what `str` says.

        >>> answer = Answer(25366.87, lambda: 142.6, bounds=lambda beta: (0.0, 50_000.0))
        >>> f"{answer:,.0f}", f"{answer}"
        ('25,367', 'Answer(25,367 ± 280)')
        """
        if not spec:
            return str(self)
        return "not determinable" if math.isnan(self.value) else format(self.value, spec)

    def __add__(self, other: NoisyNumber | float) -> Answer:
        return _combine(self, 1.0, other)

    def __radd__(self, other: float) -> Answer:
        return _combine(self, 1.0, other)

    def __sub__(self, other: NoisyNumber | float) -> Answer:
        return _combine(self, -1.0, other)

    def __rsub__(self, other: float) -> Answer:
        return _combine(-self, 1.0, other)

    def __neg__(self) -> Answer:
        return _scale(self, -1.0)

    def __mul__(self, factor: float) -> Answer:
        return _scale(self, float(factor)) if _is_number(factor) else NotImplemented

    def __rmul__(self, factor: float) -> Answer:
        return self * factor

    def __truediv__(self, other: NoisyNumber | float) -> Answer:
        if isinstance(other, NoisyNumber):
            return divide(self, other)
        if not _is_number(other):
            return NotImplemented
        check(other != 0, "divisor", "must not be zero", given=other, fix="divide by another number")
        return _scale(self, 1.0 / float(other))

    def __rtruediv__(self, other: float) -> Answer:
        return divide(Answer.exact(float(other)), self) if _is_number(other) else NotImplemented

    def sides(self, confidence: float) -> tuple[float, float]:
        """How far an interval reaches below the value and above it."""
        low, high = self.interval(confidence)
        return self.value - low, high - self.value


@final
@dataclass(frozen=True, repr=False)
class Answer(NoisyNumber):
    """A value, its standard error, and guaranteed bounds.

    `bounds(beta)` is an interval that misses the truth with probability at most beta, for any
    data. `interval` is calibrated by a normal model, which is no guarantee, and is never wider than
    the guaranteed bounds. Neither goes below `least`. What is not asked for is not computed. `kurtosis` is
    the excess kurtosis of the noise, where that is known and the normal model would be too narrow.

    `basis` says what the value rests on, where a release can tell: "measured" on noisy counts of just what
    is asked for, "inferred" by a model from counts of something else, "order 3+" by a model of pairs where
    three or more columns may interact. It is empty where every answer is measured.

    `about` says in words what the value is about, where a number alone would mislead; printing shows it, and
    `note` below the number. `likely(beta)` takes the place of the normal model in `interval`, where there is
    a better one.

    Printing shows ± the half-width of the 95% interval, or the interval itself where it is not symmetric.
    Arithmetic is that of `NoisyNumber`: `readings` says what the value was made of.

    >>> answer = Answer(10.0, lambda: 2.0, bounds=lambda beta: (0.0, 22.0))
    >>> answer, answer.worst(0.05)
    (Answer(10.0 ± 3.9), (0.0, 22.0))
    >>> 3 * answer - 5
    Answer(25 ± 12)
    """

    value: float
    spread: Callable[[], float] = field(compare=False)
    bounds: Bounds = field(compare=False)
    least: float = 0.0
    basis: str = ""
    kurtosis: float = field(default=0.0, compare=False)
    about: str = field(default="", compare=False)
    likely: Bounds | None = field(default=None, compare=False)
    readings: Readings = field(default=(), compare=False)
    note: str = field(default="", compare=False)

    @cached_property
    def error(self) -> float:
        """The standard error."""
        return self.spread()

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds that hold with about this confidence; a model, not a guarantee.

        Where guaranteed bounds of the same confidence are narrower on a side, they take its place.
        """
        chance = check_probability(confidence, "confidence")
        low, high = self.worst(min(0.5, float(1 - chance)))
        if self.likely is not None:
            ends = self.likely(float(1 - chance))
            return max(low, ends[0]), max(low, min(high, ends[1]))
        half = self._quantile((1 + float(chance)) / 2) * self.error
        return max(low, self.value - half), min(high, max(self.least, self.value + half))

    def worst(self, beta: float = 0.05) -> tuple[float, float]:
        """Bounds that fail with probability at most beta, whatever the data."""
        low, high = self.bounds(float(check_probability(beta)))
        return max(self.least, min(low, self.value)), max(self.least, high, self.value)

    def sides(self, confidence: float) -> tuple[float, float]:
        """How far the model reaches below the value and above it: guaranteed bounds do not cut it."""
        if self.likely is not None:
            low, high = self.likely(1 - confidence)
            return self.value - low, high - self.value
        half = self._quantile((1 + confidence) / 2) * self.error
        return half, half

    def _quantile(self, chance: float) -> float:
        """The normal quantile, widened for the excess kurtosis of the noise [Cornish and Fisher 1938]."""
        normal = NormalDist().inv_cdf(chance)
        return normal * max(1.0, 1.0 + self.kurtosis * (normal**2 - 3.0) / 24.0)

    def read_from(self, *readings: tuple[float, Reading]) -> Answer:
        """The same answer, which knows what it was read from."""
        return replace(self, readings=readings)

    @staticmethod
    def exact(value: float) -> Answer:
        """A number that is known without noise."""
        return Answer(value, lambda: 0.0, lambda beta: (value, value))

    @staticmethod
    def together(answers: Sequence[Answer]) -> Answer:
        """The sum of answers to different questions, whose noises are independent: variances add.

        The guaranteed bounds are the sums of those of each at its share of beta: they hold for any noise.
        """

        def bounds(beta: float) -> tuple[float, float]:
            lows, highs = _share_beta(answers, beta)
            return sum(lows), sum(highs)

        value = sum(answer.value for answer in answers)
        modelled = any(answer.likely is not None for answer in answers)
        return Answer(
            value,
            lambda: math.hypot(*(answer.error for answer in answers)),
            bounds,
            sum(answer.least for answer in answers),
            weakest_basis(answer.basis for answer in answers),
            likely=partial(_join_sides, answers) if modelled else None,
        )

    def adjusted(self, factor: float) -> Answer:
        """The value times a factor, to agree with a total that others share; error and bounds stay."""
        value, likely = self.value * factor, self.likely
        if likely is None:
            return replace(self, value=value)
        return replace(self, value=value, likely=partial(_reach_value, likely, value))

    @staticmethod
    def combined(answers: Sequence[Answer]) -> Answer:
        """One answer from several to the same question, whose noises are independent.

        The value is their mean by inverse variance. The guaranteed bounds are the intersection of
        those of each, which all hold together if each takes its share of beta.
        """
        precision = np.array([1.0 / max(answer.error**2, LEAST_VARIANCE) for answer in answers])
        value = float(precision @ [answer.value for answer in answers] / precision.sum())

        def bounds(beta: float) -> tuple[float, float]:
            lows, highs = _share_beta(answers, beta)
            return max(lows), max(*lows, min(highs))

        least = max(answer.least for answer in answers)
        basis = weakest_basis(answer.basis for answer in answers)
        return Answer(value, lambda: float(precision.sum() ** -0.5), bounds, least, basis)

    def __str__(self) -> str:
        text = self.about or repr(self)
        return f"{text}\n{self.note}" if self.note else text

    def __repr__(self) -> str:
        return f"Answer({with_interval(self.value, self.interval())}{add_basis(self.basis)})"

    def _repr_html_(self) -> str:
        likely, certain = self.interval(), self.worst()
        facts = [
            ("value", with_interval(self.value, likely)),
            ("95% interval", ends(likely)),
            ("for any data", f"{span(certain)}, but for 5%"),
            ("basis", describe_basis(self.basis)),
            ("about", self.about or None),
            ("note", self.note or None),
        ]
        return card("Answer", facts, below=[whisker(self.value, likely, certain)])


def _reach_value(likely: Bounds, value: float, beta: float) -> tuple[float, float]:
    """Bounds of a model, lengthened to hold a value."""
    low, high = likely(beta)
    return min(low, value), max(high, value)


def _join_sides(answers: Sequence[Answer], beta: float) -> tuple[float, float]:
    """Bounds of a sum of independent answers: their middles add up, and half-widths as errors do."""
    value = sum(answer.value for answer in answers)
    below, above = np.array([answer.sides(1 - beta) for answer in answers]).T
    middle, half = value + float((above - below).sum()) / 2, math.hypot(*((above + below) / 2).tolist())
    return min(value, middle - half), max(value, middle + half)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Answers(Tabular):
    """Many values at once, in a row or in a table of two columns.

    `np.asarray` gives them, and `error` their standard errors, made when first asked for. `answers[i]` is one
    of them, with all that an `Answer` has, where a release can tell. `basis` says what all of them rest on,
    as it does for `Answer`; it is empty where that differs from value to value, too. `name` says what the
    values are, and `keys()` what was asked, column by column, for tables.
    """

    values: Floats
    spread: Callable[[], Floats]
    basis: str = ""
    each: Callable[[int], Answer] | None = None
    name: str = "value"
    keys: Callable[[], Mapping[str, Sequence[Any]]] = dict

    @cached_property
    def error(self) -> Floats:
        """The standard error of each value."""
        return self.spread()

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Bounds that hold for each value with about this confidence: those of the single answers.

        Every answer is asked by itself, which takes a few thousandths of a second each.
        """
        chance = float(check_probability(confidence, "confidence"))
        if self.each is None:
            half = NormalDist().inv_cdf((1 + chance) / 2) * self.error
            return self.values - half, self.values + half
        found = [self._place(place).interval(chance) for place in range(self.values.size)]
        lows, highs = np.array(found).reshape(-1, 2).T
        return lows.reshape(self.values.shape), highs.reshape(self.values.shape)

    def adjusted(self, factor: float) -> Answers:
        """The values times a factor, to agree with a total that others share; errors stay."""
        each = self.each
        single = None if each is None else lambda place: each(place).adjusted(factor)
        return replace(self, values=self.values * factor, each=single)

    def frame(self) -> Mapping[str, Sequence[Any]]:
        """What was asked, the values, their 95% intervals, and what they rest on."""
        lows, highs = (ends.ravel().tolist() for ends in self.interval())
        numbers = {self.name: self.values.ravel().tolist(), "low": lows, "high": highs}
        return {**self.keys(), **numbers, "basis": [self.basis] * self.values.size}

    def __getitem__(self, place: int | tuple[int, ...]) -> Answer:
        """One of the values, as an answer."""
        number = int(np.arange(self.values.size).reshape(self.values.shape)[place])
        return self._place(number)

    def _place(self, number: int) -> Answer:
        value = float(self.values.flat[number])
        if self.each is not None:
            return replace(self.each(number), value=value)
        error = float(self.error.flat[number])
        return Answer(value, lambda: error, lambda beta: (-math.inf, math.inf), -math.inf, self.basis)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        values = "1 value" if len(self) == 1 else f"{len(self)} values"
        return f"Answers({values}{add_basis(self.basis)})"

    def __str__(self) -> str:
        """With the values, of many the first and the last."""
        rows = [("", "value", "± 95%"), *shortlist(self.values.size, self._row)]
        widths = [max(map(len, map(str, column))) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.rjust, map(str, row), widths)) for row in rows]
        return "\n".join([repr(self), *lines])

    def _repr_html_(self) -> str:
        rows = shortlist(self.values.size, self._row)
        facts = [("basis", describe_basis(self.basis))]
        return card(repr(self), facts, below=[grid(("", "value", "± 95%"), rows)])

    def _row(self, place: int) -> tuple[str, str, str]:
        where = ", ".join(map(str, np.unravel_index(place, self.values.shape)))
        value, half = with_margin(float(self.values.flat[place]), float(self.error.flat[place]))
        return where, value, half


def _share_beta(answers: Sequence[Answer], beta: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The low and the high bounds of all answers, which hold together except with probability beta."""
    lows, highs = zip(*(answer.bounds(beta / len(answers)) for answer in answers), strict=True)
    return lows, highs


BASES: Final = {
    "": None,
    "measured": "measured: noisy counts of just what is asked for",
    "inferred": "inferred: by a model, as nothing was counted of just what is asked for; guaranteed bounds "
    "follow from counts of something else, and are wide",
    "order 3+": "order 3+: by a model of pairs of columns, which may miss how three or more go together; "
    "guaranteed bounds follow from counts of fewer columns, and are wide",
}
"""What an answer may rest on, the best first, each in words."""

_RANKS: Final = {basis: rank for rank, basis in enumerate(BASES)}


def describe_basis(basis: str) -> str | None:
    """What an answer rests on, in words; None where every answer is measured."""
    return BASES[basis]


def add_basis(basis: str) -> str:
    """The end of a short text about an answer.

    >>> add_basis("inferred"), add_basis("")
    (', inferred', '')
    """
    return f", {basis}" if basis else ""


def weakest_basis(bases: Iterable[str]) -> str:
    """What a sum of answers rests on: the least that one of them does.

    >>> weakest_basis(["measured", "order 3+", "inferred"])
    'order 3+'
    """
    return max(bases, key=_RANKS.__getitem__, default="")


def least_sum(signs: Iterable[int]) -> float:
    """What a sum of counts with these signs cannot undercut: zero, if nothing is taken away.

    >>> least_sum([1, 1]), least_sum([1, -1])
    (0.0, -inf)
    """
    return 0.0 if all(sign > 0 for sign in signs) else -math.inf


# --- arithmetic --------------------------------------------------------------------------------

_UNKNOWN: Final = (
    "± is the sum of the errors of both sides, as it is not known how far their noise goes together"
)
NOT_SURE: Final = "not determinable: the number below the line may be zero"


class Joint(NamedTuple):
    """Two noisy numbers, their variances, and their covariance."""

    top: float
    bottom: float
    top_variance: float
    bottom_variance: float
    covariance: float

    @property
    def sure(self) -> bool:
        """Whether the bottom is clearly above zero."""
        return self.interval(CLEAR_DEVIATIONS) is not None

    def interval(self, z: float) -> tuple[float, float] | None:
        """Fieller's interval for top / bottom: all r with |top - r bottom| <= z deviations of that.

        None if the bottom is not z deviations above zero: then the ratio may be anything.
        """
        square = self.bottom**2 - z**2 * self.bottom_variance
        if self.bottom <= 0.0 or square <= 0.0:
            return None
        half = self.top * self.bottom - z**2 * self.covariance
        rest = self.top**2 - z**2 * self.top_variance
        root = math.sqrt(max(0.0, half**2 - square * rest))
        return (half - root) / square, (half + root) / square


def ratio_bounds(top: tuple[float, float], bottom: tuple[float, float]) -> tuple[float, float]:
    """Bounds on a ratio from bounds on its top and bottom."""
    if bottom[0] <= 0.0:
        return -math.inf, math.inf
    ends = [one / other for one in top for other in bottom]
    return min(ends), max(ends)


def correlation(one: NoisyNumber, other: NoisyNumber) -> float | None:
    """That of the noise of two numbers, from the covariances of their readings; None if it is not known."""
    errors = one.error * other.error
    if errors == 0.0:
        return 0.0
    pairs = [(a * b, x, y) for a, x in one.readings for b, y in other.readings]
    if not pairs or not math.isfinite(errors) or len(pairs) > _MOST_READINGS**2:
        return None
    sum_ = 0.0
    for weight, x, y in pairs:
        found = x.covariance(y)
        if found is None:
            return None
        sum_ += weight * found
    return min(1.0, max(-1.0, sum_ / errors))


def _is_number(given: object) -> TypeGuard[float]:
    """Whether it is a number without noise: of Python, of NumPy, a fraction or a decimal."""
    return isinstance(given, Number) and not isinstance(given, complex)


def _combine(one: NoisyNumber, sign: float, other: object) -> Answer:
    """A number, and another one added or taken away."""
    if _is_number(other):
        return _shift(one, sign * float(other))
    if not isinstance(other, NoisyNumber):
        return NotImplemented  # type: ignore[no-any-return]
    return _add(one, other if sign > 0 else _scale(other, -1.0), difference=sign < 0)


def _add(one: NoisyNumber, other: NoisyNumber, *, difference: bool) -> Answer:
    """The sum: the sides of both intervals are put together as deviations are [Zou and Donner 2008]."""
    readings = _join_readings(one.readings + other.readings) if _known(one) and _known(other) else ()
    asked = _ask_difference(one, other) if difference else None
    if asked is not None:
        return asked.read_from(*readings)
    share = correlation(one, other)
    least = getattr(one, "least", -math.inf) + getattr(other, "least", -math.inf)

    def likely(beta: float) -> tuple[float, float]:
        (low, high), (below, above) = one.sides(1 - beta), other.sides(1 - beta)
        return value - _together(low, below, share), value + _together(high, above, share)

    def bounds(beta: float) -> tuple[float, float]:
        (low, high), (below, above) = one.worst(beta / 2), other.worst(beta / 2)
        return low + below, high + above

    value, basis = one.value + other.value, weakest_basis([one.basis, other.basis])
    note = _UNKNOWN if share is None else ""

    def error() -> float:
        return _together(one.error, other.error, share)

    return Answer(value, error, bounds, least, basis, likely=likely, readings=readings, note=note)


def _together(one: float, other: float, correlation: float | None) -> float:
    """Two deviations as one; they add up where nothing is known."""
    if correlation is None:
        return one + other
    return math.sqrt(max(0.0, one**2 + other**2 + 2.0 * correlation * one * other))


def _ask_difference(one: NoisyNumber, other: NoisyNumber) -> Answer | None:
    """The difference of two plain answers to one view: a question of its own. The other is negated."""
    if not len(one.readings) == len(other.readings) == 1 or not isinstance(one, Answer):
        return None
    ((weight, added),), ((taken_weight, taken),) = one.readings, other.readings
    found = added.difference(taken) if (weight, taken_weight) == (1.0, -1.0) else None
    return found if found is not None and math.isclose(found.value, one.value + other.value) else None


def _shift(one: NoisyNumber, number: float) -> Answer:
    """A number that is known is added: nothing but the place changes."""
    if number == 0.0 and isinstance(one, Answer):
        return one
    down_up, worst = one.sides, one.worst

    def likely(beta: float) -> tuple[float, float]:
        low, high = down_up(1 - beta)
        return one.value + number - low, one.value + number + high

    def bounds(beta: float) -> tuple[float, float]:
        low, high = worst(beta)
        return low + number, high + number

    least = getattr(one, "least", -math.inf) + number
    note = getattr(one, "note", "")
    return Answer(
        one.value + number,
        lambda: one.error,
        bounds,
        least,
        one.basis,
        likely=likely,
        readings=one.readings,
        note=note,
    )


def _scale(one: NoisyNumber, factor: float) -> Answer:
    """A number times one that is known."""

    def likely(beta: float) -> tuple[float, float]:
        low, high = one.sides(1 - beta)
        return _ordered(factor * (one.value - low), factor * (one.value + high))

    def bounds(beta: float) -> tuple[float, float]:
        low, high = one.worst(beta)
        return _ordered(factor * low, factor * high)

    least = factor * getattr(one, "least", -math.inf) if factor > 0 else -math.inf
    return Answer(
        factor * one.value,
        lambda: abs(factor) * one.error,
        bounds,
        least,
        one.basis,
        likely=likely,
        readings=tuple((factor * weight, reading) for weight, reading in one.readings),
        note=getattr(one, "note", ""),
    )


def _ordered(one: float, other: float) -> tuple[float, float]:
    return (one, other) if one <= other else (other, one)


def divide(top: NoisyNumber, bottom: NoisyNumber, *, most: float = math.inf) -> Answer:
    """A ratio with Fieller's interval; not determinable unless the bottom is clearly not zero.

    The truth is at most `most`, as that of a share is at most 1.
    """
    if bottom.value < 0:
        return divide(-top, -bottom, most=most)
    share = correlation(top, bottom)
    positive = getattr(top, "least", -math.inf) >= 0.0 and getattr(bottom, "least", -math.inf) >= 0.0
    least = 0.0 if positive else -math.inf
    basis = weakest_basis([top.basis, bottom.basis])

    def between(confidence: float) -> tuple[float, float]:
        """Fieller's interval from the half-widths of both; where their correlation is unknown, of any."""
        one, other = max(top.sides(confidence)), max(bottom.sides(confidence))
        shares = (-1.0, 1.0) if share is None else (share,)
        found = [_joint(top, bottom, one, other, each).interval(1.0) for each in shares]
        ends = [each for each in found if each is not None]
        if len(ends) < len(found):
            return least, most
        return max(least, min(low for low, _ in ends)), min(most, max(high for _, high in ends))

    joint = _joint(top, bottom, top.error, bottom.error, 0.0 if share is None else share)
    if not math.isfinite(top.value) or not joint.sure:
        return Answer(
            math.nan,
            lambda: math.inf,
            lambda beta: (least, most),
            least,
            basis,
            about=NOT_SURE,
            likely=lambda beta: (least, most),
        )
    value = min(most, max(least, top.value / bottom.value))

    def error() -> float:
        if share is None:
            return (top.error + abs(value) * bottom.error) / bottom.value
        low, high = joint.interval(1.0) or (-math.inf, math.inf)
        return (high - low) / 2

    def bounds(beta: float) -> tuple[float, float]:
        low, high = ratio_bounds(top.worst(beta / 2), bottom.worst(beta / 2))
        return low, min(most, high)

    readings = _join_readings(
        (
            *((weight / bottom.value, reading) for weight, reading in top.readings),
            *((-value * weight / bottom.value, reading) for weight, reading in bottom.readings),
        )
    )
    return Answer(
        value,
        error,
        bounds,
        least,
        basis,
        likely=lambda beta: between(1 - beta),
        readings=readings if _known(top) and _known(bottom) else (),
        note=_UNKNOWN if share is None else "",
    )


def _joint(top: NoisyNumber, bottom: NoisyNumber, one: float, other: float, correlation: float) -> Joint:
    return Joint(top.value, bottom.value, one**2, other**2, correlation * one * other)


def _known(one: NoisyNumber) -> bool:
    """Whether it is known what a number was made of: an exact number is made of nothing."""
    return bool(one.readings) or one.error == 0.0


def _join_readings(readings: Readings) -> Readings:
    """The same readings, each once; what adds up to nothing is left out."""
    weights: dict[Reading, float] = {}
    for weight, reading in readings:
        weights[reading] = weights.get(reading, 0.0) + weight
    return tuple((weight, reading) for reading, weight in weights.items() if weight)
