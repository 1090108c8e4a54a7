"""The checks that every mechanism passes, and that wrong mechanisms do not."""

from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError, dataclass, replace
from fractions import Fraction
from itertools import count
from typing import Any

import pytest

from partita import (
    Axis,
    GridCounts,
    GridRelease,
    Guarantee,
    Histogram,
    LinearQueries,
    Partition,
    Points,
    Tree,
    TreeRelease,
)
from partita.guarantee import Neighbors
from partita.testing import check_mechanism, mechanisms
from partita.trusted.mechanisms.base import Private
from partita.trusted.noise.system import SYSTEM, Noise


def test_discovery_finds_the_mechanisms() -> None:
    """Whatever the package exports with a guarantee and a release is a mechanism."""
    assert {Partition, Tree, GridCounts} <= set(mechanisms())


@pytest.mark.parametrize("mechanism", mechanisms(), ids=lambda mechanism: mechanism.__name__)
def test_every_mechanism_passes(mechanism: type[Any]) -> None:
    """Every mechanism keeps every rule of the suite."""
    check_mechanism(mechanism)


@pytest.mark.parametrize("mechanism", [*mechanisms(), LinearQueries], ids=lambda each: each.__name__)
def test_every_mechanism_spells_out_its_parameters(mechanism: type[Any]) -> None:
    """Each parameter of a mechanism has a name of its own and is given by it, those that all have too."""
    parameters = inspect.signature(mechanism).parameters

    assert {each.kind for each in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert {"epsilon", "neighbors", "contributions", "unit"} <= set(parameters)
    assert issubclass(mechanism, Private)


@pytest.mark.parametrize(
    ("neighbors", "contributions", "rows"),
    [("add-remove", 1, 1), ("add-remove", 3, 3), ("change-one", 1, 2), ("change-one", 3, 6)],
)
def test_the_rate_is_epsilon_for_each_row_that_may_change(
    neighbors: Neighbors, contributions: int, rows: int
) -> None:
    """Neighbours differ by up to `rows_changed` rows, each of which may cost the rate."""
    tree = Tree(size=4, epsilon="0.6", neighbors=neighbors, contributions=contributions)

    assert (tree.rows_changed, tree.rate) == (rows, Fraction(6, 10 * rows))
    assert tree.guarantee == Guarantee(epsilon="0.6", **tree.protected)


@dataclass(frozen=True, init=False)
class Right:
    """A tree behind another name.

    Guarantee: epsilon-DP, pure.
    Error:     that of a tree.
    Proof:     that of a tree.
    """

    tree: Tree

    def __init__(self, **parameters: Any) -> None:
        object.__setattr__(self, "tree", Tree(**parameters))

    @property
    def guarantee(self) -> Guarantee:
        return self.tree.guarantee

    @property
    def changed(self) -> Fraction:
        return self.tree.changed

    def release(self, data: Histogram, *, noise: Noise = SYSTEM) -> TreeRelease:
        return self.tree.release(data, noise=noise)


class Thawed(Right):
    """Can be written.

    Guarantee: epsilon-DP, pure.
    Error:     that of a tree.
    Proof:     that of a tree.
    """

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


class Unproved(Right):
    """Guarantee: epsilon-DP, pure. Error: that of a tree."""


class Disordered(Right):
    """Proof: none. Error: that of a tree. Guarantee: epsilon-DP, pure."""


class _Documented(Right):
    __doc__ = Right.__doc__

    def __init_subclass__(cls) -> None:
        cls.__doc__ = Right.__doc__


class Boastful(_Documented):
    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(epsilon=self.tree.epsilon / 2)


class Ignorant(_Documented):
    """Noise for add-remove neighbours whatever was asked for."""

    def release(self, data: Histogram, *, noise: Noise = SYSTEM) -> TreeRelease:
        tree = Tree(size=self.tree.size, epsilon=self.tree.epsilon, contributions=self.tree.contributions)
        return replace(tree.release(data, noise=noise), guarantee=self.guarantee if noise.secure else None)


class Stingy(_Documented):
    """Noise for one row whatever the contribution bound."""

    def release(self, data: Histogram, *, noise: Noise = SYSTEM) -> TreeRelease:
        levels = tuple(
            noise.add([data.total], Fraction(len(self.tree.widths)) / self.tree.epsilon) for _ in range(2)
        )
        return replace(self.tree.release(data, noise=noise), levels=levels)


class Silent(_Documented):
    """No noise at all."""

    def release(self, data: Histogram, *, noise: Noise = SYSTEM) -> TreeRelease:
        levels = (data.counts,)
        scales = (Fraction(1),)
        return TreeRelease(levels=levels, size=8, branching=2, scales=scales, guarantee=self.guarantee)


class Careless(_Documented):
    """Promises privacy with injected noise."""

    def release(self, data: Histogram, *, noise: Noise = SYSTEM) -> TreeRelease:
        return replace(self.tree.release(data, noise=noise), guarantee=self.guarantee)


class Hasty(_Documented):
    """Asks for noise before it checks the data."""

    def release(self, data: Histogram, *, noise: Noise = SYSTEM) -> TreeRelease:
        return self.tree.release(data, noise=noise.session())


class Talkative(_Documented):
    """Shows the data in an error."""

    def release(self, data: Histogram, *, noise: Noise = SYSTEM) -> TreeRelease:
        if not isinstance(data, Histogram):
            raise ValueError(f"cannot read {data}")
        return self.tree.release(data, noise=noise)


class Erratic(_Documented):
    """Differs from call to call without noise."""

    calls = count()

    def release(self, data: Histogram, *, noise: Noise = SYSTEM) -> TreeRelease:
        return replace(self.tree.release(data, noise=noise), branching=2 + next(self.calls))


class Lax(_Documented):
    """Takes any contribution bound."""

    def __init__(self, **parameters: Any) -> None:
        bound = parameters.get("contributions", 1)
        super().__init__(**{**parameters, "contributions": bound if bound in (2, 3) else 1})


WRONG: list[tuple[type[Right], str]] = [
    (Thawed, "is not frozen"),
    (Unproved, "lacks a Guarantee, Error or Proof line"),
    (Disordered, "in another order"),
    (Boastful, "^"),
    (Ignorant, "change-one"),
    (Stingy, "contributions"),
    (Silent, "asks for no noise"),
    (Careless, "^"),
    (Hasty, "before the input was checked|gave"),
    (Talkative, "gave"),
    (Erratic, "branching"),
    (Lax, "contributions"),
]


def test_a_right_mechanism_of_any_make_passes() -> None:
    """The suite asks for behaviour, not for a base class."""
    check_mechanism(Right)
    with pytest.raises(FrozenInstanceError):
        Right(size=2, epsilon=1).tree = Tree(size=2, epsilon=2)  # type: ignore[misc]


@pytest.mark.parametrize(("mechanism", "why"), WRONG, ids=lambda value: getattr(value, "__name__", ""))
def test_wrong_mechanisms_fail(mechanism: type[Right], why: str) -> None:
    """Each planted fault is caught by the check that is about it."""
    with pytest.raises(AssertionError, match=why):
        check_mechanism(mechanism)


@dataclass(frozen=True, init=False)
class RightBoxes:
    """A grid behind another name.

    Guarantee: epsilon-DP, pure.
    Error:     that of a grid.
    Proof:     that of a grid.
    """

    grid: GridCounts

    def __init__(self, *, axes: Any, **parameters: Any) -> None:
        object.__setattr__(self, "grid", GridCounts(axes=axes, **parameters))

    def __init_subclass__(cls) -> None:
        cls.__doc__ = RightBoxes.__doc__

    @property
    def guarantee(self) -> Guarantee:
        return self.grid.guarantee

    def release(self, points: Points, *, noise: Noise = SYSTEM) -> GridRelease:
        return self.grid.release(points, noise=noise)


class BoastfulBoxes(RightBoxes):
    @property
    def guarantee(self) -> Guarantee:
        return replace(self.grid.guarantee, epsilon=self.grid.epsilon / 2)


class IgnorantBoxes(RightBoxes):
    """Noise for add-remove neighbours whatever was asked for."""

    def release(self, points: Points, *, noise: Noise = SYSTEM) -> GridRelease:
        other = GridCounts(
            axes=self.grid.axes, epsilon=self.grid.epsilon, contributions=self.grid.contributions
        )
        return replace(other.release(points, noise=noise), guarantee=self.guarantee if noise.secure else None)


class StingyBoxes(RightBoxes):
    """Noise for one row whatever the contribution bound."""

    def release(self, points: Points, *, noise: Noise = SYSTEM) -> GridRelease:
        bound = Points(points.axes, points.places, points.counts)
        other = GridCounts(axes=self.grid.axes, epsilon=self.grid.epsilon, neighbors=self.grid.neighbors)
        self.grid.fitting(points)
        return replace(other.release(bound, noise=noise), guarantee=self.guarantee if noise.secure else None)


class CarelessBoxes(RightBoxes):
    """Promises privacy with injected noise."""

    def release(self, points: Points, *, noise: Noise = SYSTEM) -> GridRelease:
        return replace(self.grid.release(points, noise=noise), guarantee=self.guarantee)


class HastyBoxes(RightBoxes):
    """Asks for noise before it checks the data."""

    def release(self, points: Points, *, noise: Noise = SYSTEM) -> GridRelease:
        return self.grid.release(points, noise=noise.session())


class TalkativeBoxes(RightBoxes):
    """Shows the data in an error."""

    def release(self, points: Points, *, noise: Noise = SYSTEM) -> GridRelease:
        if not isinstance(points, Points):
            raise ValueError(f"cannot read {points}")
        return self.grid.release(points, noise=noise)


class LaxBoxes(RightBoxes):
    """Takes any number of axes."""

    def __init__(self, *, axes: Any, **parameters: Any) -> None:
        super().__init__(axes=axes[:6] if isinstance(axes, list) else axes, **parameters)


class StrayBoxes(RightBoxes):
    """Takes points on any axes as if they were on its own."""

    def release(self, points: Points, *, noise: Noise = SYSTEM) -> GridRelease:
        other = GridCounts(axes=points.axes, epsilon=self.grid.epsilon, contributions=points.contributions)
        return other.release(points, noise=noise)


WRONG_BOXES: list[tuple[type[RightBoxes], str]] = [
    (BoastfulBoxes, "^"),
    (IgnorantBoxes, "change-one"),
    (StingyBoxes, "contributions"),
    (CarelessBoxes, "^"),
    (HastyBoxes, "before the input was checked|gave"),
    (TalkativeBoxes, "gave"),
    (LaxBoxes, "axes"),
    (StrayBoxes, "change-one|gave"),
]


def test_a_right_mechanism_over_boxes_passes() -> None:
    """It is made with axes, and known by that."""
    check_mechanism(RightBoxes)
    assert "axes" not in inspect.signature(Right).parameters
    assert RightBoxes(axes=[Axis(size=2)], epsilon=1).guarantee == Guarantee(epsilon=1)


@pytest.mark.parametrize(("mechanism", "why"), WRONG_BOXES, ids=lambda value: getattr(value, "__name__", ""))
def test_wrong_mechanisms_over_boxes_fail(mechanism: type[RightBoxes], why: str) -> None:
    """Each planted fault is caught by the check that is about it."""
    with pytest.raises(AssertionError, match=why):
        check_mechanism(mechanism)
