"""Noisy counts as linear measurements, for other tools: y = Q x + noise, with the law and scale of the noise.

x are the true counts of the bins of some columns, and Q is a matrix of integers. `Release.measurements` makes
them; they are written as NPZ files and as Arrow tables, and read back from anybody with every part checked.
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, cast, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Floats, Ints, UInts
from partita.domain import domain_from_spec
from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.errors import InvalidParameter, InvalidRelease, PartitaError, check, check_release
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.public.base import noise_scale, noise_variance_parameter, noisy_integers
from partita.public.bounds import Gaussian, NoiseLaw, noise_variance
from partita.public.boxes.bins import AxisBins
from partita.public.file import LARGEST
from partita.public.file_entries import (
    Entry,
    check_list,
    describe_columns,
    entries,
    from_canonical,
    guarantee_entries,
    guarantee_from,
    natural,
    rational,
    text,
    to_canonical,
)
from partita.storage import FilePath, Temporary, check_path, read_file

if TYPE_CHECKING:
    import pyarrow as pa

LAPLACE: Final = "discrete laplace"
"""P[noise = k] is proportional to exp(-|k| / scale)."""

GAUSSIAN: Final = "discrete gaussian"
"""P[noise = k] is proportional to exp(-k^2 / (2 variance))."""

MOST_ENTRIES: Final = 2**24
"""No matrix has more entries: they are listed one by one."""

MOST_DENSE: Final = 2**24
"""Numbers of the largest dense matrix, and bins of the columns of a measurement together, in `linear`."""

_FORMAT: Final = "partita measurements"
_VERSION: Final = 1
_KEY: Final = b"partita measurements"
_MOST_MEASUREMENTS: Final = 2**14
_MOST_CELLS: Final = 2**62
_LARGEST_UNIT: Final = 2**32
_FIX: Final = "get the file again, or export the release anew"


@final
@dataclass(frozen=True)
class MeasuredColumn:
    """A column of measurements: its name, its domain, and whether its special cells were counted.

    Positions are the cells in order; where special cells were counted, below stands before them and above,
    invalid, null and other behind them, as far as the domain has them.

    >>> from partita.domain import Integer
    >>> age = MeasuredColumn("age", Integer(0, 120))
    >>> age.width, age.places["null"]
    (125, 124)
    """

    name: str
    domain: Domain
    specials: bool = True

    @cached_property
    def axis(self) -> Axis:
        """The positions."""
        found = Axis.of(self.domain)
        return found if self.specials else Axis(size=found.size, labels=found.labels)

    @property
    def width(self) -> int:
        """The number of positions."""
        return self.axis.width

    @property
    def places(self) -> Mapping[str, int]:
        """The position of each special cell that was counted."""
        return Axis.specials(self.domain) if self.specials else {}

    def describe(self, bins: AxisBins) -> list[str]:
        """Each bin in words: a value, `first to last`, or special cells; parts side by side by commas.

        >>> from partita.domain import Integer
        >>> age = MeasuredColumn("age", Integer(0, 120))
        >>> age.describe(AxisBins.from_edges([0, 18, 121, 122, 123, 124]))
        ['below', '0 to 17', '18 to 120', 'above', 'invalid', 'null']
        """
        special = {place: name for name, place in self.places.items()}
        parts: list[list[str]] = [[] for _ in range(bins.number)]
        first, last, number = find_runs(bins)
        for low, high, number_ in zip(first.tolist(), last.tolist(), number.tolist(), strict=True):
            parts[number_] += self._run(low, high, special)
        return [", ".join(each) for each in parts]

    def _run(self, low: int, high: int, special: Mapping[int, str]) -> Iterator[str]:
        before, behind = self.axis.before, self.axis.before + self.axis.size
        yield from (special[place] for place in range(low, min(high + 1, before)))
        start, end = max(low, before), min(high, behind - 1)
        if start <= end:
            ends = np.array([start - before, end - before], np.uint64)
            one, other = self.domain.decode(ends)
            yield str(one) if start == end else f"{one} to {other}"
        yield from (special[place] for place in range(max(low, behind), high + 1))


def find_runs(bins: AxisBins) -> tuple[UInts, UInts, Ints]:
    """The first and the last position of each run of positions in one bin, and which bin that is."""
    if bins.lookup is None:
        first, last = bins.spans
        return first, last, np.arange(bins.number)
    starts = np.flatnonzero(np.append(True, bins.lookup[1:] != bins.lookup[:-1]))
    last = np.append(starts[1:], bins.width) - 1
    return starts.astype(np.uint64), last.astype(np.uint64), bins.lookup[starts].astype(np.int64)


@final
@dataclass(frozen=True, eq=False)
class SparseRows:
    """A matrix of integers by rows (CSR): row i has `weights[k]` in the columns `indices[k]`.

    k goes from indptr[i] to indptr[i+1] - 1.

    >>> rows = SparseRows(np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([1, 1, 2]), columns=3)
    >>> rows.times(np.array([5.0, 7.0, 9.0])).tolist(), rows.dense().tolist()
    ([12.0, 14.0], [[1.0, 1.0, 0.0], [0.0, 2.0, 0.0]])
    """

    indptr: Ints
    indices: Ints
    weights: Ints
    columns: int

    def __post_init__(self) -> None:
        rule = "must be a sparse matrix of integers, row by row"
        check_release(0 < self.columns <= _MOST_CELLS, "matrix", rule, fix=_FIX)
        entries_, ends = self.indices.size, self.indptr
        alike = ends.size >= 1 and int(ends[0]) == 0 and int(ends[-1]) == entries_ == self.weights.size
        check_release(alike and not bool((ends[1:] < ends[:-1]).any()), "matrix", rule, fix=_FIX)
        inside = not entries_ or (int(self.indices.min()) >= 0 and int(self.indices.max()) < self.columns)
        rule = f"must have entries in its columns only, at most {MOST_ENTRIES:,}"
        check_release(inside and entries_ <= MOST_ENTRIES, "matrix", rule, fix=_FIX)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.indptr.size) - 1

    def times(self, values: Floats) -> Floats:
        """The matrix times a vector."""
        products = self.weights.astype(np.float64) * values[self.indices]
        return np.asarray(np.bincount(self._row, products, minlength=self.rows), np.float64)

    def dense(self) -> Floats:
        """The same matrix with all of its zeros."""
        found = np.zeros((self.rows, self.columns))
        np.add.at(found, (self._row, self.indices), self.weights)
        return found

    @cached_property
    def _row(self) -> Ints:
        return np.repeat(np.arange(self.rows), np.diff(self.indptr))


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class NoisyMeasurement:
    """Released integers, each a weighted sum of true counts plus independent noise of one law.

    The true counts are those of the bins of `columns`: of all combinations of them, the last column fastest.
    `matrix` says which sums; None means the counts themselves. The law is discrete Laplace of a `scale`, or
    discrete Gaussian of a `variance`. Integers, weights and law are in units of 1/`unit` of a row, `values`
    and `stddev` in rows.
    """

    columns: tuple[str, ...]
    bins: tuple[AxisBins, ...]
    noisy: Ints
    scale: Fraction | None = None
    variance: Fraction | None = None
    matrix: SparseRows | None = None
    unit: int = 1

    def __post_init__(self) -> None:
        rule = "must have bins for each of its columns, all different"
        alike = 0 < len(self.columns) == len(self.bins) == len(set(self.columns))
        check_release(alike and self.cells <= _MOST_CELLS, "measurement", rule, fix=_FIX)
        rule = "must have a scale of Laplace noise or a variance of Gaussian noise"
        check_release((self.scale is None) != (self.variance is None), "law", rule, fix=_FIX)
        check_release(1 <= self.unit <= _LARGEST_UNIT, "unit", "must be from 1 to 2^32", fix=_FIX)
        if self.scale is not None:
            noise_scale(self.scale, "scale")
        if self.variance is not None:
            noise_variance_parameter(self.variance, "variance")
        rows = self.cells if self.matrix is None else self.matrix.rows
        rule, fix = "must be integers of 64 bits", "read the release file itself: it holds up to 127 bits"
        check_release(self.noisy.dtype == np.int64, "noisy", rule, fix=fix)
        rule = "must be one for each row of its matrix"
        check_release(self.noisy.size == rows, "noisy", rule, fix=_FIX)
        rule = "must have a column for each combination of bins"
        fits = self.matrix is None or self.matrix.columns == self.cells
        check_release(fits, "matrix", rule, fix=_FIX)

    def __repr__(self) -> str:
        shown = "counts" if self.matrix is None else "sums"
        size = f"variance {self.variance}" if self.scale is None else f"scale {self.scale}"
        noise = f"{self.law} noise of {size}"
        return f"NoisyMeasurement({self.noisy.size} {shown} of {' x '.join(self.columns)}; {noise})"

    @property
    def law(self) -> str:
        """The name of the law of the noise."""
        return GAUSSIAN if self.scale is None else LAPLACE

    @property
    def noise(self) -> NoiseLaw:
        """The law of the noise."""
        return Gaussian(cast(Fraction, self.variance)) if self.scale is None else self.scale

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of bins of each column."""
        return tuple(each.number for each in self.bins)

    @property
    def cells(self) -> int:
        """The number of combinations of bins."""
        return math.prod(self.shape)

    @property
    def values(self) -> Floats:
        """The released numbers in rows."""
        return self.noisy.astype(np.float64) / self.unit

    @property
    def stddev(self) -> float:
        """The standard deviation of the noise of each, in rows."""
        return math.sqrt(noise_variance(self.noise)) / self.unit

    def times(self, counts: Floats) -> Floats:
        """What would have been released of these counts of all combinations of bins, without noise."""
        return counts if self.matrix is None else self.matrix.times(counts) / self.unit


