"""Sessions of online weights are opened from tables, and count people as `publish` does."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import partita as pt
from partita.errors import BudgetExceeded, InvalidParameter, SourceError
from partita.testing import ZeroNoise
from partita.trusted.mechanisms.online_weights import open_session
from tests.seams import PIPELINE

pytestmark = pytest.mark.usefixtures("quick_settling")

SCHEMA: dict[str, pt.Domain] = {"age": pt.Integer(0, 3), "region": pt.Category(["north", "south"])}
ROWS: dict[str, list[Any]] = {
    "age": [0, 1, 1, 3, 7, None] * 50,
    "region": ["north", "south", "south", "east", "north", "north"] * 50,
}
TERMS: dict[str, Any] = {"epsilon": 2, "updates": 40, "threshold": 1}


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions without noise."""
    quiet = partial(open_session, noise=ZeroNoise())
    monkeypatch.setattr(PIPELINE, "open_session", quiet)


def _csv(folder: Path) -> Path:
    lines = [f"{'' if age is None else age},{region}" for age, region in zip(*ROWS.values(), strict=True)]
    (folder / "people.csv").write_text("\n".join(["age,region", *lines]) + "\n")
    return folder / "people.csv"


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("from_file", [False, True])
def test_a_table_is_asked_as_it_is(tmp_path: Path, from_file: bool) -> None:
    """From a file or from memory, answers are about all rows, special cells included."""
    source = _csv(tmp_path) if from_file else ROWS
    with pt.open_weights(tmp_path / "s", source, SCHEMA, **TERMS) as session:
        asked = {
            pt.between("age", 1, 1) * pt.weights("region", {"south": 1}): 100,
            pt.between("age", 3, None): 100,
            pt.weights("age", {pt.NULL: 1}) * pt.weights("region", {"north": 1}): 50,
            pt.weights("region", {pt.OTHER: 1}): 50,
        }
        for question, truth in asked.items():
            assert session.ask(question).value == pytest.approx(truth, abs=2)


@pytest.mark.usefixtures("no_noise")
def test_so_many_rows_of_a_person_count(tmp_path: Path) -> None:
    """With ids, a person has at most `contributions` rows, and the guarantee is about persons."""
    rows = {"id": [1] * 60 + [2] * 2 + [3], "age": [1] * 63}
    given: dict[str, Any] = {**TERMS, "person": "id", "contributions": 5}
    with pt.open_weights(tmp_path / "s", rows, {"age": pt.Integer(0, 3)}, **given) as session:
        assert session.ask(pt.total()).value == pytest.approx(8, abs=2)
        assert (session.terms.guarantee.unit, session.terms.guarantee.contributions) == ("person", 5)


def test_a_ledger_pays_by_its_path(tmp_path: Path) -> None:
    """All of epsilon is debited at the first opening, and nothing when it is opened again."""
    pt.Ledger(tmp_path / "budget.db").open("people", epsilon=3)
    paid: dict[str, Any] = {**TERMS, "ledger": tmp_path / "budget.db", "dataset": "people"}
    for _ in range(2):
        pt.open_weights(tmp_path / "s", ROWS, SCHEMA, **paid).close()

    assert pt.Ledger(tmp_path / "budget.db").balance("people").left.epsilon == 1
    with pytest.raises(BudgetExceeded):
        pt.open_weights(tmp_path / "other", ROWS, SCHEMA, **paid)


@pytest.mark.parametrize(
    ("parameter", "given"),
    [
        ("schema", {"schema": {}}),
        ("epsilon", {"epsilon": 0}),
        ("updates", {"updates": 0}),
        ("contributions", {"contributions": 2}),
        ("person", {"person": ""}),
        ("ledger", {"ledger": 5, "dataset": "people"}),
        ("universe", {"schema": {"age": pt.Integer(0, 2**40)}}),
    ],
)
def test_bad_parameters_are_named_before_rows_are_read(tmp_path: Path, parameter: str, given: Any) -> None:
    """The source is not even opened, and no file is made."""
    terms = {"source": tmp_path / "missing.csv", "schema": SCHEMA, **TERMS, **given}

    with pytest.raises(InvalidParameter, match=parameter):
        pt.open_weights(tmp_path / "s", terms.pop("source"), terms.pop("schema"), **terms)

    assert not (tmp_path / "s").exists()


def test_rows_that_cannot_be_read_cost_nothing(tmp_path: Path) -> None:
    """A file that is not there is told before anything is debited or made."""
    ledger = pt.Ledger(tmp_path / "budget.db")
    ledger.open("people", epsilon=3)

    with pytest.raises(SourceError):
        pt.open_weights(
            tmp_path / "s", tmp_path / "missing.csv", SCHEMA, **TERMS, ledger=ledger, dataset="people"
        )

    assert ledger.balance("people").left.epsilon == 3
    assert not (tmp_path / "s").exists()
