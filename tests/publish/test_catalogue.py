"""Mechanisms are found by themselves, and chosen from public facts."""

from __future__ import annotations

import math
from argparse import Namespace
from fractions import Fraction
from typing import Any

import pytest

from partita.cli.publish import run_mechanisms
from partita.domain import Category, Date, Domain, Integer, Real
from partita.domain.axis import Axis
from partita.errors import InvalidParameter
from partita.public.axis.base import AxisRelease
from partita.public.boxes.base import BoxRelease
from partita.trusted.mechanisms.catalogue import (
    ROWS,
    axis_mechanisms,
    box_mechanisms,
    check_name,
    choose,
    choose_boxes,
    query_mechanisms,
    takes_rho,
)
from partita.trusted.secret import Histogram, Points

NAMES = list(axis_mechanisms())
BOX_NAMES = list(box_mechanisms())
SMALL = Integer(0, 9)
PAIR = (SMALL, Category(["a", "b"]))


def budget(name: str, epsilon: int) -> dict[str, Any]:
    """What a mechanism of this name can spend: rho if it takes nothing else."""
    rho = {"rho": epsilon**2 / Fraction(2), "delta": Fraction(1, 10**9)}
    return {"epsilon": epsilon, **(rho if takes_rho(name) else {})}


def test_the_classical_mechanisms_and_the_default_are_listed() -> None:
    """By the names that users know."""
    expected = {"histogram", "intervals", "intervals-paper", "laplace", "thresholds", "tree"}

    assert expected <= set(NAMES)


def test_the_command_line_lists_mechanisms_of_sums_beside_the_others() -> None:
    """All that columns can be published with, each with what it is for."""
    kinds = {each["mechanism"]: each["columns"] for each in run_mechanisms(Namespace()).records}

    sums = {name for name, kind in kinds.items() if kind == "sums"}

    assert sums == {"group-means", "level-trees", "log-tree", "totals"}
    assert {*NAMES, *BOX_NAMES, *query_mechanisms()} <= set(kinds)


def test_the_mechanisms_for_several_columns_are_listed() -> None:
    """The default, and those it may choose, by the names that users know; none is on both lists."""
    expected = {"grid", "rank-boxes", "rectangles", "rectangles-paper", "spending-boxes", "viewed-boxes"}

    assert expected <= set(BOX_NAMES)
    assert set(NAMES).isdisjoint(BOX_NAMES)


@pytest.mark.parametrize("name", BOX_NAMES)
def test_every_listed_mechanism_publishes_boxes(name: str) -> None:
    """It is made from public facts alone, and its release answers boxes."""
    choice = choose_boxes(PAIR, **budget(name, 2), mechanism=name, neighbors="change-one", contributions=2)
    axes = tuple(Axis.of(domain) for domain in PAIR)

    release = choice.mechanism.release(Points.from_rows([[1, 0], [3, 1]], axes=axes, contributions=2))

    assert isinstance(release, BoxRelease)
    assert (release.axes, release.guarantee) == (axes, choice.mechanism.guarantee)
    assert choice.name == name
    assert choice.why.startswith("It was asked for by name.")


@pytest.mark.parametrize("name", BOX_NAMES)
def test_predictions_of_boxes_are_sane(name: str) -> None:
    """Errors are not negative and follow the rows, and sizes are positive, for every number of rows."""
    mechanism = choose_boxes(PAIR, **budget(name, 1), mechanism=name).mechanism

    for rows in (0, *ROWS):
        assert 0 <= mechanism.predicted_error(rows) < 1_000 + rows
        assert mechanism.predicted_numbers(rows) > 0


@pytest.mark.parametrize("count", [2, 3, 6])
def test_the_default_for_several_columns_chooses_by_itself(count: int) -> None:
    """If they are ordered; the reason says how many they are, and how it chooses."""
    choice: Any = choose_boxes([SMALL, Integer(0, 2**63 - 1), *[SMALL] * (count - 2)], epsilon=1)

    assert choice.name == "rectangles"
    assert choice.why == f"It is the default for {count} columns together. {choice.mechanism.why}"


