"""Public regions: shares of boxes against exact areas, volumes and fine grids; what is refused."""

from __future__ import annotations

import datetime
from fractions import Fraction
from itertools import product
from math import factorial, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain import Category, Date, Domain, Integer, Real, Timestamp
from partita.domain.axis import Axis
from partita.domain.base import NULL
from partita.errors import InvalidParameter
from partita.public.boxes.base import BoxTerm, Region
from partita.public.boxes.regions import HalfSpace, PlaneSide, Polygon, PolygonInside, crosses_itself
from partita.public.conditions import OneOf, Range
from partita.public.views import BoxView
from partita.testing import EndlessTape, ZeroNoise, tape_noise
from partita.trusted.mechanisms.boxes import GridCounts, RankBoxes, SpendingBoxes
from partita.trusted.secret import Points

Point = tuple[Fraction, Fraction]
ARROW = [(0, 0), (8, 0), (8, 3), (4, 1), (1, 7)]
SPIRAL = [(0, 0), (9, 0), (9, 9), (2, 9), (2, 4), (5, 4), (5, 6), (4, 6), (4, 8), (8, 8), (8, 1), (0, 1)]


def all_boxes(sizes: tuple[int, ...]) -> tuple[Any, Any]:
    """Every box of a small grid: its lowest and its highest cells."""
    ranges = [[(a, b) for a in range(size) for b in range(a, size)] for size in sizes]
    boxes = list(product(*ranges))
    lows = np.array([[low for low, _ in box] for box in boxes], np.uint64)
    return lows, np.array([[high for _, high in box] for box in boxes], np.uint64)


def exact_below(factors: list[Fraction], limit: Fraction, low: list[int], high: list[int]) -> Fraction:
    """The share of a box with factors . u <= limit, by inclusion and exclusion in exact numbers."""
    widths = [b - a + 1 for a, b in zip(low, high, strict=True)]
    reach = [abs(f) * w for f, w in zip(factors, widths, strict=True)]
    ends = [a if f > 0 else b + 1 for f, a, b in zip(factors, low, high, strict=True)]
    room = limit - sum((f * end for f, end in zip(factors, ends, strict=True)), Fraction(0))
    total = Fraction(0)
    for chosen in product((0, 1), repeat=len(reach)):
        left = room - sum((r for r, taken in zip(reach, chosen, strict=True) if taken), Fraction(0))
        total += (-1) ** sum(chosen) * max(Fraction(0), left) ** len(reach)
    return total / (factorial(len(reach)) * prod(reach))


def cut_off(corners: list[Point], axis: int, bound: int, sign: int) -> list[Point]:
    """The part of a polygon on one side of a straight line along an axis [Sutherland and Hodgman]."""
    kept: list[Point] = []
    for one, two in zip(corners, [*corners[1:], *corners[:1]], strict=True):
        inside, after = (sign * (point[axis] - bound) >= 0 for point in (one, two))
        if inside:
            kept.append(one)
        if inside != after:
            part = (bound - one[axis]) / (two[axis] - one[axis])
            kept.append((one[0] + part * (two[0] - one[0]), one[1] + part * (two[1] - one[1])))
    return kept


def exact_inside(corners: list[Point], low: list[int], high: list[int]) -> Fraction:
    """The share of a box inside a polygon: cut off at the box's four sides, in exact numbers."""
    for axis in (0, 1):
        corners = cut_off(cut_off(corners, axis, low[axis], 1), axis, high[axis] + 1, -1)
    steps = zip(corners, [*corners[1:], *corners[:1]], strict=True)
    twice = sum((a[0] * b[1] - b[0] * a[1] for a, b in steps), Fraction(0))
    return abs(twice) / 2 / ((high[0] - low[0] + 1) * (high[1] - low[1] + 1))


def fractions(corners: list[Any]) -> list[Point]:
    return [(Fraction(x), Fraction(y)) for x, y in corners]


def same_as_exact(shares: Any, exact: list[Fraction], tolerance: float) -> None:
    """Near the exact shares, and 0 or 1 just where these are."""
    assert np.abs(shares - np.array(exact, dtype=float)).max() <= tolerance
    assert [share in (0.0, 1.0) for share in shares.tolist()] == [share in (0, 1) for share in exact]


