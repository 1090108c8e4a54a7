"""A release: public from the first byte to the last, and free to ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from partita.guarantee import Guarantee
from partita.releases.provenance import Provenance
from partita.releases.view import View

__all__ = ["Release"]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Release:
    """Views of a table, published once.

    `guarantee` is None if the release was made with injected noise: it protects nobody.
    """

    views: tuple[View, ...]
    guarantee: Guarantee | None
    provenance: Provenance
