"""The name of a release in an address."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

from fastapi import Path

from partita.service.settings import NAME

__all__ = ["NAMED", "PATTERN", "Name"]

NAMED: Final = "the name of the release: that of its file, without .release.parquet"
PATTERN: Final[dict[str, Any]] = {"pattern": f"^{NAME.pattern}$"}

Name: TypeAlias = Annotated[
    str,
    Path(
        description=NAMED,
        examples=["people"],
        json_schema_extra=PATTERN,
    ),
]
"""Any text: one that is no name is a release that is not there."""
