"""Where a release comes from: public facts only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, kw_only=True)
class Provenance:
    """What the steward said and which library heard it; nothing that the data decided.

    `day` is the calendar day, as text like 2026-11-15. `recorded` says whether a ledger was debited.
    `person` is the name of the column of ids whose rows were bounded, if any. `part` is the column and
    the value that a row must have to be counted, if not all rows are.
    """

    version: str
    day: str
    dataset: str | None = None
    recorded: bool = False
    person: str | None = None
    part: tuple[str, str] | None = None
