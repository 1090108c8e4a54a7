"""Several columns of a release together: a box of cells, special cells included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from partita.answer import Answer, Answers
from partita.domain.axis import LARGEST_AXIS, Axis
from partita.domain.base.base import Domain
from partita.errors.checks import check_release
from partita.guarantee.guarantee import Guarantee, rows_changed
from partita.public.base.checkpoint import checkpoint
from partita.public.base.html import view_card
from partita.public.boxes.base.boxes import Boxes, BoxTerm
from partita.public.boxes.regions.regions import PublicRegion
from partita.public.conditions import Where
from partita.public.views.box_where import box_terms, described, many_boxes
from partita.public.views.slice import BoxSlice, Slice


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class BoxView:
    """Columns, their public domains, and what was released about them together.

    `mechanism` is the name under which the mechanism is listed, and `why` the sentence that says how
    it was chosen, a function of public facts. What is asked of a view names some of its columns; a column
    that is not asked for is not constrained, and its special cells count too.
    """

    columns: tuple[str, ...]
    domains: tuple[Domain, ...]
    boxes: Boxes
    mechanism: str
    why: str = ""

    def __post_init__(self) -> None:
        rule, fix = "must be different", "release each column once"
        check_release(self.columns and len(set(self.columns)) == len(self.columns), "columns", rule, fix=fix)
        rule, fix = "must have the cells of their domains", "get the file again"
        check_release(len(self.domains) == len(self.columns) and self._fits, "boxes", rule, fix=fix)

    def __repr__(self) -> str:
        return f"BoxView({', '.join(self.columns)}; {self.mechanism})"

    def _repr_html_(self) -> str:
        return view_card(self, self.declared)

    @property
    def guarantee(self) -> Guarantee | None:
        """What was promised; None for injected noise."""
        return self.boxes.guarantee

    @property
    def keeps_its_promise(self) -> bool:
        """Whether the boxes have the noise that the guarantee asks for."""
        promise = self.guarantee
        return promise is None or promise.epsilon >= self.boxes.spent * rows_changed(
            promise.neighbors, promise.contributions
        )

    @property
    def declared(self) -> Mapping[str, Domain]:
        """The domain of each column."""
        return dict(zip(self.columns, self.domains, strict=True))

    @property
    def total(self) -> Answer:
        """How many rows there are: those in special cells, too."""
        return self.boxes.answer(self.boxes.everything)

    def count(self, asked: Where) -> Answer:
        """How many rows are in the cells asked for."""
        return self._answer(box_terms(self.declared, asked))

    def difference(self, added: Where, taken: Where) -> Answer:
        """How many more rows one question counts than another, as one linear question."""
        plus, minus = (box_terms(self.declared, asked) for asked in (added, taken))
        return self._answer((*plus, *(box._replace(sign=-1) for box in minus)))

    def counts(self, asked: Where) -> Answers:
        """How many rows are in each of many boxes."""
        return many_boxes(self.declared, asked).answers(self.boxes)

    def slice(self, column: str, asked: Where) -> Slice:
        """One column, of the rows that are in the cells asked for of the others."""
        terms = box_terms(self.declared, asked)
        number = self.columns.index(column)
        axis = BoxSlice(self.boxes, number, terms)
        return Slice(column, self.domains[number], axis, described(asked), one_by_one=True)

    def within(self, shape: PublicRegion, asked: Where) -> Answer:
        """How many rows are in a public shape, which has no special cells, and in the cells asked for.

        Where values of several ranges are asked for, the errors of the parts are taken to be independent.
        """
        region = shape.bound(self.columns, self.domains)
        terms = self._ordinary(shape.columns, box_terms(self.declared, asked))
        found = []
        for box in terms:
            checkpoint()
            found.append(self.boxes.region(region, box))
        return Answer.together(found) if found else Answer.exact(0.0)

    def error(self, beta: float) -> float:
        """With probability 1 - beta no box misses the truth by more."""
        return self.boxes.error(beta)

    def _answer(self, terms: tuple[BoxTerm, ...]) -> Answer:
        return self.boxes.answer(*terms) if terms else Answer.exact(0.0)

    def _ordinary(self, columns: Sequence[str], terms: Iterable[BoxTerm]) -> Iterator[BoxTerm]:
        """The boxes without the special cells of some columns; nothing of one that has no others."""
        named = list(zip(self.columns, self.boxes.axes, strict=True))
        first = [axis.before if name in columns else 0 for name, axis in named]
        last = [axis.position(axis.size) - 1 if name in columns else axis.width - 1 for name, axis in named]
        for box in terms:
            low, high = tuple(map(max, box.low, first)), tuple(map(min, box.high, last))
            if all(a <= b for a, b in zip(low, high, strict=True)):
                yield BoxTerm(low, high)

    @property
    def _fits(self) -> bool:
        return all(domain.size <= LARGEST_AXIS for domain in self.domains) and (
            self.boxes.axes == tuple(map(Axis.of, self.domains))
        )
