"""A whole column: its axis by any axis mechanism, and the special cells beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from partita.errors.checks import check_data
from partita.errors.errors import InvalidData, InvalidParameter
from partita.guarantee.guarantee import Guarantee, Neighbors, rows_changed
from partita.numbers import freeze
from partita.public.axis.base.ranges import Ranges
from partita.public.axis.base.specials import Specials
from partita.trusted.mechanisms.base.checks import check_scale, fitting
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.histogram import AxisCounts

_LARGEST_COUNT = 2**62


class AxisMechanism(Protocol):
    """A mechanism over the cells 0, ..., size-1 of one axis, private row by row.

    What every one of them must keep: adding or removing one row costs at most
    epsilon / rows_changed(neighbors, contributions).
    """

    @property
    def size(self) -> int: ...

    @property
    def epsilon(self) -> Fraction: ...

    @property
    def neighbors(self) -> Neighbors: ...

    @property
    def contributions(self) -> int: ...

    @property
    def guarantee(self) -> Guarantee: ...

    def predicted_error(self, rows: int) -> float:
        """About the root-mean-square error of a random range if there are that many rows."""

    def predicted_numbers(self, rows: int) -> int:
        """About how many integers the release holds."""

    def release(self, data: AxisCounts, *, noise: Noise = ...) -> Ranges:
        """Draw noise and release."""


@final
@dataclass(frozen=True, kw_only=True)
class WithSpecials:
    """Publish a column: the ordered cells by `axis`, and a noisy count of each special cell.

    Guarantee: epsilon-DP, pure, the same as that of `axis`; ADD_REMOVE or CHANGE_ONE.
    Error:     that of `axis` on the axis; noise of scale rows_changed / epsilon in each special cell.
    Proof:     docs/proofs/special_cells.md (a row is on the axis or in one special cell)

    >>> from partita.trusted.mechanisms.tree.tree import Tree
    >>> column = WithSpecials(axis=Tree(size=8, epsilon=1), specials=("below", "above", "invalid", "null"))
    >>> column.guarantee.epsilon, column.scale
    (Fraction(1, 1), Fraction(1, 1))
    """

    axis: AxisMechanism
    specials: tuple[str, ...]

    def __post_init__(self) -> None:
        freeze(self, specials=_names(self.specials))
        check_scale(self.scale, self.axis.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """What the release of axis and special cells together promises, and for whom."""
        return self.axis.guarantee

    @property
    def scale(self) -> Fraction:
        """The noise scale of a special cell: by how many rows neighbours differ, over epsilon."""
        return rows_changed(self.axis.neighbors, self.axis.contributions) / self.axis.epsilon

    def release(
        self, data: AxisCounts, beside: Mapping[str, int], *, noise: Noise = SYSTEM
    ) -> tuple[Ranges, Specials]:
        """Release the axis and, beside it, the noisy count of each special cell."""
        axis, noisy = self.measure(data, beside, noise=noise)
        return axis, Specials(counts=dict(zip(self.specials, noisy.tolist(), strict=True)), scale=self.scale)

    def measure(
        self, data: AxisCounts, beside: Mapping[str, int], *, noise: Noise
    ) -> tuple[Ranges, NDArray[Any]]:
        """Everything that is drawn: the axis by its mechanism, then noise on each special count."""
        counts = fitting(data, self.axis.size, self.axis.contributions)
        specials = self._counts(beside)
        session = noise.session()
        return self.axis.release(counts, noise=session), session.add(specials, self.scale)

    def _counts(self, beside: object) -> NDArray[np.int64]:
        """The count of every special cell, in the order in which they are named."""
        if not isinstance(beside, Mapping) or set(beside) != set(self.specials):
            fix = "take those of the same domain"
            raise InvalidData("beside", "must have a count for each special cell", fix=fix)
        rule = "must hold counts between 0 and 2^62"
        check_data(all(_is_count(count) for count in beside.values()), "beside", rule, fix="count rows")
        return np.array([beside[name] for name in self.specials], dtype=np.int64)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST_COUNT


def _names(specials: object) -> tuple[str, ...]:
    if isinstance(specials, tuple) and all(isinstance(name, str) for name in specials):
        names = tuple(dict.fromkeys(specials))
        if names == specials:
            return names
    fix = "pass domain.specials"
    raise InvalidParameter("specials", "must be a tuple of different names", given=specials, fix=fix)
