"""How it looks: both themes, two widths, on paper; pictures of all of it are kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from .conftest import Open
from .looking import DESK, PHONE
from .world import BEFORE, PEOPLE, TABLE, VISITS

pytestmark = pytest.mark.browser

VIEW = f"/releases/{PEOPLE}/view"
PAGES = {
    "overview": "/",
    "release": f"/releases/{PEOPLE}",
    "range": f"{VIEW}?x=age&where=age+between+30+and+39",
    "dates": f"{VIEW}?x=visited",
    "labels": f"{VIEW}?x=region",
    "rectangle": f"{VIEW}?x=age&y=salary&where=age+between+30+and+50+and+salary+between+20000+and+40000",
    "table": f"/releases/{TABLE}",
    "pair": f"/releases/{TABLE}/view?x=age&y=town",
    "towns": f"/releases/{VISITS}/view?x=town&where=town+in+('Town+139',+'Town+000')",
    "groups": f"/releases/{VISITS}/view?x=spent&split=kind&with={BEFORE}",
    "places": f"/releases/{VISITS}/view?x=lon&y=lat",
    "frame": f"/releases/{VISITS}/embed?x=spent",
    "addresses": "/docs",
    "stream": "/streams/door",
    "family": "/streams/wards",
}
_LONGEST = """[...document.querySelectorAll("*")]
    .map((each) => getComputedStyle(each).transitionDuration).sort().at(-1)"""
_BACKGROUND = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_every_page_fits_and_is_kept_as_a_picture(
    opened: Open, screenshots: Path, name: str, scheme: str
) -> None:
    """On a desk and on a phone nothing sticks out to the side, and paper is light or dark as was asked."""
    page = opened(color_scheme=scheme).go(PAGES[name])
    page.wait_for_load_state("load")
    for size, width in (("desk", DESK), ("phone", PHONE)):
        page.set_viewport_size({"width": width["width"], "height": width["height"]})
        page.wait_for_timeout(200)
        page.screenshot(path=screenshots / f"{name}-{scheme}-{size}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= width["width"]
    assert (_brightness(page) > 128) == (scheme == "light")


def test_the_theme_can_be_chosen(opened: Open) -> None:
    """The button goes from the system's theme to light and dark, and the choice outlives a reload."""
    page = opened(color_scheme="light").go(PAGES["rectangle"])
    colours = page.locator("image").get_attribute("href")
    page.get_by_role("button", name="Theme").click()
    page.get_by_role("button", name="Theme").click()
    assert _brightness(page) < 128
    assert page.locator("image").get_attribute("href") != colours
    page.reload()

    expect(page.get_by_role("button", name="Theme")).to_have_text("Theme: dark")
    assert _brightness(page) < 128


def test_paper_has_no_buttons(opened: Open) -> None:
    """In print the controls are gone, and the numbers stay."""
    page = opened().go(PAGES["range"])
    page.emulate_media(media="print")

    expect(page.locator(".tools")).to_be_hidden()
    expect(page.locator("button:visible")).to_have_count(0)
    expect(page.locator(".big strong")).to_be_visible()


def test_nothing_moves_by_itself(opened: Open) -> None:
    """There are no transitions or animations, so nobody has to ask for less motion."""
    page = opened().go(PAGES["range"])

    assert page.evaluate("document.getAnimations().length") == 0
    assert page.evaluate(_LONGEST) == "0s"


def _brightness(page: Page) -> float:
    red, green, blue = page.evaluate(_BACKGROUND)
    return float(red + green + blue) / 3
