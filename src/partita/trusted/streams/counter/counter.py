"""The default counter: a centred tree, or one after another where no end is known."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike

from partita.errors.checks import check
from partita.public.streams.terms import Terms, horizon_of
from partita.trusted.mechanisms.base.checks import check_scale
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.streams.base.base import Floats
from partita.trusted.streams.centred.branching import Plan, plan
from partita.trusted.streams.centred.centred import BITS, widest_scale
from partita.trusted.streams.counter.bounds import (
    Mix,
    centred_everywhere,
    centred_mix,
    centred_variances,
    mix,
)
from partita.trusted.streams.counter.epochs import Epochs, first_epoch
from partita.trusted.streams.counter.noisy_count import NoisyCount


@final
class Counter(NoisyCount):
    """Count under continual observation: one output for every period, all of them together private.

    Guarantee: epsilon-DP, pure, for one event, or one user of at most `contributions` events; for any
               stream, also one that is chosen while outputs are seen. Not pan-private.
    Error:     mean squared error 113 / epsilon^2 over 2^10 periods, 390 over 2^16, 724 over 2^20:
               O(log^3 horizon / epsilon^2); `answer` says how far off an output may be.
    Proof:     docs/proofs/counter.md (noise on a tree, made consistent online)

    An event changes a period by at most `change`. Without a horizon it goes on as long as it is asked to, in
    trees that grow; what `answer` says of all periods is then of those up to the end of the present tree.
    `plan` is the shape of the tree, chosen for the horizon if it is left out.

    >>> counter = Counter(epsilon=1, horizon=1000)
    >>> outputs = [counter.update(x) for x in (0, 1, 5)]
    >>> counter.periods, counter.guarantee
    (3, Guarantee(epsilon=1, neighbors=add-remove, unit=event))
    """

    name: ClassVar[str] = "counter"

    def __init__(
        self,
        *,
        epsilon: object,
        horizon: int | None = None,
        change: int = 1,
        contributions: int = 1,
        plan: Plan | None = None,
        noise: Noise = SYSTEM,
    ) -> None:
        terms = Terms.of(epsilon, change=change, contributions=contributions)
        first = _first_plan(horizon, plan)
        check_scale(widest_scale(terms.rate), terms.epsilon)
        session = noise.session()
        self._epochs = Epochs(first, terms.rate, session)
        known = None if horizon is None else first.horizon
        super().__init__(terms=terms, horizon=known, bits=BITS, path=self._epochs, secure=session.secure)

    def variances(self, periods: ArrayLike) -> Floats:
        """The variance of the output after each of these numbers of periods: of its tree and those before."""
        after = self._within(periods)
        variances, start, carried = np.zeros(after.shape), 0, 0.0
        for tree in self._epochs.until(int(after.max(initial=0))):
            here = (start < after) & (after <= start + tree.horizon)
            variances[here] = carried + centred_variances(tree, self.terms.rate, after[here] - start)
            start, carried = start + tree.horizon, carried + self._carried([tree]).variance
        return variances

    def _shape(self) -> Sequence[int]:
        return [] if self.horizon is None else self._epochs.plans[0].numbers

    @classmethod
    def _fresh(cls, terms: Terms, fields: dict[str, list[int]], noise: Noise) -> Self:
        if not fields["shape"]:
            return cls(noise=noise, **terms.keywords)
        (known,) = Plan.all_of(fields["shape"])
        return cls(horizon=known.horizon, plan=known, noise=noise, **terms.keywords)

    def _law(self) -> Mix:
        return self._carried(self._epochs.plans[:-1]) + centred_mix(
            self._epochs.plans[-1], self.terms.rate, self._epochs.tree.position
        )

    def _everywhere(self, beta: float) -> float:
        return _everywhere(tuple(self._epochs.plans), self.terms.rate, beta, ends=self.horizon is not None)

    def _carried(self, plans: Sequence[Plan]) -> Mix:
        return _carried(plans, self.terms.rate)


@lru_cache(maxsize=256)
def _everywhere(plans: tuple[Plan, ...], rate: Fraction, beta: float, *, ends: bool) -> float:
    """How far any output may be off, all at once.

    Each tree has its share of beta: all if there is one, else a half, a quarter and so on.
    """
    shares = [beta] if ends else [beta / 2 ** (i + 1) for i in range(len(plans))]
    return max(
        centred_everywhere(plan, rate, _carried(plans[:i], rate), share)
        for i, (plan, share) in enumerate(zip(plans, shares, strict=True))
    )


def _carried(plans: Sequence[Plan], rate: Fraction) -> Mix:
    """The noise that whole trees leave behind."""
    return sum((centred_mix(plan, rate, plan.horizon) for plan in plans), mix([]))


def _first_plan(horizon: int | None, given: Plan | None) -> Plan:
    if horizon is None:
        check(given is None, "plan", "needs a horizon", given=given, fix="pass plan.horizon")
        return first_epoch()
    if given is None:
        return plan(horizon_of(horizon))
    rule = "must be for the same horizon"
    check(given.horizon == horizon_of(horizon), "plan", rule, given=given.horizon, fix="make one for it")
    return given