@pytest.mark.parametrize(
    ("domains", "reason"),
    [
        ([SMALL] * 7, "7 columns, more than 6"),
        ([SMALL] * 3 + [Category(["a", "b"])], "4 columns, some of them categories"),
        ([SMALL] * 40, "40 columns, more than 6"),
    ],
    ids=["seven", "four", "forty"],
)
def test_a_table_is_the_default_by_a_public_rule(domains: list[Any], reason: str) -> None:
    """More than six columns, or four with a category; the domains alone decide."""
    choice: Any = choose_boxes(domains, epsilon=1)

    assert choice.name == "graph"
    assert choice.why == f"It is the default for {reason}: a model of views and pairs. {choice.mechanism.why}"


@pytest.mark.parametrize("mechanism", ["Grid", "tree", 7, None], ids=str)
def test_an_unknown_name_for_boxes_is_refused_with_the_list(mechanism: Any) -> None:
    """Mechanisms for one column are not on it."""
    with pytest.raises(
        InvalidParameter, match=r"must be 'auto' or one of gaussian-grid, graph, grid, .*spending-boxes"
    ):
        choose_boxes(PAIR, epsilon=1, mechanism=mechanism)


def test_axes_too_large_are_the_fault_of_the_mechanism() -> None:
    """Users never said `axes`, so the error speaks of the mechanism and of the columns."""
    with pytest.raises(InvalidParameter, match="must suit columns of 1000005 x 1000005 cells") as refused:
        choose_boxes([Integer(0, 10**6)] * 2, epsilon=1, mechanism="grid")

    assert refused.value.parameter == "mechanism"


@pytest.mark.parametrize(
    ("name", "widths"), [("auto", [1]), ("auto", [3]), ("tree", [1]), ("tree", [2, 1]), ("grid", [1, 2])]
)
def test_a_name_that_suits_a_view_is_taken(name: str, widths: list[int]) -> None:
    """One view is enough."""
    check_name(name, widths)


@pytest.mark.parametrize(
    ("name", "widths", "rule"),
    [
        (
            "tree",
            [2, 3],
            "is for one column, got 'tree'; use 'auto', or one of gaussian-grid, graph, grid",
        ),
        (
            "grid",
            [1, 1],
            "is for several columns together, got 'grid'; use 'auto', or one of gaussian-hist",
        ),
        ("gird", [1], "did you mean 'grid'"),
        (
            None,
            [1],
            "must be 'auto' or one of composition, gaussian-grid, gaussian-histogram, global",
        ),
    ],
)
def test_a_name_that_suits_no_view_is_refused(name: Any, widths: list[int], rule: str) -> None:
    """With the names that would suit."""
    with pytest.raises(InvalidParameter, match=rule) as refused:
        check_name(name, widths)

    assert refused.value.parameter == "mechanism"


@pytest.mark.parametrize("name", NAMES)
def test_every_listed_mechanism_publishes_an_axis(name: str) -> None:
    """It is made from public facts alone, and its release answers ranges."""
    choice = choose(SMALL, **budget(name, 2), mechanism=name, neighbors="change-one", contributions=2)

    release = choice.mechanism.release(Histogram.dense(range(10), contributions=2))

    assert isinstance(release, AxisRelease)
    assert (release.size, release.guarantee) == (10, choice.mechanism.guarantee)
    assert (choice.name, choice.why) == (name, "It was asked for by name.")


@pytest.mark.parametrize("name", NAMES)
def test_predictions_are_positive(name: str) -> None:
    """Errors and sizes are positive numbers for every number of rows."""
    mechanism = choose(SMALL, **budget(name, 1), mechanism=name).mechanism

    for rows in (0, *ROWS):
        assert mechanism.predicted_error(rows) > 0
        assert mechanism.predicted_numbers(rows) > 0