@final
@dataclass(frozen=True, eq=False)
class _Query:
    """A linear function of the counts of common bins: first bins are joined, column by column, then summed.

    It takes a factor of `mbi`, or the flat array of its counts. All of it is made of products with dense
    matrices, which every array library has.
    """

    shape: tuple[int, ...]
    joins: tuple[Floats | None, ...]
    rows: Floats | None

    def __call__(self, factor: Any) -> Any:
        found = factor.datavector() if hasattr(factor, "datavector") else factor
        shape = list(self.shape)
        for column, join in enumerate(self.joins):
            if join is not None:
                before, behind = math.prod(shape[:column]), math.prod(shape[column + 1 :])
                found = found.reshape(before, shape[column], behind).transpose(1, 0, 2)
                found = join @ found.reshape(shape[column], before * behind)
                shape[column] = join.shape[0]
                found = found.reshape(shape[column], before, behind).transpose(1, 0, 2).reshape(-1)
        return found if self.rows is None else self.rows @ found


@final
@dataclass(frozen=True, eq=False, repr=False)
class NoisyMeasurements(Sequence[NoisyMeasurement]):
    """All noisy counts of a release as linear measurements, and what the release promises.

    `linear()` gives records for `mbi` over one set of bins for each column, whose numbers are in `sizes`.
    `save(path)` writes an NPZ file and `to_arrow()` makes a table; `read(path)` and `from_arrow` read them.
    """

    columns: tuple[MeasuredColumn, ...]
    measured: tuple[NoisyMeasurement, ...]
    guarantee: Guarantee | None

    def __post_init__(self) -> None:
        known = {column.name: column for column in self.columns}
        rule, fix = "must be different", "name each column once"
        check_release(len(known) == len(self.columns), "columns", rule, fix=fix)
        rule = "must be of the columns listed, with a bin for each of their positions"
        for each in self.measured:
            fits = all(
                name in known and bins.width == known[name].width
                for name, bins in zip(each.columns, each.bins, strict=True)
            )
            check_release(fits, "measurement", rule, fix=_FIX)

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        return f"NoisyMeasurements({len(self.measured)} of {names})"

    def __len__(self) -> int:
        return len(self.measured)

    def __getitem__(self, index: Any) -> Any:
        return self.measured[index]

    def column(self, name: str) -> MeasuredColumn:
        """One column by its name."""
        found = next((each for each in self.columns if each.name == name), None)
        if found is None:
            rule = f"must be one of {', '.join(each.name for each in self.columns)}"
            raise InvalidParameter("name", rule, given=name, fix="choose one of them")
        return found

    # --- one set of bins for each column

    @cached_property
    def bins(self) -> Mapping[str, AxisBins]:
        """The coarsest bins of each column of which the bins of all measurements are made."""
        ends: dict[str, list[UInts]] = {column.name: [] for column in self.columns}
        for each in self.measured:
            for name, bins in zip(each.columns, each.bins, strict=True):
                ends[name].append(find_runs(bins)[1])
        return {name: AxisBins.from_edges(np.unique(np.concatenate(some))) for name, some in ends.items()}

    @property
    def sizes(self) -> dict[str, int]:
        """The number of common bins of each column: `mbi.Domain(list(sizes), list(sizes.values()))`."""
        return {name: bins.number for name, bins in self.bins.items()}

    def linear(self) -> list[dict[str, Any]]:
        """Every measurement over the common bins of its columns, in rows: `mbi.LinearMeasurement(**record)`.

        `noisy_measurement`, `clique`, `stddev`, and `query` unless it is the counts themselves.
        """
        return [
            {
                "noisy_measurement": each.values,
                "clique": each.columns,
                "stddev": each.stddev,
                **self._query(each),
            }
            for each in self.measured
        ]

    def _query(self, each: NoisyMeasurement) -> dict[str, _Query]:
        """What is measured of the counts of common bins; nothing to say where it is just these."""
        common = [self.bins[name] for name in each.columns]
        shape = tuple(bins.number for bins in common)
        apart = [pair for pair in zip(each.bins, common, strict=True) if not _are_same(*pair)]
        dense = [own.number * bins.number for own, bins in apart]
        sums = 0 if each.matrix is None else each.matrix.rows * each.cells
        rule = f"must have at most {MOST_DENSE:,} combinations of bins, and sums of as many"
        fix = "use `matrix` and `bins` of each measurement, or release fewer columns together"
        largest = max(math.prod(shape), sums, *dense)
        check(largest <= MOST_DENSE, " x ".join(each.columns), rule, given=f"{largest:,}", fix=fix)
        if each.matrix is None and not apart:
            return {}
        joins = tuple(_join(own, bins) for own, bins in zip(each.bins, common, strict=True))
        rows = None if each.matrix is None else each.matrix.dense() / each.unit
        return {"query": _Query(shape, joins, rows)}

    # --- files

    def save(self, path: FilePath, *, overwrite: bool = False) -> None:
        """Write an NPZ file: plain arrays, and the array of bytes `spec`, which is JSON about them."""
        with Temporary(check_path(path), overwrite=overwrite) as place:
            place.write(self.to_npz())
            place.commit()

    def to_npz(self) -> bytes:
        """The bytes of the file that `save` writes."""
        arrays = {"spec": np.frombuffer(to_canonical(self._spec()), np.uint8)}
        for number, each in enumerate(self.measured):
            arrays |= {f"{number}.{name}": array for name, array in _arrays(each).items()}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
        return buffer.getvalue()

    @staticmethod
    def read(path: FilePath, *, largest: int = LARGEST) -> NoisyMeasurements:
        """The measurements in an NPZ file that anybody may have made; else `InvalidRelease` says why not."""
        found = read_npz(read_file(path, largest=largest), largest=largest)
        spec = found.pop("spec", None)
        rule, fix = "is not an NPZ file of measurements", "check the path"
        check_release(spec is not None and spec.dtype == np.uint8, "file", rule, fix=fix)
        assert spec is not None
        return _read(from_canonical(spec.tobytes()), _grouped(found))

    def to_arrow(self) -> pa.Table:
        """One row for each measurement; write it as Parquet or Feather with `pyarrow`."""
        import pyarrow as pa

        described = [_describe(each) for each in self.measured]
        arrays = [_arrays(each) for each in self.measured]
        rows: dict[str, list[Any]] = {
            "columns": [list(each.columns) for each in self.measured],
            "law": [each["law"] for each in described],
            **{name: [each.get(name) for each in described] for name in _PARAMETERS},
            "unit": [each["unit"] for each in described],
            "stddev": [each.stddev for each in self.measured],
            "noisy": [each["noisy"] for each in arrays],
            **{name: [each.get(name) for each in arrays] for name in _MATRIX},
            "edges": [_listed(each, "edges", len(m.columns)) for each, m in zip(arrays, self, strict=True)],
            "lookup": [_listed(each, "lookup", len(m.columns)) for each, m in zip(arrays, self, strict=True)],
        }
        return pa.table(rows, schema=_schema().with_metadata({_KEY: to_canonical(self._spec())}))

    @staticmethod
    def from_arrow(table: pa.Table) -> NoisyMeasurements:
        """The measurements in a table that `to_arrow` made and a file may have held since."""
        import pyarrow as pa

        rule, fix = (
            "must be a table that `to_arrow` made",
            "pass for example pyarrow.parquet.read_table(path)",
        )
        known = isinstance(table, pa.Table) and _KEY in (table.schema.metadata or {})
        check_release(known and table.schema.equals(_schema()), "table", rule, fix=fix)
        check_release(len(table) <= _MOST_MEASUREMENTS, "table", rule, fix=fix)
        try:
            table.validate(full=True)
            found = [_row(table, number) for number in range(len(table))]
        except pa.ArrowException:
            raise InvalidRelease("table", rule, fix=fix) from None
        spec = from_canonical(table.schema.metadata[_KEY])
        said = [entries(each) for each in check_list(spec.get("measurements", []))]
        for number, each in enumerate(said):
            beside = {name: table[name][number].as_py() for name in ("columns", "law", *_PARAMETERS, "unit")}
            same = number < len(found) and all(each.get(name) == told for name, told in beside.items())
            check_release(same, "table", "must say twice the same of each measurement", fix=_FIX)
        return _read(spec, found)

    def _spec(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "guarantee": guarantee_entries(self.guarantee),
            "columns": [
                {**describe_columns([each.name], [each.domain]), "specials": each.specials}
                for each in self.columns
            ],
            "measurements": [_describe(each) for each in self.measured],
        }


