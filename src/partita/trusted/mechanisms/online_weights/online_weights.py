"""Private multiplicative weights, online: questions one at a time, measured where the guess is off [HR10]."""

from __future__ import annotations

import math
import os
from pathlib import Path
from threading import Lock
from typing import Any, Self, final

import numpy as np

from partita.answer import Answer
from partita.errors.checks import check
from partita.errors.errors import (
    BudgetExceeded,
    BudgetLost,
    InvalidParameter,
    InvalidRelease,
    InvalidState,
    StreamForked,
)
from partita.guarantee.guarantee import Guarantee
from partita.ledger.ledger.ledger import Ledger
from partita.public.bounds.query_error import largest_reach
from partita.public.bounds.tails import laplace_variance
from partita.public.queries.language.language import total
from partita.public.queries.language.parsing import queries_from
from partita.public.queries.operator.structured import Structured
from partita.public.queries.product.stack import Stack
from partita.public.queries.queries.queries import Queries
from partita.public.workload.weights.margin import Margin
from partita.public.workload.weights.measured import Weighed
from partita.trusted.mechanisms.base.checks import fitting_points
from partita.trusted.mechanisms.online_weights.online_account import OnlineAccount
from partita.trusted.mechanisms.online_weights.online_store import Begun, OnlineStore, Update
from partita.trusted.mechanisms.online_weights.online_terms import OnlineTerms
from partita.trusted.mechanisms.weights.weights_rounds import margins_for
from partita.trusted.noise.system.protocol import Noise
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.points import PointCounts, Points


@final
class AboveThreshold:
    """One run of the sparse vector technique: comparisons up to the first that is above [DR14, Alg. 1].

    Guarantee: epsilon-DP, pure, whatever is compared and however often; epsilon is the terms' run rate.
    Error:     an answer that is not above is off by at most the threshold and both noises.
    Proof:     docs/proofs/online_weights.md (integer noise, fresh threshold noise in every run)
    """

    def __init__(self, terms: OnlineTerms, noise: Noise) -> None:
        self._level = terms.threshold_units + noise.draw("laplace", terms.threshold_scale)
        self._fresh = noise.first_success("laplace", terms.query_scale)
        self._over = False

    def is_above(self, distance: int) -> bool:
        """Whether distance and fresh noise exceed the threshold and its noise; nothing follows a True."""
        if self._over:
            raise RuntimeError("a run ends with the first comparison that is above")
        self._over = self._fresh.run(self._level - distance, 1) is not None
        return self._over


