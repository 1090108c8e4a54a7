"""What tests do with the page: open it, drag on it, and hear what it complains about."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Page, Request, expect

from partita import Answer

PHONE = {"width": 360, "height": 760}
DESK = {"width": 1280, "height": 900}


@dataclass
class Opened:
    """A page of the service, and everything that went wrong on it."""

    page: Page
    service: str
    complaints: list[str] = field(default_factory=list)

    @classmethod
    def on(cls, context: BrowserContext, service: str) -> Opened:
        """A blank page that listens for errors, warnings and requests to elsewhere."""
        opened = cls(context.new_page(), service)
        opened.page.on("console", opened._said)
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.on("request", opened._asked)
        return opened

    def go(self, address: str) -> Page:
        """Open an address, and wait until something is there."""
        self.page.goto(self.service + address)
        expect(self.page.locator("main h1")).to_be_visible()
        return self.page

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.service + "/", "data:", "blob:")):
            self.complaints.append(f"asked {request.url}")


def number(page: Page) -> float:
    """The large number, once it is not out of date."""
    expect(page.locator(".count:not(.stale) .big strong")).to_be_visible()
    return float(re.sub(r"[^\d.]", "", page.locator(".big strong").first.inner_text()))


def shows(page: Page, answer: Answer) -> None:
    """Wait until the large number is this answer."""
    expect(page.locator(".count:not(.stale) .big strong")).to_have_text(f"{answer.value:,.0f}")


def where(page: Page) -> str:
    """The conditions in the address."""
    return "".join(parse_qs(urlsplit(page.url).query).get("where", []))


def settled(page: Page, conditions: str | re.Pattern[str]) -> None:
    """Wait until the address has conditions; nothing is fixed before."""
    pattern = conditions if isinstance(conditions, re.Pattern) else re.compile(re.escape(conditions))
    page.wait_for_function(
        "pattern => new RegExp(pattern).test(new URLSearchParams(location.search).get('where') ?? '')",
        arg=pattern.pattern,
    )


def handle(page: Page, name: str) -> Locator:
    """A handle of the brush."""
    return page.get_by_role("slider", name=name, exact=True)


def ground(page: Page) -> dict[str, float]:
    """Where the picture is, in pixels of the window."""
    page.locator(".ground").scroll_into_view_if_needed()
    box: Any = page.locator(".ground").bounding_box()
    return dict(box)


def at(page: Page, across: float, up: float) -> tuple[float, float]:
    """A place on the picture, by shares of its width and height."""
    box = ground(page)
    return box["x"] + across * box["width"], box["y"] + (1 - up) * box["height"]


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Press, move and let go with the mouse."""
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=8)
    page.mouse.up()


def swipe(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """The same with a finger, as the browser hears of fingers."""
    session = page.context.new_cdp_session(page)
    steps = [tuple(a + (b - a) * step / 8 for a, b in zip(start, end, strict=True)) for step in range(1, 9)]
    touches: list[tuple[str, list[Any]]]
    touches = [("touchStart", [start]), *(("touchMove", [place]) for place in steps), ("touchEnd", [])]
    for kind, places in touches:
        points = [{"x": x, "y": y} for x, y in places]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
