"""A document of headings, paragraphs, tables and pictures, written as Markdown or as one HTML page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #223; background: #fff; }
table { border-collapse: collapse; margin: 1rem 0; font-size: .85rem; display: block; overflow-x: auto; }
th, td { text-align: left; padding: .25rem .7rem; border-bottom: 1px solid #8885; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.ours td { font-weight: 600; }
code { font-family: ui-monospace, monospace; font-size: .9em; }
svg { max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) { body { color: #dde; background: #16181d; } }
"""


@dataclass(frozen=True)
class Heading:
    """A heading; 1 is the title."""

    level: int
    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph; code stands between back quotes."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows below headings; `strong` names the rows, by their first cell, that are ours."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    strong: str = "Partita"


@dataclass(frozen=True)
class Picture:
    """A drawing with words for those who do not see it."""

    name: str
    alt: str
    svg: str


Block = Heading | Text | Table | Picture


def to_markdown(blocks: Iterable[Block], *, pictures: str = "") -> str:
    """The document in Markdown; `pictures` is the folder of its drawings, with a slash at its end."""
    return "\n\n".join(markdown(block, pictures) for block in blocks) + "\n"


def markdown(block: Block, pictures: str) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {text}"
        case Text(text):
            return text
        case Picture(name, alt, _):
            return f"![{alt}]({pictures}{name}.svg)"
        case Table(head, rows):
            lines = [head, ["---"] * len(head), *rows]
            return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def to_html(blocks: Sequence[Block]) -> str:
    """The document as one page that asks for nothing else."""
    title = next(block.text for block in blocks if isinstance(block, Heading))
    body = "\n".join(map(html, blocks))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def html(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"<h{level}>{inline(text)}</h{level}>"
        case Text(text):
            return f"<p>{inline(text)}</p>"
        case Picture(_, _, svg):
            return svg
        case Table(head, rows, strong):
            top = "".join(f"<th>{inline(cell)}</th>" for cell in head)
            body = "\n".join(html_row(row, strong) for row in rows)
            return f"<table>\n<thead><tr>{top}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def html_row(row: Sequence[str], strong: str) -> str:
    ours = ' class="ours"' if strong in row[:3] else ""
    cells = "".join(f"<td{number(cell)}>{inline(cell)}</td>" for cell in row)
    return f"<tr{ours}>{cells}</tr>"


def number(cell: str) -> str:
    return ' class="number"' if re.fullmatch(r"[\d.,±e+\- %kMGs]+", cell) else ""


def inline(text: str) -> str:
    """Code between back quotes, and everything else as it is."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
