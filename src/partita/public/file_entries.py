"""The specification of a release file: canonical JSON, series of integers, and the entries of every view.

Entries are written plainly and read strictly: whatever `to_canonical` would not write is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NoReturn, TypeAlias, TypeVar, cast, final

import numpy as np
from numpy.typing import NDArray

from partita.domain import domain_from_spec
from partita.domain.axis import MOST_COLUMNS, Axis
from partita.domain.base import Domain
from partita.domain.text import FoundNames, Text
from partita.errors import InvalidRelease, check_release
from partita.guarantee import Guarantee, Neighbors, Unit
from partita.public.axis.base import AxisRelease, Json, Parts, Specials
from partita.public.axis.flat import HistogramRelease
from partita.public.axis.names import ListedNames
from partita.public.axis.quantiles import QuantileRelease, QuantileView, quantiles_name
from partita.public.base import Provenance
from partita.public.bounds import Gaussian
from partita.public.boxes.base import BoxRelease
from partita.public.contributions import ChosenContributions
from partita.public.queries.language import read_queries
from partita.public.queries.queries import Queries, Universe
from partita.public.results import AnyView
from partita.public.sums.base import SumRelease
from partita.public.sums.view import Sums, SumView, ViewKeyCounts, sum_name
from partita.public.views import BoxView, View
from partita.public.wanted import WantedView
from partita.public.wants import Want, parse_want
from partita.public.workload.release import QueryView, WorkloadRelease

Kind = TypeVar("Kind")

# --- canonical JSON: one text for each value, and no floats ------------------------------------

LONGEST: Final = 2**24
"""Bytes of the longest text that is written or read."""

_LARGEST: Final = 2**64
_DIGITS: Final = 20  # of 2^64
_DEEPEST: Final = 16  # nested lists and mappings: a limit on hostile files


def to_canonical(value: Mapping[str, Json]) -> bytes:
    r"""`value` with sorted keys, without white space, in UTF-8; as in RFC 8785, and without floats.

    >>> to_canonical({"b": [1, "é"], "a": None})
    b'{"a":null,"b":[1,"\xc3\xa9"]}'
    """
    _check(value, depth=0)
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    except (TypeError, ValueError):
        raise refusal("must be text that UTF-8 can write, lists and mappings") from None
    _require(len(text) <= LONGEST, f"must be at most {LONGEST} bytes long")
    return text


def from_canonical(text: bytes) -> dict[str, Json]:
    """The mapping that `to_canonical` wrote; any other way to write it is refused.

    >>> from_canonical(b'{"a":[1,null]}')
    {'a': [1, None]}
    """
    _require(len(text) <= LONGEST, f"must be at most {LONGEST} bytes long")
    try:
        value = json.loads(text.decode(), parse_float=_no_float, parse_int=_integer, parse_constant=_no_float)
    except (ValueError, RecursionError):
        raise refusal("must be JSON with integers of 64 bits and no other numbers") from None
    canonical = isinstance(value, dict) and to_canonical(value) == text
    _require(canonical, "must be a JSON object in its canonical form")
    return cast(dict[str, Json], value)


def _check(value: object, depth: int) -> None:
    """Refuse what other languages could not read: floats, long integers, deep nesting, odd keys."""
    _require(depth <= _DEEPEST, f"must be nested at most {_DEEPEST} deep")
    if isinstance(value, Mapping):
        _require(all(type(key) is str for key in value), "must have texts as keys")
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            _check(each, depth + 1)
        return
    plain = value is None or type(value) in (bool, str) or (type(value) is int and abs(value) <= _LARGEST)
    _require(plain, "must hold texts, truth values and integers of 64 bits only")


def _integer(text: str) -> int:
    if len(text) > _DIGITS + 1:
        raise ValueError
    return int(text)


def _no_float(text: str) -> NoReturn:
    raise ValueError


def checksum(spec: Mapping[str, Json], columns: Iterable[NDArray[Any]]) -> str:
    """SHA-256, in hex, of the canonical JSON without its own entry, then of each column in order.

    A column is hashed as its numbers of eight bytes, the lowest byte first. Lengths are part of the
    JSON, so no two releases have the same bytes.

    >>> checksum({"version": 1}, [np.array([1, 2])])[:16]
    'f6b93305eb5179bb'
    """
    digest = hashlib.sha256(to_canonical({key: spec[key] for key in spec if key != "checksum"}))
    for column in columns:
        digest.update(np.ascontiguousarray(column, column.dtype.newbyteorder("<")).data)
    return digest.hexdigest()


# --- series of integers: a column of 64 bits each, and two columns for up to 128 ----------------

_WIDE: Final = "int128"
_DTYPES: Final = {"i": "int64", "u": "uint64", "O": _WIDE}
_HALVES: Final = (("_high", "int64"), ("_low", "uint64"))
_WIDE_COST: Final = 64  # bytes of a Python int of 128 bits in an array of objects, rounded up
_BITS: Final = 64
_LOW: Final = 2**_BITS - 1
_SMALLEST, _LARGEST_COLUMN = -(2**127), 2**127 - 1


@final
@dataclass(frozen=True)
class FileColumn:
    """One list of the file: its name, whether its integers are `int64` or `uint64`, and how many.

    `cost` is what each takes in memory, in bytes.
    """

    name: str
    dtype: str
    length: int
    cost: int = 8


@final
@dataclass(frozen=True, kw_only=True)
class Series:
    """What the specification says of a series: `int64`, `uint64`, or `int128` for Python ints.

    The last takes two columns, the floor of x / 2^64 and the rest, so that any tool can read them.
    """

    name: str
    dtype: str
    length: int

    def __post_init__(self) -> None:
        if self.dtype not in _DTYPES.values():
            raise _refuse_column(self.name, f"must be of one of the types {', '.join(_DTYPES.values())}")

    @property
    def width(self) -> int:
        """How many columns hold this series."""
        return 2 if self.dtype == _WIDE else 1

    @classmethod
    def of(cls, name: str, values: NDArray[Any]) -> Series:
        """The series that holds these values."""
        dtype = _DTYPES.get(values.dtype.kind)
        if values.ndim != 1 or dtype is None:
            raise _refuse_column(name, "must be a flat array of integers")
        return cls(name=name, dtype=dtype, length=values.size)

    def columns(self, prefix: str) -> Iterator[FileColumn]:
        """The columns of the file that hold this series."""
        name = f"{prefix}.{self.name}"
        if self.dtype != _WIDE:
            yield FileColumn(name, self.dtype, self.length)
            return
        for suffix, dtype in _HALVES:
            yield FileColumn(name + suffix, dtype, self.length, cost=_WIDE_COST)

    def split(self, values: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """The content of each of these columns."""
        if self.dtype != _WIDE:
            yield values.astype(self.dtype, copy=False)
            return
        whole = [_bounded(value, self.name) for value in values.tolist()]
        yield np.array([value >> _BITS for value in whole], np.int64)
        yield np.array([value & _LOW for value in whole], np.uint64)

    def join(self, columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The values that `split` gave these columns for."""
        if self.dtype != _WIDE:
            (values,) = columns
            return values
        high, low = (column.astype(object) for column in columns)
        return np.asarray(high * 2**_BITS + low, dtype=object)


