"""The replay test: one and the same release from two neighbouring data sets, and how much likelier on one.

The shipped code runs on one data set, and every value that the noise returns is recorded. It runs again on a
neighbour, and the noise returns the same values: the same noisy numbers, the same selections, the same seals.
Then the same must be released, and the ratio of the probabilities of these values under both data sets is the
privacy loss on this outcome. It is computed from the laws that the noise promises, in fractions and certified
enclosures; no rounding can hide an excess.

Coupling bounds what an outcome costs, and enumeration needs tiny laws. This does neither: it computes the
loss of the outcomes that it meets, of whatever draws from the system's noise, `partita.publish` included.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final, NoReturn, TypeAlias, TypeVar, final

import numpy as np
from flint import arb
from numpy.typing import ArrayLike

from partita.domain.base import Domain
from partita.public.file import encode
from partita.publish.publish import publish
from partita.testing.doubles import EndlessTape, tape_noise
from partita.testing.laws import flip_law, spell_out
from partita.trusted.noise.hazard import Law
from partita.trusted.noise.laws import enclose, precision
from partita.trusted.noise.system import SYSTEM

Data = TypeVar("Data")
Runs: TypeAlias = tuple[tuple[int, int], ...]

PASSES: Final = 3  # one by the law of the noise, two that favor the neighbour
TOLERANCE: Final = Fraction(1, 2**60)
"""A loss that is a real number is known by an enclosure; it may be beyond epsilon by this much."""

_BITS: Final = 256  # of enclosures; far more than TOLERANCE needs
_DAY: Final = "2000-01-01"
_NAMES: Final = (
    "session", "add", "add_gaussian", "draw", "first_success", "segments", "bernoulli", "categorical",
    "exponential", "permute_and_flip", "integers_below", "discrete_laplace", "discrete_laplace_units",
    "discrete_gaussian", "geometric",
)  # fmt: skip
_REPLACING = threading.RLock()


class ReplayBroken(AssertionError):
    """The same noise was not asked for, or another output came of it: no likelihoods can be compared."""


@final
@dataclass(frozen=True)
class ReplayedLoss:
    """ln of the ratio of two likelihoods, without its sign: a fraction plus real numbers, or infinite.

    `loss <= epsilon` is certified, but for `TOLERANCE` where real numbers are in it. It is false where
    Gaussian noise hides a difference, whatever came out: no epsilon bounds the loss. What bounds such a
    release is rho. `squares` is twice what the draws cost of it: the square of each difference that Gaussian
    noise hides over its variance, and the square of what each other draw loses on this outcome, where that is
    a fraction; `mixed` has the others.

    >>> ReplayedLoss(Fraction(-1)) <= 1, ReplayedLoss(Fraction(3, 2)) <= 1
    (True, False)
    >>> hidden = ReplayedLoss(Fraction(0), squares=Fraction(1, 50), gaussian=True)
    >>> hidden <= 1, hidden.within_rho(Fraction(1, 100))
    (False, True)
    """

    rational: Fraction
    reals: tuple[Callable[[], arb], ...] = ()
    squares: Fraction = Fraction(0)
    mixed: tuple[tuple[Fraction, Callable[[], arb]], ...] = ()
    gaussian: bool = False

    @property
    def rho(self) -> float:
        """About what the draws cost of zCDP, on this outcome."""
        with precision(_BITS):
            enclosed = self._enclose_squares() / 2
            return float(enclosed.mid()) if enclosed.is_finite() else math.inf

    def within_rho(self, rho: Fraction | int) -> bool:
        """Whether the draws cost at most this much of zCDP, on this outcome; but for `TOLERANCE`."""
        if not self.mixed:
            return self.squares <= 2 * rho
        with precision(_BITS):
            return bool(self._enclose_squares() <= enclose(2 * (Fraction(rho) + TOLERANCE)))

    def _enclose_squares(self) -> arb:
        total = enclose(self.squares)
        for exact, real in self.mixed:
            total += (enclose(exact) + real()) ** 2
        return total

    def __le__(self, epsilon: Fraction | int) -> bool:
        if self.gaussian:
            return False
        if not self.reals:
            return abs(self.rational) <= epsilon
        with precision(_BITS):
            return bool(abs(self._enclose()) <= enclose(Fraction(epsilon) + TOLERANCE))

    def __float__(self) -> float:
        if self.gaussian:
            return math.inf
        with precision(_BITS):
            enclosed = self._enclose()
            return abs(float(enclosed.mid())) if enclosed.is_finite() else math.inf

    def _enclose(self) -> arb:
        total = enclose(self.rational)
        for real in self.reals:
            total += real()
        return total


def replay(
    run: Callable[[Data], object], data: Data, neighbor: Data, *, seed: object = 0, passes: int = PASSES
) -> ReplayedLoss:
    """The largest loss of a few outcomes: `run` is made to return the same for the data and their neighbour.

    `run(data)` draws from the system's noise, as `partita.publish` does, and returns all that is released,
    comparable with ==. In the first pass the noise is drawn by its law from a fixed tape. Later passes know
    from the pass before where the two data sets differ, and turn the noise there so that the outcome is as
    much likelier on one of them as it can be: on `neighbor` in the next two passes, on `data` in the two
    after them. Each of these outcomes is possible, so each must lose no more than epsilon.

    Raises `ReplayBroken` where shapes, scales, candidates or the number of draws differ, or the output.

    >>> from partita import HistogramCounts, Histogram
    >>> histogram = HistogramCounts(size=3, epsilon=1)
    >>> def run(counts):
    ...     return histogram.release(Histogram.dense(counts)).noisy.tolist()
    >>> float(replay(run, (0, 2, 0), (0, 3, 0)))
    1.0
    """
    worst = ReplayedLoss(Fraction(0))
    before: list[_Look] = []
    for number in range(passes):
        first = _First(EndlessTape((seed, number)), before, favors_data=(number - 1) // 2 % 2 == 1)
        with system_noise(first):
            output = run(data)
        second = _Second(first.looks)
        with system_noise(second):
            repeated = run(neighbor)
        if second.used != len(first.looks):
            raise ReplayBroken("the numbers of draws differ: they depend on the data")
        if repeated != output:
            raise ReplayBroken("the outputs differ: something that no noise protects reached them")
        loss = _loss(first.looks)
        worst = max(worst, loss, key=lambda each: (float(each), each.rho))
        before = first.looks
    return worst


def replay_publish(
    source: object,
    neighbor: object,
    schema: Mapping[str, Domain],
    *,
    seed: object = 0,
    passes: int = PASSES,
    **options: Any,
) -> ReplayedLoss:
    """`replay` of `partita.publish` on two tables: their releases must be the same file, byte for byte.

    `options` are those of `publish`. The day on which a release was made is left out of the comparison.

    >>> from partita import Integer
    >>> table, larger = {"age": [0, 1]}, {"age": [0, 1, 1]}
    >>> loss = replay_publish(table, larger, {"age": Integer(0, 3)}, epsilon=1, mechanism="tree")
    >>> float(loss), loss <= 1
    (1.0, True)
    """

    def run(table: object) -> bytes:
        release = publish(table, schema, **options)
        if release.guarantee is not None:
            raise ReplayBroken("a release with other noise than the system's carries a guarantee")
        return encode(replace(release, provenance=replace(release.provenance, day=_DAY)))

    return replay(run, source, neighbor, seed=seed, passes=passes)


@contextmanager
def system_noise(noise: Any) -> Iterator[None]:
    """All that this thread draws from `SYSTEM` comes from another noise; other threads are left alone.

    `publish` has no parameter for noise, so this is how a test reaches the noise that it uses. What is
    released meanwhile carries no guarantee, as with every noise that is not the system's.
    """
    owner = threading.get_ident()

    def replaced(name: str) -> Callable[..., Any]:
        shipped = getattr(SYSTEM, name)

        def call(*given: Any, **named: Any) -> Any:
            chosen = getattr(noise, name) if threading.get_ident() == owner else shipped
            return chosen(*given, **named)

        return call

    with _REPLACING:
        before = dict(vars(SYSTEM))
        try:
            vars(SYSTEM).update({name: replaced(name) for name in _NAMES})
            yield
        finally:
            for name in _NAMES:
                vars(SYSTEM).pop(name, None)
            vars(SYSTEM).update(before)


@dataclass
class _Addition:
    """One call of `add`: what was secret in both runs, at which scales, and what came out."""

    secret: Any
    scales: Any
    noisy: Any
    scalar: bool
    other: Any = None

    def losses(self) -> Iterator[Fraction]:
        """|y - x'| / scale - |y - x| / scale, of each entry that differs."""
        for place in np.flatnonzero(self.secret != self.other):
            x, y, z = (int(each[place]) for each in (self.secret, self.noisy, self.other))
            yield (abs(y - z) - abs(y - x)) / self.scales[place]

    def loss(self) -> ReplayedLoss:
        """The sum over all entries; each is a draw of its own."""
        found = list(self.losses())
        return ReplayedLoss(sum(found, Fraction(0)), squares=sum((each**2 for each in found), Fraction(0)))


