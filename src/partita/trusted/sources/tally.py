"""Raw values into cells: engines group, a domain encodes what is distinct, and cells are counted."""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any, Final, TypeAlias, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from partita.arrays import Ints, changes
from partita.domain.axis import Axis
from partita.domain.base import Domain, Encoded, Special, is_domain
from partita.domain.category import Category
from partita.domain.columns import number_text
from partita.domain.numeric import Integer
from partita.domain.text import FoundNames, Text
from partita.errors import InvalidParameter, check, check_source
from partita.numbers import integer
from partita.trusted.secret import AxisCounts, Histogram, NameCounts, Points
from partita.trusted.sources.arrow import PYTHON, UNREADABLE, find_distinct
from partita.trusted.sources.base import Source, check_column_names, locate_columns

Array: TypeAlias = npt.NDArray[Any]

Limits: TypeAlias = int | tuple[int, ...]
"""How many rows of a person count; or several such numbers, ascending, of which one is chosen later."""

RANK: Final = ""
"""The column of a tally for several limits that says, of each row, the first of them within which it counts.

No column of a caller has an empty name.
"""


def regroup(keys: Sequence[Array], counts: Ints) -> tuple[list[Array], Ints]:
    """The distinct rows of `keys`, in ascending order of the first, then the second, and so on.

    >>> regroup([np.array([2, 1, 2])], np.array([10, 20, 30]))
    ([array([1, 2])], array([20, 40]))
    """
    if not _in_order(keys):
        order = np.lexsort(list(reversed(keys)))
        keys, counts = [key[order] for key in keys], counts[order]
    first = find_starts(keys)
    added = np.add.reduceat(counts, first) if len(first) else counts[:0]
    return [key[first] for key in keys], added


def find_starts(keys: Sequence[Array]) -> Ints:
    """Where a new row starts, in sorted rows."""
    return np.flatnonzero(changes(*keys))


def _in_order(keys: Sequence[Array]) -> bool:
    """Whether the rows are in ascending order, as grouped rows often are: cheaper to test than to sort."""
    tied = np.ones(max(0, len(keys[0]) - 1), np.bool_)
    for key in keys:
        if bool((tied & (key[1:] < key[:-1])).any()):
            return False
        tied &= key[1:] == key[:-1]
    return True


def number_persons(column: Any, name: str) -> tuple[Ints, list[bytes]]:
    """A number for the person of each row, and the bytes that stand for each person.

    An id is hashed as text: integers by their digits, other numbers by their shortest decimal, and
    so 17, 17.0 and "17" choose alike in a Parquet, a NumPy and a CSV source. Rows without an id
    (null, NaN, empty text, or a line that could not be read) count as one person, with no bytes.
    """
    check_identifies(column.type, name)
    values, rows = find_distinct(column)
    listed = values if isinstance(values, list) else values.to_pylist()
    texts = [identify(value) for value in listed]
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    codes = np.array([numbers[text] for text in texts], np.int64)
    return codes[rows], list(numbers)


def bound_contributions(
    persons: Ints, names: Sequence[bytes], cells: Sequence[Encoded], counts: Ints, *, limit: int, salt: bytes
) -> tuple[list[Encoded], Ints]:
    """At most `limit` rows of each person: their cells and how often each counts.

    Rows come grouped by person and raw values. Each row of a person gets a number, the MD5 of these bytes:

        the length of the salt in 8 bytes, the salt,
        the length of the person's id in 8 bytes, the id,
        for each column in order: its `Special` code in 1 byte, its cell in 8 bytes (of text: in words of 8),
        the occurrence in 8 bytes: 0, 1, 2, ... among the person's rows with the same cells.

    Integers are big-endian. The rows with the smallest numbers are kept; on a tie, which MD5
    makes all but impossible, the smaller bytes win. The rule uses nothing of another person, so adding or
    removing other people's rows never changes which of mine are kept. If I add one row, either it is
    left out, or it is kept and, when I already had `limit`, exactly one other row leaves.
    """
    rows, weights, ranked = _rank_rows(persons, names, cells, counts, limits=(limit,), salt=salt)
    kept = weights.copy()
    for low, high, places in ranked:
        kept[low:high] = 0
        for place in places:
            kept[place] += 1
    there = kept > 0
    return _split_keys([row[there] for row in rows], cells), kept[there]


