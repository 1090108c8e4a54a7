"""Noisy counts as linear measurements: what they are of, and their files."""

from __future__ import annotations

import contextlib
import io
import json
import math
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import partita as pt
from partita.arrays import Floats
from partita.domain import Domain, Integer
from partita.domain.axis import Axis
from partita.errors import InvalidParameter, InvalidRelease
from partita.public.axis.base import Specials
from partita.public.boxes.bins import AxisBins
from partita.public.measurements import (
    MeasuredColumn,
    NoisyMeasurement,
    NoisyMeasurements,
    SparseRows,
    find_runs,
    read_npz,
)
from partita.public.release import Release
from partita.public.views import BoxView, View
from partita.testing import EndlessTape, ZeroNoise, tape_noise
from partita.trusted.secret import Histogram, Points
from tests.public.file import specimens

AXES = [
    "gaussian-histogram",
    "hierarchy",
    "histogram",
    "laplace",
    "spending-tree",
    "tents",
    "thresholds",
    "tree",
]
HUGE = ["intervals-paper", "partition-tents"]
BOXES = ["gaussian-grid", "graph", "grid", "spending-boxes", "viewed-boxes"]
REFUSED = ["rank-boxes", "rectangles", "rectangles-paper"]


def on_one_axis(kind: str, noise: Any, *, size: int = 60, rows: int = 400) -> tuple[Release, NDArray[Any]]:
    """A release of made-up rows of one column with special cells, and the true count of each position."""
    cells = np.sort(np.arange(rows, dtype=np.uint64) ** np.uint64(2) % np.uint64(size))
    nodes = {"nodes": [(0, 29), (0, 9), (30, 58)]} if kind == "hierarchy" else {}
    made = getattr(pt, specimens.MECHANISMS[kind])(size=size, epsilon=2, **nodes)
    axis = made.release(Histogram.from_cells(cells, size=size), noise=noise)
    domain = Integer(0, size - 1)
    special = {name: 3 * number for number, name in enumerate(domain.specials)}
    view = View(
        column="age",
        domain=domain,
        axis=replace(axis, guarantee=None),
        specials=Specials(counts=special, scale=Fraction(1, 2)),
        mechanism=kind,
    )
    truth = np.zeros(Axis.of(domain).width)
    truth[Axis.of(domain).before :][:size] = np.bincount(cells.astype(np.int64), minlength=size)
    for name, place in Axis.specials(domain).items():
        truth[place] = special[name]
    return of(view), truth


def of(view: Any) -> Release:
    """A release of one view."""
    return Release(views=(view,), guarantee=view.guarantee, provenance=specimens.release("grid").provenance)


def on_boxes(kind: str, noise: Any) -> tuple[Release, Points]:
    """A release of made-up rows of several columns, and these rows."""
    made, domains = specimens.box_mechanism(kind), specimens.BOX_DOMAINS[kind]
    points = specimens.places(made.axes)
    boxes = replace(made.release(points, noise=noise), guarantee=None)
    names = tuple(f"c{number}" for number in range(len(domains)))
    return of(BoxView(columns=names, domains=domains, boxes=boxes, mechanism=kind)), points


def bin_numbers(rows: NDArray[Any], each: NoisyMeasurement, columns: Mapping[str, int]) -> NDArray[Any]:
    """The combination of bins that each row of positions is in."""
    found = [bins.of(rows[:, columns[name]]) for name, bins in zip(each.columns, each.bins, strict=True)]
    return np.ravel_multi_index(tuple(found), each.shape)


@pytest.mark.parametrize("kind", [*AXES, *HUGE])
def test_without_noise_measurements_are_the_sums_that_they_say(kind: str) -> None:
    """Of one column, each released number is its row of the matrix times the true counts of the bins."""
    release, truth = on_one_axis(kind, ZeroNoise())

    measured = release.measurements()

    rows = np.repeat(np.arange(truth.size), truth.astype(np.int64)).astype(np.uint64)[:, np.newaxis]
    for each in measured:
        counts = np.bincount(bin_numbers(rows, each, {"age": 0}), minlength=each.cells).astype(float)
        np.testing.assert_allclose(each.values, each.times(counts), rtol=0, atol=1e-9)
    assert sum(each.noisy.size for each in measured) >= 1


