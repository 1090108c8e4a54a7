"""What is asked of a view of sums: its keys, the summed column, and the mechanism that will release it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, final

from partita.domain.axis import LARGEST_AXIS, Axis
from partita.domain.base.base import Domain
from partita.errors.checks import check
from partita.guarantee.guarantee import Guarantee
from partita.public.file_entries.file_views import sums_described
from partita.public.file_entries.published import Published
from partita.public.results.totals import AnyView
from partita.public.sums.view.key_counts import KeyCounts
from partita.public.sums.view.sum_view import Sums, SumView, sum_name
from partita.publish.views.view_request import Facts, ViewRequest, facts_of
from partita.trusted.mechanisms.catalogue import Choice
from partita.trusted.mechanisms.sums.level_trees import LevelTrees
from partita.trusted.mechanisms.sums.log_tree import LogTree
from partita.trusted.secret.points import Points
from partita.trusted.sources.tally.tally import Tally

_OWN_KEY: Final = (
    "The column is its own key, so that one tree of counts tells the sums between any two values."
)


@final
@dataclass(frozen=True, kw_only=True)
class SumRequest(ViewRequest[Points]):
    """The columns that are counted together, of which the last is summed and the others are keys.

    Where the only key is the summed column itself, sums are asked for between two of its values, and
    variances as well. `split` says how the view came by its part of epsilon.
    """

    error_of: ClassVar[str] = "a sum by a random range of keys, in multiples of the largest value it covers"

    keys: tuple[str, ...]
    moments: bool
    split: str = ""

    @property
    def name(self) -> str:
        """The summed column and its keys in words."""
        return sum_name(self.column, self.keys)

    @property
    def column(self) -> str:
        """The summed column."""
        return self.columns[-1]

    @property
    def declared(self) -> dict[str, Domain]:
        """The domain of each column."""
        return dict(zip(self.columns, self.domains, strict=True))

    @property
    def described(self) -> dict[str, Any]:
        """Keys, the summed column and their domains in words that JSON can write."""
        return sums_described(self.keys, self.column, self.declared)

    @property
    def why(self) -> str:
        """How the mechanism was chosen, and how its part of epsilon."""
        return f"{self.choice.why} {self.split}".strip()

    @property
    def asked(self) -> dict[str, Any]:
        """What was asked for, whether variances, too."""
        return {**super().asked, "moments": self.moments}

    def describes(self, view: Published) -> bool:
        """Whether a view is of these sums, and of squares if they are asked for."""
        return super().describes(view) and isinstance(view, SumView) and view.moments == self.moments

    def counted(self, rows: Tally) -> Points:
        """How many rows have each combination of keys and value."""
        return rows.points(self.columns)

    def release(self, counted: Points, views: Sequence[AnyView] = ()) -> SumView:
        """The sums by their mechanism, which cuts the keys by what the views of counts have released."""
        beside = KeyCounts.of_sums(views, self.keys, self.column)
        return SumView(
            keys=self.keys,
            column=self.column,
            declared=self.declared,
            sums=self._released(counted, beside),
            beside=beside,
            mechanism=self.choice.name,
            why=self.why,
        )

    def _released(self, counted: Points, beside: KeyCounts | None) -> Sums:
        mechanism: LevelTrees | LogTree = self.choice.mechanism
        if isinstance(mechanism, LogTree):
            return mechanism.release(counted)
        return mechanism.release(counted, beside)


def sum_request(
    schema: Mapping[str, Domain],
    keys: tuple[str, ...],
    share: Fraction,
    guarantee: Guarantee,
    *,
    moments: bool,
) -> SumRequest:
    """A view of sums of the last column of the schema, by these keys, that gets this share of a guarantee."""
    _check_keys(keys, schema)
    return SumRequest(
        columns=tuple(schema),
        domains=tuple(schema.values()),
        share=share,
        choice=_choice(schema, keys, facts_of(guarantee, share), moments=moments),
        keys=keys,
        moments=moments or keys == tuple(schema),
    )


def _choice(
    schema: Mapping[str, Domain], keys: tuple[str, ...], facts: Facts, *, moments: bool
) -> Choice[LevelTrees | LogTree]:
    """The mechanism that the keys speak for, and why."""
    column, domain = list(schema.items())[-1]
    if keys == (column,):
        tree = LogTree(value=domain, **facts)
        return Choice(tree.name, f"{_OWN_KEY} {tree.why}".rstrip(), tree)
    axes = tuple(Axis.of(schema[key]) for key in keys)
    trees = LevelTrees(keys=axes, value=domain, moments=moments, **facts)
    return Choice(trees.name, trees.why, trees)


def _check_keys(keys: tuple[str, ...], schema: Mapping[str, Domain]) -> None:
    for key in keys:
        rule = "must have keys of at most 2^63 cells"
        fix = "make its domain coarser, or leave it out of the views"
        check(schema[key].size <= LARGEST_AXIS, "sums", rule, given=key, fix=fix)
