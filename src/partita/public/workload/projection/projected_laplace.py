"""Released noisy answers to linear queries, and their certified projection on what a table could answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.answer import Answer
from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.numbers import failure, integer
from partita.public.axis.base.ranges import Parts
from partita.public.axis.base.reading import PartsReader
from partita.public.axis.curve.curve import Floats, Ints
from partita.public.base.released import damaged
from partita.public.queries.queries.queries import Queries
from partita.public.queries.queries.universe import Universe
from partita.public.workload.projection.projection import LARGEST_BITS, MOST_CELLS, Projection, project
from partita.public.workload.projection.projection_error import AnswerNoise, likely_error, rows_reach
from partita.public.workload.release.answer_changes import AnswerChanges
from partita.public.workload.release.workload import WorkloadRelease

_BETA: Final = 1e-4
_LARGEST_ROWS: Final = 2**127


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ProjectedLaplaceRelease(WorkloadRelease):
    """The noisy number of rows, noisy answers in units, and the projection if one was certified.

    `values` are the projected answers; without a certificate they are the noisy ones, and `story` says so.
    """

    kind: ClassVar[str] = "projected-laplace"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"projection": ("DR14",)}
    max_series: ClassVar[int] = 8

    rows: int
    rows_scale: Fraction
    noisy: NDArray[Any]
    scale: Fraction
    projection: Projection | None = None

    def projected(self) -> Self:
        """The same release with the projection of its answers, if one can be certified."""
        found = project(self.operator, self.noisy, rows=self.most_rows, deviation=self.noise.deviation)
        return replace(self, projection=found)

    @property
    def most_rows(self) -> int:
        """The noisy number of rows plus its reach: the table has more with probability 1/10,000 at most."""
        return max(0, self.rows + rows_reach(self.rows_scale, _BETA))

    @cached_property
    def noise(self) -> AnswerNoise:
        """The noise of the unprojected answers."""
        return AnswerNoise(self.operator, self.scale)

    @cached_property
    def unprojected(self) -> Floats:
        """The noisy answers as they were drawn: unbiased, each with noise of its own."""
        return np.asarray(self.noisy / self.operator.granularity, np.float64)

    @property
    def values(self) -> Floats:
        """All answers."""
        return self.unprojected if self.projection is None else self.projection.values

    @cached_property
    def spreads(self) -> Floats:
        """The standard deviation of noise; of projected answers an estimate for all of them together."""
        deviation = self.noise.deviation
        if self.projection is not None:
            deviation = likely_error(self.projection, self.unprojected, deviation)
        return np.full(len(self), deviation)

    def answer(self, index: int) -> Answer:
        """The answer to one query. Bounds hold for any data; the standard error is `spreads`."""
        place = integer(index, "index", low=0, high=len(self) - 1)
        value, noisy = float(self.values[place]), float(self.unprojected[place])

        def bounds(beta: float) -> tuple[float, float]:
            noise, distance = self.noise.reach(1, beta / 3), self.distance(beta / 3)
            least, most = self._possible(beta / 3)
            low = max(noisy - noise, value - distance, least)
            return low, max(low, min(noisy + noise, value + distance, most))

        least = 0.0 if self.operator.lowest >= 0 else -math.inf
        return Answer(value, lambda: float(self.spreads[place]), bounds, least)

    def _possible(self, beta: float) -> tuple[float, float]:
        """With probability 1 - beta every answer is between these: as many rows, at the extreme weights."""
        rows = max(0, self.rows + rows_reach(self.rows_scale, beta)) / self.operator.granularity
        return rows * min(0, self.operator.lowest), rows * max(0, self.operator.highest)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no answer at all misses the truth by more, whatever the data."""
        half = float(failure(beta)) / 2
        moved = float(np.abs(self.values - self.unprojected).max(initial=0.0))
        return min(self.distance(half), moved + self.noise.reach(len(self), half))

    def distance(self, beta: float) -> float:
        """With probability 1 - beta all answers together miss the truth by no more, in the Euclidean norm."""
        chance = float(failure(beta))
        if self.projection is None:
            return math.sqrt(len(self)) * self.noise.reach(len(self), chance)
        beyond = max(0, rows_reach(self.rows_scale, chance / 2) - rows_reach(self.rows_scale, _BETA))
        return self.noise.projected_distance(self.projection, beyond, chance / 2)

    @property
    def story(self) -> str:
        """What the projection did, and whether noise drowns the rows."""
        return " ".join((*self._about_projection, *self._about_noise))

    @property
    def _about_projection(self) -> tuple[str, ...]:
        if self.projection is None:
            return ("No projection was certified within the steps allowed: answers are the noisy ones.",)
        off = self.projection.distance / math.sqrt(len(self))
        return (
            f"Answers are projected on those of tables of at most {self.most_rows} rows; "
            f"the closest such answers are at most {off:.3g} away, in the root mean square.",
        )

    @property
    def _about_noise(self) -> tuple[str, ...]:
        if self.noise.deviation <= self.rows / 4:
            return ()
        return ("The noise of an answer exceeds a quarter of the rows: an even guess may do better.",)

    @property
    def spent(self) -> Fraction:
        """What the noise of the rows and of the answers costs together."""
        if self.guarantee is None:
            return Fraction(0)
        promised = self.guarantee
        changes = AnswerChanges.between(
            promised.neighbors, contributions=promised.contributions, operator=self.operator
        )
        return promised.contributions / self.rows_scale + changes.cost(self.scale, promised.delta)

    def parts(self) -> Parts:
        """The noisy numbers, and the certificate if there is one: weights of cells and their gap."""
        facts = {"rows": str(self.rows), "rows_scale": str(self.rows_scale), "scale": str(self.scale)}
        found = self.projection
        if found is None:
            return Parts({**facts, "bits": None, "gap": None}, {"noisy": self.noisy})
        series = {"noisy": self.noisy, "cells": found.cells, "amounts": found.amounts}
        return Parts({**facts, "bits": found.bits, "gap": str(found.gap)}, series)

    @classmethod
    def from_parts(
        cls, parts: Parts, guarantee: Guarantee | None, queries: Queries, universe: Universe
    ) -> Self:
        """The release that `parts` took apart; a projection is believed if its certificate holds."""
        read = PartsReader(parts)
        certified = parts.facts.get("bits") is not None
        read.expect(
            facts=("rows", "rows_scale", "scale", "bits", "gap"),
            series=("noisy", "cells", "amounts") if certified else ("noisy",),
        )
        release = cls(
            rows=_rows(read),
            rows_scale=read.scale("rows_scale"),
            noisy=read.noisy("noisy", count=len(queries.over(_small(universe)))),
            scale=read.scale("scale"),
            queries=queries,
            universe=universe,
            guarantee=guarantee,
        )
        return replace(release, projection=_certified(read, release)) if certified else release


