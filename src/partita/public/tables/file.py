"""Table releases in files: taken apart to facts and series, and read from anybody with every part checked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from partita.domain.axis import MOST_COLUMNS
from partita.errors import InvalidParameter
from partita.public.axis.base import Json, Parts, PartsReader
from partita.public.base import damaged, noise_scale, noise_variance_parameter, noisy_integers
from partita.public.bounds import Gaussian, NoiseLaw
from partita.public.boxes.base import BoxRelease
from partita.public.boxes.bins import AxisBins
from partita.public.boxes.grid import CellGrid, GaussianGridRelease, GridRelease
from partita.public.boxes.spending_boxes import SpendingBoxesRelease
from partita.public.tables.audits import (
    CELLS,
    COARSE,
    FINE,
    MEASURED,
    NARROW,
    PAIRS,
    STRONG,
    TAIL,
    TRIPLES,
    WEAK,
    Audit,
)
from partita.public.tables.fit import MeasuredTable, TableFit, estimate_rows
from partita.public.tables.model import (
    MOST_CLIQUE_CELLS,
    MOST_MODEL_CELLS,
    Columns,
    JunctionTree,
    TableModel,
)

if TYPE_CHECKING:
    from partita.public.tables.graph import TableGraphRelease

_VIEWS: Final[Mapping[str, type[BoxRelease]]] = {
    each.kind: each for each in (GridRelease, GaussianGridRelease, SpendingBoxesRelease)
}
_FACTS: Final = (
    "views",
    "bins",
    "tables",
    "cliques",
    "looks",
    "choosing",
    "audits",
    "strong",
    "total",
    "scale",
)
_SERIES: Final = ("bins", "groups", "noisy", "model")
_AUDITED: Final = (MEASURED, STRONG, WEAK, NARROW, PAIRS, TRIPLES, TAIL)
_MOST_TABLES: Final = 4096
_MOST_LISTED: Final = 1024  # looks or audits
_LARGEST: Final = 2**62
_GAUSSIAN: Final = "gaussian"  # the word before a variance where others have a scale


def encode_graph(release: TableGraphRelease) -> Parts:
    """Everything that was released, taken apart for a file."""
    from partita.public.tables.graph import FIXED

    fit = release.fit
    views, series = list[Json](), dict[str, NDArray[Any]]()
    for column, view in enumerate(fit.views):
        parts = view.parts()
        views.append({"kind": view.kind, **parts.facts})
        series |= {f"axis{column}_{name}": row for name, row in parts.series.items()}
    facts: dict[str, Json] = {
        "views": views,
        "bins": [["edges" if each.lookup is None else "lookup", each.number] for each in fit.bins],
        "tables": [
            [list(t.columns), _law_text(t.scale), [0 if g is None else int(g.max()) + 1 for g in t.groups]]
            for t in fit.tables
        ],
        "cliques": [list(clique) for clique in fit.model.tree.cliques],
        "looks": [[look.number, look.noisy, _law_text(look.scale)] for look in release.looks],
        "choosing": str(release.choosing),
        "audits": [
            [a.kind, a.groups, a.number, a.noisy, _law_text(a.scale), a.unit, a.log_share, a.noise]
            for a in release.audits
        ],
        "strong": [list(pair) for pair in sorted(release.strong)],
        "total": fit.total,
        "scale": _law_text(fit.scale),
    }
    groups = [g for t in fit.tables for g in t.groups if g is not None]
    series["bins"] = _join([_bin_row(each) for each in fit.bins], np.uint64)
    series["groups"] = _join(groups, np.int64)
    series["noisy"] = noisy_integers(_join([t.noisy.ravel() for t in fit.tables], None), "noisy")
    series["model"] = _join([np.rint(t.ravel() * FIXED) for t in fit.model.tables], np.int64)
    return Parts(facts, series)


def _bin_row(bins: AxisBins) -> NDArray[Any]:
    row = bins.edges if bins.lookup is None else bins.lookup
    assert row is not None
    return row


def _join(rows: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    if not rows:
        return np.zeros(0, np.int64 if dtype is None else dtype)
    joined = np.concatenate(rows)
    return joined if dtype is None else joined.astype(dtype)


def read_graph(parts: Parts) -> dict[str, Any]:
    """The fields of the release that `encode_graph` took apart; anything else is an `InvalidRelease`."""
    reader = PartsReader(parts)
    plain = [name for name in parts.series if not name.startswith("axis")]
    PartsReader(Parts(parts.facts, {name: parts.series[name] for name in plain})).expect(
        facts=_FACTS, series=_SERIES
    )
    views = _read_views(parts)
    total = reader.integer("total", low=-_LARGEST, high=_LARGEST)
    scale = _read_law(parts.facts.get("scale"), "scale")
    bins = _read_bins(reader, views)
    tables = _read_tables(reader, bins)
    fit = TableFit(
        total=total,
        scale=scale,
        views=views,
        bins=bins,
        tables=tables,
        model=_read_model(reader, bins, estimate_rows(views, total, scale, tables)[0]),
    )
    choosing = reader.rational("choosing")
    if choosing < 0:
        raise damaged("choosing", "must not be negative")
    looks, audits = tuple(_read_looks(reader)), tuple(_read_audits(reader))
    _check_laws(fit, [each.scale for each in (*looks, *audits)])
    return {
        "fit": fit,
        "looks": looks,
        "choosing": choosing,
        "audits": audits,
        "strong": frozenset(_read_pairs(reader, len(views))),
    }


def _check_laws(fit: TableFit, sums: Sequence[NoiseLaw]) -> None:
    """Refuse a release of which some noise is Gaussian and some is not, but for that of trees."""
    views = [view.law for view in fit.views if isinstance(view, CellGrid)]
    laws = [fit.scale, *views, *(table.scale for table in fit.tables), *sums]
    if len({isinstance(law, Gaussian) for law in laws}) > 1:
        raise damaged("scale", "must be of one law in the whole release")


def _listed(reader: PartsReader, name: str, most: int) -> list[Any]:
    found = reader.parts.facts.get(name)
    if not isinstance(found, list) or len(found) > most:
        raise damaged(name, f"must be a list of at most {most}")
    return found


def _read_views(parts: Parts) -> tuple[BoxRelease, ...]:
    listed, views = parts.facts.get("views"), list[BoxRelease]()
    if not isinstance(listed, list) or not 2 <= len(listed) <= MOST_COLUMNS:
        raise damaged("views", f"must be a list of 2 to {MOST_COLUMNS} views")
    known = {f"axis{column}_" for column in range(len(listed))}
    if any(name.startswith("axis") and f"{name.split('_')[0]}_" not in known for name in parts.series):
        raise damaged("parts", "must be those of its kind, no more and no less")
    for column, facts in enumerate(listed):
        kind = facts.get("kind") if isinstance(facts, dict) else None
        if not isinstance(facts, dict) or not isinstance(kind, str) or kind not in _VIEWS:
            raise damaged("views", "must be of a known kind")
        prefix = f"axis{column}_"
        series = {
            name.removeprefix(prefix): row for name, row in parts.series.items() if name.startswith(prefix)
        }
        inner = {name: fact for name, fact in facts.items() if name != "kind"}
        view = _VIEWS[kind].from_parts(Parts(inner, series), None)
        if len(view.axes) != 1 or (isinstance(view, SpendingBoxesRelease) and view.total is not None):
            raise damaged("views", "must have one axis each, and have looked at all of it")
        views.append(view.as_column_view() if isinstance(view, SpendingBoxesRelease) else view)
    return tuple(views)


def _read_bins(reader: PartsReader, views: Sequence[BoxRelease]) -> tuple[AxisBins, ...]:
    listed, row, found, start = _listed(reader, "bins", len(views)), reader.row("bins", np.uint64), [], 0
    for given, view in zip(listed, views, strict=False):
        match given:
            case ["edges" | "lookup" as form, int(number)] if (
                number is not True and 0 < number <= MOST_CLIQUE_CELLS
            ):
                length = number if form == "edges" else view.axes[0].width
                part = row[start : start + length]
                start += length
                found.append(_make_bins(form, part, number, view.axes[0].width))
            case _:
                raise damaged("bins", "must say their form and their number")
    if len(found) != len(views) or start != row.size:
        raise damaged("bins", "must be those of all columns")
    return tuple(found)


def _make_bins(form: str, row: NDArray[np.uint64], number: int, width: int) -> AxisBins:
    try:
        bins = AxisBins.from_edges(row) if form == "edges" else AxisBins.from_lookup(row)
    except InvalidParameter:
        raise damaged("bins", "must hold every position of their axis once") from None
    if (bins.width, bins.number) != (width, number):
        raise damaged("bins", "must hold every position of their axis once")
    return bins


def _read_tables(reader: PartsReader, bins: Sequence[AxisBins]) -> tuple[MeasuredTable, ...]:
    noisy, groups = reader.noisy("noisy"), reader.row("groups", np.int64)
    found, cell, group = list[MeasuredTable](), 0, 0
    for given in _listed(reader, "tables", _MOST_TABLES):
        match given:
            case [list(columns), str(scale), list(numbers)] if len(columns) == len(numbers):
                pass
            case _:
                raise damaged("tables", "must have columns, a scale and numbers of groups")
        checked = _check_columns(columns, len(bins), "tables")
        maps, shape = list[Any](), list[int]()
        for column, number in zip(checked, numbers, strict=True):
            if type(number) is not int or not 0 <= number < bins[column].number:
                raise damaged("tables", "must join the bins of their columns to fewer groups")
            joined = groups[group : group + bins[column].number] if number else None
            group += 0 if joined is None else bins[column].number
            if joined is not None and set(np.unique(joined).tolist()) != set(range(number)):
                raise damaged("groups", "must have a bin for each group")
            maps.append(joined)
            shape.append(number or bins[column].number)
        cells = math.prod(shape)
        if cells > MOST_MODEL_CELLS or cell + cells > noisy.size:
            raise damaged("noisy", "must be the counts of all tables")
        found.append(
            MeasuredTable(
                checked, tuple(maps), noisy[cell : cell + cells].reshape(shape), _read_law(scale, "tables")
            )
        )
        cell += cells
    if cell != noisy.size or group != groups.size:
        raise damaged("noisy", "must be the counts of all tables")
    return tuple(found)


def _read_model(reader: PartsReader, bins: Sequence[AxisBins], rows: float) -> TableModel:
    from partita.public.tables.graph import FIXED

    listed = _listed(reader, "cliques", len(bins))
    cliques = tuple(_check_columns(each, len(bins), "cliques", least=1) for each in listed)
    sizes = tuple(each.number for each in bins)
    cells = [math.prod(sizes[c] for c in clique) for clique in cliques]
    row = reader.row("model", np.int64)
    if {c for clique in cliques for c in clique} != set(range(len(bins))) or sum(cells) != row.size:
        raise damaged("cliques", "must hold every column, with a count for each cell")
    if bool((row < 0).any()) or sum(cells) > MOST_MODEL_CELLS + sum(sizes):
        raise damaged("model", "must hold at most 2^18 counts that are not negative")
    tree = JunctionTree(sizes, cliques)
    _check_tree(tree)
    parts = np.split(row / FIXED, np.cumsum(cells)[:-1])
    tables = tuple(p.reshape([sizes[c] for c in q]) for p, q in zip(parts, cliques, strict=True))
    return TableModel(tree, tables, rows)


def _check_tree(tree: JunctionTree) -> None:
    """Refuse cliques whose tree does not connect those that hold the same column."""
    joined = [set(tree.separator(*edge)) for edge in tree.order[1:]]
    for column in range(len(tree.sizes)):
        holding = sum(column in clique for clique in tree.cliques)
        if sum(column in shared for shared in joined) != holding - 1:
            raise damaged("cliques", "must be those of a junction tree")


def _read_looks(reader: PartsReader) -> Iterator[Any]:
    from partita.public.tables.graph import MisfitLook

    for given in _listed(reader, "looks", _MOST_LISTED):
        match given:
            case [int(number), int(noisy), str(scale)] if number > 0:
                yield MisfitLook(number, noisy, _read_law(scale, "looks"))
            case _:
                raise damaged("looks", "must have a number of pairs, a noisy sum and a scale")


def _read_audits(reader: PartsReader) -> Iterator[Audit]:
    for given in _listed(reader, "audits", _MOST_LISTED):
        match given:
            case [str(kind), int(groups), int(number), int(noisy), str(scale), *units] if (
                kind in _AUDITED and groups in (COARSE, FINE, CELLS) and number > 0 and _are_units(units)
            ):
                yield Audit(kind, groups, number, noisy, _read_law(scale, "audits"), *units)
            case _:
                raise damaged("audits", "must have a kind, groups, tables, a noisy sum, its scale and units")


def _are_units(units: list[Any]) -> bool:
    """Whether they are a sum of misses, a logarithm of a share, and a sum of noise."""
    return len(units) == 3 and all(type(u) is int for u in units) and min(units[0], -units[1], units[2]) >= 0


def _read_pairs(reader: PartsReader, columns: int) -> Iterator[tuple[int, int]]:
    for given in _listed(reader, "strong", MOST_COLUMNS**2):
        one, other, *rest = _check_columns(given, columns, "strong")
        if rest:
            raise damaged("strong", "must be pairs of columns")
        yield one, other


def _check_columns(given: object, columns: int, name: str, *, least: int = 2) -> Columns:
    fits = isinstance(given, list) and len(given) >= least and all(type(each) is int for each in given)
    if (
        not fits
        or not isinstance(given, list)
        or sorted(set(given)) != given
        or not 0 <= given[0] <= given[-1] < columns
    ):
        raise damaged(name, "must be ascending numbers of columns")
    return tuple(given)


def _law_text(law: NoiseLaw) -> str:
    """A law as files have it: a scale, or "gaussian" and a variance."""
    return f"{_GAUSSIAN} {law.variance}" if isinstance(law, Gaussian) else str(law)


def _read_law(text: Json, name: str) -> NoiseLaw:
    """The law that `_law_text` wrote."""
    word, _, number = text.partition(" ") if isinstance(text, str) else ("", "", "")
    if word != _GAUSSIAN:
        return noise_scale(PartsReader(Parts({name: text}, {})).rational(name), name)
    law = Gaussian(noise_variance_parameter(PartsReader(Parts({name: number}, {})).rational(name), name))
    if _law_text(law) != text:
        raise damaged(name, "must have its variance in lowest terms")
    return law
