"""What a release promises: epsilon, delta, and between which neighbours."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Final, Literal, TypeAlias, get_args

from partita.errors.checks import check, check_bool
from partita.errors.errors import IncompatibleGuarantees, PrivacyWarning
from partita.html import card
from partita.numbers import Exact, freeze, frozen, integer, one_of, parameter, rational

Neighbors: TypeAlias = Literal["add-remove", "change-one"]
Unit: TypeAlias = Literal["row", "person", "event", "user"]

ADD_REMOVE: Final = "add-remove"
CHANGE_ONE: Final = "change-one"

UNLIMITED: Final = 2**63 - 1
"""Any number: of looks at the state, or of the events of one user."""

_LARGE_EPSILON: Final = 5
_LARGEST_EXPONENT: Final = 700
_LARGEST_WORTH: Final = 20
_SMALLEST_SLOPE: Final = 1e-300
_LARGEST_SHOWN: Final = Fraction(10**300)
_ROW_OF: Final = {"person": "row", "user": "event"}


@frozen(kw_only=True)
class Guarantee:
    """(epsilon, delta)-differential privacy between named neighbours; pure if delta is 0.

    Two inputs are neighbours if they differ by one unit: it is present in one of them only
    (add-remove), or it is there with other values (change-one). A unit is a row or an event, or a
    person or a user with at most `contributions` rows or events. `intrusions` says how many
    looks at the internal state are covered besides the output (pan-privacy), whether or not anybody knew of
    them; if `announced`, any number of looks that were announced before they happened are covered as well.
    Both numbers may be `UNLIMITED`.

    >>> Guarantee(epsilon="0.1") + Guarantee(epsilon="0.2")
    Guarantee(epsilon=3/10, neighbors=add-remove, unit=row)
    """

    epsilon: Exact = parameter()
    delta: Exact = parameter(default=Fraction(0))
    neighbors: Neighbors = "add-remove"
    unit: Unit = "row"
    contributions: int = 1
    intrusions: int = 0
    announced: bool = False

    def __post_init__(self) -> None:
        freeze(
            self,
            epsilon=positive_epsilon(self.epsilon),
            delta=_probability(self.delta),
            neighbors=one_of(self.neighbors, "neighbors", get_args(Neighbors)),
            unit=one_of(self.unit, "unit", get_args(Unit)),
            contributions=integer(self.contributions, "contributions", low=1),
            intrusions=integer(self.intrusions, "intrusions", low=0),
            announced=check_bool(self.announced, "announced"),
        )
        fits = self.contributions == 1 or self.unit in _ROW_OF
        fix = "use a person or a user"
        check(fits, "contributions", f"must be 1 for unit {self.unit!r}", given=self.contributions, fix=fix)
        _warn_if_large(self.epsilon)

    @property
    def pure(self) -> bool:
        """Whether delta is zero."""
        return self.delta == 0

    @property
    def factor(self) -> float:
        """By which one unit changes the probability of any output at most, but for delta: e^epsilon.

        >>> Guarantee(epsilon=1).factor
        2.718281828459045
        """
        return math.exp(self.epsilon) if self.epsilon <= _LARGEST_EXPONENT else math.inf

    def __add__(self, other: Guarantee) -> Guarantee:
        """Sequential composition: both outputs, about the same people."""
        self._same_relation(other)
        return replace(
            self,
            epsilon=self.epsilon + other.epsilon,
            delta=min(Fraction(1), self.delta + other.delta),
            intrusions=min(self.intrusions, other.intrusions),
            announced=self.announced and other.announced,
        )

    def beside(self, other: Guarantee) -> Guarantee:
        """Parallel composition: outputs about parts such that a unit lies in one part only.

        Add-remove only: a changed unit may leave one part and enter another, and touch both.
        """
        self._same_relation(other)
        if self.neighbors != ADD_REMOVE:
            raise IncompatibleGuarantees(
                f"parallel composition needs {ADD_REMOVE} neighbors, got {self.neighbors}; "
                "compose sequentially, or release under add-remove"
            )
        return replace(
            self,
            epsilon=max(self.epsilon, other.epsilon),
            delta=max(self.delta, other.delta),
            intrusions=min(self.intrusions, other.intrusions),
            announced=self.announced and other.announced,
        )

    def to_neighbors(self, neighbors: Neighbors) -> Guarantee:
        """The same promise between other neighbours: a change is a removal and an addition, factor 2.

        >>> Guarantee(epsilon=1).to_neighbors("change-one").epsilon
        Fraction(2, 1)
        """
        neighbors = one_of(neighbors, "neighbors", get_args(Neighbors))
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
        unit = one_of(unit, "unit", get_args(Unit))
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
        """Group privacy: epsilon times k, delta times 1 + e^epsilon + ... + e^((k-1) epsilon), rounded up."""
        growth = _growth_above(self.epsilon, size) if self.delta else Fraction(1)
        delta = Fraction(1) if growth is None else min(Fraction(1), self.delta * growth)
        return replace(self, epsilon=self.epsilon * size, delta=delta)

    def _same_relation(self, other: Guarantee) -> None:
        mine, theirs = _relation(self), _relation(other)
        if mine != theirs:
            raise IncompatibleGuarantees(
                f"guarantees compose only for the same neighbors and unit, got {mine} and {theirs}; "
                "convert one with to_neighbors or to_unit first"
            )

    def __str__(self) -> str:
        """The promise in words."""
        privacy = "pure" if self.pure else f"delta {self.delta}"
        verb = "adding or removing" if self.neighbors == ADD_REMOVE else "changing"
        return f"epsilon {self.epsilon}, {privacy}, for {verb} one {self.unit}{self._rows}{self._looks}"

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
        shown += [f"contributions={_number(self.contributions)}"] if self.contributions > 1 else []
        shown += [f"intrusions={_number(self.intrusions)}"] if self.intrusions else []
        shown += ["announced=True"] if self.announced else []
        return f"Guarantee({', '.join(shown)})"

    def _repr_html_(self) -> str:
        """The promise in words, and by how much it lets probabilities change."""
        return card("Guarantee", [("promise", self), ("odds", self._odds)])

    @property
    def _odds(self) -> str:
        beyond = "" if self.pure else f" and {self.delta} more"
        worth = f" = {self.factor:.3g}" if self.epsilon <= _LARGEST_WORTH else ""
        otherwise = "without" if self.neighbors == ADD_REMOVE else "with other values of"
        return (
            f"whatever is published is at most e^{self.epsilon}{worth} times as probable{beyond} as it is "
            f"{otherwise} any one {self.unit}, and the other way round"
        )


def positive_epsilon(epsilon: object) -> Fraction:
    """epsilon as an exact positive number."""
    exact = rational(epsilon, "epsilon")
    check(exact > 0, "epsilon", "must be positive", given=epsilon, fix="pass for example 1")
    return exact


def unit_of(unit: Unit | None, contributions: int) -> Unit:
    """The unit that is protected: as named, else a person if one may have several rows, else a row."""
    if unit is None:
        return "row" if contributions == 1 else "person"
    return one_of(unit, "unit", get_args(Unit))


def rows_changed(neighbors: Neighbors, contributions: int) -> int:
    """By how many unit changes two neighbours may differ: one row in or out counts as one."""
    one_of(neighbors, "neighbors", get_args(Neighbors))
    each = 2 if neighbors == CHANGE_ONE else 1
    return each * integer(contributions, "contributions", low=1)


def _relation(guarantee: Guarantee) -> str:
    return f"{guarantee.neighbors} per {guarantee.unit} of at most {guarantee.contributions}"


def _number(number: int) -> str:
    return "unlimited" if number == UNLIMITED else str(number)


def _probability(delta: object) -> Fraction:
    exact = rational(delta, "delta")
    check(0 <= exact <= 1, "delta", "must lie in [0, 1]", given=delta, fix="pass 0 for pure privacy")
    return exact


def _growth_above(epsilon: Fraction, size: int) -> Fraction | None:
    """At least (e^(k epsilon) - 1) / (e^epsilon - 1): a float, raised beyond its rounding; None if huge."""
    if epsilon * size > _LARGEST_EXPONENT:
        return None
    slope = math.expm1(float(epsilon))
    growth = math.expm1(float(epsilon * size)) / slope if slope > _SMALLEST_SLOPE else 0.0
    return max(Fraction(growth), Fraction(size)) * (1 + Fraction(1, 2**36))


def _warn_if_large(epsilon: Fraction) -> None:
    if epsilon > _LARGE_EPSILON:
        warnings.warn(
            f"epsilon {float(min(epsilon, _LARGEST_SHOWN)):.6g} is above {_LARGE_EPSILON}: odds about a unit "
            "may change by a factor of more than 148; lower it, or say in the release why not",
            PrivacyWarning,
            stacklevel=3,
        )
