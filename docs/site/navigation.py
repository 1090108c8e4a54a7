"""The nav: what mkdocs.yml says, with the pages of a folder in place of its name."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

_LINK = re.compile(r"\]\(([^)\s#]+)")


def expanded(nav: list[Any], *, pages: Collection[str], root: Path) -> list[Any]:
    """The nav with the pages of folders; pages that are not there and empty sections are left out."""
    items: list[Any] = []
    for item in nav:
        if isinstance(item, dict):
            [(title, inside)] = item.items()
            kept = expanded(inside, pages=pages, root=root)
            items += [{title: kept}] if kept else []
        elif item.endswith("/"):
            items += inside_folder(item, pages=pages, root=root)
        elif item in pages:
            items.append(item)
    return items


def inside_folder(folder: str, *, pages: Collection[str], root: Path) -> list[str]:
    """Its index first, then its pages in the order of the index's links, then those that it forgot."""
    found = sorted(page for page in pages if page.startswith(folder))
    named = [folder + link for link in linked(root / "docs" / folder / "README.md")]
    named += linked(root / "docs" / "README.md")
    order = {page: place for place, page in reversed([*enumerate([f"{folder}README.md", *named])])}
    return sorted(found, key=lambda page: (order.get(page, len(order)), page))


def linked(index: Path) -> list[str]:
    """The links of an index, in order."""
    return _LINK.findall(index.read_text()) if index.exists() else []
