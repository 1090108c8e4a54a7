"""A folder with the page, the releases, and all that the page needs to answer without a server.

The answers are those of the service: the same functions make them, or the script sums what
`partita.public.estimates` wrote. The folder is built beside its place and renamed, so that a reader sees no
half of it. It is replaced only if it is a folder that was written here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any, Final, final

from partita.domain.category import Category
from partita.domain.numeric import Integer, Real
from partita.errors import InvalidParameter, InvalidRelease, check
from partita.lazy import cached_property
from partita.public.conditions import OneOf, Range
from partita.public.estimates import MOST_GROUP_SUMS, MOST_TOGETHER, ColumnEstimate, PairEstimate, Span
from partita.public.file import LARGEST, unpack
from partita.public.file_entries import text
from partita.public.questions import KINDS
from partita.public.records import Record, sum_records, to_plain
from partita.public.release import Release
from partita.public.views import BoxView
from partita.public.window import Window
from partita.service.reading.catalogue import SUFFIX, Entry, FileIdentity, csv_bytes, list_names
from partita.service.reading.questions import Answerer, Bars, deviations
from partita.service.reading.releases import describe_release, summarize_release
from partita.service.reading.views import ChartRequest, dependence_record
from partita.service.settings import VERSION, Limits
from partita.service.site import files
from partita.storage import read_file

CONFIDENCES: Final = (0.8, 0.9, 0.95, 0.99)
"""What the page offers."""

MARK: Final = "partita-site.json"
"""The file that tells a folder that was written here from any other."""

_MAP, _SIDE = 64, 32  # bins on each side of a map of places, and of any other pair
_MOST_PAIRS: Final = 120  # of columns in one release: those of 16 columns
_TOLD: Final = 10  # pairs of columns from one message to the next
_ROWS: Final = 1_000  # made-up rows to download
_LATITUDE: Final = re.compile(r"(^|[\W_])lat(itude)?$", re.IGNORECASE)
_LONGITUDE: Final = re.compile(r"(^|[\W_])(lon|lng|long|longitude)$", re.IGNORECASE)

Tell = Callable[[str], None]


@final
@dataclass(frozen=True)
class Site:
    """What was written: where, the releases, and the bytes of all files and of the script."""

    folder: Path
    releases: tuple[str, ...]
    size: int
    script: int


def write_site(source: Path, output: Path, *, overwrite: bool = False, tell: Tell = lambda _: None) -> Site:
    """Write the page of all releases of a folder into another one, whole or not at all."""
    names = list_names(source)
    rule, fix = f"must hold releases, files that end in {SUFFIX}", "pass the folder that they are in"
    check(names, "releases", rule, given=str(source), fix=fix)
    _check_output(output, source, overwrite=overwrite)
    entries = [_load(source, name) for name in names]
    output.parent.mkdir(parents=True, exist_ok=True)
    built = Path(tempfile.mkdtemp(prefix=f".{output.name}-", dir=output.parent))
    try:
        size = 0
        for path, data in _all_files(source, entries, tell):
            place = built / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            size += len(data)
        built.chmod(0o755)
        _place(built, output)
    finally:
        shutil.rmtree(built, ignore_errors=True)
    return Site(output, tuple(names), size, len(files.script().encode()))


def _check_output(output: Path, source: Path, *, overwrite: bool) -> None:
    """Refuse a folder in which the releases lie, and one that holds anything that was not written here."""
    rule, fix = "must be another folder than that of the releases", "choose another"
    within = source.resolve().is_relative_to(output.resolve())
    check(not within, "output", rule, given=str(output), fix=fix)
    if not os.path.lexists(output):
        return
    folder = output.is_dir() and not output.is_symlink()
    rule = "must not exist yet, or be a folder that this wrote"
    ours = folder and ((output / MARK).is_file() or not any(output.iterdir()))
    check(ours, "output", rule, given=str(output), fix=fix)
    empty = not (output / MARK).is_file()
    fix = "choose another, or pass --force"
    check(empty or overwrite, "output", "must not exist yet", given=str(output), fix=fix)


def _place(built: Path, output: Path) -> None:
    """Give the folder its name; what had it before is moved away first, and back if that fails."""
    if not output.exists():
        os.rename(built, output)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{output.name}-old-", dir=output.parent))
    os.rename(output, old / "page")
    try:
        os.rename(built, output)
    except OSError:
        with suppress(OSError):
            os.rename(old / "page", output)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _load(folder: Path, name: str) -> Entry:
    """A release; a file that is none is refused by its name."""
    path = folder / f"{name}{SUFFIX}"
    identity = FileIdentity.of(os.lstat(path))
    try:
        data = read_file(path, largest=LARGEST)
        stored, _ = unpack(data, largest=LARGEST)
        assert identity is not None
        checksum = text(stored.spec["checksum"])
        return Entry(name, identity, checksum, hashlib.sha256(data).hexdigest(), stored.release())
    except InvalidRelease as error:
        raise InvalidRelease(f"{error.parameter} of {path.name}", error.rule, fix=error.fix) from None


def _all_files(source: Path, entries: list[Entry], tell: Tell) -> Iterator[tuple[str, bytes]]:
    """Every file of the folder, by its path."""
    yield "index.html", files.document().encode()
    yield "page.js", files.script().encode()
    yield "style.css", files.style().encode()
    for number, entry in enumerate(entries, 1):
        if len(entries) > 1:
            tell(f"{entry.name}, release {number} of {len(entries)}")
        yield from ReleaseFiles(entry, source).all(tell)
    index = {"releases": [summarize_release(entry) for entry in entries], "streams": []}
    yield "data/index.js", files.data_script("index", index)
    mark = {"written_by": f"partita {VERSION}", "releases": [entry.name for entry in entries]}
    yield MARK, f"{json.dumps(mark, indent=1)}\n".encode()


@final
@dataclass(frozen=True, eq=False)
class ReleaseFiles:
    """The files of one release."""

    entry: Entry
    source: Path

    @property
    def release(self) -> Release:
        """The release."""
        return self.entry.opened

    def all(self, tell: Tell) -> Iterator[tuple[str, bytes]]:
        """The data of the page, then what can be downloaded."""
        name, release = self.entry.name, self.release
        yield self._data("about", self._about())
        for number, column in enumerate(self.columns):
            yield self._data(f"column-{number}", self._column(column))
        for number, (one, other) in enumerate(self.pairs):
            if number % _TOLD == _TOLD - 1:
                tell(f"{name}, pair {number + 1} of {len(self.pairs)}")
            yield self._data(f"pair-{one}-{other}", self._pair(one, other))
        yield f"files/{name}{SUFFIX}", read_file(self.source / f"{name}{SUFFIX}", largest=LARGEST)
        yield f"files/{name}.report.txt", f"{release.report()}\n".encode()
        yield f"files/{name}.citation.bib", release.citation().encode()
        if self.columns:
            rows = release.synthesize(_ROWS)
            yield f"files/{name}.synthesize.csv", csv_bytes(list(rows), zip(*rows.values(), strict=True))

    @cached_property
    def columns(self) -> list[ColumnEstimate]:
        """The columns whose counts were released."""
        return [ColumnEstimate(self.release, column) for column in self.release.columns]

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Columns that were released together, of few or of all as a table; each pair once."""
        places = {each.column: number for number, each in enumerate(self.columns)}
        found = {
            (min(places[one], places[other]), max(places[one], places[other]))
            for view in self.release.views
            if isinstance(view, BoxView)
            for one, other in permutations(view.columns, 2)
        }
        return sorted(found)[:_MOST_PAIRS]

    @cached_property
    def _answerer(self) -> Answerer:
        return Answerer(Limits())

    def _data(self, what: str, record: Mapping[str, Any]) -> tuple[str, bytes]:
        name = f"{self.entry.name}/{what}"
        return f"data/{name}.js", files.data_script(name, record)

    def _about(self) -> Record:
        """All public facts, the number of rows at each confidence, and the sums."""
        release, table = self.release, self.release.table is not None
        return {
            "about": describe_release(self.entry, self._answerer),
            "dependence": dependence_record(release) if table else None,
            "deviations": {str(each): deviations(each) for each in CONFIDENCES},
            "totals": {str(each): self._answer("count", confidence=each) for each in CONFIDENCES},
            "pairs": self.pairs,
            "sums": self._sums(),
        }

    def _answer(self, kind: str, confidence: float = 0.95, **arguments: Any) -> Record:
        """An answer as the service gives it, or why there is none."""
        try:
            return self._answerer.answer(self.release, KINDS[kind](**arguments), Bars(confidence=confidence))
        except InvalidParameter as error:
            return {"refused": str(error)}

    @cached_property
    def _summable(self) -> list[str]:
        """The columns whose sums the release may tell, in the order of the page."""
        summed = [str(record["column"]) for record in sum_records(self.release)]
        if self.release.table is not None:
            domains = {each.column: each.line.domain for each in self.columns}
            summed += [column for column, domain in domains.items() if isinstance(domain, Integer | Real)]
        return list(dict.fromkeys(summed))

    def _sums(self) -> Record:
        """The sums and means of all rows; those of the first column also by the groups of every other."""
        found = {column: {"": self._measures(column, {})} for column in self._summable}
        for number, each in enumerate(self.columns):
            first = next((column for column in self._summable if column != each.column), None)
            if first is None or len(each.groups) > MOST_GROUP_SUMS:
                continue
            for group in each.groups:
                where = {each.column: _condition(each, group)}
                found[first][f"{number}:{group.low}-{group.high}"] = self._measures(first, where)
        return found

    def _measures(self, column: str, where: Mapping[str, object]) -> Record:
        """The mean and the sum with their errors, and their intervals at each confidence."""
        return {kind: self._measure(kind, column, where) for kind in ("mean", "sum")}

    def _measure(self, kind: str, column: str, where: Mapping[str, object]) -> Record:
        asked = {each: self._answer(kind, each, column=column, where=where) for each in CONFIDENCES}
        wanted = ("value", "error", "covers", "refused")
        found = {key: asked[CONFIDENCES[0]][key] for key in wanted if key in asked[CONFIDENCES[0]]}
        intervals = {str(each): record.get("interval") for each, record in asked.items()}
        return found if "refused" in found else {**found, "intervals": intervals}

    def _column(self, column: ColumnEstimate) -> Record:
        """The estimate of a column, and what the page shows of it at each confidence."""
        charts = {each: self._chart(column.column, each) for each in CONFIDENCES}
        return {
            **column.record(),
            "quantiles": {str(each): chart["quantiles"] for each, chart in charts.items()},
            "specials": charts[CONFIDENCES[0]]["specials"],
            "sets": self._sets(column),
        }

    def _chart(self, column: str, confidence: float) -> Record:
        request = ChartRequest(x=column, bins=1, confidence=confidence)
        return request.view(self.release, self._answerer).record()

    def _sets(self, column: ColumnEstimate) -> Record | None:
        """Answers for sets of labels, or how far sums of their counts may be off for certain."""
        if column.adds_up:
            numbers = range(1, min(column.size, MOST_TOGETHER) + 1)
            reach = {
                str(each): [column.reach(number, 1 - each) for number in numbers] for each in CONFIDENCES
            }
            return {"kind": "sums", "most": len(numbers), "reach": reach}
        sets = [self._set(column, cells) for cells in column.sets]
        return {"kind": "listed", "sets": sets} if sets else None

    def _set(self, column: ColumnEstimate, cells: Sequence[int]) -> Record:
        asked: dict[float, Any] = {
            each: self._answer("count", each, where=column.set_question(cells)) for each in CONFIDENCES
        }
        ends = {str(each): record["interval"] for each, record in asked.items()}
        return {
            "cells": cells,
            **{key: asked[CONFIDENCES[0]].get(key) for key in ("value", "error", "basis")},
            "intervals": {each: [interval["low"], interval["high"]] for each, interval in ends.items()},
        }

    def _pair(self, one: int, other: int) -> Record:
        """Maps of two columns, where nearly all rows are and on their whole axes, and charts by groups."""
        pair = PairEstimate(self.columns[one], self.columns[other])
        bins = _MAP if _is_map(pair.x.column, pair.y.column) else _SIDE
        windows = {"window": (pair.x.window, pair.y.window)}
        if not all(window.whole for window in windows["window"]):
            windows["full"] = (_whole(pair.x), _whole(pair.y))
        return {
            "maps": {name: pair.map(each, (bins, bins)) for name, each in windows.items()},
            "splits": [pair.split(), PairEstimate(pair.y, pair.x).split()],
        }


def _condition(column: ColumnEstimate, group: Span) -> object:
    low, high = (str(to_plain(each)) for each in column.line.domain.decode([group.low, group.high]))
    return OneOf((low,)) if isinstance(column.line.domain, Category) else Range(low, high)


def _whole(column: ColumnEstimate) -> Window:
    return Window(0, column.size - 1, column.size)


def _is_map(one: str, other: str) -> bool:
    """Whether two columns are a latitude and a longitude."""
    return any(_LATITUDE.search(a) and _LONGITUDE.search(b) for a, b in ((one, other), (other, one)))
