"""A released spending tree over boxes: every look at every node, and the boxes that it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from partita.domain.axis import Axis
from partita.errors.errors import InvalidParameter
from partita.guarantee.guarantee import Guarantee
from partita.lazy.cached import cached_property
from partita.numbers import freeze
from partita.public.axis.base.ranges import Json, Parts
from partita.public.axis.base.reading import PartsReader
from partita.public.axis.curve.curve import Bools, Floats, Ints
from partita.public.axis.tree_solver.spending_rule import UNITS
from partita.public.axis.tree_solver.tree_looks import TreeLooks
from partita.public.base.released import damaged
from partita.public.boxes.base.axes import read_axes, written_axes
from partita.public.boxes.base.engine_boxes import EngineBoxes
from partita.public.boxes.cover.surroundings import Surroundings
from partita.public.boxes.density.density import Density
from partita.public.boxes.density.measure import Even
from partita.public.boxes.density.solution import BoxSolution
from partita.public.boxes.engine.engine import BoxEngine
from partita.public.boxes.plan.plan import BoxPlan
from partita.public.boxes.plan.shape import BoxShape
from partita.public.boxes.plan.slots import Slots, native_slots
from partita.public.boxes.plan.tree_recipe import Recipe
from partita.public.boxes.spending_boxes.ramps import ramped
from partita.public.boxes.spending_boxes.selection import Selection

LARGEST_TOTAL: Final = 2**63
"""No public total is further from zero: facts in files have 64 bits."""

_WIDENING: Final = 1.3
"""The calibrated factor of standard errors; how it was found is in docs/proofs/spending_boxes.md."""

_MOST_RAMPS: Final = 2
"""With more axes leaves would be cut into too many pieces."""

_MOST_SURROUNDED: Final = 2**18
"""With more leaves what is around them is not looked at."""

_FACTS: Final = ("axes", "scale", "total", "growth", "worth", "depth_power")
_SERIES: Final = ("schedule", "levels", "expanded", "steps", "nodes", "units", "noisy")


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SpendingBoxesRelease(EngineBoxes):
    """A tree over the positions of several axes and all looks at its nodes, in the order of the looks.

    A look of k units has noise of `scale` / k, and no path has more than 2^20 units. `total` is the
    public number that the tree began with, if there was one; else the first look was at the root.
    The last look at a leaf decided nothing; all other looks decided what was looked at next.
    """

    kind: ClassVar[str] = "spending-boxes"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"rectangles": ("DNRR15",), "spending-boxes": ()}
    max_series: ClassVar[int] = 8

    axes: tuple[Axis, ...] = field(init=False)
    shape: BoxShape
    looks: TreeLooks
    scale: Fraction
    total: int | None
    recipe: Recipe
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        freeze(self, axes=tuple(slots.line for slots in self.shape.plan.slots))
        self.looks.check(self.shape, first=0 if self.total is None else 1)

    @property
    def spent(self) -> Fraction:
        """What a row costs: it is on one path, and no path has more units."""
        return UNITS / self.scale

    @property
    def story(self) -> str:
        """What was chosen, and by which released numbers."""
        leaves, levels = int((~self.shape.expanded).sum()), self.shape.levels.size - 1
        began = max(0, int(self.looks.noisy[0]) if self.total is None else self.total)
        return (
            f"For a total of about {began:,} rows it grew a tree of {levels} level{'s' * (levels > 1)}; "
            f"{leaves:,} boxes are counted at its leaves."
        )

    @cached_property
    def solution(self) -> BoxSolution:
        """The estimate of every node, found twice: a first one tells what to expect around each leaf."""
        noisy, variances = self.looks.means(self.shape.expanded.size, self._unit)
        if self.total is not None:
            noisy[0] = self.total
        families = self.shape.families
        righted = Selection(families, self.looks, self._unit, self.recipe).righted(noisy, variances)
        first = BoxSolution(families, self.shape.expanded, righted, variances)
        return replace(first, expected=self._expected(first))

    @cached_property
    def engine(self) -> BoxEngine:
        """The solved tree; inside of leaves counts rise or fall as their neighbours say."""
        values, variances = self.solution.estimates
        return BoxEngine(
            nodes=self.shape.nodes,
            measures=self._measures,
            values=values,
            variances=variances,
            looks=self.looks,
            unit=self._unit,
            widening=_WIDENING,
            doubted=True,
            refined=self._refined,
        )

    def _refined(self, density: Density) -> Density:
        if len(self.axes) > _MOST_RAMPS:
            return density
        return ramped(density, self.axes, noise=1.0 / (UNITS * self._unit))

    def _expected(self, solution: BoxSolution) -> Floats:
        """What each leaf would hold if it were as full as the cells around it, for not too many leaves."""
        nodes = self.shape.nodes
        expected, leaves = np.full(nodes.children.size, np.nan), np.flatnonzero(nodes.leaves)
        if leaves.size <= _MOST_SURROUNDED:
            density = Density.of(nodes, self._measures, *solution.estimates)
            expected[leaves] = Surroundings(density, self.axes, leaves).expected()
        return expected

    @property
    def _measures(self) -> list[Even]:
        return [Even()] * len(self.axes)

    @cached_property
    def _unit(self) -> float:
        """The rate of a look of one unit."""
        return float(1 / self.scale)

    def parts(self) -> Parts:
        """The plan, the nodes that were cut, all looks, and the public facts."""
        facts: dict[str, Json] = {
            "axes": written_axes(self.axes),
            "scale": str(self.scale),
            "total": self.total,
            "growth": str(self.recipe.growth),
            "worth": str(self.recipe.worth),
            "depth_power": str(self.recipe.depth_power),
        }
        return Parts(facts, written_tree(self.shape, self.looks))

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
        reader = PartsReader(parts)
        reader.expect(facts=_FACTS, series=_SERIES)
        shape, looks = read_tree(reader, native_slots(read_axes(reader)))
        return cls(
            shape=shape,
            looks=looks,
            scale=reader.scale("scale"),
            total=reader.optional("total", partial(reader.integer, low=-LARGEST_TOTAL, high=LARGEST_TOTAL)),
            recipe=_recipe(reader),
            guarantee=guarantee,
        )


def written_tree(shape: BoxShape, looks: TreeLooks) -> dict[str, NDArray[Any]]:
    """A tree and its looks as series for a file."""
    return {
        "schedule": shape.plan.schedule.ravel(),
        "levels": shape.levels,
        "expanded": shape.expanded.astype(np.int64),
        "steps": looks.steps,
        "nodes": looks.nodes,
        "units": looks.units,
        "noisy": looks.noisy,
    }


def read_tree(reader: PartsReader, slots: tuple[Slots, ...]) -> tuple[BoxShape, TreeLooks]:
    """The tree and the looks that `written_tree` wrote, over these slots."""
    plan = BoxPlan(slots, _schedule(reader, len(slots)))
    steps, nodes, units = (reader.row(name, np.int64) for name in ("steps", "nodes", "units"))
    looks = TreeLooks(steps, nodes, units, reader.noisy("noisy", count=nodes.size))
    return BoxShape(plan, reader.row("levels", np.int64), _flags(reader, "expanded")), looks


def _schedule(reader: PartsReader, axes: int) -> Ints:
    bits = reader.row("schedule", np.int64)
    if bits.size % axes:
        raise damaged("schedule", "must have a number for each axis at every level")
    return bits.reshape(-1, axes)


def _flags(reader: PartsReader, name: str) -> Bools:
    flags = reader.row(name, np.int64)
    if bool((flags & ~1).any()):
        raise damaged(name, "must be 0 or 1")
    return flags.astype(bool)


def _recipe(reader: PartsReader) -> Recipe:
    constants = {name: reader.rational(name) for name in ("growth", "worth", "depth_power")}
    try:
        return Recipe(**constants)
    except InvalidParameter as error:
        raise damaged(error.parameter, "must be in its range") from None