def rank_contributions(
    persons: Ints,
    names: Sequence[bytes],
    cells: Sequence[Encoded],
    counts: Ints,
    *,
    limits: tuple[int, ...],
    salt: bytes,
) -> tuple[list[Encoded], Ints]:
    """The rows that the largest of several limits keeps, with one more column: see `RANK`.

    Those that have one of the first i + 1 ranks are the rows that `bound_contributions` keeps for the i-th
    limit.
    """
    rows, weights, ranked = _rank_rows(persons, names, cells, counts, limits=limits, salt=salt)
    whole = np.ones(len(weights), np.bool_)
    # A row that is the n-th of its person counts within the first limit that is larger than n.
    ranks = np.searchsorted(limits, np.arange(limits[-1]), side="right")
    places, found = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for low, high, chosen in ranked:
        whole[low:high] = False
        places.append(np.array(chosen, np.int64))
        found.append(ranks[: len(chosen)])
    apart, rank = np.concatenate(places), np.concatenate(found)
    every = np.append(np.flatnonzero(whole), apart)
    times = np.append(weights[whole], np.ones(apart.size, np.int64))
    first = np.append(np.zeros(int(whole.sum()), np.int64), rank).astype(np.uint64)
    kept = _split_keys([row[every] for row in rows], cells)
    return [*kept, Encoded(first, np.zeros(every.size, np.uint8))], times


def _rank_rows(
    persons: Ints,
    names: Sequence[bytes],
    cells: Sequence[Encoded],
    counts: Ints,
    *,
    limits: tuple[int, ...],
    salt: bytes,
) -> tuple[list[Array], Ints, Iterator[tuple[int, int, list[int]]]]:
    """Rows by person and cells, how many there are of each, and what is to be ranked.

    That is, for each person with more rows than the first limit, where the rows of this person start and end,
    and the places of the rows with the smallest numbers, in order, as many as the last limit allows.
    """
    (person, *rows), weights = regroup([persons, *_join_keys(cells)], counts)
    first = find_starts([person])
    totals = np.add.reduceat(weights, first) if len(first) else weights
    edges = np.append(first, len(person))
    # The cells of each row as the bytes that are hashed.
    flat = np.rec.fromarrays([row.astype(row.dtype.newbyteorder(">")) for row in rows])
    packed = flat.view(f"V{flat.dtype.itemsize}")

    def ranked() -> Iterator[tuple[int, int, list[int]]]:
        for group in np.flatnonzero(totals > limits[0]).tolist():
            low, high = int(edges[group]), int(edges[group + 1])
            prefix = _with_length(salt) + _with_length(names[person[low]])
            numbers = _hash_rows(prefix, packed[low:high].tolist(), weights[low:high].tolist())
            yield low, high, [low + place for _, place, _ in heapq.nsmallest(limits[-1], numbers)]

    return rows, weights, ranked()


def _join_keys(cells: Sequence[Encoded]) -> list[Array]:
    """The keys of several columns, one column after the other."""
    return [key for column in cells for key in column.keys]


def _split_keys(keys: Sequence[Array], like: Sequence[Encoded]) -> list[Encoded]:
    """The columns that have these keys, each with as many words as `like`."""
    rest = iter(keys)
    return [Encoded.from_keys(list(islice(rest, len(each.keys)))) for each in like]


def _hash_rows(
    prefix: bytes, packed: Sequence[bytes], weights: Sequence[int]
) -> Iterator[tuple[bytes, int, int]]:
    """The number of each of a person's rows, the place of its cells, and its occurrence."""
    for place, (cells, weight) in enumerate(zip(packed, weights, strict=True)):
        start = hashlib.md5(prefix + cells, usedforsecurity=False)
        for occurrence in range(weight):
            number = start.copy()
            number.update(occurrence.to_bytes(8, "big"))
            yield number.digest(), place, occurrence


def _with_length(text: bytes) -> bytes:
    return len(text).to_bytes(8, "big") + text


