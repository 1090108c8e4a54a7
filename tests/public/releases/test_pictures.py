"""Pictures have scales that people can read, and tables print in a dozen lines."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from partita.domain import Category, Date, Domain, Integer, Real, Timestamp
from partita.public.plot import plot
from partita.public.release import Release

Publish = Callable[..., Release]
Draw = Callable[..., Any]


@pytest.fixture
def draw(publish: Publish) -> Iterator[Draw]:
    """Draw a column of this domain with matplotlib, whole, and return the axes."""
    matplotlib: Any = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    def drawn(domain: Domain, **options: Any) -> Any:
        axes = plot(publish(v=(domain, [])).slice("v"), **options)
        axes.figure.canvas.draw()
        return axes

    yield drawn
    pyplot.close("all")


def labels(axes: Any) -> list[str]:
    """The texts of the ticks within the picture."""
    low, high = axes.get_xlim()
    shown = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    return [text.get_text() for place, text in shown if low <= place <= high]


def spans(axes: Any) -> list[tuple[float, float]]:
    """Where each bar begins and ends."""
    return [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]


def test_numbers_lie_on_their_own_scale(draw: Draw) -> None:
    """Ticks are round values, and a bar reaches half a step to either side of the values of its bin."""
    assert labels(draw(Integer(0, 120))) == ["0", "20", "40", "60", "80", "100", "120"]
    assert spans(draw(Integer(1, 4), bins=2)) == [(0.5, 2.5), (2.5, 4.5)]
    assert labels(draw(Integer(1, 4))) == ["1", "2", "3", "4"]
    assert spans(draw(Real(0, 3, step=1), bins=4))[-1] == (2.5, 3.5)
    assert spans(draw(Integer(5, 5))) == [(4.5, 5.5)]


def test_times_lie_on_a_calendar(draw: Draw) -> None:
    """Ticks are round dates or hours in the zone of the column; a bar ends where the next value begins."""
    days = draw(Date("2024-01-01", "2024-01-04"), bins=2)
    first = (datetime.date(2024, 1, 1) - datetime.date(1970, 1, 1)).days

    assert spans(days) == [(first, first + 2), (first + 2, first + 4)]
    assert labels(draw(Date("2019-03-05", "2024-02-20")))[1::2] == ["2020", "2021", "2022", "2023", "2024"]
    rome = draw(Timestamp("2024-05-01", "2024-05-01T23:59:59", "1h", zone="Europe/Rome"))
    assert labels(rome)[::4] == ["May-01", "12:00", "May-02"]


def test_categories_stand_apart(draw: Draw) -> None:
    """Each has a bar of width 0.8 above its label, which is slanted only if there is no room."""
    short, long = draw(Category(["north", "south"])), draw(Category(["x" * 15 + str(i) for i in range(30)]))

    assert spans(short) == [pytest.approx((-0.4, 0.4)), pytest.approx((0.6, 1.4))]
    assert labels(short) == ["north", "south"]
    assert {text.get_rotation() for text in short.get_xticklabels()} == {0.0}
    assert {text.get_rotation() for text in long.get_xticklabels()} == {30.0}
    assert len(labels(long)) == 16


@pytest.mark.parametrize(
    ("domain", "first"),
    [
        (Integer(2**80, 2**80 + 9), "12089258196146291..."),
        (Date("0001-01-01", "9999-12-31"), "0001-01-01"),
        (Date("9999-12-31", "9999-12-31"), "9999-12-31"),
        (Timestamp("2024-01-01", "2024-01-01T00:00:01", "1ns"), "2024-01-01T00:00:..."),
    ],
)
def test_what_no_scale_can_hold_is_labelled(draw: Draw, domain: Domain, first: str) -> None:
    """Values that floats or the calendar of matplotlib cannot tell apart get bars side by side."""
    axes = draw(domain)

    assert labels(axes)[0] == first
    assert np.ptp([end - begin for begin, end in spans(axes)]) < 1e-9


def test_a_picture_says_what_it_cost(publish: Publish) -> None:
    """The title has the epsilon of the column, and the dataset if it has a name."""
    line, axes = publish(v=(Integer(0, 9), [])).slice("v"), MagicMock()

    plot(line, axes=axes)
    plot(line, axes=axes, dataset="census")

    titles = [call.args[0] for call in axes.set_title.call_args_list]
    assert titles == ["epsilon 1/2", "census, epsilon 1/2"]


def test_bins_print_as_a_table(publish: Publish) -> None:
    """A few bins are all shown."""
    found = publish(digit=(Integer(0, 9), [1, 2, 7])).histogram("digit", 2)

    assert str(found).splitlines() == [
        "first  last  rows  ± 95%",
        "    0     4   2.0    4.4",
        "    5     9   1.0    4.4",
    ]


def test_long_tables_print_their_ends(publish: Publish) -> None:
    """Of a hundred lines the first five and the last five are shown, with dots between."""
    release = publish(v=(Integer(0, 99), [*range(100)]))

    for found in (release.histogram("v", 100), release.cdf("v", range(100))):
        lines = [line.split() for line in str(found).splitlines()]
        assert [line[0] for line in lines[1:]] == [
            "0",
            "1",
            "2",
            "3",
            "4",
            "...",
            "95",
            "96",
            "97",
            "98",
            "99",
        ]
    assert lines[-1] == ["99", "100", "20", "1", "0"]
