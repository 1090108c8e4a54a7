"""How many people hold each value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import log2, prod
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeAlias, final, get_args

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Bools, Ints, UInts, as_array
from partita.domain.base import Domain, Special, is_domain
from partita.errors import InvalidData, InvalidParameter, check, check_data
from partita.local.encodings import HadamardResponse, LocalHashing, ProjectiveResponse
from partita.local.question import CellQuestion, CellTree, Question, ReportView, column_size, randomizer_kind
from partita.local.randomizer import (
    LARGEST_SIZE,
    Draws,
    FrequencyRandomizer,
    Json,
    KernelDraws,
    LocalLaw,
    Numbers,
    Pmf,
    RandomizedResponse,
    Randomizer,
    UnaryEncoding,
    checked_epsilon,
    clamped,
)
from partita.numbers import freeze, integer, one_of, ordered
from partita.trusted.noise.laws import Words, WordSource, chances, flags, integers_below

if TYPE_CHECKING:
    from partita.local.aggregate import FrequencyAggregator

# Randomizers on whole columns: the draws of many people at once, as NumPy arrays.


Bytes = NDArray[np.uint8]

_BLOCK: Final = 1 << 14
_BLOCK_BYTES: Final = 1 << 22
"""So many people at a time: what they draw stays near the processor."""


@final
class ColumnDraws:
    """Draws for `count` people, independent of each other, from one source of words."""

    def __init__(self, count: int, source: WordSource) -> None:
        self._count = count
        self._source = source

    def chance(self, threshold: int | UInts) -> Bools:
        """True with probability exactly threshold / 2^64."""
        return chances(self._source, threshold, self._count)

    def below(self, count: int) -> Ints:
        """Uniform among 0, ..., count-1, exactly."""
        return integers_below(self._source, count, self._count)

    def row(self, threshold: int, width: int) -> Bytes:
        """Packed rows of `width` bits, each of them one with probability exactly threshold / 2^64."""
        drawn = flags(self._source, threshold, self._count * width)
        return np.packbits(drawn.reshape(self._count, width), axis=1, bitorder="little")

    def choose(self, condition: Bools, yes: Ints, no: Ints) -> Ints:
        """`yes` where the condition holds, else `no`."""
        return np.where(condition, yes, no)

    def with_bit(self, row: Bytes, place: Ints, bit: Ints) -> Bytes:
        """The rows with this bit at this place of each."""
        people, byte, shift = np.arange(len(row)), place >> 3, (place & 7).astype(np.uint8)
        kept = row[people, byte] & ~(np.uint8(1) << shift)
        row[people, byte] = kept | (bit.astype(np.uint8) << shift)
        return row

    def ramp(self, start: int, step: int, x: Ints) -> UInts:
        """The threshold start + step x of each person."""
        return np.uint64(start) + np.uint64(step) * x.astype(np.uint64)

    def each(self, part: Ints, samplers: Sequence[Callable[[Ints, ColumnDraws], Ints]], x: Ints) -> Ints:
        """For each person what the sampler of their part makes of x, with draws of their own."""
        made = np.empty(self._count, dtype=np.int64)
        for number, sampler in enumerate(samplers):
            people = np.flatnonzero(part == number)
            if people.size:
                made[people] = sampler(x[people], ColumnDraws(people.size, self._source))
        return made


def randomized(randomizer: LocalLaw, cells: object, words: WordSource | None) -> Any:
    """A report for every cell, block by block: a column of ints, or of rows of bytes."""
    source, xs = Words() if words is None else words, clipped(cells, randomizer.size)
    length = max(1, min(_BLOCK, _BLOCK_BYTES // randomizer.report_bytes))
    starts = range(0, len(xs), length) or range(1)
    blocks = [xs[start : start + length] for start in starts]
    return np.concatenate([randomizer.sample(block, ColumnDraws(len(block), source)) for block in blocks])


def clipped(cells: object, size: int) -> Ints:
    """The nearest cell of each; what is no whole number goes to the first cell. No row raises."""
    given = as_array(cells, "values", None if hasattr(cells, "dtype") else object)
    if given.dtype.kind in "iub":
        return given.ravel().clip(0, size - 1).astype(np.int64)
    return np.array([clamped(cell, size) for cell in given.ravel().tolist()], dtype=np.int64)


# How many points lie on each hyperplane: one Fourier transform, rounded to exact integers.
#
# With c(y) reports of point y, put c(y) on all q - 1 nonzero multiples of y in F_q^d. The transform at x is
# F(x) = sum over y of c(y) (q [<x, y> = 0] - 1) = q hits(x) - n, so hits(x) = (F(x) + n) / q.


_UNIT: Final = 2.0**-53
_ROUNDINGS: Final = 256
"""Roundings of one stage of a transform, relative to the norm of its input: more than any stage makes."""


def hyperplane_hits(randomizer: ProjectiveResponse, counts: Ints) -> Ints:
    """For every cell the number of reports on its hyperplane, exactly.

    Counts are transformed a few bits at a time, so few that no sum can be in doubt: all at once unless
    there are very many reports.
    """
    bits = _safe_bits(randomizer)
    hits = np.zeros(randomizer.size, dtype=np.int64)
    for shift in range(0, max(1, int(counts.max(initial=0)).bit_length()), bits):
        hits += _rounded_hits(randomizer, (counts >> shift) & ((1 << bits) - 1)) << shift
    return hits


def _rounded_hits(randomizer: ProjectiveResponse, counts: Ints) -> Ints:
    q, d = randomizer.field, randomizer.dimension
    points = randomizer.point(np.arange(1, q**d, dtype=np.int64))
    spread = np.concatenate([[0.0], counts[points]]).reshape((q,) * d)
    transform = np.fft.fftn(spread).real.ravel()
    cells = randomizer.vector(np.arange(randomizer.size, dtype=np.int64))
    return np.rint((transform[cells] + float(counts.sum())) / q).astype(np.int64)


def _safe_bits(randomizer: ProjectiveResponse) -> int:
    """The largest width w such that counts below 2^w are transformed with an error below q / 4.

    The error is at most 256 u log2(N) |F| in the Euclidean norm, u = 2^-53, and |F| = sqrt(N) |f| with
    |f| <= sqrt(N) 2^w, N = q^d (docs/proofs/local_randomizers.md).
    """
    vectors = randomizer.field**randomizer.dimension
    error_of_one = _ROUNDINGS * _UNIT * log2(vectors) * vectors
    return max(1, int(log2(randomizer.field / 4 / error_of_one)))


# From reports to counts, and from counts to the number of reports that support each cell; integers only.


_BLOCK_BITS: Final = 1 << 22
_ONES: Final = np.array([byte.bit_count() for byte in range(256)], dtype=np.uint8)


@dataclass(frozen=True)
class _Decoder:
    """How the reports of one kind are counted; `exclusive` if each of them counts once."""

    width: Callable[[Any], int]
    tally: Callable[[Any, Any], Ints]
    supports: Callable[[Any, Ints], Ints]
    exclusive: bool = True


def width(randomizer: FrequencyRandomizer) -> int:
    """How many counts an aggregator keeps."""
    return _DECODERS[type(randomizer)].width(randomizer)


def exclusive(randomizer: FrequencyRandomizer) -> bool:
    """Whether the counts add up to the number of reports."""
    return _DECODERS[type(randomizer)].exclusive


def tallied(randomizer: FrequencyRandomizer, reports: Any) -> tuple[Ints, int]:
    """The counts of a column of reports, and how many reports there are; malformed ones are refused."""
    column = checked_column(randomizer, reports)
    return _DECODERS[type(randomizer)].tally(randomizer, column), len(column)


def supports(randomizer: FrequencyRandomizer, counts: Ints) -> Ints:
    """How many reports support each cell, exactly."""
    return _DECODERS[type(randomizer)].supports(randomizer, counts)


def checked_column(randomizer: Any, reports: Any) -> Any:
    """Reports as a column of integers in range, or as rows of bytes for unary encoding."""
    if isinstance(randomizer, UnaryEncoding):
        return _checked_rows(randomizer, reports)
    given = as_array(reports, "reports")
    rule, fix = "must be one column of integers", "pass what randomize_many returned"
    check_data(given.ndim == 1 and (given.dtype.kind in "iu" or not given.size), "reports", rule, fix=fix)
    if given.size and not 0 <= int(given.min()) <= int(given.max()) < randomizer.reports:
        raise InvalidData("reports", f"must lie below {randomizer.reports}", fix="drop what is no report")
    return given.astype(np.int64, copy=False)


def _checked_rows(randomizer: UnaryEncoding, reports: Any) -> Any:
    rows = as_array(reports, "reports")
    check_data(
        rows.ndim == 2 and rows.dtype == np.uint8 and rows.shape[1] == randomizer.report_bytes,
        "reports",
        f"must be rows of {randomizer.report_bytes} bytes",
        fix="pass what randomize_many returned",
    )
    spare = 8 * randomizer.report_bytes - randomizer.size
    rule, fix = f"must have {randomizer.size} bits", "drop what is no report"
    check_data(not spare or not (rows[:, -1] >> np.uint8(8 - spare)).any(), "reports", rule, fix=fix)
    least, most = randomizer.likely_ones
    ones = _ONES[rows].sum(axis=1, dtype=np.int64)
    rule, fix = f"must have {least} to {most} ones", "drop those that have not"
    check_data(not ((ones < least) | (ones > most)).any(), "reports", rule, fix=fix)
    return rows


def _bins(randomizer: FrequencyRandomizer, reports: Ints) -> Ints:
    return np.bincount(reports, minlength=randomizer.reports)


def _signs_to_supports(randomizer: HadamardResponse, counts: Ints) -> Ints:
    """Supporters of x are (n + the Hadamard transform of zeros less ones at x + 1) / 2."""
    transformed = walsh_hadamard(counts[0::2] - counts[1::2])
    supported: Ints = (int(counts.sum()) + transformed[1 : randomizer.size + 1]) // 2
    return supported


def walsh_hadamard(values: Any) -> Any:
    """The sums of values[j] (-1)^parity(i & j), for every i; in integers, if they are."""
    length, half = len(values), 1
    while half < length:
        pairs = values.reshape(-1, 2, half)
        values = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        half *= 2
    return values.reshape(-1)


def _bit_sums(randomizer: UnaryEncoding, rows: Any) -> Ints:
    length = max(1, _BLOCK_BITS // randomizer.size)
    total = np.zeros(randomizer.size, dtype=np.int64)
    for start in range(0, len(rows), length):
        bits = np.unpackbits(rows[start : start + length], axis=1, count=randomizer.size, bitorder="little")
        total += bits.sum(axis=0, dtype=np.int32)
    return total


def _hash_supports(randomizer: LocalHashing, reports: Ints) -> Ints:
    """For every cell, the reports whose hash function sends it to the bucket told."""
    cells = np.arange(randomizer.size, dtype=np.int64)
    length = max(1, _BLOCK_BITS // randomizer.size)
    total = np.zeros(randomizer.size, dtype=np.int64)
    for start in range(0, len(reports), length):
        block = reports[start : start + length, np.newaxis]
        total += (randomizer.hashed(block, cells) == block % randomizer.buckets).sum(axis=0)
    return total


def _own(_: FrequencyRandomizer, counts: Ints) -> Ints:
    return counts


_DECODERS: Final[Mapping[type[FrequencyRandomizer], _Decoder]] = {
    RandomizedResponse: _Decoder(lambda response: response.size, _bins, _own),
    ProjectiveResponse: _Decoder(lambda response: response.reports, _bins, hyperplane_hits),
    HadamardResponse: _Decoder(lambda response: response.reports, _bins, _signs_to_supports),
    UnaryEncoding: _Decoder(lambda encoding: encoding.size, _bit_sums, _own, exclusive=False),
    LocalHashing: _Decoder(lambda hashing: hashing.size, _hash_supports, _own, exclusive=False),
}

# The cells of a `Domain` on one line: the ordinary ones, then the special ones.


def domain_size(domain: object) -> int:
    """The number of all cells, special ones included."""
    if not isinstance(domain, Domain) or not is_domain(domain):
        fix = "pass for example 1024"
        raise InvalidParameter("domain", "must be a number of cells or a Domain", given=domain, fix=fix)
    return domain.size + len(domain.specials)


def domain_cells(domain: Domain, values: object) -> Ints:
    """The cell of every value of a column."""
    encoded = domain.encode(values)
    places = np.zeros(len(Special), dtype=np.int64)
    for place, name in enumerate(domain.specials):
        places[Special.named(name).value] = domain.size + place
    return np.where(
        encoded.special == Special.ORDINARY.value, encoded.cells.astype(np.int64), places[encoded.special]
    )


def domain_label(domain: Domain, cell: int) -> str:
    """The value of an ordinary cell, or the name of a special one."""
    return str(domain.decode([cell])[0]) if cell < domain.size else domain.specials[cell - domain.size]


def domain_ends(domain: int | Domain, low: object, high: object) -> tuple[int, int]:
    """The first and the last cell from low to high; the first is behind the last if there is none between."""
    if isinstance(domain, int):
        return ordered(low, high, first=0, last=domain - 1)
    first, last = domain.locate(low, name="low"), domain.locate(high, name="high")
    start = domain.size if first.special is Special.ABOVE else first.cell
    end = {Special.BELOW: -1, Special.ABOVE: domain.size - 1}.get(last.special, last.cell)
    if start > end and Special.ORDINARY is first.special is last.special:
        raise InvalidParameter("low", "must not be above high", given=None, fix="swap them")
    return start, end


FrequencyKind: TypeAlias = Literal["auto", "response", "projective", "hadamard", "unary", "hashing"]

_OFFERED: Final = ("response", "projective")
_MOST_VARIANCE: Final = Fraction(3, 2)
"""What the more robust kind may cost: sqrt(3/2) = 1.22 times the standard error."""


@final
@dataclass(frozen=True, init=False)
class Frequency(CellQuestion):
    """Which of a public list of values does a person hold?

    The domain is a number of cells, or a `Domain`, whose special cells come after the ordinary ones. With
    a number of cells, whole numbers go to the nearest cell and all else to the first; a `Domain` has a
    special cell for what does not belong. `kind` names a randomizer. "auto" takes randomized response or
    projective geometry response, whichever has the lower variance on average over all cells; but the other
    one if forged reports can do half as much with it at most, and its variance is at most 1.5 times as large.

    >>> Frequency(9, epsilon=1).randomizer.kind, Frequency(8, epsilon=1).randomizer.kind
    ('projective', 'response')
    """

    asks: ClassVar[str] = "frequency"
    randomizer: FrequencyRandomizer

    def __init__(self, domain: int | Domain, *, epsilon: object, kind: FrequencyKind = "auto") -> None:
        one_of(kind, "kind", get_args(FrequencyKind))
        size, exact = column_size(domain), checked_epsilon(epsilon)
        kinds = _OFFERED if kind == "auto" else (kind,)
        made = [randomizer_kind(name)(size=size, epsilon=exact) for name in kinds]
        freeze(self, domain=domain, randomizer=_preferred(made))

    @classmethod
    def of(cls, domain: int | Domain, randomizer: Randomizer) -> Self:
        """The question about a domain with a given randomizer of its cells."""
        if not isinstance(randomizer, FrequencyRandomizer) or randomizer.size != column_size(domain):
            rule = "must be one of the cells of the domain"
            raise InvalidParameter("randomizer", rule, given=randomizer, fix="leave it out")
        made = object.__new__(cls)
        freeze(made, domain=domain, randomizer=randomizer)
        return made

    def aggregator(self) -> FrequencyAggregator:
        """A new aggregator of reports."""
        from partita.local.aggregate import FrequencyAggregator

        return FrequencyAggregator(self)


def _preferred(made: list[Any]) -> Any:
    """The kind of least variance, or a kind that is much more robust at little cost.

    A forged report then moves half as much at most, for at most a quarter more standard error. Up to
    epsilon 4 this changes nothing: the kind of least variance is nearly as robust as the other, or more.
    """
    best = min(made, key=_average_variance)
    robust = [each for each in made if _costs_little(each, best)]
    return min(robust, key=lambda each: each.forged_report_shift, default=best)


def _costs_little(other: Any, best: Any) -> bool:
    half = 2 * other.forged_report_shift <= best.forged_report_shift
    return half and _average_variance(other) <= _MOST_VARIANCE * _average_variance(best)


def _average_variance(randomizer: Any) -> Fraction:
    """n times the variance of a frequency, exactly, on average over all cells: the same for all data."""
    variance: Fraction = randomizer.exact_variance(Fraction(1, randomizer.size))
    return variance


# A report about one of several views, chosen without a look at anybody's value.


ViewKind: TypeAlias = Literal["auto", "response", "projective", "hadamard"]

VIEW_KINDS: Final = ("auto", "response", "projective", "hadamard")
_MOST_VIEWS: Final = 512
_LARGEST_SPACE: Final = 1 << 62


@final
@dataclass(frozen=True, kw_only=True)
class Mixture(LocalLaw):
    """A view, uniform among all of them or assigned, and a report about what it sees of the cell.

    The report says which view it is of: reports of view v begin at `starts[v]`. Views are chosen
    independently of the cell, so all that a report says beyond a public coin is what its randomizer said.

    Guarantee: epsilon-DP of each report, the view included, pure, local.
    Error:     that of the randomizer of a view, with the reports that chose the view.
    Proof:     docs/proofs/local_ranges.md
    """

    kind: ClassVar[str] = "mixture"
    views: tuple[ReportView, ...]
    parts: tuple[FrequencyRandomizer, ...]

    def __post_init__(self) -> None:
        freeze(self, views=checked_views(self.views))
        pairs = zip(self.views, self.parts, strict=False)
        fits = all(_fits(view, part, self.epsilon) for view, part in pairs)
        rule = "must have a randomizer for each view, all of one epsilon"
        check(fits and len(self.parts) == len(self.views), "parts", rule, given=None, fix=_READ)

    @classmethod
    def of(cls, views: Sequence[ReportView], *, epsilon: object, kind: ViewKind = "auto") -> Self:
        """The mixture with a randomizer of this kind for each view."""
        one_of(kind, "kind", VIEW_KINDS)
        exact, own = checked_epsilon(epsilon), checked_views(views)
        size = _checked_size(own)
        parts = tuple(Frequency(view.size, epsilon=exact, kind=kind).randomizer for view in own)
        return cls(size=size, epsilon=exact, views=own, parts=parts)

    @classmethod
    def read(cls, views: Sequence[ReportView], parts: Sequence[Randomizer]) -> Self:
        """The mixture of these randomizers, each of which was verified when it was read."""
        frequencies = tuple(part for part in parts if isinstance(part, FrequencyRandomizer))
        rule = "must be randomizers of cells"
        check(len(frequencies) == len(parts) and parts, "parts", rule, given=None, fix=_READ)
        own = checked_views(views)
        return cls(size=_checked_size(own), epsilon=frequencies[0].epsilon, views=own, parts=frequencies)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first report of each view, and the number of all reports."""
        return tuple(accumulate((part.reports for part in self.parts), initial=0))

    @property
    def reports(self) -> int:
        """Those of all views, one after the other."""
        return self.starts[-1]

    @property
    def forged_report_shift(self) -> Fraction:
        """How many people one forged report adds to a node of its view, or takes from it, at most.

        Views are reported equally often, so a report of one stands for as many people as there are views.
        """
        return len(self.views) * max(part.forged_report_shift for part in self.parts)

    def sample(self, x: Numbers, draws: Draws) -> Numbers:
        """A view from a coin that knows nothing of x, then the report of that view."""
        return self.sample_view(draws.below(len(self.views)), x, draws)

    def sample_view(self, view: Numbers, x: Numbers, draws: Draws) -> Numbers:
        """The report of a given view."""
        return draws.each(view, self._samplers, x)

    def pmf(self, x: int) -> Pmf:
        """The law of each view, all equally likely."""
        self._enumerable()
        chance = Fraction(1, len(self.views))
        return {
            start + report: chance * p
            for start, view, part in zip(self.starts, self.views, self.parts, strict=False)
            for report, p in part.pmf(view.node(x)).items()
        }

    def to_json(self) -> Json:
        """The randomizer of each view, in their order."""
        return {"kind": self.kind, "parts": [part.to_json() for part in self.parts]}

    @cached_property
    def _samplers(self) -> list[Callable[[Any, Any], Any]]:
        return [self._sampler(view) for view in range(len(self.views))]

    def _sampler(self, number: int) -> Callable[[Any, Any], Any]:
        start, view, part = self.starts[number], self.views[number], self.parts[number]
        return lambda x, draws: start + part.sample(view.node(x), draws)