@pytest.mark.parametrize("kind", BOXES)
def test_without_noise_measurements_of_boxes_are_the_sums_that_they_say(kind: str) -> None:
    """Of several columns, too: totals, views and tables of a whole table among them."""
    release, points = on_boxes(kind, ZeroNoise())
    columns = {f"c{number}": number for number in range(len(points.axes))}
    rows = np.repeat(points.places, points.counts, axis=0)

    for each in release.measurements():
        counts = np.bincount(bin_numbers(rows, each, columns), minlength=each.cells).astype(float)
        np.testing.assert_array_equal(each.values, each.times(counts))


@pytest.mark.parametrize("kind", ["gaussian-histogram", "histogram", "tree", "thresholds"])
def test_least_squares_of_measurements_is_what_the_release_answers(kind: str) -> None:
    """Weighed by their variances, the measured counts give the values and the errors of all ranges."""
    release, truth = on_one_axis(kind, tape_noise(EndlessTape((kind, 1))))
    measured = release.measurements()
    records = measured.linear()
    size = measured.sizes["age"]
    assert size == truth.size

    asked = [each.get("query", np.copy) for each in records]
    rows = np.concatenate([np.stack([query(e) for e in np.eye(size)], axis=1) for query in asked])
    values = np.concatenate([each["noisy_measurement"] for each in records])
    precision = np.concatenate([np.full(len(m.noisy), m.stddev**-2) for m in measured])
    covariance = np.linalg.inv(rows.T @ (precision[:, np.newaxis] * rows))
    solved = covariance @ (rows.T @ (precision * values))

    place = Axis.of(Integer(0, 59)).before
    for low, high in [(0, 59), (3, 17), (20, 20), (0, 30), (31, 59)]:
        weights = np.zeros(size)
        weights[place + low : place + high + 1] = 1.0
        answer = release.view("age").axis.count(low, high)  # type: ignore[union-attr]
        assert answer.value == pytest.approx(weights @ solved, abs=1e-7)
        assert answer.error == pytest.approx(math.sqrt(weights @ covariance @ weights), rel=1e-9)


def test_cells_and_special_cells_of_one_noise_are_one_measurement() -> None:
    """A histogram and its special cells are the noisy counts of all positions, in their order."""
    release = pt.publish({"age": [3, 3, None, 99]}, {"age": Integer(0, 9)}, epsilon=1, mechanism="histogram")

    (only,) = release.measurements()

    assert only.matrix is None
    assert only.shape == (14,)
    column = release.measurements().column("age")
    assert column.describe(only.bins[0])[-3:] == ["above", "invalid", "null"]
    view = cast(View, release.views[0])
    assert only.noisy.tolist()[:1] == [view.specials.counts["below"]]
    assert only.noisy.tolist()[-1:] == [view.specials.counts["null"]]
    assert only.noisy[1:11].tolist() == view.axis.noisy.tolist()  # type: ignore[attr-defined]


def test_a_column_without_special_cells_has_positions_for_its_cells_only() -> None:
    """Of an axis alone nothing is said about special cells."""
    tree = pt.Tree(size=10, epsilon=1).release(Histogram.from_cells([3], size=10))

    measured = pt.as_release(tree, {"age": Integer(0, 9)}).measurements()

    assert measured.column("age").places == {}
    assert measured.column("age").width == 10


@pytest.mark.parametrize("kind", [*AXES, *HUGE, *BOXES])
def test_queries_over_common_bins_measure_what_their_own_bins_do(kind: str) -> None:
    """The function that `mbi` gets joins the common bins to those of the measurement, then sums them."""
    make = on_boxes if kind in BOXES else on_one_axis
    measured = make(kind, tape_noise(EndlessTape((kind, 2))))[0].measurements()

    for each, record in zip(measured, measured.linear(), strict=True):
        common = [measured.bins[name] for name in each.columns]
        counts: Floats = np.arange(math.prod(bins.number for bins in common), dtype=np.float64) % 7
        at = [own.of(find_runs(bins)[1]) for own, bins in zip(each.bins, common, strict=True)]
        number = np.ravel_multi_index(np.meshgrid(*at, indexing="ij"), each.shape).ravel()
        own: Floats = np.bincount(number, weights=counts, minlength=each.cells).astype(np.float64)

        made = LinearMeasurement(**record)
        np.testing.assert_allclose(made.query(Factor(counts)), each.times(own), atol=1e-9)
        assert made.noisy_measurement.tolist() == each.values.tolist()
        assert (made.clique, made.stddev) == (each.columns, each.stddev)


