"""A release as a specification in JSON and columns of integers, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, final

from numpy.typing import NDArray

from partita.errors.checks import check_release
from partita.errors.errors import InvalidRelease, PartitaError
from partita.public.axis.base.ranges import Json, Parts
from partita.public.file_entries.checksum import checksum
from partita.public.file_entries.file_columns import Column, Series
from partita.public.file_entries.file_entries import (
    entries,
    guarantee_entries,
    guarantee_from,
    listed,
    natural,
    provenance_entries,
    provenance_from,
    refused,
    series_name,
    text,
)
from partita.public.file_entries.file_views import EVERY_VIEW, NUMBERS, SEVERAL, VERSION, form_of
from partita.public.file_entries.published import Published
from partita.public.release.release import Release
from partita.public.results.totals import AnyView
from partita.public.sums.view.sum_view import SumView
from partita.public.views.box_view import BoxView
from partita.public.views.view import View
from partita.public.workload.release.query_view import QueryView

FORMAT: Final = "partita release"

_MOST_COLUMNS: Final = 2**12
_ENTRIES: Final = ("checksum", "format", "guarantee", "provenance", "version", "views")
_ORDER: Final = (View, BoxView), (SumView,), (QueryView,)
"""Views of counts stand first, which sums are cut by; then sums, then answers to queries."""


@final
@dataclass(frozen=True, eq=False)
class Stored:
    """What a file holds: the specification, and the content of the columns that it announces."""

    spec: dict[str, Json]
    values: Sequence[NDArray[Any]]

    @classmethod
    def of(cls, release: Release) -> Stored:
        """A release, taken apart."""
        taken = [(view, form_of(view).released(view).parts()) for view in release.published]
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
        rule, fix = "does not match what the file holds", "get a fresh copy of the release"
        check_release(self.spec["checksum"] == checksum(self.spec, self.values), "checksum", rule, fix=fix)

    def release(self) -> Release:
        """The release that `of` took apart; every part of it checks itself."""
        try:
            counts, sums, queries = self._published()
            return Release(
                views=counts,
                sums=sums,
                queries=next(iter(queries), None),
                guarantee=guarantee_from(self.spec["guarantee"]),
                provenance=provenance_from(self.spec["provenance"]),
            )
        except InvalidRelease:
            raise
        except PartitaError as error:
            raise refused(f"breaks a rule: {error}") from None

    def _published(self) -> tuple[tuple[Any, ...], ...]:
        """The views of counts, of sums and of queries; each kind may look at those before it."""
        columns, read = iter(self.values), list[Any]()
        for view in _views(self.spec):
            read.append(_view(view, columns, [each for each in read if isinstance(each, AnyView)]))
        counts, sums, queries = (tuple(each for each in read if isinstance(each, kind)) for kind in _ORDER)
        if read != [*counts, *sums, *queries] or len(queries) > 1:
            raise refused("must have views of counts first, then of sums, then at most one of queries")
        return counts, sums, queries


def columns_of(spec: Mapping[str, Json]) -> list[Column]:
    """The columns that a specification announces, in the order of the file."""
    views = _views(spec)
    found = [
        column
        for view in views
        for series in _series(view)
        for column in series.columns(form_of(view).name(view))
    ]
    names = {column.name for column in found}
    if not views or len(names) < len(found):
        raise refused("must name its columns once each")
    if len(found) > _MOST_COLUMNS:
        raise refused(f"must have at most {_MOST_COLUMNS} columns of numbers")
    return found


def version_of(views: Sequence[Mapping[str, Json]]) -> int:
    """The version of a file with these entries of views."""
    return max((form_of(view).version for view in views), default=VERSION)


def _views(spec: Mapping[str, Json]) -> list[dict[str, Json]]:
    """The entries of every view, if they are those of the version that the file says it has."""
    check_release(spec.get("format") == FORMAT, "file", "is not a Partita release", fix="check the path")
    rule, fix = "has a format that is not known here", "it needs a newer Partita"
    check_release(spec.get("version") in (VERSION, SEVERAL, NUMBERS), "file", rule, fix=fix)
    given = [entries(view) for view in listed(entries(spec, _ENTRIES)["views"])]
    views = [entries(view, (*form_of(view).names, *EVERY_VIEW)) for view in given]
    if spec["version"] != version_of(views):
        raise refused(
            f"must be of version {NUMBERS} if a view has sums or answers, "
            f"else of {SEVERAL} if one has several columns, else of {VERSION}"
        )
    return views


def _view_entries(view: Published, parts: Parts) -> dict[str, Json]:
    series = (Series.of(name, values) for name, values in parts.series.items())
    return {
        **form_of(view).written(view, parts),
        "series": [{"name": each.name, "dtype": each.dtype, "length": each.length} for each in series],
    }


def _split(parts: Parts) -> Iterator[NDArray[Any]]:
    for name, values in parts.series.items():
        yield from Series.of(name, values).split(values)


def _series(view: Mapping[str, Json]) -> list[Series]:
    each = [entries(series, ("name", "dtype", "length")) for series in listed(view["series"])]
    return [
        Series(name=series_name(one["name"]), dtype=text(one["dtype"]), length=natural(one["length"]))
        for one in each
    ]


def _view(view: Mapping[str, Json], columns: Iterator[NDArray[Any]], before: Sequence[AnyView]) -> Published:
    """One view; takes its columns from those that are left."""
    series = {each.name: each.join(list(islice(columns, each.width))) for each in _series(view)}
    return form_of(view).read(view, Parts(entries(view["facts"]), series), before)