_READ: Final = "pass what to_json returned"


def checked_views(views: Iterable[object]) -> tuple[ReportView, ...]:
    """The views made anew from their numbers.

    A report is charged by what `View` sees of a cell. An object that only looks like a view, or a view that
    was changed after it was made, may see more.
    """
    made = tuple(_made_anew(view) for view in views)
    rule = "must be at least one, all of the same columns"
    check(len({view.lines for view in made}) == 1, "views", rule, given=None, fix="pass the same lines")
    return made


def _made_anew(view: Any) -> ReportView:
    check(
        type(view) is ReportView,
        "views",
        "must be views",
        given=None,
        fix="pass those of line_views(Line(8))",
    )
    return ReportView(view.lines, view.levels)


def _fits(view: ReportView, part: FrequencyRandomizer, epsilon: Fraction) -> bool:
    return part.size == view.size and part.epsilon == epsilon and part.kind in VIEW_KINDS


def _checked_size(views: Sequence[ReportView]) -> int:
    """The number of cells of all columns together, if views of them can be reported and counted."""
    size = prod(line.size for line in views[0].lines)
    if len(views) > _MOST_VIEWS or size > _LARGEST_SPACE or sum(view.size for view in views) > LARGEST_SIZE:
        rule = f"must leave at most {_MOST_VIEWS} views with {LARGEST_SIZE} nodes in all"
        raise InvalidParameter("domain", rule, given=None, fix="make the columns coarser, or fewer")
    return size