@dataclass
class _Gaussian(_Addition):
    """One call of `add_gaussian`; its scales are the variances."""

    def loss(self) -> ReplayedLoss:
        """What each difference costs of rho, whatever came out; without any, nothing."""
        apart = np.flatnonzero(self.secret != self.other)
        squares = [(int(self.secret[i]) - int(self.other[i])) ** 2 / self.scales[i] for i in apart]
        return ReplayedLoss(Fraction(0), squares=sum(squares, Fraction(0)), gaussian=bool(apart.size))


@dataclass
class _Selection:
    """One choice by scores."""

    secret: Any
    scale: Fraction
    chosen: int
    other: Any = None

    def loss(self) -> ReplayedLoss:
        """The scores of the chosen one, and the sums of all weights.

        Losses of all outcomes lie in a range, and cost an eighth of its square of rho [CR21].
        """
        apart = [int(a) - int(b) for a, b in zip(self.secret, self.other, strict=True)]
        squares = ((max(apart) - min(apart)) / self.scale) ** 2 / 4
        lost = apart[self.chosen] / self.scale
        if not any(apart):
            return ReplayedLoss(lost)
        weights = lambda: _log_weights(self.other, self.scale) - _log_weights(self.secret, self.scale)  # noqa: E731
        return ReplayedLoss(lost, (weights,), squares=squares)