def _bounded(value: object, name: str) -> int:
    if type(value) is not int or not _SMALLEST <= value <= _LARGEST_COLUMN:
        raise _refuse_column(name, "must hold integers of at most 128 bits")
    return value


def _refuse_column(name: str, rule: str) -> InvalidRelease:
    return InvalidRelease(f"series {name!r}", rule, fix="save what a mechanism released")


# --- entries: written plainly, read strictly ---------------------------------------------------

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_RATIONAL: Final = re.compile(r"-?[0-9]{1,200}(/[0-9]{1,200})?")
_PROVENANCE: Final = ("dataset", "day", "part", "person", "recorded", "version")
OPTIONS: Final = "options"
"""The entry of a provenance that has options of a mechanism, if there are some."""
RHO: Final = "rho"
"""The entry of a guarantee that states zero-concentrated privacy."""
CHOSEN_BOUND: Final = "contributions"
"""The entry of a provenance that says how the bound on rows per person was chosen, if it was."""
_CHOSEN_BOUND: Final = ("among", "chosen", "epsilon", "share")
_GUARANTEE: Final = ("contributions", "delta", "epsilon", "intrusions", "neighbors", "unit")


def guarantee_entries(guarantee: Guarantee | None) -> Json:
    """A guarantee with exact rationals as text; null for none."""
    if guarantee is None:
        return None
    return {
        **({RHO: str(guarantee.rho)} if guarantee.rho else {}),
        "epsilon": str(guarantee.epsilon),
        "delta": str(guarantee.delta),
        "neighbors": guarantee.neighbors,
        "unit": guarantee.unit,
        "contributions": guarantee.contributions,
        "intrusions": guarantee.intrusions,
    }


