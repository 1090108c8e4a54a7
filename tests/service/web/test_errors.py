"""Errors are JSON, and say nothing that was not meant to be said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from partita.errors import BudgetExceeded, InvalidData, LedgerError, PartitaError, StreamForked
from partita.service.errors import refusal_of, strip_folders
from partita.service.tokens import TokenFile

from .client import CANARY, Client, app, kind, logged, messages


@pytest.mark.parametrize("path", ["/broken", "/refused", "/closed"])
def test_no_error_carries_a_secret(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is in the message, arguments or cause of an exception stays there: answer, headers and log."""
    log = logged(monkeypatch)

    response = Client(app(tmp_path)).get(path)

    assert CANARY not in response.text + str(response.headers) + log.getvalue()
    assert "Traceback" not in response.text + log.getvalue()
    assert "/srv" not in response.text + log.getvalue()


def test_an_answer_that_breaks_off_says_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be taken back, so the connection ends: no second answer, nothing for a server to print."""
    log = logged(monkeypatch)
    sent = messages(app(tmp_path), "/broken/late", headers=[(b"host", b"localhost")])

    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert CANARY not in str(sent) + log.getvalue()
    assert json.loads(log.getvalue().splitlines()[0])["kind"] == "RuntimeError"


def test_the_unexpected_is_an_internal_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller learns nothing but that it was; the log names its type."""
    log = logged(monkeypatch)

    assert kind(Client(app(tmp_path)).get("/broken")) == (500, "InternalError")
    assert json.loads(log.getvalue().splitlines()[0])["kind"] == "RuntimeError"


def test_the_unexpected_in_feeding_leaves_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When an event came is secret, even if it broke something."""
    log = logged(monkeypatch)
    token = TokenFile(tmp_path / "tokens.json").create("web", scopes=["feed", "admin"])
    client = Client(app(tmp_path, side="steward", tokens=tmp_path / "tokens.json"), token)

    response = client("POST", "/streams/broken/events", json={"count": 1})
    assert (kind(response), log.getvalue()) == ((500, "InternalError"), "")

    assert kind(client.get("/broken")) == (500, "InternalError")
    assert "RuntimeError" in log.getvalue()


def test_our_errors_are_said_without_folders(tmp_path: Path) -> None:
    """The parameter, the rule and the fix are there; where the file lies is not."""
    response = Client(app(tmp_path)).get("/refused")

    assert kind(response) == (400, "InvalidParameter")
    assert response.json()["error"] == {
        "kind": "InvalidParameter",
        "message": "path must exist, got 'x.db'; check it",
        "parameter": "path",
    }


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (InvalidData("count", "must be positive", fix="leave it out"), (400, "InvalidData")),
        (BudgetExceeded("needs epsilon 1, has 1/2"), (409, "BudgetExceeded")),
        (LedgerError("ledger '/srv/x.db' is damaged"), (503, "LedgerError")),
        (StreamForked("'/srv/x.db' is an old copy"), (409, "StreamForked")),
        (PartitaError("anything else"), (500, "InternalError")),
        (MemoryError(), (500, "InternalError")),
    ],
)
def test_every_kind_has_its_status(error: Exception, expected: tuple[int, str]) -> None:
    """The nearest class that is known decides."""
    refusal = refusal_of(error)

    assert (refusal.status, refusal.kind) == expected
    assert "/srv" not in str(refusal)


def test_a_ledger_that_fails_promises_nothing_of_what_it_did() -> None:
    """It may have been cut off after it charged; what is true is that the same request is charged once."""
    said = str(refusal_of(LedgerError("ledger 'budget' was cut off in the middle of an act")))

    assert "nothing was charged" not in said
    assert "sent again later, is charged once" in said


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        (f'{{"count": "{CANARY}"}}', "count"),
        (f'{{"count": 1, "{CANARY}": 2}}', None),
        (f'{{"count": 1, "x": "{CANARY}"}}', None),
        (f"{CANARY} {{", None),
        (f'["{CANARY}"]', None),
        ("[" * 100_000, None),
        ('{"count": 1e999}', "count"),
        ('{"count": NaN}', "count"),
        (f'{{"count": {"9" * 5_000}}}', None),
    ],
)
def test_a_malformed_body_is_not_repeated(body: str, parameter: str | None, tmp_path: Path) -> None:
    """The answer names a declared parameter at most, and nothing that the caller made up."""
    token = TokenFile(tmp_path / "tokens.json").create("web", scopes=["feed"])
    client = Client(app(tmp_path, side="steward", tokens=tmp_path / "tokens.json"), token)
    json_body = {"content-type": "application/json"}
    response = client("POST", "/streams/visits/events", content=body, headers=json_body)

    assert response.status_code in (400, 422)
    assert response.json()["error"].get("parameter") == parameter
    assert CANARY not in response.text
    assert len(response.text) < 300


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/no", 404), ("DELETE", "/refused", 405)])
def test_what_the_framework_refuses_is_json_too(method: str, path: str, status: int, tmp_path: Path) -> None:
    """An unknown address and a wrong method look as all errors do."""
    response = Client(app(tmp_path))(method, path)

    assert response.status_code == status
    assert set(response.json()["error"]) == {"kind", "message"}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("'/a/b c/d.db' is", "'d.db' is"),
        ("at /a/b/d.db, 1/2 left of 3 / 4", "at d.db, 1/2 left of 3  4"),
        ("got '/srv/very long/name...", "got 'name..."),
        ("see docs/deployment.md", "see docs/deployment.md"),
    ],
)
def test_folders_are_cut_off(said: str, expected: str) -> None:
    """Names of files stay, fractions stay."""
    assert strip_folders(said) == expected
