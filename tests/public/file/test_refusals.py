"""Files that are no release, or lie about themselves, are refused before anything is unpacked."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidRelease
from partita.public import file
from partita.public.file import SPEC, Stored, columns_of, decode, encode, unpack
from partita.public.file_entries import FileColumn, Series, checksum, from_canonical, to_canonical
from partita.public.file_parquet import Thrift, layout, to_parquet

from .specimens import release

DATA = encode(release("tree"))
STORED, _ = unpack(DATA, largest=2**20)
BOXES, _ = unpack(encode(release("grid")), largest=2**20)


def written(
    spec: Any, values: Any = None, *, stored: Stored = STORED, beside: Mapping[str, bytes] | None = None
) -> bytes:
    """A file with this specification and a right checksum."""
    arrays = stored.values if values is None else values
    spec["checksum"] = checksum(spec, arrays)
    return to_parquet(columns_of(stored.spec), arrays, {SPEC: to_canonical(spec), **(beside or {})})


def changed(*path: Any, to: Any, stored: Stored = STORED) -> bytes:
    """The specimen with one entry of its specification changed."""
    spec: Any = copy.deepcopy(stored.spec)
    *above, last = path
    holder = spec
    for key in above:
        holder = holder[key]
    holder[last] = to
    return written(spec, stored=stored)


def test_the_specimen_is_sound() -> None:
    """What the changes below start from is accepted, and writing it again gives the same bytes."""
    assert written(copy.deepcopy(STORED.spec)) == DATA
    assert decode(DATA).columns == ("tree",)


VIEW = ("views", 0)


@pytest.mark.parametrize(
    ("path", "to", "said"),
    [
        (("version",), 99, "needs a newer Partita"),
        (("version",), 6, "of 6 if it states options or a column has no special cells"),
        (("provenance", "options"), {"branching": "16"}, "must be of version"),
        ((*VIEW, "specials", "counts"), {}, "must be of version"),
        ((*VIEW, "specials"), {"scale": "1"}, "exactly the entries counts, scale"),
        ((*VIEW, "specials", "counts"), [], "mapping"),
        (("version",), 3, "of 3 if one has sums or answers"),
        (("version",), 2, "else of 2 if one has several columns, else of 1"),
        (("version",), "1", "needs a newer Partita"),
        (("format",), "other", "is not a Partita release"),
        (("surprise",), 1, "exactly the entries checksum, format"),
        ((*VIEW, "surprise"), 1, "exactly the entries column, domain"),
        ((*VIEW, "kind"), "cube", "newer Partita"),
        ((*VIEW, "kind"), "laplace", "must be|must hold"),
        ((*VIEW, "kind"), "os", "newer Partita"),
        ((*VIEW, "facts"), {}, "must be"),
        ((*VIEW, "domain"), {"kind": "integer", "low": "0", "high": "35"}, "as many cells as were released"),
        ((*VIEW, "domain"), {"kind": "integer", "low": "0", "high": "-1"}, "high must not be below low"),
        ((*VIEW, "domain"), {"kind": "cube"}, "newer Partita"),
        ((*VIEW, "specials", "counts"), {"below": "1"}, "exactly the entries above, below, invalid, null"),
        ((*VIEW, "specials", "counts", "below"), 1, "text"),
        ((*VIEW, "specials", "counts", "below"), "1/2", "whole counts"),
        ((*VIEW, "specials", "scale"), "0", "scale"),
        ((*VIEW, "specials", "scale"), "2/2", "lowest terms"),
        ((*VIEW, "specials", "scale"), "1/0", "rational number"),
        ((*VIEW, "series", 0, "dtype"), "float64", "int64, uint64, int128"),
        ((*VIEW, "series", 0, "dtype"), "uint64", "other columns"),
        ((*VIEW, "series", 0, "length"), 36, "number of values"),
        ((*VIEW, "series", 0, "length"), 2**40, "bytes of numbers"),
        ((*VIEW, "series", 0, "name"), "a.b", "small letters"),
        ((*VIEW, "series"), [], "schema"),
        (("guarantee", "epsilon"), "0", "epsilon must be positive"),
        (("guarantee", "epsilon"), "0.5", "rational number"),
        (("guarantee", "unit"), "dog", "unit must be one of"),
        (("guarantee", "epsilon"), "1/100", "what its views promise together"),
        (("guarantee",), None, "what its views promise together"),
        ((*VIEW, "guarantee"), None, "what its views promise together"),
        ((*VIEW, "specials", "scale"), "1", "must have the noise that is promised"),
        (("provenance", "version"), None, "text"),
        (("provenance", "recorded"), 1, "true or false"),
        (("provenance", "part"), ["region", "north"], "mapping"),
        (("provenance", "part"), {"column": "region"}, "exactly the entries column, value"),
        (("provenance", "part"), {"column": "region", "value": 1}, "text"),
        (("views",), [], "name its columns once"),
    ],
)
def test_a_specification_is_read_strictly(path: tuple[Any, ...], to: Any, said: str) -> None:
    """Each entry has one meaning; anything else is refused, however right the checksum is."""
    with pytest.raises(InvalidRelease, match=said):
        decode(changed(*path, to=to))


AGE, REGION = ({"kind": "integer", "low": "0", "high": "5"}, {"kind": "category", "labels": ["a", "b"]})


@pytest.mark.parametrize(
    ("path", "to", "said"),
    [
        (("version",), 1, "else of 2 if one has several columns, else of 1"),
        (("version",), True, "of 3 if one has sums|needs a newer Partita"),
        ((*VIEW, "surprise"), 1, "exactly the entries columns, domains"),
        ((*VIEW, "specials"), {}, "exactly the entries columns, domains"),
        ((*VIEW, "columns"), "grid 0", "list"),
        ((*VIEW, "columns"), [], "2 to 40 different columns"),
        ((*VIEW, "columns"), ["grid 0"], "2 to 40 different columns"),
        ((*VIEW, "columns"), ["grid 0", "grid 0"], "2 to 40 different columns"),
        ((*VIEW, "columns"), [str(number) for number in range(41)], "2 to 40 different columns"),
        ((*VIEW, "columns"), ["grid 0", 1], "text"),
        ((*VIEW, "columns"), ["grid 0", "grid 1", "grid 2"], "schema"),
        ((*VIEW, "columns"), ["grid 0 x grid 1", "grid 2"], "schema"),
        ((*VIEW, "domains"), [AGE], "must have the cells of their domains"),
        ((*VIEW, "domains"), [REGION, AGE], "must have the cells of their domains"),
        ((*VIEW, "domains"), [AGE, REGION, AGE], "must have the cells of their domains"),
        ((*VIEW, "domains"), [AGE | {"high": "6"}, REGION], "must have the cells of their domains"),
        ((*VIEW, "domains"), [AGE | {"high": str(2**64 - 1)}, REGION], "must have the cells|at most"),
        ((*VIEW, "domains"), AGE, "list"),
        ((*VIEW, "domains", 0), {"kind": "cube"}, "newer Partita"),
        ((*VIEW, "kind"), "cube", "newer Partita"),
        ((*VIEW, "kind"), "tree", "newer Partita"),
        ((*VIEW, "kind"), "spending-boxes", "must be"),
        ((*VIEW, "facts"), {}, "must be"),
        ((*VIEW, "series"), [], "schema"),
        ((*VIEW, "guarantee"), None, "what its views promise together"),
        (("guarantee", "epsilon"), "1/100", "what its views promise together"),
    ],
)
def test_a_view_of_several_columns_is_read_strictly(path: tuple[Any, ...], to: Any, said: str) -> None:
    """It has entries of its own, and its columns, domains and boxes must agree."""
    assert decode(encode(release("grid"))).columns == ("grid 0", "grid 1")
    with pytest.raises(InvalidRelease, match=said):
        decode(changed(*path, to=to, stored=BOXES))


def test_a_kind_along_one_axis_is_none_for_boxes_and_the_other_way_round() -> None:
    """Each has a table of its own, so a file cannot mix them up."""
    with pytest.raises(InvalidRelease, match="newer Partita"):
        decode(changed(*VIEW, "kind", to="grid"))


def test_a_column_may_not_come_twice() -> None:
    """Two views of one column could not be told apart."""
    spec: Any = copy.deepcopy(STORED.spec)
    spec["views"] *= 2
    with pytest.raises(InvalidRelease, match="name its columns once"):
        columns_of(spec)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"[]", b"1", b"{", b'{"a":1.0}', b'{"a":1e3}', b'{"a":NaN}', b'{"a": 1}', b'{"b":1,"a":1}',
        b'{"a":1,"a":1}', b'{"a":123456789012345678901234}', b'{"a":"\\u00e9"}', b'{"a":"\\ud800"}',
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"a":' + b"[" * 17 + b"]" * 17 + b"}", b"\xff",
        b'{"a":' + b"1" * 5000 + b"}", b'{"a":' + b" " * 2**24 + b"1}",
    ],
)  # fmt: skip
def test_one_text_for_each_specification(text: bytes) -> None:
    """JSON with floats, long integers, deep nesting, or written in any other way is refused."""
    with pytest.raises(InvalidRelease):
        from_canonical(text)


@pytest.mark.parametrize("value", [1.5, (1,), b"x", np.int64(1), "\ud800", 2**64 + 1, {1: 2}])
def test_what_other_languages_cannot_read_is_not_written(value: Any) -> None:
    """Floats, odd keys, long integers and broken text never get into a file."""
    with pytest.raises(InvalidRelease):
        to_canonical({"a": value})


@pytest.mark.parametrize(
    "values", [np.zeros(3), np.zeros((2, 2), int), np.array([2**127], object), np.array(["a"], object)]
)
def test_only_integers_are_written(values: Any) -> None:
    """Series are flat arrays of integers of up to 128 bits."""
    with pytest.raises(InvalidRelease):
        list(Series.of("level", values).split(values))


def test_other_texts_beside_the_schema_are_refused() -> None:
    """Arrow would read a schema of its own from there, and so nothing else may be there."""
    with pytest.raises(InvalidRelease, match="is not a Partita release"):
        decode(written(copy.deepcopy(STORED.spec), beside={"ARROW:schema": b"AAAA"}))


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"PAR1" * 3, b"PAR1" + bytes(20) + b"PAR1", b"PARE" * 9, DATA[:-1]]
)
def test_other_files_are_refused(data: bytes) -> None:
    """Marks, footer and length must be those of Parquet."""
    with pytest.raises(InvalidRelease):
        decode(data)


def test_any_changed_number_breaks_the_checksum() -> None:
    """One unit more in one number, and nothing is believed."""
    values = [array.copy() for array in STORED.values]
    values[1][0] += 1
    data = to_parquet(columns_of(STORED.spec), values, {SPEC: to_canonical(STORED.spec)})
    with pytest.raises(InvalidRelease, match="checksum does not match"):
        decode(data)


def varint(number: int) -> bytes:
    """A number as thrift writes it."""
    raw, text = 2 * number, b""
    while raw > 127:
        raw, text = raw >> 7, text + bytes([raw & 127 | 128])
    return text + bytes([raw])


def lying(claim: Callable[[int], int], field: str) -> bytes:
    """The specimen, whose first page claims another number of values or bytes, in as many digits."""
    reader = Thrift(memoryview(DATA), position=4, items=50)
    header: Any = reader.struct()
    told = {"values": header[5][1], "unpacked": header[2]}[field]
    before, after = varint(told), varint(claim(told))
    assert len(before) == len(after)
    page = DATA[4 : reader.position].replace(before, after, 1)
    return DATA[:4] + page + DATA[reader.position :]


@pytest.mark.parametrize(
    "data",
    [
        lying(lambda values: values + 1, "values"),
        lying(lambda values: values - 1, "values"),
        lying(lambda size: 8191, "unpacked"),
        lying(lambda size: size + 1, "unpacked"),
        to_parquet(
            [FileColumn("tree.level0", "int64", 10**6)],
            [np.zeros(10**6, int)],
            {SPEC: to_canonical(STORED.spec)},
        ),
    ],
)
def test_pages_that_claim_more_than_was_announced_are_never_unpacked(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decoder sees no page whose header disagrees with the footer, or a footer with the specification."""
    monkeypatch.setattr(file, "from_parquet", lambda *_: pytest.fail("the decoder was reached"))
    with pytest.raises(InvalidRelease):
        decode(data)


