"""What a release promises: epsilon, delta, perhaps rho, and between which neighbours.

The second half says what each of many mechanisms may spend so that all of them together stay within (epsilon,
delta). A rate is the epsilon of one mechanism among many. Every rate is exact arithmetic rounded down: the
theorem that allows it is checked in rational numbers, with logarithms rounded to the side of privacy. Proofs:
docs/proofs/composition_of_losses.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Final, Literal, TypeAlias, final, get_args

from partita.concentrated import (
    DEFAULT_DELTA,
    converts,
    epsilon_of_rho,
    largest,
    log_below,
    log_of_inverse,
    positive,
    rho_of_pure,
    root_above,
)
from partita.errors import IncompatibleGuarantees, PrivacyWarning, check, check_bool, warn
from partita.html import card
from partita.numbers import Exact, check_choice, freeze, frozen, integer, parameter, rational

Neighbors: TypeAlias = Literal["add-remove", "change-one"]
Unit: TypeAlias = Literal["row", "person", "event", "user"]

ADD_REMOVE: Final = "add-remove"
CHANGE_ONE: Final = "change-one"

UNLIMITED: Final = 2**63 - 1
"""Any number: of looks at the state, or of the events of one user."""

_LARGEST_SHOWN: Final = Fraction(10**300)
_LARGE_EPSILON: Final = 5  # e^5 is 148: beyond it the guarantee means little, and a warning says so
_LARGE_RHO: Final = 2  # its loss exceeds 5 with a probability of about 7%: the Gaussian's is N(rho, 2 rho)
_LARGEST_EXPONENT: Final = 700  # e^700 is still a float
_LARGEST_WORTH: Final = 20  # the largest epsilon whose factor is shown as a number
_SMALLEST_SLOPE: Final = 1e-300  # below it a division may overflow
_ROW_OF: Final = {"person": "row", "user": "event"}


@frozen(kw_only=True)
class Guarantee:
    """(epsilon, delta)-differential privacy between named neighbours; pure if delta is 0.

    Where `rho` is not 0, the promise is rho-zCDP, zero-concentrated privacy [BS16], and (epsilon, delta) is a
    point that holds as well: it follows from rho, or is that of a pure mechanism. `epsilon_at` has others.

    Two inputs are neighbours if they differ by one unit: it is present in one of them only
    (add-remove), or it is there with other values (change-one). A unit is a row or an event, or a
    person or a user with at most `contributions` rows or events. `intrusions` says how many
    looks at the internal state are covered besides the output (pan-privacy), whether or not anybody knew of
    them; if `announced`, any number of looks that were announced before they happened are covered as well.
    Both numbers may be `UNLIMITED`.

    >>> Guarantee(epsilon="0.1") + Guarantee(epsilon="0.2")
    Guarantee(epsilon=3/10, neighbors=add-remove, unit=row)
    >>> print(Guarantee.concentrated(rho="1/8"))
    rho 1/8, zero-concentrated, so that epsilon is 3.05813 at delta 1e-9, for adding or removing one row
    """

    epsilon: Exact = parameter()
    delta: Exact = parameter(default=Fraction(0))
    neighbors: Neighbors = "add-remove"
    unit: Unit = "row"
    contributions: int = 1
    intrusions: int = 0
    announced: bool = False
    rho: Exact = parameter(default=Fraction(0))

    def __post_init__(self) -> None:
        freeze(
            self,
            epsilon=positive_epsilon(self.epsilon),
            delta=_probability(self.delta),
            neighbors=check_choice(self.neighbors, "neighbors", get_args(Neighbors)),
            unit=check_choice(self.unit, "unit", get_args(Unit)),
            contributions=integer(self.contributions, "contributions", low=1),
            intrusions=integer(self.intrusions, "intrusions", low=0),
            announced=check_bool(self.announced, "announced"),
            rho=_amount(self.rho),
        )
        fits = self.contributions == 1 or self.unit in _ROW_OF
        fix = "use a person or a user"
        check(fits, "contributions", f"must be 1 for unit {self.unit!r}", given=self.contributions, fix=fix)
        _warn_if_large(self)

    @staticmethod
    def concentrated(
        *,
        rho: object,
        delta: object = DEFAULT_DELTA,
        neighbors: Neighbors = "add-remove",
        unit: Unit = "row",
        contributions: int = 1,
    ) -> Guarantee:
        """rho-zCDP, stated also as the epsilon that follows at this delta, rounded up.

        >>> Guarantee.concentrated(rho="1/8").cost_in_rho
        Fraction(1, 8)
        """
        return Guarantee(
            rho=positive(rho, "rho", example='"1/2"'),
            epsilon=epsilon_of_rho(rho, delta),
            delta=delta,
            neighbors=neighbors,
            unit=unit,
            contributions=contributions,
        )

    @property
    def pure(self) -> bool:
        """Whether delta is zero."""
        return self.delta == 0

    @property
    def same_rows(self) -> bool:
        """Whether neighbours have equally many rows, so that their number is public."""
        return same_rows(self.neighbors, self.contributions, self.unit)

    @property
    def factor(self) -> float:
        """By which one unit changes the probability of any output at most, but for delta: e^epsilon.

        >>> Guarantee(epsilon=1).factor
        2.718281828459045
        """
        return math.exp(self.epsilon) if self.epsilon <= _LARGEST_EXPONENT else math.inf

    @property
    def cost_in_rho(self) -> Fraction:
        """What it costs as zCDP: the rho that it states, or epsilon^2 / 2 of a pure one, whichever is less.

        >>> Guarantee(epsilon=1).cost_in_rho
        Fraction(1, 2)
        """
        if not self.rho and not self.pure:
            raise IncompatibleGuarantees(
                f"a guarantee of epsilon {self.epsilon} and delta {self.delta} says nothing about rho; "
                "make the release pure, or with rho="
            )
        if not self.pure:
            return self.rho
        return min(self.rho or rho_of_pure(self.epsilon), rho_of_pure(self.epsilon))

    def in_rho(self) -> Guarantee:
        """The same promise, with what it costs in rho stated.

        >>> Guarantee(epsilon=1).in_rho().rho
        Fraction(1, 2)
        """
        return replace(self, rho=self.cost_in_rho)

    def epsilon_at(self, delta: object) -> Fraction:
        """An epsilon that holds at this delta: the one that is stated, or what follows from rho, rounded up.

        >>> float(Guarantee.concentrated(rho="1/8").epsilon_at("1e-6"))
        2.41909318
        """
        exact = _probability(delta)
        stated = [self.epsilon] if exact >= self.delta else []
        if 0 < exact < 1 and (self.rho or self.pure):
            stated.append(epsilon_of_rho(self.cost_in_rho, exact))
        rule, fix = f"must be at least {self.delta}, of which the guarantee speaks", "pass a larger delta"
        check(stated, "delta", rule, given=delta, fix=fix)
        return min(stated)

    def __add__(self, other: Guarantee) -> Guarantee:
        """Sequential composition: both outputs, about the same people.

        Epsilons and deltas add up. If one side states rho, and the other does or is pure, then rho adds up;
        if one of the two is not pure, the larger delta stays and epsilon is what follows from rho.
        """
        rho = self._rho_with(other)
        both = Fraction(0) if rho is None else rho[0] + rho[1]
        if both and not (self.pure and other.pure):
            delta = max(self.delta, other.delta)
            return self._with(other, epsilon=_epsilon_of(both, delta), delta=delta, rho=both)
        delta = min(Fraction(1), self.delta + other.delta)
        return self._with(other, epsilon=self.epsilon + other.epsilon, delta=delta, rho=both)

    def _rho_with(self, other: Guarantee) -> tuple[Fraction, Fraction] | None:
        """What both cost in rho, if one of them states it and the other has a cost."""
        stated = self.rho or other.rho
        known = all(each.rho or each.pure for each in (self, other))
        return (self.cost_in_rho, other.cost_in_rho) if stated and known else None

    def beside(self, other: Guarantee) -> Guarantee:
        """Parallel composition: outputs about parts such that a unit lies in one part only.

        Add-remove only: a changed unit may leave one part and enter another, and touch both.
        """
        larger, delta = max(self.epsilon, other.epsilon), max(self.delta, other.delta)
        rho = max(self._rho_with(other) or [Fraction(0)])
        both = self._with(other, epsilon=larger, delta=delta, rho=rho)
        if self.neighbors != ADD_REMOVE:
            raise IncompatibleGuarantees(
                f"parallel composition needs {ADD_REMOVE} neighbors, got {self.neighbors}; "
                "compose sequentially, or release under add-remove"
            )
        return both

    def to_neighbors(self, neighbors: Neighbors) -> Guarantee:
        """The same promise between other neighbours: a change is a removal and an addition, factor 2.

        >>> Guarantee(epsilon=1).to_neighbors("change-one").epsilon
        Fraction(2, 1)
        """
        neighbors = check_choice(neighbors, "neighbors", get_args(Neighbors))
        if neighbors == self.neighbors:
            return self
        if neighbors == ADD_REMOVE:
            raise IncompatibleGuarantees(
                f"a {CHANGE_ONE} guarantee says nothing about {ADD_REMOVE} neighbors: the number of units "
                "may be exact in it; release under add-remove"
            )
        return replace(self._group(2), neighbors=neighbors)

    def to_unit(self, unit: Unit, *, contributions: int) -> Guarantee:
        """The same promise for a person (user) with at most `contributions` rows (events): that factor.

        Add-remove only: a person who changes may bring fewer rows or more, and a change-one guarantee
        for rows says nothing about that.

        >>> Guarantee(epsilon=1).to_unit("person", contributions=3).epsilon
        Fraction(3, 1)
        """
        unit = check_choice(unit, "unit", get_args(Unit))
        contributions = integer(contributions, "contributions", low=1)
        if (unit, contributions) == (self.unit, self.contributions):
            return self
        if _ROW_OF.get(unit) != self.unit or self.neighbors != ADD_REMOVE:
            raise IncompatibleGuarantees(
                f"a guarantee for {_relation(self)} does not give one per {unit} of at most {contributions}; "
                "make the release with that unit"
            )
        return replace(self._group(contributions), unit=unit, contributions=contributions)

    def _group(self, size: int) -> Guarantee:
        """Group privacy: epsilon times k, delta times 1 + e^epsilon + ... + e^((k-1) epsilon), rounded up.

        rho grows by k^2 [BS16, Proposition 1.9]; what is stated beside it stays at its delta.
        """
        rho = self.rho * size**2
        if rho and not self.pure:
            return replace(self, epsilon=_epsilon_of(rho, self.delta), rho=rho)
        growth = _growth_above(self.epsilon, size) if self.delta else Fraction(1)
        delta = Fraction(1) if growth is None else min(Fraction(1), self.delta * growth)
        return replace(self, epsilon=self.epsilon * size, delta=delta, rho=rho)

    def _with(self, other: Guarantee, *, epsilon: Fraction, delta: Fraction, rho: Fraction) -> Guarantee:
        """Both guarantees together: the looks at the state that both of them cover."""
        mine, theirs = _relation(self), _relation(other)
        if mine != theirs:
            raise IncompatibleGuarantees(
                f"guarantees compose only for the same neighbors and unit, got {mine} and {theirs}; "
                "convert one with to_neighbors or to_unit first"
            )
        intrusions = min(self.intrusions, other.intrusions)
        announced = self.announced and other.announced
        return replace(
            self, epsilon=epsilon, delta=delta, rho=rho, intrusions=intrusions, announced=announced
        )

    @property
    def price(self) -> str:
        """What it costs, in short.

        >>> Guarantee(epsilon="1/2").price, Guarantee.concentrated(rho="1/8").price
        ('epsilon 1/2', 'rho 1/8 (epsilon 3.05813 at delta 1e-9)')
        """
        if not self.rho:
            return f"epsilon {short(self.epsilon, most=_READABLE)}" + (
                "" if self.pure else f" and delta {self.delta}"
            )
        where = "" if self.pure else f" at delta {short(self.delta)}"
        return f"rho {short(self.rho)} (epsilon {short(self.epsilon)}{where})"

    def __str__(self) -> str:
        """The promise in words."""
        verb = "adding or removing" if self.neighbors == ADD_REMOVE else "changing"
        return f"{self._amounts}, for {verb} one {self.unit}{self._rows}{self._looks}"

    @property
    def _amounts(self) -> str:
        if not self.rho:
            return f"epsilon {self.epsilon}, " + ("pure" if self.pure else f"delta {self.delta}")
        stated = f"rho {short(self.rho)}, zero-concentrated"
        if self.pure:
            return f"epsilon {short(self.epsilon)}, pure, and {stated}"
        return f"{stated}, so that epsilon is {short(self.epsilon)} at delta {short(self.delta)}"

    @property
    def _rows(self) -> str:
        if self.contributions == UNLIMITED:
            return f" with any number of {_ROW_OF[self.unit]}s"
        return f" of at most {self.contributions} rows" if self.contributions > 1 else ""

    @property
    def _looks(self) -> str:
        if self.intrusions == UNLIMITED:
            return ", and any number of looks at the state"
        if not self.intrusions:
            return ", and announced looks at the state" if self.announced else ""
        shown = f", and {self.intrusions} look{'s' * (self.intrusions > 1)} at the state"
        return f"{shown}, besides any that are announced" if self.announced else shown

    def __repr__(self) -> str:
        shown = [f"epsilon={self.epsilon}", f"neighbors={self.neighbors}", f"unit={self.unit}"]
        shown[1:1] = [f"delta={self.delta}"] if self.delta else []
        shown[:0] = [f"rho={self.rho}"] if self.rho else []
        shown += [f"contributions={_number(self.contributions)}"] if self.contributions > 1 else []
        shown += [f"intrusions={_number(self.intrusions)}"] if self.intrusions else []
        shown += ["announced=True"] if self.announced else []
        return f"Guarantee({', '.join(shown)})"

    def _repr_html_(self) -> str:
        """The promise in words, and by how much it lets probabilities change."""
        return card("Guarantee", [("promise", self), ("odds", self._odds)])

    @property
    def _odds(self) -> str:
        beyond = "" if self.pure else f" and {short(self.delta)} more"
        worth = f" = {self.factor:.3g}" if self.epsilon <= _LARGEST_WORTH else ""
        otherwise = "without" if self.neighbors == ADD_REMOVE else "with other values of"
        return (
            f"whatever is published is at most e^{short(self.epsilon)}{worth} times as probable{beyond} as "
            f"it is {otherwise} any one {self.unit}, and the other way round"
        )


def positive_epsilon(epsilon: object) -> Fraction:
    """epsilon as an exact positive number."""
    return positive(epsilon, "epsilon")


def unit_of(unit: Unit | None, contributions: int) -> Unit:
    """The unit that is protected: as named, else a person if one may have several rows, else a row."""
    if unit is None:
        return "row" if contributions == 1 else "person"
    return check_choice(unit, "unit", get_args(Unit))


def rows_changed(neighbors: Neighbors, contributions: int) -> int:
    """By how many unit changes two neighbours may differ: one row in or out counts as one."""
    check_choice(neighbors, "neighbors", get_args(Neighbors))
    each = 2 if neighbors == CHANGE_ONE else 1
    return each * integer(contributions, "contributions", low=1)


def squares_changed(neighbors: Neighbors, contributions: int) -> int:
    """The largest sum of the squares by which the counts of disjoint cells of two neighbours differ.

    All rows of a unit may be in one cell; if they change, they may all leave it for another.

    >>> squares_changed("add-remove", 3), squares_changed("change-one", 3)
    (9, 18)
    """
    return rows_changed(neighbors, 1) * integer(contributions, "contributions", low=1) ** 2


def same_rows(neighbors: Neighbors, contributions: int, unit: Unit) -> bool:
    """Whether neighbours have equally many rows: one of them is changed, and its unit has just that one.

    A person of at most one row may have none.
    """
    return neighbors == CHANGE_ONE and contributions == 1 and unit not in _ROW_OF


def _relation(guarantee: Guarantee) -> str:
    return f"{guarantee.neighbors} per {guarantee.unit} of at most {guarantee.contributions}"


def _number(number: int) -> str:
    return "unlimited" if number == UNLIMITED else str(number)


def _probability(delta: object) -> Fraction:
    exact = rational(delta, "delta")
    check(0 <= exact <= 1, "delta", "must lie in [0, 1]", given=delta, fix="pass 0 for pure privacy")
    return exact


def _amount(rho: object) -> Fraction:
    exact = rational(rho, "rho")
    check(exact >= 0, "rho", "must be 0 or positive", given=rho, fix="leave it out for privacy without rho")
    return exact


def _epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """The epsilon that follows from rho; at a delta of 1 nothing is promised, and any will do."""
    return epsilon_of_rho(rho, delta) if delta < 1 else rho


_READABLE: Final = 16  # characters of a number that is shown exactly where it was chosen
_SHORT: Final = 9  # and where it follows from others
_POWER: Final = 6  # characters from which on 1/1000 is shown as a power of ten


def short(number: Fraction, *, most: int = _SHORT) -> str:
    """The exact number where it is short, a power of ten as such, else six digits that are not below it.

    >>> short(Fraction(1, 3)), short(Fraction(1, 10**9)), short(Fraction(10**12 + 1, 3 * 10**12))
    ('1/3', '1e-9', '0.333334')
    """
    text = str(number)
    if number.numerator == 1 and len(text) > _POWER and set(text[3:]) == {"0"}:
        return f"1e-{len(text) - 3}"
    if len(text) <= most:
        return text
    context = Context(prec=6, rounding=ROUND_CEILING)
    shown = context.divide(Decimal(number.numerator), Decimal(number.denominator)).normalize()
    return f"{shown:f}" if abs(shown.adjusted()) < _READABLE else str(shown)


def _growth_above(epsilon: Fraction, size: int) -> Fraction | None:
    """At least (e^(k epsilon) - 1) / (e^epsilon - 1): a float, raised beyond its rounding; None if huge."""
    if epsilon * size > _LARGEST_EXPONENT:
        return None
    slope = math.expm1(float(epsilon))
    growth = math.expm1(float(epsilon * size)) / slope if slope > _SMALLEST_SLOPE else 0.0
    return max(Fraction(growth), Fraction(size)) * (1 + Fraction(1, 2**36))


def _warn_if_large(guarantee: Guarantee) -> None:
    epsilon, rho = guarantee.epsilon, guarantee.rho
    if rho > _LARGE_RHO:
        message = (
            f"rho {float(min(rho, _LARGEST_SHOWN)):.6g} is above {_LARGE_RHO}: odds about a unit may "
            "change by a factor of more than 148 with a probability of some percent; lower it, or say in the "
            "release why not"
        )
        warn(PrivacyWarning(message))
    elif epsilon > _LARGE_EPSILON and not rho:
        message = (
            f"epsilon {float(min(epsilon, _LARGEST_SHOWN)):.6g} is above {_LARGE_EPSILON}: odds about a unit "
            "may change by a factor of more than 148; lower it, or say in the release why not"
        )
        warn(PrivacyWarning(message))


# --- the budget of many mechanisms -------------------------------------------------------------

Rule: TypeAlias = Literal["pure", "advanced", "zCDP"]


@final
@dataclass(frozen=True)
class Composition:
    """The rate of each mechanism, and the theorem that allows it."""

    rule: Rule
    rate: Fraction


def pure_rate(epsilon: object, k: object) -> Fraction:
    """epsilon / k: k mechanisms of this rate are epsilon-DP together.

    >>> pure_rate(1, 20)
    Fraction(1, 20)
    """
    return positive_epsilon(epsilon) / _losses(k)


def zcdp_rate(epsilon: object, delta: object, k: object, *, selections: int = 0) -> Fraction:
    """The largest rate at which k mechanisms and `selections` are (epsilon, delta)-DP by zCDP [BS16].

    A mechanism of pure rate r is r^2/2-zCDP, a selection by the exponential mechanism r^2/8 [CR21], and
    these add up. k need not be whole: it bounds the sum of the squared losses over the largest square.

    >>> float(zcdp_rate(1, "1e-6", 100)) > float(pure_rate(1, 100))
    True
    """
    weight = _losses(k) + Fraction(integer(selections, "selections", low=0), 4)
    whole, log = positive_epsilon(epsilon), log_of_inverse(delta)
    return largest(lambda rate: converts(weight * rate**2 / 2, whole, log))


def zcdp_budget(epsilon: object, delta: object) -> Fraction:
    """The largest rho such that rho-zCDP is (epsilon, delta)-DP: rho + 2 sqrt(rho ln 1/delta) <= epsilon."""
    whole, log = positive_epsilon(epsilon), log_of_inverse(delta)
    return largest(lambda rho: converts(rho, whole, log))


def measurement_rate(rho: Fraction, k: object = 1) -> Fraction:
    """The largest rate at which k mechanisms are rho-zCDP: k rate^2 / 2 <= rho."""
    weight = _losses(k)
    return largest(lambda rate: weight * rate**2 <= 2 * rho)


def selection_rate(rho: Fraction, k: object = 1) -> Fraction:
    """The largest rate at which k exponential mechanisms are rho-zCDP together: k rate^2 / 8 <= rho."""
    return measurement_rate(rho, _losses(k) / 4)


def advanced_rate(epsilon: object, delta: object, k: int) -> Fraction:
    """The largest rate that advanced composition allows to k mechanisms [DR14, Theorem 3.20].

    rate sqrt(2 k ln 1/delta) + k rate (e^rate - 1) <= epsilon. At least the epsilon / sqrt(8 k ln 1/delta)
    of Corollary 3.21 and Algorithm 18 wherever epsilon is at most 1.
    """
    whole, count = positive_epsilon(epsilon), integer(k, "k", low=1)
    slope = root_above(2 * count * log_of_inverse(delta))

    def allowed(rate: Fraction) -> bool:
        spare = whole - slope * rate
        return spare > 0 and rate <= log_below(1 + spare / (count * rate))

    return largest(allowed)


def corollary_rate(epsilon: object, delta: object, k: int) -> Fraction:
    """epsilon / sqrt(8 k ln 1/delta), rounded down [DR14, Corollary 3.21]; private for epsilon at most 1."""
    count = integer(k, "k", low=1)
    return positive_epsilon(epsilon) / root_above(8 * count * log_of_inverse(delta))


def best_composition(
    epsilon: object, delta: object, k: int, *, selections: int = 0, losses: object = None
) -> Composition:
    """The theorem with the largest rate: a public choice. With delta = 0, pure composition.

    `losses` bounds the sum of what the k mechanisms lose between any two neighbours, over the largest loss
    of one: less than k where no unit takes part in all of them.
    """
    count = integer(k, "k", low=1)
    spent = Fraction(count) if losses is None else _losses(losses)
    found = [Composition("pure", pure_rate(epsilon, spent + selections))]
    if rational(delta, "delta") != 0:
        found.append(Composition("zCDP", zcdp_rate(epsilon, delta, spent, selections=selections)))
        found.append(Composition("advanced", advanced_rate(epsilon, delta, count + selections)))
    return max(found, key=lambda composition: composition.rate)


def best_rate(
    epsilon: object, delta: object, k: int, *, selections: int = 0, losses: object = None
) -> Fraction:
    """The largest rate that any of the theorems allows; never below epsilon / k.

    >>> best_rate(1, 0, 20), best_rate(1, "1e-6", 1)
    (Fraction(1, 20), Fraction(1, 1))
    """
    return best_composition(epsilon, delta, k, selections=selections, losses=losses).rate


def composed_epsilon(rate: Fraction, delta: object, k: object) -> Fraction:
    """The least epsilon, rounded up, at which k mechanisms of this rate are (epsilon, delta)-DP together.

    By pure composition or by zCDP, which never falls behind the advanced theorem.
    """
    count = _losses(k)
    pure = count * rate
    if rational(delta, "delta") == 0:
        return pure
    rho = count * rate**2 / 2
    return min(pure, rho + 2 * root_above(rho * log_of_inverse(delta)))


def _losses(k: object) -> Fraction:
    exact = rational(k, "k")
    check(exact > 0, "k", "must be positive", given=k, fix="count the mechanisms")
    return exact
