"""One column of a release: its axis of cells and the special cells beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from partita.domain import Domain
from partita.releases.ranges import Ranges
from partita.releases.specials import Specials

__all__ = ["View"]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class View:
    """A column, its public domain, and what was released about it.

    `mechanism` is the name under which the mechanism is listed, and `why` the sentence that says how
    it was chosen, a function of public facts.
    """

    column: str
    domain: Domain
    axis: Ranges
    specials: Specials
    mechanism: str
    why: str = ""
