"""The reference has every public name, once."""

from __future__ import annotations

import inspect
import re
import runpy
from collections import Counter
from collections.abc import Iterator

import pytest

import partita
import partita.audit
import partita.local
import partita.pan
import partita.testing
from tests.docs.run import ROOT

SITE = ROOT / "docs" / "site"
reference = runpy.run_path(str(SITE / "reference.py"))
names, with_docstrings = reference["names"], reference["with_docstrings"]

REFERENCE = ROOT / "docs" / "reference"
PACKAGES = {
    "": partita,
    "local.": partita.local,
    "pan.": partita.pan,
    "testing.": partita.testing,
    "audit.": partita.audit,
}


def documented() -> Iterator[str]:
    """Every name on a page of the reference, in order."""
    for page in sorted(REFERENCE.glob("*.md")):
        yield from names(page.read_text())


def test_every_public_name_is_documented_once() -> None:
    """Those of the library, of the local model, of sketches, of the testing tools and the auditor."""
    public = [f"{prefix}{name}" for prefix, package in PACKAGES.items() for name in package.__all__]
    known = Counter(documented())

    assert [name for name in public if known[name] != 1] == []


def test_every_documented_name_exists() -> None:
    """Nothing that was removed is still promised."""
    for name in documented():
        found: object = partita
        for part in name.split("."):
            found = getattr(found, part)


def test_the_table_of_publish_has_every_parameter_with_its_default() -> None:
    """In the order of the signature, and nothing else."""
    page = (REFERENCE / "publishing.md").read_text()
    table = page.partition("### Parameters")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| \S.* \|$", table, re.MULTILINE)
    signature = inspect.signature(partita.publish).parameters.values()

    assert rows == [(found.name, written(found.default)) for found in signature]


def written(default: object) -> str:
    """A default as the table shows it."""
    if default is inspect.Parameter.empty:
        return "required"
    return f'`"{default}"`' if isinstance(default, str) else f"`{default!r}`"


def test_lines_of_names_become_docstrings() -> None:
    """A name in a sentence stays where it is."""
    page = "See `publish`.\n\n`publish`, `local.Mean`\n\n`release` is a word."

    assert names(page) == ["publish", "local.Mean"]
    assert with_docstrings(page).splitlines()[2:5] == ["::: partita.publish", "", "::: partita.local.Mean"]


@pytest.mark.docs
def test_a_docstring_becomes_markdown() -> None:
    """Promises stand in paragraphs of their own, doctests in fences, and proof notes are links."""
    markdown = runpy.run_path(str(SITE / "docstrings.py"))["markdown"]
    shown = markdown(
        "Publish.\n\nGuarantee: pure.\nProof:     docs/proofs/tree.md (exact)\n\n>>> 1 + 1\n2\n\nMore."
    )

    assert "\n**Guarantee.** pure." in shown
    assert "\n\n**Proof.** [proofs/tree.md](../proofs/tree.md) (exact)" in shown
    assert "```pycon\n>>> 1 + 1\n2\n```" in shown
