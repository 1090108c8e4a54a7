"""Pages of allowed origins ask and read; pages of allowed embedders show charts; by default nobody does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from partita.errors import InvalidParameter
from partita.service.settings import ServiceSettings
from partita.service.tokens import TokenFile
from partita.service.web import POLICY

from .client import Client, app, kind

ORIGIN = "https://office.example.org"
COUNT = "/releases/people/count"
EMBED = "/releases/people/embed"
ASKED = {"origin": ORIGIN, "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}
PREFLIGHT = {**ASKED, "access-control-request-method": "POST"}
ALLOW = "access-control-allow-origin"


def test_no_origin_is_allowed_by_default(tmp_path: Path) -> None:
    """A page elsewhere is refused, and no header speaks of origins."""
    client = Client(app(tmp_path))

    assert kind(client.get(COUNT, headers=ASKED)) == (403, "OtherSite")
    assert kind(client("OPTIONS", COUNT, headers=PREFLIGHT)) == (403, "OtherSite")
    plain = client.get(COUNT, headers={"origin": ORIGIN})
    assert not {ALLOW, "vary"} & set(plain.headers)


def test_an_allowed_origin_asks_and_reads(tmp_path: Path) -> None:
    """It is named in the answer, to errors too, and caches are told that answers differ."""
    client = Client(app(tmp_path, origins=(ORIGIN,)))
    answer, missing = client.get(COUNT, headers=ASKED), client.get("/nothing", headers=ASKED)

    assert (answer.status_code, missing.status_code) == (200, 404)
    for each in (answer, missing):
        assert each.headers[ALLOW] == ORIGIN
        assert each.headers["vary"] == "Origin"
        assert "access-control-allow-credentials" not in each.headers
    assert client.get(COUNT).headers["vary"] == "Origin"


@pytest.mark.parametrize(
    "origin",
    ["https://example.org", f"{ORIGIN}:444", f"{ORIGIN}.evil.example", "http://office.example.org", "null"],
)
def test_only_exact_origins_are_allowed(origin: str, tmp_path: Path) -> None:
    """Another host, port, scheme or a name that only begins like it is refused."""
    response = Client(app(tmp_path, origins=(ORIGIN,))).get(COUNT, headers={**ASKED, "origin": origin})

    assert kind(response) == (403, "OtherSite")
    assert ALLOW not in response.headers


def test_what_browsers_ask_before_needs_no_token(tmp_path: Path) -> None:
    """The question itself still needs one."""
    TokenFile(tmp_path / "tokens.json").create("ada", scopes=["read"])
    built = app(tmp_path, public=False, tokens=tmp_path / "tokens.json", origins=(ORIGIN,))
    before = Client(built)("OPTIONS", COUNT, headers=PREFLIGHT)

    assert (before.status_code, before.headers[ALLOW]) == (204, ORIGIN)
    assert "Authorization" in before.headers["access-control-allow-headers"]
    assert Client(built).get(COUNT, headers=ASKED).status_code == 401


def test_the_steward_allows_no_origin(tmp_path: Path) -> None:
    """Whatever readers are allowed."""
    TokenFile(tmp_path / "tokens.json").create("ada", scopes=["admin"])
    built = app(tmp_path, side="steward", tokens=tmp_path / "tokens.json", origins=(ORIGIN,))

    assert kind(Client(built).get("/-/healthy", headers=ASKED)) == (403, "OtherSite")


def test_nothing_is_framed_by_default(tmp_path: Path) -> None:
    """Not even the address that is made for it."""
    headers = Client(app(tmp_path)).get(EMBED).headers

    assert headers["content-security-policy"] == POLICY
    assert headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    ("embedders", "ancestors"),
    [
        ((ORIGIN,), ORIGIN),
        ((ORIGIN, "http://localhost:3000"), f"{ORIGIN} http://localhost:3000"),
        (("*",), "*"),
    ],
)
def test_only_charts_are_framed(embedders: tuple[str, ...], ancestors: str, tmp_path: Path) -> None:
    """By those that the steward allows; all else of the policy stays, and other pages are in no frame."""
    client = Client(app(tmp_path, embedders=embedders))
    headers = client.get(EMBED).headers

    policy = POLICY.replace("frame-ancestors 'none'", f"frame-ancestors {ancestors}")
    assert headers["content-security-policy"] == policy
    assert headers["cross-origin-resource-policy"] == "cross-origin"
    for path in ("/", "/releases/people", "/releases/people/view", f"{EMBED}/more", COUNT):
        assert client.get(path).headers["content-security-policy"] == POLICY


@pytest.mark.parametrize("name", ["origins", "embedders"])
@pytest.mark.parametrize(
    "given", ["example.org", "https://example.org/", "https://*.example.org", "ftp://a", "null"]
)
def test_what_is_no_origin_is_refused(name: str, given: str, tmp_path: Path) -> None:
    """A path, a pattern or a bare name would never match, or match too much."""
    with pytest.raises(InvalidParameter, match="must be an origin"):
        ServiceSettings.from_json(_settings_line(tmp_path, **{name: [given]}))


def _settings_line(folder: Path, **entries: list[str]) -> str:
    """The settings of a service with some entries changed, as a process is told them."""
    plain = json.loads(ServiceSettings(folder=folder, public=True).to_json())
    return json.dumps(plain | entries)


def test_embedding_needs_public_reading(tmp_path: Path) -> None:
    """A chart in another page asks nobody for a token."""
    with pytest.raises(InvalidParameter, match="needs public reading"):
        ServiceSettings(folder=tmp_path, tokens=tmp_path / "tokens.json", embedders=("*",))


def test_a_usual_port_is_left_out(tmp_path: Path) -> None:
    """Browsers leave it out too; any other stays."""
    given = ("https://a.example:443", "http://a.example:80", "https://a.example:80")

    settings = ServiceSettings(folder=tmp_path, public=True, origins=given)
    assert settings.origins == ("https://a.example", "http://a.example", "https://a.example:80")


def test_origins_reach_the_processes(tmp_path: Path) -> None:
    """The line that starts a process has them."""
    settings = ServiceSettings(folder=tmp_path, public=True, origins=(ORIGIN,), embedders=("*", ORIGIN))

    assert ServiceSettings.from_json(settings.to_json()) == settings