@pytest.mark.parametrize(
    ("factors", "limit"),
    [
        ((1, 1), 7),
        ((1, -1), 0),
        ((-2, 1), "-1/2"),
        ((1, "1/1000"), "5/2"),
        (("1/3", "1/7"), "1/2"),
        ((-1, -1), -9),
    ],
)
def test_half_planes_cut_every_small_box_exactly(factors: tuple[Any, Any], limit: Any) -> None:
    """On all boxes of a 6 x 5 grid the share is the exact one, and exactly 0 or 1 where nothing is cut."""
    exact_factors = [Fraction(factor) for factor in factors]
    largest = max(map(abs, exact_factors))
    lows, highs = all_boxes((6, 5))
    side = PlaneSide(np.array([float(f / largest) for f in exact_factors]), float(Fraction(limit) / largest))

    exact = [
        exact_below(exact_factors, Fraction(limit), low, high)
        for low, high in zip(lows.tolist(), highs.tolist(), strict=True)
    ]

    same_as_exact(side.shares(lows, highs), exact, 1e-9)


@given(data=st.data())
def test_half_spaces_of_up_to_six_axes_are_near_the_exact_volume(data: st.DataObject) -> None:
    """Whatever the factors, also tiny ones, the share is within 10^-5 of the exact volume."""
    axes = data.draw(st.integers(1, 6))
    small = st.sampled_from(
        [Fraction(1), Fraction(1, 3), Fraction(1, 50), Fraction(1, 10**4), Fraction(1, 10**9)]
    )
    signs = st.sampled_from([1, -1])
    factors = [data.draw(small) * data.draw(signs) for _ in range(axes)]
    low = [data.draw(st.integers(0, 20)) for _ in range(axes)]
    high = [start + data.draw(st.sampled_from([0, 1, 9, 500])) for start in low]
    middle = sum(
        (f * Fraction(a + b + 1, 2) for f, a, b in zip(factors, low, high, strict=True)), Fraction(0)
    )
    limit = middle + data.draw(st.fractions(-2, 2, max_denominator=64))
    largest = max(map(abs, factors))
    side = PlaneSide(np.array([float(f / largest) for f in factors]), float(limit / largest))

    (share,) = side.shares(np.array([low], np.uint64), np.array([high], np.uint64)).tolist()

    assert abs(share - float(exact_below(factors, limit, low, high))) < 1e-5
    assert 0.0 <= share <= 1.0


@pytest.mark.parametrize(
    "corners",
    [
        ARROW,
        ARROW[::-1],
        SPIRAL,
        [(1, 1), (5, 1), (5, 5), (1, 5)],
        [("1/2", "1/3"), ("11/3", "1/7"), (3, 6)],
        [(-50, -50), (60, -50), (60, 70)],
        [(2, -9), ("9/4", 99), ("5/2", -9)],
        [(-5, -5), (-1, -5), (-1, -1)],
    ],
)
@pytest.mark.spread(2)
def test_polygons_cut_every_small_box_exactly(corners: list[Any]) -> None:
    """On all boxes of a 9 x 8 grid the share is the exact one, and exactly 0 or 1 where no edge crosses."""
    exact_corners = fractions(corners)
    lows, highs = all_boxes((9, 8))

    exact = [
        exact_inside(exact_corners, low, high)
        for low, high in zip(lows.tolist(), highs.tolist(), strict=True)
    ]

    same_as_exact(PolygonInside(exact_corners).shares(lows, highs), exact, 1e-12)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=3, max_size=9))
def test_any_simple_polygon_is_measured_exactly(corners: list[Any]) -> None:
    """A polygon is refused as crossing itself, or its shares are the exact ones."""
    exact_corners = fractions(corners)
    lows, highs = all_boxes((4, 4))
    lows, highs = lows * np.uint64(3), highs * np.uint64(3) + np.uint64(2)

    if not crosses_itself(exact_corners):
        exact = [
            exact_inside(exact_corners, low, high)
            for low, high in zip(lows.tolist(), highs.tolist(), strict=True)
        ]
        same_as_exact(PolygonInside(exact_corners).shares(lows, highs), exact, 1e-12)


def test_polygons_far_out_on_a_long_axis_are_measured_to_parts_of_a_cell() -> None:
    """Around position 2^63 the share of a triangle is still exact: nothing is lost when corners are moved."""
    far = 2**63 - 10
    corners = [(Fraction(far + x), Fraction(y)) for x, y in ((0, 0), (8, 0), (0, 8))]
    lows, highs = all_boxes((6, 6))
    moved = lows + np.array([far, 0], np.uint64), highs + np.array([far, 0], np.uint64)

    near = PolygonInside(fractions([(0, 0), (8, 0), (0, 8)])).shares(lows, highs)

    assert PolygonInside(corners).shares(*moved).tolist() == near.tolist()


