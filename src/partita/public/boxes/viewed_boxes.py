"""Boxes and plain views of categories: a label is answered by its own noisy count, a box by both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import ClassVar, Final, Protocol, Self, TypeAlias, cast, final

import numpy as np

from partita.answer import Answer
from partita.arrays import Bools, Floats
from partita.domain.axis import Axis
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.numbers import check_probability, freeze, integer
from partita.public.axis.base import Json, Parts, PartsReader
from partita.public.axis.curve import Curve
from partita.public.base import LARGEST_NUMBER, damaged
from partita.public.boxes.base import BoxRelease, BoxTerm, Region, check_boxes, check_terms
from partita.public.boxes.cover import cancel_terms
from partita.public.boxes.engine import BoxEngine
from partita.public.boxes.grid import GridRelease
from partita.public.boxes.leaf_doubt import BoxDoubt, find_heaps, list_pieces
from partita.public.boxes.plain_view import PlainView
from partita.public.boxes.plan import Corners
from partita.public.boxes.rank_boxes import RankBoxesRelease
from partita.public.boxes.spending_boxes import LARGEST_TOTAL, SpendingBoxesRelease
from partita.public.boxes.view_audits import AuditGrid, Fitted, calibrate, list_grids, list_pairs
from partita.public.boxes.view_fit import (
    FittedBoxes,
    FittedGrid,
    FittedRanks,
    NoisyTotal,
    TreeCovariance,
    ViewedColumn,
    fit_leaves,
)

InnerBoxes: TypeAlias = GridRelease | RankBoxesRelease | SpendingBoxesRelease
"""The boxes beside the views."""

_INNER: Final = {each.kind: each for each in (GridRelease, RankBoxesRelease, SpendingBoxesRelease)}
_FACTS: Final = ("kind", "boxes", "total", "scale", "views")
_AUDIT_FACTS: Final = ("audits", "audit_scale")
_MOST_TERMS: Final = 16  # with more terms the views do not bound boxes: they take time, and bounds add up


class _Questions(Protocol):
    """What answers boxes: see `BoxRelease`."""

    def answer(self, *terms: BoxTerm) -> Answer: ...

    def counts(self, lows: Corners, highs: Corners) -> Floats: ...

    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats: ...

    def error(self, beta: float) -> float: ...

    def along(self, axis: int, box: BoxTerm) -> Curve: ...

    def region(self, region: Region, box: BoxTerm) -> Answer: ...

    def points(self, rows: int) -> Corners: ...


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ViewedBoxesRelease(BoxRelease):
    """Plain views of some columns, boxes over all columns, and a noisy total if that chose the boxes.

    A question about positions of one viewed column is answered by its view and the total. Every other
    question is answered by the boxes, which are first drawn towards the views by least squares. Rank boxes
    have views of their own: those that are plain count as views, and nothing is released twice.
    """

    kind: ClassVar[str] = "viewed-boxes"
    papers: ClassVar[Mapping[str, tuple[str, ...]]] = {"viewed-boxes": ("DMNS06", "DNRR15")}
    max_series: ClassVar[int] = 12
    max_series_per_level: ClassVar[int] = 9

    axes: tuple[Axis, ...] = field(init=False)
    boxes: InnerBoxes
    views: Mapping[int, PlainView]
    """The views that are not part of the boxes, by the number of their axis."""
    total: int | None = None
    scale: Fraction | None = None
    """The noise scale of the total; None if there is none."""
    audits: tuple[int, ...] = ()
    """How far answers were from the rows, with noise: see `view_audits`. Files of old versions have none."""
    audit_scale: Fraction | None = None
    """Their noise scale for one grid; that of an audit is as many times as large as it has grids."""
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        freeze(self, axes=self.boxes.axes, views=dict(sorted(self.views.items())))
        for axis, view in self.views.items():
            if not 0 <= axis < len(self.axes) or view.axis != self.axes[axis]:
                raise damaged("views", "must be views of axes of the boxes")
        if self.views and isinstance(self.boxes, RankBoxesRelease):
            raise damaged("views", "must be those of the rank boxes")
        if (self.total is None) != (self.scale is None):
            raise damaged("total", "must have a noise scale")
        if bool(self.audits) != (self.audit_scale is not None):
            raise damaged("audits", "must have a noise scale")
        if self.audits and len(self.audits) - self._modelled not in (0, int(self._audits_heaps)):
            raise damaged("audits", "must be those of these boxes")

    @cached_property
    def columns(self) -> Mapping[int, ViewedColumn]:
        """The viewed columns, by the number of their axis."""
        views = dict(self.views)
        if isinstance(self.boxes, RankBoxesRelease):
            trees = enumerate(self.boxes.views.trees)
            views = {axis: tree for axis, tree in trees if isinstance(tree, PlainView)}
        return {axis: ViewedColumn(view, self._best_total) for axis, view in views.items()}

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of axes that audits are about; none beside a grid, whose errors are known."""
        return [] if isinstance(self.boxes, GridRelease) else list_pairs([*self.columns], len(self.axes))

    @property
    def _audits_boxes(self) -> bool:
        """Whether there is an audit of boxes over all columns, too: of three in rank boxes."""
        return isinstance(self.boxes, RankBoxesRelease) and len(self.axes) == 3

    @property
    def _modelled(self) -> int:
        """How many audits are about the model of errors."""
        return 2 + self._audits_boxes if self.pairs else 0

    @property
    def _audits_heaps(self) -> bool:
        """Whether there is an audit of values that rows share: of trees over an ordered axis."""
        return isinstance(self.boxes, SpendingBoxesRelease) and not all(axis.labels for axis in self.axes)

    def audit_grids(self) -> list[list[AuditGrid]]:
        """The boxes of each audit: a function of released numbers. Early files lack the last one."""
        everything = BoxTerm((0,) * len(self.axes), tuple(axis.width - 1 for axis in self.axes), 1)
        curves = {axis: self.along(axis, everything) for axis in range(len(self.axes))}
        labels = {axis: column.view.noisy for axis, column in self.columns.items()}
        found = list_grids(self.pairs, labels, curves, whole=self._audits_boxes) if self.pairs else []
        return [*found, list_pieces(self.axes, self._tree, curves)] if self._audits_heaps else found

    @cached_property
    def joined(self) -> _Questions:
        """The boxes, drawn towards the views, with standard errors as the audits found them."""
        if not self.audits or not self._modelled:
            return self.fitted
        grids, widths = self.audit_grids()[: self._modelled], [axis.width for axis in self.axes]
        misfits = [self._misfit(number, len(each)) for number, each in enumerate(grids)]
        return cast(_Questions, calibrate(cast(Fitted, self.fitted), grids, misfits, widths))

    def _misfit(self, number: int, grids: int) -> float:
        """What an audit of so many grids says at most, up to one scale of its noise."""
        return max(0.0, float(self.audits[number])) + grids * float(self.audit_scale or 0)

    @cached_property
    def fitted(self) -> _Questions:
        """The boxes, drawn towards the views, with standard errors by public constants."""
        match self.boxes:
            case SpendingBoxesRelease() if self.columns:
                solution, engine = self.boxes.solution, self.boxes.engine
                covariance = TreeCovariance(
                    list(solution.families), solution.raised.variances, engine.nodes.leaves
                )
                fitted = fit_leaves(engine, covariance, self.columns)
                return FittedBoxes(self.axes, fitted, self.columns)
            case GridRelease() if self.columns:
                return FittedGrid(self.boxes, self.columns)
            case RankBoxesRelease() if self.columns:
                return FittedRanks(self.axes, self.boxes)
        return self.boxes

    def answer(self, *terms: BoxTerm) -> Answer:
        """The signed sum of the terms as one linear question."""
        checked = check_terms(terms, self.axes)
        boxes = cancel_terms(checked)
        lows, highs = (
            np.array([box[end] for box in boxes], np.uint64).reshape(-1, len(self.axes)) for end in (0, 1)
        )
        bounded = np.asarray(self._bounded(lows, highs).any(axis=0))
        for axis, column in self.columns.items():
            if bounded[axis] and bounded.sum() == 1:
                return column.answer([(low[axis], high[axis] + 1, sign) for low, high, sign in boxes])
        answer = self.joined.answer(*checked)
        bounds, spread = partial(self._bounds, answer, checked), partial(self._spread, answer, lows, highs)
        return replace(answer, spread=spread, bounds=bounds, basis=self._basis(lows, highs))

    def _spread(self, answer: Answer, lows: Corners, highs: Corners) -> float:
        """The standard error of an answer, which is at least what one value in each leaf would make it."""
        if self._doubt is None or not len(lows):
            return answer.error
        return float(self._doubt.widen(np.array([answer.error]), lows, highs, len(lows))[0])

    @cached_property
    def _doubt(self) -> BoxDoubt | None:
        """What the errors of a tree lack; rank boxes have none."""
        if not isinstance(self.boxes, SpendingBoxesRelease):
            return None
        heaps = None
        if len(self.audits) > self._modelled:
            grids, widths = self.audit_grids()[-1], [axis.width for axis in self.axes]
            heaps = find_heaps(self._tree, grids, self._misfit(-1, len(grids)), widths)
        return BoxDoubt(self.axes, self._tree, np.sqrt(self.boxes.solution.variances / 2), heaps)

    @property
    def _tree(self) -> BoxEngine:
        """The tree after the fit."""
        return cast(FittedBoxes | SpendingBoxesRelease, self.fitted).engine

    def counts(self, lows: Corners, highs: Corners) -> Floats:
        """The value of each box."""
        lows, highs = check_boxes(lows, highs, self.axes)
        found, bounded = np.zeros(len(lows)), self._bounded(lows, highs)
        rest = np.ones(len(lows), bool)
        for axis, column in self.columns.items():
            alone = bounded[:, axis] & (bounded.sum(axis=1) == 1)
            found[alone] = column.counts(lows[alone, axis], highs[alone, axis])
            rest &= ~alone
        if rest.any():
            found[rest] = self.fitted.counts(lows[rest], highs[rest])
        return found

    def errors(self, lows: Corners, highs: Corners, *, parts: int = 1) -> Floats:
        """The standard error of each box, or of the sums of some."""
        lows, highs = check_boxes(lows, highs, self.axes)
        bounded = np.asarray(self._bounded(lows, highs).reshape(-1, parts, len(self.axes)).any(axis=1))
        found, rest = np.zeros(len(bounded)), np.ones(len(bounded), bool)
        for axis, column in self.columns.items():
            alone = bounded[:, axis] & (bounded.sum(axis=1) == 1)
            sizes = (highs[:, axis] - lows[:, axis]).astype(np.float64).reshape(-1, parts) + 1.0
            found[alone] = column.errors(sizes[alone].sum(axis=1))
            rest &= ~alone
        if rest.any():
            some = np.repeat(rest, parts)
            found[rest] = self.joined.errors(lows[some], highs[some], parts=parts)
            if self._doubt is not None:
                found[rest] = self._doubt.widen(found[rest], lows[some], highs[some], parts)
        return found

    def error(self, beta: float) -> float:
        """With probability 1 - beta no box at all misses the truth by more."""
        share = float(check_probability(beta)) / (1 + len(self.columns))
        return max(self.joined.error(share), *(each.error(share) for each in self.columns.values()), 0.0)

    def along(self, axis: int, box: BoxTerm) -> Curve:
        """Cumulative counts along one axis, of what lies in the box on the others."""
        along = integer(axis, "axis", low=0, high=len(self.axes) - 1)
        ((low, high, _),) = check_terms([box], self.axes)
        bounded = self._bounded(np.array([low], np.uint64), np.array([high], np.uint64))[0]
        bounded[along] = False
        if along in self.columns and not bounded.any():
            return self.columns[along].curve
        return self.fitted.along(along, box)

    def region(self, region: Region, box: BoxTerm) -> Answer:
        """How many lie in a public region and in the box."""
        return self.fitted.region(region, box)

    def points(self, rows: int) -> Corners:
        """Positions of synthetic rows."""
        return self.fitted.points(rows)

    @property
    def spent(self) -> Fraction:
        """What a row costs: in the total, at one position of each view, in the boxes and in the audits."""
        views = sum((view.spent for view in self.views.values()), Fraction(0))
        total = Fraction(0) if self.scale is None else 1 / self.scale
        audits = Fraction(0) if self.audit_scale is None else len(self.audits) / self.audit_scale
        return total + views + self.boxes.spent + audits

    @property
    def story(self) -> str:
        """What was chosen, and by which released numbers."""
        first = (
            ""
            if self.total is None
            else f"A first count of about {max(0, self.total):,} rows chose the boxes. "
        )
        names = ", ".join(str(axis + 1) for axis in self.columns)
        many = "s" * (len(self.columns) > 1)
        viewed = f"Every position of column{many} {names} is counted by itself. " if names else ""
        return f"{first}{viewed}{self.boxes.story}".rstrip()

    def basis(self, columns: Iterable[int]) -> str:
        """What answers about these columns rest on: on the way rows lie inside of leaves, if any is cut.

        An answer about one column is measured, and so is every one of a grid. In a tree a range of several
        columns may be inferred where a leaf has several positions of one of them; `answer` says of its own
        boxes whether they are.
        """
        wanted = sorted(set(columns))
        if len(wanted) < 2 or isinstance(self.boxes, GridRelease):
            return "measured"
        lows, highs = self.boxes.engine.nodes.corners(self.boxes.engine.nodes.leaves)
        return "inferred" if bool((lows[:, wanted] < highs[:, wanted]).any()) else "measured"

    @property
    def has_model(self) -> bool:
        """No: boxes are counted, and a model only says how rows lie inside of them."""
        return False

    def parts(self) -> Parts:
        """The boxes with their kind, the views, the total, and the public facts."""
        boxes = self.boxes.parts()
        facts: dict[str, Json] = {
            "kind": self.boxes.kind,
            "boxes": dict(boxes.facts),
            "total": self.total,
            "scale": None if self.scale is None else str(self.scale),
            "views": [[axis, str(view.scale)] for axis, view in self.views.items()],
        }
        if self.audit_scale is not None:
            facts |= {"audits": list(self.audits), "audit_scale": str(self.audit_scale)}
        views = {_name(axis): view.noisy for axis, view in self.views.items()}
        return Parts(facts, {**boxes.series, **views})

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: Guarantee | None) -> Self:
        """The release that `parts` took apart; anything else is an `InvalidRelease`."""
        reader = PartsReader(parts)
        audited = "audits" in parts.facts
        reader.expect(facts=_FACTS + _AUDIT_FACTS * audited, series=parts.series)
        kind, facts = parts.facts["kind"], parts.facts["boxes"]
        if not isinstance(kind, str) or kind not in _INNER:
            raise damaged("kind", f"must be one of {', '.join(_INNER)}")
        if not isinstance(facts, dict):
            raise damaged("boxes", "must be told by their facts")
        scales = _read_scales(reader)
        names = {_name(axis) for axis in scales}
        series = {name: values for name, values in parts.series.items() if name not in names}
        boxes = _INNER[kind].from_parts(Parts(facts, series), None)
        return cls(
            boxes=boxes,
            views={axis: _read_view(reader, boxes.axes, axis, scale) for axis, scale in scales.items()},
            total=reader.optional("total", partial(reader.integer, low=-LARGEST_TOTAL, high=LARGEST_TOTAL)),
            scale=reader.optional("scale", reader.scale),
            audits=_read_audits(parts) if audited else (),
            audit_scale=reader.scale("audit_scale") if audited else None,
            guarantee=guarantee,
        )

    @cached_property
    def _best_total(self) -> NoisyTotal | None:
        """The number of all rows with the least noise: the total, or the first look of a tree."""
        trees: tuple[SpendingBoxesRelease | PlainView, ...] = ()
        if isinstance(self.boxes, SpendingBoxesRelease):
            trees = (self.boxes,)
        elif isinstance(self.boxes, RankBoxesRelease):
            trees = self.boxes.views.trees
        found = [] if self.total is None or self.scale is None else [NoisyTotal(self.total, self.scale)]
        for tree in trees:
            if isinstance(tree, SpendingBoxesRelease) and tree.looks.nodes[0] == 0:
                looks = tree.looks
                found.append(NoisyTotal(int(looks.noisy[0]), tree.scale / int(looks.units[0])))
        return min(found, key=lambda each: each.scale, default=None)

    def _bounded(self, lows: Corners, highs: Corners) -> Bools:
        """Which axes each box bounds."""
        last = np.array([axis.width - 1 for axis in self.axes], np.uint64)
        return np.asarray((lows > 0) | (highs < last))

    def _basis(self, lows: Corners, highs: Corners) -> str:
        """What an answer about boxes rests on: "inferred" if every leaf that meets one of them is cut."""
        if isinstance(self.boxes, GridRelease) or not len(lows) or len(lows) > _MOST_TERMS:
            return "measured"
        nodes = self.boxes.engine.nodes
        first, last = nodes.corners(nodes.leaves)
        inside = (
            ((first >= low) & (last <= high)).all(axis=1).any() for low, high in zip(lows, highs, strict=True)
        )
        return "measured" if any(inside) else "inferred"

    def _bounds(self, answer: Answer, terms: Sequence[BoxTerm], beta: float) -> tuple[float, float]:
        """What the boxes allow, and what the views of the sides do, with half of beta each."""
        low, high = answer.bounds(beta / 2)
        if not terms or len(terms) > _MOST_TERMS or not self.columns:
            return low, high
        least = most = 0.0
        for term in terms:
            top = self._most(term, beta / 2 / len(terms))
            least, most = (least, most + top) if term.sign > 0 else (least - top, most)
        return max(low, least), min(high, most)

    def _most(self, box: BoxTerm, beta: float) -> float:
        """A guaranteed upper bound on a box: it has no more rows than any of its sides."""
        share = beta / len(self.columns)
        sides = (
            column.answer([(box.low[axis], box.high[axis] + 1, 1)]).bounds(share)[1]
            for axis, column in self.columns.items()
        )
        return max(0.0, min(sides))


