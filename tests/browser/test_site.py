"""A page without a server, from a disk and from a plain web server: its numbers are those of the library."""

from __future__ import annotations

import csv
import io
import random
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import cache, partial, reduce
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, Request, expect

import partita as pt
from partita.answer import Answer
from partita.domain.base import Special
from partita.domain.category import Category
from partita.public.axis.base import Specials
from partita.public.base import Provenance
from partita.public.estimates import ColumnEstimate
from partita.public.records import to_plain
from partita.public.release import Release
from partita.public.views import View
from partita.service.site.write import CONFIDENCES, write_site
from partita.testing import EndlessTape, tape_noise
from partita.trusted.secret import Histogram
from tests.public.file import specimens

from .looking import DESK, PHONE, Opened, at, drag, handle, shows
from .world import PEOPLE, TABLE, TOWNS, VISITS, World

pytestmark = pytest.mark.browser

FIXTURES = Path(__file__).parents[1] / "fixtures" / "version-0.1"
EARLIER = sorted(path.name.removesuffix(".release.parquet") for path in FIXTURES.glob("*.release.parquet"))
COUNTED = [
    name for name in EARLIER if name == "queries-beside" or not name.startswith(("queries-", "whole-sum"))
]
SPECIMENS = [f"specimen-{kind}" for kind in (*specimens.MECHANISMS, *specimens.BOX_MECHANISMS)]
MANY = "many-rows"
ONE_AT_A_TIME = "one_at_a_time"
WORLD = [PEOPLE, VISITS, TABLE, "keys", MANY]
QUESTIONS = 12


def many_rows() -> Release:
    """Thousands of rows on long axes, by each mechanism whose errors the script sums, on fixed tapes."""
    draw, views = np.random.default_rng(5), []
    for made, domain, rows in [
        (pt.PartitionTents, pt.Integer(0, 2**40 - 1), np.exp(draw.normal(14, 2, 20_000))),
        (pt.Tents, pt.Integer(0, 2_999), draw.gamma(4, 200, 20_000)),
        (pt.SpendingTree, pt.Integer(-(2**61), 2**61 - 1), 2.0**61 + draw.normal(0, 1e9, 20_000)),
    ]:
        mechanism = made(size=domain.size, epsilon=Fraction(1))
        cells = np.sort(np.clip(rows, 0, domain.size - 1).astype(np.uint64))
        histogram, tape = (
            Histogram.from_cells(cells, size=domain.size),
            tape_noise(EndlessTape(made.__name__)),
        )
        axis = replace(mechanism.release(histogram, noise=tape), guarantee=mechanism.guarantee)
        specials = Specials(counts=dict.fromkeys(domain.specials, 3), scale=Fraction(1))
        views.append(
            View(column=made.__name__, domain=domain, axis=axis, specials=specials, mechanism=axis.kind)
        )
    guarantee = reduce(add, [view.guarantee for view in views])
    provenance = Provenance(version="0.1.0", day="2026-11-18")
    return Release(views=tuple(views), guarantee=guarantee, provenance=provenance)


class Written(NamedTuple):
    """The folder of the releases, the page, and the addresses of it."""

    releases: Path
    folder: Path
    addresses: dict[str, str]

    def release(self, name: str) -> Release:
        """A release of the folder."""
        return loaded(self.releases / f"{name}.release.parquet")


@cache
def loaded(path: Path) -> Release:
    """A release file, loaded once."""
    return pt.load(path)


