"""The base of all mechanisms: their common parameters, checks, noisy looks at trees, and special cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Protocol, TypedDict, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.arrays import Ints, UInts
from partita.concentrated import (
    DEFAULT_DELTA,
    epsilon_of_rho,
    largest,
    positive,
    pure_within,
    rho_of_laplace,
    rho_of_pure,
    rho_within,
)
from partita.curves import gaussian_variance_within
from partita.domain.axis import Axis
from partita.errors import InvalidData, check, check_bool, check_data
from partita.guarantee import (
    ADD_REMOVE,
    Guarantee,
    Neighbors,
    Unit,
    positive_epsilon,
    rows_changed,
    same_rows,
    squares_changed,
    unit_of,
)
from partita.numbers import Converted, Exact, check_probability, freeze, frozen, integer, parameter, rational
from partita.public.axis.base import AxisRelease, Specials
from partita.public.axis.flat import FlatRelease
from partita.public.axis.tree_solver import Fork, LevelEvidence, SpendingRule, TreeLooks
from partita.public.bounds import Gaussian, NoiseLaw, laplace_variance
from partita.trusted.noise.gaussian import LARGEST_VARIANCE, SMALLEST_VARIANCE
from partita.trusted.noise.hazard import Law
from partita.trusted.noise.laws import Exact as laws_Exact
from partita.trusted.noise.system import (
    LARGEST_SCALE,
    SMALLEST_SCALE,
    SYSTEM,
    Noise,
    Positions,
    SuccessSearch,
    SystemNoise,
)
from partita.trusted.secret import AxisCounts, PointCounts

_LARGEST_COUNT: Final = 2**62  # noisy counts stay within 64 bits


class Protected(TypedDict):
    """Whom a mechanism protects, as keywords for the mechanisms that it consists of."""

    neighbors: Neighbors
    contributions: int
    unit: Unit


@frozen(kw_only=True)
class Private:
    """A mechanism that is pure epsilon-DP between named neighbours.

    The parameters of all mechanisms are fields of this class. A mechanism adds its own, and extends
    `_convert` and `_check`.
    """

    epsilon: Exact = parameter()
    neighbors: Neighbors = "add-remove"
    contributions: int = 1
    unit: Converted[Unit | None, Unit] = parameter(default=None)

    def __post_init__(self) -> None:
        self._convert()
        self._check()

    def _convert(self) -> None:
        """Check each parameter, and store it in its exact type."""
        rows_changed(self.neighbors, self.contributions)
        freeze(
            self,
            epsilon=positive_epsilon(self.epsilon),
            contributions=int(self.contributions),
            unit=unit_of(self.unit, self.contributions),
        )

    def _check(self) -> None:
        """Refuse parameters that do not go together, and an epsilon whose noise cannot be drawn."""

    @property
    def guarantee(self) -> Guarantee:
        """What the release promises, and for whom."""
        return Guarantee(epsilon=self.epsilon, **self.protected)

    @property
    def protected(self) -> Protected:
        """Whom the release protects."""
        return {"neighbors": self.neighbors, "contributions": self.contributions, "unit": self.unit}

    @property
    def rows_changed(self) -> int:
        """By how many rows neighbours may differ."""
        return rows_changed(self.neighbors, self.contributions)

    @property
    def same_rows(self) -> bool:
        """Whether neighbours have equally many rows, so that their number is public."""
        return same_rows(self.neighbors, self.contributions, self.unit)

    @property
    def rate(self) -> Fraction:
        """Epsilon for each row by which neighbours may differ."""
        return self.epsilon / self.rows_changed


@frozen(kw_only=True)
class Concentrated(Private):
    """A mechanism that spends rho of zero-concentrated privacy [BS16], and not epsilon.

    Made with `rho`, its guarantee states rho, and the epsilon that follows from it at `delta`. Made with
    `epsilon`, it spends the largest rho that is (epsilon, delta)-DP, and states all three.
    """

    takes_rho: ClassVar[bool] = True

    epsilon: Converted[object, Fraction] = parameter(default=None)
    rho: Converted[object, Fraction] = parameter(default=None)
    delta: Exact = parameter(default=DEFAULT_DELTA)

    def _convert(self) -> None:
        rows_changed(self.neighbors, self.contributions)
        given: object = self.rho
        asked: object = self.epsilon
        if given is None:
            epsilon = positive_epsilon(asked)
            rule, fix = "must be at least 2^-62", "use a value such as 1"
            check(epsilon >= 1 / LARGEST_SCALE, "epsilon", rule, given=asked, fix=fix)
            freeze(self, rho=self._rho_within(epsilon, rational(self.delta, "delta")))
        else:
            rho, stated = positive(given, "rho"), epsilon_of_rho(given, self.delta)
            epsilon = stated if asked is None else positive_epsilon(asked)
            rule, fix = "must be left out, or be what rho allows", "leave it out where rho is given"
            allowed = epsilon >= stated or rho <= self._rho_within(epsilon, rational(self.delta, "delta"))
            check(allowed, "epsilon", rule, given=asked, fix=fix)
            freeze(self, rho=rho)
        freeze(self, epsilon=epsilon, delta=rational(self.delta, "delta"))
        super()._convert()

    def _rho_within(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """The largest rho that is (epsilon, delta)-DP."""
        return rho_within(epsilon, delta)

    @property
    def guarantee(self) -> Guarantee:
        """What the release promises, and for whom."""
        return Guarantee(rho=self.rho, epsilon=self.epsilon, delta=self.delta, **self.protected)


@frozen(kw_only=True)
class GaussianCells(Concentrated):
    """Counts of cells of which a row is in one, each with discrete Gaussian noise of the same variance.

    Made with epsilon, rho is what the exact privacy curve of this noise allows: `partita.curves`.
    """

    def _check(self) -> None:
        rule, fix = "must give noise of a variance between 2^-20 and 2^124", "use a value such as 1"
        check(SMALLEST_VARIANCE <= self.variance <= LARGEST_VARIANCE, "rho", rule, given=self.rho, fix=fix)

    @property
    def squares(self) -> int:
        """The largest sum of the squares by which the counts of neighbours differ."""
        return squares_changed(self.neighbors, self.contributions)

    @property
    def variance(self) -> Fraction:
        """The variance parameter of the noise: the squares over 2 rho [CKS20, Theorem 14]."""
        return self.squares / (2 * self.rho)

    def _rho_within(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        return self.squares / (2 * gaussian_variance_within(epsilon, delta, self.squares))


@frozen(kw_only=True)
class Mechanism(Private, ABC):
    """A pure epsilon-DP release of the counts of one axis, here or on other machines."""

    @abstractmethod
    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> object:
        """Draw noise and release."""


def check_scale(scale: Fraction, epsilon: Fraction) -> None:
    """Refuse an epsilon whose noise cannot be drawn."""
    rule, fix = "must give noise of a scale between 2^-20 and 2^62", "use a value such as 1"
    check(SMALLEST_SCALE <= scale <= LARGEST_SCALE, "epsilon", rule, given=epsilon, fix=fix)


def check_fits(data: AxisCounts, size: int, contributions: int) -> AxisCounts:
    """The counts, if they have `size` cells and bound contributions at least as tightly."""
    check_data(isinstance(data, AxisCounts), "data", "must be a Histogram", fix="use Histogram.from_cells")
    fix = "use one domain for both"
    check(data.size == size, "data", f"must have size {size}", given=data.size, fix=fix)
    rule = f"must be at least the histogram's {data.contributions}"
    fix = "raise it in the mechanism"
    check(data.contributions <= contributions, "contributions", rule, given=contributions, fix=fix)
    return data


def check_points_fit(points: object, axes: tuple[Axis, ...], contributions: int) -> PointCounts:
    """The points, if they lie on these axes and bound contributions at least as tightly."""
    if not isinstance(points, PointCounts):
        raise InvalidData("points", "must be Points", fix="use Points.from_rows")
    fix = "use one list of domains for both"
    check_data(points.axes == axes, "points", "must lie on the mechanism's axes", fix=fix)
    rule = f"must be at least that of the points, {points.contributions}"
    fix = "raise it in the mechanism"
    check(points.contributions <= contributions, "contributions", rule, given=contributions, fix=fix)
    return points


class BoundBeforeData(Protocol):
    """What a mechanism has beside `release` if a theorem bounds its error before any data are seen.

    `bound_of` says what is bounded, and which data the theorem is about if not all. A mechanism without such
    a theorem has none of both, or a `bound_of` that is None with these options; then a plan says so.
    """

    @property
    def bound_of(self) -> str | None:
        """What is bounded; a constant of the class, unless options decide whether there is a theorem."""

    def bound(self, beta: object = ..., *, rows: int | None = ...) -> float:
        """With probability 1 - beta nothing that `bound_of` names is off by more, over at most `rows`.

        Infinity where the theorem says nothing about so many rows.
        """


def check_rows(rows: object) -> int:
    """A public number that there are at most so many rows, for a bound that grows with them."""
    fix = "pass a public number that there are at most"
    check(rows is not None, "rows", "must be given: this bound grows with them", given=rows, fix=fix)
    return integer(rows, "rows", low=0, high=_LARGEST_COUNT)


_LEAST_SPECIAL_SHARE: Final = Fraction(1, 4)
"""Of epsilon, for special cells where a row may leave the axis for one. A smaller share has less noise on the
axis and more beside it: at 1/4 all intervals have 4/3 of the least scale, and a special cell 4 / epsilon."""


@frozen(kw_only=True)
class FixedCounts(Mechanism, ABC):
    """Counts of a fixed list of sets of cells with noise for their exact change between neighbours.

    Between change-one neighbours a row moves from one cell to another. If the axis has `special_cells`
    beside it, a row may also leave the axis, and noise on the axis pays for that, too.
    """

    special_cells: bool = False

    def _convert(self) -> None:
        super()._convert()
        check_bool(self.special_cells, "special_cells")

    @property
    @abstractmethod
    def sensitivity(self) -> int | Fraction:
        """By how much one row in or out changes all counts together, at most."""

    @property
    @abstractmethod
    def moved(self) -> int | Fraction:
        """By how much a row that goes from one cell to another changes all counts together, at most."""

    @property
    def changed(self) -> Fraction:
        """By how much neighbours' counts differ together, at most; at least 1 row's worth if nothing can.

        A unit of c rows that becomes another moves some rows, and others come or go: none of the c costs
        more than the larger of the two.
        """
        single, moved = Fraction(self.sensitivity), Fraction(self.moved)
        if self.neighbors == ADD_REMOVE:
            each = single
        elif self.special_cells:
            each = max(moved, single / (1 - _LEAST_SPECIAL_SHARE))
        elif self.same_rows:
            each = moved or single
        else:
            each = max(moved, single)
        return self.contributions * each

    @property
    def special_scale(self) -> Fraction:
        """The noise scale of special cells with which axis and special cells together cost epsilon.

        A row that leaves the axis for a special cell costs what a row in or out of the axis does, and its
        count there; one that goes from a special cell to another costs two counts.
        """
        rule = "must leave a part of epsilon to the special cells of a column if a row changes"
        fix = "make it with special_cells=True"
        check(self._special_rate > 0, "mechanism", rule, given=type(self).__name__, fix=fix)
        return 1 / (self.epsilon * self._special_rate)

    @property
    def _special_rate(self) -> Fraction:
        """The part of epsilon that a special cell loses for each row in or out; 0 if none is left."""
        if self.neighbors == ADD_REMOVE:
            return Fraction(1, self.contributions)
        room = 1 / Fraction(self.contributions) - Fraction(self.sensitivity) / self.changed
        return max(Fraction(0), min(room, Fraction(1, 2 * self.contributions)))


@frozen(kw_only=True)
class Additive(FixedCounts):
    """Counts of a fixed list of sets of cells, each with noise of the same scale."""

    released: ClassVar[type[FlatRelease]]
    """The release that holds the noisy counts."""

    bound_of: ClassVar[str] = "any range between two values"

    size: int
    states_rho: bool = False
    """Whether the guarantee states, beside epsilon, what this noise costs in rho: less than epsilon^2 / 2."""

    def _convert(self) -> None:
        super()._convert()
        check_bool(self.states_rho, "states_rho")
        freeze(self, size=integer(self.size, "size", low=1, high=self.released.largest_size))

    def _check(self) -> None:
        check_scale(self.scale, self.epsilon)

    @property
    @abstractmethod
    def sensitivity(self) -> int:
        """The number of counts that one row can change."""

    @property
    @abstractmethod
    def moved(self) -> int:
        """The number of counts that a row changes if it goes from one cell to another; 0 if there is none."""

    @abstractmethod
    def exact(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """The counts without noise, from those of all cells."""

    @property
    @abstractmethod
    def terms(self) -> float:
        """The mean number of counts that are added up for a range, over all ranges."""

    @property
    def scale(self) -> Fraction:
        """The noise scale: the largest distance of neighbours' counts, over epsilon."""
        return self.changed / self.epsilon

    @property
    def guarantee(self) -> Guarantee:
        """What the release promises, and for whom; perhaps with its rho."""
        promised = super().guarantee
        return replace(promised, rho=self._cost_in_rho(self.epsilon)) if self.states_rho else promised

    def within_rho(self, rho: Fraction) -> Fraction:
        """The largest epsilon at which this noise costs rho at most.

        >>> from partita.trusted.mechanisms.flat import HistogramCounts
        >>> float(HistogramCounts(size=9, epsilon=1).within_rho(Fraction(1, 2))) > 1
        True
        """
        return largest(lambda epsilon: self._cost_in_rho(epsilon) <= rho)

    def _cost_in_rho(self, epsilon: Fraction) -> Fraction:
        """What it costs in rho at this epsilon, special cells beside the axis included.

        Neighbours' counts lose epsilon together, and one of them `most` of it; no count changes by more than
        the rows of a unit (docs/proofs/concentrated.md, several counts).
        """
        most = self.contributions * max(1 / self.changed, self._special_rate)
        return min(rho_of_pure(epsilon), rho_of_laplace(most * epsilon, self.contributions) / most)

    def predicted_error(self, rows: int) -> float:
        """The root-mean-square error of a random range, exactly; the number of rows does not matter."""
        return float(np.sqrt(self.terms * laplace_variance(self.scale)))

    def predicted_numbers(self, rows: int) -> int:
        """How many integers the release holds."""
        return self.released.length(self.size)

    def bound(self, beta: object = "0.05", *, rows: int | None = None) -> float:
        """With probability 1 - beta no range is off by more, whatever the data: the release says the same."""
        noisy = np.broadcast_to(np.int64(0), self.released.length(self.size))
        empty = self.released(noisy=noisy, size=self.size, scale=self.scale)
        return empty.error(float(check_probability(beta)))

    def _measure(self, data: AxisCounts, noise: Noise) -> dict[str, Any]:
        """The fields of the release."""
        counts = check_fits(data, self.size, self.contributions)
        session = noise.session()
        noisy = session.add(self.exact(counts.spread()), self.scale)
        guarantee = self.guarantee if session.secure else None
        return {"noisy": noisy, "size": self.size, "scale": self.scale, "guarantee": guarantee}


