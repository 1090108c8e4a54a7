"""`check`: how many rows of a table a schema cannot read, and why. For the steward's eyes only.

It spends nothing, draws nothing and publishes nothing. Its numbers are exact, and so secret: a release tells
the same with noise. The rows are read once, a batch at a time, and encoded by the code of `publish`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from json import dumps
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from pyarrow import types

from partita.arrays import Ints
from partita.domain.base import Domain, Special
from partita.domain.numeric import Integer
from partita.domain.text import Text
from partita.errors import SourceError
from partita.public.base import table
from partita.publish.publish import phase
from partita.publish.request import checked_schema, unit_by
from partita.trusted.sources.arrow import UNREADABLE, find_distinct
from partita.trusted.sources.base import Batches, File, Rows, Source, attempt
from partita.trusted.sources.engine import LocalSource
from partita.trusted.sources.formats import UNREADABLE_CELLS, FormatFinder
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import check_identifies, identify
from partita.trusted.sources.text import LONGEST_LINE, Csv, LineBlock, blocks, split_fields
from partita.trusted.sources.wide import read_columns

SECRET: Final = "SECRET: exact numbers about these rows. Do not publish, share or log them."
_NOTHING: Final = "Nothing was spent, drawn or published. A release tells the same with noise."
_PUBLIC_BOUNDS: Final = (
    "Convert formats as you like. Take bounds and labels from public knowledge, never from these numbers: "
    "what is declared is published, and a declaration that follows the rows betrays them."
)
_SPECIALS: Final = ("invalid", "other", "null", "below", "above")
_DELIMITERS: Final = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
_MOST_LINES: Final = 40  # about single files that are shown as text
_UNEXPLAINED: Final = {
    "invalid": ("values that no known format explains", "look at them where they are"),
    "other": ("values that are no label", "leave them, or declare more labels, from public knowledge"),
}
_LONG_TEXT: Final = (
    "text that is longer than declared, or of other characters",
    "leave it, or raise max_bytes",
)


@final
@dataclass(frozen=True)
class CheckFinding:
    """Something that looks wrong: in how many rows, or None if it concerns the whole file, and the fix."""

    column: str | None
    what: str
    rows: int | None
    fix: str

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"column": self.column, "what": self.what, "rows": self.rows, "fix": self.fix}


@final
@dataclass(frozen=True)
class ColumnCheck:
    """One column: how many rows it has, and how many of them are in each special cell."""

    column: str
    rows: int
    specials: Mapping[str, int]

    @property
    def valid(self) -> int:
        """How many rows have a value that is told apart."""
        return self.rows - sum(self.specials.values())

    @property
    def unread(self) -> int:
        """How many rows are invalid or other."""
        return self.specials.get("invalid", 0) + self.specials.get("other", 0)

    def to_json(self) -> dict[str, Any]:
        """Exact numbers, and exact shares as floats; null if there is no row."""
        numbers = {"valid": self.valid, **self.specials}
        shares = {name: number / self.rows if self.rows else None for name, number in numbers.items()}
        return {"column": self.column, "rows": self.rows, **numbers, "shares": shares}

    def cells(self) -> list[str]:
        """One line of a table."""
        counts = (self.specials.get(name) for name in _SPECIALS)
        return [self.column, *("" if n is None else _share(n, self.rows) for n in (self.valid, *counts))]


@final
@dataclass(frozen=True)
class FileCheck:
    """One file, or all rows of a table that is not in files; `readable` is False if `publish` refuses it."""

    file: str
    rows: int
    columns: tuple[ColumnCheck, ...] = ()
    findings: tuple[CheckFinding, ...] = ()
    readable: bool = True

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        columns = [each.to_json() for each in self.columns]
        findings = [each.to_json() for each in self.findings]
        about = {"file": self.file, "rows": self.rows, "readable": self.readable}
        return {**about, "columns": columns, "findings": findings}


@final
@dataclass(frozen=True, repr=False)
class DataCheck:
    """How many rows of a table a schema cannot read. SECRET: every number is exact.

    Its `repr` tells nothing, so that no notebook or log keeps it by chance. Print it to read it.
    """

    files: tuple[FileCheck, ...]

    def __repr__(self) -> str:
        return "DataCheck(secret: print it to read it, and do not keep what is printed)"

    @property
    def rows(self) -> int:
        """How many rows could be read."""
        return sum(file.rows for file in self.files)

    @property
    def columns(self) -> tuple[ColumnCheck, ...]:
        """Every column, over all files."""
        found: dict[str, list[ColumnCheck]] = {}
        for file in self.files:
            for each in file.columns:
                found.setdefault(each.column, []).append(each)
        return tuple(_together(each) for each in found.values())

    @property
    def findings(self) -> tuple[CheckFinding, ...]:
        """What looks wrong, over all files; of a file as a whole once, however many files have it."""
        found: dict[tuple[str | None, str, str], int | None] = {}
        for each in (finding for file in self.files for finding in file.findings):
            key, rows = (each.column, each.what, each.fix), each.rows
            found[key] = None if rows is None else (found.get(key) or 0) + rows
        return tuple(CheckFinding(column, what, rows, fix) for (column, what, fix), rows in found.items())

    def to_json(self) -> dict[str, Any]:
        """Plain values; the first says that they are secret."""
        return {
            "secret": True,
            "rows": self.rows,
            "columns": [each.to_json() for each in self.columns],
            "findings": [each.to_json() for each in self.findings],
            "files": [each.to_json() for each in self.files],
        }

    def __str__(self) -> str:
        parts = [[SECRET, _NOTHING], self._table(), self._by_file(), self._wrong(), [_PUBLIC_BOUNDS]]
        return "\n\n".join("\n".join(part) for part in parts if part)

    def _table(self) -> list[str]:
        files = "" if len(self.files) == 1 else f" in {len(self.files):,} files"
        lines = [each.cells() for each in self.columns]
        heads = ("column", "valid", *_SPECIALS)
        return [f"{self.rows:,} rows{files}", *([table([heads, *lines])] if lines else [])]

    def _by_file(self) -> list[str]:
        """Files that cannot be read, and columns of single files that have invalid or other values."""
        if len(self.files) == 1:
            return []
        lines = list[list[str]]()
        for file in self.files:
            bad = [each.cells() for each in file.columns if each.unread]
            none = ["none" if file.readable else "publish refuses it", *[""] * (len(_SPECIALS) + 1)]
            for number, cells in enumerate(bad or [none]):
                lines.append([*(("", "") if number else (file.file, f"{file.rows:,}")), *cells])
        hidden = len(lines) - _MOST_LINES
        more = [f"... and {hidden} lines more: see --json"] if hidden > 0 else []
        shown = table([("file", "rows", "column", "valid", *_SPECIALS), *lines[:_MOST_LINES]])
        return ["By file, columns with invalid or other values:", shown, *more]

    def _wrong(self) -> list[str]:
        if not self.findings:
            return ["No format looks wrong."]
        lines = [line for each in self.findings for line in self._line(each)]
        return ["What looks wrong, and the fix:", *lines]

    def _line(self, finding: CheckFinding) -> list[str]:
        place = finding.column or self._places(finding)
        rows = "" if finding.rows is None else f"{_rows(finding.rows, self.rows)}: "
        return [f"- {place}: {rows}{finding.what}", f"  fix: {finding.fix}"]

    def _places(self, finding: CheckFinding) -> str:
        """The file that has it, or how many."""
        files = [file.file for file in self.files if any(each.what == finding.what for each in file.findings)]
        return files[0] if len(files) == 1 else f"{len(files):,} files"


def check(
    source: object,
    schema: Mapping[str, Domain],
    *,
    person: str | None = None,
    delimiter: str = ",",
    header: Sequence[str] | None = None,
) -> DataCheck:
    """How many rows a schema cannot read, exactly, and what to do about it. Never publish the result.

    The parameters mean what they mean to `publish`. For each column and each file: how many rows would be
    invalid, other, null, below or above; formats that look wrong, each with the fix. Nothing is spent, drawn
    or published. The steward looks at it before publishing, where the rows are.

    >>> from partita.domain import Integer
    >>> found = check({"age": [30, "31 years", None, 200]}, {"age": Integer(0, 120)})
    >>> found
    DataCheck(secret: print it to read it, and do not keep what is printed)
    >>> found.columns[0].specials["invalid"], found.findings[0].what
    (1, 'numbers with a unit, such as 12 kg')
    """
    declared = checked_schema(schema)
    unit_by(person)
    opened = open_source(source, delimiter=delimiter, header=header)
    with phase("checking"):
        return DataCheck(tuple(_check_parts(opened, declared, person)))


def _check_parts(source: Source, schema: Mapping[str, Domain], person: str | None) -> Iterator[FileCheck]:
    """Each file by itself, or all rows of what is not in files."""
    names = list(dict.fromkeys([*([] if person is None else [person]), *schema]))
    if not isinstance(source, LocalSource):
        yield _check_grouped(source, schema, names)
        return
    rows: Any = source.rows
    files: Sequence[File] = getattr(rows, "files", ())
    if isinstance(rows, Csv):
        yield from (_check_csv(rows, file, schema, names) for file in files)
        return
    if files:
        rows.read(names)  # refuses what `publish` refuses, such as files of different types
    for file in files:
        yield _check_rows(replace(rows, files=[file]), file.path, schema, names)
    if not files:
        yield _check_rows(rows, "the table", schema, names)


@final
class _ColumnCounter:
    """Counts the special cells of one column, and the formats of what it does not read."""

    def __init__(self, column: str, domain: Domain | None) -> None:
        self._column, self._domain = column, domain
        self._specials: dict[str, int] = dict.fromkeys(("null",) if domain is None else domain.specials, 0)
        self._formats: dict[tuple[str, str], int] = {}
        self._finder = None if domain is None else FormatFinder(domain)
        self.rows = 0

    def add(self, array: Any, weights: Ints | None = None) -> None:
        """Count an array of values in one of the types of `Source.counts`, each in so many rows."""
        self.rows += len(array) if weights is None else int(weights.sum())
        if self._domain is None:
            self._add_ids(array, weights)
            return
        if types.is_integer(array.type) and isinstance(self._domain, Integer):
            special = self._domain.encode(array).special
            counts = np.bincount(special, weights, minlength=len(Special))
        else:
            values, codes = find_distinct(pa.chunked_array([array]))
            each = np.bincount(codes, weights, minlength=len(values)).astype(np.int64)
            special = self._domain.encode(values).special
            counts = np.bincount(special, each, minlength=len(Special))
            self._find_formats(values, special, each)
        for name in self._specials:
            self._specials[name] += int(counts[Special.named(name)])

    def _add_ids(self, array: Any, weights: Ints | None) -> None:
        check_identifies(array.type, self._column)
        values, codes = find_distinct(pa.chunked_array([array]))
        listed = values if isinstance(values, list) else values.to_pylist()
        none = np.array([not identify(value) for value in listed], np.bool_)
        each = np.bincount(codes, weights, minlength=len(listed))
        self._specials["null"] += int(each[none].sum()) if len(listed) else 0

    def _find_formats(self, values: Any, special: Any, weights: Ints) -> None:
        bad = (special == Special.INVALID) | (special == Special.OTHER)
        if self._finder is None or not bad.any():
            return
        places = np.flatnonzero(bad)
        taken = (
            [values[place] for place in places] if isinstance(values, list) else values.take(pa.array(places))
        )
        for found in self._finder.find(taken, weights[bad]):
            key = (found.format.name, found.format.fix)
            self._formats[key] = self._formats.get(key, 0) + found.rows

    def checked(self) -> ColumnCheck:
        """What was counted."""
        return ColumnCheck(self._column, self.rows, dict(self._specials))

    def findings(self) -> Iterator[CheckFinding]:
        """The formats that were found, then what none explains, then what is certain to be a mistake."""
        for (what, fix), rows in self._formats.items():
            yield CheckFinding(self._column, what, rows, fix)
        unexplained = {"other": _LONG_TEXT} if isinstance(self._domain, Text) else _UNEXPLAINED
        for name, (what, fix) in unexplained.items():
            rest = self._specials.get(name, 0) - sum(self._formats.values())
            if rest > 0:
                yield CheckFinding(self._column, what, rest, fix)
        if self._domain is None and self._specials["null"]:
            fix = "fill in the ids: all rows without one count as one person, and most of them are left out"
            yield CheckFinding(self._column, "rows without an id", self._specials["null"], fix)
        elif self.rows and self._specials.get("null") == self.rows:
            yield CheckFinding(self._column, "every row is null", self.rows, "check the name of the column")


def _check_grouped(source: Source, schema: Mapping[str, Domain], names: Sequence[str]) -> FileCheck:
    """Of a database or a cluster, which groups its rows itself, one column at a time."""
    counters = [_ColumnCounter(name, schema.get(name)) for name in names]
    for name, counter in zip(names, counters, strict=True):
        grouped = source.counts([name])
        counts = grouped.column(1).to_numpy()
        attempt(partial(counter.add, grouped.column(0).combine_chunks(), counts), _failed(name))
    return _file_check("the table", counters)


def _check_rows(rows: Rows, shown: str, schema: Mapping[str, Domain], names: Sequence[str]) -> FileCheck:
    counters = [_ColumnCounter(name, schema.get(name)) for name in names]
    for columns in read_columns(rows, names):
        for name, counter in zip(names, counters, strict=True):
            attempt(partial(counter.add, columns[name]), _failed(name))
    return _file_check(shown, counters)


def _file_check(shown: str, counters: Sequence[_ColumnCounter]) -> FileCheck:
    columns = tuple(counter.checked() for counter in counters)
    findings = tuple(finding for counter in counters for finding in counter.findings())
    return FileCheck(shown, columns[0].rows, columns, findings)


def _together(parts: Sequence[ColumnCheck]) -> ColumnCheck:
    """The same column of several files."""
    specials = {name: sum(part.specials[name] for part in parts) for name in parts[0].specials}
    return ColumnCheck(parts[0].column, sum(part.rows for part in parts), specials)


def _failed(name: str) -> SourceError:
    return SourceError(f"column {name!r}", "could not be read", fix="check its values and its type")


def _share(rows: int, total: int) -> str:
    """Rows, and which part of all they are."""
    if not rows or not total:
        return f"{rows:,}"
    percent = 100 * rows / total
    return f"{rows:,} ({f'{percent:.2f}' if percent >= 0.01 else '<0.01'}%)"


def _rows(rows: int, total: int) -> str:
    """The same as a phrase."""
    number, _, part = _share(rows, total).partition(" ")
    return f"{number} {'row' if rows == 1 else 'rows'} {part}".rstrip()


# CSV files: what is wrong with lines is found here, where they are still lines.
@final
@dataclass
class _WatchedCsv:
    """One CSV file as rows, which counts its lines that cannot be read."""

    rows: Csv
    file: File
    found: dict[tuple[str, str], int] = field(default_factory=dict)

    def read(self, columns: Sequence[str]) -> Batches:
        """These columns as text."""
        schema = pa.schema([(name, pa.large_binary()) for name in columns])
        return Batches(schema, self._batches(columns))

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for lines, batch in self.rows.split_file(self.file, columns):
            self._look_at(lines, batch.column(0))
            yield batch

    def _look_at(self, lines: LineBlock, first: Any) -> None:
        """Count lines by what is wrong with them."""
        unreadable = first.fill_null(b"").to_numpy(zero_copy_only=False) == UNREADABLE
        long = lines.stop - lines.start > LONGEST_LINE
        foreign, broken = ~lines.readable & ~long, unreadable & lines.readable
        self._note(int(long.sum()), "lines of more than 1 MiB", "check that the file is CSV")
        fix = "convert the file: iconv -f WINDOWS-1252 -t UTF-8, if it is Latin-1 or its like"
        self._note(int(foreign.sum()), "lines that are not UTF-8, but for example Latin-1", fix)
        for mark, said in _DELIMITERS.items() if broken.any() else ():
            other = self._separated(lines, broken, mark)
            self._note(int(other.sum()), f"lines whose fields are separated by {said}", _pass_delimiter(mark))
            broken = broken & ~other
        fix = "write each row in one line, or convert the file to Parquet; a field may hold no line feed"
        self._note(int(broken.sum()), "lines with another number of fields, or with an open quote", fix)

    def _separated(self, lines: LineBlock, which: Any, mark: str) -> Any:
        """Which of these lines have the right number of fields with another delimiter."""
        found = np.zeros(len(lines), np.bool_)
        names = self.rows.names
        if mark == self.rows.delimiter or names is None or len(names) < 2:
            return found
        parts = (split_fields(line or b"", mark) for line in lines.select(which))
        found[np.flatnonzero(which)] = [each is not None and len(each) == len(names) for each in parts]
        return found

    def _note(self, lines: int, what: str, fix: str) -> None:
        if lines:
            self.found[what, fix] = self.found.get((what, fix), 0) + lines


def _check_csv(rows: Csv, file: File, schema: Mapping[str, Domain], names: Sequence[str]) -> FileCheck:
    wrong = _find_in_header(rows, file, names)
    if wrong is not None:
        return FileCheck(file.path, 0, (), (wrong,), readable=False)
    watched = _WatchedCsv(replace(rows, files=[file]), file)
    found = _check_rows(watched, file.path, schema, names)
    about = tuple(CheckFinding(None, what, lines, fix) for (what, fix), lines in watched.found.items())
    others = tuple(each for each in found.findings if not about or each.what != UNREADABLE_CELLS.name)
    return replace(found, findings=about + others)


def _find_in_header(rows: Csv, file: File, names: Sequence[str]) -> CheckFinding | None:
    """What is wrong with the first line, for which `publish` would refuse the file; it is not shown."""
    if rows.names is not None:
        return None
    with file.reading() as stream:
        first = next(blocks(stream), b"").partition(b"\n")[0].rstrip(b"\r")
    try:
        first.decode()
    except UnicodeDecodeError:
        fix = "convert the file: iconv -f WINDOWS-1252 -t UTF-8, or -f UTF-16 if it comes from a spreadsheet"
        return CheckFinding(None, "the first line is not UTF-8", None, fix)
    header = _split_header(first, rows.delimiter)
    missing = [name for name in names if header.count(name) != 1]
    if not missing:
        return None
    for mark, said in _DELIMITERS.items():
        if mark != rows.delimiter and set(names) <= set(_split_header(first, mark)):
            return CheckFinding(None, f"fields are separated by {said}", None, _pass_delimiter(mark))
    listed = ", ".join(missing)
    alike = {name.strip().casefold() for name in header}
    if all(name in header or name.strip().casefold() in alike for name in names):
        what = f"the header has columns more than once, in other case or with spaces around them: {listed}"
        return CheckFinding(None, what, None, "write the names in the spec as they are in the header")
    fix = "check the names, or declare header = [...] if the first line is a row already"
    return CheckFinding(None, f"the first line lacks columns: {listed}", None, fix)


def _split_header(line: bytes, delimiter: str) -> list[str]:
    return [part.decode("utf-8", "replace") for part in split_fields(line, delimiter) or ()]


def _pass_delimiter(mark: str) -> str:
    shown = "\\t" if mark == "\t" else mark
    return f'write delimiter = "{shown}" under [csv] in the spec, or pass --delimiter'


# That a check was run is a public fact. It is noted in the user's own folder as an empty file, whose name is
# a digest of the spec and of where the rows are: nothing that was found, and nothing of the rows, is in it.
def note_check(data: Sequence[str], schema: Mapping[str, Domain], reading: Mapping[str, object]) -> None:
    """Note that a check was run; no note is made where that folder cannot be written."""
    with suppress(OSError, RuntimeError):
        note = _note_of(data, schema, reading)
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        note.touch(mode=0o600)


def was_checked(data: Sequence[str], schema: Mapping[str, Domain], reading: Mapping[str, object]) -> bool:
    """Whether a check of this spec and these paths was noted; no row is read."""
    with suppress(OSError, RuntimeError):
        return _note_of(data, schema, reading).exists()
    return False


def _note_of(data: Sequence[str], schema: Mapping[str, Domain], reading: Mapping[str, object]) -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    facts = {
        "data": sorted(os.path.abspath(path) for path in data),
        "columns": {name: domain.to_spec() for name, domain in sorted(schema.items())},
        "reading": dict(sorted(reading.items())),
    }
    return Path(state) / "partita" / "checks" / sha256(dumps(facts, sort_keys=True).encode()).hexdigest()
