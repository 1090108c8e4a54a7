"""The page about the format is true: its program reads a release, and its tables list every entry."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from partita.public.file import FORMAT, encode, save, unpack
from partita.public.file_entries import NUMBERS, SELECTED, SEVERAL, VERSION

from .specimens import release

PAGE = (Path(__file__).parents[3] / "docs" / "release-file.md").read_text()


def test_the_program_on_the_page_checks_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It needs nothing of ours, agrees with our checksum, and fails on a release that was changed."""
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    save(release(), "people.release.parquet")
    exec(program, {})

    assert "'spending-tree'" in (said := capsys.readouterr().out)
    assert "['grid 0', 'grid 1']" in said
    assert "import partita" not in program
    with pytest.raises(AssertionError):
        exec(program.replace('"checksum")', '"checksum"); spec["version"] = 1'), {})


def entries(value: Any) -> set[str]:
    """The names of all entries, but for those that depend on the kind."""
    if isinstance(value, list):
        return {name for each in value for name in entries(each)}
    if not isinstance(value, dict):
        return set()
    inside = (entries(value[name]) for name in value if name not in ("domain", "domains", "facts", "counts"))
    return set(value).union(*inside)


def test_every_entry_is_on_the_page() -> None:
    """Names, marks and versions are those that the code writes."""
    stored, _ = unpack(encode(release()), largest=2**24)
    missing = {name for name in entries(stored.spec) if f"`{name}`" not in PAGE}

    assert missing == set()
    assert f'`"{FORMAT}"`' in PAGE
    versions = f"`{VERSION}`, or `{SEVERAL}` if a view has several columns, or `{NUMBERS}` if a view has sums"
    assert f"| `version` | {versions} or answers to queries, or `{SELECTED}` if a view has" in PAGE
