"""The views and columns of a release as records, and the special cells of a column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.cli.output import Record

if TYPE_CHECKING:
    from partita.answer import Answer
    from partita.releases.release import Release

__all__ = ["column_records", "specials", "view_records"]


def view_records(release: Release) -> list[Record]:
    """Which columns were published together, by which mechanism, and why."""
    return [{"columns": view.columns, "mechanism": view.mechanism, "why": view.why} for view in release.views]


def column_records(release: Release) -> list[Record]:
    """Every column, its domain, and its noisy special cells."""
    return [
        {
            "column": column,
            "domain": release.slice(column).domain.to_spec(),
            "specials": {
                name: {"value": answer.value, "error": answer.error}
                for name, answer in specials(release, column).items()
            },
        }
        for column in release.columns
    ]


def specials(release: Release, column: str) -> dict[str, Answer]:
    """The counts of what is beside the axis of a column, by the name of the cell."""
    from partita.domain import Special

    cells = release.slice(column).domain.specials
    return {name: release.count({column: Special.named(name)}) for name in cells}
