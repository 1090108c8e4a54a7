"""The constants by which a tree of boxes spends: public, chosen by the axes alone."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final, final

from partita.domain.axis import Axis
from partita.errors.checks import check
from partita.numbers import Exact, freeze, frozen, parameter, rational
from partita.public.axis.tree_solver.spending_rule import SpendingRule

_FEW_CELLS: Final = 2**10
"""Axes with more cells were best cut by one bit at a time, on shown data."""

_LARGEST: Final = Fraction(2**62)


@final
@frozen(kw_only=True)
class Recipe:
    """The constants of a `SpendingRule`, exactly.

    >>> Recipe(growth="3/2", worth=3, depth_power=1).rule(0.5).worth
    3.0
    """

    growth: Exact = parameter()
    worth: Exact = parameter()
    depth_power: Exact = parameter()

    def __post_init__(self) -> None:
        freeze(
            self,
            growth=_between(self.growth, "growth", 1 / _LARGEST, _LARGEST),
            worth=_between(self.worth, "worth", 1 / _LARGEST, _LARGEST),
            depth_power=_between(self.depth_power, "depth_power", Fraction(0), Fraction(1)),
        )

    def rule(self, unit: float) -> SpendingRule:
        """The rule, if a unit of budget is worth that much epsilon."""
        return SpendingRule(
            unit=unit, growth=self.growth, worth=float(self.worth), depth_power=float(self.depth_power)
        )


def usual_bits(axes: Sequence[Axis]) -> int:
    """By how many bits a level cuts each axis: two along one axis and over few cells, else one."""
    return 2 if len(axes) == 1 or _few(axes) else 1


def usual_recipe(axes: Sequence[Axis]) -> Recipe:
    """The constants that were best on shown data: for two axes of few cells, of many, and for the rest."""
    if _few(axes):
        return Recipe(growth="7/5", worth=8, depth_power="1/2")
    if len(axes) == 2:
        return Recipe(growth="5/3", worth=7, depth_power=1)
    return Recipe(growth="3/2", worth=3, depth_power=1)


def _few(axes: Sequence[Axis]) -> bool:
    return len(axes) == 2 and all(axis.size <= _FEW_CELLS for axis in axes)


def _between(value: object, name: str, low: Fraction, high: Fraction) -> Fraction:
    exact = rational(value, name)
    check(low <= exact <= high, name, f"must lie between {low} and {high}", given=value, fix="leave it out")
    return exact
