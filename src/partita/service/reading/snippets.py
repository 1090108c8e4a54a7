"""The selection of a view as people may copy it: Python, curl, and the text of a question."""

from __future__ import annotations

import shlex

from partita.asking.conditions import cells, closed
from partita.asking.questions import Count, Where
from partita.asking.records import Record
from partita.domain import Special
from partita.service.reading.opening import SUFFIX

__all__ = ["conditions_text", "snippets"]

_PREFIX = "count where "


def snippets(name: str, where: Where, *, origin: str) -> Record:
    """How to ask for the count of the selection elsewhere.

    >>> from partita.asking.grammar import conditions
    >>> shown = snippets("people", conditions("age < 30"), origin="http://localhost:8000")
    >>> print(shown["python"])
    import partita as pt
    <BLANKLINE>
    release = pt.load('people.release.parquet')
    print(release.count({'age': (None, '30')}, closed={'age': 'left'}))
    >>> shown["curl"]
    "curl -G http://localhost:8000/releases/people/count --data-urlencode 'where=age < 30'"
    """
    text = conditions_text(where)
    condition = f" --data-urlencode {shlex.quote(f'where={text}')}" if text else ""
    return {
        "python": _python(name, where),
        "curl": f"curl -G {shlex.quote(f'{origin}/releases/{name}/count')}{condition}",
        "text": str(Count(where)),
    }


def conditions_text(where: Where) -> str:
    """Conditions as text, as they stand behind `where`; empty if there are none."""
    return str(Count(where)).removeprefix(_PREFIX) if where else ""


def _python(name: str, where: Where) -> str:
    asked = ", ".join(f"{column!r}: {_cell(cell)}" for column, cell in cells(where).items())
    ends = {column: kind for column, kind in closed(where).items() if kind != "both"}
    arguments = [f"{{{asked}}}"] if where else []
    arguments += [f"closed={ends!r}"] if ends else []
    call = f"release.count({', '.join(arguments)})"
    return f"import partita as pt\n\nrelease = pt.load({name + SUFFIX!r})\nprint({call})"


def _cell(cell: object) -> str:
    if isinstance(cell, Special):
        return f"pt.{cell.name}"
    if isinstance(cell, frozenset):
        return f"{{{', '.join(map(repr, sorted(cell)))}}}"
    return repr(cell)
