"""A report about one of several views, chosen without a look at anybody's value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias, final

from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.local.frequency.frequency import Frequency
from partita.local.question.hierarchy import View
from partita.local.randomizer.draws import Draws, Numbers
from partita.local.randomizer.law import LARGEST_SIZE, Json, LocalLaw, Pmf
from partita.local.randomizer.randomizer import FrequencyRandomizer, Randomizer
from partita.local.randomizer.thresholds import checked_epsilon
from partita.numbers import freeze, one_of

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
    views: tuple[View, ...]
    parts: tuple[FrequencyRandomizer, ...]

    def __post_init__(self) -> None:
        freeze(self, views=checked_views(self.views))
        pairs = zip(self.views, self.parts, strict=False)
        fits = all(_fits(view, part, self.epsilon) for view, part in pairs)
        rule = "must have a randomizer for each view, all of one epsilon"
        check(fits and len(self.parts) == len(self.views), "parts", rule, given=None, fix=_READ)

    @classmethod
    def of(cls, views: Sequence[View], *, epsilon: object, kind: ViewKind = "auto") -> Self:
        """The mixture with a randomizer of this kind for each view."""
        one_of(kind, "kind", VIEW_KINDS)
        exact, own = checked_epsilon(epsilon), checked_views(views)
        size = _checked_size(own)
        parts = tuple(Frequency(view.size, epsilon=exact, kind=kind).randomizer for view in own)
        return cls(size=size, epsilon=exact, views=own, parts=parts)

    @classmethod
    def read(cls, views: Sequence[View], parts: Sequence[Randomizer]) -> Self:
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


def checked_views(views: Iterable[object]) -> tuple[View, ...]:
    """The views made anew from their numbers.

    A report is charged by what `View` sees of a cell. An object that only looks like a view, or a view that
    was changed after it was made, may see more.
    """
    made = tuple(_made_anew(view) for view in views)
    rule = "must be at least one, all of the same columns"
    check(len({view.lines for view in made}) == 1, "views", rule, given=None, fix="pass the same lines")
    return made


def _made_anew(view: Any) -> View:
    check(type(view) is View, "views", "must be views", given=None, fix="pass those of line_views(Line(8))")
    return View(view.lines, view.levels)


def _fits(view: View, part: FrequencyRandomizer, epsilon: Fraction) -> bool:
    return part.size == view.size and part.epsilon == epsilon and part.kind in VIEW_KINDS


def _checked_size(views: Sequence[View]) -> int:
    """The number of cells of all columns together, if views of them can be reported and counted."""
    size = prod(line.size for line in views[0].lines)
    if len(views) > _MOST_VIEWS or size > _LARGEST_SPACE or sum(view.size for view in views) > LARGEST_SIZE:
        rule = f"must leave at most {_MOST_VIEWS} views with {LARGEST_SIZE} nodes in all"
        raise InvalidParameter("domain", rule, given=None, fix="make the columns coarser, or fewer")
    return size
