"""Private multiplicative weights, online: one query at a time, measured if the guess is off [HR10].

The file of a session holds the terms, the measurements, and how many runs were begun; all of it is public.
One writer holds it. Every act is on disk before it counts, and a run is counted before it answers anything:
a crash may lose a run, and never answers twice from one.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal, NamedTuple, TypeAlias, final, get_args

import numpy as np

from partita import errors
from partita.answer import Answer
from partita.guarantee import (
    Guarantee,
    Neighbors,
    Unit,
    measurement_rate,
    positive_epsilon,
    unit_of,
    zcdp_budget,
)
from partita.ledger.ledger import Ledger
from partita.numbers import check_choice, check_probability, freeze, integer, rational
from partita.public.bounds import largest_reach
from partita.public.queries.language import read_queries, total
from partita.public.queries.operator import Structured
from partita.public.queries.product import Stack
from partita.public.queries.queries import Queries, Universe
from partita.public.workload.release import Change, NoisyUnits
from partita.public.workload.weights import Margin, Measurements, Scales
from partita.storage import Closing, SqliteFormat, SqliteWriter
from partita.trusted.durable.stream import Writer
from partita.trusted.mechanisms.base import check_points_fit, check_rows, check_scale
from partita.trusted.mechanisms.weights import choose_margins
from partita.trusted.noise.kernel import token
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import PointCounts, Points

# The file.


_SCHEMA: Final = """
CREATE TABLE session (
    name TEXT NOT NULL, terms TEXT NOT NULL, acts INTEGER NOT NULL DEFAULT 0, begun TEXT,
    by_ledger INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE updates (run INTEGER PRIMARY KEY, query TEXT NOT NULL, noisy TEXT NOT NULL);
CREATE TRIGGER acts_rise BEFORE UPDATE OF acts ON session WHEN NEW.acts < OLD.acts
BEGIN SELECT RAISE (ABORT, 'acts never become fewer'); END;
CREATE TRIGGER ledger_stays BEFORE UPDATE OF by_ledger ON session WHEN NEW.by_ledger < OLD.by_ledger
BEGIN SELECT RAISE (ABORT, 'what a ledger pays is not opened without it'); END;
CREATE TRIGGER updates_stay BEFORE DELETE ON updates
BEGIN SELECT RAISE (ABORT, 'updates are never removed'); END;
CREATE TRIGGER updates_keep BEFORE UPDATE ON updates
BEGIN SELECT RAISE (ABORT, 'updates are never rewritten'); END;
"""
_FORMAT: Final = SqliteFormat(
    name="weights session",
    mark=b"PWgt",
    versions=(1,),
    schema=_SCHEMA,
    error=errors.StreamError,
    busy_error=errors.StreamBusy,
    busy=("is open elsewhere", "a session has one writer, so ask there"),
    foreign=("is not a weights session", "check the path"),
    damaged=("is damaged", "restore the latest copy; an older one would answer twice"),
)
_WAIT: Final = 5  # seconds for a process that reads the file, such as a backup: SQLite's own default


class FirstGuess(NamedTuple):
    """The first guess: the noisy total, and noisy sums in bins along axes."""

    total: int
    axes: list[int]
    bins: list[int]
    marginals: list[int]


class Update(NamedTuple):
    """A measured query, as text, and its noisy answer in units."""

    query: str
    noisy: int


@final
class OnlineStore:
    """The file at a path, held from the beginning; a second holder is a `StreamBusy`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = SqliteWriter(_FORMAT, path, timeout=_WAIT)

    @staticmethod
    def create(path: Path, terms: str) -> None:
        """Put a new session at the path, unless there is one."""
        _FORMAT.create(path, "INSERT INTO session (name, terms) VALUES (?, ?)", (token(), terms))

    @property
    def name(self) -> str:
        """The name that the session has for itself, at random."""
        return str(self._session()[0])

    @property
    def terms(self) -> str:
        """The terms that it was opened with."""
        return str(self._session()[1])

    @property
    def acts(self) -> int:
        """How many acts were paid for: the first guess, and every run that was begun."""
        return int(self._session()[2])

    @property
    def first_guess(self) -> FirstGuess | None:
        """The first guess, if it was stored; `InvalidState` if it is damaged."""
        text = self._session()[3]
        if text is None:
            return None
        try:
            stored = FirstGuess(**json.loads(str(text)))
            numbers = [stored.total, *stored.axes, *stored.bins, *stored.marginals]
        except (TypeError, ValueError, RecursionError):
            raise _invalid("begun") from None
        if any(type(number) is not int for number in numbers):
            raise _invalid("begun")
        return stored

    @property
    def by_ledger(self) -> bool:
        """Whether a ledger pays for the session, and counts its acts."""
        return bool(self._session()[4])

    def updates(self) -> list[Update]:
        """All measurements, in order."""
        rows = self._read("SELECT query, noisy FROM updates ORDER BY run")
        try:
            return [Update(str(query), int(str(noisy))) for query, noisy in rows]
        except ValueError:
            raise _invalid("updates") from None

    def act(self) -> int:
        """Count one more act, on disk; its number."""
        self._write("UPDATE session SET acts = acts + 1")
        return self.acts

    def pay_by_ledger(self) -> None:
        """Store that a ledger pays, for good: before it does."""
        self._write("UPDATE session SET by_ledger = 1")

    def begin(self, first: FirstGuess) -> None:
        """Store the first guess."""
        self._write("UPDATE session SET begun = ? WHERE begun IS NULL", json.dumps(first._asdict()))

    def record(self, run: int, update: Update) -> None:
        """Store the measurement that ends a run."""
        self._write("INSERT INTO updates VALUES (?, ?, ?)", run, update.query, str(update.noisy))

    def close(self) -> None:
        """Let others open it."""
        self._file.close()

    def _session(self) -> tuple[Any, ...]:
        rows = self._read("SELECT name, terms, acts, begun, by_ledger FROM session")
        if len(rows) != 1:
            raise self._file.damaged()
        return rows[0]

    def _read(self, query: str) -> list[tuple[Any, ...]]:
        with self._file.access() as connection:
            return connection.execute(query).fetchall()

    def _write(self, statement: str, *values: object) -> None:
        """One statement is one transaction: it is on disk when this returns."""
        with self._file.access() as connection:
            connection.execute(statement, values)


def _invalid(name: str) -> errors.InvalidState:
    return errors.InvalidState(name, "must be of a weights session", fix="check the path")


# The ledger.


@final
class OnlineAccount:
    """Counts the acts of a session before they happen: in its file, and in the ledger if there is one.

    The ledger's number only ever rises, so a session file that is an old copy is refused, and so is a
    session that was opened again elsewhere. The file records that a ledger pays before it does: a copy cannot
    be opened without it.
    """

    def __init__(self, store: OnlineStore, writer: Writer | None = None) -> None:
        self._store, self._writer = store, writer

    @staticmethod
    def open(
        store: OnlineStore, guarantee: Guarantee, ledger: Ledger | None, dataset: str | None
    ) -> OnlineAccount:
        """Pay for a new session, all of it at once, and become its one writer."""
        if ledger is None and dataset is None:
            if store.by_ledger:
                raise errors.LedgerRefusal(
                    f"a ledger pays for weights session {str(store.path)!r} and counts its acts; open it "
                    "with the same ledger and dataset"
                )
            return OnlineAccount(store)
        if not isinstance(ledger, Ledger) or dataset is None:
            fix = "pass a Ledger and one of its datasets"
            raise errors.InvalidParameter("ledger", "and dataset go together", given=dataset, fix=fix)
        _pay(store, guarantee, ledger, dataset)
        writer = Writer(ledger.store, store.name, store.acts)
        with _explain_forks(store):
            writer.claim(lambda _: b"")
        return OnlineAccount(store, writer)

    def act(self) -> int:
        """Count one more act in the file and in the ledger, before it draws and answers; its number."""
        number = self._store.act()
        if self._writer is not None:
            with _explain_forks(self._store):
                self._writer.reach(number, b"")
        return number


def _pay(store: OnlineStore, guarantee: Guarantee, ledger: Ledger, dataset: str) -> None:
    """Debit the session once, however often it is opened."""
    key = f"weights {store.name}"
    entry = next((entry for entry in ledger.entries(dataset) if entry.key == key), None)
    if entry is None and store.acts:
        raise errors.LedgerRefusal(
            f"ledger {ledger.address!r} has not paid for this session; pass the one that did"
        )
    store.pay_by_ledger()
    if entry is None:
        entry = ledger.debit(dataset, guarantee, what="online weights", key=key)
    ledger.mark_done(entry)


@contextmanager
def _explain_forks(store: OnlineStore) -> Iterator[None]:
    """Replace the error about an old copy by one that names the session."""
    try:
        yield
    except errors.StreamForked:
        raise errors.StreamForked(
            f"weights session {str(store.path)!r} is an old copy, or was opened again elsewhere: to go on "
            "would answer twice from one budget; close it and use the latest"
        ) from None


# The terms.


MOST_UPDATES: Final = 1000
_TOTAL: Final = Fraction(1, 20)  # share of the total, as offline
_WARM: Final = Fraction(3, 10)  # share of sums along axes: a better first guess for noisier runs
_RARELY: Final = 4  # the default threshold in noise scales: fewer false alarms for larger errors
_MOST_CELLS: Final = 2**27  # a gigabyte for each array of floats
_FINEST: Final = 2**30
_COMPARED: Final = Fraction(8, 9)  # share of comparisons as printed [DR14, Algorithm 3]; the rest measures

OnlineVariant: TypeAlias = Literal["fitted", "printed"]
"""All measurements fitted together, after sums along the axes; or the steps of the printed algorithm."""


@final
@dataclass(frozen=True, kw_only=True)
class OnlineTerms:
    """Epsilon and delta of a whole session, shared among a first guess and `updates` runs.

    A run compares the answers of the guess with the truth, with noise, until one is off by more than about
    the `threshold`, in rows; that one is measured, and the run ends. Weights are multiples of one over
    the granularity, from 0 to 1.

    `variant="printed"` is private multiplicative weights by the numeric sparse vector technique as printed
    [DR14, sections 3.6 and 4.2], with delta 0: no first guess is measured, runs share all of epsilon, eight
    ninths of it for comparisons, and each takes one step. It is for rows that change, so that n is public.
    """

    universe: Universe
    guarantee: Guarantee
    updates: int
    threshold: Fraction
    granularity: int
    variant: OnlineVariant = "fitted"

    @staticmethod
    def of(
        *,
        universe: Universe,
        epsilon: object,
        updates: int,
        threshold: object = None,
        delta: object = 0,
        neighbors: Neighbors = "add-remove",
        contributions: int = 1,
        unit: Unit | None = None,
        granularity: int = 1,
        variant: OnlineVariant = "fitted",
    ) -> OnlineTerms:
        """The terms as users write them; the default threshold is one that noise alone passes rarely.

        The printed variant has none: `least_threshold` is that of its theorem for a public number of rows.
        """
        guarantee = Guarantee(
            epsilon=positive_epsilon(epsilon),
            delta=delta,
            neighbors=neighbors,
            unit=unit_of(unit, contributions),
            contributions=contributions,
        )
        terms = OnlineTerms(
            universe=universe,
            guarantee=guarantee,
            updates=integer(updates, "updates", low=1, high=MOST_UPDATES),
            threshold=Fraction(0) if threshold is None else rational(threshold, "threshold"),
            granularity=integer(granularity, "granularity", low=1, high=_FINEST),
            variant=check_choice(variant, "variant", get_args(OnlineVariant)),
        )
        terms._check()
        if threshold is None:
            rule, fix = (
                "must be given for variant='printed'",
                "pass one of at least least_threshold(...)",
            )
            errors.check(not terms.printed, "threshold", rule, given=threshold, fix=fix)
            freeze(terms, threshold=_RARELY * terms.query_scale / terms.granularity)
        return terms

    @property
    def change(self) -> Change:
        """What neighbours differ by, in rows."""
        return Change.of(self.guarantee.neighbors, contributions=self.guarantee.contributions)

    @property
    def sensitivity(self) -> int:
        """By how much one answer may change, in units: by a row in or out, or with other values."""
        return self.granularity * self.change.of_total

    @cached_property
    def run_rate(self) -> Fraction:
        """The epsilon of the comparisons of one run, and again that of its measurement."""
        return self._rates[2]

    @property
    def printed(self) -> bool:
        """Whether the session follows the printed algorithm."""
        return self.variant == "printed"

    @property
    def threshold_scale(self) -> Fraction:
        """The noise of the threshold: half of a run's comparisons are paid to it."""
        return 2 * self.sensitivity / self.run_rate

    @property
    def query_scale(self) -> Fraction:
        """The noise of each comparison."""
        return 4 * self.sensitivity / self.run_rate

    @property
    def threshold_units(self) -> int:
        """The threshold, rounded down to units."""
        return math.floor(self.threshold * self.granularity)

    @cached_property
    def scales(self) -> Scales:
        """The noise of the first guess and of measurements."""
        total, marginal, _, measurement = self._rates
        return Scales(
            total=self.change.of_total / total if total else Fraction(0),
            marginal=self.change.of_cells / marginal if marginal else Fraction(0),
            selection=self.query_scale,
            answer=self.sensitivity / measurement,
        )

    @property
    def alpha(self) -> float:
        """The printed error per row for c updates: c = 4 ln |X| / alpha^2; steps are alpha / 2."""
        return math.sqrt(4 * math.log(max(2, self.universe.size)) / self.updates)

    def bound(self, beta: object = "0.05", *, rows: int | None = None, queries: int | None = None) -> float:
        """With probability 1 - beta all of so many queries are answered, and none is off by more.

        For the printed variant, before the data: its theorem as a number, with exact tails. Infinity where
        the threshold is below `least_threshold`; docs/proofs/online_weights.md, "The printed variant".
        """
        hard, below, answer = self._reaches(beta, rows, queries)
        if self.threshold_units <= max(hard, answer) + below:
            return math.inf
        return float(max(self.threshold_units + below, answer)) / self.granularity

    def least_threshold(
        self, beta: object = "0.05", *, rows: int | None = None, queries: int | None = None
    ) -> int:
        """The least threshold in rows with a `bound` for these numbers."""
        hard, below, answer = self._reaches(beta, rows, queries)
        return math.floor((max(hard, answer) + below) / self.granularity) + 1

    def _reaches(self, beta: object, rows: object, queries: object) -> tuple[int, int, int]:
        """In units: what makes a query hard, how far a comparison may be off, and a measurement."""
        rule, fix = "must be 'printed' to have a bound before the data", "ask an answer for its worst(beta)"
        errors.check(self.printed, "variant", rule, given=self.variant, fix=fix)
        share, number = float(check_probability(beta)) / 3, check_rows(rows)
        asked = integer(queries, "queries", low=1)
        noise = largest_reach(self.threshold_scale, self.updates, share)
        noise += largest_reach(self.query_scale, asked, share)
        hard = math.ceil(self.alpha * number * self.granularity)
        return hard, math.ceil(noise) + 1, math.ceil(largest_reach(self.scales.answer, self.updates, share))

    @property
    def axes(self) -> list[int]:
        """The axes along which the first guess is measured."""
        return [axis for axis, width in enumerate(self.universe.shape) if width > 1]

    def refine(self, operator: Structured) -> Structured:
        """A query in the session's units, if it is a single one and its weights fit the session."""
        number, fix = len(operator), "rescale it, or open with other terms"
        errors.check(number == 1, "query", "must be one query at a time", given=number, fix=fix)
        rule = f"must have weights that are multiples of 1/{self.granularity}"
        errors.check(self.granularity % operator.granularity == 0, "query", rule, given=number, fix=fix)
        between = 0 <= operator.lowest <= operator.highest <= operator.granularity
        errors.check(between, "query", "must have weights from 0 to 1", given=number, fix=fix)
        finer = self.granularity // operator.granularity
        return operator.multiply(finer, finer)

    def to_text(self) -> str:
        """All terms as one line; a session is opened again with the same line only."""
        public = {
            "columns": list(self.universe.columns),
            "domains": [repr(domain) for domain in self.universe.domains],
            "guarantee": repr(self.guarantee),
            "updates": self.updates,
            "threshold": str(self.threshold),
            "granularity": self.granularity,
        }
        public |= {"variant": self.variant} if self.printed else {}  # files of earlier versions have none
        return json.dumps(public, sort_keys=True)

    @cached_property
    def _rates(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """The epsilon of the total, of each axis, of a run's comparisons, and of its measurement."""
        axes = max(1, len(self.axes))
        if self.printed:
            run = self.guarantee.epsilon / self.updates
            return Fraction(0), Fraction(0), run * _COMPARED, run * (1 - _COMPARED)
        if not self.guarantee.delta:
            epsilon = self.guarantee.epsilon
            left = epsilon * (1 - _TOTAL - _WARM) / (2 * self.updates)
            return epsilon * _TOTAL, epsilon * _WARM / axes, left, left
        rho = zcdp_budget(self.guarantee.epsilon, self.guarantee.delta)
        left = measurement_rate(rho * (1 - _TOTAL - _WARM), 2 * self.updates)
        return measurement_rate(rho * _TOTAL), measurement_rate(rho * _WARM, axes), left, left

    def _check(self) -> None:
        space: object = self.universe
        if not isinstance(space, Universe) or space.size > _MOST_CELLS:
            rule = f"must be a Universe of at most {_MOST_CELLS} cells"
            raise errors.InvalidParameter("universe", rule, given=space, fix="choose coarser domains")
        fix = "leave it out"
        errors.check(self.threshold >= 0, "threshold", "must not be negative", given=self.threshold, fix=fix)
        if self.printed:
            self._check_printed()
        scales = self.scales
        for scale in (scales.total, scales.marginal, scales.answer, self.threshold_scale, self.query_scale):
            if scale:
                check_scale(scale, self.guarantee.epsilon)

    def _check_printed(self) -> None:
        """The number of rows is public, and the pure version is the one that is printed here."""
        rule = "must be 'fitted' unless the number of rows is public, as in the printed algorithm"
        fix = 'pass neighbors="change-one", for rows and not for persons'
        errors.check(self.guarantee.same_rows, "variant", rule, given=self.variant, fix=fix)
        rule, delta = "must be 0 for variant='printed'", self.guarantee.delta
        errors.check(delta == 0, "delta", rule, given=delta, fix="leave it out, or use variant='fitted'")


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
class PrintedGuess:
    """The mass of each cell by the printed rule: even at first, one multiplicative step for each measurement.

    A measured query whose noisy answer is below the guess lowers the cells that it counts by a factor of
    e^(alpha weight / 2), any other raises them so; the mass stays the public number of rows.
    """

    def __init__(self, terms: OnlineTerms, rows: int, exponent: Any = None) -> None:
        self._terms, self._rows = terms, rows
        self._exponent = np.zeros(terms.universe.shape) if exponent is None else exponent

    @cached_property
    def x(self) -> Any:
        """The mass of each cell, in rows."""
        weights = np.exp(self._exponent - self._exponent.max())
        return weights * (self._rows / weights.sum())

    def learn(self, operator: Structured, noisy: int) -> PrintedGuess:
        """The guess after one step for a measured query, in the session's units."""
        below = noisy < float(operator.answers(self.x)[0])
        step = -self._terms.alpha / 2 if below else self._terms.alpha / 2
        weights = np.asarray(operator.row(0, self._exponent)) / self._terms.granularity
        return PrintedGuess(self._terms, self._rows, self._exponent + step * weights)


@final
class WeightsSession(Closing):
    """Answers linear queries one at a time from a public guess, and measures those that it gets wrong.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP, for all answers of all openings together.       [HR10]
    Error:     an answer is measured, or off by at most the threshold and noise: `Answer.worst` says so; as
               printed, `terms.bound(beta, rows=, queries=)` holds for all answers, before the data.
    Proof:     docs/proofs/online_weights.md (charged before answering, a fresh run after every opening)

    The file has what was published and how many runs were begun, and no data: rows stay with the caller.
    A run is charged before its first answer. Closing a session, or a crash, gives up the run that was begun.
    """

    def __init__(
        self, terms: OnlineTerms, store: OnlineStore, account: OnlineAccount, points: Points, noise: Noise
    ) -> None:
        self.terms = terms
        self._store, self._account, self._points = store, account, points
        self._noise, self._process, self._lock = noise, os.getpid(), Lock()
        self._run: AboveThreshold | None = None
        if store.acts == 0 and terms.printed:
            self._begin_as_printed()
        elif store.acts == 0:
            self._begin()
        self._measurements: Measurements | PrintedGuess = self._load()

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
        """The answer to one query. The guess answers it; if that is off, the query is measured.

        Raises `BudgetExceeded` when all updates are spent: `public` goes on answering.
        """
        stored = self._normalize(query)
        operator = self._operator(stored)
        with self._lock:
            self._check_process()
            run = self._open_run()
            truth = int(operator.answers_at(self._points.places, self._points.counts)[0])
            guess = self._guess(operator)
            if not run.is_above(abs(truth - round(guess * self.terms.granularity))):
                return self._guess_answer(guess)
            return self._measure(stored, truth)

    def public(self, query: Queries) -> Answer:
        """The answer of the guess, which costs nothing; how far it is off is not known."""
        value = self._guess(self._operator(self._normalize(query)))
        return Answer(value, lambda: math.inf, lambda _: (0.0, math.inf))

    def close(self) -> None:
        """Let others open the session; the run that was begun is given up."""
        self._run = None
        self._store.close()

    def _open_run(self) -> AboveThreshold:
        """The run that is open, or a new one, charged before it compares anything."""
        if self._run is None:
            if self.remaining < 1:
                raise errors.BudgetExceeded(
                    f"all {self.terms.updates} updates of this session are spent; ask public(query), which "
                    "costs nothing, or open another session"
                )
            self._account.act()
            self._run = AboveThreshold(self.terms, self._noise)
        return self._run

    def _measure(self, query: Queries, truth: int) -> Answer:
        """End the run with a measurement, which is on disk before it is returned."""
        self._run = None
        noisy = int(self._noise.add(truth, self.terms.scales.answer))
        self._store.record(self._store.acts, Update(query.to_json(), noisy))
        if isinstance(self._measurements, PrintedGuess):
            self._measurements = self._measurements.learn(self._operator(query), noisy)
        else:
            self._measurements = self._load()
        units = NoisyUnits(np.array([noisy], object), self.terms.granularity, self.terms.scales.answer)
        return units.answer(0, least=0.0)

    def _guess_answer(self, guess: float) -> Answer:
        """The guess, which was not above the threshold: off by that, two noises and rounding at most."""
        terms = self.terms

        def reach(beta: float) -> float:
            noise = sum(largest_reach(s, 1, beta / 2) for s in (terms.threshold_scale, terms.query_scale))
            return (terms.threshold_units + noise + 1) / terms.granularity

        def spread() -> float:
            return (terms.threshold_units + float(terms.query_scale)) / terms.granularity

        return Answer(guess, spread, lambda beta: (guess - reach(beta), guess + reach(beta)))

    def _begin_as_printed(self) -> None:
        """Store the number of rows, which is public: there is nothing to measure."""
        self._account.act()
        self._store.begin(FirstGuess(total=self._points.total, axes=[], bins=[], marginals=[]))

    def _begin(self) -> None:
        """Measure the total and sums along the axes, once; counted before it is drawn."""
        self._account.act()
        terms, points = self.terms, self._points
        total = int(self._noise.add(points.total, terms.scales.total))
        loudness = max(1, total) / float(terms.scales.marginal)
        margins = choose_margins(terms.universe.shape, terms.axes, loudness)
        marginals: list[int] = []
        for margin in margins:
            marginals += self._noise.add(_bin_counts(points, margin), terms.scales.marginal).tolist()
        axes, bins = [margin.axis for margin in margins], [margin.bins for margin in margins]
        self._store.begin(FirstGuess(total=total, axes=axes, bins=bins, marginals=marginals))

    def _load(self) -> Measurements | PrintedGuess:
        """All measurements; the first query is the total, which no run has measured."""
        first, updates = self._store.first_guess, self._store.updates()
        if first is None:
            raise errors.BudgetLost(
                "the first guess of this session was charged and is not stored; that budget is gone, so open "
                "another session"
            )
        shape = self.terms.universe.shape
        try:
            if self.terms.printed:
                return self._steps(first, updates)
            queries = [total(), *(read_queries(update.query) for update in updates)]
            return Measurements(
                operator=Stack([self._operator(query) for query in queries]),
                unit=1,
                grain=1,
                total=first.total,
                margins=tuple(Margin(shape, *along) for along in zip(first.axes, first.bins, strict=False)),
                marginals=np.array(first.marginals, object),
                indices=np.arange(1, len(queries)),
                noisy=np.array([update.noisy for update in updates], object),
                scales=self.terms.scales,
            )
        except (errors.InvalidParameter, errors.InvalidRelease):
            fix = "check the path"
            raise errors.InvalidState("updates", "must be of this session's universe", fix=fix) from None

    def _steps(self, first: FirstGuess, updates: list[Update]) -> PrintedGuess:
        """The printed guess after all measurements; a file of other rows than the data is `InvalidState`."""
        if first.total != self._points.total or first.axes or first.bins or first.marginals:
            raise errors.InvalidState("begun", "must be of so many rows", fix="open it with the same rows")
        guess = PrintedGuess(self.terms, first.total)
        for update in updates:
            guess = guess.learn(self._operator(read_queries(update.query)), update.noisy)
        return guess

    def _guess(self, operator: Structured) -> float:
        return float(operator.answers(self._measurements.x)[0]) / self.terms.granularity

    def _normalize(self, query: Queries) -> Queries:
        """The query as the file will have it: checked before anything is compared."""
        fix = 'pass between("age", 30, 39)'
        errors.check(isinstance(query, Queries), "query", "must be a query", given=query, fix=fix)
        return read_queries(query.settled(self.terms.universe).to_json())

    def _operator(self, query: Queries) -> Structured:
        return self.terms.refine(query.over(self.terms.universe))

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise errors.StreamForked(
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
    Points on a cluster are gathered before anything is debited: queries come one at a time.
    """
    data = check_points_fit(points, terms.universe.axes, terms.guarantee.contributions).gathered()
    place = Path(os.path.realpath(path))
    OnlineStore.create(place, terms.to_text())
    store = OnlineStore(place)
    try:
        same, fix = store.terms == terms.to_text(), "use the terms it has"
        errors.check(same, "path", "must be of a session with these terms", given=str(path), fix=fix)
        account = OnlineAccount.open(store, terms.guarantee, ledger, dataset)
        return WeightsSession(terms, store, account, data, noise.session())
    except BaseException:
        store.close()
        raise


def _bin_counts(points: Points, margin: Margin) -> Any:
    """How many rows are in each bin along an axis, exactly."""
    bins = np.searchsorted(margin.edges, points.places[:, margin.axis].astype(np.int64), side="right") - 1
    counts = np.zeros(margin.bins, np.int64)
    np.add.at(counts, bins, points.counts)
    return counts
