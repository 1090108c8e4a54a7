"""docs/queries.md tells the truth about the query language."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import partita as pt
from partita.public.queries import language
from partita.trusted.mechanisms.catalogue import query_mechanisms

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "queries.md").read_text()

WORDS = [
    name
    for name, each in vars(language).items()
    if inspect.isfunction(each) and getattr(pt, name, None) is each
]


def test_the_page_shows_every_word() -> None:
    """Each word of the language is used in a snippet."""
    assert [word for word in WORDS if hasattr(pt, word) and f"pt.{word}(" not in PAGE] == []


def test_the_page_names_every_mechanism() -> None:
    """Each mechanism for queries has an entry in the list of mechanisms."""
    assert [name for name in query_mechanisms() if f'- `"{name}"` ' not in PAGE] == []


@pytest.mark.faults
def test_the_snippets_of_the_page_run_and_say_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typed in one block after the other they run, and what stands behind # as a result is one."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(block, names)
    shown = capsys.readouterr().out

    results = re.findall(r"^(release\.labels.*?)\s+# (.*)$", PAGE, flags=re.MULTILINE)

    assert [repr(eval(code, names)) for code, _ in results] == [result for _, result in results] != []
    assert "ranges(age, step=20) * value(income)" in shown
    assert eval('pt.parse("ranges(age, step=20) * value(income)") == asked', names)
