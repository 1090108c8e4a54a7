"""Pages of other sites: they may link to pages of the service, and have nothing else of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.service.tokens import TokenFile

from .client import Client, app, kind

FROM_ELSEWHERE = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
LINKED = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}


@pytest.mark.parametrize("path", ["/", "/releases/people/count", "/static/app.js", "/-/healthy"])
def test_a_page_elsewhere_cannot_ask(path: str, tmp_path: Path) -> None:
    """Nor have an image or a script from here: it would spend the time of all readers."""
    assert kind(Client(app(tmp_path)).get(path, headers=FROM_ELSEWHERE)) == (403, "OtherSite")


def test_pages_may_be_linked_to(tmp_path: Path) -> None:
    """What is asked of them may not: an empty frame could be sent there a thousand times."""
    client = Client(app(tmp_path))

    assert client.get("/releases/people", headers=LINKED).status_code == 404
    assert kind(client.get("/releases/people/count", headers=LINKED)) == (403, "OtherSite")
    assert kind(client("POST", "/releases/people", headers=LINKED)) == (403, "OtherSite")


@pytest.mark.parametrize("site", [None, "none", "same-origin"])
def test_the_own_page_and_programs_are_served(site: str | None, tmp_path: Path) -> None:
    """Programs say nothing of sites."""
    headers = {} if site is None else {"sec-fetch-site": site, "sec-fetch-mode": "cors"}

    assert Client(app(tmp_path)).get("/releases/people/count", headers=headers).status_code == 200


@pytest.mark.parametrize("headers", [FROM_ELSEWHERE, LINKED])
def test_no_page_reaches_the_steward(headers: dict[str, str], tmp_path: Path) -> None:
    """Not even by a link, and from this machine."""
    TokenFile(tmp_path / "tokens.json").create("ada", scopes=["admin"])
    built = app(tmp_path, side="steward", tokens=tmp_path / "tokens.json")

    assert kind(Client(built, address="127.0.0.1").get("/-/healthy", headers=headers)) == (403, "OtherSite")
