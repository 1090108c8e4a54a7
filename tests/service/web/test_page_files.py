"""The files of the page: few, small, from nowhere else, and served as what they are."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from partita.service.reading.app import STATIC, pages_router
from partita.service.settings import ServiceSettings
from partita.service.web import secure

MOST = 118_000
FILES = sorted(path for path in STATIC.iterdir() if path.is_file())
SCRIPTS = [path for path in FILES if path.suffix == ".js"]


def test_the_page_is_small() -> None:
    """All files together are under 118 KB, as they are written."""
    assert sum(path.stat().st_size for path in FILES) < MOST


def test_the_page_asks_nobody_else() -> None:
    """No file names another host, but for the name of SVG."""
    found = {url for path in FILES for url in re.findall(r"(?:https?:)?//\w[\w.-]*\.\w+", path.read_text())}

    assert found <= {"http://www.w3.org"}


def test_nothing_is_inline() -> None:
    """The document has no script or style of its own, and no script writes any."""
    document = (STATIC / "index.html").read_text()

    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=", document) == []
    for path in SCRIPTS:
        assert (
            re.findall(r"innerHTML|insertAdjacentHTML|document\.write|\beval\(|style:", path.read_text())
            == []
        )


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_import_what_is_there(path: Path) -> None:
    """Every import is of a file of the page, and of a name that it exports."""
    for names, module in re.findall(r'import \{([^}]+)\} from "\./([\w.]+)"', path.read_text()):
        exported = re.findall(
            r"export (?:async )?(?:const|function|class) (\w+)", (STATIC / module).read_text()
        )
        assert {name.strip() for name in names.split(",")} <= set(exported)


@pytest.mark.browser
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_parse(path: Path) -> None:
    """Each script is a well-formed module."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node to parse with")
    command = [node, "--check", "--input-type=module"]

    assert subprocess.run(command, input=path.read_bytes(), capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("address", "status", "kind"),
    [
        ("/", 200, "text/html"),
        ("/releases/anything", 200, "text/html"),
        ("/releases/anything/view?x=age", 200, "text/html"),
        ("/streams/anything", 200, "text/html"),
        ("/static/app.js", 200, "text/javascript"),
        ("/static/style.css", 200, "text/css"),
    ],
)
def test_addresses_answer_with_files(address: str, status: int, kind: str) -> None:
    """Each page address gives the one document, whatever the name, and each file its type."""
    response = _get(address)

    assert (response.status_code, response.headers["content-type"].split(";")[0]) == (status, kind)


@pytest.mark.parametrize(
    "address", ["/static/..%2fpages.py", "/static/none.js", "/releases/a.json", "/streams/a.csv"]
)
def test_nothing_else_is_served(address: str) -> None:
    """Other files, and addresses of data that does not exist, are not found."""
    assert _get(address).status_code == 404


def test_files_are_asked_for_again_only_if_they_changed() -> None:
    """A browser that has a file hears that it is still the same."""
    tag = _get("/static/app.js").headers["etag"]
    again = _get("/static/app.js", headers={"If-None-Match": tag})

    assert (again.status_code, again.content) == (304, b"")


def _get(address: str, headers: dict[str, str] | None = None) -> httpx.Response:
    app = FastAPI()
    app.include_router(pages_router())
    secure(app, ServiceSettings(folder=Path("public"), public=True), side="reading", releases=lambda: 0)

    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get(address, headers=headers)

    with ThreadPoolExecutor(max_workers=1) as apart:
        return apart.submit(asyncio.run, asked()).result()
