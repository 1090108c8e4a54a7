"""How a view of a release looks in a notebook: public facts and released numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from partita.domain.base.base import Domain
from partita.guarantee.guarantee import Guarantee
from partita.html import card
from partita.public.base.figures import shortened

LONGEST: Final = 60
"""No name and no domain is shown with more characters."""


class Viewed(Protocol):
    """What every view says about itself."""

    @property
    def mechanism(self) -> str: ...

    @property
    def why(self) -> str: ...

    @property
    def guarantee(self) -> Guarantee | None: ...


def view_card(view: Viewed, declared: Mapping[str, Domain], **facts: object) -> str:
    """One view: how it was made and why, and what its columns may hold."""
    lines: list[tuple[str, object]] = [
        ("mechanism", view.mechanism),
        ("why", view.why or None),
        ("promise", promise(view.guarantee)),
        *facts.items(),
        *((shortened(column, LONGEST), values_of(domain)) for column, domain in declared.items()),
    ]
    return card(type(view).__name__, lines)


def promise(guarantee: Guarantee | None) -> str:
    """The promise in words, or that there is none."""
    return "none: made with injected noise" if guarantee is None else str(guarantee)


def values_of(domain: Domain) -> str:
    """What a column may hold."""
    return shortened(repr(domain), LONGEST)
