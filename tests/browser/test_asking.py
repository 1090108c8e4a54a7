"""The field for any question: answered as the library answers, and kept in the address."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from .conftest import Open
from .world import VISITS, World

pytestmark = pytest.mark.browser

BASE = f"/releases/{VISITS}"


def test_any_question_is_answered(opened: Open, world: World) -> None:
    """Typed and sent by Enter: groups as bars, with what their order can support; a link asks it again."""
    page = opened().go(BASE)
    field = page.get_by_label("A question, in the words of the query language")
    field.fill("count by town order by count desc limit 5")
    field.press("Enter")

    expected = [each.value for each in world.visits.group("town").count().top(5)]
    names = page.locator(".answer .labels .name")
    expect(names).to_have_count(5)
    counts = [
        float(re.sub(r"[^\d.]", "", text))
        for text in page.locator(".answer .labels strong").all_inner_texts()
    ]
    assert counts == pytest.approx(expected, rel=0.02)
    expect(page.locator(".answer")).to_contain_text("95% of the difference of neighbours")
    page.goto(page.url)
    expect(names).to_have_count(5)
    expect(field).to_have_value("count by town order by count desc limit 5")


def test_examples_are_offered(opened: Open) -> None:
    """They are about the columns of the release, and a click asks one."""
    page = opened().go(BASE)
    page.get_by_role("button", name="count by month(seen)").click()

    expect(page.locator(".answer .labels .name")).to_have_text([f"2013-{month:02}" for month in range(1, 13)])


def test_a_mistyped_question_is_said_beside_the_field(opened: Open) -> None:
    """What was typed stays, and the message says what is wrong."""
    opening = opened()
    page = opening.go(BASE)
    field = page.get_by_label("A question, in the words of the query language")
    field.fill("count by twon")
    field.press("Enter")

    expect(page.locator("#misread")).to_contain_text("did you mean 'town'?")
    expect(field).to_have_attribute("aria-invalid", "true")
    assert field.input_value() == "count by twon"
    opening.complaints[:] = [each for each in opening.complaints if "Failed to load resource" not in each]


def test_charts_are_split_by_months(opened: Open, world: World) -> None:
    """A column of times offers its months: a small chart for each, and a click shows one alone."""
    page = opened().go("/releases/people-2026/view?x=age")
    expect(page.get_by_label("split by")).not_to_contain_text("month")
    page = opened().go("/releases/months/view?x=kind&split=month(day)")

    expect(page.locator(".multiples h3")).to_have_text(["2026-01", "2026-02", "2026-03"])
    page.get_by_role("button", name="Only 2026-02").click()
    expect(page).to_have_url(re.compile("where=day\\+%3D\\+2026-02"))


def test_a_map_has_larger_fields_where_noise_dominates(opened: Open) -> None:
    """Fields are not so fine that noise hides all of them."""
    page = opened().go("/releases/places/view?x=lon&y=lat")

    expect(
        page.get_by_text(re.compile(r"of \d{2,3} fields the noise is as large as the count"))
    ).to_be_visible()