def guarantee_from(value: Json) -> Guarantee | None:
    """The guarantee that was written, or none."""
    if value is None:
        return None
    stated = RHO in entries(value)
    given = entries(value, (*_GUARANTEE, RHO) if stated else _GUARANTEE)
    rho = rational(given[RHO]) if stated else Fraction(0)
    _require(not stated or rho > 0, "must leave rho out where none is promised")
    return Guarantee(
        rho=rho,
        epsilon=rational(given["epsilon"]),
        delta=rational(given["delta"]),
        neighbors=cast(Neighbors, text(given["neighbors"])),
        unit=cast(Unit, text(given["unit"])),
        contributions=natural(given["contributions"]),
        intrusions=natural(given["intrusions"]),
    )


def provenance_entries(provenance: Provenance) -> Json:
    """Every field by its name; the part as a column and a value."""
    part, options = provenance.part, dict[str, Json](provenance.options)
    chosen = provenance.contributions
    return {
        **({OPTIONS: options} if options else {}),
        **({} if chosen is None else {CHOSEN_BOUND: chosen_entries(chosen)}),
        "version": provenance.version,
        "day": provenance.day,
        "dataset": provenance.dataset,
        "recorded": provenance.recorded,
        "person": provenance.person,
        "part": None if part is None else {"column": part[0], "value": part[1]},
    }


def provenance_from(value: Json) -> Provenance:
    """Exactly the fields of a provenance, each of its type; options, and a choice, only if there are some."""
    perhaps = [name for name in (OPTIONS, CHOSEN_BOUND) if name in entries(value)]
    given = entries(value, (*_PROVENANCE, *perhaps))
    part = None if given["part"] is None else entries(given["part"], ("column", "value"))
    return Provenance(
        version=text(given["version"]),
        day=text(given["day"]),
        dataset=_text_or_none(given["dataset"]),
        recorded=_of_type(given["recorded"], bool, "must say true or false in this place"),
        person=_text_or_none(given["person"]),
        part=None if part is None else (text(part["column"]), text(part["value"])),
        options=_options_from(given[OPTIONS]) if OPTIONS in given else (),
        contributions=_chosen_from(given[CHOSEN_BOUND]) if CHOSEN_BOUND in given else None,
    )


def chosen_entries(chosen: ChosenContributions | None) -> Json:
    """A bound on rows per person, what it was chosen among, and for which part of epsilon; null for none."""
    if chosen is None:
        return None
    among = list[Json](chosen.among)
    return {
        "chosen": chosen.chosen,
        "among": among,
        "share": str(chosen.share),
        "epsilon": str(chosen.epsilon),
    }


def _chosen_from(value: Json) -> ChosenContributions:
    given = entries(value, _CHOSEN_BOUND)
    return ChosenContributions(
        chosen=natural(given["chosen"]),
        among=tuple(natural(each) for each in check_list(given["among"])),
        share=rational(given["share"]),
        epsilon=rational(given["epsilon"]),
    )


