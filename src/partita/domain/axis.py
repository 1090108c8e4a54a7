"""One axis of a box: ordered cells, with the special cells at its two ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from partita.domain.base import Domain
from partita.domain.category import Category
from partita.errors import InvalidParameter, check_arguments, check_bool
from partita.numbers import freeze, integer

LARGEST_AXIS: Final = 2**63
"""No axis of a box has more ordered cells."""

MOST_AXES: Final = 6
"""No box has more axes: with each, a box of all of them says less about any."""

MOST_COLUMNS: Final = 40
"""No table release has more columns: it counts views and pairs of them, whose number grows as the square."""

_MOST_SPECIALS: Final = 4  # below, above, invalid, null


@final
@check_arguments
@dataclass(frozen=True, kw_only=True)
class Axis:
    """Positions 0, ..., width-1: `before` special cells, `size` cells in order, `after` special cells.

    Below lies before the cells, and above right behind them, so that a range with an open end is a range
    of positions; invalid and null come last. `labels` says that the cells are categories.

    >>> from partita.domain import Integer
    >>> age = Axis.of(Integer(0, 120))
    >>> age.width, age.position(30), age.specials(Integer(0, 120))["above"]
    (125, 31, 122)
    """

    size: int
    before: int = 0
    after: int = 0
    labels: bool = False

    def __post_init__(self) -> None:
        freeze(
            self,
            size=integer(self.size, "size", low=1, high=LARGEST_AXIS),
            before=integer(self.before, "before", low=0, high=_MOST_SPECIALS),
            after=integer(self.after, "after", low=0, high=_MOST_SPECIALS),
        )
        check_bool(self.labels, "labels")

    @staticmethod
    def of(domain: Domain) -> Axis:
        """The axis of a column with this domain."""
        before, labels = len(_before(domain)), isinstance(domain, Category)
        return Axis(size=domain.size, before=before, after=len(domain.specials) - before, labels=labels)

    @property
    def width(self) -> int:
        """The number of positions: cells and special cells."""
        return self.before + self.size + self.after

    def position(self, cell: int) -> int:
        """Where an ordered cell lies."""
        return self.before + cell

    @staticmethod
    def specials(domain: Domain) -> dict[str, int]:
        """Where each special cell of a domain lies."""
        first = _before(domain)
        behind = [name for name in domain.specials if name not in first]
        places = {name: at for at, name in enumerate(behind, start=len(first) + domain.size)}
        return {name: at for at, name in enumerate(first)} | places


def check_axes(axes: object) -> tuple[Axis, ...]:
    """The axes, if they are a list of at least one."""
    given = tuple(axes) if isinstance(axes, list | tuple) else ()
    if given and all(isinstance(axis, Axis) for axis in given):
        return given
    raise InvalidParameter("axes", "must be a list of axes", given=axes, fix="pass Axis.of(domain) for each")


def _before(domain: Domain) -> tuple[str, ...]:
    return tuple(name for name in domain.specials if name == "below")
