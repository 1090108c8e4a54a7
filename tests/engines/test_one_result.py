"""One result everywhere: the same rows have the same histograms on every engine, bit for bit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

from partita.domain.axis import MOST_AXES, Axis
from partita.errors import InvalidParameter
from partita.public.boxes.bins import AxisBins
from partita.publish.plan import plan
from partita.publish.publish import count
from partita.publish.request import Request
from partita.trusted.secret import Histogram, Points
from partita.trusted.sources.base import Source
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import ColumnCounts, Tally, tally
from tests.engines.loading import loaded
from tests.engines.tables import ARROW, PERSON, SCHEMA, drawn, table

EXAMPLES: Final = 40
EMPTY: Final = 0
WHOLE: Final = 1
CASES: Final = {"duckdb": 4, "polars-arrow": 4, "pandas": 4, "postgres": 12, "spark": 2}
"""How many tables each engine counts: an empty one, all examples in one, and then one by one."""

ALONE: Final = {"spark": ("whole", "unsigned", "word")}
"""Which columns an engine counts by themselves too, if that takes it several jobs for each; others: all."""

ALONE_AXES: Final = {"spark": (0, 2)}
"""The same for columns of a wide table, by number."""

VIEWS: Final = (
    ("whole", "region"),
    ("real", "price", "unsigned"),
    ("seen", "sent", "born"),
    ("word", "bytes", "flag", "narrow"),
)
BOUNDED: Final[dict[str, Any]] = {"person": PERSON, "contributions": 2, "salt": "autumn"}


@cache
def cases() -> list[Any]:
    """The tables, as Arrow holds them: the rule that all engines are measured by."""
    examples = drawn(EXAMPLES)
    whole = [row for rows in examples for row in rows]
    return [table(rows) for rows in ([], whole, *examples)]


@cache
def expected(case: int, by: tuple[str, ...] = tuple(SCHEMA), **bound: Any) -> Tally:
    return tally(open_source(cases()[case]), SCHEMA, by, **bound)


def tallied(source: Source, by: Sequence[str] = tuple(SCHEMA), **bound: Any) -> Any:
    """The tally of a source; one that is on a cluster tallies there."""
    mine = getattr(source, "tally", None)
    return tally(source, SCHEMA, by, **bound) if mine is None else mine(SCHEMA, by, **bound)


def assert_same(found: Any, told: Any) -> None:
    """Two secrets are the same: of one axis with its special cells, or of several axes together."""
    if isinstance(told, ColumnCounts):
        assert dict(found.specials) == dict(told.specials)
        assert isinstance(told.histogram, Histogram)
        assert_weights(found.histogram, told.histogram, told.histogram.cells.tolist())
    else:
        assert isinstance(told, Points)
        assert found.axes == told.axes
        assert_weights(found, told, [tuple(place) for place in told.places.tolist()])


def assert_weights(found: Any, told: Histogram | Points, places: list[Any]) -> None:
    """The same rows are at each place where there should be some, and there are no others."""
    assert found.contributions == told.contributions
    assert getattr(found, "size", None) == getattr(told, "size", None)
    assert found.folded(weighing(places)).tolist() == [*told.counts.tolist(), int(told.counts.sum())]


def weighing(places: list[Any]) -> Callable[[Any, Any], Any]:
    """How many rows a block has at each of these places, and at all places, wherever the block is."""
    numbers = {place: number for number, place in enumerate(places)}

    def weigh(block: Any, counts: Any) -> Any:
        import numpy

        weights = numpy.zeros(len(numbers) + 1, numpy.int64)
        weights[-1] = counts.sum()
        for place, rows in zip(block.tolist(), counts.tolist(), strict=True):
            number = numbers.get(tuple(place) if isinstance(place, list) else place)
            if number is not None:
                weights[number] += rows
        return weights

    return weigh


def together() -> list[tuple[str, ...]]:
    """All columns, as many together as there may be axes."""
    names = tuple(SCHEMA)
    return [names[start : start + MOST_AXES] for start in range(0, len(names), MOST_AXES)]


def test_every_table_is_counted_by_hand_too() -> None:
    """What the engines are compared with is what encoding row by row gives."""
    for name, domain in SCHEMA.items():
        column = expected(WHOLE).column(name)
        assert isinstance(column.histogram, Histogram)
        cells = zip(column.histogram.cells.tolist(), column.histogram.counts.tolist(), strict=True)
        found = Counter[int | str](dict(cells)) + Counter[int | str](column.specials)
        assert found == Counter(domain.encode(cases()[WHOLE][name]).tolist())


def test_the_tables_hold_what_engines_disagree_about() -> None:
    """Nulls in every column, NaN, both zeros, duplicate persons, unsigned numbers of 64 bits, no row."""
    rows = cases()[WHOLE]

    assert len(cases()[EMPTY]) == 0
    assert all(rows[name].null_count for name in ARROW)
    assert {"nan", "0.0", "-0.0", "inf"} <= set(map(str, rows["real"].to_pylist()))
    assert max(Counter(rows[PERSON].to_pylist()).values()) > BOUNDED["contributions"]
    assert max(value for value in rows["unsigned"].to_pylist() if value is not None) == 2**64 - 1
    assert pa.types.is_dictionary(rows.schema.field("region").type)


@pytest.mark.parametrize("name", ["whole", "real", "region"])
def test_one_row_that_differs_would_be_noticed(name: str) -> None:
    """The comparison fails if a row is there twice, or is missing."""
    rows = cases()[WHOLE]

    for other in (pa.concat_tables([rows, rows.slice(3, 1)]), rows.slice(1)):
        with pytest.raises(AssertionError):
            assert_same(tallied(open_source(other), (name,)).column(name), expected(WHOLE).column(name))


def test_every_engine_has_the_same_histograms(engine: str, request: pytest.FixtureRequest) -> None:
    """Cells, counts and special cells agree, of every column and every table: together, and alone."""
    for case in range(CASES[engine]):
        with loaded(engine, cases()[case], request) as data:
            found, told = tallied(open_source(data)), expected(case)
            for names in together():
                assert_same(found.points(names), told.points(names))
            for name in ALONE.get(engine, SCHEMA):
                assert_same(found.column(name), told.column(name))


@pytest.mark.parametrize("by", VIEWS, ids=" x ".join)
def test_every_engine_keeps_the_same_rows_of_a_person(
    engine: str, by: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    """Points of several columns agree where each person has at most two rows, chosen by the same rule."""
    with loaded(engine, cases()[WHOLE], request) as data:
        found = tallied(open_source(data), by, **BOUNDED)
        assert_same(found.points(by), expected(WHOLE, by, **BOUNDED).points(by))


@pytest.mark.parametrize("by", VIEWS[:2], ids=" x ".join)
def test_every_engine_ranks_the_same_rows(
    engine: str, by: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    """Counted for several bounds at once, rows within each are those of the bound alone; Spark refuses."""
    limits, several = (1, 2, 5), {**BOUNDED, "contributions": (1, 2, 5)}
    with loaded(engine, cases()[WHOLE], request) as data:
        if engine == "spark":
            with pytest.raises(InvalidParameter, match="must be a number of rows"):
                tallied(open_source(data), by, **several)
            return
        found = tallied(open_source(data), by, **several)
        for place, limit in enumerate(limits):
            told = expected(WHOLE, by, **{**BOUNDED, "contributions": limit})
            assert_same(found.within(limits, place).points(by), told.points(by))


@pytest.mark.parametrize("person", ["whole", "unsigned", "price", "word", "region", "real"])
def test_every_engine_knows_the_same_persons(
    engine: str, person: str, request: pytest.FixtureRequest
) -> None:
    """Ids of every type are the same persons, and the same rows of theirs are kept."""
    bound: dict[str, Any] = {"person": person, "contributions": 1, "salt": "autumn"}

    with loaded(engine, cases()[WHOLE], request) as data:
        found = tallied(open_source(data), ("narrow",), **bound)
        assert_same(found.column("narrow"), expected(WHOLE, ("narrow",), **bound).column("narrow"))


@pytest.mark.parametrize("where", [("region", "caffè"), ("flag", "true"), ("narrow", "0"), ("word", "1.5")])
def test_every_engine_finds_the_same_part(
    engine: str, where: tuple[str, str], request: pytest.FixtureRequest
) -> None:
    """The rows of a part are the same ones, and so is what is kept of them."""
    told = expected(WHOLE, ("whole",), where=where, **BOUNDED).column("whole")

    with loaded(engine, cases()[WHOLE], request) as data:
        found = tallied(open_source(data), ("whole",), where=where, **BOUNDED)
        assert_same(found.column("whole"), told)
    assert told.histogram.total > 0


def coarse(axis: Axis) -> AxisBins:
    """A few bins of an axis: runs, or sets of labels."""
    if axis.labels:
        return AxisBins.from_lookup(np.arange(axis.width)[::-1] % 3)
    return AxisBins.from_edges(np.array([axis.width // 3, axis.width - 2, axis.width - 1], np.uint64))


WIDE: Final = [
    *([place] for place in range(len(SCHEMA))),
    *combinations(range(len(SCHEMA)), 2),
    (5, 2),
    (9, 0, 4),
    (3, 10, 13, 1, 12),
]
"""Views, pairs and larger sets of all columns."""


@pytest.mark.parametrize(
    "bound", [{}, {"where": ("flag", "true")}, {"where": ("region", "caffè"), **BOUNDED}], ids=str
)
def test_every_engine_has_the_same_tables(
    engine: str, bound: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    """Combinations of bins of a wide table agree, and so do its columns: all rows, and the rows of a part."""
    sets, names = [tuple(chosen) for chosen in WIDE], list(SCHEMA)
    for case in [EMPTY, WHOLE] if not bound else [WHOLE]:
        told = expected(case, tuple(names), **bound).points(names)
        bins = [coarse(axis) for axis in told.axes]
        with loaded(engine, cases()[case], request) as data:
            found = tallied(open_source(data), names, **bound).points(names)
            assert (found.axes, found.contributions) == (told.axes, told.contributions)
            assert found.total == told.total
            for mine, theirs in zip(found.tables(sets, bins), told.tables(sets, bins), strict=True):
                assert mine.tolist() == theirs.tolist()
            for axis in ALONE_AXES.get(engine, range(len(names))):
                assert_same(found.alone(axis), told.alone(axis))
                lines = found.along(axis), told.along(axis)
                assert_weights(*lines, lines[1].cells.tolist())


@cache
def asked() -> Request:
    """Views of one column and of two, and a sum."""
    return plan(
        {name: SCHEMA[name] for name in ("whole", "region", "price")},
        epsilon=1,
        views=["whole", "region", ("whole", "region")],
        sums=["price"],
        person=PERSON,
        contributions=2,
    ).request


def test_publishing_counts_the_same_on_every_engine(engine: str, request: pytest.FixtureRequest) -> None:
    """What `publish` draws noise on is the same, whatever counted it: all but the noise is one result."""
    told: Any = count(open_source(cases()[WHOLE]), asked(), "people")

    with loaded(engine, cases()[WHOLE], request) as data:
        found: Any = count(open_source(data), asked(), "people")
        for mine, theirs in zip(found, told, strict=True):
            assert_same(mine, theirs)