def _options_from(value: Json) -> tuple[tuple[str, str], ...]:
    """Options by their names, as text that can be printed."""
    given = entries(value)
    named = given and all(_NAME.fullmatch(name) for name in given)
    _require(named and all(text(each).isprintable() for each in given.values()), "must name its options")
    return tuple((name, text(given[name])) for name in sorted(given))


def specials_entries(specials: Specials) -> Json:
    """Counts as text, because they may need more digits than other languages keep."""
    counts: dict[str, Json] = {cell: str(count) for cell, count in specials.counts.items()}
    if isinstance(specials.scale, Gaussian):
        return {"counts": counts, "variance": str(specials.scale.variance)}
    return {"counts": counts, "scale": str(specials.scale)}


def specials_from(value: Json, cells: Iterable[str]) -> Specials:
    """The counts of exactly these cells, in their order; or none of them, if none was counted."""
    normal = "variance" in entries(value)
    given = entries(value, ("counts", "variance" if normal else "scale"))
    law = Gaussian(rational(given["variance"])) if normal else rational(given["scale"])
    listed = tuple(cells) if entries(given["counts"]) else ()
    counts = entries(given["counts"], listed)
    return Specials(counts={cell: _whole(counts[cell]) for cell in listed}, scale=law)


def entries(value: Json | Mapping[str, Json], names: Iterable[str] | None = None) -> dict[str, Json]:
    """`value`, if it is a mapping, and with exactly these names if they are given."""
    found: dict[str, Json] = _of_type(value, dict, "must have a mapping in this place")
    if names is not None and set(found) != set(names):
        raise refusal(f"must have exactly the entries {', '.join(sorted(names))} in this place")
    return found


def check_list(value: Json) -> list[Json]:
    """`value`, if it is a list."""
    return _of_type(value, list, "must have a list in this place")


def text(value: Json) -> str:
    """`value`, if it is text."""
    return _of_type(value, str, "must have text in this place")


def _text_or_none(value: Json) -> str | None:
    return None if value is None else text(value)


def series_name(value: Json) -> str:
    """`value`, if it can be the name of a series."""
    _require(_NAME.fullmatch(text(value)), "must name a series in small letters, digits and _")
    return text(value)


def natural(value: Json) -> int:
    """`value`, if it is an integer that is not negative."""
    if type(value) is not int or value < 0:
        raise refusal("must have a number that is not negative in this place")
    return value


def rational(value: Json) -> Fraction:
    """An exact number, written in lowest terms like 1/3.

    >>> rational("1/3")
    Fraction(1, 3)
    """
    given = text(value)
    plain = _RATIONAL.fullmatch(given) and not given.endswith("/0")
    _require(plain, 'must have a rational number like "1/3" in this place')
    exact = Fraction(given)
    _require(str(exact) == given, "must have rational numbers in lowest terms")
    return exact


def _whole(value: Json) -> int:
    exact = rational(value)
    _require(exact.denominator == 1, "must have whole counts")
    return int(exact)


def refusal(rule: str) -> InvalidRelease:
    """The specification breaks this rule."""
    return InvalidRelease("specification", rule, fix="get a fresh copy of the release")


def _require(holds: object, rule: str) -> None:
    if not holds:
        raise refusal(rule)


def _of_type(value: object, kind: type[Kind], rule: str) -> Kind:
    if not isinstance(value, kind):
        raise refusal(rule)
    return value


# --- views: a form for each kind ---------------------------------------------------------------

Published: TypeAlias = AnyView | SumView | QueryView | QuantileView | WantedView


def join_views(
    views: Iterable[AnyView],
    sums: Iterable[SumView],
    queries: QueryView | None,
    quantiles: Iterable[QuantileView] = (),
    wanted: Iterable[WantedView] = (),
) -> tuple[Published, ...]:
    """All views: of counts, of sums, that of queries, of quantiles, then of cells that wants derive."""
    return (*views, *sums, *(() if queries is None else (queries,)), *quantiles, *wanted)


