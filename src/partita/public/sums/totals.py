"""The released totals of a column, of all rows or by groups: noisy masses on doubling knots.

Everything here is post-processing. A twentieth of epsilon has counted magnitudes; they choose the knots. The
rest has measured how much mass of each group lies on every knot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.arrays import Bools, Floats, Ints, UInts
from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.errors import check, check_release
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.public.axis.base import Json, Parts, PartsReader
from partita.public.base import damaged
from partita.public.boxes.base import BoxTerm, check_terms
from partita.public.sums.base import SumRelease, ValueLine
from partita.public.sums.knot_walk import (
    UNIT,
    Held,
    KnotSide,
    TotalEstimate,
    add_groups,
    blend_groups,
    format_total,
)
from partita.public.sums.knots import caps, list_knots
from partita.public.sums.parts import KeyCounts, count_cells

LARGEST_MAGNITUDE: Final = 2**63 - 1
"""No declared bound is further from zero, in steps: magnitudes have 63 bits."""

MOST_TOTALS: Final = 2**12
"""The most groups of a release, special cells of the keys included: each has up to 66 numbers in the file."""

_NARROW: Final = 2**32  # in gaps up to here a magnitude times the unit has 62 bits
_FEW_ROWS: Final = 2**32  # fewer rows have sums of masses of at most 62 bits
_OCTAVE: Final = 4  # buckets that are tested together, as in the cap of level trees

# The first two constants are those of a prototype, chosen on lognormal columns, wages, a Pareto tail and few
# huge values; the others on families that benchmarks/README.md names under "Totals by group".
_CLEAR: Final = 2.5  # scales of noise, times ln(1000 buckets), that an octave must exceed: no false cap
_FILLED: Final = 3.0  # scales that the last bucket of the cap must exceed: fewer place it too high
_GUESSED: Final = 2.0  # the same where no octave is clear, and the loudest one is a guess
_NEAR: Final = Fraction(3, 2)  # of a knot: a bound below that takes its place
_STEPS_DOWN: Final = 4  # knots below the caps, each a quarter of the next, for groups of smaller values
_ALL_THE_WAY: Final = 31  # the same where the caps are a guess: 4^31 is beyond all magnitudes


class Caps(NamedTuple):
    """The knots above and below zero where magnitudes end, and whether their counts showed them.

    None is a side where no value can be. Below the caps there are up to `deeper` further knots. Where knots
    keep `apart`, the last one that is doubled lies at most at 2/3 of the declared bound.
    """

    up: int | None
    down: int | None
    seen: bool
    deeper: int = 0
    apart: bool = False


@final
@dataclass(frozen=True)
class Magnitudes:
    """Distances from zero above and below, in steps, in four buckets a doubling.

    Zero is in no bucket, and neither are the special cells: below, above, invalid and null.

    >>> from partita.domain import Integer
    >>> line = Magnitudes(ValueLine.of(Integer(-3, 10)))
    >>> line.up, line.down, line.size
    (10, 3, 12)
    """

    line: ValueLine

    @property
    def up(self) -> int:
        """The largest magnitude above zero, 0 if there is none."""
        return max(0, self.line.low + self.line.size - 1)

    @property
    def down(self) -> int:
        """The largest magnitude below zero, 0 if there is none."""
        return max(0, -self.line.low)

    @cached_property
    def edges(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The last magnitude of each bucket, above and below."""
        return caps(self.up), caps(self.down)

    @property
    def size(self) -> int:
        """The number of buckets."""
        return sum(map(len, self.edges))

    def sides(self, places: UInts) -> tuple[tuple[Bools, UInts], tuple[Bools, UInts], Bools]:
        """Which positions lie above and below zero, each with their magnitudes; and which are zero."""
        inside = (places >= 1) & (places <= np.uint64(self.line.size))
        values = np.where(inside, places - np.uint64(1), np.uint64(0)).astype(np.int64) + self.line.low
        above, below = inside & (values > 0), inside & (values < 0)
        return (
            (above, values[above].astype(np.uint64)),
            (below, (-values[below]).astype(np.uint64)),
            inside & (values == 0),
        )

    def count(self, places: UInts, counts: Ints) -> Ints:
        """The number of rows in each bucket, exactly: a row is in one of them at most."""
        exact, (above, below, _) = np.zeros(self.size, np.int64), self.sides(places)
        for edges, first, (chosen, sizes) in zip(
            self.edges, (0, len(self.edges[0])), (above, below), strict=True
        ):
            if edges:
                bucket = np.searchsorted(np.array(edges, np.uint64), sizes)
                np.add.at(exact, first + bucket, counts[chosen])
        return exact

    def caps(self, noisy: NDArray[Any], scale: Fraction, *, groups: int = 1, joined: bool = True) -> Caps:
        """The cap of each side: the edge of the last bucket that holds rows.

        A side on which no octave is clear has the cap of the other side. If none is clear, that of the
        loudest octave serves both as a guess, and knots go down to 1; else they do for several groups only.
        A cap right below the declared bound is `joined` with it: two knots there would have twice the noise.
        """
        number = len(self.edges[0])
        sides = list(zip(self.edges, (noisy[:number], noisy[number:]), strict=True))
        found = [self._last(edges, counts, float(scale)) for edges, counts in sides]
        seen = max(found) > 0
        shared = max(found) or max((self._guess(*side, float(scale)) for side in sides), default=(0.0, 1))[1]
        up, down = (
            (length if joined and length < _NEAR * (cap or shared) else min(cap or shared, length))
            if length
            else None
            for cap, length in zip(found, (self.up, self.down), strict=True)
        )
        deeper = (_STEPS_DOWN if groups > 1 else 0) if seen else _ALL_THE_WAY
        return Caps(up, down, seen, deeper, apart=joined)

    def earlier_caps(self, noisy: NDArray[Any], scale: Fraction) -> Caps:
        """The caps of files that do not hold them: knots began at 1 where no octave was clear."""
        found = self.caps(noisy, scale, joined=False)
        up, down = (cap if found.seen or cap is None else 1 for cap in found[:2])
        return Caps(up, down, found.seen)

    def _guess(self, edges: tuple[int, ...], noisy: NDArray[Any], scale: float) -> tuple[float, int]:
        """The noisy rows of the loudest octave, and the edge of the last bucket of it that is not silent."""
        if not edges:
            return -math.inf, 1
        counts = np.asarray(noisy, np.float64)
        octaves = np.convolve(counts, np.ones(_OCTAVE))[: counts.size]
        last = int(np.argmax(octaves))
        first = max(0, last - _OCTAVE + 1)
        filled = np.flatnonzero(counts[first : last + 1] > _GUESSED * scale)
        return float(octaves[last]), edges[first + int(filled[-1]) if filled.size else last]

    def _last(self, edges: tuple[int, ...], noisy: NDArray[Any], scale: float) -> int:
        """The edge of the last bucket up to the highest clear octave that exceeds the noise; 0 for none."""
        if not edges:
            return 0
        counts = np.asarray(noisy, np.float64)
        octaves = np.convolve(counts, np.ones(_OCTAVE))[: counts.size]
        clear = np.flatnonzero(octaves > _CLEAR * scale * math.log(1000 * self.size))
        if not clear.size:
            return 0
        filled = np.flatnonzero(counts[: clear[-1] + 1] > _FILLED * scale)
        return edges[int(filled[-1] if filled.size else clear[-1])]