def _join(own: AxisBins, common: AxisBins) -> Floats | None:
    """The matrix that joins common bins to those of one measurement; None if they are the same."""
    if _are_same(own, common):
        return None
    found = np.zeros((own.number, common.number))
    found[own.of(find_runs(common)[1]), np.arange(common.number)] = 1.0
    return found


def _are_same(own: AxisBins, common: AxisBins) -> bool:
    """Whether common bins, of which those of one measurement are made, are these, in one order."""
    alike = own.number == common.number
    return alike and np.array_equal(own.of(find_runs(common)[1]), np.arange(own.number))


# --- measurements as entries and arrays --------------------------------------------------------

_MATRIX: Final = ("indptr", "indices", "weights")
_PARAMETERS: Final = ("scale", "variance")
"""What tells how large noise is, one of them for each law."""


def _describe(each: NoisyMeasurement) -> dict[str, Any]:
    name = "variance" if each.scale is None else "scale"
    size = str(getattr(each, name))
    return {"columns": list(each.columns), "law": each.law, name: size, "unit": each.unit}


def _arrays(each: NoisyMeasurement) -> dict[str, NDArray[Any]]:
    """The arrays of a measurement by their names: noisy, those of the matrix, and bins of each column."""
    found: dict[str, NDArray[Any]] = {"noisy": each.noisy}
    if each.matrix is not None:
        found |= {name: getattr(each.matrix, name) for name in _MATRIX}
    for column, bins in enumerate(each.bins):
        if bins.lookup is None:
            assert bins.edges is not None
            found[f"edges{column}"] = bins.edges
        else:
            found[f"lookup{column}"] = bins.lookup.astype(np.int64)
    return found


