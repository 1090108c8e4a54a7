"""Streams are made once, by whoever may, and charged to the ledger of the service."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from partita import Ledger
from tests.service.streams.conftest import Service, asked


def test_a_stream_is_made_once(service: Service) -> None:
    """The same request again changes nothing, and says what the first one said but for its status."""
    first, second = service.create(), service.create()

    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    assert first.json()["guarantee"]["epsilon"] == "1"


def test_the_start_may_be_left_out_when_a_request_is_repeated(service: Service) -> None:
    """A stream that began when it was made stays the same one later on."""
    first = service.create(start=None)
    service.at(1234)

    assert service.create(start=None).json() == first.json()


@pytest.mark.parametrize(
    "other",
    [{"epsilon": 2}, {"period": "1m"}, {"horizon": 7}, {"keys": ["a"], "horizon": 9}, {"mechanism": "tree"}],
)
def test_another_stream_of_the_same_name_is_refused(service: Service, other: dict[str, Any]) -> None:
    """With a conflict that names the parameter."""
    service.create()
    answer = service.create(**other)

    assert answer.status_code == 409
    assert answer.json()["error"]["kind"] == "StreamDiffers"


WRONG: list[dict[str, Any]] = [
    {"epsilon": 0},
    {"epsilon": "nothing"},
    {"epsilon": True},
    {"period": "1ms"},
    {"period": "soon"},
    {"horizon": 0},
    {"horizon": 1.5},
    {"mechanism": "magic"},
    {"mechanism": "sliding"},
    {"mechanism": "tree", "keys": ["a"]},
    {"mechanism": "tree", "options": {"branch": 4}},
    {"mechanism": "tree", "options": {"branching": "four"}},
    {"options": {"branching": 4}},
    {"keys": ["a"], "horizon": 5, "options": {"branching": 4}},
    {"keys": []},
    {"keys": ["a", "a"], "horizon": 5},
    {"unit": "nobody"},
    {"mechanism": "pan-private", "unit": "user"},
    {"dataset": "visits"},
    {"noise": "none"},
    {"name": "../visits"},
    {"name": "visits.db"},
    {"name": "visits.json"},
    {"name": ""},
    {"name": "x" * 101},
]


def test_what_is_no_stream_is_refused(service: Service) -> None:
    """With a typed error of the caller's, and no file is made."""
    for wrong in WRONG:
        answer = service.create(**wrong)
        assert answer.status_code in (400, 422)
        assert set(answer.json()) == {"error"}

    assert list(service.secret.iterdir()) == list(service.folder.iterdir()) == []


def test_options_of_the_mechanism_are_settings(service: Service) -> None:
    """As text or as numbers they are the same stream; others are another one."""
    terms: dict[str, Any] = {"mechanism": "tree", "horizon": 100}
    first = service.create(**terms, options={"branching": 16, "refine": True})

    assert first.status_code == 201
    assert service.create(**terms, options={"branching": "16", "refine": "true"}).status_code == 200
    assert service.create(**terms, options={"branching": 8, "refine": True}).status_code == 409


def test_secret_and_public_files_lie_apart(service: Service) -> None:
    """Nothing of the state is in the public folder, and only its owner may enter the other one."""
    service.create()

    assert [path.name for path in service.folder.iterdir()] == ["visits.outputs"]
    assert stat.S_IMODE(service.secret.stat().st_mode) == 0o700
    assert "visits.db" in {path.name for path in service.secret.iterdir()}


def test_a_stream_is_charged_once(service: Service, tmp_path: Path) -> None:
    """By the ledger of the service, when it is made, and not when it is asked for or opened again."""
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", epsilon=2, unit="event")
    object.__setattr__(service.settings, "ledger", str(ledger.path))

    assert service.create(dataset="people").status_code == 201
    assert service.create(dataset="people").status_code == 200
    service.stop()
    service.start()

    assert ledger.balance("people").spent.epsilon == 1
    assert service.create("doors", dataset="people", epsilon=3).status_code == 409
    assert service.create("doors", dataset="nobody").status_code == 409


def test_streams_are_listed_with_what_they_were_made_with(service: Service) -> None:
    """And with nothing that was fed."""
    service.create()
    service.create("regions", keys=["north", "south"], horizon=100)
    before = service.ask("GET", "/streams", by="boss")
    service.feed({"count": 5})

    assert [stream["name"] for stream in before.json()] == ["regions", "visits"]
    assert service.ask("GET", "/streams", by="boss").content == before.content
    assert service.ask("GET", "/streams/regions", by="boss").json()["keys"] == ["north", "south"]
    assert service.ask("GET", "/streams/doors", by="boss").status_code == 404


@pytest.mark.parametrize(("by", "status"), [(None, 401), ("reader", 404), ("gate", 403)])
def test_only_an_admin_makes_streams(service: Service, by: str | None, status: int) -> None:
    """Others are refused, and the reading side has no such address."""
    body = {"name": "visits", "epsilon": 1, "period": 10}

    assert service.ask("POST", "/streams", by=by, json=body).status_code == status
    assert list(service.folder.iterdir()) == []


def test_scopes_are_separate(service: Service) -> None:
    """An admin may not feed, and a feeder neither reads nor lists; tokens of no side are those of nobody."""
    service.create()

    assert service.feed({"count": 1}, by="boss").status_code == 403
    assert service.ask("GET", "/streams", by="gate").status_code == 403
    headers = {"Authorization": f"Bearer {service.tokens['gate']}"}
    assert asked(service.reading, "GET", "/streams/visits.json", headers=headers).status_code == 403
    headers = {"Authorization": "Bearer " + "partita_" + "0" * 16 + "_" + "0" * 64}
    assert asked(service.steward, "GET", "/streams", headers=headers).status_code == 401