def domains_of(view: Published) -> Mapping[str, Domain]:
    """The domain of each column of a view, a summed one included."""
    if isinstance(view, SumView):
        return view.declared
    return dict(zip(view.columns, view.domains, strict=True))


VERSION: Final = 1
"""The version of a file in which every view has one column."""
SEVERAL: Final = 2
"""The version of a file in which some view has several columns."""
NUMBERS: Final = 3
"""The version of a file in which some view has sums, or answers to queries."""
WANTED: Final = 5
"""The version of a file of a release that was made for wants only."""

STATED: Final = 6
"""The version of a file whose provenance has options, or in which a column has no special cells."""

CONCENTRATED: Final = 7
"""The version of a file in which a guarantee states rho; whatever else it has, but for a choice."""
CHOSEN: Final = 8
"""The version of a file of a release whose bound on rows per person was chosen; whatever else it has."""

SELECTED: Final = 4
"""The version of a file in which some view has quantiles alone."""

EVERY_VIEW: Final = ("facts", "guarantee", "kind", "mechanism", "series", "why")
"""The entries that all views have."""

QUERIES: Final = "queries"
"""The name of the view of queries: a release has one at most."""

Entry: TypeAlias = Mapping[str, Json]


@final
@dataclass(frozen=True)
class ViewForm:
    """How views of one kind are written and read.

    `mark` is the entry that no form before this one in `FORMS` has. `about` are the entries that say what
    the view is about, `released` is what was released, `name` is how series begin in the file, and `read`
    makes the view from its entries, its parts, and the views of counts that stand before it.
    """

    version: int
    mark: str
    names: tuple[str, ...]
    about: Callable[[Any], dict[str, Json]]
    released: Callable[[Any], Any]
    name: Callable[[Entry], str]
    read: Callable[[Entry, Parts, Sequence[AnyView]], Published]

    def written(self, view: Published, parts: Parts) -> dict[str, Json]:
        """The entries of a view but for its series."""
        released, known = self.released(view), False
        with suppress(InvalidRelease):
            known = type(released).of_kind(released.kind) is type(released)
        fix = "keep it in memory, or let the mechanism return one of Partita's classes"
        check_release(known, "release", "must be of a class that a file can be read back to", fix=fix)
        return {
            **self.about(view),
            "mechanism": view.mechanism,
            "why": view.why,
            "kind": released.kind,
            "facts": dict(parts.facts),
            "guarantee": guarantee_entries(released.guarantee),
        }


def form_of(view: Entry | Published) -> ViewForm:
    """The form of a view, or of the entries of one."""
    if isinstance(view, Mapping):
        return next((form for form in FORMS.values() if form.mark in view), FORMS[View])
    return FORMS[type(view)]


def states_rho(guarantee: Json) -> bool:
    """Whether the entries of a guarantee state zero-concentrated privacy."""
    return isinstance(guarantee, Mapping) and RHO in guarantee


def lacks_specials(view: Entry) -> bool:
    """Whether entries are those of a column whose special cells were not counted."""
    if form_of(view) is not FORMS[View]:
        return False
    return entries(view["specials"]).get("counts") == {}


def describe_view(view: Published) -> dict[str, Json]:
    """The entries that say what a view is about."""
    return {name: entry for name, entry in form_of(view).about(view).items() if name != "specials"}


def view_name(columns: Sequence[str]) -> str:
    """The columns of a view in one name, with which its series in a file begin.

    >>> view_name(["age"]), view_name(["age", "salary"])
    ('age', 'age x salary')
    """
    return " x ".join(columns)


def describe_columns(columns: Sequence[str], domains: Sequence[Domain]) -> dict[str, Json]:
    """The entries that say what a view is about: one column and its domain, or several."""
    if len(columns) == 1:
        return {"column": columns[0], "domain": _plain(domains[0])}
    return _together(columns, domains)


def describe_sums(keys: Sequence[str], column: str, declared: Mapping[str, Domain]) -> dict[str, Json]:
    """The entries that say what a view of sums is about."""
    summed: dict[str, Json] = {"column": column, "domain": _plain(declared[column])}
    return {"sum": summed, **_together(keys, [declared[key] for key in keys])}