def _listed(arrays: Mapping[str, NDArray[Any]], name: str, columns: int) -> list[Any]:
    return [arrays.get(f"{name}{column}") for column in range(columns)]


def _grouped(found: Mapping[str, NDArray[Any]]) -> list[dict[str, NDArray[Any]]]:
    """The arrays of each measurement, by names like `0.noisy`."""
    groups: dict[str, dict[str, NDArray[Any]]] = {}
    for key, array in found.items():
        number, _, name = key.partition(".")
        groups.setdefault(number, {})[name] = array
    listed = [groups.pop(str(number), {}) for number in range(len(groups))]
    check_release(not groups, "file", "must number its measurements from 0 on", fix=_FIX)
    return listed


def _read(spec: Entry, arrays: Sequence[Mapping[str, NDArray[Any]]]) -> NoisyMeasurements:
    """Measurements from entries and arrays that anybody may have made."""
    rule, fix = "is not of a version that is known here", "it needs a newer Partita"
    known = spec.get("format") == _FORMAT and spec.get("version") == _VERSION
    check_release(known, "file", rule, fix=fix)
    given = entries(spec, ("format", "version", "guarantee", "columns", "measurements"))
    said = check_list(given["measurements"])
    rule = f"must hold the arrays of 1 to {_MOST_MEASUREMENTS} measurements"
    check_release(0 < len(said) == len(arrays) <= _MOST_MEASUREMENTS, "file", rule, fix=_FIX)
    try:
        return NoisyMeasurements(
            tuple(_read_column(entries(each)) for each in check_list(given["columns"])),
            tuple(_read_one(entries(each), rows) for each, rows in zip(said, arrays, strict=True)),
            guarantee_from(given["guarantee"]),
        )
    except InvalidRelease:
        raise
    except PartitaError as error:
        raise InvalidRelease("file", f"breaks a rule: {error}", fix=_FIX) from None


