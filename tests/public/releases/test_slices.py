"""Distributions, quantiles and tables of some columns, among the rows that fulfil conditions on others."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.answer import Answer
from partita.domain import Category, Domain, Integer
from partita.domain.axis import Axis
from partita.domain.base import NULL, OTHER
from partita.errors import InvalidParameter
from partita.public.axis.base import Term
from partita.public.axis.curve import Curve
from partita.public.base import Provenance
from partita.public.boxes.regions import HalfSpace
from partita.public.release import Release
from partita.public.results import bound_quantile_cells
from partita.public.views import BoxSlice, BoxView
from partita.testing import ZeroNoise
from partita.trusted.mechanisms.boxes import GridCounts
from partita.trusted.secret import Points

Publish = Callable[..., Release]
Row = tuple[int | None, int | None, str]

AGE, PAY, TOWN = Integer(0, 9), Integer(0, 20), Category(["Rome", "Bari", "Pisa"])
ROWS = st.lists(
    st.tuples(
        st.integers(-1, 10) | st.none(),
        st.integers(-2, 22) | st.none(),
        st.sampled_from(["Rome", "Bari", "Pisa", "Oslo"]),
    ),
    max_size=40,
)
AGES = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda pair: (min(pair), max(pair)))
SHARES = st.fractions(0, 1, max_denominator=20)


def _columns(rows: list[Row]) -> dict[str, Any]:
    age, pay, town = zip(*rows, strict=True) if rows else ((), (), ())
    return {"age": (AGE, age), "pay": (PAY, pay), "town": (TOWN, town)}


def _pay(rows: list[Row], ages: tuple[int, int], towns: set[str]) -> list[int]:
    """The pay on the axis of who is in range and in town."""
    return [
        pay
        for age, pay, town in rows
        if pay is not None
        and 0 <= pay <= 20
        and age is not None
        and ages[0] <= age <= ages[1]
        and town in towns
    ]


@given(ROWS, AGES, SHARES)
@settings(max_examples=40)
def test_conditional_quantiles_are_those_of_the_rows(
    together: Publish, rows: list[Row], ages: tuple[int, int], q: Fraction
) -> None:
    """The least pay that a share q of the rows in the box do not exceed, by going through the rows."""
    release = together(**_columns(rows))

    found = release.quantile("pay", q, age=ages, town={"Rome", "Pisa"})

    pays = _pay(rows, ages, {"Rome", "Pisa"})
    enough = (value for value in range(21) if sum(pay <= value for pay in pays) >= float(q) * len(pays))
    assert found.value == next(enough)
    low, high = found.worst(0.05)
    assert low <= found.value <= high  # type: ignore[operator]


@given(ROWS, AGES, st.integers(1, 25))
def test_conditional_tables_are_those_of_the_rows(
    together: Publish, rows: list[Row], ages: tuple[int, int], bins: int
) -> None:
    """Histograms and distributions count the rows in the box, and agree with `count`."""
    release = together(**_columns(rows))
    pays = _pay(rows, ages, {"Bari"})

    table = release.histogram("pay", bins=bins, age=ages, town="Bari")
    spread = release.cdf("pay", [-1, 0, 7, 20, 30], age=ages, town="Bari")

    bounds: list[tuple[Any, Any]] = list(zip(table.lows, table.highs, strict=True))
    assert table.counts.values.tolist() == [sum(low <= pay <= high for pay in pays) for low, high in bounds]
    single = [release.count(pay=pair, age=ages, town="Bari") for pair in bounds]
    assert table.counts.error.tolist() == pytest.approx([answer.error for answer in single])
    assert np.asarray(spread.counts).tolist() == [
        sum(pay <= value for pay in pays) for value in (-1, 0, 7, 20, 30)
    ]
    assert spread.fractions.max(initial=0.0) == (1.0 if pays else 0.0)


def test_without_conditions_all_rows_count(together: Publish) -> None:
    """The distribution of a column takes in who is null elsewhere, and conditions are read as by `count`."""
    rows: list[Row] = [(1, 5, "Rome"), (None, 7, "Oslo"), (2, None, "Rome"), (3, 25, "Bari"), (4, 9, "Bari")]
    release = together(**_columns(rows))

    assert release.quantile("pay", 0.5).value == 7
    assert [each.value for each in release.quantile("pay", [0, 1])] == [0, 9]
    assert release.cdf("pay", [5, 9]).counts.values.tolist() == [1, 3]
    assert release.histogram("town").counts.values.tolist() == [2, 2, 0]
    assert release.quantile("pay", 1, {"age": (1, 4)}, closed="left").value == 5
    assert release.quantile("pay", 1, age=(1, 4)).value == 9
    assert release.cdf("pay", [20], town={OTHER, "Bari"}).counts.values.tolist() == [2]
    assert release.cdf("pay", [20], age=NULL).counts.values.tolist() == [1]
    assert release.cdf("pay", age=(1, 4)).counts.values[-1] == 2


def test_impossible_conditions_leave_nobody(together: Publish) -> None:
    """A box that cannot hold anybody: the first value, no rank, and counts of exactly zero."""
    release = together(5.0, **_columns([(1, 5, "Rome")]))

    nobody = release.quantile("pay", 0.5, town=set())
    assert (nobody.value, nobody.rank_interval(), nobody.worst(), nobody.interval()) == (
        0,
        (0.0, 1.0),
        (0, 0),
        (0, 0),
    )
    table = release.histogram("pay", bins=3, age=(11, 12))
    assert (table.counts.values.tolist(), table.counts.error.tolist()) == ([0.0] * 3, [0.0] * 3)


def test_many_boxes_have_the_error_of_each(together: Publish) -> None:
    """A slice of two boxes that do not touch may miss by twice the bound for one."""
    release = together(5.0, **_columns([(1, 5, "Rome")]))

    assert release.slice("pay", town="Rome").axis.error(0.05) == 5.0
    assert release.slice("pay", town=["Rome", "Bari"]).axis.error(0.05) == 5.0
    assert release.slice("pay", town=["Rome", "Pisa"]).axis.error(0.05) == 10.0


@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=25),
    st.lists(st.integers(0, 20), min_size=1, max_size=25),
    SHARES,
)
@settings(max_examples=60)
def test_guaranteed_quantiles_of_boxes_hold_the_truth(
    together: Publish, seen: list[int], truth: list[int], q: Fraction
) -> None:
    """If no count up to a value, or beyond it, misses by more than the reach, the true quantile is inside."""
    counted = [(sum(pay <= value for pay in seen), sum(pay <= value for pay in truth)) for value in range(21)]
    beyond = [(len(seen) - mine, len(truth) - true) for mine, true in counted]
    reach = max(abs(mine - true) for mine, true in [*counted, *beyond])
    release = together(reach, **_columns([(1, pay, "Rome") for pay in seen]))

    low, high = release.quantile("pay", q, age=1).worst(0.05)

    true = next(value for value in range(21) if counted[value][1] >= float(q) * len(truth))
    assert low <= true <= high  # type: ignore[operator]


def test_halving_shares_beta_over_all_cells_it_may_ask() -> None:
    """Whatever is answered, a cell has one share of beta, and those of all cells add up to at most beta."""
    shares: dict[int, float] = {}

    for answers in product([False, True], repeat=4):
        for cell, share in _shares_by_cell(list(answers)).items():
            assert shares.setdefault(cell, share) == share

    assert len(shares) == 15
    assert sum(shares.values()) <= 0.05


def _shares_by_cell(answers: list[bool]) -> dict[int, float]:
    """How much of beta = 0.05 each cell took, on 16 cells whose bounds say in turn: beyond, or not."""
    taken: dict[int, float] = {}
    turns = iter(answers * 2)

    class Steered:
        size = 16

        def answer(self, *terms: Term) -> Answer:
            (term,) = terms
            cell = term.high if term.low == 0 else term.low - 1
            return Answer(0.0, lambda: 0.0, lambda beta: self._bounds(cell, term.low == 0, beta))

        def _bounds(self, cell: int, first: bool, beta: float) -> tuple[float, float]:
            taken[cell] = taken.get(cell, 0.0) + beta
            if first:
                self.beyond = next(turns)
            return (0.0, 0.0) if first is self.beyond else (8.0, 8.0)

    bound_quantile_cells(Steered(), 0.5, 0.05)  # type: ignore[arg-type]
    return taken


@given(st.lists(st.floats(0, 100), min_size=4, max_size=4), st.integers(0, 7), st.integers(0, 7))
def test_slices_cut_the_special_cells_off(counts: list[float], first: int, last: int) -> None:
    """What lies before and behind the ordered cells is on no line, also where a piece reaches beyond them."""
    low, high = min(first, last), max(first, last)
    curve = Curve(np.array([0, 2, 3, 7], np.uint64), np.array(counts))

    class Bent:
        axes = (_Axis(low, high - low + 1),)

        def along(self, number: int, box: object) -> Curve:
            return curve

    trimmed = BoxSlice(Bent(), 0, (None,)).curve  # type: ignore[arg-type]
    doubled = BoxSlice(Bent(), 0, (None, None)).curve  # type: ignore[arg-type]

    cells = np.arange(high - low + 1, dtype=np.uint64)
    expected = curve.between(np.full_like(cells, low), cells + np.uint64(low))
    assert trimmed.upto(cells) == pytest.approx(expected)
    assert doubled.upto(cells) == pytest.approx(2 * expected)
    assert int(trimmed.ends[-1]) == high - low


class _Axis:
    def __init__(self, before: int, size: int) -> None:
        self.before, self.size = before, size


@given(ROWS, st.integers(1, 6), st.integers(1, 12))
@settings(max_examples=40)
def test_heat_counts_pairs_of_bins(together: Publish, rows: list[Row], first: int, second: int) -> None:
    """Every pair of bins holds the rows that are in both, and has the error of that box."""
    release = together(**_columns(rows))

    heat = release.histogram("pay", "age", bins=(first, second), town={"Rome", "Bari"})

    shape = min(first, 21), min(second, 10)
    assert (heat.counts.values.shape, len(heat)) == (shape, shape[0] * shape[1])
    for i, j in product(range(shape[0]), range(shape[1])):
        box: dict[str, Any] = {
            name: (heat.lows[side][place], heat.highs[side][place])
            for side, (name, place) in enumerate((("pay", i), ("age", j)))
        }
        single = release.count(box, town={"Rome", "Bari"})
        assert heat.counts.values[i, j] == single.value
        assert heat.counts.error[i, j] == pytest.approx(single.error)


def test_heat_agrees_with_the_columns(together: Publish) -> None:
    """Without special cells, the sums of its rows and columns are the histograms of the two columns."""
    rows: list[Row] = [(i % 10, (7 * i) % 21, "Rome") for i in range(100)]
    release = together(**_columns(rows))

    heat = release.histogram("age", "pay", 5)

    assert heat.counts.values.sum(axis=1).tolist() == release.histogram("age", 5).counts.values.tolist()
    assert heat.counts.values.sum(axis=0).tolist() == release.histogram("pay", 5).counts.values.tolist()
    assert (heat.columns, heat.lows[0], heat.highs[1][-1]) == (("age", "pay"), [0, 2, 4, 6, 8], 20)


def test_heat_prints_as_a_table(together: Publish) -> None:
    """First values of the bins at the sides, of many bins the first and the last, and the error below."""
    release = together(a=(Integer(0, 99), [0, 99, 99]), b=(TOWN, ["Rome", "Pisa", "Oslo"]))

    heat = release.histogram("a", "b", bins=(10, 3))

    assert repr(heat) == "Heat(10 bins of a by 3 of b)"
    assert str(heat).splitlines() == [
        "a / b  Rome  Bari  Pisa",
        "0         1     0     0",
        "10        0     0     0",
        "20        0     0     0",
        "30        0     0     0",
        "...     ...   ...   ...",
        "60        0     0     0",
        "70        0     0     0",
        "80        0     0     0",
        "90        0     0     1",
        "first values of the bins, and rows ± 6.2 (95%)",
    ]


WRONG: list[tuple[Callable[[Release], object], str]] = [
    (
        lambda release: release.quantile("pay", 0.5, pay=(0, 9)),
        r"^column must be asked about once.*got 'pay'",
    ),
    (lambda release: release.histogram("pay", "pay"), r"^column must be asked about once.*got 'pay'"),
    (lambda release: release.histogram("pay", "age", age=3), r"^column must be asked about once.*got 'age'"),
    (lambda release: release.quantile("payy", 0.5, age=3), r"^column must be one of 'age', 'pay', 'town'"),
    (lambda release: release.quantile(["pay"], 0.5), r"^column must be one of"),  # type: ignore[call-overload]
    (lambda release: release.quantile("pay", 2, age=3), r"^q must lie in"),
    (lambda release: release.quantile("pay", 0.5, age=33), r"^age must lie within the declared bounds"),
    (lambda release: release.cdf("pay", [None], age=3), r"^values must not miss a value"),
    (lambda release: release.cdf("pay", closed="none"), r"^closed must be one of"),  # type: ignore[arg-type]
    (lambda release: release.histogram("pay", "age", closed="no"), r"^closed must be"),  # type: ignore[call-overload]
    (lambda release: release.histogram("pay", bins=0, age=3), r"^bins must be"),
    (lambda release: release.histogram("pay", "age", bins=(3, 0)), r"^bins must be"),
    (lambda release: release.histogram("pay", "age", bins=(3, 4, 5)), r"^bins must be one number or two"),  # type: ignore[arg-type]
    (lambda release: release.histogram("pay", "age", bins="x"), r"^bins must be"),  # type: ignore[call-overload]
    (lambda release: release.histogram("pay", where={"age": 3}, age=3), r"^column must be asked for once"),
    (
        lambda release: release.quantile("pay", 0.5, region=HalfSpace({"age": 1}, at_most=3)),
        r"^region must not be a shape here, .*; ask for the count of a shape",
    ),
    (
        lambda release: release.histogram(("pay", "age")),  # type: ignore[call-overload]
        r"^column must be one of .*; pass names one by one, as text",
    ),
]


@pytest.mark.parametrize(("ask", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_conditions_name_what_to_do(
    together: Publish, ask: Callable[[Release], object], message: str
) -> None:
    """The parameter, the rule and the fix, for questions with conditions."""
    release = together(**_columns([(1, 5, "Rome")]))

    with pytest.raises(InvalidParameter, match=message):
        ask(release)


def test_tables_of_too_many_pairs_are_refused(together: Publish) -> None:
    """The product of the bins is bounded."""
    release = together(a=(Integer(0, 1099), []), b=(Integer(0, 1099), []))

    with pytest.raises(InvalidParameter, match=r"^bins must make at most 2\^20 pairs, got '1100 by 1100'"):
        release.histogram("a", "b", bins=1100)


def test_a_shipped_grid_answers_in_the_language_of_columns() -> None:
    """Without noise, every question to a grid has the answer of the rows."""
    rows: list[Row] = [(i % 12 - 1, (7 * i) % 21, ["Rome", "Oslo", "Pisa"][i % 3]) for i in range(120)]
    release = _grid(rows)
    adults = [row for row in rows if row[0] is not None and 3 <= row[0] <= 9]

    assert release.count().value == 120
    assert release.count(age=(3, 9)).value == len(adults)
    assert release.count(age=(3, None), town=OTHER).value == sum(
        (age or 0) >= 3 and town == "Oslo" for age, _, town in rows
    )
    median = release.quantile("pay", 0.5, age=(3, 9)).value
    pays = sorted(pay for _, pay, _ in adults if pay is not None)
    assert median == pays[len(pays) // 2 - 1]
    heat = release.histogram("age", "pay", bins=(10, 21))
    assert heat.counts.values.sum() == release.count(age=(0, 9), pay=(0, 20)).value
    made = release.synthesize()
    assert sorted(map(str, zip(*made.values(), strict=True))) == sorted(map(str, map(_as_made, rows)))


def _as_made(row: Row) -> tuple[object, ...]:
    age, pay, town = row
    return age if age is not None and 0 <= age <= 9 else None, pay, town if town in TOWN.labels else None


def _grid(rows: list[Row]) -> Release:
    domains: tuple[Domain, ...] = (AGE, PAY, TOWN)
    axes = [Axis.of(domain) for domain in domains]
    columns = zip(domains, zip(*rows, strict=True), strict=True)
    places = [_places(domain, list(column)) for domain, column in columns]
    points = Points.from_rows(np.array(places).T, axes=axes)
    boxes = GridCounts(axes=axes, epsilon=1).release(points, noise=ZeroNoise())
    view = BoxView(columns=("age", "pay", "town"), domains=domains, boxes=boxes, mechanism="grid")
    return Release(views=(view,), guarantee=None, provenance=Provenance(version="0", day="2026-11-15"))


def _places(domain: Domain, rows: list[object]) -> list[int]:
    beside, shift = Axis.specials(domain), Axis.of(domain).before
    cells = domain.encode(rows).tolist()
    return [beside[cell] if isinstance(cell, str) else cell + shift for cell in cells]