@final
@dataclass(frozen=True)
class TotalKnots:
    """Zero and the knots of both sides; a row splits one unit of mass between the two knots around it.

    Between the knots L and H a magnitude x gives (x - L) U // (H - L) to H and the rest of U to L. Both are
    between 0 and U and add up to U, whatever the knots are.
    """

    magnitudes: Magnitudes
    caps: Caps

    @cached_property
    def sides(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The knots above and below zero, ascending."""
        lengths = self.magnitudes.up, self.magnitudes.down
        up, down = (
            (*list_lower(cap, self.caps.deeper), *self._list_upper(cap, length))
            for cap, length in zip(self.caps[:2], lengths, strict=True)
        )
        return up, down

    def _list_upper(self, cap: int | None, length: int) -> tuple[int, ...]:
        """The cap and what lies above it: two knots side by side would have nearly twice the noise of one."""
        found = list_knots(cap, length)
        if not self.caps.apart:
            return found
        return tuple(knot for knot in found if knot in (cap, length) or knot * _NEAR <= length)

    @cached_property
    def seen(self) -> tuple[int, int]:
        """How many knots of each side lie up to its cap; none if the caps are a guess."""
        up, down = (
            len(list_lower(cap, self.caps.deeper)) + 1 if cap and self.caps.seen else 0
            for cap in self.caps[:2]
        )
        return up, down

    @property
    def size(self) -> int:
        """The number of knots: zero, those above, those below."""
        return 1 + sum(map(len, self.sides))

    def masses(
        self, places: UInts, counts: Ints, groups: Ints | None = None, number: int = 1
    ) -> NDArray[Any]:
        """The whole mass on each knot, exactly, as Python ints: first those of the first group."""
        times = counts if int(counts.sum()) < _FEW_ROWS else counts.astype(object)
        first = np.zeros(places.size, np.int64) if groups is None else groups * self.size
        mass = np.zeros(number * self.size, times.dtype)
        *sides, zero = self.magnitudes.sides(places)
        np.add.at(mass, first[zero], UNIT * times[zero])
        for knots, start, (chosen, sizes) in zip(self.sides, (1, 1 + len(self.sides[0])), sides, strict=True):
            if knots:
                gap, upper = split_rows(knots, sizes)
                own, rows = first[chosen], times[chosen]
                np.add.at(mass, own + np.where(gap > 0, start + gap - 1, 0), (UNIT - upper) * rows)
                np.add.at(mass, own + start + gap, upper * rows)
        return mass.astype(object)


def list_lower(cap: int | None, deeper: int) -> tuple[int, ...]:
    """A quarter of the cap, a quarter of that, and so on, so many times or down to 1; in ascending order.

    >>> list_lower(100, 2), list_lower(100, 9), list_lower(None, 9)
    ((6, 25), (1, 6, 25), ())
    """
    below = [cap >> (2 * step) for step in range(1, deeper + 1)] if cap else []
    return tuple(sorted(each for each in below if each))


def split_rows(knots: Sequence[int], sizes: UInts) -> tuple[Ints, Ints]:
    """For each magnitude the gap that it is in, and how much of the unit the upper knot of the gap has.

    >>> gap, upper = split_rows((4, 8), np.array([1, 4, 7], np.uint64))
    >>> gap.tolist(), (upper * 4 // UNIT).tolist()
    ([0, 0, 1], [1, 4, 3])
    """
    ends = np.array([0, *knots], np.uint64)
    gap = np.searchsorted(ends[1:], sizes)
    past, width = sizes - ends[gap], ends[gap + 1] - ends[gap]
    upper = np.zeros(sizes.size, np.int64)
    narrow = width <= np.uint64(_NARROW)
    upper[narrow] = past[narrow].astype(np.int64) * UNIT // width[narrow].astype(np.int64)
    upper[~narrow] = past[~narrow].astype(object) * UNIT // width[~narrow].astype(object)
    return np.asarray(gap, np.int64), upper


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class KnotTotalRelease(SumRelease):
    """Noisy counts of magnitudes, and for each group noisy masses on zero and on the knots of both sides.

    Groups are the cells of the keys, special cells included; without keys there is one. The knots follow from
    the caps, which the counts of magnitudes have chosen; they are stored, so that another machine with other
    rounding reads the same. Totals, means and numbers of rows come from the same masses; other questions are
    refused. `guarantee` is None if the release was made with injected noise.
    """

    kind: ClassVar[str] = "totals"
    statistic: ClassVar[str] = "totals"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"totals": ()}
    max_series: ClassVar[int] = 2
    moments: ClassVar[bool] = False
    reads_counts: ClassVar[bool] = False

    keys: tuple[Axis, ...] = ()
    value: ValueLine
    caps: Caps
    buckets: NDArray[Any]
    bucket_scale: Fraction
    noisy: NDArray[Any]
    scale: Fraction
    guarantee: Guarantee | None = None

    @property
    def specials(self) -> dict[str, Answer]:
        """Nothing is known about special cells: they were not counted."""
        return {}

    @cached_property
    def knots(self) -> TotalKnots:
        """The knots of all groups."""
        return TotalKnots(Magnitudes(self.value), self.caps)

    @cached_property
    def masses(self) -> Floats:
        """The noisy masses in rows: a row for each group."""
        rows = np.array([float(Fraction(int(mass), UNIT)) for mass in self.noisy])
        return rows.reshape(-1, self.knots.size)

    @cached_property
    def estimate(self) -> TotalEstimate:
        """What the masses of all groups say together."""
        return self._about(np.arange(len(self.masses)))

    @property
    def story(self) -> str:
        """What was chosen on the way, and what the total leaves out."""
        first = [format_total(cap * float(self.value.step)) for cap in self.caps[:2] if cap is not None]
        groups = f" of each of {len(self.masses):,} groups" if self.keys else ""
        return (
            f"Masses{groups} lie on knots that double from {' and '.join(first)} on. A total is that of all "
            "rows within the declared bounds; rows that are null, invalid or out of bounds are no part of it."
        )

    @property
    def spent(self) -> Fraction:
        """What a row costs: it is in one bucket, and has one unit of mass in one group."""
        return 1 / self.bucket_scale + UNIT / self.scale

    def parts(self) -> Parts:
        """The noisy numbers, their scales, and the caps."""
        facts: dict[str, Json] = {
            "bucket_scale": str(self.bucket_scale),
            "scale": str(self.scale),
            "up": self.caps.up,
            "down": self.caps.down,
            "seen": self.caps.seen,
            "deeper": self.caps.deeper,
            **({"apart": True} if self.caps.apart else {}),
        }
        return Parts(facts, {"buckets": self.buckets, "noisy": self.noisy})

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, *, keys: Sequence[Axis] = (), value: Domain
    ) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
        reader, line, axes = PartsReader(parts), ValueLine.of(value), tuple(keys)
        stored = "up" in parts.facts
        apart = ("apart",) if "apart" in parts.facts else ()
        reader.expect(facts=(*_FACTS, *apart) if stored else _FACTS[:2], series=("buckets", "noisy"))
        magnitudes, bucket_scale = Magnitudes(line), reader.scale("bucket_scale")
        buckets, groups = reader.noisy("buckets", count=magnitudes.size), count_cells(axes)
        rule, fix = f"must have at most {MOST_TOTALS} cells", "get the file again"
        check_release(groups <= MOST_TOTALS, "keys", rule, fix=fix)
        earlier = None if stored else magnitudes.earlier_caps(buckets, bucket_scale)
        chosen = earlier or _read_caps(reader, magnitudes)
        return cls(
            keys=axes,
            value=line,
            caps=chosen,
            buckets=buckets,
            bucket_scale=bucket_scale,
            noisy=reader.noisy("noisy", count=groups * TotalKnots(magnitudes, chosen).size),
            scale=reader.scale("scale"),
            guarantee=guarantee,
        )

    def _estimate(self, terms: Sequence[BoxTerm], density: KeyCounts | None = None) -> TotalEstimate:
        """What the masses say about the groups in some boxes of the keys."""
        if not self.keys:
            return self.estimate
        times = np.zeros([axis.width for axis in self.keys], np.int64)
        for low, high, sign in check_terms(terms, self.keys):
            times[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))] += sign
        rule, fix = "must be boxes that do not overlap, and are added", "ask about each by itself"
        check(bool(((times == 0) | (times == 1)).all()), "terms", rule, given="other boxes", fix=fix)
        return self._about(np.flatnonzero(times))

    def _about(self, groups: Ints) -> TotalEstimate:
        """What the masses of these groups say."""
        found, line = self.masses[groups], self.value
        whole = groups.size == len(self.masses)
        up, down = (
            replace(
                side,
                masses=found[:, place].sum(axis=0),
                noise=side.noise * math.sqrt(max(1, groups.size)),
                guide=None if whole else side.guide,
                strange=side.strange and not whole,
                terms=max(1, groups.size),
            )
            for side, place in zip(self._sides, self._places, strict=True)
        )
        return TotalEstimate(
            up=up,
            down=down,
            zero=float(found[:, 0].sum()),
            scale=self.scale,
            terms=groups.size,
            step=float(line.step),
            bounds=(float(line.low * line.step), float((line.low + line.size - 1) * line.step)),
            better=self._better(groups, whole=whole) if len(self.masses) > 1 else None,
        )

    def _better(self, groups: Ints, *, whole: bool) -> Held:
        """The total and the rows of these groups: as their masses say one by one, or with those of others."""
        if not whole:
            found = self._blended[groups]
            return Held(float(found[:, 0].sum()), float(found[:, 1].sum()))
        up, down = (
            add_groups(each, self.masses[:, place])
            for each, place in zip(self._groups, self._places, strict=True)
        )
        return Held(up - down, float(self._blended[:, 1].sum()))

    @cached_property
    def _blended(self) -> Floats:
        """The total and the rows of each group, where masses that noise hides are guessed from all groups."""
        (up, down), (above, below) = self._sides, self._places
        first, last = slice(above.start, above.start + up.start), slice(below.start, below.start + down.start)
        line = np.concatenate(
            [self.masses[:, last][:, ::-1], self.masses[:, :1], self.masses[:, first]], axis=1
        )
        knots = np.concatenate([-down.knots[: down.start][::-1], [0.0], up.knots[: up.start]])
        found = blend_groups(line, up.noise)
        past = [(one.past, other.past) for one, other in zip(*self._groups, strict=True)]
        totals = found @ knots + np.array([one.total - other.total for one, other in past])
        rows = found.sum(axis=1) + np.array([one.rows + other.rows for one, other in past])
        return np.stack([totals, rows], axis=1)

    @cached_property
    def _places(self) -> tuple[slice, slice]:
        """Where the masses of the knots above and below zero are."""
        behind = 1 + len(self.knots.sides[0])
        return slice(1, behind), slice(behind, None)

    @cached_property
    def _pooled(self) -> tuple[KnotSide, KnotSide]:
        """Both sides of all groups together."""
        noise, pooled, groups = float(self.scale / UNIT), self.masses.sum(axis=0), len(self.masses)
        up, down = (
            KnotSide(
                np.array(knots, np.float64), pooled[place], noise * math.sqrt(groups), seen, terms=groups
            )
            for knots, place, seen in zip(self.knots.sides, self._places, self.knots.seen, strict=True)
        )
        return up, down

    @cached_property
    def _sides(self) -> tuple[KnotSide, KnotSide]:
        """Both sides of a group without masses, guided by the masses of all groups together."""
        noise = float(self.scale / UNIT)
        up, down = (
            replace(each, noise=noise, guide=each.top, strange=not each.thins, terms=1)
            for each in self._pooled
        )
        return up, down

    @cached_property
    def _groups(self) -> tuple[list[KnotSide], list[KnotSide]]:
        """Both sides of every group."""
        up, down = (
            [replace(side, masses=own[place]) for own in self.masses]
            for side, place in zip(self._sides, self._places, strict=True)
        )
        return up, down


_FACTS: Final = ("bucket_scale", "scale", "up", "down", "seen", "deeper")


def _read_caps(reader: PartsReader, magnitudes: Magnitudes) -> Caps:
    """The caps that a file holds: null on a side without values."""
    lengths = {"up": magnitudes.up, "down": magnitudes.down}
    for name, length in lengths.items():
        if (reader.parts.facts[name] is None) != (length == 0):
            raise damaged(name, "must be given where values can be, and nowhere else")
    up, down = (
        reader.optional(name, partial(reader.integer, low=1, high=length)) for name, length in lengths.items()
    )
    apart = "apart" in reader.parts.facts and reader.flag("apart")
    deeper = reader.integer("deeper", low=0, high=_ALL_THE_WAY)
    return Caps(up, down, reader.flag("seen"), deeper, apart)
