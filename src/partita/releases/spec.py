"""A release as a specification in JSON and columns of integers, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, final

from numpy.typing import NDArray

from partita.domain import domain_from_spec
from partita.errors import InvalidRelease, PartitaError
from partita.releases.checksum import checksum
from partita.releases.file_columns import Column, Series
from partita.releases.file_entries import (
    entries,
    guarantee_entries,
    guarantee_from,
    listed,
    natural,
    provenance_entries,
    provenance_from,
    refused,
    series_name,
    specials_entries,
    specials_from,
    text,
)
from partita.releases.kinds import class_of
from partita.releases.ranges import Json, Parts
from partita.releases.release import Release
from partita.releases.view import View

__all__ = ["FORMAT", "VERSION", "Stored", "columns_of"]

FORMAT: Final = "partita release"
VERSION: Final = 1

_MOST_COLUMNS: Final = 2**12
_ENTRIES: Final = ("checksum", "format", "guarantee", "provenance", "version", "views")
_VIEW: Final = ("column", "domain", "facts", "guarantee", "kind", "mechanism", "series", "specials", "why")


@final
@dataclass(frozen=True, eq=False)
class Stored:
    """What a file holds: the specification, and the content of the columns that it announces."""

    spec: dict[str, Json]
    values: Sequence[NDArray[Any]]

    @classmethod
    def of(cls, release: Release) -> Stored:
        """A release, taken apart."""
        taken = [(view, view.axis.parts()) for view in release.views]
        spec: dict[str, Json] = {
            "format": FORMAT,
            "version": VERSION,
            "guarantee": guarantee_entries(release.guarantee),
            "provenance": provenance_entries(release.provenance),
            "views": [_view_entries(view, parts) for view, parts in taken],
        }
        values = [column for _, parts in taken for column in _split(parts)]
        spec["checksum"] = checksum(spec, values)
        columns_of(spec)
        return cls(spec, values)

    def check(self) -> None:
        """Refuse numbers that are not those of the checksum."""
        if self.spec["checksum"] != checksum(self.spec, self.values):
            raise InvalidRelease(
                "checksum", "does not match what the file holds", fix="get a fresh copy of the release"
            )

    def release(self) -> Release:
        """The release that `of` took apart; every part of it checks itself."""
        columns = iter(self.values)
        try:
            return Release(
                views=tuple(_view(entries(view, _VIEW), columns) for view in listed(self.spec["views"])),
                guarantee=guarantee_from(self.spec["guarantee"]),
                provenance=provenance_from(self.spec["provenance"]),
            )
        except InvalidRelease:
            raise
        except PartitaError as error:
            raise refused(f"breaks a rule: {error}") from None


def columns_of(spec: Mapping[str, Json]) -> list[Column]:
    """The columns that a specification announces, in the order of the file."""
    if spec.get("format") != FORMAT:
        raise InvalidRelease("file", "is not a Partita release", fix="check the path")
    if spec.get("version") != VERSION:
        raise InvalidRelease("file", "has a format that is not known here", fix="it needs a newer Partita")
    views = [entries(view, _VIEW) for view in listed(entries(spec, _ENTRIES)["views"])]
    found = [
        column
        for view in views
        for series in _series(view)
        for column in series.columns(text(view["column"]))
    ]
    names = {column.name for column in found}
    if not views or len(names) < len(found):
        raise refused("must name its columns once each")
    if len(found) > _MOST_COLUMNS:
        raise refused(f"must have at most {_MOST_COLUMNS} columns of numbers")
    return found


def _view_entries(view: View, parts: Parts) -> dict[str, Json]:
    series = (Series.of(name, values) for name, values in parts.series.items())
    return {
        "column": view.column,
        "domain": _plain(view.domain.to_spec()),
        "mechanism": view.mechanism,
        "why": view.why,
        "kind": view.axis.kind,
        "facts": dict(parts.facts),
        "guarantee": guarantee_entries(view.axis.guarantee),
        "specials": specials_entries(view.specials),
        "series": [{"name": each.name, "dtype": each.dtype, "length": each.length} for each in series],
    }


def _plain(spec: Mapping[str, str | list[str]]) -> dict[str, Json]:
    return {key: list[Json](value) if isinstance(value, list) else value for key, value in spec.items()}


def _split(parts: Parts) -> Iterator[NDArray[Any]]:
    for name, values in parts.series.items():
        yield from Series.of(name, values).split(values)


def _series(view: Mapping[str, Json]) -> list[Series]:
    each = [entries(series, ("name", "dtype", "length")) for series in listed(view["series"])]
    return [
        Series(name=series_name(one["name"]), dtype=text(one["dtype"]), length=natural(one["length"]))
        for one in each
    ]


def _view(view: Mapping[str, Json], columns: Iterator[NDArray[Any]]) -> View:
    """One view; takes its columns from those that are left."""
    domain = domain_from_spec(entries(view["domain"]))
    series = {each.name: each.join(list(islice(columns, each.width))) for each in _series(view)}
    parts = Parts(entries(view["facts"]), series)
    axis = class_of(text(view["kind"])).from_parts(parts, guarantee_from(view["guarantee"]))
    if axis.size != domain.size:
        raise refused("must have a domain of as many cells as were released")
    return View(
        column=text(view["column"]),
        domain=domain,
        axis=axis,
        specials=specials_from(view["specials"], domain.specials),
        mechanism=text(view["mechanism"]),
        why=text(view["why"]),
    )
