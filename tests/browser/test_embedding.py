"""Charts in frames of other pages, requests from other origins, and the page of addresses."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from partita.service.settings import ServiceSettings

from .conftest import LIMITS, Open
from .serving import served
from .world import KINDS, VISITS, World

pytestmark = pytest.mark.browser

EMBED = f"/releases/{VISITS}/embed"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Another site, and its folder."""
    folder = tmp_path_factory.mktemp("elsewhere")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}", folder
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("asked", "title", "shown"),
    [
        ("x=spent", "Rows by spent", "rows"),
        ("x=town", "Rows by town", "And 125 more labels."),
        ("x=lon&y=lat&title=Where", "Where", "rows in a field"),
        ("question=count where kind = bus", "count where kind = bus", "Between"),
        ("question=median of spent", "median of spent", "Between"),
        ("question=histogram of spent in 4 bins", "histogram of spent in 4 bins", "0 to 2499999"),
        ("question=mean of cost where kind = bus", "mean of cost where kind = bus", "Between"),
        ("question=count by kind order by count desc", "count by kind order by count desc", "car"),
        ("question=count by town limit 9", "count by town limit 9", "And 133 more."),
        ("question=share where spent >= 100 by kind", "share where spent >= 100 by kind", "%"),
        ("question=median of spent by kind", "median of spent by kind", "(other)"),
        ("question=correlation of lat, lon", "correlation of lat, lon", "is no guarantee"),
        ("question=regression of lat on lon", "regression of lat on lon", "intercept"),
    ],
)
def test_a_frame_shows_one_chart(opened: Open, asked: str, title: str, shown: str) -> None:
    """Of any question: with a title, its error, and a link to the page; nothing else."""
    page = opened().go(f"{EMBED}?{quote(asked, safe='=&')}")

    expect(page.locator("h1")).to_have_text(title)
    expect(page.locator("main")).to_contain_text(shown)
    expect(page.locator("main")).to_contain_text("errors have 95% confidence")
    expect(page.get_by_role("link", name=f"Ask {VISITS} yourself")).to_be_visible()
    expect(page.locator("header, footer, button, input, select")).to_have_count(0)


@pytest.mark.parametrize("allowed", [False, True])
def test_other_pages_show_charts_only_if_allowed(
    browser: Any, world: World, elsewhere: tuple[str, Path], allowed: bool
) -> None:
    """A browser draws the frame for an allowed origin, and refuses it for others; so with requests."""
    origin, folder = elsewhere
    given: dict[str, Any] = {"origins": (origin,), "embedders": (origin,)} if allowed else {}
    with served(ServiceSettings(folder=world.folder, public=True, limits=LIMITS, **given)) as address:
        (folder / "page.html").write_text(
            f'<iframe src="{address}{EMBED}?x=kind" width="600" height="400"></iframe>'
        )
        page = browser.new_page()
        page.goto(f"{origin}/page.html")
        frame = page.frame_locator("iframe")
        if allowed:
            expect(frame.locator("h1")).to_have_text("Rows by kind")
        else:
            page.wait_for_timeout(500)
            expect(frame.locator("h1", has_text="Rows by kind")).to_have_count(0)
        count = (
            f"fetch('{address}/releases/{VISITS}/count').then(r => r.json()).then(r => r.value, () => null)"
        )
        value = page.evaluate(count)
        page.close()

    assert (value is not None) == allowed


def test_addresses_have_a_page_of_their_own(opened: Open) -> None:
    """Every route of the document is on it, with its parameters and a command to copy."""
    opening = opened()
    page = opening.go("/docs")
    document = page.evaluate("fetch('/openapi.json').then(r => r.json())")
    routes = [f"{verb.upper()} {path}" for path, verbs in document["paths"].items() for verb in verbs]

    assert sorted(page.locator(".route code").all_inner_texts()) == sorted(routes)
    route = page.locator(".route", has_text="GET /releases/{name}/count").first
    route.locator("summary").click()
    expect(route.locator("table")).to_contain_text("where")
    expect(route.locator("pre")).to_contain_text(f"curl -G {opening.service}/releases/people/count")


def test_groups_of_a_frame_are_those_of_the_library(opened: Open, world: World) -> None:
    """Each with its number, and with both ends of its interval where its sides differ."""
    page = opened().go(f"{EMBED}?question=mean of cost by kind")

    shown = page.locator(".labels .number").all_inner_texts()
    assert page.locator(".labels .name").all_inner_texts()[:3] == KINDS
    for text, answer in zip(shown, world.visits.group("kind").mean("cost"), strict=True):
        low, high = answer.interval()
        numbers = [float(each.replace(",", "")) for each in re.findall(r"[\d,.]+", text)]
        if math.isnan(answer.value):
            assert text.strip() == "not determinable"
        elif "±" in text:
            assert numbers == pytest.approx([answer.value, (high - low) / 2], rel=0.05)
        else:
            assert numbers == pytest.approx([answer.value, low, high], rel=0.05)