def test_categories_are_counted_one_by_one() -> None:
    """Whatever their number."""
    for count in (1, 5, 10_000):
        choice = choose(Category([str(label) for label in range(count)]), epsilon=1)
        assert (choice.name, "categories" in choice.why) == ("histogram", True)


@pytest.mark.parametrize("domain", [Integer(0, 2**64 - 1), Real(0, 10**6, step="0.01")], ids=str)
def test_many_cells_in_order_become_intervals(domain: Domain) -> None:
    """The reason says how many cells there are."""
    choice = choose(domain, epsilon=1)

    assert choice.name == "intervals"
    assert f"{domain.size:,}" in choice.why


@pytest.mark.parametrize(("ranges", "chosen"), [(1.5, "intervals"), (2.0, "intervals"), (2.5, "histogram")])
def test_of_few_cells_the_predicted_errors_decide(
    ranges: float, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The smaller geometric mean over few, usual and many rows wins, and the reason shows both."""

    def predicted(mechanism: Any, rows: int) -> float:
        usual = ranges if type(mechanism).name == "intervals" else 2.0
        return usual * {10**3: 10.0, 10**5: 1.0, 10**7: 0.1}[rows]

    for name in ("histogram", "intervals"):
        monkeypatch.setattr(axis_mechanisms()[name], "predicted_error", predicted)
    choice = choose(Integer(0, 99), epsilon=1)

    assert choice.name == chosen
    assert f"{min(ranges, 2.0):.3g} against {max(ranges, 2.0):.3g}" in choice.why


@pytest.mark.parametrize("size", [1, 2, 3, 12, 121, 366, 1000, 4096])
@pytest.mark.parametrize("epsilon", ["0.1", 1])
def test_the_choice_has_no_larger_prediction_than_the_other(size: int, epsilon: Any) -> None:
    """With the predictions that the mechanisms make."""
    choice = choose(Integer(0, size - 1), epsilon=epsilon)

    made = [axis_mechanisms()[name](size=size, epsilon=epsilon) for name in ("histogram", "intervals")]
    counted, ranges = (math.prod(each.predicted_error(rows) for rows in ROWS) for each in made)
    assert choice.name == ("histogram" if counted < ranges else "intervals")


def test_a_choice_is_a_function_of_public_facts() -> None:
    """Asked twice, the same; days are as good as whole numbers."""
    one, other = (choose(domain, epsilon=1) for domain in (Date("2024-01-01", "2024-12-31"), Integer(1, 366)))

    assert (one.name, one.why) == (other.name, other.why)


@pytest.mark.parametrize("mechanism", ["Tree", "tre", "", "automatic", 7, None, ["tree"]], ids=str)
def test_an_unknown_name_is_refused_with_the_list(mechanism: Any) -> None:
    """The error lists the names, and the nearest one."""
    with pytest.raises(
        InvalidParameter,
        match=r"mechanism must be 'auto' or one of gaussian-histogram, hierarchy, histogram, .*tree",
    ):
        choose(SMALL, epsilon=1, mechanism=mechanism)


@pytest.mark.parametrize("name", ["laplace", "tree", "histogram"])
def test_a_domain_too_large_is_the_fault_of_the_mechanism(name: str) -> None:
    """Users never said `size`, so the error speaks of the mechanism and of the column."""
    with pytest.raises(InvalidParameter, match="must suit a column of 18446744073709551616 cells") as refused:
        choose(Integer(0, 2**64 - 1), epsilon=1, mechanism=name)

    assert refused.value.parameter == "mechanism"


def test_an_impossible_epsilon_is_the_fault_of_epsilon() -> None:
    """Noise that cannot be drawn is refused by the mechanism, in its own words."""
    with pytest.raises(InvalidParameter) as refused:
        choose(SMALL, epsilon="1e-30", mechanism="tree")

    assert refused.value.parameter == "epsilon"