def _read_column(entry: Entry) -> MeasuredColumn:
    given = entries(entry, ("column", "domain", "specials"))
    check_release(isinstance(given["specials"], bool), "specials", "must be true or false", fix=_FIX)
    return MeasuredColumn(
        text(given["column"]), domain_from_spec(entries(given["domain"])), bool(given["specials"])
    )


def _read_one(entry: Entry, arrays: Mapping[str, NDArray[Any]]) -> NoisyMeasurement:
    size = "variance" if entries(entry).get("law") == GAUSSIAN else "scale"
    given = entries(entry, ("columns", "law", size, "unit"))
    known = text(given["law"]) in (LAPLACE, GAUSSIAN)
    check_release(known, "law", "is not known here", fix="it needs a newer Partita")
    columns = tuple(text(each) for each in check_list(given["columns"]))
    sparse = _MATRIX[0] in arrays
    rest = dict(arrays)
    noisy = _row_of(rest, "noisy", np.int64)
    matrix = {name: _row_of(rest, name, np.int64) for name in _MATRIX} if sparse else {}
    bins = tuple(_read_bins(rest, column) for column in range(len(columns)))
    check_release(not rest, "file", "must hold no other arrays", fix=_FIX)
    cells = math.prod(each.number for each in bins)
    return NoisyMeasurement(
        columns=columns,
        bins=bins,
        noisy=noisy_integers(noisy, "noisy"),
        matrix=SparseRows(**matrix, columns=cells) if sparse else None,
        unit=natural(given["unit"]),
        **{size: rational(given[size])},
    )


