"""Docstrings as Markdown: promises line by line, doctests as code, proof notes as links."""

from __future__ import annotations

import re
from typing import Any, Final

import griffe

PROMISES: Final = re.compile(r"^(Guarantee|Error|Proof|Law|Cost|Space|Time): +", re.MULTILINE)
DOCTEST: Final = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)
NOTE: Final = re.compile(r"\bdocs/((?:[\w-]+/)*[\w-]+)\.md")


class AsMarkdown(griffe.Extension):
    """Rewrites every docstring before it is shown."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(docstring: str) -> str:
    """A docstring as Markdown."""
    fenced = DOCTEST.sub(lambda found: f"```pycon\n{found[0]}\n```", docstring)
    promised = PROMISES.sub(lambda found: f"\n**{found[1]}.** ", fenced)
    return NOTE.sub(lambda found: f"[{found[1]}.md](../{found[1]}.md)", promised)
