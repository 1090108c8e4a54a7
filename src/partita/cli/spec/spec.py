"""A release described in TOML, read exactly: a number is what is written, never the nearest float."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from difflib import get_close_matches
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from partita.errors.checks import check, check_type
from partita.errors.errors import InvalidParameter
from partita.guarantee.guarantee import positive_epsilon
from partita.numbers import integer, rational

if TYPE_CHECKING:
    from partita.domain.base.base import Domain

Reader: TypeAlias = Callable[[object], object]

COLUMN_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "integer": ("low", "high"),
    "real": ("low", "high", "step"),
    "date": ("start", "end"),
    "timestamp": ("start", "end", "resolution", "zone"),
    "category": ("labels",),
}
"""What each type of column must say, in the order in which a spec says it; only `zone` may be left out."""

_TABLES: Final = ("columns", "release", "csv")
_RELEASE: Final = (
    "by",
    "views",
    "shares",
    "sums",
    "moments",
    "queries",
    "epsilon",
    "delta",
    "person",
    "contributions",
    "neighbors",
    "mechanism",
    "dataset",
)
_CSV: Final = ("delimiter", "header")
_DEFAULTS: Final = {"zone": "UTC"}
_LARGEST: Final = 2**20
_FILL_IN: Final = "write it down from public knowledge, never from the data"


@final
@dataclass(frozen=True, kw_only=True)
class Spec:
    """What a steward wrote down; None where the spec is silent."""

    columns: Mapping[str, Domain] = field(default_factory=dict)
    by: Sequence[str] | None = None
    views: Sequence[Sequence[str]] | None = None
    shares: Sequence[Fraction] | None = None
    sums: Sequence[str] | None = None
    moments: Sequence[str] | None = None
    queries: Sequence[str] | None = None
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    person: str | None = None
    contributions: int | None = None
    neighbors: str | None = None
    mechanism: str | None = None
    dataset: str | None = None
    delimiter: str | None = None
    header: Sequence[str] | None = None


def read_spec(path: str) -> Spec:
    """The spec in a file; anything that it should not say is refused, with the nearest that it may."""
    document = _parsed(_content(path), path)
    _check_keys(document, _TABLES, f"{path}: ")
    columns, release, csv = (_table(document, name, path) for name in _TABLES)
    return Spec(
        columns={name: domain(name, entries, where=path) for name, entries in columns.items()},
        **_entries(release, _RELEASE, _READERS, f"{path}: release"),
        **_entries(csv, _CSV, _READERS, f"{path}: csv"),
    )


def domain(name: str, entries: object, *, where: str) -> Domain:
    """The domain of one column, from entries such as type = "integer", low = 0, high = 120."""
    from partita.domain import domain_from_spec

    place = f"{where}: columns.{name}"
    entries = check_type(entries, Mapping, place, "must be a table", fix='write type = "integer" and so on')
    kind = _kind(entries, place)
    said = {key: _exact(entries.get(key, _DEFAULTS.get(key))) for key in COLUMN_KEYS[kind]}
    for key, value in said.items():
        if value is None:
            raise InvalidParameter(f"{place}.{key}", "must be filled in", given=value, fix=_FILL_IN)
    try:
        return domain_from_spec({"kind": kind, **said})
    except InvalidParameter as error:
        raise _placed(error, f"{place}.{error.parameter}", entries.get(error.parameter)) from None


def _kind(entries: Mapping[str, Any], place: str) -> str:
    kind = entries.get("type")
    if not isinstance(kind, str) or kind not in COLUMN_KEYS:
        fix = _nearest(str(kind), tuple(COLUMN_KEYS))
        rule = f"must be one of {', '.join(COLUMN_KEYS)}"
        raise InvalidParameter(f"{place}.type", rule, given=kind, fix=fix)
    _check_keys(entries, ("type", *COLUMN_KEYS[kind]), f"{place}.")
    return kind


def _entries(
    table: Mapping[str, Any], known: Sequence[str], readers: Mapping[str, Reader], place: str
) -> dict[str, Any]:
    """The entries of a table, each read by its reader, or as text."""
    _check_keys(table, known, f"{place}.")
    read = {}
    for key, value in table.items():
        try:
            read[key] = readers.get(key, _text)(value)
        except InvalidParameter as error:
            raise _placed(error, f"{place}.{key}", value) from None
    return read


def _views(value: object) -> list[list[str]]:
    return [
        [view] if isinstance(view, str) else _names(view)
        for view in _listed(value, '[["age"], ["age", "sex"]]')
    ]


def _shares(value: object) -> list[Fraction]:
    return [positive_epsilon(share) for share in _listed(value, '["1/2", "1/2"]')]


def _no_names(value: object) -> list[str]:
    """Names, or an empty list: sums without keys."""
    return [] if value == [] else _names(value)


def _names(value: object) -> list[str]:
    return [_text(name) for name in _listed(value, '["age"]')]


def _listed(value: object, example: str) -> list[object]:
    if not isinstance(value, list) or not value:
        raise InvalidParameter("entry", "must be a list", given=value, fix=f"write for example {example}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidParameter("entry", "must be text", given=value, fix="put it in quotes")
    return value


def _exact(value: object) -> object:
    """Dates and whole numbers as the text that a domain reads; floats were kept as text."""
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            content = file.read(_LARGEST + 1)
    except (OSError, ValueError):
        rule = "must be a file that you may read"
        raise InvalidParameter("spec", rule, given=path, fix="write one with `partita init`") from None
    fix = "shorten it"
    check(len(content) <= _LARGEST, "spec", f"must have at most {_LARGEST} bytes", given=path, fix=fix)
    return content


def _parsed(content: bytes, path: str) -> dict[str, Any]:
    """The document; where it is none, only the place is told, as the file may be data taken for a spec."""
    try:
        return tomllib.loads(content.decode(), parse_float=str)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at (line \d+, column \d+)", str(error))
        rule = f"must be TOML, and stops being so at {place[1] if place else 'its end'}"
    except (ValueError, RecursionError):
        rule = "must be UTF-8 text, TOML of usual depth and length"
    raise InvalidParameter("spec", rule, given=path, fix="see docs/command-line.md") from None


def _table(document: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
    entries = document.get(name, {})
    fix = f"write [{name}] and its entries below"
    return check_type(entries, Mapping, f"{path}: {name}", "must be a table", fix=fix)


def _check_keys(entries: Mapping[str, Any], known: Sequence[str], prefix: str) -> None:
    for key in entries:
        if key not in known:
            rule = "must be a key of a spec"
            raise InvalidParameter(f"{prefix}{key}", rule, given=key, fix=_nearest(key, known))


def _nearest(word: str, known: Sequence[str]) -> str:
    near = get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"choose among {', '.join(known)}"


def _placed(error: InvalidParameter, place: str, given: object) -> InvalidParameter:
    """The same error, said of an entry of the file."""
    return InvalidParameter(place, error.rule, given=given, fix=error.fix)


_READERS: Final[Mapping[str, Reader]] = {
    "by": _no_names,
    "views": _views,
    "shares": _shares,
    "sums": _names,
    "moments": _names,
    "queries": _names,
    "epsilon": positive_epsilon,
    "delta": lambda value: rational(value, "delta"),
    "contributions": lambda value: integer(value, "contributions", low=1),
    "header": _names,
}