# Questions that a report answers for one of several views.


@dataclass(frozen=True, init=False)
class ViewQuestion(Question):
    """Every report is about one view, drawn on the device, or assigned by a public coin.

    Whoever assigns views must not look at values: then estimates stay unbiased, and equal groups make
    them a little better.
    """

    randomizer: Mixture

    @property
    def lines(self) -> tuple[CellTree, ...]:
        """The columns, as trees."""
        return self.randomizer.views[0].lines

    def randomize(self, value: object, *, draws: Draws | None = None, view: int | None = None) -> int:
        """One person's report, with entropy from the kernel; about the view assigned, if one is."""
        if view is None:
            return super().randomize(value, draws=draws)
        number = integer(view, "view", low=0, high=len(self.randomizer.views) - 1)
        drawn: int = self.randomizer.sample_view(number, self.cell(value), draws or KernelDraws())
        return drawn

    def randomize_many(self, values: object, *, words: WordSource | None = None, views: Any = None) -> Any:
        """One report for every value of a column; about the views assigned, if they are."""
        if views is None:
            return super().randomize_many(values, words=words)
        return self._assigned(self.cells(values), views, words)

    def _assigned(self, cells: Any, views: Any, words: WordSource | None) -> Any:
        import numpy as np

        mixture, chosen, source = self.randomizer, np.asarray(views), words or Words()
        if chosen.shape != cells.shape or not np.isin(chosen, np.arange(len(mixture.views))).all():
            rule = "must hold the number of a view for each value"
            raise InvalidParameter("views", rule, given=views, fix="leave them out")
        reports = np.empty_like(cells)
        for number, (view, part) in enumerate(zip(mixture.views, mixture.parts, strict=True)):
            people = np.flatnonzero(chosen == number)
            made = part.randomize_many(view.node(cells[people]), words=source)
            reports[people] = mixture.starts[number] + made
        return reports