def test_boxes_next_to_a_plane_far_out_are_never_taken_for_whole() -> None:
    """Where positions are too long for floats, a box that the plane cuts has a share between 0 and 1."""
    side = PlaneSide(np.array([1.0, -1.0]), 0.0)
    lows = np.array([[2**62 + step, 2**62] for step in range(-50, 51)], np.uint64)

    shares = side.shares(lows, lows)

    assert bool(((shares > 0.0) & (shares < 1.0)).all())


DOMAINS: tuple[Domain, ...] = (
    Integer(-5, 14),
    Real(0, 10, step="0.5"),
    Date("2024-01-01", "2024-01-31"),
    Timestamp("2024-01-01", "2024-01-02", "1h", zone="Europe/Rome"),
    Category(["a", "b"]),
)
COLUMNS = ("age", "price", "day", "hour", "kind")


def cell(**places: int) -> tuple[Any, Any]:
    """All cells at the given positions, the other axes whole."""
    widths = [domain.size + len(domain.specials) for domain in DOMAINS]
    low = [places.get(name, 0) for name in COLUMNS]
    high = [places.get(name, width - 1) for name, width in zip(COLUMNS, widths, strict=True)]
    return np.array([low], np.uint64), np.array([high], np.uint64)


def share(region: Any, **places: int) -> float:
    bound: Region = region.bound(COLUMNS, DOMAINS)
    return float(bound.shares(*cell(**places))[0])


@pytest.mark.parametrize(
    ("region", "name", "position"),
    [
        (HalfSpace({"age": 1}, at_most=3), "age", 3 + 5 + 1),
        (HalfSpace({"price": 1}, at_most="2.5"), "price", 5 + 1),
        (
            HalfSpace({"day": 1}, at_most=(datetime.date(2024, 1, 9) - datetime.date(1970, 1, 1)).days),
            "day",
            8 + 1,
        ),
        (
            HalfSpace(
                {"hour": 1},
                at_most=int(datetime.datetime(2024, 1, 1, 5, 30, tzinfo=datetime.UTC).timestamp()),
            ),
            "hour",
            6 + 1,
        ),
    ],
)
def test_values_lie_in_the_middle_of_their_cells(region: HalfSpace, name: str, position: int) -> None:
    """A half-space up to a value takes half of its cell, all of those before, and none behind."""
    found = [share(region, **{name: position + step}) for step in (-1, 0, 1)]

    assert found == [1.0, 0.5, 0.0]


