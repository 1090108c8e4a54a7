"""Pictures show where nearly all rows lie, and say what they leave out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from partita.domain import Category, Date, Domain, Integer
from partita.public.plot import plot
from partita.public.release import Release
from partita.public.report import chart
from partita.public.window import choose_window, find_window, rows_beyond, window_bins, window_heat

Publish = Callable[..., Release]


@pytest.fixture
def wide(publish: Publish) -> Release:
    """Two thousand rows from 400 to 599 of a million cells, and one at either end."""
    return publish(v=(Integer(0, 999_999), [0, 999_999, *np.tile(np.arange(400, 600), 10).tolist()]))


def test_wide_bounds_do_not_flatten_a_picture(wide: Release) -> None:
    """The window has the rows and a margin; the two at the ends are outside, and all is one click away."""
    line = wide.slice("v")
    window = find_window(line)

    assert 380 < window.first <= 400
    assert 599 <= window.last < 620
    assert choose_window(line, full=True).whole
    assert not window.whole


@pytest.mark.parametrize(
    ("domain", "values"),
    [
        (Category(["a", "b", "c"]), ["a"] * 500),
        (Integer(0, 11), [5] * 500),
        (Integer(0, 999_999), []),
        (Integer(0, 999_999), [7]),
        (Integer(0, 2**64 - 1000), [2**62 * place for place in range(4)] * 300),
        (Date("2024-01-01", "2024-12-31"), np.arange("2024-01-01", "2025-01-01", dtype="M8[D]").tolist() * 3),
    ],
)
def test_some_axes_are_shown_whole(publish: Publish, domain: Domain, values: list[Any]) -> None:
    """Labels, short axes, data that fill the bounds, and rows that are fewer than the noise."""
    assert find_window(publish(v=(domain, values)).slice("v")).whole


def test_bins_of_a_window_hold_what_the_release_says(wide: Release) -> None:
    """Their ends are values of the column, next to each other, and their counts are those of the ranges."""
    line = wide.slice("v")
    window = find_window(line)
    table = window_bins(line, 7, window)

    assert (table.lows[0], table.highs[-1]) == (window.first, window.last)
    assert [high + 1 for high in table.highs[:-1]] == list(table.lows[1:])  # type: ignore[operator]
    expected = wide.counts(v=(list(table.lows), list(table.highs)))
    assert table.counts.values.tolist() == expected.values.tolist()


def test_what_is_left_out_is_said(wide: Release) -> None:
    """With its number and error; of a whole axis there is nothing to say."""
    line = wide.slice("v")

    assert rows_beyond(line, choose_window(line, full=True), 60) == ""
    words = rows_beyond(line, find_window(line), 60)
    assert words.startswith("the axis goes from 0 to 999999; ")
    assert "with 95% confidence" in words


def test_heat_maps_use_the_window_of_each_column(together: Publish) -> None:
    """Their fields hold what the release says of the same boxes, and a side says what it is a part of."""
    matplotlib: Any = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    values = np.tile(np.arange(400, 600), 10)
    both = {"v": (Integer(0, 4_999), values.tolist()), "w": (Integer(0, 9), (values % 10).tolist())}
    release = together(0.0, views=[("v", "w"), ("v",)], **both)
    window = find_window(release.slice("v"))
    heat = window_heat(release, release.histogram("v", "w", 5), (4, 2), {})
    axes = release.plot("v", "w", bins=5, interactive=False)

    assert (heat.lows[0][0], heat.highs[0][-1]) == (window.first, window.last)
    one = release.count(v=(heat.lows[0][1], heat.highs[0][1]), w=(0, 4))
    assert heat.counts.values[1, 0] == pytest.approx(one.value)
    assert axes.get_xlim() == pytest.approx((window.first - 0.5, window.last + 0.5), abs=1)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("v (a part of 0 to 4999)", "w")
    assert release.plot("v", "w", bins=5, interactive=False, full=True).get_xlabel() == "v"
    pyplot.close("all")


def test_charts_and_plots_use_the_window(wide: Release) -> None:
    """Bars in text and of matplotlib lie in it, unless the whole axis is asked for."""
    matplotlib: Any = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    line = wide.slice("v")
    window = find_window(line)

    assert str(window.first) in chart(line)[0]
    assert "the axis goes from 0" in " ".join(chart(line))
    assert "999999" in chart(line, full=True)[-1].split("  ")[0]
    low, high = plot(line).get_xlim()
    assert (low, high) == pytest.approx((window.first - 0.5, window.last + 0.5), abs=1)
    assert plot(line, full=True).get_xlim()[1] > 999_000
    pyplot.close("all")


def test_many_labels_are_shown_one_by_one(publish: Publish) -> None:
    """Those with the most rows stand first, each by its own name, and how many are left out is said."""
    labels = [f"town {number:02}" for number in range(80)]
    rows = labels[7:8] * 900 + labels[50:51] * 600 + labels[3:4] * 300
    line = publish(v=(Category(labels), rows)).slice("v")

    assert [text.split("  ")[0] for text in chart(line, bins=3)[:3]] == ["town 07", "town 50", "town 03"]
    assert chart(line, bins=3)[-1].startswith("the most frequent by their estimates; 77 more labels")
    axes = plot(line)
    assert [each.get_text() for each in axes.get_yticklabels()][:3] == ["town 07", "town 50", "town 03"]
    assert "55 more labels are not shown" in axes.get_xlabel()
    assert not rows_beyond(line, choose_window(line), 80)
