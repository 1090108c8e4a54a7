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
from itertools import chain
from typing import Any, Final, Self, TypeAlias, assert_never, cast

import numpy as np
import numpy.typing as npt

from partita.domain import columns
from partita.domain.base import Cells, Encoded, Position, Spec, Special, indices, kind_of, read_entries
from partita.domain.nodes import LabelNode, LabelTree, nest_paths, read_nested, read_nodes, write_nodes
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
_LARGEST_TREE_FILE: Final = 2**27  # bytes of a file of paths: a million of them take about 40 MB


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

    Labels may lie below nodes, as blocks below tracts below counties: then they are given as tables of
    tables, and every node is a question, too. `levels` may name the levels from the top. A column holds
    labels and no nodes; if a label stands below several nodes, all labels are paths, "Kent > Block 1".

    >>> places = Category({"Kent": ["Dover", "Deal"], "Essex": ["Harlow"]}, levels=["county", "town"])
    >>> places.labels, places.locate_all("Kent")
    (('Dover', 'Deal', 'Harlow'), (0, 1))
    """

    labels: Converted[Sequence[str] | Mapping[str, object], tuple[str, ...]] = parameter()
    levels: Converted[Sequence[str], tuple[str, ...]] = parameter(default=())
    nodes: Converted[Sequence[LabelNode], tuple[LabelNode, ...]] = parameter(default=())

    def __post_init__(self) -> None:
        given: object = self.labels
        labels, nodes = read_nested(given) if isinstance(given, Mapping) else (given, self.nodes)
        levels = _check_levels(self.levels)
        freeze(self, labels=_check_labels(labels), levels=levels, nodes=_check_nodes(nodes))
        fix = "give the labels as tables of tables, or leave the levels out"
        check(self.nodes or not self.levels, "levels", "must come with nodes", given=self.levels, fix=fix)
        self.tree  # noqa: B018 -- nodes that do not fit are refused now

    def __repr__(self) -> str:
        if self.tree is None:
            return f"Category({list(self.labels)!r})"
        named = f", levels={list(self.levels)!r}" if self.levels else ""
        return f"Category({self.tree.nested()!r}{named})"

    @cached_property
    def tree(self) -> LabelTree | None:
        """The nodes above the labels, if there are some."""
        return LabelTree(self.labels, self.nodes, self.levels) if self.nodes else None

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

    def locate_all(self, value: object, *, name: str = "value") -> tuple[int, int]:
        """The first and the last cell of a public value: a label, or the name or path of a node."""
        if self.tree is not None and isinstance(value, str) and value not in self._cells:
            found = self.tree.find(value)
            if found is not None:
                return found
        cell = self.locate(value, name=name).cell
        return cell, cell

    def to_spec(self) -> Spec:
        """Kind and labels; of labels below nodes these, and the names of levels."""
        nodes: Spec = {"nodes": write_nodes(self.nodes), "levels": list(self.levels)} if self.nodes else {}
        return {"kind": "category", "labels": list(self.labels), **nodes}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        if "nodes" not in kind_of(spec)[1]:
            (labels,) = read_entries(spec, "category", "labels")
            return cls(_check_labels(labels))
        labels, nodes, levels = read_entries(spec, "category", "labels", "nodes", "levels")
        return cls(_check_labels(labels), cast(Sequence[str], levels), read_nodes(nodes))

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, column: str | None = None, delimiter: str = ",") -> Self:
        """The labels in a public text file in UTF-8, in their order: a code book, never the data.

        Without `column`, each line is one label. With it, the file is CSV, its first line names the columns,
        and the labels are in the one of this name.
        """
        labels = read_labels(path, column=column, delimiter=delimiter)
        return cls(labels)

    @classmethod
    def read_tree(cls, path: str | os.PathLike[str], *, columns: Sequence[str], delimiter: str = ",") -> Self:
        """Labels below nodes, from a public CSV file in UTF-8: a code book, never the data.

        Its first line names the columns, and each other line is a path: the entries of `columns` from the top
        to the label, such as county, tract and block, which name the levels. Lower entries may be empty.
        """
        paths, shown = read_paths(path, columns=columns, delimiter=delimiter), os.path.basename(path)
        try:
            return cls(paths, levels=columns)
        except InvalidParameter as error:  # no error shows a line of the file: it may be data
            raise InvalidParameter(error.parameter, error.rule, given=shown, fix=error.fix) from None

    @cached_property
    def _cells(self) -> dict[str, int]:
        return {label: cell for cell, label in enumerate(self.labels)}

    def _suggest(self, value: object) -> str:
        """The label that was probably meant, or some of the labels: they are public."""
        word = value.strip().casefold() if isinstance(value, str) else ""
        known = chain(() if self.tree is None else self.tree.known, self.labels)
        folded = {label.strip().casefold(): label for label in known} if word else {}
        near = [word] if word in folded else []
        path = None if self.tree is None or not isinstance(value, str) else self.tree.ending(value)
        if not near and not path and len(folded) <= _COMPARED:
            near = get_close_matches(word, folded, n=1, cutoff=0.6)
        if near or path:
            return f"did you mean {folded[near[0]] if near else path!r}?"
        names = self.labels if self.tree is None else tuple(self.tree.names)
        more = "" if len(names) <= _SHOWN else " and so on"
        return f"choose among {', '.join(map(repr, names[:_SHOWN]))}{more}"

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
    lines = _read_lines(path, _LARGEST_FILE)
    shown = os.path.basename(str(path))
    if column is None:
        return _check_read(lines, shown)
    return _check_read([row[0] for row in _read_columns(lines, [column], delimiter, shown)], shown)


def read_paths(path: object, *, columns: object, delimiter: object = ",") -> dict[str, Any]:
    """The paths in a CSV file as tables inside tables; see `Category.read_tree`. No error shows a line."""
    rule, fix = "must be a list of names of columns from the top", 'pass for example ["county", "tract"]'
    if not isinstance(columns, list | tuple) or len(columns) < 2:
        raise InvalidParameter("columns", rule, given=columns, fix=fix)
    lines, shown = _read_lines(path, _LARGEST_TREE_FILE), os.path.basename(str(path))
    rows = _read_columns(lines, columns, delimiter, shown)
    check(rows, "labels", "must not be empty", given=shown, fix="write one path in each line")
    return nest_paths(rows, shown)


def _read_columns(
    lines: list[str], columns: Sequence[object], delimiter: object, shown: str
) -> list[list[str]]:
    """The fields of some columns of a CSV file, line by line, but for its first line, which names them."""
    mark = delimiter if isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii() else None
    if mark is None or mark in '"\r\n\0':
        fix = 'pass ",", ";", "|" or "\\t"'
        raise InvalidParameter("delimiter", "must be one ASCII character", given=delimiter, fix=fix)
    try:
        rows = [row for row in csv.reader(lines, delimiter=mark, strict=True) if row]
    except csv.Error:
        rows = []
    head = [name.strip() for name in rows[0]] if rows else []
    for column in columns:
        if not isinstance(column, str) or head.count(column) != 1:
            fix = "check the name and the delimiter, or leave column out if each line is one label"
            raise InvalidParameter(
                "column", f"must name one column in the first line of {shown}", given=column, fix=fix
            )
    places = [head.index(str(column)) for column in columns]
    rule, fix = (
        f"must be in every line of {shown}",
        "check the delimiter, and that no field holds a line feed",
    )
    check(all(len(row) == len(head) for row in rows), "column", rule, given=columns[0], fix=fix)
    return [[row[place] for place in places] for row in rows[1:]]


def _read_lines(path: object, most: int) -> list[str]:
    """The lines of a file, without their endings."""
    valid = isinstance(path, str | os.PathLike) and str(path) and "\0" not in str(path)
    check(valid, "labels", "must be the path of a file", given=path, fix='pass for example "airports.csv"')
    content = b""
    try:
        with open(os.fspath(path), "rb") as file:  # type: ignore[call-overload]
            content = file.read(most + 1)
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        fix = "check the path, and that the file is UTF-8"
        raise InvalidParameter(
            "labels", "must be a text file that you may read", given=str(path), fix=fix
        ) from None
    rule, fix = f"must be in a file of at most {most} bytes", "name a file of labels, not of data"
    check(len(content) <= most, "labels", rule, given=str(path), fix=fix)
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


def _check_nodes(nodes: object) -> tuple[LabelNode, ...]:
    """The nodes, each with a label like any other."""
    fix = "give the labels as tables of tables"
    if not isinstance(nodes, list | tuple) or not all(isinstance(node, LabelNode) for node in nodes):
        raise InvalidParameter("nodes", "must be a list of nodes", given=type(nodes).__name__, fix=fix)
    for node in nodes:
        _check_label(node.label)
    return tuple(nodes)


def _check_levels(levels: object) -> tuple[str, ...]:
    """Names of levels: texts."""
    fix = 'pass for example ["county", "tract", "block"]'
    if not isinstance(levels, list | tuple) or not all(isinstance(name, str) and name for name in levels):
        raise InvalidParameter("levels", "must be a list of names", given=levels, fix=fix)
    return tuple(levels)


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