def test_special_cells_are_outside() -> None:
    """No region of a column holds its special cells; those of other columns do not matter."""
    region = HalfSpace({"age": 1}, at_most=1000)

    assert [share(region, age=place) for place in (0, 1, 20, 21, 22, 23)] == [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    assert share(region) == pytest.approx(20 / 24)
    assert share(region, age=4, price=0) == 1.0


def test_polygons_are_written_in_values() -> None:
    """Corners are numbers, dates or times as the columns have them; the last may repeat the first."""
    corners = [("2024-01-02", 1), (datetime.date(2024, 1, 4), 1), ("2024-01-04", "3.0"), ("2024-01-02", 3)]
    square = Polygon("day", "price", [*corners, corners[0]])

    assert square.corners == tuple(corners)
    assert [share(square, day=day, price=5) for day in (1, 2, 3, 4, 5)] == [0.0, 0.5, 1.0, 0.5, 0.0]
    assert share(square, day=2, price=3) == 0.25


def test_polygons_in_time_are_read_on_the_clock_of_the_column() -> None:
    """A time without an offset is a reading in the column's zone, and a slot is just that slot."""
    box = Polygon(
        "hour",
        "age",
        [("2024-01-01T03:00", 0), ("2024-01-01T05:30", 0), ("2024-01-01T05:30", 9), ("2024-01-01T02:00Z", 9)],
    )

    assert [share(box, hour=1 + hour, age=8) for hour in (2, 3, 4, 5, 6)] == [0.0, 1.0, 1.0, 0.5, 0.0]


def test_releases_count_regions_by_shares_of_cells() -> None:
    """Without noise a diagonal takes all cells below it, half of those on it, and no special cell."""
    columns, domains = ("a", "b"), (Integer(0, 3), Integer(0, 3))
    axes = tuple(Axis.of(domain) for domain in domains)
    rows = [[i, j] for i in range(axes[0].width) for j in range(axes[1].width)]
    grid = GridCounts(axes=axes, epsilon=1).release(Points.from_rows(rows, axes=axes), noise=ZeroNoise())

    below = grid.region(HalfSpace({"a": 1, "b": -1}, at_most=0).bound(columns, domains), grid.everything)
    inside = Polygon("a", "b", [(-1, -1), (-1, 4), (4, 4)]).bound(columns, domains)

    assert below.value == 6 + 4 / 2
    assert grid.region(inside, grid.everything).value == pytest.approx(8)
    assert grid.region(inside, BoxTerm((1, 1), (1, 4))).value == pytest.approx(3.5)


@pytest.mark.parametrize("mechanism", [RankBoxes, SpendingBoxes])
def test_a_region_that_is_a_range_counts_as_the_range(mechanism: Any) -> None:
    """Special cells of its columns are left out by their own counts, whatever lies beside them."""
    columns, domains = ("a", "b"), (Integer(0, 99), Integer(0, 9))
    axes = tuple(Axis.of(domain) for domain in domains)
    places = np.array([[place, place % 14] for place in range(104)])
    counts = np.where((places[:, 0] < 1) | (places[:, 0] > 100), 900, 10)
    points = Points.from_rows(places, axes=axes, counts=counts)
    boxes = mechanism(axes=axes, epsilon=1).release(points, noise=tape_noise(EndlessTape("region")))
    view = BoxView(columns=columns, domains=domains, boxes=boxes, mechanism=boxes.kind)

    for top, others in ((99, {}), (39, {}), (39, {"b": Range(2, 5)}), (39, {"b": OneOf((1, 7))})):
        region = view.within(HalfSpace({"a": 1}, at_most=top + 0.5), others)
        count = view.count({"a": Range(0, top), **others})
        assert region.value == pytest.approx(count.value, rel=0.02, abs=2)

    nothing = view.within(HalfSpace({"a": 1}, at_most=99), {"a": NULL})
    assert (nothing.value, nothing.worst()) == (0.0, (0.0, 0.0))


SQUARE = [(0, 0), (0, 1), (1, 1), (1, 0)]


@pytest.mark.parametrize(
    ("make", "parameter"),
    [
        (lambda: HalfSpace({}, at_most=1), "weights"),
        (lambda: HalfSpace({"age": 0}, at_most=1), "weights"),
        (lambda: HalfSpace({"age": float("nan")}, at_most=1), "weights"),
        (lambda: HalfSpace({1: 1}, at_most=1), "weights"),  # type: ignore[dict-item]
        (lambda: HalfSpace([("age", 1)], at_most=1), "weights"),  # type: ignore[arg-type]
        (lambda: HalfSpace({str(i): 1 for i in range(7)}, at_most=1), "weights"),
        (lambda: HalfSpace({"age": 1}, at_most=float("inf")), "at_most"),
        (lambda: HalfSpace({"age": 1}, at_most="10e300"), "at_most"),
        (lambda: HalfSpace({"kind": 1}, at_most=0).bound(COLUMNS, DOMAINS), "region"),
        (lambda: HalfSpace({"wage": 1}, at_most=0).bound(COLUMNS, DOMAINS), "region"),
        (lambda: Polygon("age", "age", SQUARE), "y"),
        (lambda: Polygon("age", 7, SQUARE), "y"),  # type: ignore[arg-type]
        (lambda: Polygon("age", "price", SQUARE[:2]), "corners"),
        (lambda: Polygon("age", "price", [*SQUARE[:2], SQUARE[0]]), "corners"),
        (lambda: Polygon("age", "price", [(0, 0, 0)] * 4), "corners"),  # type: ignore[list-item]
        (lambda: Polygon("age", "price", "corners"), "corners"),  # type: ignore[arg-type]
        (lambda: Polygon("age", "price", [(i, i * i) for i in range(1001)]), "corners"),
        (
            lambda: Polygon("age", "price", [(0, 0), (1, 1), (1, 0), (0, 1)]).bound(COLUMNS, DOMAINS),
            "corners",
        ),
        (lambda: Polygon("age", "price", [(0, 0), (1, 1), (2, 2)]).bound(COLUMNS, DOMAINS), "corners"),
        (lambda: Polygon("age", "price", [*SQUARE[:2], *SQUARE[1:]]).bound(COLUMNS, DOMAINS), "corners"),
        (lambda: Polygon("age", "price", [*SQUARE[:3], (10**30, 0)]).bound(COLUMNS, DOMAINS), "corners"),
        (lambda: Polygon("age", "price", [*SQUARE[:3], (1, float("nan"))]).bound(COLUMNS, DOMAINS), "price"),
        (lambda: Polygon("day", "price", SQUARE).bound(COLUMNS, DOMAINS), "day"),
    ],
)
def test_wrong_regions_are_refused(make: Any, parameter: str) -> None:
    """Each error names the parameter, or the column, whose rule is broken."""
    with pytest.raises(InvalidParameter) as refused:
        make()

    assert refused.value.parameter == parameter