_MOST_LOOKS: Final = 6
"""Looks at a node: one, and up to five more while it is in doubt whether to cut it."""


class NoisyLooks:
    """Noisy counts of the nodes of a tree, level by level, from the root: the only place that adds noise.

    A look of one unit has noise of `scale`, and one of k units a k-th of it.
    """

    def __init__(self, session: Noise, scale: Fraction, *, root: int) -> None:
        self._session, self._scale = session, scale
        self._offset, self._counts = 0, np.array([root])
        self._steps: list[TreeLooks] = []

    def turn_to(self, counts: Ints) -> None:
        """Go on to the nodes of the next level, which have these exact counts."""
        self._offset += self._counts.size
        self._counts = counts

    def take(self, evidence: LevelEvidence, nodes: Ints, units: Ints) -> None:
        """Pay for one look at each of the nodes, take it, and learn from the noisy count."""
        if not nodes.size:
            return
        evidence.pay(nodes, units)
        noisy = self._session.add(self._counts[nodes], self._scale, parts=units)
        evidence.learn(nodes, units, noisy)
        self._steps.append(TreeLooks.step(nodes + self._offset, units, noisy))

    def take_all(self, evidence: LevelEvidence, units: Ints, rule: SpendingRule, fork: Fork) -> None:
        """A first look at every node of the level, and second looks where they decide."""
        self.take(evidence, np.arange(units.size), units)
        for _ in range(_MOST_LOOKS - 1):
            nodes, more = rule.second_look(fork, evidence)
            if not nodes.size:
                break
            self.take(evidence, nodes, more)

    @property
    def taken(self) -> TreeLooks:
        """All looks, in the order in which they were taken."""
        return TreeLooks.join(self._steps)


