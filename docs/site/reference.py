"""Pages of the reference: lines of names become what the docstrings say."""

from __future__ import annotations

import re

_NAMES = re.compile(r"^`[\w.]+`(?:,\s+`[\w.]+`)*$", re.MULTILINE)
_NAME = re.compile(r"`([\w.]+)`")


def names(markdown: str) -> list[str]:
    """Every public name that a page documents."""
    return [name for line in _NAMES.findall(markdown) for name in _NAME.findall(line)]


def with_docstrings(markdown: str) -> str:
    """The page with the docstrings of its names in place of the lines that list them."""
    return _NAMES.sub(
        lambda line: "\n\n".join(f"::: partita.{name}" for name in _NAME.findall(line[0])), markdown
    )
