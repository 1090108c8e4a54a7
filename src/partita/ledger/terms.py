"""What the steward opened a dataset with; terms never change."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from partita.errors import IncompatibleGuarantees, InvalidParameter
from partita.exact import integer
from partita.guarantee import ADD_REMOVE, Guarantee, Neighbors, Unit
from partita.ledger.amount import Amount
from partita.ledger.names import Part, checked_guarantee, checked_part, checked_text, writable

__all__ = ["Terms"]

_MOST_CONTRIBUTIONS: Final = 1_000_000
_ROWS: Final = ("row", "event")


@final
@dataclass(frozen=True, kw_only=True)
class Terms:
    """The total, and between which neighbours it is promised.

    `contributions` is the most rows (events) that a person (user) has in the dataset, where that is
    publicly known; it prices releases that protect single rows only. `constant` names the columns
    in which all rows of a person have the same value.
    """

    epsilon: Fraction
    delta: Fraction
    neighbors: Neighbors
    unit: Unit
    contributions: int | None
    constant: tuple[str, ...]

    @staticmethod
    def checked(
        *,
        epsilon: object,
        delta: object,
        neighbors: Neighbors,
        unit: Unit,
        contributions: int | None,
        constant: object,
    ) -> Terms:
        """Terms that follow the rules, with a warning where epsilon is large."""
        bound = None if contributions is None else _bound(contributions)
        total = checked_guarantee(
            Guarantee(epsilon=epsilon, delta=delta, neighbors=neighbors, unit=unit, contributions=bound or 1)
        )
        return Terms(
            epsilon=total.epsilon,
            delta=total.delta,
            neighbors=neighbors,
            unit=unit,
            contributions=None if unit in _ROWS else bound,
            constant=_columns(constant),
        )

    @property
    def total(self) -> Amount:
        """What all debits of the dataset may add up to."""
        return Amount(self.epsilon, self.delta)

    def price(self, guarantee: Guarantee) -> Amount:
        """What a release with `guarantee` costs here, or a refusal if no public factor tells.

        >>> terms = Terms.checked(epsilon=3, delta=0, neighbors="change-one", unit="person",
        ...                       contributions=5, constant=())
        >>> print(terms.price(Guarantee(epsilon="1/10")))
        epsilon 1
        """
        charged = self._per_unit(guarantee).to_neighbors(self.neighbors)
        writable(charged.epsilon, "charged epsilon")
        writable(charged.delta, "charged delta")
        return Amount(charged.epsilon, charged.delta)

    def checked_part(self, given: object) -> Part | None:
        """The part that was given, if one unit lies in one part of that column only."""
        part = checked_part(given)
        if part is None:
            return None
        if self.neighbors != ADD_REMOVE:
            raise IncompatibleGuarantees(
                f"parts compose in parallel under {ADD_REMOVE} neighbors only, and this dataset has "
                f"{self.neighbors}: a changed {self.unit} may move from one part to another; "
                "leave part out and pay sequentially"
            )
        if self.unit not in _ROWS and part[0] not in self.constant:
            raise InvalidParameter(
                "part",
                f"must be on a column that the steward declared constant per {self.unit}",
                given=part[0],
                fix="leave part out and pay sequentially",
            )
        return part

    def _per_unit(self, guarantee: Guarantee) -> Guarantee:
        if guarantee.unit == self.unit:
            return guarantee
        if self.unit in _ROWS:
            return guarantee.to_unit(self.unit, contributions=1)
        if self.contributions is None:
            raise IncompatibleGuarantees(
                f"a guarantee per {guarantee.unit} has no price in a dataset opened per {self.unit} without "
                f"contributions; make the release with unit {self.unit!r}"
            )
        if guarantee.neighbors != ADD_REMOVE:
            raise IncompatibleGuarantees(
                f"a {guarantee.neighbors} guarantee per {guarantee.unit} says nothing about a {self.unit} "
                f"whose number of rows changes; make the release with unit {self.unit!r}, "
                f"or under {ADD_REMOVE}"
            )
        return guarantee.to_unit(self.unit, contributions=self.contributions)


def _bound(contributions: object) -> int:
    return integer(contributions, "contributions", low=1, high=_MOST_CONTRIBUTIONS)


def _columns(constant: object) -> tuple[str, ...]:
    if not isinstance(constant, (tuple, list, set, frozenset)):
        raise InvalidParameter(
            "constant", "must be a tuple of column names", given=constant, fix='pass ("region",)'
        )
    return tuple(sorted({checked_text(column, "constant") for column in constant}))