def test_a_small_file_cannot_ask_for_much_memory() -> None:
    """A million equal numbers take a few hundred bytes; they count as what they take when unpacked."""
    spec: Any = copy.deepcopy(STORED.spec)
    spec["views"][0]["series"] = [{"name": "level0", "dtype": "int64", "length": 10**6}]
    zeros = [np.zeros(10**6, int)]
    spec["checksum"] = checksum(spec, zeros)
    data = to_parquet(columns_of(spec), zeros, {SPEC: to_canonical(spec)})

    assert len(data) < 4000
    with pytest.raises(InvalidRelease, match="holds more than 7999999 bytes of numbers"):
        unpack(data, largest=8 * 10**6 - 1)
    assert unpack(data, largest=8 * 10**6)[0].values[0].size == 10**6


def test_wide_numbers_count_as_what_they_take() -> None:
    """A Python int takes far more memory than the sixteen bytes in the file."""
    wide = list(Series(name="wide", dtype="int128", length=1000).columns("age"))
    assert sum(column.cost * column.length for column in wide) >= 100 * 1000


@pytest.mark.parametrize(
    "text",
    [
        b"\x15", b"\x18\xff\xff\xff\xff\x7f", b"\x19\xfc\xff\xff\xff\x7f", b"\x1c" * 40,
        b"\x16" + b"\xff" * 11, b"\x15\x00\x05\x02\x00\x00", b"\x1d\x00", b"\x19\x1f\x00",
        b"\x19\xf1\xff\xff\xff\x7f",
    ],
)  # fmt: skip
def test_thrift_that_ends_early_nests_deeply_or_repeats_itself_is_refused(text: bytes) -> None:
    """Lengths are compared with what is there before anything is made of them."""
    with pytest.raises(InvalidRelease, match="malformed Parquet structure"):
        Thrift(memoryview(text), items=100).struct()


def test_the_layout_of_a_release_is_as_documented() -> None:
    """One row group of zstd chunks with delta-packed integers, one text beside the schema."""
    found = layout(DATA)
    assert list(found.metadata) == [SPEC]
    assert json.loads(found.metadata[SPEC])["version"] == 1


def test_a_forged_guarantee_is_refused_even_where_it_adds_up() -> None:
    """A smaller epsilon for view and release alike does not fit the noise of the special cells."""
    spec: Any = copy.deepcopy(STORED.spec)
    for place in (spec, spec["views"][0]):
        place["guarantee"]["epsilon"] = "1/100"

    with pytest.raises(InvalidRelease, match="must have the noise that is promised"):
        decode(written(spec))


def test_a_file_has_not_too_many_columns() -> None:
    """The limit is public and exact."""
    spec: Any = copy.deepcopy(STORED.spec)
    series = [{"name": f"s{i}", "dtype": "int64", "length": 0} for i in range(2**12 + 1)]
    spec["views"][0]["series"] = series[:-1]
    assert len(columns_of(spec)) == 2**12

    spec["views"][0]["series"] = series
    with pytest.raises(InvalidRelease, match="must have at most 4096 columns of numbers"):
        columns_of(spec)