@dataclass
class _Flip(_Selection):
    """One choice by scores with permute-and-flip; every candidate has its score."""

    def loss(self) -> ReplayedLoss:
        """The chances of the chosen one under both."""
        if (self.secret == self.other).all():
            return _one_loss(Fraction(0))
        return _one_loss(Fraction(0), lambda: self._log_chance(self.secret) - self._log_chance(self.other))

    def _log_chance(self, scores: Any) -> arb:
        law = flip_law(scores.tolist(), lambda gap: enclose(-gap / self.scale).exp())
        chance: arb = law[self.chosen]
        return chance.log()


@dataclass
class _Segment:
    """One segment: the noise of its threshold is hidden, and the position that seals it is released.

    `levels` are those of the first run at each position, as if the threshold had no noise, and `other` those
    of the second. A segment that is not sealed ends with its last position.
    """

    law: Law
    scale: Fraction
    levels: list[int] = field(default_factory=list)
    other: list[int] = field(default_factory=list)
    sealed: bool = False

    def loss(self) -> ReplayedLoss:
        """The ratio of the probabilities that a segment is sealed just there."""
        one, other = tuple(self.levels), tuple(self.other)
        if len(one) != len(other):
            raise ReplayBroken("the length of a segment depends on the data")
        if one == other:
            return _one_loss(Fraction(0))

        def ratio() -> arb:
            logs = [_log_sealed(self.law, self.scale, levels, self.sealed) for levels in (one, other)]
            return logs[0] - logs[1]

        return _one_loss(Fraction(0), ratio)


