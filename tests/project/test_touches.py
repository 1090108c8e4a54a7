"""The reviewers' tables say what the source says, and a new draw or a new reader of rows changes them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from scripts import touches


def module(name: str, text: str) -> touches.Module:
    return touches.Module(name, ast.parse(text))


def test_the_page_lists_what_the_source_touches() -> None:
    """`python -m scripts.touches` would change nothing."""
    assert touches.main(["--check"]) == 0


@pytest.mark.parametrize(
    "line",
    [
        "self._noise.add(count, scale)",
        "noise.session().draw('laplace', scale)",
        "SYSTEM.first_success('geometric', scale)",
        "session.exponential(scores, scale)",
        "kernel.entropy(32)",
        "token()",
        "flags(words, threshold, 8)",
        "self.words.take(4)",
    ],
)
def test_a_draw_is_found(line: str) -> None:
    """However the noise got its name, inside a function inside another too."""
    found = list(module("new", f"def drawing():\n    def inner():\n        return {line}\n").draws())

    assert len(found) == 1
    assert found[0].startswith("`drawing`: ")


@pytest.mark.parametrize(
    "line", ["seen.add(name)", "canvas.draw()", "numbers.take([1, 2])", "parts.segments()"]
)
def test_what_is_no_draw_is_not_found(line: str) -> None:
    """Sets, pictures and arrays have methods of the same names."""
    assert list(module("new", f"def quiet():\n    return {line}\n").draws()) == []


def test_an_import_that_only_type_checkers_see_is_none() -> None:
    """It hands nobody any data."""
    unseen = "if TYPE_CHECKING:\n    from partita.trusted.secret import Points\n"
    text = unseen + "from partita.trusted.noise import kernel\n"

    assert list(module("new", text).imports()) == ["trusted.noise.kernel"]


@pytest.mark.thorough
def test_a_page_that_drifted_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that somebody removed by hand comes back."""
    lines = touches.PAGE.read_text().splitlines(keepends=True)
    row = next(line for line in lines if line.startswith("| `trusted.mechanisms.tree` "))
    page = tmp_path / "reviewers.md"
    page.write_text("".join(line for line in lines if line != row))
    monkeypatch.setattr(touches, "PAGE", page)

    assert touches.main(["--check"]) == 1
    assert touches.main([]) == 0
    assert page.read_text() == "".join(lines)
