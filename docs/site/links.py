"""Links and pictures of the project's pages: paths of folders on GitHub, addresses of pages on the site."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CODE: Final = r"^( *)(```+)[^\n]*\n.*?^\1\2 *$|`+[^`\n]+`+(?!\])"
TEXT: Final = r"(?P<image>!?)\[(?P<text>(?:`[^`\n]*`|[^\[\]`])+)\]"
LINK: Final = TEXT + r"\((?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)"
_PARTS: Final = re.compile(f"{LINK}|{CODE}", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where files are on the site: those of docs/ at its root, those from `outside` in project/."""

    root: Path
    outside: Sequence[str]

    def pages(self) -> list[str]:
        """The addresses of all pages."""
        docs = self.root / "docs"
        own = [path.relative_to(docs).as_posix() for path in sorted(docs.rglob("*.md"))]
        return [*own, *(f"project/{path}" for path in self.outside)]

    def address(self, path: str) -> str | None:
        """Where a file of the project is on the site; None if it is not there."""
        if path.startswith("docs/"):
            return path.removeprefix("docs/")
        return f"project/{path}" if path in self.outside else None

    def path(self, address: str) -> str:
        """Which file of the project is at an address of the site."""
        return address.removeprefix("project/") if address.startswith("project/") else f"docs/{address}"

    def relinked(self, markdown: str, *, address: str) -> str:
        """The page with links as the site needs them; code stays as it is."""
        here = self.path(address)
        return _PARTS.sub(lambda found: self._moved(found, here, address), markdown)

    def _moved(self, found: re.Match[str], here: str, address: str) -> str:
        if found["path"] is None:
            return found[0]
        target = os.path.normpath(os.path.join(os.path.dirname(here), found["path"]))
        if (self.root / target).is_dir() and (self.root / target / "README.md").exists():
            target = f"{target}/README.md"
        there = self.address(target)
        if there is None:
            return self._named(found, target)
        link = os.path.relpath(there, os.path.dirname(address) or ".")
        return f"{found['image']}[{found['text']}]({link}{found['anchor'] or ''})"

    def _named(self, found: re.Match[str], target: str) -> str:
        """What is in the repository only is named; other links and pictures stay, and fail the build."""
        if found["image"] or not (self.root / target).exists():
            return found[0]
        text = found["text"].strip("`")
        return f"`{text}`" if text in target else f"{found['text']} (`{target}`)"