class Quiet(SimpleHTTPRequestHandler):
    """A plain server of files, which writes no log."""

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="session")
def written(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    """The page of what the world publishes, of a release of each mechanism, and of earlier versions."""
    releases, folder = (tmp_path_factory.mktemp(name) for name in ("releases", "site"))
    for path in [*world.folder.glob("*.release.parquet"), *FIXTURES.glob("*.release.parquet")]:
        if not path.name.startswith("damaged"):
            shutil.copy(path, releases)
    for name in SPECIMENS:
        specimens.release(name.removeprefix("specimen-")).save(releases / f"{name}.release.parquet")
    months = {
        "month": [f"m{place % 12}" for place in range(900)],
        "age": [place % 60 for place in range(900)],
    }
    schema: dict[str, pt.Domain] = {
        "month": pt.Category([f"m{place}" for place in range(12)]),
        "age": pt.Integer(0, 59),
    }
    pt.publish(months, schema, epsilon=4, views=[("month", "age")]).save(
        releases / f"{ONE_AT_A_TIME}.release.parquet"
    )
    many_rows().save(releases / f"{MANY}.release.parquet")
    write_site(releases, folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        addresses = {"disk": f"file://{folder}", "web": f"http://127.0.0.1:{server.server_port}"}
        yield Written(releases, folder, addresses)
        server.shutdown()


@pytest.fixture(scope="session")
def asked(written: Written, browser: Browser) -> Iterator[Page]:
    """One page that answers questions of scripts."""
    page = browser.new_page()
    page.goto(f"{written.addresses['disk']}/index.html")
    expect(page.locator("main h1")).to_be_visible()
    yield page
    page.close()


@pytest.fixture(params=["disk", "web"])
def opened_site(request: pytest.FixtureRequest, written: Written, browser: Browser) -> Iterator[Opened]:
    """A tab that shows the page; it must not have complained or asked anybody else."""
    context = browser.new_context(viewport=DESK)
    opened = Opened.on(context, written.addresses[request.param])
    yield opened
    context.close()
    assert opened.complaints == []


def ask(page: Page, path: str, **params: Any) -> Any:
    """What the page would be told."""
    found = page.evaluate(
        "([path, params]) => modules['api.js'].get(path, params).then((answer) => ({ answer }), "
        "({ message }) => ({ message }))",
        [path, params],
    )
    return found.get("answer", found)


def printed(page: Page, value: float, half: float) -> str:
    """A count and its error, as the page prints them."""
    script = "([count, half]) => modules['axis.js'].count(count) + ' ' + modules['axis.js'].plusMinus(half)"
    return str(page.evaluate(script, [value, half]))


def expected(value: float, half: float) -> str:
    """The same of numbers of the library, by another way: half up, and errors rounded up."""
    digits = Decimal("0.1") if abs(value) < 10 else Decimal(1)
    shown = f"{Decimal(repr(value)).quantize(digits, ROUND_HALF_UP):,f}"
    shown = shown.removesuffix(".0").replace("-", "−")
    error = np.ceil(10 * half) / 10 if half < 10 else np.ceil(half)
    return f"{'0' if shown == '−0' else shown} ± {f'{error:,.1f}'.removesuffix('.0')}"


def texts(domain: Any, *cells: int) -> list[str]:
    """Cells as the page writes them."""
    return [str(to_plain(value)) for value in domain.decode(list(cells))]


def quote(text: str) -> str:
    """A word of a condition."""
    return "'" + text.replace("'", "''") + "'"


def questions(release: Release, column: str) -> list[tuple[int, int]]:
    """Ranges of cells that the page offers: any, or some public ranges in a row; a label by itself."""
    estimate, draw = ColumnEstimate(release, column), random.Random(column)
    if isinstance(estimate.line.domain, Category):
        return [(cell, cell) for cell in draw.choices(range(estimate.size), k=QUESTIONS)]
    places = len(estimate.units or []) or estimate.size
    pairs = [sorted((draw.randrange(places), draw.randrange(places))) for _ in range(QUESTIONS)]
    pairs += [[0, places - 1], [places // 2, places // 2]]
    if estimate.units is None:
        ends = draw.choices(estimate.line.axis.curve.ends.tolist(), k=QUESTIONS)  # where a count may be heavy
        pairs += [[end, draw.choice([end, estimate.size - 1])] for end in ends]
        pairs += [[0, end] for end in ends]
        return [(low, high) for low, high in pairs]
    return [(estimate.units[low].low, estimate.units[high].high) for low, high in pairs]


@pytest.mark.parametrize("name", [*WORLD, *SPECIMENS, *COUNTED])
def test_counts_are_those_of_the_library(asked: Page, written: Written, name: str) -> None:
    """Of every column, to the printed digit; each range with a random one of the confidences."""
    release, draw = written.release(name), random.Random(name)
    assert release.columns
    for column in release.columns:
        domain = release.domain_of(column)
        for low, high in questions(release, column):
            confidence = draw.choice(CONFIDENCES)
            first, last = map(quote, texts(domain, low, high))
            one = f"{quote(column)} = {first}"
            where = one if isinstance(domain, Category) else f"{quote(column)} between {first} and {last}"
            answer = ask(asked, f"/releases/{name}/count", where=where, confidence=confidence)
            found = release.counts(where)
            value, error = found.values.item(), found.error.item()
            assert answer.get("value") == pytest.approx(value, rel=1e-9, abs=1e-9), (column, where, answer)
            assert answer["error"] == pytest.approx(error, rel=1e-9, abs=1e-9), (column, where)
            z = answer["half"] / answer["error"] if error else 0
            assert printed(asked, answer["value"], answer["half"]) == expected(value, z * error)


@pytest.mark.parametrize("name", [*WORLD, *SPECIMENS, *COUNTED])
def test_charts_are_those_of_the_library(asked: Page, written: Written, name: str) -> None:
    """Bins and their errors, shares, quantiles, special cells and the number of rows."""
    release = written.release(name)
    assert release.columns
    for column in release.columns:
        chart = ask(
            asked,
            f"/releases/{name}/view.json",
            x=column,
            confidence=0.9,
            bins=4096 if name == "keys" else 60,
        )
        [bins] = chart["axes"]
        found = release.counts({column: (bins["lows"], bins["highs"])})
        assert chart["values"] == pytest.approx(found.values.tolist(), rel=1e-9, abs=1e-9)
        assert chart["error"] == pytest.approx(found.error.tolist(), rel=1e-9, abs=1e-9)
        shares = release.cdf(column, chart["cdf"]["at"]).fractions
        assert chart["cdf"]["share"] == pytest.approx(shares.tolist(), rel=1e-9, abs=1e-9)
        for mark in chart["quantiles"]:
            quantile = release.quantile(column, mark["q"])
            assert [mark["value"], mark["low"], mark["high"]] == [
                str(to_plain(each)) for each in (quantile.value, *quantile.interval(0.9))
            ]
        for cell in chart["specials"]:
            special = release.count({column: Special.named(cell["name"])})
            assert cell["value"] == pytest.approx(special.value)
        assert chart["total"]["value"] == pytest.approx(release.count().value)


def test_sets_of_labels_are_those_of_the_library(asked: Page, written: Written) -> None:
    """With their intervals: independent counts add up, and of few labels each set was asked for."""
    for name, column, labels in [
        (VISITS, "town", TOWNS[3:60:7]),
        (VISITS, "kind", ["car", "train"]),
        (TABLE, "town", ["Rome", "Turin"]),
    ]:
        where = f"{column} in ({', '.join(map(quote, labels))})"
        for confidence in CONFIDENCES:
            answer = ask(asked, f"/releases/{name}/count", where=where, confidence=confidence)
            found = written.release(name).count(where)
            assert answer["value"] == pytest.approx(found.value, rel=1e-9)
            assert answer["error"] == pytest.approx(found.error, rel=1e-9)
            ends = answer["interval"]["low"], answer["interval"]["high"]
            assert ends == pytest.approx(found.interval(confidence), rel=1e-6)


@pytest.mark.parametrize(
    ("name", "x", "y"),
    [(PEOPLE, "age", "salary"), (PEOPLE, "salary", "age"), (TABLE, "pay", "town"), (VISITS, "lon", "lat")],
)
def test_maps_are_those_of_the_library(asked: Page, written: Written, name: str, x: str, y: str) -> None:
    """Fields, rectangles, and each column given a range of the other; with the columns in either order."""
    release, base = written.release(name), f"/releases/{name}"
    map_ = ask(asked, f"{base}/view.json", x=x, y=y, **window(release, x, y))
    across, up = map_["axes"]
    for i, j in [(0, 0), (3, 1), (len(across["lows"]) - 1, len(up["lows"]) - 1)]:
        field = {x: (across["lows"][i], across["highs"][i]), y: (up["lows"][j], up["highs"][j])}
        found = release.counts({column: ([low], [high]) for column, (low, high) in field.items()})
        assert map_["values"][i][j] == pytest.approx(found.values[0], rel=1e-9, abs=1e-9)
        assert map_["error"][i][j] == pytest.approx(found.error[0], rel=1e-9, abs=1e-9)
    (low, high), (bottom, top) = (chosen(release, axis) for axis in (across, up))
    where = f"{x} between {low} and {high} and {y} between {bottom} and {top}"
    answer, found = ask(asked, f"{base}/count", where=where), release.counts(where)
    assert answer["value"] == pytest.approx(found.values.item(), rel=1e-9)
    assert answer["error"] == pytest.approx(found.error.item(), rel=1e-9)
    chart = ask(asked, f"{base}/view.json", x=x, y=y, where=where, **window(release, x, y))
    beside = release.counts({x: (across["lows"], across["highs"]), y: (bottom, top)})
    assert chart["conditional"]["x"]["values"] == pytest.approx(beside.values.tolist(), rel=1e-9, abs=1e-9)
    assert chart["conditional"]["x"]["error"] == pytest.approx(beside.error.tolist(), rel=1e-9, abs=1e-9)
    assert chart["selection"]["count"]["value"] == pytest.approx(found.values.item(), rel=1e-9)


def window(release: Release, *columns: str) -> dict[str, str]:
    """Where nearly all rows are, as the page asks for it."""
    asked: dict[str, str] = {}
    for prefix, column in zip(("", "y_"), columns, strict=True):
        found = ColumnEstimate(release, column).window
        if not found.whole:
            low, high = texts(release.domain_of(column), found.first, found.last)
            asked |= {f"{prefix}from": low, f"{prefix}to": high}
    return asked


def chosen(release: Release, axis: dict[str, Any]) -> tuple[str, str]:
    """The second to the fourth of the public ranges of a side, or what there is of them."""
    units = axis["units"]
    first, last = units[min(1, len(units) - 1)][0], units[min(3, len(units) - 1)][1]
    low, high = texts(release.domain_of(axis["column"]), first, last)
    return low, high


@pytest.mark.parametrize(
    ("name", "x", "split"), [(VISITS, "spent", "kind"), (TABLE, "town", "age"), (VISITS, "kind", "town")]
)
def test_groups_and_sums_are_those_of_the_library(
    asked: Page, written: Written, name: str, x: str, split: str
) -> None:
    """The small charts of groups, how many rows are in each, and its sum and mean where they were written."""
    release, base = written.release(name), f"/releases/{name}"
    estimate = ColumnEstimate(release, split)
    column = "cost" if name == VISITS else "pay"
    for group in estimate.groups[:3]:
        first, last = texts(estimate.line.domain, *group)
        labelled = isinstance(estimate.line.domain, Category)
        where = f"{split} = {quote(first)}" if labelled else f"{split} between {first} and {last}"
        chart = ask(asked, f"{base}/view.json", x=x, where=where, bins=30)
        [bins] = chart["axes"]
        found = release.counts({x: (bins["lows"], bins["highs"]), split: (first, last)})
        assert chart["values"] == pytest.approx(found.values.tolist(), rel=1e-9, abs=1e-9)
        assert chart["error"] == pytest.approx(found.error.tolist(), rel=1e-9, abs=1e-9)
        for kind in ("mean", "sum"):
            answer = ask(asked, f"{base}/{kind}", column=column, where=where)
            if split == "town" and name == VISITS:
                assert "were not written" in answer["message"]
            else:
                summed = getattr(release, kind)(column, where)
                assert answer["value"] == pytest.approx(summed.value, nan_ok=True)
                ends = [answer["interval"]["low"], answer["interval"]["high"]]
                assert ends == pytest.approx(list(summed.interval()))
    answer = ask(asked, f"{base}/sum", column=column)
    assert answer["value"] == pytest.approx(release.sum(column).value)
    assert answer["covers"]["text"]


@pytest.mark.parametrize(
    ("name", "where", "words"),
    [
        (TABLE, "pay between 1 and 2", "begin at 0 or 100, and end at 99"),
        (TABLE, "pay > 3", "cannot read the condition"),
        (TABLE, "pay between 0 and 99 and age between 0 and 9 and rooms = 1", "three columns"),
        (PEOPLE, "age between 20 and 30 and region = Lazio", "not released together"),
        (PEOPLE, "nobody = 1", "no column nobody"),
        (VISITS, f"town in ({', '.join(map(quote, TOWNS))}) and town = x", "has no value x"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_reason(
    asked: Page, name: str, where: str, words: str
) -> None:
    """And never rounded to something else."""
    assert words in ask(asked, f"/releases/{name}/count", where=where)["message"]


def test_a_range_is_asked_for_with_the_mouse_and_by_typing(opened_site: Opened, written: Written) -> None:
    """The large number is that of the library, and a link with the selection shows it again."""
    release = written.release(PEOPLE)
    page = opened_site.go(f"/index.html#/releases/{PEOPLE}/view?x=age")
    shows(page, release.count())
    drag(page, at(page, 0.2, 0.5), at(page, 0.6, 0.5))
    page.wait_for_function("() => location.hash.includes('where=')")
    low, high = (
        int(handle(page, f"age, {end}").get_attribute("aria-valuenow") or "") for end in ("from", "to")
    )
    answer = release.count(age=(low, high))
    shows(page, answer)
    expect(page.locator(".big")).to_contain_text(half(answer))
    page.locator('[name="age-0"]').fill("23")
    page.locator('[name="age-0"]').press("Enter")
    shows(page, release.count(age=(23, high)))
    page.wait_for_function("() => location.hash.includes('between+23')")
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    shows(page, release.count(age=(23, high)))


def half(answer: Answer) -> str:
    """The error of a count, as the page prints it."""
    found = 1.959963984540054 * answer.error
    return f"± {np.ceil(found):,.0f}" if found >= 10 else f"± {np.ceil(10 * found) / 10:g}"


def test_a_range_between_public_values_is_moved_to_them_and_said(
    opened_site: Opened, written: Written
) -> None:
    """The handles stop at public values, the page says so, and a typed end shows where it went."""
    release = written.release(TABLE)
    page = opened_site.go(f"/index.html#/releases/{TABLE}/view?x=pay")
    expect(page.locator(".split")).to_contain_text("begin and end at 60 public values")
    handle(page, "pay, from").press("ArrowRight")
    shows(page, release.count(pay=(100, 5_999)))
    page.locator('[name="pay-1"]').fill("2000")
    page.locator('[name="pay-1"]').press("Enter")
    expect(page.locator('[name="pay-1"]')).to_have_value("1999")
    shows(page, release.count(pay=(100, 1_999)))


def test_a_rectangle_and_labels_are_chosen(opened_site: Opened, written: Written) -> None:
    """On a map between public values; labels in any number where their counts add up, else one at a time."""
    release = written.release(TABLE)
    page = opened_site.go(f"/index.html#/releases/{TABLE}/view?x=age&y=rooms")
    drag(page, at(page, 0.15, 0.15), at(page, 0.7, 0.7))
    page.wait_for_function("() => location.hash.includes('where=')")
    ends = [
        handle(page, f"{column}, {end}").get_attribute("aria-valuenow")
        for column in ("age", "rooms")
        for end in ("from", "to")
    ]
    low, high, bottom, top = (int(each or "") for each in ends)
    shows(page, release.count(age=(low, high), rooms=(bottom, top)))
    expect(page.get_by_role("button", name="Zoom in")).to_have_count(0)

    page = opened_site.go(f"/index.html#/releases/{VISITS}/view?x=town")
    for town in (TOWNS[139], TOWNS[137]):
        page.get_by_role("checkbox", name=town).check()
    shows(page, written.release(VISITS).count(town=[TOWNS[139], TOWNS[137]]))


def test_labels_whose_errors_do_not_add_up_are_chosen_one_at_a_time(
    opened_site: Opened, written: Written
) -> None:
    """A second one takes the place of the first."""
    page = opened_site.go(f"/index.html#/releases/{ONE_AT_A_TIME}/view?x=month")
    for label in ("m3", "m7"):
        page.get_by_role("checkbox", name=label).check()
    expect(page.get_by_role("checkbox", checked=True)).to_have_count(1)
    shows(page, written.release(ONE_AT_A_TIME).count(month="m7"))


def test_what_only_a_service_can_do_is_not_offered(opened_site: Opened) -> None:
    """No conditions on other columns, no curl, no frames, and no JSON."""
    page = opened_site.go(f"/index.html#/releases/{PEOPLE}/view?x=age")
    expect(page.locator("#where")).to_have_count(0)
    expect(page.locator(".snippet h3")).to_have_text(["Python", "Query"])
    expect(page.locator("#twin")).to_have_count(0)


def test_every_page_opens_and_every_link_leads_somewhere(opened_site: Opened, written: Written) -> None:
    """From the list of releases to a release and its columns; back goes back; downloads are there."""
    page = opened_site.go("/index.html")
    page.get_by_role("link", name=PEOPLE).click()
    expect(page.locator("h1")).to_have_text(PEOPLE)
    files = [link.get_attribute("href") or "" for link in page.locator(".chips a[download]").all()]
    assert len(files) == 4
    assert all((written.folder / each).is_file() for each in files)
    page.get_by_role("link", name="age and salary").click()
    expect(page.locator("h1")).to_have_text("age and salary")
    expect(page.locator("image")).to_be_visible()
    page.go_back()
    expect(page.locator("h1")).to_have_text(PEOPLE)
    page.locator(".brand").click()
    expect(page.locator("h1")).to_contain_text("Numbers about many")


def test_a_csv_of_what_is_seen_has_the_numbers_of_the_library(opened_site: Opened, written: Written) -> None:
    """It is made by the page when it is asked for."""
    page = opened_site.go(f"/index.html#/releases/{PEOPLE}/view?x=visited")
    with page.expect_download() as started:
        page.get_by_role("link", name="Download as CSV").click()
    heads, *rows = csv.reader(io.StringIO(Path(started.value.path()).read_text()))
    assert heads == ["visited from", "visited to", "count", "error", "half"]
    found = written.release(PEOPLE).counts(visited=([row[0] for row in rows], [row[1] for row in rows]))
    assert [float(row[2]) for row in rows] == pytest.approx(found.values.tolist(), rel=1e-9, abs=1e-9)


def test_two_releases_are_compared(opened_site: Opened, written: Written) -> None:
    """The other count and the difference stand beside the count."""
    page = opened_site.go(f"/index.html#/releases/{VISITS}/view?x=seen&with=visits-2025")
    other = written.release("visits-2025").count()
    expect(page.locator(".count .second")).to_contain_text(f"{other.value:,.0f}")
    expect(page.get_by_role("heading", name=f"{VISITS} less visits-2025")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_request_leaves_the_folder(
    browser: Browser, written: Written, scheme: Any, screenshots: Path
) -> None:
    """Only files of the folder are asked for, whatever is opened; nothing is wider than a phone."""
    context = browser.new_context(viewport=PHONE, color_scheme=scheme)
    opened, requests = Opened.on(context, written.addresses["web"]), list[str]()
    opened.page.on("request", lambda request: _note(request, requests))
    for address in (
        "",
        f"#/releases/{PEOPLE}",
        f"#/releases/{PEOPLE}/view?x=age",
        f"#/releases/{TABLE}/view?x=age&y=pay",
    ):
        page = opened.go(f"/index.html{address}")
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=screenshots / f"site-{scheme}.png", full_page=True)
    context.close()

    assert opened.complaints == []
    assert {each.split("?")[0].rsplit(".", 1)[-1] for each in requests} == {"html", "js", "css"}
    assert all(each.startswith(written.addresses["web"] + "/") for each in requests)


def _note(request: Request, requests: list[str]) -> None:
    if not request.url.startswith(("data:", "blob:")):
        requests.append(request.url)


def test_what_is_not_there_is_said(opened_site: Opened) -> None:
    """A release of another name, and a name that is no name."""
    for name in ("nothing", "..%2F"):
        page = opened_site.page
        page.goto(f"{opened_site.service}/index.html#/releases/{name}")
        expect(page.locator("h1")).to_have_text("Nothing here")
    opened_site.complaints.clear()  # the browser says that the file is missing
