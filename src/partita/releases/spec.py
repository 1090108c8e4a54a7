"""A release as a specification in JSON and columns of integers, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, final

from numpy.typing import NDArray

from partita.domain import Domain, domain_from_spec
from partita.errors import InvalidRelease, PartitaError
from partita.inference.boxes.axis import MOST_AXES
from partita.releases.box_view import BoxView
from partita.releases.boxes import Boxes
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
from partita.releases.kinds import box_class_of, class_of
from partita.releases.ranges import Json, Parts, Ranges
from partita.releases.release import Release
from partita.releases.view import View

__all__ = ["FORMAT", "SEVERAL", "VERSION", "Stored", "columns_of", "described", "version_of", "view_name"]

FORMAT: Final = "partita release"
VERSION: Final = 1
"""The version of a file in which every view has one column."""
SEVERAL: Final = 2
"""The version of a file in which some view has several columns."""

_MOST_COLUMNS: Final = 2**12
_ENTRIES: Final = ("checksum", "format", "guarantee", "provenance", "version", "views")
_EVERY_VIEW: Final = ("facts", "guarantee", "kind", "mechanism", "series", "why")
_VIEW: Final = ("column", "domain", "specials", *_EVERY_VIEW)
_BOX_VIEW: Final = ("columns", "domains", *_EVERY_VIEW)


@final
@dataclass(frozen=True, eq=False)
class Stored:
    """What a file holds: the specification, and the content of the columns that it announces."""

    spec: dict[str, Json]
    values: Sequence[NDArray[Any]]

    @classmethod
    def of(cls, release: Release) -> Stored:
        """A release, taken apart."""
        taken = [(view, _released(view).parts()) for view in release.views]
        views = [_view_entries(view, parts) for view, parts in taken]
        spec: dict[str, Json] = {
            "format": FORMAT,
            "version": version_of(views),
            "guarantee": guarantee_entries(release.guarantee),
            "provenance": provenance_entries(release.provenance),
            "views": list[Json](views),
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
                views=tuple(_view(view, columns) for view in _views(self.spec)),
                guarantee=guarantee_from(self.spec["guarantee"]),
                provenance=provenance_from(self.spec["provenance"]),
            )
        except InvalidRelease:
            raise
        except PartitaError as error:
            raise refused(f"breaks a rule: {error}") from None


def columns_of(spec: Mapping[str, Json]) -> list[Column]:
    """The columns that a specification announces, in the order of the file."""
    views = _views(spec)
    found = [
        column for view in views for series in _series(view) for column in series.columns(_name_in_file(view))
    ]
    names = {column.name for column in found}
    if not views or len(names) < len(found):
        raise refused("must name its columns once each")
    if len(found) > _MOST_COLUMNS:
        raise refused(f"must have at most {_MOST_COLUMNS} columns of numbers")
    return found


def view_name(columns: Sequence[str]) -> str:
    """The columns of a view in one name, with which its series in a file begin.

    >>> view_name(["age"]), view_name(["age", "salary"])
    ('age', 'age x salary')
    """
    return " x ".join(columns)


def version_of(views: Sequence[Mapping[str, Json]]) -> int:
    """The version of a file with these entries of views."""
    return SEVERAL if any(map(_is_box, views)) else VERSION


def described(columns: Sequence[str], domains: Sequence[Domain]) -> dict[str, Json]:
    """The entries that say what a view is about: one column and its domain, or several."""
    plain = [_plain(domain.to_spec()) for domain in domains]
    if len(columns) == 1:
        return {"column": columns[0], "domain": plain[0]}
    return {"columns": list[Json](columns), "domains": list[Json](plain)}


def _views(spec: Mapping[str, Json]) -> list[dict[str, Json]]:
    """The entries of every view, if they are those of the version that the file says it has."""
    if spec.get("format") != FORMAT:
        raise InvalidRelease("file", "is not a Partita release", fix="check the path")
    if spec.get("version") not in (VERSION, SEVERAL):
        raise InvalidRelease("file", "has a format that is not known here", fix="it needs a newer Partita")
    given = [entries(view) for view in listed(entries(spec, _ENTRIES)["views"])]
    views = [entries(view, _BOX_VIEW if _is_box(view) else _VIEW) for view in given]
    if spec["version"] != version_of(views):
        raise refused(f"must be of version {SEVERAL} if a view has several columns, else of {VERSION}")
    return views


def _is_box(view: Mapping[str, Json]) -> bool:
    return "columns" in view


def _name_in_file(view: Mapping[str, Json]) -> str:
    return view_name(_together(view)) if _is_box(view) else text(view["column"])


def _together(view: Mapping[str, Json]) -> tuple[str, ...]:
    """The columns of a view of several."""
    columns = tuple(text(column) for column in listed(view["columns"]))
    if not 1 < len(columns) <= MOST_AXES or len(set(columns)) < len(columns):
        raise refused(f"must have 2 to {MOST_AXES} different columns in a view of several")
    return columns


def _released(view: View | BoxView) -> Ranges | Boxes:
    return view.boxes if isinstance(view, BoxView) else view.axis


def _view_entries(view: View | BoxView, parts: Parts) -> dict[str, Json]:
    series = (Series.of(name, values) for name, values in parts.series.items())
    released = _released(view)
    return {
        **_about(view),
        "mechanism": view.mechanism,
        "why": view.why,
        "kind": released.kind,
        "facts": dict(parts.facts),
        "guarantee": guarantee_entries(released.guarantee),
        "series": [{"name": each.name, "dtype": each.dtype, "length": each.length} for each in series],
    }


def _about(view: View | BoxView) -> dict[str, Json]:
    """The entries that only views of one column have, or only views of several."""
    if isinstance(view, BoxView):
        return described(view.columns, view.domains)
    return {**described([view.column], [view.domain]), "specials": specials_entries(view.specials)}


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


def _view(view: Mapping[str, Json], columns: Iterator[NDArray[Any]]) -> View | BoxView:
    """One view; takes its columns from those that are left."""
    series = {each.name: each.join(list(islice(columns, each.width))) for each in _series(view)}
    parts = Parts(entries(view["facts"]), series)
    return _box_view(view, parts) if _is_box(view) else _column_view(view, parts)


def _column_view(view: Mapping[str, Json], parts: Parts) -> View:
    domain = domain_from_spec(entries(view["domain"]))
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


def _box_view(view: Mapping[str, Json], parts: Parts) -> BoxView:
    domains = tuple(domain_from_spec(entries(domain)) for domain in listed(view["domains"]))
    return BoxView(
        columns=_together(view),
        domains=domains,
        boxes=box_class_of(text(view["kind"])).from_parts(parts, guarantee_from(view["guarantee"])),
        mechanism=text(view["mechanism"]),
        why=text(view["why"]),
    )
