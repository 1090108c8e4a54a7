"""Labels in a declared order."""

from __future__ import annotations

import csv
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, Final, Self, TypeAlias, assert_never, cast, final

import numpy as np
import numpy.typing as npt

from partita.domain import columns
from partita.domain.base import Cells, Encoded, Position, Spec, Special, indices, read_entries
from partita.errors import InvalidParameter, check, check_type
from partita.lazy import cached_property
from partita.numbers import Converted, freeze, frozen, parameter

Label: TypeAlias = str | Special

_LARGEST_BITS: Final = 2000
"""Numbers longer than this have no canonical text; Python refuses to write far longer ones."""

_SPECIALS: Final = (str(Special.NULL), str(Special.OTHER))
_SHOWN: Final = 5  # labels that an error message lists
_COMPARED: Final = 2000  # labels that are compared with a misspelt one letter by letter
_LARGEST_FILE: Final = 2**24  # bytes of a file of labels


def canonical(
    content: columns.Flags | columns.Scaled | columns.Floats | columns.Exacts | columns.Moments,
) -> list[Label]:
    """The text of each value, NULL for NaN, and OTHER for what has no canonical text."""
    match content:
        case columns.Flags(flags):
            return ["true" if flag else "false" for flag in flags.tolist()]
        case columns.Scaled(values, unit):
            return [_text(value * unit) for value in values.tolist()]
        case columns.Floats(floats):
            return [_float_text(value) for value in floats.tolist()]
        case columns.Exacts(exacts):
            return [_float_text(value) if isinstance(value, float) else _text(value) for value in exacts]
        case columns.Moments():
            days = content.day.astype("M8[D]")
            return [str(day) for day in days] if content.dated else [Special.OTHER] * len(content)
        case _:
            assert_never(content)


def _text(value: int | Fraction) -> Label:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _LARGEST_BITS:
        return Special.OTHER
    return columns.number_text(Fraction(value))


def _float_text(value: float) -> Label:
    """The number that the shortest decimal of a float writes, so that 0.1 is "0.1"."""
    if math.isfinite(value):
        return columns.number_text(Fraction(repr(value)))
    return Special.NULL if math.isnan(value) else Special.OTHER


@final
@frozen(repr=False)
class Category:
    """The labels, in the order given; a cell for each, and `other` for every other value.

    Labels are text. Text matches exactly: no trimming, no change of case, no Unicode normalisation. A value
    that is not text matches by its canonical text: a whole number by its digits (1, 1.0 and Decimal("1.00")
    are "1"), another number by its shortest decimal ("0.5"), a boolean as "true" or "false", a calendar day
    as "2024-01-31". None, NaN and NaT are null; infinities, times of day and all else are other.

    >>> regions = Category(["north", "south"])
    >>> regions.encode(["south", "South", None]).tolist()
    [1, 'other', 'null']
    >>> regions.decode([1])
    ['south']
    """

    labels: Converted[Sequence[str], tuple[str, ...]] = parameter()

    def __post_init__(self) -> None:
        freeze(self, labels=_check_labels(self.labels))

    def __repr__(self) -> str:
        return f"Category({list(self.labels)!r})"

    @property
    def size(self) -> int:
        """The number of labels."""
        return len(self.labels)

    @property
    def specials(self) -> tuple[str, ...]:
        """The special cells: null and other."""
        return _SPECIALS

    def encode(self, values: object) -> Encoded:
        return columns.assemble(columns.read(values), self._encode, invalid=Special.OTHER)

    def decode(self, cells: Sequence[int] | Cells) -> list[str]:
        """The label of each cell."""
        return [self.labels[cell] for cell in indices(cells, self.size)]

    def locate(self, value: object, *, name: str = "value") -> Position:
        """The cell of a public value, which must be a label or have one as its canonical text."""
        encoded = self.encode([value])
        if encoded.special[0] != Special.ORDINARY:
            fix = self._suggest(value)
            raise InvalidParameter(name, "must be one of the column's labels", given=value, fix=fix)
        return Position(int(encoded.cells[0]))

    def to_spec(self) -> Spec:
        """Kind and labels."""
        return {"kind": "category", "labels": list(self.labels)}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        (labels,) = read_entries(spec, "category", "labels")
        return cls(cast(Sequence[str], labels))

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, column: str | None = None, delimiter: str = ",") -> Self:
        """The labels in a public text file in UTF-8, in their order: a code book, never the data.

        Without `column`, each line is one label. With it, the file is CSV, its first line names the columns,
        and the labels are in the one of this name.
        """
        labels = read_labels(path, column=column, delimiter=delimiter)
        return cls(labels)

    @cached_property
    def _cells(self) -> dict[str, int]:
        return {label: cell for cell, label in enumerate(self.labels)}

    def _suggest(self, value: object) -> str:
        """The label that was probably meant, or some of the labels: they are public."""
        word = value.strip().casefold() if isinstance(value, str) else ""
        folded = {label.strip().casefold(): label for label in self.labels} if word else {}
        near = [word] if word in folded else []
        if not near and self.size <= _COMPARED:
            near = get_close_matches(word, folded, n=1, cutoff=0.6)
        if near:
            return f"did you mean {folded[near[0]]!r}?"
        more = "" if self.size <= _SHOWN else " and so on"
        return f"choose among {', '.join(map(repr, self.labels[:_SHOWN]))}{more}"

    def _encode(self, content: columns.Plain) -> Encoded:
        if isinstance(content, columns.Texts):
            return self._match_texts(content.values)
        if isinstance(content, columns.Scaled | columns.Floats):  # each distinct number is written once
            distinct: Any
            distinct, codes = np.unique(content.values, return_inverse=True)
            return self._match(canonical(replace(content, values=distinct))).take(codes)
        return self._match(canonical(content))

    def _match(self, texts: Sequence[str | Special]) -> Encoded:
        cells = [self._cells.get(text, -1) if isinstance(text, str) else -1 for text in texts]
        specials = [text if isinstance(text, Special) else Special.OTHER for text in texts]
        return _make_encoded(np.array(cells, np.int64), np.array(specials, np.uint8))

    def _match_texts(self, texts: Any) -> Encoded:
        import pyarrow as pa
        import pyarrow.compute as pc

        labels = pa.array([label.encode() for label in self.labels], pa.large_binary())
        cells = pc.index_in(texts, value_set=labels).fill_null(-1).to_numpy().astype(np.int64)
        return _make_encoded(cells, np.full(len(cells), Special.OTHER, np.uint8))


