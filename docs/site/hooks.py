"""What mkdocs does not do: folders in the nav, pages from outside docs/, links and anchors of GitHub."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from docs.site.links import Site
from docs.site.navigation import expanded
from docs.site.reference import with_docstrings

OUTSIDE: Final = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")


def outside(root: Path) -> list[str]:
    """The pages of the project that are not in docs/."""
    return [*OUTSIDE, *sorted(path.relative_to(root).as_posix() for path in root.glob("benchmarks/**/*.md"))]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Anchors are those of GitHub, so that a link works in both places; folders of the nav become pages."""
    root = Path(config.config_file_path).parent
    config.mdx_configs["toc"]["slugify"] = anchor
    config.extra["project"] = Site(root=root, outside=outside(root))
    config.nav = expanded(config.nav or [], pages=config.extra["project"].pages(), root=root)
    return config


def anchor(heading: str, separator: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Let the pages from outside docs/ join the site."""
    site: Site = config.extra["project"]
    for path in site.outside:
        text = (site.root / path).read_text()
        files.append(File.generated(config, site.address(path) or path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Links lead to pages of the site; a page of the reference gets its docstrings."""
    site: Site = config.extra["project"]
    moved = site.relinked(markdown, address=page.file.src_uri)
    return with_docstrings(moved) if page.file.src_uri.startswith("reference/") else moved
