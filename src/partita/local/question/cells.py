"""Questions about cells: the values of one column, each on its own place of a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partita.local.question.plain import PlainDomain
from partita.local.question.question import Question
from partita.local.randomizer.law import LARGEST_SIZE, Json, clamped
from partita.numbers import integer

if TYPE_CHECKING:
    from partita.domain.base.base import Domain
    from partita.local.frequency.columns import Ints


@dataclass(frozen=True, init=False)
class CellQuestion(Question):
    """A question about a domain: a number of cells, or a `Domain` with its special cells at the end."""

    domain: int | Domain

    @property
    def size(self) -> int:
        """The number of cells, special ones included."""
        return self.randomizer.size

    def cell(self, value: object) -> int:
        """The cell of one value."""
        return column_cell(self.domain, value)

    def cells(self, values: object) -> Ints:
        """The cell of every value of a column."""
        return column_cells(self.domain, values)

    def label(self, cell: int) -> str:
        """What a cell stands for."""
        from partita.local.frequency.domains import domain_label

        return str(cell) if isinstance(self.domain, int) else domain_label(self.domain, cell)

    def _asked(self) -> Json:
        return {"domain": described(self.domain)}


def described(domain: int | Domain) -> Any:
    """A domain as JSON."""
    return domain if isinstance(domain, int) else domain.to_spec()


def column_size(domain: object) -> int:
    """The number of cells of a domain; it takes no NumPy to count cells that are numbers."""
    return integer(_size(domain), "domain", low=2, high=LARGEST_SIZE)


def _size(domain: object) -> object:
    if isinstance(domain, int):
        return domain
    if isinstance(domain, PlainDomain):
        return domain.size + len(domain.specials)
    from partita.local.frequency.domains import domain_size

    return domain_size(domain)


def column_cell(domain: int | Domain, value: object) -> int:
    """The cell of one value; it takes no NumPy for cells that are numbers, nor for a plain domain."""
    if isinstance(domain, PlainDomain):
        return domain.cell(value)
    return clamped(value, domain) if isinstance(domain, int) else int(column_cells(domain, [value])[0])


def column_cells(domain: int | Domain, values: object) -> Ints:
    """The cell of every value of a column."""
    from partita.local.frequency.columns import clipped
    from partita.local.frequency.domains import domain_cells

    return clipped(values, domain) if isinstance(domain, int) else domain_cells(domain, values)
