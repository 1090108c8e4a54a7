"""Every snippet and every command of every page runs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.fences import RUN, BadFence, Fence, fences
from tests.docs.run import ROOT, spoken
from tests.docs.settings import SETTINGS, TYPED_ELSEWHERE

pytestmark = pytest.mark.docs

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
TYPED_HERE = [page for page in PAGES if spoken(page) not in TYPED_ELSEWHERE]


def typed_in(page: Path) -> subprocess.CompletedProcess[str]:
    """A page, typed in by a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tests.docs.run", page],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("page", PAGES, ids=spoken)
def test_every_fence_says_what_it_is(page: Path) -> None:
    """It is run, or it is of a kind that is only shown."""
    for fence in fences(page.read_text()):
        if spoken(page) not in TYPED_ELSEWHERE:
            fence.check(spoken(page))

    opened = re.findall(r"^ *```", page.read_text(), re.MULTILINE)
    assert len(opened) == 2 * len(list(fences(page.read_text())))


@pytest.mark.parametrize("page", TYPED_HERE, ids=spoken)
def test_what_a_page_shows_can_be_typed_in(page: Path) -> None:
    """One block after the other, in an empty folder, without a network."""
    if any(fence.language in RUN for fence in fences(page.read_text())):
        done = typed_in(page)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", TYPED_ELSEWHERE)
def test_what_is_typed_in_elsewhere_is(page: str) -> None:
    """The page exists and so does the test that runs it, which names the page."""
    home, name = TYPED_ELSEWHERE[page]
    source = (ROOT / home).read_text()
    defined = [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]

    assert (ROOT / page).exists()
    assert name in defined
    assert Path(page).name in source


def test_pages_with_a_setting_exist() -> None:
    """No file is made for a page that is gone."""
    assert [page for page in SETTINGS if not (ROOT / page).exists()] == []


def test_every_page_is_named_by_an_index() -> None:
    """In docs/README.md, or in the README.md of its folder, which docs/README.md names."""
    indexes = [DOCS / "README.md", *(path for path in DOCS.glob("*/README.md"))]
    named = {
        (index.parent / link).resolve()
        for index in indexes
        for link in re.findall(r"\]\(([^)\s#]+)", index.read_text())
    }

    assert {page for page in PAGES if page.is_relative_to(DOCS)} - named == {DOCS / "README.md"}


# Planted failures.


@pytest.mark.parametrize(
    "block",
    [
        "```python\nimport partita as pt\npt.no_such_name\n```",
        "```python\nx = 1\n```\n\n```python\nassert x == 2\n```",
        "1. In a list:\n\n   ```python\n   1 / 0\n   ```",
        "```sh\npartita no-such-command\n```",
        "```sh\nfalse\ntrue\n```",
        "```sh\npartita mechanisms | false\n```",
        "```sql\nSELECT * FROM no_such_table\n```",
        '```python\nimport socket\nsocket.create_connection(("192.0.2.1", 80), timeout=1)\n```',
        "```pyhton\n1\n```",
        "```\n1\n```",
        "```sh\nmake test\n```",
    ],
)
def test_what_does_not_run_is_found(block: str, tmp_path: Path) -> None:
    """A wrong name, a false statement, a command that fails, the network, a language of no kind."""
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\n```python\nimport math\n```\n\n{block}\n")

    done = typed_in(page)

    assert done.returncode != 0
    assert "page.md" in done.stderr


def test_what_runs_is_not_found_wrong(tmp_path: Path) -> None:
    """Names, files and tables of one block are there in the next, whatever its language is."""
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nopen('a.csv', 'w').write('x\\n1\\n')\nx = 1\n```\n\n"
        "```sh\ntest -f a.csv  # a file\npython -c 'print(1)' > b.txt\n```\n\n"
        "```sql\nCREATE TABLE a AS SELECT * FROM 'a.csv'\n```\n\n```sql\nSELECT sum(x) FROM a\n```\n\n"
        "```text\nanything at all\n```\n\n"
        "- a list\n\n  ```python\n  assert x == 1 == len(open('b.txt').read()) - 1\n  ```\n"
    )

    done = typed_in(page)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_error_is_told_with_its_line(tmp_path: Path) -> None:
    """The line of the page, not of the block."""
    page = tmp_path / "page.md"
    page.write_text("# A page\n\nSome words.\n\n```python\nx = 1\nx / 0\n```\n")

    assert f'{page}", line 7' in typed_in(page).stderr


def test_a_fence_that_is_checked_is_refused_by_name() -> None:
    """The message has the page, the line and what is wrong."""
    with pytest.raises(BadFence, match=r"page\.md:4: a fence in 'mermaid'"):
        Fence(language="mermaid", text="graph", line=5).check("page.md")