@final
@dataclass(frozen=True)
class PartNoise:
    """The noise of a whole release, for a part of it: the part carries no guarantee, since the whole has one.

    So nobody reads a share of epsilon as a promise, or is warned about it.
    """

    whole: Noise
    secure: ClassVar[bool] = False

    def session(self) -> PartNoise:
        """The session of the whole continues."""
        return self

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        return self.whole.add(x, scale, parts=parts)

    def add_gaussian(self, x: ArrayLike, variance: Fraction) -> Any:
        return self.whole.add_gaussian(x, variance)

    def draw(self, law: Law, scale: Fraction) -> int:
        return self.whole.draw(law, scale)

    def first_success(self, law: Law, scale: Fraction) -> Positions:
        return self.whole.first_success(law, scale)

    def segments(
        self, law: Law, scale: Fraction, threshold: int, positions: UInts, weights: Ints, last: int
    ) -> SuccessSearch | None:
        return self.whole.segments(law, scale, threshold, positions, weights, last)

    def bernoulli(self, probability: laws_Exact) -> bool:
        return self.whole.bernoulli(probability)

    def categorical(self, weights: Sequence[int | Fraction]) -> int:
        return self.whole.categorical(weights)

    def exponential(self, scores: ArrayLike, scale: Fraction) -> int:
        return self.whole.exponential(scores, scale)

    def permute_and_flip(self, scores: ArrayLike, lengths: ArrayLike, scale: Fraction) -> int:
        return self.whole.permute_and_flip(scores, lengths, scale)

    def integers_below(self, bound: int, count: int) -> Ints:
        return self.whole.integers_below(bound, count)


