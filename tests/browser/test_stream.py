"""Streams: the history, a point that arrives while one looks, and several counts together."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect

from .conftest import Open
from .world import PERIODS, World

pytestmark = pytest.mark.browser

PATIENCE = 3600


def test_a_new_number_arrives_by_itself(opened: Open, world: World) -> None:
    """When a period ends, its number joins the chart, the table and the headline without a reload."""
    page = opened().go("/streams/door")
    expect(page.locator("main")).to_contain_text("Live.")
    seen, line = _last(page), page.locator(".line").get_attribute("d")
    for _ in range(PATIENCE):
        world.door.tick(now=datetime.now(UTC))
        page.wait_for_timeout(500)
        if _last(page) > seen:
            break

    assert _last(page) > seen
    assert page.locator(".line").get_attribute("d") != line
    expect(page.locator(".big").first).to_contain_text("±")


def test_a_stream_says_what_it_is(opened: Open) -> None:
    """How often it speaks, what it promises, and what was taken to be public."""
    page = opened().go("/streams/door")

    expect(page.locator(".lead")).to_contain_text("published every second")
    expect(page.locator(".promise")).to_contain_text("Whether or not one event is in the data")
    expect(page.locator(".promise")).to_contain_text("how many periods have ended")


def test_a_family_has_a_chart_for_each_key(opened: Open) -> None:
    """Small multiples, one for each key, with a band around each line, and one table of all."""
    page = opened().go("/streams/wards")

    expect(page.locator(".multiples h2")).to_have_text(["north", "south", "west"])
    expect(page.locator(".multiples .band")).to_have_count(3)
    expect(page.locator("tbody tr")).to_have_count(PERIODS)
    expect(page.locator("thead")).to_contain_text("west")


def _last(page: Page) -> int:
    """The last period in the table."""
    return int(re.sub(r"\D", "", page.locator("tbody td").first.inner_text()))
