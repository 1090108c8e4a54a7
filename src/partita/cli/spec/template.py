"""The commented spec that `partita init` writes: complete but for what only a steward can know."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from partita.cli.spec.columns import Columns, Entries, open_entries
from partita.cli.spec.spec import COLUMN_KEYS

_HEAD: Final = """\
# What a release says, for `partita plan` and `partita publish`. All of this is public.
#
# Delete the columns that are not to be published. Fill in what is commented out from public
# knowledge (a law, a form, a code book), never from the data: bounds that follow the data betray
# it. A value outside its bounds is not lost; it is counted in a special cell: below, above,
# invalid, null, or other."""

_MEANING: Final[Mapping[str, tuple[str, str]]] = {
    "type": ('"integer"', 'or "real", "date", "timestamp", "category"'),
    "low": ('"0"', "the least value that is told apart"),
    "high": ('"100"', "the largest"),
    "step": ('"0.01"', "values are rounded to multiples of it"),
    "start": ('"2020-01-01"', "the first day that is told apart"),
    "end": ('"2029-12-31"', "the last; of slots of time, the first slot of that day"),
    "resolution": ('"1h"', "how long a slot of time is"),
    "labels": ('["a", "b"]', "all values, in the order in which ranges count them"),
}

_TOGETHER: Final = """
# All columns above are published together, and can be asked alone or together. Name fewer in by, or
# list in views which go together: each view has its share of epsilon.
# by = {by}
# views = {views}"""
_APART: Final = """
# Up to {most} columns can be published, and then asked, together: put them in one view.
views = {views}"""

_RELEASE: Final = """
# epsilon = "1"                 # or --epsilon; all views together cost this much
# shares = [1, 1]               # how the views share it: a weight for each
# sums = ["salary"]             # sums and means of these columns, by the other columns of each view
# moments = ["salary"]          # the same, with variances
# queries = ["ranges(age) * value(salary)"]    # answers to exactly these queries
# delta = "1e-6"                # a chance of failure that the queries may have
# person = "id"                 # the column that says whose row it is; without it, every row is a person
# contributions = 1             # at most this many rows of a person count
# neighbors = "add-remove"      # or "change-one", if the number of people is public
# mechanism = "auto"            # `partita mechanisms` lists them

# [csv]                         # for .csv files only
# delimiter = ","
# header = ["id", "age"]        # if the first line is a row already"""


def template(columns: Columns) -> str:
    """A spec with these columns; what they leave open is a placeholder in a comment."""
    tables = [_table(name, entries) for name, entries in columns.items()]
    return "\n\n".join([_HEAD, *tables, f"[release]{_layout(list(columns))}{_RELEASE}"]) + "\n"


def _layout(names: list[str]) -> str:
    """Which columns are published together: all of them, if they are not too many."""
    from partita.domain.axis import MOST_AXES

    views = ", ".join(f"[{_text(name)}]" for name in names)
    shown = _TOGETHER if len(names) <= MOST_AXES else _APART
    return shown.format(by=_value(names), views=f"[{views}]", most=MOST_AXES) if len(names) > 1 else ""


def _table(name: str, entries: Entries) -> str:
    known = [f"{key} = {_value(value)}" for key, value in entries.items()]
    return "\n".join([f"[columns.{_key(name)}]", *known, *_placeholders(entries)])


def _placeholders(entries: Entries) -> Iterator[str]:
    missing = open_entries(entries)
    for key in missing if missing != ["type"] else ("type", *COLUMN_KEYS["integer"]):
        example, meaning = _MEANING[key]
        yield f"# {f'{key} = {example}':<24}# {meaning}"


def _value(value: str | list[str]) -> str:
    return _text(value) if isinstance(value, str) else f"[{', '.join(map(_text, value))}]"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(text: str) -> str:
    """A TOML string: JSON's, with nothing but printable characters left to escape."""
    return json.dumps(text, ensure_ascii=False)