def _read_bins(arrays: dict[str, NDArray[Any]], column: int) -> AxisBins:
    if f"edges{column}" in arrays:
        edges = _row_of(arrays, f"edges{column}", np.uint64)
        check_release(edges.size, "edges", "must not be empty", fix=_FIX)
        return AxisBins.from_edges(edges)
    lookup = _row_of(arrays, f"lookup{column}", np.int64)
    inside = lookup.size and 0 <= int(lookup.min()) <= int(lookup.max()) < lookup.size
    check_release(inside, "lookup", "must have a bin for each position", fix=_FIX)
    return AxisBins.from_lookup(lookup)


def _row_of(arrays: dict[str, NDArray[Any]], name: str, dtype: type) -> NDArray[Any]:
    found = arrays.pop(name, None)
    fits = found is not None and found.ndim == 1 and found.dtype == dtype
    check_release(fits, name, "must be a row of 64-bit integers", fix=_FIX)
    assert found is not None
    return found


# --- NPZ files ---------------------------------------------------------------------------------

_LONGEST_HEADER: Final = 2**12
_NPY: Final = ".npy"
_UNREADABLE: Final = (
    zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, RuntimeError, OSError, SyntaxError,
)  # fmt: skip


def read_npz(data: bytes, *, largest: int) -> dict[str, NDArray[Any]]:
    """The arrays of integers in the bytes of an NPZ file; no object, no text, no more than it announces."""
    rule = "is not an NPZ file of integers"
    refusal = InvalidRelease("file", rule, fix="check the path")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            listed = packed.infolist()
            names = [each.filename for each in listed]
            known = len(set(names)) == len(names) and all(name.endswith(_NPY) for name in names)
            if not known or sum(each.file_size for each in listed) > largest:
                raise refusal
            found = {}
            for each in listed:
                with packed.open(each) as member:
                    found[each.filename.removesuffix(_NPY)] = _read_npy(member.read(each.file_size + 1), each)
            return found
    except (*_UNREADABLE, zlib.error):
        raise refusal from None


