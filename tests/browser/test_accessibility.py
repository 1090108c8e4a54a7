"""Everybody can use it: no violation that axe-core knows of, on any page, in either theme."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from .conftest import Open
from .test_looks import PAGES

pytestmark = pytest.mark.browser

VERSION = "4.14.0"
AXE = [name for name in PAGES if name not in ("dates", "labels")]


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The checker's own script, fetched from npm for these tests."""
    folder = tmp_path_factory.mktemp("npm")
    if shutil.which("npm") is None:
        pytest.skip("no npm to fetch axe-core with")
    command = [
        "npm",
        "install",
        "--no-save",
        "--no-audit",
        "--no-fund",
        "--prefix",
        str(folder),
        f"axe-core@{VERSION}",
    ]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("the npm registry cannot be reached, so there is no axe-core")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", AXE)
def test_axe_finds_nothing(opened: Open, axe: str, name: str, scheme: str) -> None:
    """No violation of any impact."""
    page = opened(color_scheme=scheme).go(PAGES[name])
    page.wait_for_load_state("networkidle" if name in ("table", "groups") else "load")
    page.wait_for_timeout(300)
    page.evaluate(axe)
    found = page.evaluate(
        "axe.run().then(({violations}) => violations.map(({id, nodes}) => [id, nodes.map((n) => n.html)]))"
    )

    assert found == []


def test_a_planted_fault_is_found(opened: Open, axe: str) -> None:
    """The check is able to fail: a button without a name is reported."""
    page = opened().go(PAGES["overview"])
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    page.evaluate(axe)

    assert page.evaluate("axe.run().then(({violations}) => violations.map(({id}) => id))") == ["button-name"]


def test_everything_is_reached_by_the_tab_key(opened: Open) -> None:
    """Handles, fields, buttons and links take the focus one after another, and it can be seen."""
    page = opened().go(PAGES["range"])
    reached = []
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"
            )
        )

    assert {"age, from", "age, to", "age, exactly from", "Clear", "Zoom in"} <= set(reached)
