"""Questions about several columns count what rows fulfil all conditions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita.domain import Category, Integer
from partita.domain.base import ABOVE, BELOW, INVALID, NULL, OTHER
from partita.errors import InvalidParameter, InvalidRelease
from partita.public.boxes.regions import HalfSpace, Polygon
from partita.public.conditions import Closed, OneOf, Range
from partita.public.release import Release
from partita.public.views import MOST_BOXES, BoxView, find_boxes

Publish = Callable[..., Release]
Row = tuple[object, object]

DIGIT, TOWN = Integer(0, 5), Category(["Rome", "Bari", "Turin", "Pisa"])
ROWS = st.lists(
    st.tuples(
        st.integers(-2, 8) | st.none() | st.just("?"),
        st.sampled_from(["Rome", "Bari", "Turin", "Pisa", "Oslo", None]),
    ),
    max_size=40,
)
PAIR = st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda pair: (min(pair), max(pair)))
END = st.integers(-3, 9)
DIGITS = (
    PAIR
    | st.tuples(st.none(), END)
    | st.tuples(END, st.none())
    | st.just((None, None))
    | st.sets(st.sampled_from([0, 5, NULL, INVALID, BELOW, ABOVE]))
    | st.integers(0, 5)
    | st.sampled_from([NULL, BELOW])
)
TOWNS = (
    st.sampled_from(["Rome", "Pisa", OTHER, NULL])
    | st.lists(st.sampled_from(["Rome", "Bari", "Turin"]), max_size=3)
    | st.sets(st.sampled_from(["Rome", "Turin", OTHER, NULL]))
    | st.sampled_from([("Rome", "Turin"), ("Bari", None), (None, None)])
)


def _digit(row: object, asked: object, closed: str = "both") -> bool:
    """Whether a condition on the digit counts a row: a plain reading of what the docstrings say."""
    special = NULL if row is None else INVALID if row == "?" else None
    if isinstance(row, int) and not 0 <= row <= 5:
        special = BELOW if row < 0 else ABOVE
    if not isinstance(asked, tuple):
        members = asked if isinstance(asked, set) else {asked}
        place = row if special is None else special
        return any(type(place) is type(member) and place == member for member in members)
    low, high = asked
    if special is not None:
        return (special is BELOW and low is None) or (special is ABOVE and high is None)
    assert isinstance(row, int)
    after = low is None or row > low or (row == low and closed in ("both", "left"))
    return after and (high is None or row < high or (row == high and closed in ("both", "right")))


def _town(row: object, asked: object) -> bool:
    place = NULL if row is None else row if row in TOWN.labels else OTHER
    if isinstance(asked, tuple):
        labels = list(TOWN.labels)
        first = 0 if asked[0] is None else labels.index(asked[0])
        last = len(labels) - 1 if asked[1] is None else labels.index(asked[1])
        return place in labels[first : last + 1]
    return place in (asked if isinstance(asked, set | list) else [asked])


def _columns(rows: Sequence[Row]) -> dict[str, Any]:
    return {"digit": (DIGIT, [digit for digit, _ in rows]), "town": (TOWN, [town for _, town in rows])}


@given(ROWS, DIGITS, TOWNS, st.sampled_from(["both", "left", "right", "neither"]))
def test_boxes_count_who_fulfils_all_conditions(
    together: Publish, rows: list[Row], digit: object, town: object, closed: Closed
) -> None:
    """Ranges, open ends, sets, labels and special cells of two columns, in every combination."""
    release = together(**_columns(rows))

    found = release.count(digit=digit, town=town)

    assert found.value == sum(_digit(row[0], digit) and _town(row[1], town) for row in rows)
    alone = release.count(digit=digit, closed=closed)
    assert alone.value == sum(_digit(row[0], digit, closed) for row in rows)
    mixed = release.count(digit=digit, town=town, closed={"digit": closed})
    assert mixed.value == sum(_digit(row[0], digit, closed) and _town(row[1], town) for row in rows)
    assert release.count(town=town).value == sum(_town(row[1], town) for row in rows)


def test_a_column_that_is_not_asked_for_is_not_constrained(together: Publish) -> None:
    """Who is null, invalid, other or out of bounds in one column is counted by another."""
    release = together(**_columns([(3, None), (3, "Oslo"), (3, "Rome"), (None, "Rome"), (9, "Rome")]))

    assert release.count(digit=3).value == 3.0
    assert release.count(town="Rome").value == 3.0
    assert release.count(digit=(3, None), town="Rome").value == 2.0
    assert release.count().value == 5.0


@given(ROWS, PAIR, st.integers(0, 4))
def test_parts_of_a_split_add_up_to_the_whole(
    together: Publish, rows: list[Row], pair: tuple[int, int], cut: int
) -> None:
    """A box is the sum of the boxes on the two sides of a cut, and a marginal that of its labels."""
    release = together(**_columns(rows))
    low, high = pair

    def count(first: int | None, last: int | None) -> float:
        return release.count(digit=(first, last), town=["Rome", "Pisa"]).value

    assert count(None, cut) + count(cut + 1, None) == count(None, None)
    towns: list[object] = [*TOWN.labels, OTHER, NULL]
    whole = release.count(digit=(low, high)).value
    assert sum(release.count(digit=(low, high), town=town).value for town in towns) == whole


def test_empty_conditions_count_nobody_for_certain(together: Publish) -> None:
    """A range out of bounds, or an empty set, in any column: exactly zero."""
    release = together(3.0, **_columns([(1, "Rome")]))

    for asked in ({"digit": (7, 9), "town": "Rome"}, {"digit": 1, "town": set()}, {"digit": (6, 9)}):
        nobody = release.count(asked)
        assert (nobody.value, nobody.error, nobody.worst(0.01)) == (0.0, 0.0, (0.0, 0.0))


def test_the_answer_is_one_linear_question(together: Publish) -> None:
    """A set of labels has the error of its cells; what a difference counts twice cancels, noise and all."""
    release = together(2.0, **_columns([(1, "Rome"), (2, "Rome"), (2, "Turin")]))

    both = release.count(digit=(1, 2), town=["Rome", "Turin"])
    assert (both.value, both.error) == (3.0, math.sqrt(4))
    assert both.worst(0.05) == (1.0, 5.0)
    more = release.difference({"digit": (1, 2), "town": "Rome"}, {"digit": (2, 3), "town": "Rome"})
    assert (more.value, more.error) == (1.0 + 0.0, math.sqrt(2))
    assert release.difference({"digit": (1, 2)}, {"digit": (1, 2)}).error == 0.0


def test_open_ends_touch_their_special_cells() -> None:
    """Below and above lie beside the cells, so that a range with an open end is one box."""
    (box,) = find_boxes({"digit": DIGIT, "town": TOWN}, {"digit": Range(None, None)})

    assert (box.low, box.high) == ((0, 0), (7, 5))
    assert len(find_boxes({"digit": DIGIT}, {"digit": OneOf((BELOW, 0, 5, ABOVE))})) == 2


def test_too_many_boxes_are_refused(together: Publish) -> None:
    """Sets multiply: their number is bounded, and the error says how far it went."""
    key = Integer(0, 299)
    release = together(a=(key, []), b=(key, []))
    scattered = set(range(0, 299, 2))

    with pytest.raises(
        InvalidParameter, match=rf"^where must make up at most {MOST_BOXES:,} boxes, got 22500"
    ):
        release.count(a=scattered, b=scattered)
    assert release.count(a=scattered, b=set(range(0, 40, 2))).value == 0.0


@given(
    ROWS,
    st.lists(
        st.tuples(PAIR | st.tuples(st.none(), END) | st.tuples(END, st.none()), st.sampled_from(TOWN.labels))
    ),
    st.sampled_from(["both", "left", "right", "neither"]),
)
def test_many_boxes_equal_single_ones(
    together: Publish, rows: list[Row], boxes: list[tuple[tuple[Any, Any], str]], closed: Closed
) -> None:
    """Values and errors of `counts` over two columns are those of `count`, box by box."""
    release = together(**_columns(rows))
    lows, highs, towns = (
        [box[0] for box, _ in boxes],
        [box[1] for box, _ in boxes],
        [town for _, town in boxes],
    )

    found = release.counts(digit=(lows, highs), town=towns, closed=closed)

    single = [release.count(digit=box, town=town, closed=closed) for box, town in boxes]
    assert found.values.tolist() == [answer.value for answer in single]
    assert found.error.tolist() == pytest.approx([answer.error for answer in single])


def test_one_condition_goes_with_many_boxes(together: Publish) -> None:
    """One range, one label, a set or a special cell is repeated; arrays must have one length."""
    release = together(**_columns([(1, "Rome"), (2, "Bari"), (9, "Oslo"), (None, None)]))

    def counts(**asked: object) -> list[float]:
        return np.asarray(release.counts(**asked)).tolist()  # type: ignore[arg-type, no-any-return]

    assert counts(digit=([0, 2], [1, None]), town="Rome") == [1, 0]
    assert counts(digit=([0, 2], [1, None]), town=("Rome", "Bari")) == [1, 1]
    assert counts(digit=([0, 2], [1, None]), town={"Bari", OTHER}) == [0, 2]
    assert counts(digit=NULL, town={NULL}) == [1]
    assert counts(digit=(2, None), town=["Bari", "Rome", "Turin"]) == [1, 0, 0]
    assert counts(digit=([], []), town="Rome") == []
    assert release.counts(digit=([0, 7], [1, 9])).error.tolist() == [math.sqrt(2 * 6), 0.0]
    with pytest.raises(
        InvalidParameter, match=r"^town must have as many ranges as the other columns.*'3 and 2'"
    ):
        counts(digit=([0, 2], [1, None]), town=["Bari", "Rome", "Turin"])


def test_a_hundred_thousand_boxes(together: Publish) -> None:
    """Arrays go to the release as arrays: one call for all boxes."""
    release = together(**_columns([(1, "Rome")] * 3))
    lows = np.tile(np.array([0, 1, 2, 5]), 25_000)
    view = release.view("digit", "town")
    assert isinstance(view, BoxView)
    calls: list[tuple[int, ...]] = []

    def counted(lows: Any, highs: Any) -> Any:
        calls.append(lows.shape)
        return np.ones(len(lows))

    object.__setattr__(view.boxes, "counts", counted)
    found = release.counts(digit=(lows, 5), town="Rome", closed="left")

    assert calls == [(75_000, 2)]
    assert found.values[:4].tolist() == [1, 1, 1, 0]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"digitt": 3}, r"^column must be one of 'digit', 'town', got 'digitt'; did you mean 'digit'\?"),
    ({"digit": 3, "age": 4}, r"^column must be one of 'digit', 'town', got 'age'"),
    ({"digit": (4, 3), "town": "Rome"}, r"^digit must go from low to high, got '4 to 3'"),
    ({"digit": 3, "town": "Oslo"}, r"^town must be one of"),
    ({"digit": 3, "town": None}, r"^town must say which values, got None"),
    ({"digit": 9, "town": "Rome"}, r"^digit must lie within the declared bounds"),
    ({"digit": OTHER, "town": "Rome"}, r"^digit must ask for a special cell that Integer columns have"),
    ({"digit": 3, "town": ABOVE}, r"^town must ask for a special cell that Category columns have"),
    ({"digit": (1, 2), "closed": {"digit": "most"}}, r"^closed must be one of 'both'"),
    (
        {"digit": (1, 2), "closed": {"town": "left"}},
        r"^closed must name columns that are asked for, got 'town'",
    ),
    ({"digit": (1, 2), "town": "Rome", "closed": "most"}, r"^closed must be one of 'both'"),
]


@pytest.mark.parametrize(("asked", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_questions_name_what_to_do(together: Publish, asked: dict[str, Any], message: str) -> None:
    """The parameter, the rule, what was given, and the fix, for a question about several columns."""
    release = together(**_columns([(1, "Rome")]))

    with pytest.raises(InvalidParameter, match=message):
        release.count(**asked)


def test_columns_that_are_apart_name_the_views(together: Publish) -> None:
    """No view has them together: the error lists what there is, and what to publish."""
    columns = {**_columns([(1, "Rome")]), "size": (DIGIT, [2])}
    release = together(views=[("digit", "town"), ("size",)], **columns)

    with pytest.raises(
        InvalidParameter,
        match=r"^where must name columns that were released together, and those are \('digit', 'town'\) and "
        r"\('size'\), got 'town, size'; .*publish them together: views=\[\('town', 'size'\), \.\.\.\]",
    ):
        release.count(town="Rome", size=2)
    with pytest.raises(InvalidParameter, match=r"^where must name columns that were released together"):
        release.histogram("digit", "size")
    with pytest.raises(InvalidParameter, match=r"^where must name a column out of 'digit', 'town', 'size'"):
        release.counts()


def test_the_narrowest_view_answers(together: Publish) -> None:
    """Of the views that have all columns asked for the one of fewest columns answers, the first on ties."""
    columns = {name: (DIGIT, [1]) for name in "abc"}
    release = together(views=[("a", "b", "c"), ("a", "c"), ("b", "a"), ("c",)], **columns)

    def answering(*asked: str) -> tuple[str, ...]:
        return release.view(*asked).columns

    assert release.columns == ("a", "b", "c")
    assert answering("a") == answering("c", "a") == ("a", "c")
    assert answering("a", "b") == ("b", "a")
    assert answering("c") == ("c",)
    assert answering("b", "c") == ("a", "b", "c")


def test_regions_count_their_share_of_cells(together: Publish) -> None:
    """Half-spaces and polygons, alone or with conditions, on the view that has all columns."""
    rows = [(x, y) for x in range(6) for y in range(6)]
    columns = {"x": (DIGIT, [x for x, _ in rows]), "y": (DIGIT, [y for _, y in rows])}
    release = together(views=[("x",), ("x", "y")], **columns)
    below, corner = (
        HalfSpace({"x": 1, "y": 1}, at_most=5.5),
        Polygon("x", "y", [(-1, -1), (-1, 2.5), (2.5, -1)]),
    )

    assert release.count(region=below).value == pytest.approx(sum(_share(x + y - 5.5) for x, y in rows))
    assert release.count(region=below, x=(0, 2)).value == pytest.approx(
        sum(_share(x + y - 5.5) for x, y in rows if x <= 2)
    )
    assert release.count(region=below, x={0, 2}).value == pytest.approx(
        sum(_share(x + y - 5.5) for x, y in rows if x in (0, 2))
    )
    assert release.count(region=corner).value == pytest.approx(sum(_share(x + y - 1.5) for x, y in rows))
    assert release.count(region=HalfSpace({"x": 1}, at_most=2.5)).value == pytest.approx(18.0)
    assert release.count(region=below, x=(7, 9)).value == 0.0


def _share(over: float) -> float:
    """How much of a unit square lies on the near side of x + y = 0, if its middle is `over` beyond it."""
    if over <= -1:
        return 1.0
    if over >= 1:
        return 0.0
    return 1 - (1 + over) ** 2 / 2 if over <= 0 else (1 - over) ** 2 / 2


def test_a_column_may_be_called_region(together: Publish) -> None:
    """A shape is a region, and any other value asks for the column, in counts and in other questions."""
    rows = [(x, ["Rome", "Bari"][x % 2]) for x in range(6)]
    release = together(x=(DIGIT, [x for x, _ in rows]), region=(TOWN, [town for _, town in rows]))
    small = HalfSpace({"x": 1}, at_most=2.5)

    assert release.count(region="Rome").value == 3.0
    assert release.count(x=(0, 3), region={"Rome", "Bari"}).value == 4.0
    assert release.count(region=small).value == pytest.approx(3.0)
    assert release.count(where={"region": "Rome"}, region=small).value == pytest.approx(2.0)
    assert release.histogram("x", 2, region="Bari").counts.values.tolist() == [1.0, 2.0]
    assert release.counts(x=([0], [3]), region="Rome").values.tolist() == [2.0]
    assert release.quantile("x", 1, region="Rome").value == 4


def test_regions_need_counts() -> None:
    """A release of answers to queries refuses a region as it refuses a range, and a view."""
    release = pt.publish({"x": [1, 2]}, {"x": DIGIT}, epsilon=1, queries="ranges(x)")

    for ask in (
        lambda: release.count(region=HalfSpace({"x": 1}, at_most=2)),
        lambda: release.count(x=(0, 3)),
        lambda: release.view("x"),
    ):
        with pytest.raises(InvalidParameter, match=r"^column must be one whose counts were released"):
            ask()


def test_wrong_regions_are_refused_by_name(together: Publish) -> None:
    """What is no region, a column that is not there, and columns that are apart."""
    release = together(views=[("x",), ("y", "z")], x=(DIGIT, []), y=(DIGIT, []), z=(TOWN, []))

    with pytest.raises(
        InvalidParameter, match=r"^region must be a HalfSpace or a Polygon, as no column .* got 3; pass for"
    ):
        release.count(region=3)
    with pytest.raises(InvalidParameter, match=r"^column must be one of 'x', 'y', 'z', got 'w'"):
        release.count(region=HalfSpace({"w": 1}, at_most=2))
    with pytest.raises(InvalidParameter, match=r"^where must name columns that were released together"):
        release.count(region=HalfSpace({"x": 1, "y": 1}, at_most=2))
    with pytest.raises(
        InvalidParameter, match=r"^region must be of columns that one view has together, got 'x'"
    ):
        release.count(region=HalfSpace({"x": 1}, at_most=2))
    with pytest.raises(InvalidParameter, match=r"^region must be over columns of numbers"):
        release.count(region=HalfSpace({"y": 1, "z": 1}, at_most=2))


def test_views_fit_their_columns_and_each_other(together: Publish) -> None:
    """Other axes, a column twice, two views of the same columns, or two domains of a column: refused."""
    release = together(views=[("a", "b"), ("b",)], a=(DIGIT, []), b=(TOWN, []))
    view = release.view("a", "b")
    assert isinstance(view, BoxView)
    given = {"boxes": view.boxes, "mechanism": "shown"}

    for domains in ((TOWN, DIGIT), (DIGIT,), (Integer(0, 2**64 - 1), TOWN)):
        with pytest.raises(InvalidRelease, match="boxes must have the cells of their domains"):
            BoxView(columns=("a", "b"), domains=domains, **given)  # type: ignore[arg-type]
    with pytest.raises(InvalidRelease, match="columns must be different"):
        BoxView(columns=("a", "a"), domains=(DIGIT, TOWN), **given)  # type: ignore[arg-type]
    swapped = together(views=[("b", "a")], a=(DIGIT, []), b=(TOWN, [])).views
    other = together(views=[("b",)], b=(DIGIT, [])).views
    for views, message in (
        ((view, *swapped), "different columns"),
        ((view, *other), "declare a column in one"),
    ):
        with pytest.raises(InvalidRelease, match=f"views must .*{message}"):
            Release(views=views, guarantee=release.guarantee, provenance=release.provenance)
