"""Interactive pictures show what the others show, and tell each count when it is pointed at."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.public import plot
from partita.public.plot import is_interactive, line_figure, milliseconds
from partita.public.release import Release

graphs: Any = pytest.importorskip("plotly.graph_objects")


def drawn(domain: pt.Domain, values: list[object], **options: Any) -> Any:
    """The figure of a column of this domain."""
    return pt.publish({"v": values}, {"v": domain}, epsilon=1, mechanism="tree").plot(
        "v", interactive=True, **options
    )


def test_a_column_is_a_histogram_and_a_distribution(release: Release) -> None:
    """Bars with 95% bars of their own, and behind a button the counts up to each value."""
    figure = release.plot("age", interactive=True, bins=6)
    bars, upto = figure.data
    table = release.histogram("age", 6)

    assert [type(trace).__name__ for trace in figure.data] == ["Bar", "Scatter"]
    assert np.allclose(bars.y, np.maximum(0.0, table.counts.values))
    assert np.allclose(bars.error_y.array, 1.96 * table.counts.error)
    assert np.all(bars.error_y.arrayminus <= bars.y)
    assert bars.customdata[0][0] == "0 to 9"
    assert not upto.visible
    assert np.all(np.diff(upto.y) >= 0)
    assert [button.label for button in figure.layout.updatemenus[0].buttons] == [
        "histogram",
        "up to each value",
    ]


def test_two_columns_are_a_heat_map(release: Release) -> None:
    """The first goes to the right and the second up, as in the other picture."""
    figure = release.plot("age", "pay", interactive=True, bins=(3, 2))
    table = release.histogram("age", "pay", (3, 2))
    (field,) = figure.data

    assert np.allclose(field.z, np.maximum(0.0, table.counts.values).T)
    assert field.customdata[1][2][2:].tolist() == ["40 to 59", "300 to 599"]
    assert figure.layout.xaxis.title.text == "age"
    assert figure.layout.yaxis.title.text == "pay"


def test_names_are_text_in_pictures_too(release: Release) -> None:
    """Plotly makes links and line breaks of what looks like them: nothing of others does."""
    hostile = release.columns[-1]
    line = release.plot(hostile, interactive=True).to_json()
    field = line_figure(release.slice(hostile), dataset="<a href='x'>").to_json()

    assert "<script" not in line + field
    assert "<a href" not in field
    assert "script" in line


def test_times_lie_on_a_calendar_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """Milliseconds by the clock on the wall, and a bar ends where the next one begins."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.dates", None)
    days = drawn(pt.Date("2024-01-01", "2024-01-04"), [], bins=2)
    hours = drawn(pt.Timestamp("2024-05-01", "2024-05-01T23:59:59", "1h", zone="Europe/Rome"), [], bins=2)
    first = milliseconds([datetime.date(2024, 1, 1)])[0]

    assert days.data[0].x.tolist() == [first + 86_400_000, first + 3 * 86_400_000]
    assert days.data[0].width.tolist() == [2 * 86_400_000] * 2
    assert days.layout.xaxis.type == "date"
    assert hours.data[0].x[0] == milliseconds([datetime.datetime(2024, 5, 1, 6)])[0]


def test_labels_stand_side_by_side() -> None:
    """Each has its name below it, and no scale."""
    figure = drawn(pt.Category(["north", "south"]), ["north"])

    assert figure.layout.xaxis.ticktext == ("north", "south")
    assert figure.data[0].width.tolist() == [0.8, 0.8]


def test_a_counter_is_a_line_with_a_band(visits: pt.DurableCounter) -> None:
    """As wide as its bounds."""
    low, high, line = visits.plot(interactive=True).data
    bounds = visits.answer()

    assert line.y.tolist() == [output.value for output in visits.outputs()]
    assert low.y[-1] == pytest.approx(bounds.low)
    assert high.y[-1] == pytest.approx(bounds.high)


def test_a_family_has_a_line_for_each_key(tmp_path: Any) -> None:
    """And a legend."""
    keys = ["north", "south"]
    with pt.open_family(
        tmp_path / "f.db", keys=keys, epsilon=1, period="1h", start="2026-01-01", horizon=9
    ) as family:
        family.tick("2026-01-01T02:00:00")
        figure = family.plot(interactive=True)

    assert [trace.name for trace in figure.data if trace.showlegend is None] == keys
    assert figure.layout.showlegend


@pytest.mark.parametrize(
    ("in_kernel", "installed", "asked", "axes", "interactive_"),
    [
        (True, True, None, None, True),
        (True, False, None, None, False),
        (False, True, None, None, False),
        (True, True, None, object(), False),
        (True, True, False, None, False),
        (False, True, True, None, True),
    ],
)
def test_it_is_interactive_where_that_helps(
    monkeypatch: pytest.MonkeyPatch,
    in_kernel: bool,
    installed: bool,
    asked: bool | None,
    axes: object,
    interactive_: bool,
) -> None:
    """In a notebook that has plotly, unless axes are given; elsewhere if asked for."""
    found: Callable[[str], object] = lambda name: object() if installed else None  # noqa: E731
    monkeypatch.setattr(plot, "kernel", lambda: object() if in_kernel else None)
    monkeypatch.setattr(plot, "find_spec", found)

    assert is_interactive(asked, axes) == interactive_


def test_axes_and_plotly_do_not_go_together() -> None:
    """Axes are those of matplotlib."""
    with pytest.raises(pt.InvalidParameter, match="axes must be left out of an interactive picture"):
        is_interactive(True, object())


def test_without_plotly_an_error_says_what_to_install(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for matplotlib."""
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)

    with pytest.raises(pt.InvalidParameter, match=r'pip install "partita\[notebook\]"'):
        line_figure(release.slice("age"))
