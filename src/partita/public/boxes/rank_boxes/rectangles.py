"""Boxes of a kind that a noisy number of rows chose, released together with that number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Final, Self, final

from partita.answer import Answer
from partita.domain.axis import Axis
from partita.guarantee.guarantee import Guarantee
from partita.numbers import freeze
from partita.public.axis.base.ranges import Json, Parts
from partita.public.axis.base.reading import PartsReader
from partita.public.axis.curve.curve import Curve, Floats
from partita.public.base.released import damaged
from partita.public.boxes.base.boxes import Boxes, BoxTerm, Region
from partita.public.boxes.grid.grid import GridRelease
from partita.public.boxes.plan.nodes import Corners
from partita.public.boxes.rank_boxes.rank_boxes import RankBoxesRelease
from partita.public.boxes.spending_boxes.spending_boxes import LARGEST_TOTAL, SpendingBoxesRelease

_CHOICES: Final = {each.kind: each for each in (GridRelease, RankBoxesRelease, SpendingBoxesRelease)}


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RectanglesRelease(Boxes):
    """The chosen boxes, which answer everything, and the total with noise of `scale` that chose them.

    Whoever reads the total can repeat the choice: nothing else that is not public went into it.
    """

    kind: ClassVar[str] = "rectangles"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"rectangles": ("DNRR15",)}
    max_series: ClassVar[int] = 12
    max_series_per_level: ClassVar[int] = 8

    axes: tuple[Axis, ...] = field(init=False)
    chosen: Boxes
    total: int
    scale: Fraction
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        freeze(self, axes=self.chosen.axes)

    def answer(self, *terms: BoxTerm) -> Answer:
        """The signed sum of the terms as one linear question."""
        return self.chosen.answer(*terms)

    def counts(self, lows: Corners, highs: Corners) -> Floats:
        """The value of each box."""
        return self.chosen.counts(lows, highs)

    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        """The standard error of each box, or of the sums of some."""
        return self.chosen.errors(lows, highs, parts=parts)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no box at all misses the truth by more."""
        return self.chosen.error(beta)

    def along(self, axis: int, box: BoxTerm) -> Curve:
        """Cumulative counts along one axis, of what lies in the box on the others."""
        return self.chosen.along(axis, box)

    def region(self, region: Region, box: BoxTerm) -> Answer:
        """How many lie in a public region and in the box."""
        return self.chosen.region(region, box)

    def points(self, rows: int) -> Corners:
        """Positions of made-up rows."""
        return self.chosen.points(rows)

    @property
    def spent(self) -> Fraction:
        """What a row costs in the total and in the boxes."""
        return 1 / self.scale + self.chosen.spent

    @property
    def story(self) -> str:
        """By which total it was chosen, and what was chosen on the way after that."""
        chose = f"A first count of about {max(0, self.total):,} rows chose {self.chosen.kind}."
        return f"{chose} {self.chosen.story}".rstrip()

    def parts(self) -> Parts:
        """The parts of the chosen boxes, with their kind and the total."""
        chosen = self.chosen.parts()
        facts: dict[str, Json] = {"kind": self.chosen.kind, "total": self.total, "scale": str(self.scale)}
        return Parts({**facts, "chosen": dict(chosen.facts)}, chosen.series)

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
        reader = PartsReader(parts)
        reader.expect(facts=("kind", "total", "scale", "chosen"), series=parts.series)
        return cls(
            chosen=_read_chosen(parts),
            total=reader.integer("total", low=-LARGEST_TOTAL, high=LARGEST_TOTAL),
            scale=reader.scale("scale"),
            guarantee=guarantee,
        )


def _read_chosen(parts: Parts) -> Boxes:
    kind, facts = parts.facts["kind"], parts.facts["chosen"]
    if not isinstance(kind, str) or kind not in _CHOICES:
        raise damaged("kind", f"must be one of {', '.join(_CHOICES)}")
    if not isinstance(facts, dict):
        raise damaged("chosen", "must be told by its facts")
    return _CHOICES[kind].from_parts(Parts(facts, parts.series), None)
