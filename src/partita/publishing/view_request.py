"""What is asked of one view: its columns, its part of epsilon, and the mechanism that will release it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar, final

from partita.domain import Domain
from partita.guarantee import Guarantee
from partita.mechanisms.box_mechanism import BoxMechanism
from partita.mechanisms.catalogue import Choice
from partita.mechanisms.with_specials import AxisMechanism, WithSpecials
from partita.points import Points
from partita.releases.box_view import BoxView
from partita.releases.spec import described, view_name
from partita.releases.view import View
from partita.sources import Column, Tally

__all__ = ["BoxRequest", "ColumnRequest", "ViewRequest"]

Secret = TypeVar("Secret")


@dataclass(frozen=True, kw_only=True)
class ViewRequest(ABC, Generic[Secret]):
    """Some columns, their part of epsilon, and how they will be counted and released."""

    columns: tuple[str, ...]
    domains: tuple[Domain, ...]
    share: Fraction
    choice: Choice[Any]

    @property
    def name(self) -> str:
        """The columns in one word."""
        return view_name(self.columns)

    @property
    def guarantee(self) -> Guarantee:
        """What this view will promise by itself."""
        promised: Guarantee = self.choice.mechanism.guarantee
        return promised

    @property
    def described(self) -> dict[str, Any]:
        """Columns and domains in words that JSON can write."""
        return described(self.columns, self.domains)

    def describes(self, view: View | BoxView) -> bool:
        """Whether a view is of these columns, in their order, with these domains and this mechanism."""
        given = described(view.columns, view.domains)
        return (given, view.mechanism) == (self.described, self.choice.name)

    @abstractmethod
    def counted(self, rows: Tally) -> Secret:
        """The exact counts of the columns, which are secret."""

    @abstractmethod
    def release(self, counted: Secret) -> View | BoxView:
        """Fresh noise on every count."""


@final
@dataclass(frozen=True, kw_only=True)
class ColumnRequest(ViewRequest[Column]):
    """One column: an axis of cells, and the special cells beside it."""

    choice: Choice[AxisMechanism]

    @property
    def column(self) -> str:
        """The one column."""
        return self.columns[0]

    @property
    def domain(self) -> Domain:
        """Its domain."""
        return self.domains[0]

    @property
    def mechanism(self) -> WithSpecials:
        """The mechanism for the whole column, special cells included."""
        return WithSpecials(axis=self.choice.mechanism, specials=self.domain.specials)

    def counted(self, rows: Tally) -> Column:
        """How many rows are in each cell of the column."""
        return rows.column(self.column)

    def release(self, counted: Column) -> View:
        """The axis by its mechanism, and noise on each special cell."""
        axis, specials = self.mechanism.release(counted.histogram, counted.specials)
        return View(
            column=self.column,
            domain=self.domain,
            axis=axis,
            specials=specials,
            mechanism=self.choice.name,
            why=self.choice.why,
        )


@final
@dataclass(frozen=True, kw_only=True)
class BoxRequest(ViewRequest[Points]):
    """Several columns together, special cells on their axes."""

    choice: Choice[BoxMechanism]

    @property
    def mechanism(self) -> BoxMechanism:
        """The mechanism for all columns."""
        return self.choice.mechanism

    def counted(self, rows: Tally) -> Points:
        """How many rows are at each point."""
        return rows.points(self.columns)

    def release(self, counted: Points) -> BoxView:
        """All columns by one mechanism."""
        return BoxView(
            columns=self.columns,
            domains=self.domains,
            boxes=self.mechanism.release(counted),
            mechanism=self.choice.name,
            why=self.choice.why,
        )
