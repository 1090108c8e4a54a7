"""Logs and metrics: what is public about reading, and nothing at all about feeding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from partita.service.tokens import TokenFile
from partita.service.web import Metrics

from .client import CANARY, Client, Clock, app, logged


def test_a_line_names_the_route_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No name of a release, no question, no token, no address, no body."""
    log = logged(monkeypatch)
    client = Client(app(tmp_path), token=CANARY, headers={"user-agent": CANARY, "referer": CANARY})
    client.get(f"/releases/{CANARY}/count", params={"where": CANARY})

    assert [json.loads(line) for line in log.getvalue().splitlines()] == [
        {
            "time": "2023-11-14T22:13:20Z",
            "level": "info",
            "process": "reading",
            "event": "request",
            "method": "GET",
            "route": "/releases/{name}/count",
            "status": 200,
            "milliseconds": 1,
        }
    ]


def test_unknown_paths_and_methods_have_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a caller makes up does not get into the log."""
    log = logged(monkeypatch)
    Client(app(tmp_path))(CANARY, f"/{CANARY}")

    line = json.loads(log.getvalue())
    assert (line["method"], line["route"], line["status"]) == ("OTHER", "none", 404)


def test_addresses_are_logged_if_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And only then."""
    log = logged(monkeypatch)
    Client(app(tmp_path, log_addresses=True)).get("/-/healthy")

    assert json.loads(log.getvalue())["address"] == "192.0.2.1"


@pytest.mark.parametrize("token", ["good", "bad", None])
def test_feeding_leaves_no_line(token: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what came in, not what was refused, and not what was sent to an address that there is not."""
    tokens = tmp_path / "tokens.json"
    good = TokenFile(tokens).create("web", scopes=["feed", "admin"])
    client = Client(app(tmp_path, side="steward", tokens=tokens), token=good if token == "good" else token)
    log = logged(monkeypatch)

    client("POST", "/streams/visits/events", json={"count": 5})
    client("POST", "/streams/visits/events", content=b"{")
    for mistyped in ("/streams/visits/events/", "//streams/visits/events", "/streams/visits/Events", "/"):
        client("POST", mistyped, json={"count": 5})

    assert log.getvalue() == ""


def test_what_admins_do_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is refused to others there is not: it may have been meant to feed."""
    tokens = tmp_path / "tokens.json"
    admin, feeder = (TokenFile(tokens).create(name, scopes=[name]) for name in ("admin", "feed"))
    built = app(tmp_path, side="steward", tokens=tokens)
    log = logged(monkeypatch)

    for token in (None, feeder, admin):
        Client(built, token)("POST", "/streams")
    line = json.loads(log.getvalue())

    assert (line["process"], line["route"], line["status"]) == ("steward", "/streams", 200)


def test_metrics_count_reads_by_route(tmp_path: Path) -> None:
    """The number of reads, how long they took, how many releases there are, and the version."""
    clock = Clock()
    client = Client(app(tmp_path, clock=clock), address="127.0.0.1")
    for _ in range(3):
        client.get(f"/releases/{CANARY}/count", params={"where": CANARY})
    client.get(f"/{CANARY}")

    text = client.get("/-/metrics").text

    assert 'partita_reads_total{route="/releases/{name}/count",status="200"} 3.0' in text
    assert 'partita_reads_total{route="none",status="404"} 1.0' in text
    assert "partita_releases 3.0" in text
    assert 'partita_info{version="' in text
    assert CANARY not in text


def test_metrics_hold_these_quantities_only(tmp_path: Path) -> None:
    """Nothing of the process, its memory or its threads, which feeding could move."""
    text = Client(app(tmp_path), address="127.0.0.1").get("/-/metrics").text
    named = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}

    assert named == {"partita_info", "partita_read_seconds", "partita_reads_total", "partita_releases"}


def test_small_differences_of_time_are_in_no_metric() -> None:
    """A busy machine answers some milliseconds later: neither the buckets nor their sum show that."""

    def told(*milliseconds: int) -> bytes:
        metrics = Metrics(releases=lambda: 3)
        for each in milliseconds:
            metrics.read(route="/", status=200, nanoseconds=each * 10**6)
        return metrics.text()

    assert told(1, 1, 1) == told(7, 60, 99)
    assert told(1) != told(101)
    assert b"created" not in told(1)


def test_the_steward_has_no_metrics(tmp_path: Path) -> None:
    """There is no such address, not even for an admin."""
    tokens = tmp_path / "tokens.json"
    admin = TokenFile(tokens).create("ada", scopes=["admin"])

    assert Client(app(tmp_path, side="steward", tokens=tokens), admin).get("/-/metrics").status_code == 404