def describe_queries(queries: Queries, columns: Sequence[str], domains: Sequence[Domain]) -> dict[str, Json]:
    """The entries that say what a view of queries is about."""
    return {"queries": queries.to_json(), **_together(columns, domains)}


def describe_quantiles(column: str, domain: Domain, quantiles: Sequence[Fraction]) -> dict[str, Json]:
    """The entries that say what a view of quantiles is about."""
    return {"quantiles": [str(each) for each in quantiles], **describe_columns([column], [domain])}


def describe_wanted(want: Want, declared: Mapping[str, Domain]) -> dict[str, Json]:
    """The entries that say what a view is about whose cells a want derives: the want as text."""
    return {"want": str(want), **_together(list(declared), list(declared.values()))}


def _together(columns: Sequence[str], domains: Sequence[Domain]) -> dict[str, Json]:
    return {"columns": list[Json](columns), "domains": list[Json](map(_plain, domains))}


def _plain(domain: Domain) -> dict[str, Json]:
    spec = (domain.text if isinstance(domain, FoundNames) else domain).to_spec()
    return {key: list[Json](value) if isinstance(value, list) else value for key, value in spec.items()}


def _domain(spec: Json) -> Domain:
    """A domain of a column; text, of which only names are released, has a form of its own."""
    domain = domain_from_spec(entries(spec))
    _require(not isinstance(domain, Text), "must have names where a column is text")
    return domain


def _columns(view: Entry, *, least: int) -> tuple[str, ...]:
    """The columns of a view that lists them."""
    columns = tuple(text(column) for column in check_list(view["columns"]))
    fits = least <= len(columns) <= MOST_COLUMNS and len(set(columns)) == len(columns)
    _require(fits, f"must have {least} to {MOST_COLUMNS} different columns in a view of this kind")
    return columns


def _domains(view: Entry) -> tuple[Domain, ...]:
    return tuple(map(_domain, check_list(view["domains"])))


def _declared(view: Entry, *, least: int) -> dict[str, Domain]:
    """The columns of a view that lists them, each with its domain."""
    columns, domains = _columns(view, least=least), _domains(view)
    _require(len(columns) == len(domains), "must have a domain for each column")
    return dict(zip(columns, domains, strict=True))


def _mechanism(view: Entry) -> dict[str, str]:
    return {"mechanism": text(view["mechanism"]), "why": text(view["why"])}


def _column_view(view: Entry, parts: Parts, before: Sequence[AnyView]) -> View:
    axis = AxisRelease.of_kind(text(view["kind"])).from_parts(parts, guarantee_from(view["guarantee"]))
    if isinstance(axis, ListedNames):
        _require(axis.text == domain_from_spec(entries(view["domain"])), "must name the column that it has")
        domain: Domain = axis.domain
        specials = axis.complete(specials_from(view["specials"], domain.specials))
    else:
        domain = _domain(view["domain"])
        _require(axis.size == domain.size, "must have a domain of as many cells as were released")
        specials = specials_from(view["specials"], domain.specials)
    return View(column=text(view["column"]), domain=domain, axis=axis, specials=specials, **_mechanism(view))


def _box_view(view: Entry, parts: Parts, before: Sequence[AnyView]) -> BoxView:
    boxes = BoxRelease.of_kind(text(view["kind"])).from_parts(parts, guarantee_from(view["guarantee"]))
    return BoxView(columns=_columns(view, least=2), domains=_domains(view), boxes=boxes, **_mechanism(view))


def _sum_view(view: Entry, parts: Parts, before: Sequence[AnyView]) -> SumView:
    keys, summed = _declared(view, least=0), _summed(view)
    column, domain = text(summed["column"]), _domain(summed["domain"])
    kind, guarantee = SumRelease.of_kind(text(view["kind"])), guarantee_from(view["guarantee"])
    axes = tuple(map(Axis.of, keys.values()))
    return SumView(
        keys=tuple(keys),
        column=column,
        declared={**keys, column: domain},
        sums=cast(Sums, kind.from_parts(parts, guarantee, keys=axes, value=domain)),
        beside=ViewKeyCounts.of_sums(before, tuple(keys), column) if kind.reads_counts else None,
        **_mechanism(view),
    )


