"""The selection of a view as people may copy it: Python, curl, and the text of a question."""

from __future__ import annotations

import shlex

from partita.asking.questions import COUNT, write_conditions
from partita.asking.records import Record
from partita.conditions import OneOf, Range, Where
from partita.domain import Special
from partita.service.reading.opening import SUFFIX

__all__ = ["snippets"]


def snippets(name: str, where: Where, *, origin: str) -> Record:
    """How to ask for the count of the selection elsewhere.

    >>> from partita.asking.grammar import parse_where
    >>> shown = snippets("people", parse_where("age < 30"), origin="http://localhost:8000")
    >>> print(shown["python"])
    import partita as pt
    <BLANKLINE>
    release = pt.load('people.release.parquet')
    print(release.count({'age': (None, '30')}, closed={'age': 'left'}))
    >>> shown["curl"]
    "curl -G http://localhost:8000/releases/people/count --data-urlencode 'where=age < 30'"
    """
    text = write_conditions(where)
    condition = f" --data-urlencode {shlex.quote(f'where={text}')}" if text else ""
    return {
        "python": _python(name, where),
        "curl": f"curl -G {shlex.quote(f'{origin}/releases/{name}/count')}{condition}",
        "text": str(COUNT(where=where)),
    }


def _python(name: str, where: Where) -> str:
    asked = ", ".join(f"{column!r}: {_cell(cell)}" for column, cell in where.items())
    ranges = {column: each for column, each in where.items() if isinstance(each, Range)}
    ends = {column: each.closed for column, each in ranges.items() if each.closed != "both"}
    arguments = [f"{{{asked}}}"] if where else []
    arguments += [f"closed={ends!r}"] if ends else []
    call = f"release.count({', '.join(arguments)})"
    return f"import partita as pt\n\nrelease = pt.load({name + SUFFIX!r})\nprint({call})"


def _cell(cell: object) -> str:
    if isinstance(cell, Special):
        return f"pt.{cell.name}"
    if isinstance(cell, OneOf):
        return f"{{{', '.join(map(repr, sorted(set(cell.values))))}}}"
    if isinstance(cell, Range):
        return repr((cell.low, cell.high))
    return repr(cell)