def read_labels(path: object, *, column: object = None, delimiter: object = ",") -> list[str]:
    """The labels in a text file; see `Category.read`. No error shows a line of the file: it may be data."""
    lines = _read_lines(path)
    shown = os.path.basename(str(path))
    if column is None:
        return _check_read(lines, shown)
    mark = delimiter if isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii() else None
    if mark is None or mark in '"\r\n\0':
        fix = 'pass ",", ";", "|" or "\\t"'
        raise InvalidParameter("delimiter", "must be one ASCII character", given=delimiter, fix=fix)
    try:
        rows = [row for row in csv.reader(lines, delimiter=mark, strict=True) if row]
    except csv.Error:
        rows = []
    head = [name.strip() for name in rows[0]] if rows else []
    if not isinstance(column, str) or head.count(column) != 1:
        fix = "check the name and the delimiter, or leave column out if each line is one label"
        raise InvalidParameter(
            "column", f"must name one column in the first line of {shown}", given=column, fix=fix
        )
    place = head.index(column)
    rule, fix = (
        f"must be in every line of {shown}",
        "check the delimiter, and that no field holds a line feed",
    )
    check(all(len(row) == len(head) for row in rows), "column", rule, given=column, fix=fix)
    return _check_read([row[place] for row in rows[1:]], shown)


def _read_lines(path: object) -> list[str]:
    """The lines of a file, without their endings."""
    valid = isinstance(path, str | os.PathLike) and str(path) and "\0" not in str(path)
    check(valid, "labels", "must be the path of a file", given=path, fix='pass for example "airports.csv"')
    content = b""
    try:
        with open(os.fspath(path), "rb") as file:  # type: ignore[call-overload]
            content = file.read(_LARGEST_FILE + 1)
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        fix = "check the path, and that the file is UTF-8"
        raise InvalidParameter(
            "labels", "must be a text file that you may read", given=str(path), fix=fix
        ) from None
    rule, fix = f"must be in a file of at most {_LARGEST_FILE} bytes", "name a file of labels, not of data"
    check(len(content) <= _LARGEST_FILE, "labels", rule, given=str(path), fix=fix)
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []


def _check_read(labels: list[str], shown: str) -> list[str]:
    """The labels, if there are some, each once and none empty; no error shows one, for they may be data."""
    check(labels, "labels", "must not be empty", given=shown, fix="write one label in each line")
    check(all(labels), "labels", "must not be empty texts", given=shown, fix="remove lines without a label")
    fix = "list each label once"
    check(len(set(labels)) == len(labels), "labels", "must all be different", given=shown, fix=fix)
    return labels


def _make_encoded(cells: npt.NDArray[np.int64], otherwise: npt.NDArray[np.uint8]) -> Encoded:
    """These cells, where they are not negative, and otherwise these special cells."""
    found = cells >= 0
    return Encoded(np.where(found, cells, 0).astype(np.uint64), np.where(found, np.uint8(0), otherwise))


def _check_labels(labels: object) -> tuple[str, ...]:
    if isinstance(labels, str | bytes) or not isinstance(labels, Sequence) or not labels:
        fix = 'pass for example ["north", "south"]'
        raise InvalidParameter("labels", "must be a non-empty list of texts", given=labels, fix=fix)
    for label in labels:
        _check_label(label)
    if len(set(labels)) < len(labels):
        [(twice, _)] = Counter(labels).most_common(1)
        raise InvalidParameter("labels", "must all be different", given=twice, fix="list it once")
    return tuple(str.__str__(label) for label in labels)


def _check_label(label: object) -> None:
    fix = 'write them as text: "1" matches the number 1, and "true" matches True'
    label = check_type(label, str, "labels", "must be texts", fix=fix)
    fix = "leave it out; empty text is counted in other"
    check(label, "labels", "must not be empty texts", given=label, fix=fix)
    try:
        label.encode()
    except UnicodeEncodeError:
        rule = "must be text that UTF-8 can write"
        raise InvalidParameter("labels", rule, given=ascii(label), fix="remove unpaired surrogates") from None
