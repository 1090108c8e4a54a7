"""A notebook, executed by a real kernel: what it displays, where progress goes, and what it keeps."""

from __future__ import annotations

import os
from typing import Any, Final

import pytest

pytestmark = pytest.mark.docs

CELLS: Final = [
    "import partita as pt\n"
    "release = pt.publish({'age': [1, 2, 3] * 100}, {'age': pt.Integer(0, 9)}, epsilon=1)",
    "release",
    "release.count(age=(1, 2))",
    "release.guarantee",
    "counter = pt.Counter(epsilon=1, horizon=64)\ncounter.update(3)\ncounter",
    "release.plot('age')",
    "pt.publish({'agee': [1]}, {'age': pt.Integer(0, 9)}, epsilon=1)",
]
FIGURE: Final = "application/vnd.plotly.v1+json"


@pytest.fixture(scope="module")
def outputs() -> list[list[dict[str, Any]]]:
    """What each cell left behind in the file."""
    pytest.importorskip("plotly")
    nbformat: Any = pytest.importorskip("nbformat")
    nbclient: Any = pytest.importorskip("nbclient")
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, timeout=3600, kernel_name="python3", allow_errors=True).execute()
    return [cell["outputs"] for cell in notebook["cells"]]


def html_of(outputs: list[dict[str, Any]]) -> str:
    """The HTML of all outputs of a cell."""
    return "".join(output["data"].get("text/html", "") for output in outputs if "data" in output)


def test_results_are_shown_as_html(outputs: list[list[dict[str, Any]]]) -> None:
    """A release, an answer, a guarantee and a counter; no script in any of them."""
    shown = [html_of(cell) for cell in outputs[1:5]]

    assert "epsilon 1, pure, for adding or removing one row" in shown[0]
    assert "95% interval" in shown[1]
    assert "e^1 = 2.72" in shown[2]
    assert "1 closed of 64" in shown[3]
    assert not any("<script" in html for html in shown)


def test_progress_ends_in_its_place(outputs: list[list[dict[str, Any]]]) -> None:
    """The file keeps that each phase is done, and no time."""
    texts = [output["data"]["text/plain"] for output in outputs[0]]

    assert texts == ["partita: counting age done", "partita: drawing noise done"]
    assert "partita: counting age stopped" in html_of(outputs[-1])


def test_pictures_are_interactive_by_themselves(outputs: list[list[dict[str, Any]]]) -> None:
    """Plotly is there, so `plot` uses it."""
    (figure,) = [output["data"] for output in outputs[5] if "data" in output]

    assert figure[FIGURE]["data"][0]["type"] == "bar"