@dataclass
class LinearMeasurement:
    """The fields of `mbi.LinearMeasurement` in mbi 2.0, by their names and in their order."""

    noisy_measurement: Floats
    clique: tuple[str, ...]
    stddev: float = 1.0
    query: Callable[[Factor], Floats] = lambda factor: factor.datavector()


class Factor:
    """What a query of `mbi` gets: counts over the domain of a clique, flat in `datavector()`."""

    def __init__(self, counts: Floats) -> None:
        self._counts = counts

    def datavector(self) -> Floats:
        return self._counts


def same(one: NoisyMeasurements, other: NoisyMeasurements) -> bool:
    """Whether two exports hold the same to the last bit."""
    if one._spec() != other._spec():
        return False
    for a, b in zip(map(arrays_of, one), map(arrays_of, other), strict=True):
        if a.keys() != b.keys() or any(a[name].dtype != b[name].dtype for name in a):
            return False
        if not all(np.array_equal(a[name], b[name]) for name in a):
            return False
    return True


def arrays_of(each: NoisyMeasurement) -> dict[str, NDArray[Any]]:
    from partita.public.measurements import _arrays

    return _arrays(each)


@pytest.mark.parametrize("kind", [*AXES, *HUGE, *BOXES])
def test_a_round_trip_gives_the_same_numbers(kind: str, tmp_path: Path) -> None:
    """In NPZ files, and in Arrow tables that were written as Parquet."""
    make = on_boxes if kind in BOXES else on_one_axis
    measured = make(kind, tape_noise(EndlessTape((kind, 3))))[0].measurements()

    measured.save(tmp_path / "m.npz")
    pq.write_table(measured.to_arrow(), tmp_path / "m.parquet")

    assert same(NoisyMeasurements.read(tmp_path / "m.npz"), measured)
    assert same(NoisyMeasurements.from_arrow(pq.read_table(tmp_path / "m.parquet")), measured)


@pytest.mark.parametrize("kind", [*AXES, *BOXES])
def test_a_file_has_the_domains_of_all_columns(kind: str, tmp_path: Path) -> None:
    """Labels of any language, nodes above them, dates and decimals."""
    measured = specimens.release(kind).measurements()
    measured.save(tmp_path / "m.npz")

    read = NoisyMeasurements.read(tmp_path / "m.npz")

    assert [each.domain.to_spec() for each in read.columns] == [
        each.domain.to_spec() for each in measured.columns
    ]
    assert read.guarantee == measured.guarantee
    for one, other in zip(read, measured, strict=True):
        for name, bins, same_bins in zip(one.columns, one.bins, other.bins, strict=True):
            assert read.column(name).describe(bins) == measured.column(name).describe(same_bins)


def test_numpy_reads_the_file_without_pickle(tmp_path: Path) -> None:
    """Every array is of plain numbers, and the specification is JSON in bytes."""
    released = pt.publish({"age": [3]}, {"age": Integer(0, 9)}, epsilon=1, mechanism="tree")
    released.measurements().save(tmp_path / "m.npz")

    with np.load(tmp_path / "m.npz", allow_pickle=False) as found:
        assert {found[name].dtype.kind for name in found.files} <= {"i", "u"}
        spec = json.loads(found["spec"].tobytes())

    assert spec["measurements"][0]["law"] == "discrete laplace"
    assert spec["guarantee"]["epsilon"] == "1"


def test_two_exports_of_a_release_are_the_same_file(tmp_path: Path) -> None:
    """A file is a function of the release alone."""
    measured = specimens.release("tree").measurements()
    measured.save(tmp_path / "one.npz")
    measured.save(tmp_path / "two.npz")

    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*REFUSED, "linear", "totals"])
def test_other_kinds_are_refused_by_name(kind: str) -> None:
    """What was measured there are no sums of cells; the error names the kinds that can be exported."""
    with pytest.raises(InvalidParameter, match=r"must have released linear counts of cells.*histogram"):
        specimens.release(kind, *(["grid"] if kind == "totals" else [])).measurements()


def test_the_views_to_export_can_be_named() -> None:
    """A release with a view that cannot be exported gives those of the others."""
    release = specimens.release("tree", "rank-boxes")

    assert [column.name for column in release.measurements("tree").columns] == ["tree"]
    with pytest.raises(InvalidParameter, match="columns must be one of"):
        release.measurements("wages")