_Look: TypeAlias = _Addition | _Selection | _Segment


def _one_loss(exact: Fraction, real: Callable[[], arb] | None = None) -> ReplayedLoss:
    """What one draw loses: a fraction, plus a real number if there is one."""
    if real is None:
        return ReplayedLoss(exact, squares=exact**2)
    return ReplayedLoss(exact, (real,), mixed=((exact, real),))


def _loss(looks: Sequence[_Look]) -> ReplayedLoss:
    found = [look.loss() for look in looks]
    return ReplayedLoss(
        rational=sum((each.rational for each in found), Fraction(0)),
        reals=tuple(real for each in found for real in each.reals),
        squares=sum((each.squares for each in found), Fraction(0)),
        mixed=tuple(one for each in found for one in each.mixed),
        gaussian=any(each.gaussian for each in found),
    )


class _Replaying:
    """What both runs have in common; its releases carry no guarantee."""

    secure: ClassVar[bool] = False

    def session(self) -> Any:
        return self

    def segments(self, *_: object) -> None:
        """No fast walk: positions are walked one by one."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise ReplayBroken("a draw of this kind cannot be replayed")

    bernoulli = categorical = discrete_laplace = discrete_laplace_units = geometric = _refuse
    integers_below = discrete_gaussian = _refuse


class _First(_Replaying):
    """Noise by its law, or turned to where an earlier pass has seen a difference; all of it is recorded."""

    def __init__(self, tape: EndlessTape, before: Sequence[_Look], *, favors_data: bool) -> None:
        self._tape, self._before = tape, before
        self._toward = 1 if favors_data else -1
        self._noise = tape_noise(tape, path="numpy")
        self._threshold: tuple[Law, Fraction] | None = None
        self.looks: list[_Look] = []

    def _known(self, kind: type[Any]) -> Any:
        """The same look of the pass before, if there was one."""
        look = self._before[len(self.looks)] if len(self.looks) < len(self._before) else None
        return look if type(look) is kind else None

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        secret = _flat(x)
        drawn = self._noise.add(np.zeros(secret.size, np.int64), scale, parts=_flat_parts(x, parts))
        noise = self._turn(np.asarray(drawn, dtype=object), secret, _Addition)
        look = _Addition(secret, _scales(x, scale, parts), secret + noise, np.ndim(x) == 0)
        self.looks.append(look)
        return _reshape_like(look.noisy, x)

    def add_gaussian(self, x: ArrayLike, variance: Fraction) -> Any:
        secret = _flat(x)
        drawn = self._noise.add_gaussian(np.zeros(secret.size, np.int64), variance)
        noise = self._turn(np.asarray(drawn, dtype=object), secret, _Gaussian)
        look = _Gaussian(secret, _scales(x, variance, None), secret + noise, np.ndim(x) == 0)
        self.looks.append(look)
        return _reshape_like(look.noisy, x)

    def _turn(self, noise: Any, secret: Any, kind: type[Any]) -> Any:
        """The noise, or where the pass before saw a difference, noise that favors one of the data sets."""
        known = self._known(kind)
        if known is not None and known.secret.size == secret.size:
            # Beyond the value of the data set that is favored, seen from the other one.
            apart = self._toward * (known.secret - known.other)
            beyond = abs(noise) if self._toward > 0 else abs(noise) + abs(apart)
            noise = np.where(apart == 0, noise, np.where(apart > 0, beyond, -beyond))
        return noise

    def exponential(self, scores: ArrayLike, scale: Fraction) -> int:
        secret, known = _flat(scores), self._known(_Selection)
        chosen = int(self._tape.take(1)[0]) % int(secret.size)
        if known is not None and known.secret.size == secret.size:
            chosen = int(np.argmax((self._toward * (known.secret - known.other)).astype(np.int64)))
        self.looks.append(_Selection(secret, Fraction(scale), chosen))
        return chosen

    def permute_and_flip(self, scores: ArrayLike, lengths: ArrayLike, scale: Fraction) -> int:
        secret, known = _flat(spell_out(scores, lengths)), self._known(_Flip)
        chosen = int(self._tape.take(1)[0]) % int(secret.size)
        if known is not None and known.secret.size == secret.size:
            chosen = int(np.argmax((self._toward * (known.secret - known.other)).astype(np.int64)))
        self.looks.append(_Flip(secret, Fraction(scale), chosen))
        return chosen

    def draw(self, law: Law, scale: Fraction) -> int:
        self._threshold = (law, Fraction(scale))
        return 0

    def first_success(self, law: Law, scale: Fraction) -> _FirstWalk:
        if self._threshold != (law, Fraction(scale)):
            raise ReplayBroken("a segment has no threshold with noise of its own")
        self._threshold = None
        segment = _Segment(law, Fraction(scale))
        walk = _FirstWalk(segment, self._tape, self._known(_Segment), self._toward)
        self.looks.append(segment)
        return walk


@dataclass
class _FirstWalk:
    """Seals a third of all positions, or the first that the data set which is favored likelier seals."""

    segment: _Segment
    tape: EndlessTape
    known: _Segment | None
    toward: int

    def run(self, level: int, length: int) -> int | None:
        for offset in range(length):
            self.segment.levels.append(level)
            if self._seals():
                self.segment.sealed = True
                return offset
        return None

    def _seals(self) -> bool:
        place = len(self.segment.levels) - 1
        if self.known is not None and place < len(self.known.levels):
            apart = self.known.levels[place] - self.known.other[place]
            if apart:
                return self.toward * apart < 0
        return int(self.tape.take(1)[0]) % 3 == 0


class _Second(_Replaying):
    """The same values again, whatever the secrets are; what is asked for must be the same."""

    def __init__(self, looks: Sequence[_Look]) -> None:
        self._looks = looks
        self._threshold: tuple[Law, Fraction] | None = None
        self.used = 0

    def _next(self, kind: type[Any]) -> Any:
        look = self._looks[self.used] if self.used < len(self._looks) else None
        self.used += 1
        if type(look) is not kind:
            raise ReplayBroken("the kinds or numbers of draws depend on the data")
        return look

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        look: _Addition = self._next(_Addition)
        look.other = _flat(x)
        if look.scales != _scales(x, scale, parts) or look.scalar != (np.ndim(x) == 0):
            raise ReplayBroken("shapes or scales depend on the data")
        return _reshape_like(look.noisy, x)

    def add_gaussian(self, x: ArrayLike, variance: Fraction) -> Any:
        look: _Gaussian = self._next(_Gaussian)
        look.other = _flat(x)
        if look.scales != _scales(x, variance, None) or look.scalar != (np.ndim(x) == 0):
            raise ReplayBroken("shapes or variances depend on the data")
        return _reshape_like(look.noisy, x)

    def exponential(self, scores: ArrayLike, scale: Fraction) -> int:
        return self._again(_Selection, _flat(scores), scale)

    def permute_and_flip(self, scores: ArrayLike, lengths: ArrayLike, scale: Fraction) -> int:
        return self._again(_Flip, _flat(spell_out(scores, lengths)), scale)

    def _again(self, kind: type[_Selection], scores: Any, scale: Fraction) -> int:
        look: _Selection = self._next(kind)
        look.other = scores
        if look.other.size != look.secret.size or look.scale != Fraction(scale):
            raise ReplayBroken("candidates or scales depend on the data")
        chosen: int = look.chosen
        return chosen

    def draw(self, law: Law, scale: Fraction) -> int:
        """Another noise than in the first run: a threshold that ignores it has another level."""
        self._threshold = (law, Fraction(scale))
        return 1

    def first_success(self, law: Law, scale: Fraction) -> _SecondWalk:
        segment: _Segment = self._next(_Segment)
        if self._threshold != (law, Fraction(scale)) or (segment.law, segment.scale) != self._threshold:
            raise ReplayBroken("the noise of a segment depends on the data")
        self._threshold = None
        return _SecondWalk(segment)


@dataclass
class _SecondWalk:
    """Seals where the first walk did."""

    segment: _Segment

    def run(self, level: int, length: int) -> int | None:
        known, walked = self.segment, self.segment.other
        if len(walked) + length > len(known.levels) and not known.sealed:
            raise ReplayBroken("a segment goes on for longer")
        for offset in range(length):
            walked.append(level - 1)
            if known.sealed and len(walked) == len(known.levels):
                return offset
        return None


def _flat(x: ArrayLike) -> Any:
    return np.array(x, dtype=object).reshape(-1)


def _flat_parts(x: ArrayLike, parts: ArrayLike | None) -> Any:
    return None if parts is None else np.broadcast_to(np.asarray(parts), np.shape(x)).reshape(-1)


def _scales(x: ArrayLike, scale: Fraction, parts: ArrayLike | None) -> list[Fraction]:
    """The scale of each entry."""
    exact = Fraction(scale)
    if parts is None:
        return [exact] * int(np.size(x))
    return [exact / int(part) for part in _flat_parts(x, parts)]


def _reshape_like(noisy: Any, x: ArrayLike) -> Any:
    """Fresh values in the shape of what was given."""
    if np.ndim(x) == 0:
        return int(noisy[0])
    fits = all(-(2**63) <= value < 2**63 for value in noisy)
    return noisy.astype(np.int64 if fits else object).reshape(np.shape(x))


def _log_weights(scores: Any, scale: Fraction) -> arb:
    """ln of the sum of exp(score / scale)."""
    values = sorted(int(score) for score in scores)
    total = arb(0)
    for value in values:
        total += enclose((value - values[-1]) / scale).exp()
    return enclose(values[-1] / scale) + total.log()


@lru_cache(maxsize=4096)
def _log_sealed(law: Law, scale: Fraction, levels: tuple[int, ...], sealed: bool) -> arb:
    """ln of the probability that a segment of these levels is sealed at its last position, or not at all.

    That is the sum over the noise n of the threshold of P[n] prod F(level + n), times 1 - F(last level + n)
    where it is sealed, with F the distribution of the noise at a position. Where the sum is cut off, what is
    left out is at most the probability of such n, and is part of the enclosure. Only called with `_BITS`.
    """
    a = enclose(-1 / scale).exp()
    reach = int(90 * scale) + 2 * max(abs(level) for level in levels) + 4
    total = arb(0)
    for noise in range(0 if law == "geometric" else -reach, reach):
        term = _mass(law, a, noise)
        before, last = (levels[:-1], levels[-1]) if sealed else (levels, None)
        for level, count in zip(*np.unique(before, return_counts=True), strict=True):
            term *= (1 - _above(law, a, int(level) + noise)) ** int(count)
        if last is not None:
            term *= _above(law, a, last + noise)
        total += term
    rest = 2 * a**reach
    return (total + rest / 2 + arb(0, 1) * rest / 2).log()


def _mass(law: Law, a: arb, noise: int) -> arb:
    return (1 - a) * a**noise if law == "geometric" else (1 - a) / (1 + a) * a ** abs(noise)


def _above(law: Law, a: arb, level: int) -> arb:
    """P[noise > level]."""
    if law == "geometric":
        return a ** (level + 1) if level >= 0 else arb(1)
    if level >= 0:
        return a ** (level + 1) / (1 + a)
    return 1 - a ** (-level) / (1 + a)