@final
class WeightsSession:
    """Answers linear queries one at a time from a public guess, and measures those that it gets wrong.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP, for all answers of all openings together.       [HR10]
    Error:     an answer is measured, or off by at most the threshold and noise: `Answer.worst` says so.
    Proof:     docs/proofs/online_weights.md (charged before answering, a fresh run after every opening)

    The file has what was published and how many runs were begun, and no data: rows stay with the caller.
    A run is charged before its first answer. Closing a session, or a crash, gives up the run that was begun.
    """

    def __init__(
        self, terms: OnlineTerms, store: OnlineStore, account: OnlineAccount, points: Points, noise: Noise
    ) -> None:
        self.terms = terms
        self._store, self._account, self._points = store, account, points
        self._noise, self._process, self._turn = noise, os.getpid(), Lock()
        self._run: AboveThreshold | None = None
        if store.acts == 0:
            self._begin()
        self._known = self._read()

    @property
    def guarantee(self) -> Guarantee | None:
        """What all answers together promise; None if noise was injected."""
        return self.terms.guarantee if self._noise.secure else None

    @property
    def remaining(self) -> int:
        """How many more runs may be begun, each up to a measurement; one that is open is not counted."""
        return self.terms.updates + 1 - self._store.acts

    @property
    def measured(self) -> tuple[Update, ...]:
        """The queries that were measured, and their noisy answers in units of one over the granularity."""
        return tuple(self._store.updates())

    def ask(self, query: Queries) -> Answer:
        """The answer to one query. The guess answers it; where that is off, it is measured and learnt from.

        Refused with `BudgetExceeded` when all updates are spent: `public` goes on answering.
        """
        written = self._written(query)
        operator = self._fitting(written)
        with self._turn:
            self._check_process()
            run = self._open_run()
            truth = int(operator.answers_at(self._points.places, self._points.counts)[0])
            guess = self._guess(operator)
            if not run.is_above(abs(truth - round(guess * self.terms.granularity))):
                return self._close_enough(guess)
            return self._measure(written, truth)

    def public(self, query: Queries) -> Answer:
        """What the guess says, which costs nothing; how far it is off nobody has looked at."""
        value = self._guess(self._fitting(self._written(query)))
        return Answer(value, lambda: math.inf, lambda _: (0.0, math.inf))

    def close(self) -> None:
        """Let others open the session; the run that was begun is given up."""
        self._run = None
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open_run(self) -> AboveThreshold:
        """The run that is open, or a new one, charged before it compares anything."""
        if self._run is None:
            if self.remaining < 1:
                raise BudgetExceeded(
                    f"all {self.terms.updates} updates of this session are spent; ask public(query), which "
                    "costs nothing, or open another session"
                )
            self._account.act()
            self._run = AboveThreshold(self.terms, self._noise)
        return self._run

    def _measure(self, query: Queries, truth: int) -> Answer:
        """End the run with a measurement, which is on disk before it is told."""
        self._run = None
        noisy = int(self._noise.add(truth, self.terms.scales.answer))
        self._store.record(self._store.acts, Update(query.to_json(), noisy))
        self._known = self._read()
        return self._measured_answer(noisy)

    def _measured_answer(self, noisy: int) -> Answer:
        scale, units = self.terms.scales.answer, self.terms.granularity

        def bounds(beta: float) -> tuple[float, float]:
            reach = largest_reach(scale, 1, beta)
            return (noisy - reach) / units, (noisy + reach) / units

        return Answer(noisy / units, lambda: math.sqrt(laplace_variance(scale)) / units, bounds)

    def _close_enough(self, guess: float) -> Answer:
        """The guess, which was not above the threshold: off by that, two noises and rounding at most."""
        terms = self.terms

        def reach(beta: float) -> float:
            noise = largest_reach(terms.threshold_scale, 1, beta / 2) + largest_reach(
                terms.query_scale, 1, beta / 2
            )
            return (terms.threshold_units + noise + 1) / terms.granularity

        def spread() -> float:
            return (terms.threshold_units + float(terms.query_scale)) / terms.granularity

        return Answer(guess, spread, lambda beta: (guess - reach(beta), guess + reach(beta)))

    def _begin(self) -> None:
        """Look at the total and along the axes, once; counted before it is drawn."""
        self._account.act()
        terms, points = self.terms, self._points
        total = int(self._noise.add(points.total, terms.scales.total))
        loudness = max(1, total) / float(terms.scales.marginal)
        margins = margins_for(terms.universe.shape, terms.axes, loudness)
        noisy = [
            self._noise.add(_along(points, margin), terms.scales.marginal).tolist() for margin in margins
        ]
        self._store.begin(
            Begun(
                total=total,
                axes=[margin.axis for margin in margins],
                bins=[margin.bins for margin in margins],
                marginals=[number for numbers in noisy for number in numbers],
            )
        )

    def _read(self) -> Weighed:
        """All that is public, as measurements; the first query is the total, which no run has measured."""
        begun, updates = self._store.begun, self._store.updates()
        if begun is None:
            raise BudgetLost(
                "the first guess of this session was charged and is not stored; that budget is gone, so open "
                "another session"
            )
        try:
            return self._put_together(begun, updates)
        except (InvalidParameter, InvalidRelease):
            fix = "check the path"
            raise InvalidState("updates", "must be of this session's universe", fix=fix) from None

    def _put_together(self, begun: Begun, updates: list[Update]) -> Weighed:
        shape = self.terms.universe.shape
        asked = [total(), *(queries_from(update.query) for update in updates)]
        return Weighed(
            operator=Stack([self._fitting(query) for query in asked]),
            unit=1,
            grain=1,
            total=begun.total,
            margins=tuple(Margin(shape, *along) for along in zip(begun.axes, begun.bins, strict=False)),
            marginals=np.array(begun.marginals, object),
            indices=np.arange(1, len(asked)),
            noisy=np.array([update.noisy for update in updates], object),
            scales=self.terms.scales,
        )

    def _guess(self, operator: Structured) -> float:
        return float(operator.answers(self._known.x)[0]) / self.terms.granularity

    def _written(self, query: Queries) -> Queries:
        """The query as the file will have it: checked before anything is compared."""
        fix = 'pass between("age", 30, 39)'
        check(isinstance(query, Queries), "query", "must be a query", given=query, fix=fix)
        return queries_from(query.settled(self.terms.universe).to_json())

    def _fitting(self, query: Queries) -> Structured:
        return self.terms.refined(query.over(self.terms.universe))

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise StreamForked(
                "a session belongs to the process that opened it; open it again after the other ends"
            )


def open_session(
    path: str | os.PathLike[str],
    terms: OnlineTerms,
    points: PointCounts,
    *,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    noise: Noise = SYSTEM,
) -> WeightsSession:
    """Open an online session at a path, or open it again with the same terms and the same points.

    All of epsilon is debited from the ledger at the first opening, and from then on the session is opened
    with that ledger only. Without a ledger nothing notices if the file is copied and both copies are used.
    Points on a cluster are gathered before anything is debited: questions come one at a time.
    """
    data = _checked(points, terms)
    place = Path(os.path.realpath(path))
    OnlineStore.create(place, terms.to_text())
    store = OnlineStore(place)
    try:
        if store.terms != terms.to_text():
            fix = "use the terms it has"
            raise InvalidParameter("path", "must be of a session with these terms", given=str(path), fix=fix)
        account = OnlineAccount.opened(store, terms.guarantee, ledger, dataset)
        return WeightsSession(terms, store, account, data, noise.session())
    except BaseException:
        store.close()
        raise


def _checked(points: object, terms: OnlineTerms) -> Points:
    return fitting_points(points, terms.universe.axes, terms.guarantee.contributions).gathered()


def _along(points: Points, margin: Margin) -> Any:
    """How many rows are in each bin along an axis, exactly."""
    bins = np.searchsorted(margin.edges, points.places[:, margin.axis].astype(np.int64), side="right") - 1
    counts = np.zeros(margin.bins, np.int64)
    np.add.at(counts, bins, points.counts)
    return counts