def noise_elsewhere(noise: Noise) -> SystemNoise:
    """The noise that another machine draws in place of this one: the system's, with a key from there.

    This noise must be the system's, too: tapes, exact laws and recorders cannot travel.
    """
    whole = noise
    while isinstance(whole, PartNoise):
        whole = whole.whole
    rule, fix = "must be the system's where other machines draw it", "leave it out, or hold the counts here"
    check(whole.secure, "noise", rule, given=type(whole).__name__, fix=fix)
    return SYSTEM


class AxisMechanism(Protocol):
    """A mechanism over the cells 0, ..., size-1 of one axis, private row by row.

    Adding or removing one row must cost at most epsilon / rows_changed(neighbors, contributions), but for
    `FixedCounts`, which say what special cells are left.
    """

    @property
    def size(self) -> int: ...

    @property
    def epsilon(self) -> Fraction: ...

    @property
    def neighbors(self) -> Neighbors: ...

    @property
    def contributions(self) -> int: ...

    @property
    def guarantee(self) -> Guarantee: ...

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random range if there are that many rows."""

    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds."""

    def release(self, data: AxisCounts, *, noise: Noise = ...) -> AxisRelease:
        """Draw noise and release."""


@final
@dataclass(frozen=True, kw_only=True)
class WithSpecials:
    """Publish a column: the ordered cells by the mechanism `axis`, and a noisy count of each special cell.

    Guarantee: epsilon-DP, pure, the same as that of `axis`; ADD_REMOVE or CHANGE_ONE.
    Error:     that of `axis` on the axis; noise of scale rows_changed / epsilon in each special cell, or
               of up to twice that, as `axis` says; with Gaussian noise its variance is that of the axis.
    Proof:     docs/proofs/special_cells.md (a row is on the axis or in one special cell)

    >>> from partita.trusted.mechanisms.tree import Tree
    >>> column = WithSpecials(axis=Tree(size=8, epsilon=1), specials=("below", "above", "invalid", "null"))
    >>> column.guarantee.epsilon, column.scale
    (Fraction(1, 1), Fraction(1, 1))
    """

    axis: AxisMechanism
    specials: tuple[str, ...]

    def __post_init__(self) -> None:
        given: object = self.specials
        valid = isinstance(given, tuple) and all(isinstance(name, str) for name in given)
        rule, fix = "must be a tuple of different names", "pass domain.specials"
        distinct = valid and len(set(self.specials)) == len(self.specials)
        check(distinct, "specials", rule, given=given, fix=fix)
        if not isinstance(self.law, Gaussian):
            check_scale(self.law, self.axis.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """What the release of axis and special cells together promises, and for whom."""
        return self.axis.guarantee

    @property
    def scale(self) -> Fraction:
        """The noise scale of a special cell: what `axis` leaves, or the rows that change over epsilon."""
        axis: object = self.axis
        if isinstance(axis, FixedCounts):
            return axis.special_scale
        rho = getattr(axis, "rho", None) if getattr(axis, "takes_rho", False) else None
        epsilon = self.axis.epsilon if rho is None else pure_within(rho)  # not the one stated at a delta
        return rows_changed(self.axis.neighbors, self.axis.contributions) / epsilon

    @property
    def law(self) -> NoiseLaw:
        """The noise of a special cell: it is a cell like those of an axis with Gaussian noise."""
        axis: object = self.axis
        return Gaussian(axis.variance) if isinstance(axis, GaussianCells) else self.scale

    def release(
        self, data: AxisCounts, beside: Mapping[str, int], *, noise: Noise = SYSTEM
    ) -> tuple[AxisRelease, Specials]:
        """Release the axis and, beside it, the noisy count of each special cell."""
        axis, noisy = self.measure(data, beside, noise=noise)
        return axis, Specials(counts=dict(zip(self.specials, noisy.tolist(), strict=True)), scale=self.law)

    def measure(
        self, data: AxisCounts, beside: Mapping[str, int], *, noise: Noise
    ) -> tuple[AxisRelease, NDArray[Any]]:
        """Draw all noise: the axis by its mechanism, then noise on each special count."""
        counts = check_fits(data, self.axis.size, self.axis.contributions)
        specials = self._counts(beside)
        session = noise.session()
        axis, law = self.axis.release(counts, noise=session), self.law
        if isinstance(law, Gaussian):
            return axis, session.add_gaussian(specials, law.variance)
        return axis, session.add(specials, law)

    def _counts(self, beside: object) -> NDArray[np.int64]:
        """The count of every special cell, in the order in which they are named."""
        if not isinstance(beside, Mapping) or set(beside) != set(self.specials):
            fix = "take those of the same domain"
            raise InvalidData("beside", "must have a count for each special cell", fix=fix)
        rule = "must hold counts between 0 and 2^62"
        check_data(all(_is_count(count) for count in beside.values()), "beside", rule, fix="count rows")
        return np.array([beside[name] for name in self.specials], dtype=np.int64)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST_COUNT