def test_too_many_entries_are_refused() -> None:
    """A matrix of all ranges of many cells would not fit; nothing is made of it."""
    release, _ = on_one_axis("thresholds", ZeroNoise(), size=6000)

    with pytest.raises(InvalidParameter, match="sums of at most 16,777,216 counts"):
        release.measurements()


def test_a_dense_matrix_that_is_too_large_is_refused() -> None:
    """Measurements are there, and records for `mbi` are not."""
    measured = on_one_axis("histogram", ZeroNoise(), size=6000)[0].measurements()
    wide = replace(measured[0], columns=("age", "pay"), bins=(*measured[0].bins, AxisBins.identity(3)),
                   noisy=np.zeros(measured[0].cells * 3, np.int64))  # fmt: skip
    pay = NoisyMeasurement(columns=("pay",), bins=(AxisBins.identity(3),), noisy=np.zeros(3, np.int64),
                           scale=Fraction(1))  # fmt: skip
    columns = (*measured.columns, MeasuredColumn("pay", Integer(0, 2), specials=False))

    assert len(NoisyMeasurements(columns, (wide, pay), None).linear()) == 2
    none = np.zeros(0, np.int64)
    coarse = AxisBins.from_edges([2])
    rows = SparseRows(np.zeros(6005, np.int64), none, none, wide.cells // 3)
    many = replace(wide, bins=(wide.bins[0], coarse), noisy=np.zeros(rows.rows, np.int64), matrix=rows)
    with pytest.raises(InvalidParameter, match="combinations of bins"):
        NoisyMeasurements(columns, (many, pay), None).linear()


def written(tmp_path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file of measurements."""
    release, _ = on_one_axis("tree", tape_noise(EndlessTape("hostile")), size=9)
    release.measurements().save(tmp_path / "m.npz", overwrite=True)
    return read_npz((tmp_path / "m.npz").read_bytes(), largest=2**20)


def spec_with(arrays: dict[str, NDArray[Any]], **changes: Any) -> None:
    """Change the specification."""
    spec = json.loads(arrays["spec"].tobytes()) | changes
    plain = json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    arrays["spec"] = np.frombuffer(plain.encode(), np.uint8)


HOSTILE: dict[str, Callable[[dict[str, NDArray[Any]]], object]] = {
    "an index beyond the bins": lambda a: a.update({"0.indices": a["0.indices"] + 99}),
    "an index below zero": lambda a: a.update({"0.indices": a["0.indices"] - 99}),
    "rows that go back": lambda a: a.update({"0.indptr": a["0.indptr"][::-1].copy()}),
    "a row too many": lambda a: a.update({"0.noisy": np.append(a["0.noisy"], 1)}),
    "floats": lambda a: a.update({"0.noisy": a["0.noisy"].astype(np.float64)}),
    "integers of 32 bits": lambda a: a.update({"0.noisy": a["0.noisy"].astype(np.int32)}),
    "no numbers": lambda a: a.pop("0.noisy"),
    "no weights": lambda a: a.pop("0.weights"),
    "an array too many": lambda a: a.update({"0.more": a["0.noisy"]}),
    "a measurement too many": lambda a: a.update({"99.noisy": a["0.noisy"]}),
    "bins of another axis": lambda a: a.update({"0.edges0": a["0.edges0"] + np.uint64(1)}),
    "bins that go back": lambda a: a.update({"0.edges0": a["0.edges0"][::-1].copy()}),
    "no bins": lambda a: a.update({"0.edges0": a["0.edges0"][:0]}),
    "no specification": lambda a: a.pop("spec"),
    "a newer version": lambda a: spec_with(a, version=2),
    "another format": lambda a: spec_with(a, format="partita release"),
    "an entry too many": lambda a: spec_with(a, more=1),
    "no columns": lambda a: spec_with(a, columns=[]),
    "no measurements": lambda a: spec_with(a, measurements=[]),
    "a guarantee of text": lambda a: spec_with(a, guarantee="strong"),
}  # fmt: skip


@pytest.mark.parametrize("change", HOSTILE)
def test_a_file_that_breaks_a_rule_is_refused(change: str, tmp_path: Path) -> None:
    """By a typed error, whatever it is that does not fit."""
    arrays = written(tmp_path)
    HOSTILE[change](arrays)
    np.savez(tmp_path / "bad.npz", **arrays)  # type: ignore[arg-type]

    with pytest.raises(InvalidRelease):
        NoisyMeasurements.read(tmp_path / "bad.npz")


ENTRIES: list[dict[str, Any]] = [
    {"law": "normal"},
    {"law": "discrete gaussian"},
    {"variance": "4"},
    {"scale": "0"},
    {"scale": 1},
    {"unit": 0},
    {"unit": 2**40},
    {"columns": []},
    {"columns": ["age", "age"]},
    {"columns": ["pay"]},
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_that_breaks_a_rule_is_refused(entry: dict[str, Any], tmp_path: Path) -> None:
    """Laws that nobody knows here, scales that nobody can draw, columns that are not there."""
    arrays = written(tmp_path)
    said = json.loads(arrays["spec"].tobytes())["measurements"]
    spec_with(arrays, measurements=[{**said[0], **entry}, *said[1:]])
    np.savez(tmp_path / "bad.npz", **arrays)  # type: ignore[arg-type]

    with pytest.raises(InvalidRelease):
        NoisyMeasurements.read(tmp_path / "bad.npz")


def test_a_zip_file_of_something_else_is_refused(tmp_path: Path) -> None:
    """Pickled objects are never unpacked, headers are believed only if they fit, and bombs stay packed."""
    objects, bomb, liar = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.savez(objects, spec=np.array([{}], object))
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("spec.npy", bytes(2**22))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": (2**50,)})
    with zipfile.ZipFile(liar, "w") as packed:
        packed.writestr("spec.npy", header.getvalue())

    for data in (b"", b"PK", objects.getvalue(), bomb.getvalue(), liar.getvalue()):
        with pytest.raises(InvalidRelease):
            read_npz(data, largest=2**20)


@pytest.mark.parametrize("seed", range(40))
def test_a_file_with_changed_bytes_is_refused_or_read(seed: int, tmp_path: Path) -> None:
    """Nothing but `InvalidRelease` comes of bytes that were changed anywhere."""
    release, _ = on_one_axis("tree", tape_noise(EndlessTape("hostile")), size=9)
    release.measurements().save(tmp_path / "m.npz")
    data = bytearray((tmp_path / "m.npz").read_bytes())
    place = np.random.default_rng(seed)
    for at in place.integers(0, len(data), 3):
        data[at] ^= int(place.integers(1, 256))
    (tmp_path / "bad.npz").write_bytes(data)

    with contextlib.suppress(InvalidRelease):
        NoisyMeasurements.read(tmp_path / "bad.npz", largest=2**24)


def table_with(table: pa.Table, name: str, values: list[Any]) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(name), pa.array(values, table.schema.field(name).type))


def test_a_table_that_breaks_a_rule_is_refused() -> None:
    """One of another schema, without its metadata, with nulls, or that says two things of one measurement."""
    table = on_one_axis("tree", tape_noise(EndlessTape("hostile")), size=9)[0].measurements().to_arrow()
    number = len(table)
    bad = [
        table.replace_schema_metadata({}),
        table.drop_columns(["noisy"]),
        table.slice(1),
        table_with(table, "scale", ["7"] * number),
        table_with(table, "columns", [["pay"]] * number),
        table_with(table, "noisy", [None] * number),
        table_with(table, "noisy", [[None]] * number),
        table_with(table, "noisy", [[1]] * number),
        table_with(table, "edges", [None] * number),
        table_with(table, "edges", [[[2**63]]] * number),
        table_with(table, "lookup", [[[0, 1]]] * number),
        "table",
    ]

    for each in bad:
        with pytest.raises(InvalidRelease):
            NoisyMeasurements.from_arrow(each)


def test_integers_beyond_64_bits_are_refused() -> None:
    """They are in release files, and not in arrays of plain numbers."""
    with pytest.raises(InvalidRelease, match="64 bits"):
        NoisyMeasurement(
            columns=("age",), bins=(AxisBins.identity(1),), noisy=np.array([2**70], object), scale=Fraction(1)
        )


def test_nothing_is_written_where_something_is(tmp_path: Path) -> None:
    """Unless it may be replaced."""
    measured = specimens.release("histogram").measurements()
    measured.save(tmp_path / "m.npz")

    with pytest.raises(InvalidParameter, match="exist"):
        measured.save(tmp_path / "m.npz")
    measured.save(tmp_path / "m.npz", overwrite=True)
    domain: Domain = measured.columns[0].domain
    assert NoisyMeasurements.read(tmp_path / "m.npz").columns[0].domain.to_spec() == domain.to_spec()