def _summed(view: Entry) -> dict[str, Json]:
    return entries(view["sum"], ("column", "domain"))


def _sum_name(view: Entry) -> str:
    return sum_name(text(_summed(view)["column"]), _columns(view, least=0))


def _query_view(view: Entry, parts: Parts, before: Sequence[AnyView]) -> QueryView:
    declared = _declared(view, least=1)
    columns, domains = tuple(declared), tuple(declared.values())
    queries, universe = read_queries(view["queries"]), Universe(columns, domains)
    answers = WorkloadRelease.of_kind(text(view["kind"])).from_parts(
        parts, guarantee_from(view["guarantee"]), queries, universe
    )
    return QueryView(columns=columns, domains=domains, queries=queries, answers=answers, **_mechanism(view))


def _quantile_view(view: Entry, parts: Parts, before: Sequence[AnyView]) -> QuantileView:
    selected = QuantileRelease.of_kind(text(view["kind"])).from_parts(
        parts, guarantee_from(view["guarantee"])
    )
    listed = [text(each) for each in check_list(view["quantiles"])]
    _require(listed == [str(each) for each in selected.quantiles], "must name the quantiles that it has")
    _require(selected.size == (domain := _domain(view["domain"])).size, "must have the cells of its domain")
    return QuantileView(column=text(view["column"]), domain=domain, selected=selected, **_mechanism(view))


def _wanted_view(view: Entry, parts: Parts, before: Sequence[AnyView]) -> WantedView:
    want, kind = parse_want(text(view["want"])), AxisRelease.of_kind(text(view["kind"]))
    _require(str(want) == view["want"], "must have wants as they are written")
    _require(issubclass(kind, HistogramRelease), "must have the counts of cells where a want derives them")
    counts = cast(HistogramRelease, kind.from_parts(parts, guarantee_from(view["guarantee"])))
    return WantedView(want=want, declared=_declared(view, least=1), counts=counts, **_mechanism(view))


FORMS: Final[Mapping[type, ViewForm]] = {
    WantedView: ViewForm(
        WANTED,
        "want",
        ("want", "columns", "domains"),
        lambda view: describe_wanted(view.want, view.declared),
        lambda view: view.counts,
        lambda view: text(view["want"]),
        _wanted_view,
    ),
    QuantileView: ViewForm(
        SELECTED,
        "quantiles",
        ("quantiles", "column", "domain"),
        lambda view: describe_quantiles(view.column, view.domain, view.selected.quantiles),
        lambda view: view.selected,
        lambda view: quantiles_name(text(view["column"])),
        _quantile_view,
    ),
    QueryView: ViewForm(
        NUMBERS,
        "queries",
        ("queries", "columns", "domains"),
        lambda view: describe_queries(view.queries, view.columns, view.domains),
        lambda view: view.answers,
        lambda view: QUERIES,
        _query_view,
    ),
    SumView: ViewForm(
        NUMBERS,
        "sum",
        ("sum", "columns", "domains"),
        lambda view: describe_sums(view.keys, view.column, view.declared),
        lambda view: view.sums,
        _sum_name,
        _sum_view,
    ),
    BoxView: ViewForm(
        SEVERAL,
        "columns",
        ("columns", "domains"),
        lambda view: describe_columns(view.columns, view.domains),
        lambda view: view.boxes,
        lambda view: view_name(_columns(view, least=2)),
        _box_view,
    ),
    View: ViewForm(
        VERSION,
        "column",
        ("column", "domain", "specials"),
        lambda view: {
            **describe_columns([view.column], [view.domain]),
            "specials": specials_entries(view.specials),
        },
        lambda view: view.axis,
        lambda view: text(view["column"]),
        _column_view,
    ),
}
"""Every kind of view, the most special first."""
