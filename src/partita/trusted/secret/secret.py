"""What mechanisms may ask of exact counts, wherever they are kept: sums over blocks, and walks over them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Generic, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray

State = TypeVar("State")

UInts: TypeAlias = NDArray[np.uint64]
Ints: TypeAlias = NDArray[np.int64]
Work: TypeAlias = Callable[[UInts, Ints], NDArray[Any]]
"""A sum over the things of a block and their counts."""

Begin: TypeAlias = Callable[[UInts, Ints], State]
"""What a walk remembers of a block before its first step."""


class Secret(ABC):
    """Exact counts of distinct things: cells of an axis, or points. They are here, or on other machines.

    Counts lie in blocks: every thing is in one block, and things ascend in it. How many blocks there are, and
    which thing is in which, is the holder's business: no mechanism can tell.
    """

    contributions: int
    """How many rows one person may have."""

    @abstractmethod
    def folded(self, work: Work) -> NDArray[Any]:
        """The sum of work(things, counts) over all blocks.

        `work` is made of public and released numbers, so that it may travel. It returns integers, of 64 bits
        or Python's, in an array of the same shape for every block, for an empty one too.
        """

    @property
    def total(self) -> int:
        """The number of rows."""
        return int(self.folded(_total)[0])

    def descent(self, begin: Begin[State]) -> Descent[State]:
        """A walk over all blocks, which begins like this in each."""
        return Replayed(self, begin)


class Descent(ABC, Generic[State]):
    """A walk over a secret, step by step, where released numbers decide on every step.

    Each block has a state, which a step turns into the next and a fold looks at.
    """

    @abstractmethod
    def go(self, step: Callable[[State], State]) -> None:
        """Take the same step in every block."""

    @abstractmethod
    def folded(self, work: Callable[[State], NDArray[Any]]) -> NDArray[Any]:
        """The sum of work(state) over all blocks."""


@final
class Remembered(Descent[State]):
    """A walk over one block that is here: its state is kept."""

    def __init__(self, state: State) -> None:
        self._state = state

    def go(self, step: Callable[[State], State]) -> None:
        """Take the step at once."""
        self._state = step(self._state)

    def folded(self, work: Callable[[State], NDArray[Any]]) -> NDArray[Any]:
        """Look at the state."""
        return work(self._state)


@final
class Replayed(Descent[State]):
    """A walk over blocks that are elsewhere: each fold takes all steps anew, and nothing is kept there."""

    def __init__(self, secret: Secret, begin: Begin[State]) -> None:
        self._secret, self._begin = secret, begin
        self._steps: list[Callable[[State], State]] = []

    def go(self, step: Callable[[State], State]) -> None:
        """Remember the step."""
        self._steps.append(step)

    def folded(self, work: Callable[[State], NDArray[Any]]) -> NDArray[Any]:
        """Walk through every block, and look."""
        return self._secret.folded(partial(_walked, _Path(self._begin, tuple(self._steps)), work))


@final
@dataclass(frozen=True)
class _Path(Generic[State]):
    """How a walk began, and the steps that it has taken."""

    begin: Begin[State]
    steps: tuple[Callable[[State], State], ...]

    def walked(self, things: UInts, counts: Ints) -> State:
        """Where it ends in one block."""
        return reduce(lambda state, step: step(state), self.steps, self.begin(things, counts))


def _walked(
    path: _Path[State], work: Callable[[State], NDArray[Any]], things: UInts, counts: Ints
) -> NDArray[Any]:
    return work(path.walked(things, counts))


def _total(things: UInts, counts: Ints) -> Ints:
    return np.array([counts.sum()])
