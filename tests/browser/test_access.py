"""Who may look: a token is asked for where one is needed, and patience is shown where it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from .conftest import Open
from .looking import number
from .world import PEOPLE

pytestmark = pytest.mark.browser


def test_a_token_is_asked_for_and_kept_in_the_tab(opened: Open, guarded: tuple[str, str]) -> None:
    """A wrong token is refused in words; the right one opens every page of the tab, files and streams too."""
    address, token = guarded
    opening = opened(at=address)
    page = opening.page
    page.goto(f"{address}/releases/{PEOPLE}/view?x=age")
    page.get_by_role("textbox", name="Token").fill("partita_wrong")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert")).not_to_be_empty()
    page.get_by_role("textbox", name="Token").fill(token)
    page.get_by_role("button", name="Continue").click()

    assert number(page) > 0
    with page.expect_download() as download:
        page.get_by_text("Download as CSV").click()
    assert Path(download.value.path()).stat().st_size > 0
    page.goto(f"{address}/streams/door")
    expect(page.locator("main")).to_contain_text("Live.")
    assert page.evaluate("localStorage.getItem('partita-token')") is None
    assert token not in page.url
    _forget_refusals(opening.complaints, "401")


def test_the_page_waits_when_it_is_told_to(opened: Open) -> None:
    """Too many questions are asked again after the time that the service names."""
    opening, refused = opened(), list[str]()

    def first_time(route: Route) -> None:
        if refused:
            route.continue_()
            return
        refused.append(route.request.url)
        route.fulfill(
            status=429, headers={"Retry-After": "1"}, json={"error": {"kind": "TooMany", "message": "wait"}}
        )

    opening.page.route("**/index.json", first_time)

    expect(opening.go("/").get_by_role("link", name=PEOPLE)).to_be_visible()
    assert len(refused) == 1
    _forget_refusals(opening.complaints, "429")


def _forget_refusals(complaints: list[str], status: str) -> None:
    """The browser itself writes a line for each refusal: those that the test made are fine."""
    complaints[:] = [line for line in complaints if f"status of {status}" not in line]
