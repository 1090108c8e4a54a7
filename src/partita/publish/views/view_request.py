"""What is asked of one view: its columns, its part of epsilon, and the mechanism that will release it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypedDict, TypeVar, final

from partita.domain.base.base import Domain
from partita.guarantee.guarantee import Guarantee, Neighbors, Unit
from partita.public.file_entries.file_views import about, described, view_name
from partita.public.file_entries.published import Published
from partita.public.results.totals import AnyView
from partita.public.views.box_view import BoxView
from partita.public.views.view import View
from partita.trusted.mechanisms.base.with_specials import AxisMechanism, WithSpecials
from partita.trusted.mechanisms.boxes.box_mechanism import BoxMechanism
from partita.trusted.mechanisms.catalogue import Choice
from partita.trusted.secret.points import Points
from partita.trusted.sources.tally.tally import Column, Tally

Secret = TypeVar("Secret")


class Facts(TypedDict):
    """What every mechanism is made with."""

    epsilon: Fraction
    neighbors: Neighbors
    contributions: int
    unit: Unit


def facts_of(guarantee: Guarantee, share: Fraction) -> Facts:
    """The facts for a mechanism that gets this share of a guarantee's epsilon."""
    return {
        "epsilon": share * guarantee.epsilon,
        "neighbors": guarantee.neighbors,
        "contributions": guarantee.contributions,
        "unit": guarantee.unit,
    }


@dataclass(frozen=True, kw_only=True)
class ViewRequest(ABC, Generic[Secret]):
    """Some columns, their part of epsilon, and how they will be counted and released."""

    error_of: ClassVar[str] = "a random range, or of a box over several columns, in rows"
    """What the predicted error is that of."""

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
    def why(self) -> str:
        """How the mechanism was chosen."""
        return self.choice.why

    @property
    def described(self) -> dict[str, Any]:
        """Columns and domains in words that JSON can write."""
        return described(self.columns, self.domains)

    @property
    def asked(self) -> dict[str, Any]:
        """All that was asked for, in words that JSON can write."""
        return {**self.described, "share": str(self.share), "mechanism": self.choice.name}

    def predicted_error(self, rows: int) -> float:
        """About the error of an answer if there are that many rows."""
        error: float = self.choice.mechanism.predicted_error(rows)
        return error

    def plan_lines(self, rows: int) -> tuple[str, ...]:
        """Sentences about what follows from public facts if there are that many rows."""
        return ()

    def describes(self, view: Published) -> bool:
        """Whether a view is of these columns, in their order, with these domains and this mechanism."""
        return (about(view), view.mechanism) == (self.described, self.choice.name)

    @abstractmethod
    def counted(self, rows: Tally) -> Secret:
        """The exact counts of the columns, which are secret."""


@dataclass(frozen=True, kw_only=True)
class CountRequest(ViewRequest[Secret], ABC):
    """Columns whose rows are counted."""

    @abstractmethod
    def release(self, counted: Secret) -> AnyView:
        """Fresh noise on every count."""


@final
@dataclass(frozen=True, kw_only=True)
class ColumnRequest(CountRequest[Column]):
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
            why=self.why,
        )


@final
@dataclass(frozen=True, kw_only=True)
class BoxRequest(CountRequest[Points]):
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
            why=self.why,
        )