def _read_npy(data: bytes, about: zipfile.ZipInfo) -> NDArray[Any]:
    """One array whose header is checked against its size before anything is made of it."""
    stream = io.BytesIO(data)
    major, _ = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(stream, max_header_size=_LONGEST_HEADER)
    body = data[stream.tell() :]
    plain = len(data) == about.file_size and len(shape) == 1 and not fortran and dtype.kind in "iu"
    if not plain or shape[0] * dtype.itemsize != len(body):
        raise ValueError
    return np.frombuffer(body, dtype).astype(dtype.newbyteorder("="), copy=False)


# --- Arrow tables ------------------------------------------------------------------------------


def _schema() -> pa.Schema:
    import pyarrow as pa

    integers = pa.list_(pa.int64())
    return pa.schema(
        [
            ("columns", pa.list_(pa.string())),
            ("law", pa.string()),
            *((name, pa.string()) for name in _PARAMETERS),
            ("unit", pa.int64()),
            ("stddev", pa.float64()),
            ("noisy", integers),
            *((name, integers) for name in _MATRIX),
            ("edges", pa.list_(pa.list_(pa.uint64()))),
            ("lookup", pa.list_(integers)),
        ]
    )


def _row(table: pa.Table, number: int) -> dict[str, NDArray[Any]]:
    """The arrays of one measurement of a table."""
    found: dict[str, NDArray[Any]] = {}
    for name in ("noisy", *_MATRIX):
        _keep(found, name, table[name][number])
    for name in ("edges", "lookup"):
        listed = table[name][number]
        for column, each in enumerate(listed if listed.is_valid else ()):
            _keep(found, f"{name}{column}", each)
    return found


def _keep(found: dict[str, NDArray[Any]], name: str, scalar: Any) -> None:
    if not scalar.is_valid:
        return
    values = scalar.values
    check_release(values.null_count == 0, name, "must be a row of 64-bit integers", fix=_FIX)
    found[name] = values.to_numpy(zero_copy_only=False)
