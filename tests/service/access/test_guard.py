"""The guard: scopes are not mixed up, and nobody asks too often."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from partita.service import access as module
from partita.service.access import PERMISSIONS, Permission, RateLimiter
from partita.service.settings import Limits
from partita.service.tokens import TokenFile
from tests.service.web.client import CANARY, Client, Clock, app, kind

SLOW = Limits(rate=1, burst=2)


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "tokens.json", Clock())


def reading(tokens: TokenFile, **settings: Any) -> FastAPI:
    chosen: dict[str, Any] = {"public": False, "tokens": tokens.path, **settings}
    return app(tokens.path.parent, **chosen)


def steward(tokens: TokenFile, **settings: Any) -> FastAPI:
    return app(tokens.path.parent, side="steward", public=True, tokens=tokens.path, **settings)


REQUESTS = {
    "read": ("reading", "GET", "/releases/people/count"),
    "feed": ("steward", "POST", "/streams/visits/events"),
    "admin": ("steward", "POST", "/streams"),
}


def allowed(tokens: TokenFile, scope: str, need: str) -> bool:
    """Whether a token with one scope is let in where another may be needed."""
    side, method, path = REQUESTS[need]
    built = (reading if side == "reading" else steward)(tokens)
    text = tokens.create(f"{scope}-{need}", scopes=[scope])
    return Client(built, text)(method, path, json={"count": 1}).status_code not in (401, 403)


@pytest.mark.parametrize("scope", REQUESTS)
@pytest.mark.parametrize("need", REQUESTS)
def test_scopes_are_separate(tokens: TokenFile, scope: str, need: str) -> None:
    """Each opens its own addresses and no others: not even admin reads or feeds."""
    assert allowed(tokens, scope, need) == (scope == need)


def test_confused_scopes_are_found(tokens: TokenFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted guard that lets in everybody with any token fails the check above."""
    monkeypatch.setattr(module.Guard, "_check_scope", lambda *_: None)

    assert allowed(tokens, "feed", "admin")


def test_a_feeder_may_be_kept_to_its_streams(tokens: TokenFile) -> None:
    """It feeds those, by its own name, and no others."""
    client = Client(steward(tokens), tokens.create("web", scopes=["feed"], streams=["visits"]))

    fed = client("POST", "/streams/visits/events", json={"count": 7})
    assert (fed.status_code, fed.json()) == (200, {"feeder": "web", "count": 7})
    assert kind(client("POST", "/streams/sales/events", json={"count": 7})) == (403, "Forbidden")


@pytest.mark.parametrize(
    "header", ["", "Basic abc", "Bearer", "Bearer ", f"Bearer {CANARY}", f"Bearer {'x' * 10_000}"]
)
def test_a_bad_token_is_unauthorized(tokens: TokenFile, header: str) -> None:
    """The answer says what is needed, and nothing of what was sent."""
    tokens.create("web", scopes=["read"])
    response = Client(reading(tokens)).get("/releases/people/count", headers={"authorization": header})

    assert kind(response) == (401, "Unauthorized")
    assert response.headers["www-authenticate"] == "Bearer"
    assert CANARY not in response.text


def test_public_reading_needs_no_token(tmp_path: Path) -> None:
    """And a token that is none does no harm."""
    built = app(tmp_path, public=True)

    assert Client(built).get("/releases/people/count").status_code == 200
    assert Client(built, CANARY).get("/releases/people/count").status_code == 200


def test_public_reading_opens_nothing_else(tokens: TokenFile) -> None:
    """What is fed and published needs its token all the same."""
    tokens.create("web", scopes=["read"])

    assert kind(Client(steward(tokens))("POST", "/streams")) == (401, "Unauthorized")
    assert kind(Client(steward(tokens))("POST", "/streams/visits/events")) == (401, "Unauthorized")


def test_lost_tokens_close_everything(tokens: TokenFile) -> None:
    """A file that cannot be read lets nobody in, and its path is not told."""
    client = Client(reading(tokens), tokens.create("web", scopes=["read"]))
    assert client.get("/releases/people/count").status_code == 200
    tokens.path.unlink()

    response = client.get("/releases/people/count")
    assert kind(response) == (503, "NoAccess")
    assert "tokens.json" not in response.text


@pytest.mark.parametrize(
    ("method", "path", "need"),
    [
        ("GET", "/", None),
        ("GET", "/static/app.js", None),
        ("HEAD", "/releases/people", None),
        ("GET", "/releases/people.v2/view", None),
        ("GET", "/streams/visits", None),
        ("GET", "/-/healthy", None),
        ("POST", "/", "read"),
        ("GET", "/index.json", "read"),
        ("GET", "/releases/people.json", "read"),
        ("GET", "/releases/people/view.json", "read"),
        ("GET", "/releases/people/view.csv", "read"),
        ("GET", "/releases/people/file", "read"),
        ("GET", "/releases/people/view/", "read"),
        ("GET", "/releases/../view", "read"),
        ("GET", "/streams/visits.json", "read"),
        ("GET", "/streams/visits/live", "read"),
        ("GET", "/-/metrics", "admin"),
        ("GET", "/openapi.json", "read"),
    ],
)
def test_only_the_page_is_open(method: str, path: str, need: str | None) -> None:
    """What the page shows is asked for with a token; the page itself says nothing."""
    found = PERMISSIONS["reading"]({"method": method, "path": path})

    assert found == (None if need is None else Permission(need))


