"""A table release over HTTP: what answers rest on, and how far columns depend on each other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from partita.service.reading.questions import answer_model
from partita.service.reading.views import ChartAnswer, DependenceAnswer
from partita.service.reading.work import ReleaseSizes, WorkEstimate
from partita.service.settings import Limits
from tests.table_releases import DOMAINS, find_pair, table_release

from .conftest import LIMITS, Client, served

BASE = "/releases/table"
ONE, OTHER = "age between 10 and 39", "age between 10 and 39 and town = Rome"


@pytest.fixture(scope="module")
def folder_of_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one table release."""
    folder = tmp_path_factory.mktemp("tables")
    table_release().save(folder / "table.release.parquet")
    return folder


@pytest.fixture(scope="module")
def tables(folder_of_tables: Path) -> Iterator[Client]:
    """A client of that folder."""
    client = Client(served(folder_of_tables))
    yield client
    client.close()


@pytest.mark.parametrize("more", [{}, {"beta": 0.05}])
def test_a_count_has_a_basis(tables: Client, more: dict[str, Any]) -> None:
    """With guaranteed bounds and without, it is what the columns asked for were measured as."""
    found = [tables.get(f"{BASE}/count", where=where, **more).json()["basis"] for where in (ONE, OTHER)]

    assert find_pair("inferred") == ("age", "town")
    assert found == ["measured", "inferred"]


@pytest.mark.parametrize(
    ("path", "asked", "basis"),
    [
        ("quantile", {"column": "age", "where": "town = Rome"}, "inferred"),
        ("cdf", {"column": "age", "at": 30}, "measured"),
        ("histogram", {"column": "age", "bins": 3, "where": "town = Rome"}, "inferred"),
        ("histogram2d", {"x": "age", "y": "pay", "x_bins": 2, "y_bins": 2}, "measured"),
        ("ask", {"q": f"count where {OTHER} and rooms = 1"}, "order 3+"),
    ],
)
def test_other_questions_have_one(tables: Client, path: str, asked: dict[str, Any], basis: str) -> None:
    """The entry stands in answers of one value and beside the rows of tables."""
    assert tables.get(f"{BASE}/{path}", **asked).json()["basis"] == basis


def test_a_batch_has_one_for_all(tables: Client) -> None:
    """Counts of the same columns share it."""
    where = {"age": {"low": [0, 18], "high": [17, 64]}, "town": "Rome"}

    assert tables.post(f"{BASE}/counts", json={"where": where}).json()["basis"] == "inferred"


def test_answers_are_as_their_models_say(tables: Client) -> None:
    """Every entry of an answer with a basis is one of its model, and no other basis is allowed."""
    from partita.public.questions import KINDS

    for name, asked in (("count", {"where": OTHER}), ("histogram", {"column": "age"})):
        answer = tables.get(f"{BASE}/{name}", **asked).json()
        assert answer_model(KINDS[name]).model_validate(answer)
        with pytest.raises(ValueError, match="basis"):
            answer_model(KINDS[name]).model_validate({**answer, "basis": "guessed"})


def test_the_data_of_a_chart_have_it_in_each_part(tables: Client) -> None:
    """A map of an inferred pair is inferred; so are its selection and each column given the other."""
    chart = tables.get(f"{BASE}/view.json", x="age", y="town", where=OTHER, bins=3).json()

    assert ChartAnswer.model_validate(chart)
    assert chart["basis"] == chart["selection"]["count"]["basis"] == "inferred"
    assert chart["conditional"]["x"]["basis"] == "inferred"
    assert tables.get(f"{BASE}/view.json", x="age", bins=3).json()["basis"] == "measured"


def test_other_releases_have_none(client: Client) -> None:
    """Where every answer is measured there is no such entry, and a chart says null."""
    assert "basis" not in client.get("/releases/people/count", where="age < 30").json()
    assert "basis" not in client.get("/releases/people/histogram", column="age").json()
    assert client.get("/releases/people/view.json", x="age", bins=3).json()["basis"] is None


def test_dependence_is_that_of_the_release(tables: Client) -> None:
    """Columns, a matrix, and the basis of each pair; a parameter does not make it anew."""
    answer = tables.get(f"{BASE}/dependence")
    found = table_release().dependence()

    assert DependenceAnswer.model_validate(answer.json())
    assert answer.json() == {
        "columns": list(DOMAINS),
        "matrix": found.values.tolist(),
        "basis": [list(row) for row in found.bases],
    }
    assert tables.get(f"{BASE}/dependence", more=1).headers["etag"] == answer.headers["etag"]
    again = tables.send("GET", f"{BASE}/dependence", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304


def test_dependence_needs_a_table_release(client: Client) -> None:
    """Another release refuses it with a reason, and only a table release links to it."""
    refused = client.get("/releases/people/dependence")

    assert refused.status_code == 400
    assert refused.json()["error"]["parameter"] == "dependence"
    assert "dependence" not in client.get("/releases/people.json").json()["links"]


def test_a_table_release_links_to_its_dependence(tables: Client) -> None:
    """The page finds the address in the facts of the release."""
    assert tables.get(f"{BASE}.json").json()["links"]["dependence"] == f"{BASE}/dependence"


def test_dependence_is_limited_by_its_work(folder_of_tables: Path) -> None:
    """Its predicted work grows with the pairs, and above the limit it is refused before it is done."""
    estimate = WorkEstimate(ReleaseSizes(table_release())).dependence()
    assert estimate % math.comb(len(DOMAINS), 2) == 0
    limits = Limits(rate=LIMITS.rate, burst=LIMITS.burst, work=estimate - 1)
    client = Client(served(folder_of_tables, limits=limits))
    refused = client.get(f"{BASE}/dependence")
    client.close()

    assert refused.status_code == 413
    assert refused.json()["error"]["kind"] == "TooMuchWork"
