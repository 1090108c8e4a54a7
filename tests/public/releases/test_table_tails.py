"""Tails of the columns of a table release: intervals of far ranges and of sums, and bounds of boxes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from itertools import count, product
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from partita.domain import Category, Domain, Integer
from partita.errors import InvalidParameter
from partita.public.boxes.regions import HalfSpace
from partita.public.release import Release
from partita.publish.publish import publish
from partita.trusted.noise import kernel

HIGH = 200_000
ROWS = 10_000
SEEDS = range(5)
REGIONS = tuple("ABCDE")
HEAVY = ("pareto", "steeper", "lognormal", "narrow", "exponential")
SCHEMA: dict[str, Domain] = {
    **{column: Integer(0, HIGH) for column in HEAVY},
    "change": Integer(-HIGH, HIGH),
    "region": Category(REGIONS),
    "owner": Category(["no", "yes"]),
}


@cache
def data(seed: int) -> dict[str, Any]:
    """Columns with heavy tails; exponential values are larger in later regions, whose owners are fewer."""
    draw = np.random.default_rng(seed)
    region = draw.integers(0, len(REGIONS), ROWS)
    columns = {
        "pareto": 50 * (1 + draw.pareto(1.2, ROWS)),
        "steeper": 200 * (1 + draw.pareto(2.0, ROWS)),
        "lognormal": draw.lognormal(6.5, 1.5, ROWS),
        "narrow": draw.lognormal(9, 0.8, ROWS),
        "exponential": draw.exponential(2_000, ROWS) * (1 + region) / 2,
        "change": 100 * draw.pareto(1.5, ROWS) * draw.choice([-1, 1], ROWS),
    }
    return {
        **{column: np.rint(values).astype(np.int64) for column, values in columns.items()},
        "region": np.array(REGIONS)[region],
        "owner": np.where(draw.random(ROWS) < 0.8 - 0.15 * region, "yes", "no"),
    }


@cache
def released(seed: int, epsilon: str) -> Release:
    """A table release by the shipped code on top of fixed bytes."""
    blocks = (f"tails {seed} {epsilon} {number}".encode() for number in count())
    drawn = SimpleNamespace(urandom=lambda size: hashlib.shake_256(next(blocks)).digest(size))
    with patch.object(kernel, "os", drawn):
        return publish(data(seed), SCHEMA, epsilon=epsilon)


def within(values: Any, low: float, high: float) -> Any:
    """Which values lie from low to high."""
    return (values >= low) & (values <= high)


def far_ranges(seed: int) -> Iterator[tuple[str, int, int]]:
    """Ranges of the last tenth to the last thousandth of the rows: to the end, and to twice their start."""
    for column, rank in product(HEAVY, (0.9, 0.98, 0.995, 0.999)):
        low = int(np.quantile(data(seed)[column], rank))
        yield from ((column, low, high) for high in (HIGH, min(HIGH, 2 * low)) if low < high)


@pytest.mark.parametrize("epsilon", ["1", "1/10"])
def test_intervals_of_far_ranges_hold_their_counts(epsilon: str) -> None:
    """95% intervals hold nine tenths of the counts in tails of 200,001 cells, and more."""
    held = []
    for seed in SEEDS[:3]:
        for column, low, high in far_ranges(seed):
            least, most = released(seed, epsilon).count({column: (low, high)}).interval()
            held.append(least <= within(data(seed)[column], low, high).sum() <= most)

    assert np.mean(held) >= 0.92


@pytest.mark.parametrize("epsilon", ["1", "1/10"])
def test_intervals_of_sums_hold_the_sum_within_bounds(epsilon: str) -> None:
    """95% intervals hold the sums of heavy columns, tails included, and are at most ten errors wide."""
    held, widths, misses = [], [], []
    for seed, column in product(SEEDS, HEAVY):
        values = data(seed)[column]
        total, answer = values[values <= HIGH].sum(), released(seed, epsilon).sum(column)
        low, high = answer.interval()
        held.append(low <= total <= high)
        widths.append((high - low) / total)
        misses.append(abs(answer.value - total) / total)
        assert answer.worst()[0] <= low <= high <= answer.worst()[1]
        assert answer.worst()[0] <= total <= answer.worst()[1]
        assert answer.error > 0.0

    assert np.mean(held) >= 0.92
    assert np.mean(widths) <= 10 * np.mean(misses)


def test_a_sum_with_a_hidden_tail_begins_with_what_is_certain() -> None:
    """The first words are a lower end, and the assumption; means have the same."""
    answer, mean = released(0, "1").sum("pareto"), released(0, "1").mean("pareto")
    values = data(0)["pareto"]
    low, high = mean.interval()

    assert str(answer).startswith("at least ")
    assert "if the tail thins out" in str(answer)
    assert answer.covers.text.endswith("; intervals assume that values beyond thin out")
    assert answer.hidden[0] == 0.0 < answer.hidden[1]
    assert answer.interval()[1] > answer.value + 2 * answer.error
    assert low <= values[values <= HIGH].mean() <= high


def test_sums_of_both_signs_hide_tails_on_both_sides() -> None:
    """The interval of a column that goes up and down reaches out to both sides, and holds the sum."""
    answer, values = released(0, "1").sum("change"), data(0)["change"]
    low, high = answer.interval()

    assert answer.hidden[0] < 0.0 < answer.hidden[1]
    assert low <= values[within(values, -HIGH, HIGH)].sum() <= high
    assert not str(answer).startswith("at least")


def test_a_range_with_both_ends_hides_nothing() -> None:
    """Whoever names both ends gets their sum, and no assumption about others."""
    answer = released(0, "1").sum("exponential", exponential=(1_000, 4_000))

    assert answer.hidden == (0.0, 0.0)
    assert answer.covers.everything


def test_a_box_of_the_others_has_its_part_of_the_tail() -> None:
    """By a label the interval holds the sum of its rows, and the tail adds no more than it does to all."""
    release, values, region = released(0, "1"), data(0)["pareto"], data(0)["region"]
    for label in REGIONS:
        answer = release.sum("pareto", region=label)
        low, high = answer.interval()
        assert low <= values[(values <= HIGH) & (region == label)].sum() <= high
        assert answer.hidden[1] <= release.sum("pareto").hidden[1]


# Guaranteed bounds of boxes.


def test_measured_tables_bound_boxes_more_closely_than_their_sides() -> None:
    """Bounds hold for all cells of two labels, and some are closer than the smaller side allows."""
    release, rows = released(0, "1"), data(0)
    closer = 0
    for region, owner in product(REGIONS, ("no", "yes")):
        true = int(((rows["region"] == region) & (rows["owner"] == owner)).sum())
        low, high = release.count(region=region, owner=owner).worst(0.05)
        sides = [release.count(region=region).worst(0.05), release.count(owner=owner).worst(0.05)]
        assert low <= true <= high
        closer += low > 0.0 and high < min(side[1] for side in sides)

    assert release.count(region="A", owner="no").basis == "measured"
    assert closer >= 3


def test_bounds_of_boxes_with_ranges_hold() -> None:
    """A range cuts bins: cells that it meets bound it from above, cells inside of it from below."""
    release, rows = released(1, "1"), data(1)
    for low, region in product((0, 500, 2_000, 10_000), REGIONS):
        inside = within(rows["exponential"], low, 3 * low + 100) & (rows["region"] == region)
        least, most = release.count(exponential=(low, 3 * low + 100), region=region).worst(0.01)
        assert least <= inside.sum() <= most


def test_regions_of_a_table_are_refused_with_what_to_do() -> None:
    """A half-space needs a view of boxes, and the error says how to get one."""
    region = HalfSpace({"pareto": 1, "steeper": -1}, at_most=0)

    with pytest.raises(InvalidParameter, match=r"view of boxes.*views=\[\(\"x\", \"y\"\), \.\.\.\]"):
        released(0, "1").count(region=region)
