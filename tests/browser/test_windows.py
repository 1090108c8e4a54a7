"""Windows of wide axes, the clock of a zone, maps, and two releases side by side."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from partita.public.window import find_window

from .conftest import Open
from .looking import handle, settled, shows
from .world import BEFORE, VISITS, World

pytestmark = pytest.mark.browser

BASE = f"/releases/{VISITS}/view"


def test_wide_bounds_do_not_flatten_a_picture(opened: Open, world: World) -> None:
    """The picture shows where nearly all rows are, as the library finds it; all is one click away."""
    page = opened().go(f"{BASE}?x=spent")
    window = find_window(world.visits.slice("spent"))
    end = handle(page, "spent, to")
    assert window.last < 10_000
    expect(end).to_have_attribute("aria-valuemax", str(window.last))
    expect(page.get_by_text("its axis goes from 0 to 10,000,000")).to_be_visible()
    expect(page.get_by_text(re.compile("rows lie on it beside the picture"))).to_be_visible()

    page.get_by_role("button", name="Whole axis").click()
    expect(end).to_have_attribute("aria-valuemax", "10000000")
    page.get_by_role("button", name="Where the rows are").click()
    expect(end).to_have_attribute("aria-valuemax", str(window.last))


def test_a_selection_beside_the_window_shows_the_whole_axis(opened: Open, world: World) -> None:
    """From an address, and when it is typed; it is never cut to the picture."""
    page = opened().go(f"{BASE}?x=spent&where=spent+between+50000+and+90000")
    expect(handle(page, "spent, to")).to_have_attribute("aria-valuetext", "90,000")
    page.goto(page.url.split("?")[0] + "?x=spent")
    page.get_by_label("spent, exactly to").fill("500000")
    page.get_by_label("spent, exactly to").press("Enter")
    settled(page, re.compile("spent between .* and 500000"))

    expect(handle(page, "spent, to")).to_have_attribute("aria-valuetext", "500,000")


def test_ticks_stand_on_the_clock_of_the_zone(opened: Open) -> None:
    """A tick at the first of a month in New York is there, and says so with its year."""
    page = opened().go(f"{BASE}?x=seen")
    ticks = page.locator(".figure").first.locator(".axis:not(.grid) text").all_text_contents()

    assert "Jul 2013" in ticks
    assert not any(re.search(r" 13$", tick) for tick in ticks)
    expect(page.get_by_text("Times are those of the clock in America/New_York.")).to_be_visible()
    page.goto(page.url + "&from=2013-01-29&to=2013-02-04")
    expect(page.locator(".axis text", has_text="1 Feb").first).to_be_visible()
    expect(page.get_by_label("seen, exactly from")).to_have_value("2013-01-29T00:00:00-05:00")


def test_places_are_drawn_as_a_map(opened: Open) -> None:
    """Longitudes go to the right whichever was named first, and a degree has the length that it has there."""
    page = opened().go(f"{BASE}?x=lat&y=lon")
    expect(page.locator("h1")).to_have_text("lon and lat")
    image: Any = page.locator("image").bounding_box()
    ends = {
        (name, end): float(page.get_by_label(f"{name}, exactly {end}").input_value())
        for name in ("lat", "lon")
        for end in ("from", "to")
    }
    wide, high = (ends[name, "to"] - ends[name, "from"] + 0.01 for name in ("lon", "lat"))

    stretched = (image["height"] / high) / (image["width"] / wide)
    assert stretched == pytest.approx(1 / 0.744, rel=0.02)  # the cosine of 41.9 degrees


def test_two_releases_are_compared(opened: Open, world: World) -> None:
    """Both curves, the difference with the errors of both, and the same for a selection."""
    page = opened().go(f"{BASE}?x=spent&with={BEFORE}&where=spent+between+100+and+200")
    here, there = (each.count(spent=(100, 200)) for each in (world.visits, world.before))

    shows(page, here)
    expect(page.locator(".count")).to_contain_text(f"{BEFORE}: {there.value:,.0f}")
    expect(page.locator(".count")).to_contain_text(f"Difference: +{here.value - there.value:,.0f}")
    expect(page.locator(".other .line")).to_be_visible()
    expect(page.get_by_role("heading", name=f"{VISITS} less {BEFORE}")).to_be_visible()


def test_labels_of_two_releases_are_compared(opened: Open) -> None:
    """Each bar has a mark, and a table has the differences, the largest first."""
    page = opened().go(f"{BASE}?x=kind&with={BEFORE}")

    expect(page.locator(".mark")).to_have_count(3)
    cells = page.locator("table", has_text="difference").locator("tbody td:last-child").all_inner_texts()
    sizes = [abs(float(text.split("±")[0].replace(",", "").replace("−", "-"))) for text in cells]
    assert sizes == sorted(sizes, reverse=True)
