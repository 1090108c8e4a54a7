"""What there is, what a release promises in plain words, and what is said where something is wrong."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from .conftest import Open
from .world import PEOPLE, World

pytestmark = pytest.mark.browser


def test_everything_published_has_a_card(opened: Open) -> None:
    """Releases and streams are listed, and a file that is no release says that it is damaged."""
    page = opened().go("/")

    expect(page.get_by_role("link", name=PEOPLE)).to_contain_text(
        "age, region, visited, arrived, hours and salary"
    )
    expect(page.get_by_role("link", name="door")).to_contain_text("every second")
    expect(page.locator("li", has_text="damaged").first).to_contain_text(
        "Whoever runs the service can replace it"
    )


def test_an_empty_folder_is_friendly(opened: Open) -> None:
    """Where nothing is published yet, the page says what to do."""
    opening = opened()
    opening.page.route("**/index.json", lambda route: route.fulfill(json={"releases": [], "streams": []}))

    expect(opening.go("/").locator("main")).to_contain_text("No releases yet")


def test_epsilon_is_explained_with_its_own_numbers(opened: Open) -> None:
    """The factor is e to the epsilon, rounded up, and the surest guess follows from it."""
    words = opened().go(f"/releases/{PEOPLE}").locator(".promise")

    expect(words).to_contain_text("What ε = 3 means here")
    expect(words).to_contain_text(f"a factor of at most {math.ceil(10 * math.exp(3)) / 10}")
    expect(words).to_contain_text(f"at most {math.ceil(1000 / (1 + math.exp(-3))) / 10}% sure")
    expect(words).to_contain_text("one person with one row")
    expect(words).to_contain_text("Taken as public")


def test_rho_is_explained_with_the_epsilon_that_follows(opened: Open) -> None:
    """A release in rho says so, and its epsilon with the delta at which it is meant."""

    def in_rho(route: Route) -> None:
        answer = route.fetch()
        about = answer.json()
        point = {"epsilon": "305812217/100000000", "delta": "1/1000000000", "rho": "1/8"}
        about["guarantee"] |= point
        route.fulfill(response=answer, json=about)

    opening = opened()
    opening.page.route(f"**/releases/{PEOPLE}.json", in_rho)
    page = opening.go(f"/releases/{PEOPLE}")

    words = page.locator(".promise")
    expect(words).to_contain_text("What ρ = 1/8 means here")
    expect(words).to_contain_text("ε = 3.05813 at a δ of 1/1000000000, and less at a larger δ")
    expect(page.locator("main")).to_contain_text("Rho 1/8, not recorded in a ledger")


def test_a_declared_guarantee_is_called_that(opened: Open) -> None:
    """Where counts were imported, the page says whose word the promise is, and where they come from."""
    opening = opened()

    def imported(route: Route) -> None:
        about = route.fetch().json()
        about["views"][0] |= {"mechanism": "imported", "why": "Imported from OpenDP."}
        route.fulfill(json=about)

    opening.page.route(f"**/releases/{PEOPLE}.json", imported)
    page = opening.go(f"/releases/{PEOPLE}")

    expect(page.locator(".promise")).to_contain_text("not checked by Partita")
    expect(page.locator("main")).to_contain_text("Imported from OpenDP.")


def test_every_column_has_a_picture_that_leads_to_it(opened: Open) -> None:
    """A small picture of each column is a link to its view, and pairs lead to heat maps."""
    page = opened().go(f"/releases/{PEOPLE}")
    expect(page.locator(".mini:has(svg)")).to_have_count(6)
    page.get_by_role("link", name="age and salary").click()

    expect(page.locator("h1")).to_have_text("age and salary")


def test_the_file_itself_can_be_taken_home(opened: Open, world: World) -> None:
    """The download is the release file, byte for byte."""
    page = opened().go(f"/releases/{PEOPLE}")
    with page.expect_download() as download:
        page.get_by_role("link", name="The release itself").click()

    stored = world.folder / f"{PEOPLE}.release.parquet"
    assert Path(download.value.path()).read_bytes() == stored.read_bytes()


@pytest.mark.parametrize(
    ("address", "title"),
    [
        ("/releases/nobody", "Nothing here"),
        ("/releases/damaged", "Damaged"),
        ("/streams/nothing", "Nothing here"),
        (f"/releases/{PEOPLE}/view?x=shoe", "That cannot be asked"),
    ],
)
def test_what_cannot_be_shown_is_said_plainly(opened: Open, address: str, title: str) -> None:
    """A missing or damaged file, or an impossible question, gets a title and a sentence, and no trace."""
    opening = opened()
    page = opening.go(address)

    expect(page.locator("h1")).to_have_text(title)
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    assert [complaint for complaint in opening.complaints if "Failed to load resource" not in complaint] == []
    opening.complaints.clear()


def test_a_data_address_has_a_twin(opened: Open) -> None:
    """Every page links to its data."""
    for address, twin in (("/", "/index.json"), (f"/releases/{PEOPLE}", f"/releases/{PEOPLE}.json")):
        page = opened().go(address)
        expect(page.get_by_role("link", name="This page as JSON")).to_have_attribute("href", twin)
