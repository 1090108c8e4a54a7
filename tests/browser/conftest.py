"""One world, one server and one browser for all of these tests; a fresh page for each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import Browser, sync_playwright

from partita.service.settings import Limits, ServiceSettings
from partita.service.tokens import TokenFile

from .looking import DESK, Opened
from .serving import served
from .world import World, made_world

Open: TypeAlias = Callable[..., Opened]

LIMITS = Limits(rate=100_000, burst=100_000)


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """What is published."""
    made = made_world(tmp_path_factory.mktemp("world"))
    with made.door:
        yield made


@pytest.fixture(scope="session")
def service(world: World) -> Iterator[str]:
    """The address of a service that everybody may read."""
    with served(ServiceSettings(folder=world.folder, public=True, limits=LIMITS)) as address:
        yield address


@pytest.fixture(scope="session")
def guarded(world: World) -> Iterator[tuple[str, str]]:
    """The address of a service that wants a token, and such a token."""
    tokens = world.folder.parent / "tokens.json"
    token = TokenFile(tokens).create("analyst", scopes=["read"])
    with served(ServiceSettings(folder=world.folder, tokens=tokens, limits=LIMITS)) as address:
        yield address, token


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real Chromium without a window."""
    path = os.environ.get("PARTITA_CHROMIUM") or shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium on the path; set PARTITA_CHROMIUM to one")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=sandbox)
        yield opened
        opened.close()


@pytest.fixture
def opened(browser: Browser, service: str) -> Iterator[Open]:
    """Opens pages; at the end none of them may have complained, or asked anybody else."""
    pages: list[Opened] = []

    def new(*, at: str = service, **options: Any) -> Opened:
        context = browser.new_context(viewport=options.pop("viewport", DESK), **options)
        context.set_default_timeout(120_000)
        pages.append(Opened.on(context, at))
        return pages[-1]

    yield new
    complaints = [complaint for each in pages for complaint in each.complaints]
    for each in pages:
        each.page.context.close()
    assert complaints == []


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Where pictures are kept; git ignores it."""
    folder = Path(__file__).parents[2] / "build" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