def _rows(read: PartsReader) -> int:
    rows = read.rational("rows")
    if rows.denominator != 1 or abs(rows) > _LARGEST_ROWS:
        raise damaged("rows", "must be a whole number of at most 127 bits")
    return int(rows)


def _small(universe: Universe) -> Universe:
    if universe.size > MOST_CELLS:
        raise damaged("universe", f"must have at most {MOST_CELLS} cells")
    return universe


def _certified(read: PartsReader, release: ProjectedLaplaceRelease) -> Projection:
    """The projection, if it is that of the release's own noisy answers."""
    spare = LARGEST_BITS - release.most_rows.bit_length()
    projection = Projection(
        operator=release.operator,
        rows=release.most_rows,
        bits=read.integer("bits", low=0, high=spare),
        cells=_cells(read, release.universe.size),
        amounts=_amounts(read),
        gap=read.rational("gap"),
    )
    if projection.cells.size != projection.amounts.size:
        raise damaged("amounts", "must be as many as cells")
    if not projection.holds(release.noisy, release.noise.deviation):
        raise damaged("gap", "must be that of the weights, and small enough")
    return projection


def _cells(read: PartsReader, size: int) -> Ints:
    cells = read.row("cells", np.int64)
    if cells.size and (bool((cells[1:] <= cells[:-1]).any()) or int(cells[0]) < 0 or int(cells[-1]) >= size):
        raise damaged("cells", "must be increasing cells of the universe")
    return cells


def _amounts(read: PartsReader) -> Ints:
    amounts = read.row("amounts", np.int64)
    if bool((amounts <= 0).any()) or float(amounts.astype(np.float64).sum()) >= 2.0**LARGEST_BITS:
        raise damaged("amounts", "must be positive and add up to less than 2^62")
    return amounts
