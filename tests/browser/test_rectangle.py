"""Two columns: a rectangle by mouse, keyboard and touch, its count, and each column given the other."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from .conftest import Open
from .looking import PHONE, at, drag, handle, settled, shows, swipe, where
from .world import PEOPLE, World

pytestmark = pytest.mark.browser

BOTH = f"/releases/{PEOPLE}/view?x=age&y=salary"
_BARS = """[...document.querySelectorAll("svg g:has(> .bar)")]
    .map((group) => [...group.querySelectorAll(".bar")].map((bar) => bar.getAttribute("height")))"""

CHOSEN = f"{BOTH}&where=age+between+30+and+49+and+salary+between+20000+and+40000"


def test_a_rectangle_is_drawn_with_the_mouse(opened: Open, world: World) -> None:
    """A drag over the map chooses ages and salaries, and counts who has both."""
    page = opened().go(BOTH)
    drag(page, at(page, 30.5 / 111, 0.1), at(page, 49.5 / 111, 0.3))
    settled(page, re.compile(r"age between 30 and 49 and salary between \d+ and \d+"))
    low, high = (int(text) for text in re.findall(r"\d+", where(page))[2:])

    shows(page, world.release.count(age=(30, 49), salary=(low, high)))


def test_the_sides_move_by_keyboard(opened: Open) -> None:
    """Four handles, of which two go up and down; Escape clears the rectangle."""
    page = opened().go(CHOSEN)
    handle(page, "age, to").focus()
    page.keyboard.press("ArrowRight")
    settled(page, "age between 30 and 50")
    handle(page, "salary, from").focus()
    page.keyboard.press("ArrowUp")
    settled(page, "salary between 20750 and 40000")
    page.keyboard.press("Escape")
    settled(page, re.compile("^$"))


def test_a_rectangle_is_drawn_with_a_finger(opened: Open) -> None:
    """On a phone a swipe across the map chooses a rectangle, and the page does not scroll away."""
    page = opened(viewport=PHONE, has_touch=True, is_mobile=True).go(BOTH)
    start, end = at(page, 0.2, 0.1), at(page, 0.6, 0.5)
    before = page.evaluate("scrollY")
    swipe(page, start, end)
    settled(page, re.compile("age between .* and salary between"))

    assert page.evaluate("scrollY") == before


def test_each_column_is_shown_given_the_other(opened: Open) -> None:
    """Another range of salaries changes the bars of age above the map, and not those of salary beside it."""
    page = opened().go(CHOSEN)
    above, beside = _bars(page)
    page.get_by_label("salary, exactly to").fill("25000")
    page.get_by_label("salary, exactly to").press("Enter")
    page.wait_for_function(f"before => JSON.stringify({_BARS}[0]) !== JSON.stringify(before)", arg=above)

    assert _bars(page)[1] == beside


def test_noise_and_colours_are_explained(opened: Open) -> None:
    """A legend says how many rows the strongest colour means, and how noise looks."""
    page = opened().go(BOTH)

    expect(page.locator(".fine", has_text="where noise dominates")).to_contain_text("rows in a field")
    expect(page.locator("image")).to_have_attribute("href", re.compile("^data:image/png"))


def _bars(page: Page) -> tuple[list[str], list[str]]:
    """How long the bars above the map are, and those beside it."""
    above, beside = page.evaluate(_BARS)
    return above, beside
