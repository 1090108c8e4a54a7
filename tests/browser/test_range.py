"""One column: a range by mouse, keyboard, touch and typing, its count, and what is around the picture."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from .conftest import Open
from .looking import PHONE, at, drag, handle, number, settled, shows, swipe, where
from .world import PEOPLE, World

pytestmark = pytest.mark.browser

AGES = f"/releases/{PEOPLE}/view?x=age"
CHOSEN = f"{AGES}&where=age+between+30+and+39"


def test_the_page_shows_the_count_of_the_release(opened: Open, world: World) -> None:
    """The number on the page is what the release answers to the same question, with the error of a batch."""
    page = opened().go(CHOSEN)
    answer = world.release.count(age=(30, 39))

    shows(page, answer)
    half = 1.96 * world.release.counts(age=([30], [39])).error[0]
    shown = float(re.sub(r"[^\d.]", "", page.locator(".big").inner_text().split("±")[1]))
    assert shown == pytest.approx(half, abs=2)


def test_a_range_is_drawn_with_the_mouse(opened: Open, world: World) -> None:
    """A drag over the picture chooses the ages under it, counts them, and puts them into the address."""
    page = opened().go(AGES)
    everybody = number(page)
    drag(page, at(page, 30.5 / 111, 0.5), at(page, 39.5 / 111, 0.5))
    settled(page, "age between 30 and 39")

    shows(page, world.release.count(age=(30, 39)))
    assert number(page) < everybody


def test_a_range_is_carried_and_cleared_with_the_mouse(opened: Open) -> None:
    """A drag inside of a range moves both its ends, and a click beside it clears it."""
    page = opened().go(CHOSEN)
    drag(page, at(page, 35.5 / 111, 0.5), at(page, 55.5 / 111, 0.5))
    settled(page, "age between 50 and 59")

    page.mouse.click(*at(page, 0.9, 0.5))
    settled(page, re.compile("^$"))


def test_the_ends_move_by_keyboard(opened: Open, world: World) -> None:
    """Arrows move an end by one, with shift by more, Home and End to the ends, Escape clears."""
    page = opened().go(CHOSEN)
    low, high = handle(page, "age, from"), handle(page, "age, to")
    assert (low.get_attribute("aria-valuetext"), high.get_attribute("aria-valuetext")) == ("30", "39")

    low.focus()
    page.keyboard.press("ArrowLeft")
    settled(page, "age between 29 and 39")
    page.keyboard.press("Shift+ArrowRight")
    settled(page, "age between 39 and 39")
    page.keyboard.press("Home")
    high.focus()
    page.keyboard.press("ArrowUp")
    settled(page, "age between 0 and 40")
    shows(page, world.release.count(age=(0, 40)))
    page.keyboard.press("Escape")
    settled(page, re.compile("^$"))
    assert high.get_attribute("aria-valuetext") == "110"


def test_counts_are_read_out(opened: Open) -> None:
    """A live region says the new count, with its error in words."""
    page = opened().go(AGES)
    handle(page, "age, from").focus()
    page.keyboard.press("PageUp")

    expect(page.locator("#said")).to_contain_text(re.compile(r"^[\d,]+ rows, plus or minus"))


def test_a_range_is_drawn_with_a_finger(opened: Open) -> None:
    """On a phone a swipe over the picture chooses a range."""
    page = opened(viewport=PHONE, has_touch=True, is_mobile=True).go(AGES)
    swipe(page, at(page, 20.5 / 111, 0.5), at(page, 60.5 / 111, 0.5))

    settled(page, re.compile(r"age between (19|20|21) and (59|60|61)"))


def test_exact_ends_are_typed(opened: Open) -> None:
    """Fields take the exact ends of a range, and dates as dates."""
    page = opened().go(AGES)
    page.get_by_label("age, exactly from").fill("18")
    page.get_by_label("age, exactly from").press("Enter")
    settled(page, "age between 18 and 110")

    page.goto(page.url.replace("x=age", "x=visited").split("&")[0])
    page.get_by_label("visited, exactly to").fill("2026-02-01")
    page.get_by_label("visited, exactly to").press("Tab")
    settled(page, "visited between 2026-01-01 and 2026-02-01")


def test_times_are_asked_for_as_instants(opened: Open, world: World) -> None:
    """Of a column with a zone, the ends are read out in its zone and asked for with an offset."""
    page = opened().go(f"/releases/{PEOPLE}/view?x=arrived")
    end = handle(page, "arrived, to")
    end.focus()
    page.keyboard.press("Home")
    page.keyboard.press("PageUp")
    settled(page, re.compile("arrived between 2026-03-01T00:00:00.01:00 and 2026-03-01T10:00:00.01:00"))

    expect(end).to_have_attribute("aria-valuetext", "1 Mar 2026, 10:00")
    shows(page, world.release.count(arrived=("2026-03-01T00:00", "2026-03-01T10:00")))


def test_an_address_is_a_view(opened: Open) -> None:
    """Reloading keeps the selection; going to another column and back returns to it."""
    page = opened().go(CHOSEN)
    before = number(page)
    page.reload()
    assert number(page) == before

    page.get_by_label("Column").select_option("hours")
    expect(page.locator("h1")).to_have_text("hours")
    page.go_back()
    expect(page.locator("h1")).to_have_text("age")
    assert (where(page), number(page)) == ("age between 30 and 39", before)


def test_more_confidence_is_a_wider_error(opened: Open) -> None:
    """At 99% the error is larger than at 80%."""
    page = opened().go(CHOSEN)
    errors = []
    for confidence in ("80%", "99%"):
        page.get_by_label("Confidence").select_option(confidence)
        expect(page.locator(".count")).to_contain_text(f"with {confidence} confidence")
        errors.append(float(re.sub(r"[^\d.]", "", page.locator(".big").inner_text().split("±")[1])))

    assert errors[0] < errors[1]


def test_noise_that_dominates_is_said(opened: Open) -> None:
    """A range that hardly anybody is in carries a warning, and a wide one does not."""
    page = opened().go(f"{AGES}&where=age+between+109+and+110")
    expect(page.locator(".count .warn")).to_contain_text("Noise dominates")

    page.goto(page.url.replace("109", "0"))
    expect(page.locator(".count .warn")).to_have_count(0)


def test_a_window_shows_a_part_of_the_axis(opened: Open) -> None:
    """Zooming in shows the chosen ages alone, and the whole axis comes back."""
    page = opened().go(CHOSEN)
    page.get_by_role("button", name="Zoom in").click()
    expect(handle(page, "age, from")).to_have_attribute("aria-valuemin", "30")
    assert page.locator(".bar").count() == 10

    page.get_by_role("button", name="Whole axis").click()
    expect(handle(page, "age, from")).to_have_attribute("aria-valuemin", "0")


def test_a_filter_counts_some_rows_only(opened: Open, world: World) -> None:
    """Conditions on a column that was released together say which rows are seen."""
    page = opened().go(AGES)
    page.get_by_label("Only rows where").fill("salary >= 30000")
    page.get_by_label("Only rows where").press("Enter")
    settled(page, "salary >= 30000")

    shows(page, world.release.count(salary=(30_000, None)))


def test_quartiles_are_marked_or_not(opened: Open) -> None:
    """Three dots are on the curve of shares until they are switched off."""
    page = opened().go(AGES)
    expect(page.locator(".quantiles circle")).to_have_count(3)
    expect(page.locator("li", has_text="Half of the rows")).to_be_visible()
    page.get_by_label("Mark the quartiles").uncheck()

    expect(page.locator(".quantiles circle")).to_have_count(0)


def test_what_is_seen_is_a_table_and_a_file(opened: Open) -> None:
    """The table has a row for each bar, and the file as many lines."""
    page = opened().go(AGES)
    page.get_by_text("As a table").click()
    bars = page.locator(".bar").count()
    expect(page.locator("tbody tr")).to_have_count(bars)

    with page.expect_download() as download:
        page.get_by_text("Download as CSV").click()
    assert len(Path(download.value.path()).read_text().splitlines()) >= bars + 1


def test_a_view_is_copied_as_a_question(opened: Open) -> None:
    """Python, curl and the query language ask what the page shows, and can be copied."""
    page = opened(permissions=["clipboard-read", "clipboard-write"]).go(CHOSEN)
    page.get_by_role("button", name="Copy Query").click()
    expect(page.get_by_role("button", name="Copy Query")).to_have_text("Copied")

    assert page.evaluate("navigator.clipboard.readText()") == "count where age between 30 and 39"
    assert "release.count(" in page.locator("pre").nth(0).inner_text()
    assert "curl" in page.locator("pre").nth(1).inner_text()


@pytest.mark.parametrize("column", ["age", "region", "visited", "arrived", "hours", "salary"])
def test_every_kind_of_column_is_drawn(opened: Open, column: str) -> None:
    """Integers, labels, dates, times and reals get bars, words beside them, and what is not on the axis."""
    page = opened().go(f"/releases/{PEOPLE}/view?x={column}")

    assert page.locator(".bar").count() >= 5
    assert page.locator(".axis text, .labels .name").count() >= 4
    expect(page.locator(".specials")).to_contain_text("null")