def _name(axis: int) -> str:
    """The name of the series of a view."""
    return f"view{axis}"


def _read_audits(parts: Parts) -> tuple[int, ...]:
    """The noisy sums of the audits."""
    listed = parts.facts["audits"]
    if not isinstance(listed, list) or not all(type(each) is int for each in listed):
        raise damaged("audits", "must be whole numbers")
    if any(abs(each) > LARGEST_NUMBER for each in listed if isinstance(each, int)):
        raise damaged("audits", "must have at most 127 bits")
    return tuple(each for each in listed if isinstance(each, int))


def _read_scales(reader: PartsReader) -> dict[int, Fraction]:
    """The noise scale of each view, by the number of its axis."""
    listed = reader.parts.facts["views"]
    scales: dict[int, Fraction] = {}
    for given in listed if isinstance(listed, list) else [None]:
        match given:
            case [int(axis), str(scale)] if type(axis) is int and axis not in scales:
                one = PartsReader(Parts({"scale": scale}, {}))
                scales[axis] = one.scale("scale")
            case _:
                raise damaged("views", "must be pairs of the number of an axis and a noise scale")
    return scales


def _read_view(reader: PartsReader, axes: Sequence[Axis], axis: int, scale: Fraction) -> PlainView:
    if not 0 <= axis < len(axes):
        raise damaged("views", "must be views of axes of the boxes")
    return PlainView(axis=axes[axis], noisy=reader.noisy(_name(axis)), scale=scale)
