"""A case: one mechanism on one tiny universe, all of its pairs of neighbours, and what each pair loses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias, cast, final, get_args

from partita.errors.errors import InvalidParameter, PartitaError
from partita.testing.laws.loss import Loss
from partita.testing.replay import ReplayedLoss

Depth: TypeAlias = Literal["quick", "standard", "deep"]
Way: TypeAlias = Literal["law", "coupling", "box", "replay", "coupling or law"]
Pair: TypeAlias = tuple[Any, Any]
LossOf: TypeAlias = Callable[[Any, Any], "Loss | ReplayedLoss | Fraction | float"]

DEPTHS: Final = get_args(Depth)

WAYS: Final[dict[Way, str]] = {
    "law": "noise took every branch of an exact law, mostly with 1/2 in the place of a power of e, so the "
    "loss over all outcomes is known; values beyond all true ones are one outcome",
    "coupling": "the mechanism was run on both with noise that gives one and the same output; what that "
    "noise costs bounds the loss on this outcome, and says nothing of other outcomes",
    "box": "all noise vectors of a small box were matched with those of a larger one; outcomes that "
    "need larger noise were not met",
    "replay": "`publish` was run on both tables with noise that gives one and the same file; the exact "
    "probabilities of that noise under both give the loss on this outcome, and say nothing of others",
    "coupling or law": "by coupling, which bounds the loss on the outcomes of three runs; where no "
    "coupling exists, by the output laws of both, values far from the true ones taken together",
}
"""How the loss of a pair is found."""

TOLERANCE: Final = 1e-9
"""Losses that are floats, because true powers of e are in them, may be beyond epsilon by so much."""


@final
@dataclass(frozen=True, kw_only=True)
class Case:
    """What is compared: `loss(one, other)` for each of `pairs()`, against epsilon."""

    mechanism: str
    about: str
    way: Way
    epsilon: Fraction
    pairs: Callable[[], Iterable[Pair]]
    loss: LossOf


@final
@dataclass(frozen=True, kw_only=True)
class CaseCount:
    """What came of a case: how many pairs, the largest loss, and how many pairs lost more than epsilon."""

    mechanism: str
    about: str
    way: Way
    epsilon: Fraction
    pairs: int
    loss: float
    violations: int


def counted(case: Case) -> CaseCount:
    """Compare all pairs of a case."""
    losses = list(_losses(case))
    return CaseCount(
        mechanism=case.mechanism,
        about=case.about,
        way=case.way,
        epsilon=case.epsilon,
        pairs=len(losses),
        loss=max((float(loss) for loss in losses), default=0.0),
        violations=sum(_exceeds(loss, case.epsilon) for loss in losses),
    )


def _losses(case: Case) -> Iterator[Loss | ReplayedLoss | Fraction | float]:
    """The loss of each pair: infinite where a coupling breaks, and where one of both is refused."""
    for one, other in case.pairs():
        try:
            yield case.loss(one, other)
        except (AssertionError, PartitaError):
            yield float("inf")


def _exceeds(loss: Loss | ReplayedLoss | Fraction | float, epsilon: Fraction) -> bool:
    if isinstance(loss, float):
        return loss > float(epsilon) + TOLERANCE
    return not loss <= epsilon


def step(depth: Depth, quick: int, standard: int, deep: int) -> int:
    """The number for this depth."""
    return {"quick": quick, "standard": standard, "deep": deep}[depth]


def checked_depth(depth: object) -> Depth:
    """The depth, if it is one."""
    if depth in DEPTHS:
        return cast("Depth", depth)
    raise InvalidParameter("depth", f"must be one of {', '.join(DEPTHS)}", given=depth, fix="pass standard")
