"""Labels as horizontal bars: sorted, searched, chosen one by one; conditions, groups, sums and means."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from .conftest import Open
from .looking import number, settled, shows
from .world import KEYS, KINDS, TOWNS, VISITS, World

pytestmark = pytest.mark.browser

BASE = f"/releases/{VISITS}/view"
TOWN = f"{BASE}?x=town"


def names(page: Page) -> list[str]:
    """The labels that are listed, from the top."""
    return list(page.locator(".labels .name").all_inner_texts())


def test_labels_stand_by_estimate_each_by_itself(opened: Open, world: World) -> None:
    """The first have the most rows by the release; each has its own count, none is joined with others."""
    page = opened().go(TOWN)
    counts = world.visits.counts(town=TOWNS).values
    expected = [TOWNS[place] for place in sorted(range(len(TOWNS)), key=lambda place: -counts[place])]

    assert names(page) == expected[:25]
    first = page.locator(".labels .number strong").first.inner_text()
    assert first == f"{max(counts):,.0f}"
    page.get_by_role("button", name="Show 115 more of 140").click()
    assert names(page) == expected


def test_every_label_is_found_by_a_search(opened: Open) -> None:
    """The rarest too; what is in no label is said to be in none; other orders are offered."""
    page = opened().go(TOWN)
    page.get_by_label("Find one of 140 labels").fill("wn 000")
    assert names(page) == ["Town 000"]
    page.get_by_label("Find one of 140 labels").fill("Atlantis")
    expect(page.get_by_text("No label has this in it.")).to_be_visible()
    page.get_by_label("Find one of 140 labels").fill("")
    page.get_by_label("Order").select_option("by name")

    assert names(page)[:2] == ["Town 000", "Town 001"]


def test_thousands_of_labels_are_asked_for_in_parts(opened: Open) -> None:
    """No answer of the service has so many bins; the last label is there, and is the most frequent."""
    page = opened().go("/releases/keys/view?x=key")

    expect(page.get_by_label(f"Find one of {len(KEYS):,} labels")).to_be_visible()
    assert names(page)[:2] == [KEYS[-1], KEYS[0]]


def test_several_labels_are_chosen(opened: Open, world: World) -> None:
    """Each click adds one, by mouse or keyboard; the condition and its count follow."""
    page = opened().go(TOWN)
    page.locator(".labels .row", has_text="Town 139").click()
    settled(page, "town = 'Town 139'")
    page.get_by_label(re.compile("Town 138")).focus()
    page.keyboard.press("Space")
    settled(page, "town in ('Town 139', 'Town 138')")

    shows(page, world.visits.count(town={"Town 139", "Town 138"}))
    page.reload()
    expect(page.get_by_label(re.compile("Town 138"))).to_be_checked()
    page.get_by_role("button", name="Clear").click()
    settled(page, re.compile("^$"))
    expect(page.locator(".labels :checked")).to_have_count(0)


def test_sums_and_means_of_the_selection(opened: Open, world: World) -> None:
    """They are those of the release, and follow the selection."""
    page = opened().go(f"{TOWN}&where=town+%3D+'Town+139'")
    mean = world.visits.mean("cost", town="Town 139")
    total = world.visits.sum("cost", town="Town 139")

    shown = page.locator(".specials", has_text="Sum and mean of").locator("dd")
    expect(shown).to_have_count(2)
    values = [float(re.sub(r"[^\d.]", "", re.split(r"[±(]", text)[0])) for text in shown.all_inner_texts()]
    assert values == pytest.approx([mean.value, total.value], rel=0.01)


def test_a_mistyped_condition_is_said_beside_its_field(opened: Open) -> None:
    """The chart, the number and what was typed stay, and a repaired condition is applied."""
    opening = opened()
    page = opening.go(f"{BASE}?x=spent")
    before, field = number(page), page.get_by_label("Only rows where")
    assert "kind = bus" in (field.get_attribute("placeholder") or "")
    field.fill("kimd = bus")
    field.press("Enter")

    expect(page.get_by_role("alert").filter(has_text="did you mean 'kind'")).to_be_visible()
    expect(field).to_have_attribute("aria-invalid", "true")
    assert (field.input_value(), number(page)) == ("kimd = bus", before)
    assert page.locator(".bar").count() > 5
    field.fill("kind = bus")
    field.press("Enter")
    settled(page, "kind = bus")
    page.goto(page.url.replace("kind", "kimd"))
    expect(page.get_by_role("alert").filter(has_text="did you mean 'kind'")).to_be_visible()
    assert page.get_by_label("Only rows where").input_value() == "kimd = bus"
    opening.complaints[:] = [each for each in opening.complaints if "Failed to load resource" not in each]


def test_a_column_is_picked_for_a_condition(opened: Open) -> None:
    """The list writes an example into the field."""
    page = opened().go(f"{BASE}?x=spent")
    page.get_by_label("Add a condition").select_option("kind")

    expect(page.get_by_label("Only rows where")).to_have_value("kind = bus")


def test_groups_are_small_charts_on_one_scale(opened: Open, world: World) -> None:
    """One for each label with its count and mean; a click shows it alone; a table has all groups."""
    page = opened().go(f"{BASE}?x=spent&split=kind")
    groups = page.locator(".multiples > div")
    expect(groups).to_have_count(len(KINDS))
    expect(groups.first).to_contain_text(f"{world.visits.count(kind='bus').value:,.0f}")
    expect(groups.first).to_contain_text("mean of cost")
    scales = {each.locator(".axis.grid text").last.text_content() for each in groups.all()}
    assert len(scales) == 1
    page.get_by_text("groups as a table").click()
    expect(page.locator("table", has_text="sum of cost").locator("tbody tr")).to_have_count(len(KINDS))
    page.get_by_role("button", name="Only bus").click()
    settled(page, "kind = bus")


def test_a_pair_with_many_labels_is_shown_in_groups(opened: Open) -> None:
    """A heat map would join neighbours."""
    page = opened().go(f"{BASE}?x=town&y=kind")

    expect(page.locator(".multiples > div")).to_have_count(12)
    expect(page.get_by_role("heading", name="By town")).to_be_visible()
    expect(page.locator("image")).to_have_count(0)
