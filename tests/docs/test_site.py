"""The site builds without a warning, loads nothing from elsewhere, and all its links lead somewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.docs.run import ROOT

pytestmark = pytest.mark.docs

DOCS = ROOT / "docs"
LOADING = {"link": "href", "object": "data"}


def build(root: Path, into: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a project, as `make docs` does."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", into],
        cwd=root,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of this project."""
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


class Parsed(HTMLParser):
    """A page: what it loads, where it leads, and the places in it that can be led to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.places: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.loads += [
            given[name] for name in ("src", "srcset", "poster", LOADING.get(tag, "")) if name in given
        ]
        self.leads += [given["href"]] if tag == "a" and "href" in given else []
        self.places |= {given[name] for name in ("id", "name") if name in given}


def foreign(address: str) -> bool:
    """Whether a browser would leave the site for it."""
    return bool(re.match(r"(https?:)?//", address))


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """No script, style, font, picture or frame of any page."""
    pages = {page: Parsed(page).loads for page in site.rglob("*.html")}
    styles = {
        sheet: re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')]+)", sheet.read_text())
        for sheet in site.rglob("*.css")
    }

    assert sum(map(len, pages.values())) > len(pages) > 50
    assert {name: bad for name, all_ in (pages | styles).items() if (bad := [*filter(foreign, all_)])} == {}


def test_links_on_the_site_lead_somewhere(site: Path) -> None:
    """To a file, and to a place in it if they name one; those out of docstrings too."""
    pages = {page.resolve(): Parsed(page) for page in site.rglob("*.html")}
    broken = [
        f"{page.relative_to(site.resolve())}: {link}"
        for page, parsed in pages.items()
        for link in set(parsed.leads)
        if page.name != "404.html" and not re.match(r"[a-z]+:|//", link) and not leads(page, link, pages)
    ]

    assert broken == []


def leads(page: Path, link: str, pages: dict[Path, Parsed]) -> bool:
    path, _, place = unquote(link).partition("#")
    target = (page.parent / path).resolve() if path else page
    target = target / "index.html" if target.is_dir() else target
    return target.exists() and (not place or target not in pages or place in pages[target].places)


def test_every_page_is_reached_from_the_nav(site: Path) -> None:
    """From the home page, with all that is in docs/."""
    links = {link for link in Parsed(site / "index.html").leads if not foreign(link)}
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    made = {re.sub(r"(^|/)README\.md$", r"\1index.md", page).removesuffix(".md") + ".html" for page in pages}

    assert made - {"index.html"} - links == set()


# Planted failures, in a small project with the real configuration.


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A project of a few pages."""
    root = tmp_path / "project"
    shutil.copytree(DOCS / "site", root / "docs" / "site", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "mkdocs.yml", root)
    (root / "src" / "partita").mkdir(parents=True)
    (root / "docs" / "proofs").mkdir()
    for name in ("README", "SECURITY", "CONTRIBUTING", "CHANGELOG"):
        (root / f"{name}.md").write_text(f"# {name.title()}\n")
    (root / "docs" / "README.md").write_text(
        "# Home\n\n[one](why.md#a-place), [two](proofs/b.md)\n"
        "[security](../SECURITY.md), [code](../src/partita)\n"
    )
    (root / "docs" / "why.md").write_text("# Why\n\n## A (place)!\n\n[home](README.md)\n")
    (root / "docs" / "proofs" / "b.md").write_text("# B\n\n[why](../why.md)\n")
    (root / "docs" / "proofs" / "a.md").write_text("# A\n")
    return root


def test_a_small_project_builds(small: Path, tmp_path: Path) -> None:
    """Pages from outside docs/ are there, code is no link, and a folder has the order of the index."""
    done = build(small, tmp_path / "site")
    home = (tmp_path / "site" / "index.html").read_text()

    assert done.returncode == 0, done.stderr
    assert "<h1" in (tmp_path / "site" / "project" / "SECURITY.html").read_text()
    assert 'href="project/SECURITY.html"' in home
    assert "<code>src/partita</code>" in home
    assert home.index('href="proofs/b.html" class="md-nav') < home.index('href="proofs/a.html" class="md-nav')


@pytest.mark.parametrize(
    ("page", "text", "said"),
    [
        ("why.md", "[gone](gone.md)", "gone.md"),
        ("why.md", "[gone](../GONE.md)", "GONE.md"),
        ("why.md", "[gone](proofs/b.md#gone)", "gone"),
        ("proofs/b.md", "![gone](../pictures/gone.svg)", "gone.svg"),
        ("orphan.md", "# Nobody leads here", "orphan.md"),
        ("why.md", "[gone](/gone.md)", "gone.md"),
    ],
)
def test_what_leads_nowhere_fails_the_build(
    small: Path, tmp_path: Path, page: str, text: str, said: str
) -> None:
    """A link, an anchor, a picture; and a page to which nothing leads."""
    with (small / "docs" / page).open("a") as file:
        file.write(f"\n{text}\n")

    done = build(small, tmp_path / "site")

    assert done.returncode != 0
    assert said in done.stderr


def test_what_is_loaded_from_elsewhere_is_found(small: Path, tmp_path: Path) -> None:
    """A picture of another site builds, and is seen by the check of this file."""
    with (small / "docs" / "why.md").open("a") as file:
        file.write("\n![p](https://example.org/p.png)\n")

    assert build(small, tmp_path / "site").returncode == 0
    assert [*filter(foreign, Parsed(tmp_path / "site" / "why.html").loads)] == ["https://example.org/p.png"]