@pytest.mark.parametrize(
    ("method", "path", "need"),
    [
        ("POST", "/streams/visits/events", Permission("feed", "visits")),
        ("GET", "/streams/visits/events", Permission("admin")),
        ("POST", "/streams/visits/events/", Permission("admin")),
        ("POST", "/streams/a/b/events", Permission("admin")),
        ("POST", "/streams", Permission("admin")),
        ("GET", "/streams/visits", Permission("admin")),
        ("POST", "/releases", Permission("admin")),
        ("GET", "/jobs", Permission("admin")),
        ("GET", "/openapi.json", Permission("admin")),
        ("GET", "/-/healthy", Permission("admin")),
    ],
)
def test_feeders_only_feed(method: str, path: str, need: Permission) -> None:
    """Everything else on that side is for admins."""
    assert PERMISSIONS["steward"]({"method": method, "path": path}) == need


@pytest.mark.parametrize(("side", "path"), [("reading", "/-/metrics"), ("steward", "/-/healthy")])
def test_what_tells_of_the_machine_is_for_this_machine_and_for_admins(
    side: str, path: str, tokens: TokenFile
) -> None:
    """How long anything takes depends on feeding too; also where everybody may read."""
    built = reading(tokens, public=True) if side == "reading" else steward(tokens)
    admin, reader = (tokens.create(scope, scopes=[scope]) for scope in ("admin", "read"))

    assert Client(built, address="127.0.0.1").get(path).status_code == 200
    assert Client(built, address="::1").get(path).status_code == 200
    assert Client(built, admin).get(path).status_code == 200
    assert kind(Client(built, reader).get(path)) == (403, "Forbidden")
    assert kind(Client(built).get(path)) == (401, "Unauthorized")


def test_feeding_a_pan_private_stream_is_not_counted(tokens: TokenFile) -> None:
    """A bucket would remember how much a feeder has sent; who may not feed is counted all the same."""
    built = steward(tokens, limits=SLOW, is_pan_private=lambda name: name == "quiet")
    feeder, nobody = Client(built, tokens.create("web", scopes=["feed"])), Client(built)

    def statuses(client: Client, stream: str) -> list[int]:
        address = f"/streams/{stream}/events"
        return [client("POST", address, json={"count": 1}).status_code for _ in range(3)]

    assert statuses(feeder, "quiet") == [200, 200, 200]
    assert statuses(feeder, "visits") == [200, 200, 429]
    assert statuses(nobody, "quiet") == [401, 401, 429]


def test_each_token_has_a_rate_of_its_own(tokens: TokenFile) -> None:
    """One that asks too often is told how long to wait; others are not held up."""
    built = reading(tokens, limits=SLOW)
    busy, calm = (Client(built, tokens.create(name, scopes=["read"])) for name in ("busy", "calm"))
    statuses = [busy.get("/releases/people/count").status_code for _ in range(3)]

    assert statuses == [200, 200, 429]
    assert busy.get("/releases/people/count").headers["retry-after"] == "1"
    assert calm.get("/releases/people/count").status_code == 200


def test_without_a_token_the_address_counts(tokens: TokenFile) -> None:
    """Guessing tokens is limited too, and one network of IPv6 is one address."""
    built = reading(tokens, limits=SLOW)
    one, other, far = (
        Client(built, CANARY, address=address) for address in ("2001:db8::1", "2001:db8::2", "2001:db9::1")
    )
    statuses = [client.get("/releases/people/count").status_code for client in (one, other, one, far)]

    assert statuses == [401, 401, 429, 401]


def test_addresses_of_ipv4_that_are_written_as_ipv6_are_different_callers(tokens: TokenFile) -> None:
    """A proxy that listens to both kinds writes them so; either form is the same caller."""
    built = reading(tokens, limits=SLOW)
    one, same, other = (
        Client(built, CANARY, address=address)
        for address in ("::ffff:192.0.2.1", "192.0.2.1", "::ffff:198.51.100.9")
    )
    statuses = [client.get("/releases/people/count").status_code for client in (one, same, one, other)]

    assert statuses == [401, 401, 429, 401]


def test_a_bucket_fills_by_the_clock() -> None:
    """At the rate, up to the burst, and never beyond."""
    clock = Clock()
    buckets = RateLimiter(rate=2, burst=3, callers=10, now=clock)

    def let_in() -> int:
        return sum(buckets.wait("web") == 0 for _ in range(10))

    assert let_in() == 3
    clock.pass_seconds(0.5)
    assert let_in() == 1
    clock.pass_seconds(3600)
    assert let_in() == 3


def test_a_clock_that_is_put_back_locks_nobody_out() -> None:
    """A caller waits for a full bucket at most, not until the old time comes again."""
    clock = Clock()
    buckets = RateLimiter(rate=2, burst=3, callers=10, now=clock)
    buckets.wait("web")
    clock.pass_seconds(-3600)

    assert buckets.wait("web") == 1
    clock.pass_seconds(1.5)
    assert buckets.wait("web") == 0


def test_the_memory_of_callers_has_a_bound() -> None:
    """However many addresses ask."""
    buckets = RateLimiter(rate=1, burst=1, callers=5, now=Clock())
    for number in range(100):
        buckets.wait(f"address {number}")

    assert len(buckets._full_at) == 5
    assert buckets.wait("address 99") == 1
