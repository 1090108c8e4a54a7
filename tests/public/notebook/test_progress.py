"""Progress in a notebook: in its place, without any time, and nowhere else."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import partita as pt
from partita.html import kernel
from partita.publish.publish import phase
from partita.trusted.sources.engine import _silence

AGE = {"age": pt.Integer(0, 9)}


class Page:
    """Stands in for IPython: keeps what every place of a page has shown, one after the other."""

    def __init__(self) -> None:
        self.places: list[list[dict[str, str]]] = []

    def display(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> SimpleNamespace:
        assert raw
        assert display_id
        place = [bundle]
        self.places.append(place)
        return SimpleNamespace(update=lambda bundle, raw: place.append(bundle))

    def texts(self) -> list[list[str]]:
        return [[bundle["text/plain"] for bundle in place] for place in self.places]


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Page:
    """A notebook whose kernel runs this test."""
    page, module = Page(), ModuleType("IPython")
    parts: dict[str, Any] = {
        "get_ipython": lambda: SimpleNamespace(kernel=object()),
        "display": SimpleNamespace(display=page.display),
    }
    module.__dict__.update(parts)
    monkeypatch.setitem(sys.modules, "IPython", module)
    return page


def test_publish_shows_its_phases_each_in_its_place(page: Page) -> None:
    """That it goes on, and then that it is done: no number, so nothing about the data."""
    pt.publish({"age": [1, 2]}, AGE, epsilon=1, mechanism="tree")

    assert page.texts() == [
        ["partita: counting age ...", "partita: counting age done"],
        ["partita: drawing noise ...", "partita: drawing noise done"],
    ]


def test_two_data_sets_leave_the_same_page(page: Page) -> None:
    """Whatever was counted, and however long it took."""
    for ages in ([], list(range(10)) * 5_000):
        pt.publish({"age": ages}, AGE, epsilon=1, mechanism="tree")

    first, second = page.places[:2], page.places[2:]
    assert first == second


def test_names_are_escaped(page: Page) -> None:
    """A column may be called anything."""
    with phase("counting <script>"):
        pass

    assert all("<script>" not in bundle["text/html"] for bundle in page.places[0])


def test_what_fails_is_said_in_its_place(page: Page) -> None:
    """The error itself is shown by the notebook."""
    with pytest.raises(pt.SourceError):
        pt.publish({"agee": [1]}, AGE, epsilon=1, mechanism="tree")

    assert page.texts() == [["partita: counting age ...", "partita: counting age stopped"]]


def test_patience_leaves_no_trace_of_time(page: Page) -> None:
    """A phase has its place however short it was: that one is missing would tell how long it took."""
    with phase("writing", patience=600.0):
        pass

    assert page.texts() == [["partita: writing ...", "partita: writing done"]]


def test_a_shell_without_a_page_shows_nothing(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython in a terminal has no kernel, and a script has no IPython."""
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace())
    assert kernel() is None
    monkeypatch.delitem(sys.modules, "IPython")
    assert kernel() is None

    pt.publish({"age": [1, 2]}, AGE, epsilon=1, mechanism="tree")

    assert page.places == []


def test_duckdb_draws_no_bar_of_its_own() -> None:
    """Where it would it is told not to, and where it cannot it is not told: there it would refuse."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        connection.execute("SET enable_progress_bar = true")
        for setting in (first := _silence(connection)):
            connection.execute(f"SET {setting}")
        second = _silence(connection)

    assert first == ["enable_progress_bar = false"]
    assert second == []
