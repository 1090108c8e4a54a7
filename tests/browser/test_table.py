"""A table release: a field for each pair of columns, by mouse and keyboard, and what answers rest on."""

from __future__ import annotations

import math

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.table_releases import DOMAINS, find_pair, table_release

from .conftest import Open
from .looking import PHONE
from .world import PEOPLE, TABLE

pytestmark = pytest.mark.browser

BASE = f"/releases/{TABLE}"
INFERRED = "Inferred by a model: nothing was counted of just what is asked for."
MEASURED = "Measured: noisy counts of just what is asked for."


def test_every_pair_has_a_field_with_a_name(opened: Open) -> None:
    """A field for each pair says both columns, how far they depend on each other, and what is known of it."""
    page = opened().go(BASE)
    found = table_release().dependence()

    expect(page.locator(".pair")).to_have_count(math.comb(len(DOMAINS), 2))
    for pair in found.pairs:
        kind = "measured together" if pair.basis == "measured" else "inferred by a model"
        name = f"{pair.first} and {pair.second}: dependence "
        expect(page.locator(f'.pair[aria-label^="{name}"]')).to_have_attribute(
            "aria-label", f"{name}{pair.dependence:.2f}".rstrip("0").rstrip(".") + f", {kind}"
        )


def test_shade_and_dot_follow_the_model(opened: Open) -> None:
    """The strongest pair has the darkest field, and only pairs that were measured have a dot."""
    page = opened().go(BASE)
    found = table_release().dependence()
    darkness = [float(shade(field(page, *pair[:2]))) for pair in found.pairs]

    assert darkness == sorted(darkness, reverse=True)
    for pair in found.pairs:
        dots = field(page, pair.first, pair.second).locator("circle")
        expect(dots).to_have_count(int(pair.basis == "measured"))


def test_a_click_shows_the_map_and_its_evidence(opened: Open) -> None:
    """An inferred pair leads to its heat map, which says that it is inferred; all rows are measured."""
    one, other = find_pair("inferred")
    page = opened().go(BASE)
    field(page, one, other).click()

    expect(page.locator("h1")).to_have_text(f"{one} and {other}")
    expect(page.locator("image")).to_be_visible()
    expect(page.locator(".split .evidence").first).to_have_text(INFERRED)
    expect(page.locator(".count .evidence")).to_have_text(MEASURED)


def test_pairs_are_reached_by_keyboard(opened: Open) -> None:
    """One field takes the focus, arrows move it, a line tells where it is, and Enter opens the map."""
    page = opened().go(BASE)
    expect(page.locator('.pair[tabindex="0"]')).to_have_count(1)
    page.locator('.pair[tabindex="0"]').focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".matrix .readout")).to_contain_text("age and town: dependence")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".matrix .readout")).to_contain_text("pay and town: dependence")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Home")
    expect(page.locator(".pair:focus")).to_have_attribute("tabindex", "0")
    expect(page.locator('.pair[tabindex="0"]')).to_have_count(1)
    page.keyboard.press("Enter")

    expect(page.locator("h1")).to_have_text("age and town")


def test_a_selection_says_what_it_rests_on(opened: Open) -> None:
    """The count of a rectangle of an inferred pair is inferred, and of three columns a model of pairs."""
    page = opened().go(f"{BASE}/view?x=age&y=town&where=age+between+10+and+39+and+town+%3D+Rome")
    expect(page.locator(".count .evidence")).to_have_text(INFERRED)
    page = opened().go(f"{BASE}/view?x=age&y=town&where=rooms+%3D+1")

    expect(page.locator(".split .evidence").first).to_contain_text("may miss how three or more go together")


def test_a_matrix_fits_on_a_phone(opened: Open) -> None:
    """It scrolls by itself where it is wide, and the page does not."""
    page = opened(viewport=PHONE).go(BASE)
    expect(page.locator(".matrix svg").first).to_be_visible()

    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_other_releases_have_no_matrix_and_no_evidence(opened: Open) -> None:
    """Where every answer is measured nothing is said of it."""
    page = opened().go(f"/releases/{PEOPLE}")
    expect(page.locator(".mini:has(svg)")).to_have_count(6)
    expect(page.locator(".matrix")).to_have_count(0)
    page = opened().go(f"/releases/{PEOPLE}/view?x=age")

    expect(page.locator(".count .big")).to_be_visible()
    expect(page.locator(".evidence")).to_have_count(0)


def field(page: Page, one: str, other: str) -> Locator:
    """The field of a pair."""
    return page.locator(f'.pair[aria-label^="{one} and {other}: "]')


def shade(pair: Locator) -> str:
    """How dark a field is, from 0 to 1."""
    return str(pair.locator(".bar").get_attribute("fill-opacity"))