def identify(value: object) -> bytes:
    """The text of an id; empty if the value is not an id."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return b"" if value == UNREADABLE else value
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, int):
        return str(Decimal(value)).encode()
    if isinstance(value, (float, Decimal, Fraction)):
        if not isinstance(value, Fraction) and not math.isfinite(value):
            return b"" if math.isnan(value) else str(value).encode()
        return number_text(Fraction(repr(value) if isinstance(value, float) else value)).encode()
    return b""


def check_identifies(kind: Any, name: str) -> None:
    """Refuse a column whose type cannot hold ids."""
    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    valid = kind == PYTHON or numeric or types.is_large_binary(kind) or types.is_boolean(kind)
    rule, fix = "must hold integers or text to tell persons apart", "choose an id column"
    check_source(valid, f"column {name!r}", rule, fix=fix)


@final
@dataclass(frozen=True, eq=False, repr=False)
class ColumnCounts:
    """One column of a table: how many rows in each ordinary cell, and in each special one."""

    histogram: AxisCounts
    specials: Mapping[str, int]

    def __repr__(self) -> str:
        return f"Column({self.histogram!r}, specials={list(self.specials)})"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """The distinct combinations of cells in some columns, ascending, and how many rows are in each."""

    schema: Mapping[str, Domain]
    cells: Mapping[str, Encoded]
    counts: Ints
    contributions: int

    def within(self, limits: tuple[int, ...], place: int) -> Tally:
        """The rows within one of the limits for which they were counted, as if they were for it alone."""
        there = np.flatnonzero(self.cells[RANK].cells <= place)
        names = [name for name in self.cells if name != RANK]
        keys = _join_keys([self.cells[name] for name in names])
        merged, totals = regroup([key[there] for key in keys], self.counts[there])
        return _tally_cells(self.schema, names, merged, totals, limits[place])

    def column(self, name: str) -> ColumnCounts:
        """The counts of one column by itself."""
        locate_columns([name], list(self.cells))
        encoded, domain = self.cells[name], self.schema[name]
        keys, counts = regroup(encoded.keys, self.counts)
        special, cells = keys[0], Encoded.from_keys(keys).cells
        there = special == Special.ORDINARY
        if isinstance(domain, Text):
            ordinary: AxisCounts = NameCounts(domain, cells[there], counts[there], self.contributions)
        else:
            ordinary = Histogram(domain.size, cells[there], counts[there], self.contributions)
        found = dict(zip(special[~there].tolist(), counts[~there].tolist(), strict=True))
        return ColumnCounts(
            ordinary, {name: found.get(int(Special.named(name)), 0) for name in domain.specials}
        )

    def relabelled(self, name: str, found: FoundNames) -> Tally:
        """The same rows, where a column of text has the names that a release has found; the rest is other."""
        encoded = self.cells[name]
        cells, special = np.zeros(len(encoded), np.uint64), encoded.special.copy()
        ordinary = special == Special.ORDINARY
        place, listed = NameCounts.places(encoded.cells[ordinary], found.text.words_of(found.names))
        special[ordinary] = np.where(listed, np.uint8(Special.ORDINARY), np.uint8(Special.OTHER))
        cells[ordinary] = np.where(listed, place, 0)
        columns = {**self.cells, name: Encoded(cells, special)}
        merged, counts = regroup(_join_keys(list(columns.values())), self.counts)
        split = _split_keys(merged, list(columns.values()))
        schema = {**self.schema, name: found}
        return Tally(schema, dict(zip(columns, split, strict=True)), counts, self.contributions)

    def points(self, names: Sequence[str]) -> Points:
        """The counts of several columns together: rows are at positions along the axes of their domains."""
        locate_columns(names, list(self.cells))
        along, counts = regroup(
            [locate_cells(self.schema[name], self.cells[name]) for name in names], self.counts
        )
        axes = tuple(Axis.of(self.schema[name]) for name in names)
        return Points(axes, np.stack(along, axis=1), counts, self.contributions)

    def __repr__(self) -> str:
        return f"Tally({list(self.cells)}, contributions={self.contributions}, secret)"


def locate_cells(domain: Domain, encoded: Encoded) -> npt.NDArray[np.uint64]:
    """Where cells, ordinary and special ones, lie along the axis of their domain."""
    starts = np.zeros(len(Special), np.uint64)
    starts[Special.ORDINARY] = Axis.of(domain).position(0)
    for name, position in Axis.specials(domain).items():
        starts[Special.named(name)] = position
    return np.asarray(encoded.cells + starts[encoded.special])


def encode_positions(domain: Domain, positions: npt.NDArray[np.uint64]) -> Encoded:
    """The cells at these positions along the axis of their domain: `locate_cells` undone.

    >>> domain = Integer(0, 9)
    >>> encode_positions(domain, locate_cells(domain, domain.encode([3, -1, None]))).tolist()
    [3, 'below', 'null']
    """
    cells = positions - np.uint64(Axis.of(domain).position(0))
    special = np.zeros(len(positions), np.uint8)
    for name, position in Axis.specials(domain).items():
        special[positions == np.uint64(position)] = Special.named(name)
    cells[special != Special.ORDINARY] = 0
    return Encoded(cells, special)


def tally(
    source: Source,
    schema: Mapping[str, Domain],
    by: Sequence[str] | None = None,
    *,
    person: str | None = None,
    contributions: Limits = 1,
    salt: str = "",
    where: tuple[str, str] | None = None,
) -> Tally:
    """Count the cells of the columns `by`, or of all columns of the schema.

    With `where`, a column and a text, only rows count whose value in that column is the text, as a
    `Category` matches a label. With `person`, the column that holds an id, at most `contributions` of
    each person's rows count, chosen as `bound_contributions` says. Without it every row counts. With several
    `contributions` there is one more column, `RANK`, from which `within` takes the rows for one of them.

    >>> from partita.domain import Integer
    >>> from partita.trusted.sources.open import open_source
    >>> ages = tally(open_source({"age": [30, 31, 30, 999]}), {"age": Integer(0, 120)}).column("age")
    >>> ages.histogram.counts.tolist(), ages.specials["above"]
    ([2, 1], 1)
    """
    names, limits, keys = check_request(schema, by, person=person, contributions=contributions, where=where)
    check(isinstance(source, Source), "source", "must be a source", given=source, fix="use open_source")
    table = source.counts(keys)
    if where is not None:
        table = table.filter(match_label(where[1], table.column(keys.index(where[0]))))
    cells = [
        encode_column(schema[name], table.column(keys.index(name)), alone=len(keys) == 1) for name in names
    ]
    counts = table.column(len(keys)).to_numpy()
    if person is not None:
        who, ids = number_persons(table.column(0), person)
        if len(limits) > 1:
            cells, counts = rank_contributions(who, ids, cells, counts, limits=limits, salt=salt.encode())
            names, schema = [*names, RANK], with_rank(schema, limits)
        else:
            cells, counts = bound_contributions(who, ids, cells, counts, limit=limits[0], salt=salt.encode())
    merged, totals = regroup(_join_keys(cells), counts)
    return _tally_cells(schema, names, merged, totals, 1 if person is None else limits[-1])


def _tally_cells(
    schema: Mapping[str, Domain], names: Sequence[str], keys: Sequence[Array], counts: Ints, limit: int
) -> Tally:
    """The tally of grouped special codes and cells, of one column after the other."""
    rest, columns = iter(keys), {name: schema[name] for name in names}
    widths = {name: each.words if isinstance(each, Text) else 1 for name, each in columns.items()}
    return Tally(
        columns,
        {name: Encoded.from_keys(list(islice(rest, 1 + width))) for name, width in widths.items()},
        counts,
        limit,
    )


def with_rank(schema: Mapping[str, Domain], limits: tuple[int, ...]) -> dict[str, Domain]:
    """The same schema with the column `RANK`."""
    return {**schema, RANK: Integer(0, len(limits) - 1)}


def check_request(
    schema: object,
    by: Sequence[str] | None,
    *,
    person: str | None,
    contributions: Limits,
    where: tuple[str, str] | None,
) -> tuple[list[str], tuple[int, ...], list[str]]:
    """The columns to count, how many rows a person may have, and all columns to read: ids first."""
    names = _check_columns(schema, by)
    several = contributions if isinstance(contributions, tuple) and contributions else (contributions,)
    limits = tuple(integer(each, "contributions", low=1) for each in several)
    fix = "name the column of ids, or leave it out"
    check(person is not None or limits == (1,), "contributions", "needs person", given=limits[-1], fix=fix)
    extra = [name for name in (person, where and where[0]) if name is not None]
    return names, limits, list(dict.fromkeys([*extra, *names]))


def _check_columns(schema: object, by: Sequence[str] | None) -> list[str]:
    """The columns to count, if the schema is valid and has them."""
    if not isinstance(schema, Mapping) or not all(is_domain(domain) for domain in schema.values()):
        fix = 'pass for example {"age": Integer(0, 120)}'
        raise InvalidParameter("schema", "must map columns to domains", given=schema, fix=fix)
    names = check_column_names(list(schema) if by is None else by, "by")
    unknown = next((name for name in names if name not in schema), None)
    fix = "declare the domain of each column"
    check(unknown is None and names, "by", "must name columns of the schema", given=unknown, fix=fix)
    return names


def match_label(label: str, column: Any) -> Any:
    """Which rows of a wide column have this text, as a `Category` matches a label: an Arrow array."""
    return pa.array(encode_column(Category([label]), column).special == Special.ORDINARY)


def encode_column(domain: Domain, column: Any, *, alone: bool = False) -> Encoded:
    """The cells of a column, each distinct value encoded once; a column grouped `alone` has no repeats.

    Encoding all integers costs less than finding the distinct ones first.
    """
    if types.is_integer(column.type) and (alone or isinstance(domain, Integer)):
        return domain.encode(column.combine_chunks())
    values, codes = find_distinct(column)
    return domain.encode(values).take(codes)
