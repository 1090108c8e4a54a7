"""The third part of an audit: attacks by which floats, odd values and odd parameters have betrayed secrets.

Each attack builds inputs that a vulnerable implementation tells apart, runs the mechanism on them, and looks
for the difference. That nothing was found is no proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias, final, get_args

import numpy as np

from partita import local
from partita.audit.base import Depth, Family, p_value, step
from partita.audit.cases_people import RANDOMIZERS
from partita.audit.subjects import CANARY, Subject, subjects
from partita.local.randomizer import WHOLE, KernelDraws
from partita.trusted.mechanisms.partition import Partition
from partita.trusted.noise import kernel, laws
from partita.trusted.noise.hazard import Law
from partita.trusted.noise.laws import KernelWords, Words
from partita.trusted.noise.system import KERNEL, SYSTEM, Path, SystemNoise
from partita.trusted.secret import Histogram

Verdict: TypeAlias = Literal["no violation found", "violation", "does not apply"]
Trials: TypeAlias = Iterator["str | None"]


@final
@dataclass(frozen=True, kw_only=True)
class AttackTrial:
    """What came of one attack on one mechanism: how many inputs were tried, and what was wrong first."""

    attack: str
    mechanism: str
    verdict: Verdict
    tried: int
    said: str


@final
@dataclass(frozen=True)
class Attack:
    """A named attack: what it tries, and on which families it makes no sense, and why."""

    name: str
    says: str
    tries: Callable[[Any], Trials]
    spares: dict[Family, str] = field(default_factory=dict)

    def on(self, subject: Subject) -> AttackTrial:
        """Try it."""
        spared = self.spares.get(subject.family) or subject.spares(self.name)
        if spared:
            return self._trial(subject, "does not apply", 0, spared)
        problems = self._problems(subject)
        found = [problem for problem in problems if problem is not None]
        verdict: Verdict = "violation" if found else "no violation found"
        return self._trial(subject, verdict, len(problems), found[0] if found else "")

    def _problems(self, subject: Subject) -> list[str | None]:
        """What was wrong with each input; an error that was not expected is wrong too, and is the last."""
        found: list[str | None] = []
        try:
            found.extend(self.tries(subject))
        except Exception as error:
            found.append(f"{type(error).__name__} was raised")
        return found

    def _trial(self, subject: Subject, verdict: Verdict, tried: int, said: str) -> AttackTrial:
        return AttackTrial(attack=self.name, mechanism=subject.name, verdict=verdict, tried=tried, said=said)


def _once(method: str) -> Callable[[Any], Trials]:
    """One question to the mechanism, by the name of its method."""
    return lambda subject: iter([getattr(subject, method)()])


def _values(*values: object) -> Callable[[Subject], Trials]:
    """One more row, event, user or report with each of these values."""
    return lambda subject: (subject.hides(value) for value in subject.fitting(values))


def _refusals(**parameters: tuple[object, ...]) -> Callable[[Subject], Trials]:
    """The mechanism made with each of these values of a parameter."""
    return lambda subject: (
        subject.refuses(**{name: value}) for name, values in parameters.items() for value in values
    )


def _promises(subject: Subject) -> Trials:
    """Epsilons that no float is: what is written as a float is one exact number all the same."""
    for epsilon in (0.1 + 0.2, Fraction(1, 3)):
        yield subject.keeps(epsilon, Fraction(str(epsilon)))


def _orders(subject: Any) -> Trials:
    """Values whose float sum depends on the order."""
    yield subject.ordered([1e16, 1.0, -1e16, 0.5, 2.0])
    yield subject.ordered([0.1, 0.2, 0.3, 1.5, None])


def _crowds(subject: Any) -> Trials:
    """The last counts that 32 bits hold, and one that nearly fills 64."""
    for rows in (2**31 - 1, 2**32 - 1, 2**61):
        yield subject.weighs(rows)


def _canaries(subject: Subject) -> Trials:
    """A value that no message may show, in forms that are malformed."""
    texts = (str(CANARY), f"{CANARY}x", b"%d" % CANARY)
    for value in (CANARY, *texts, CANARY + 0.5, [CANARY], {"id": CANARY}, {CANARY}):
        yield subject.silent(value)


def _repeats(subject: Subject) -> Trials:
    """The same value again: a row more is a row more."""
    for value in (0, 1):
        yield subject.hides(value)


_ONE_VALUE: Final = "a device has one value, not several"
_NO_COUNT: Final = "a bit, a register and a report hold no count"
_TIME: Final = "the order of periods is public time"
_USERS: Final = "users come in an order that is not kept; all events of a user count as one"

ATTACKS: Final[tuple[Attack, ...]] = (
    Attack(
        "least significant bits",
        "secrets enter the noise as floats, or outputs carry bits below the noise [Mir12]",
        _once("numbers"),
    ),
    Attack(
        "precision",
        "next to 2^53 numbers lose their last unit, so that noise is swallowed",
        _once("precise"),
        spares={"sketch": _NO_COUNT, "randomizer": _NO_COUNT},
    ),
    Attack(
        "types and sizes", "the type, length or size of what is published depends on the data", _once("sizes")
    ),
    Attack(
        "order of rows",
        "the same rows in another order give other sums",
        _orders,
        spares={"counter": _TIME, "sketch": _USERS, "randomizer": _ONE_VALUE},
    ),
    Attack(
        "overflow of counts",
        "counts wrap around at 2^31, at 2^32 or below 2^62",
        _crowds,
        spares={"sketch": _NO_COUNT, "randomizer": _ONE_VALUE},
    ),
    Attack(
        "huge integers",
        "values beyond 64 bits overflow, are refused, or show",
        _values(2**31, 2**63, -(2**63) - 1, 2**64, 10**400),
    ),
    Attack(
        "overflow of floats",
        "values near the largest float become infinite in a sum",
        _values(1.7976931348623157e308, -1.7976931348623157e308, 1e300),
    ),
    Attack(
        "not a number",
        "a NaN spreads to the output, or is refused",
        _values(float("nan"), -float("nan"), np.float32("nan"), "NaN"),
    ),
    Attack(
        "infinity",
        "an infinite value spreads to the output, or is refused",
        _values(float("inf"), -float("inf"), np.float32("inf"), "inf"),
    ),
    Attack("negative zero", "the sign of a zero survives", _values(-0.0, np.float64(-0.0), "-0.0")),
    Attack(
        "subnormal values",
        "values below the smallest normal float are lost, or divide by zero",
        _values(5e-324, -5e-324, 2.2250738585072014e-308),
    ),
    Attack(
        "rounding at bounds",
        "a value next to a bound or between two cells falls on the wrong side and shows",
        _values(0.1 + 0.2, 2.0000000000000004, 1.9999999999999998, 0.24999999999999997, -5e-324),
    ),
    Attack(
        "subnormal epsilon",
        "an epsilon next to zero is rounded to zero, and the scale divides by it",
        _refusals(epsilon=(5e-324, 1e-300, 0.0, -0.0)),
    ),
    Attack(
        "scale underflow",
        "a huge, infinite or undefined epsilon gives a scale of zero: no noise",
        _refusals(epsilon=(1e300, float("inf"), float("nan"), 10**30)),
    ),
    Attack(
        "cancellation in epsilon",
        "0.1 + 0.2 and its like are rounded, and more is lost than is promised",
        _promises,
    ),
    Attack(
        "float and bool contributions",
        "a bound of 1.5 rows, or of True, is taken and rounded down",
        _refusals(contributions=(1.5, True, 0, -1, float("nan"), "2")),
        spares={
            "sketch": "users may have any number of events",
            "randomizer": "a report is about one person",
        },
    ),
    Attack(
        "repeated rows",
        "a row that is there already is dropped, or counts for more than one",
        _repeats,
        spares={"counter": "a counter is given counts, not rows", "randomizer": _ONE_VALUE},
    ),
    Attack(
        "bool as value",
        "True and False are other values than 1 and 0, and show",
        _values(True, False, np.True_),
    ),
    Attack("values in messages", "an error or a warning shows a value of a row", _canaries),
)


def run_attacks(only: Collection[str] | None = None) -> Iterator[AttackTrial]:
    """Every attack on every public mechanism, or on those named."""
    for subject in subjects():
        if only is None or subject.name in only:
            yield from (attack.on(subject) for attack in ATTACKS)


# The second part of an audit: fresh draws of every public sampler against its exact law.
# A fit asks of a sample how often each of some events came, and bounds the probability of that by Chernoff.
# The p-value of a fit is the least of them times their number.
FAMILY_WISE: Final = 1e-6
"""With no more than this probability any fit of correct samplers is rejected."""

_SCALES: Final = (Fraction(1, 4), Fraction(1), Fraction(20), Fraction(1000), Fraction(10**6))
_FAR_DRAWN: Final = 200
"""Noise of scale 2 lies beyond this with a chance below 10^-40."""

_TURNS: Final = (0.1, 0.3, 0.7, 1.2, 2.0, 3.5)


class DrawEvent(NamedTuple):
    """What may happen to a draw, and how likely that is."""

    happened: Callable[[Any], Any]
    chance: float


Events: TypeAlias = Sequence[DrawEvent]


@final
@dataclass(frozen=True, kw_only=True)
class SamplerFit:
    """A sampler, how many draws it made, and a bound on the probability of fitting no better."""

    sampler: str
    draws: int
    events: int
    p: float


def fit(sampler: str, values: Any, events: Events) -> SamplerFit:
    """How well values fit the chances of all events."""
    drawn = np.asarray(values)
    values_of = (p_value(int(np.sum(event.happened(drawn))), len(drawn), event.chance) for event in events)
    p = min(1.0, len(events) * min(values_of))
    return SamplerFit(sampler=sampler, draws=len(drawn), events=len(events), p=p)


def laplace_events(scale: Fraction) -> list[DrawEvent]:
    """Zero, odd, above or below multiples of the scale, far from zero, and two neighbours above zero."""
    rate = float(1 / scale)
    a = math.exp(-rate)
    events = [
        DrawEvent(lambda x: x == 0, -math.expm1(-rate) / (1 + a)),
        DrawEvent(lambda x: x % 2 == 1, 2 * a / (1 + a) ** 2),
        DrawEvent(lambda x: (x[::2][: len(x) // 2] > 0) & (x[1::2] > 0), (a / (1 + a)) ** 2 / 2),
    ]
    for cut in sorted({math.ceil(turn * scale) for turn in _TURNS}):
        tail = math.exp(-rate * (cut + 1)) / (1 + a)
        events += [
            DrawEvent(partial(np.less, cut), tail),
            DrawEvent(partial(np.greater, -cut), tail),
            DrawEvent(partial(_is_far, cut), 2 * tail),
        ]
    return events


def geometric_events(scale: Fraction) -> list[DrawEvent]:
    """Zero, odd, and above multiples of the scale."""
    rate = float(1 / scale)
    a = math.exp(-rate)
    cuts = sorted({math.ceil(turn * scale) for turn in _TURNS})
    return [
        DrawEvent(lambda x: x < 0, 0.0),
        DrawEvent(lambda x: x == 0, -math.expm1(-rate)),
        DrawEvent(lambda x: x % 2 == 1, a / (1 + a)),
        *(DrawEvent(partial(np.less, cut), math.exp(-rate * (cut + 1))) for cut in cuts),
    ]


def _is_far(cut: int, values: Any) -> Any:
    return np.abs(values) > cut


def _each(chances: Sequence[float]) -> list[DrawEvent]:
    """Every outcome 0, 1, ... by itself."""
    return [DrawEvent(partial(np.equal, outcome), chance) for outcome, chance in enumerate(chances)]


def sampler_fits(depth: Depth = "standard") -> Iterator[SamplerFit]:
    """A fit of every public sampler, on every path by which it may be computed."""
    many, few = step(depth, 20_000, 200_000, 2_000_000), step(depth, 1_000, 6_000, 40_000)
    for path in _paths():
        yield from _additive(path, SystemNoise(Words, path=path), many)
    yield from _additive("kernel words", SystemNoise(KernelWords, path="numpy"), many // 8)
    yield from _additive("exact path", SystemNoise(Words, path="exact"), few)
    yield from _choices(few)
    yield from _positions(few)
    yield from _cuts(few)
    yield from _device(few)
    yield from _reports(many // 4)


def _paths() -> tuple[Path, ...]:
    """The ways in which fast noise is computed here."""
    return ("numpy", "compiled") if laws.available() else ("numpy",)


def _additive(name: str, noise: SystemNoise, draws: int) -> Iterator[SamplerFit]:
    for scale in _SCALES:
        laplace, geometric = laplace_events(scale), geometric_events(scale)
        yield fit(f"discrete_laplace, {name}, scale {scale}", noise.discrete_laplace(scale, draws), laplace)
        yield fit(f"geometric, {name}, scale {scale}", noise.geometric(scale, draws), geometric)
    added = noise.add(np.full(draws, 7), Fraction(20)) - 7
    yield fit(f"add, {name}, scale 20", added, laplace_events(Fraction(20)))
    parts = noise.discrete_laplace_units(Fraction(1, 60), np.full(draws, 3))
    yield fit(f"discrete_laplace_units, {name}, scale 20", parts, laplace_events(Fraction(20)))


def _choices(draws: int) -> Iterator[SamplerFit]:
    noise, scores = SYSTEM.session(), [0, 3, 3, 5, -2]
    weights = [math.exp(score / 2) for score in scores]
    chosen = [noise.exponential(scores, Fraction(2)) for _ in range(draws)]
    yield fit("exponential", chosen, _each([weight / sum(weights) for weight in weights]))
    chosen = [noise.categorical([1, 2, 0, 4]) for _ in range(draws)]
    yield fit("categorical", chosen, _each([1 / 7, 2 / 7, 0.0, 4 / 7]))
    heads = [noise.bernoulli(Fraction(1, 3)) for _ in range(draws)]
    yield fit("bernoulli", heads, _each([2 / 3, 1 / 3]))


def _positions(draws: int) -> Iterator[SamplerFit]:
    """One long run: the offset is geometric with ratio P[noise <= level]."""
    level, rate = 9, 1 / 3
    tails: dict[Law, float] = {
        "laplace": math.exp(-rate * (level + 1)) / (1 + math.exp(-rate)),
        "geometric": math.exp(-rate * (level + 1)),
    }
    for name, noise in (("", SYSTEM.session()), (", kernel words", KERNEL)):
        for law, tail in tails.items():
            found = [noise.first_success(law, Fraction(3)).run(level, 2**62) for _ in range(draws // 4)]
            length = Fraction(-1 / math.log1p(-tail))
            yield fit(f"first_success, {law}{name}", found, geometric_events(length))


def _cuts(draws: int) -> Iterator[SamplerFit]:
    """The first segment of a cut: by the fast walk, which enumeration leaves out, where the path has one."""
    counts = (0, 1, 0, 2, 0, 0)
    histogram = Histogram.dense(counts)
    for law in get_args(Law):
        partition = Partition(size=len(counts), epsilon=Fraction(1, 2), law=law, threshold=1)
        events = _each(_first_seal(partition, counts))
        for path in _paths():
            noise = SystemNoise(Words, path=path)
            found = [int(partition.cut(histogram, noise=noise).edges[0]) for _ in range(draws // 2)]
            yield fit(f"first segment of a cut, {law}, {path}", found, events)


def _first_seal(partition: Partition, counts: Sequence[int]) -> list[float]:
    """How likely the first segment ends at each cell: summed over the noise of the threshold."""
    rate, found = float(1 / partition.scale), [0.0] * len(counts)
    for drawn in range(-_FAR_DRAWN if partition.law == "laplace" else 0, _FAR_DRAWN):
        left, level = _mass(partition.law, drawn, rate), partition.threshold + drawn
        for cell, count in enumerate(counts[:-1]):
            level -= count
            sealed = left * _exceeds(partition.law, level, rate)
            found[cell] += sealed
            left -= sealed
        found[-1] += left
    return found


def _mass(law: Law, value: int, rate: float) -> float:
    a = math.exp(-rate)
    return (1 - a) / (1 + a) * a ** abs(value) if law == "laplace" else (1 - a) * a**value


def _exceeds(law: Law, level: int, rate: float) -> float:
    """The chance of noise above a level."""
    if law == "geometric":
        return math.exp(-rate * max(0, level + 1))
    below = math.exp(rate * min(0, level)) / (1 + math.exp(-rate))
    return 1 - below if level < 0 else math.exp(-rate * (level + 1)) / (1 + math.exp(-rate))


def _device(draws: int) -> Iterator[SamplerFit]:
    """The sampler of the standard library alone, which devices and pan-private state use."""
    for scale in (Fraction(1, 4), Fraction(1), Fraction(37, 2)):
        laplace = [kernel.discrete_laplace(scale) for _ in range(draws)]
        geometric = [kernel.geometric(scale) for _ in range(draws)]
        yield fit(f"device discrete_laplace, scale {scale}", laplace, laplace_events(scale))
        yield fit(f"device geometric, scale {scale}", geometric, geometric_events(scale))
    yield fit("device below", [kernel.below(100) for _ in range(draws)], _each([0.01] * 100))
    heads = math.exp(-1.5)
    coins = [kernel.bernoulli_exp(Fraction(3, 2)) for _ in range(draws)]
    yield fit("device bernoulli_exp", coins, _each([1 - heads, heads]))
    coins = [kernel.bernoulli(Fraction(2, 7)) for _ in range(draws)]
    yield fit("device bernoulli", coins, _each([5 / 7, 2 / 7]))
    device = KernelDraws()
    yield fit("device chance", [device.chance(WHOLE // 8) for _ in range(draws)], _each([7 / 8, 1 / 8]))
    bits = [device.row(WHOLE // 4, 2) for _ in range(draws)]
    yield fit("device row", bits, _each([9 / 16, 3 / 16, 3 / 16, 1 / 16]))


def _reports(draws: int) -> Iterator[SamplerFit]:
    """Columns of reports of every randomizer, against its exact law."""
    for name in (each for each in RANDOMIZERS if each != "UnaryEncoding"):  # that one reports rows of bits
        randomizer = getattr(local, name)(size=3, epsilon=Fraction(1))
        reports = randomizer.randomize_many(np.full(draws, 2))
        yield fit(f"reports of {name}", reports, _list_events(randomizer.pmf(2)))
    third = Fraction(1, 3)
    listed = local.ListedLaw(table=((2 * third, third), (third, 2 * third)), epsilon=Fraction(1))
    yield fit("reports of ListedLaw", listed.randomize_many(np.full(draws, 1)), _list_events(listed.pmf(1)))
    unary = local.UnaryEncoding(size=3, epsilon=Fraction(1))
    rows = unary.randomize_many(np.full(draws, 2)).reshape(draws, -1)[:, 0]
    yield fit("reports of UnaryEncoding", rows, _list_events(unary.pmf(2)))
    mixture = local.Range(4, epsilon=1).randomizer
    yield fit("reports of Mixture", mixture.randomize_many(np.full(draws, 2)), _list_events(mixture.pmf(2)))


def _list_events(chances: dict[int, Fraction]) -> list[DrawEvent]:
    return [DrawEvent(partial(np.equal, report), float(chance)) for report, chance in chances.items()]
