"""Every mechanism has a page: its promise, a picture, the algorithm, a proof and a measured distance."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

import partita
from partita import local, pan
from partita.trusted.mechanisms.catalogue import mechanisms
from tests.docs.run import ROOT

sys.path.insert(0, str(ROOT))
ROWS = import_module("benchmarks.distance").rows()
PICTURES = import_module("scripts.pictures").pictures()

pytestmark = pytest.mark.docs

FOLDER = ROOT / "docs" / "mechanisms"
LARGEST_PICTURE = 60_000

SECTIONS = [
    "What it promises",
    "Picture",
    "The algorithm",
    "The theorem, and what we changed",
    "Proof",
    "The lower bound, and our distance to it",
    "Use it",
]

PAGES = {
    partita.WeightsSession: "online_weights",
    partita.Counter: "counter",
    partita.TreeCounter: "tree_counter",
    partita.SparseCounter: "sparse_counter",
    partita.SlidingCounter: "sliding_counter",
    partita.CounterFamily: "counter_family",
    partita.PanPrivateCounter: "pan_private_counter",
    partita.DirectCounter: "naive_counters",
    partita.PerStepCounter: "naive_counters",
    partita.RandomizedResponseCounter: "naive_counters",
    pan.Density: "pan_density",
    pan.Distinct: "pan_distinct",
    pan.Registers: "pan_registers",
    pan.RampRegisters: "pan_ramp_registers",
    local.Frequency: "local_frequency",
    local.Mean: "local_mean",
    local.Range: "local_ranges",
    local.Rectangles: "local_rectangles",
    local.LROracle: "local_oracles",
    local.SQOracle: "local_oracles",
    partita.ComposedTruncation: "composition",
    partita.TableGraph: "graph",
    partita.StableNames: "names",
    partita.GaussianGrid: "gaussian_counts",
}
"""The pages of tools that are not named like their class."""
PAGES = {
    found: re.sub(r"(?<!^)(?=[A-Z])", "_", found.__name__).lower() for found in mechanisms().values()
} | PAGES

NAMES = sorted(set(PAGES.values()))


def page(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text()


@pytest.mark.parametrize("tool", PAGES, ids=lambda tool: tool.__name__)
def test_a_tool_is_named_on_its_page(tool: type) -> None:
    """In a snippet, or in its prose."""
    assert re.search(rf"\b{tool.__name__}\b", page(PAGES[tool]))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_all_sections_in_order(name: str) -> None:
    """One heading above them, with a purpose below it."""
    text = re.sub(r"^```.*?^```$", "", page(name), flags=re.MULTILINE | re.DOTALL)

    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    assert len(re.findall(r"^# .+\n\n[A-Z`]", text, re.MULTILINE)) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_its_picture(name: str) -> None:
    """There is code that draws it, it is small, and those who cannot see it are told what it shows."""
    shown = re.search(rf"!\[(.+?)\]\(\.\./pictures/{name}\.svg\)", page(name), re.DOTALL)

    assert shown
    assert len(shown[1].split()) >= 8
    assert name in PICTURES
    assert (ROOT / "docs" / "pictures" / f"{name}.svg").stat().st_size <= LARGEST_PICTURE


@pytest.mark.parametrize("name", NAMES)
def test_a_page_links_to_a_proof(name: str) -> None:
    """In its section, to a note that exists."""
    section = page(name).partition("\n## Proof\n")[2].partition("\n## ")[0]
    notes = re.findall(r"\]\(\.\./proofs/([a-z_]+\.md)", section)

    assert notes
    assert all((ROOT / "docs" / "proofs" / note).exists() for note in notes)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_names_the_row_that_measured_its_distance(name: str) -> None:
    """Anybody can run it again."""
    section = page(name).partition("distance to it\n")[2]

    assert f"python -m benchmarks.distance --only {name}" in section
    assert name in ROWS


def test_the_index_links_to_every_page() -> None:
    """And there is no page beside it."""
    linked = set(re.findall(r"\]\(([a-z_]+)\.md[)#]", page("README")))

    assert linked >= set(NAMES)
    assert {found.stem for found in FOLDER.glob("*.md")} == {*NAMES, "README"}


def test_a_picture_comes_out_the_same_each_time(tmp_path: Path) -> None:
    """It is drawn from a fixed tape, and holds no date."""
    style = import_module("scripts.pictures.style")
    for name in ("one", "other"):
        style.save(PICTURES["thresholds"](), tmp_path / name)

    one, other = (path.read_bytes() for path in tmp_path.iterdir())
    assert one == other
    assert b"dc:date" not in one
