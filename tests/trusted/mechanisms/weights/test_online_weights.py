"""Online weights: the law of a run, sessions that charge before they answer, and refusals."""

from __future__ import annotations

import os
import shutil
import sqlite3
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.domain import Integer
from partita.errors import (
    BudgetExceeded,
    BudgetLost,
    InvalidData,
    InvalidParameter,
    InvalidState,
    LedgerRefusal,
    StreamBusy,
    StreamError,
    StreamForked,
)
from partita.ledger.ledger import Ledger
from partita.public.queries.language import between, ranges, total, value
from partita.public.queries.queries import Queries, Universe
from partita.testing import (
    EndlessTape,
    RationalNoise,
    ZeroNoise,
    add_remove_pairs,
    data_sets,
    law,
    privacy_loss,
    tape_noise,
)
from partita.trusted.mechanisms import online_weights
from partita.trusted.mechanisms.online_weights import (
    AboveThreshold,
    FirstGuess,
    OnlineTerms,
    Update,
    WeightsSession,
    open_session,
)
from partita.trusted.mechanisms.weights import choose_margins
from partita.trusted.secret import Points
from tests.seams import SETTLING

from .weights_tools import Clamped, Counts, Recorder, Replayer, line, points_of

pytestmark = pytest.mark.usefixtures("quick_settling")

BASE = Fraction(9, 10)
UNIT = Fraction(1, 160)
UNIVERSE = Universe(["age", "pay"], [Integer(0, 3), Integer(0, 3)])
DATA = Points.from_rows([[at, at] for at in range(1, 5)], axes=UNIVERSE.axes, counts=[300] * 4)
"""Rows on the diagonal of a square, which sums along axes do not show."""


def _box(age: int, pay: int) -> Queries:
    return between("age", age, age) * between("pay", pay, pay)


def _terms(**given: Any) -> OnlineTerms:
    return OnlineTerms.of(**{"universe": line(6), "epsilon": 1, "updates": 1, "threshold": 0, **given})


def _run_law(distances: tuple[int, ...], run: Any = AboveThreshold) -> Any:
    terms = _terms()

    def compared(noise: RationalNoise) -> tuple[bool, ...]:
        above, seen = run(terms, noise), []
        for distance in distances:
            seen.append(above.is_above(distance))
            if seen[-1] and run is not _Reused:
                break
        return tuple(seen)

    return law(compared, RationalNoise(BASE, unit=UNIT))


STREAMS = [((0, 0, 0, 1), (1, 1, 1, 0)), ((0,) * 6, (1,) * 6), ((2, 1, 0), (1, 0, 1))]
"""Pairs of streams of distances that differ by at most one each."""


def _worst_run(streams: Any, run: Any = AboveThreshold) -> Any:
    return max(
        privacy_loss(_run_law(one, run), _run_law(other, run), base=BASE, unit=UNIT) for one, other in streams
    )


def test_a_run_loses_at_most_its_rate() -> None:
    """Enumerated up to the first comparison that is above, neighbours differ by the run's epsilon at most."""
    worst = _worst_run(STREAMS)

    assert worst <= _terms().run_rate
    assert float(worst) > float(_terms().run_rate) / 2


class _Reused(AboveThreshold):  # type: ignore[misc]
    """Goes on after a comparison that was above, with the same threshold noise."""

    def is_above(self, distance: int) -> bool:
        self._over = False
        return super().is_above(distance)


class _Unhidden(AboveThreshold):  # type: ignore[misc]
    """A threshold without noise."""

    def __init__(self, terms: OnlineTerms, noise: Any) -> None:
        super().__init__(terms, noise)
        self._level = terms.threshold_units


class _Quiet(AboveThreshold):  # type: ignore[misc]
    """Comparisons with a quarter of their noise."""

    def __init__(self, terms: OnlineTerms, noise: Any) -> None:
        super().__init__(terms, noise)
        self._fresh = noise.first_success("laplace", terms.query_scale / 4)


@pytest.mark.parametrize(
    ("bug", "streams"),
    [
        (_Reused, ((0, 0, 1, 1, 1), (1, 1, 0, 0, 0))),
        (_Unhidden, ((0,) * 6, (1,) * 6)),
        (_Quiet, STREAMS[2]),
    ],
)
def test_wrong_runs_are_caught(bug: Any, streams: Any) -> None:
    """A threshold that is reused or not hidden, and comparisons with too little noise, cost more."""
    assert _worst_run([streams], bug) > _terms().run_rate


def test_a_reused_threshold_loses_more_with_every_comparison_that_is_above() -> None:
    """The loss of the shipped run stays within its rate, and that of one that goes on grows."""
    streams = [((0, 0, *[1] * above), (1, 1, *[0] * above)) for above in (1, 2, 3)]
    shipped, reused = ([_worst_run([pair], run) for pair in streams] for run in (AboveThreshold, _Reused))

    assert max(shipped) <= _terms().run_rate
    assert reused[0] < reused[1] < reused[2]
    assert reused[2] > _terms().run_rate


class _Memory:
    """A session's store without a file."""

    def __init__(self) -> None:
        self.acts, self._updates = 0, list[Update]()
        self.first_guess: FirstGuess | None = None

    def act(self) -> int:
        self.acts += 1
        return self.acts

    def begin(self, first: FirstGuess) -> None:
        self.first_guess = first

    def record(self, run: int, update: Update) -> None:
        self._updates.append(update)

    def updates(self) -> list[Update]:
        return self._updates


QUESTIONS = (between("age", 0, 0), between("age", 0, 1))


def _session_law(counts: Counts) -> Any:
    terms, points = _terms(), points_of((0, *counts, 0, 0, 0), line(6))

    def asked(noise: RationalNoise) -> tuple[Any, ...]:
        store: Any = _Memory()
        session = WeightsSession(terms, store, store, points, noise)
        seen: list[float | None] = []
        for question in QUESTIONS:
            try:
                seen.append(session.ask(question).value)
            except BudgetExceeded:
                seen.append(None)
        return (
            store.first_guess.total,
            tuple(store.first_guess.marginals),
            tuple(seen),
            tuple(store.updates()),
        )

    return law(asked, Clamped(BASE, unit=UNIT, window=range(3)))


def test_a_session_loses_at_most_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole session, its first guess and all answers, enumerated over all small neighbours."""
    monkeypatch.setattr(SETTLING, 1)
    laws = {counts: _session_law(counts) for counts in data_sets(2, 1)}

    worst = max(
        privacy_loss(laws[one], laws[other], base=BASE, unit=UNIT) for one, other in add_remove_pairs(2, 1)
    )

    assert worst <= 1
    assert float(worst) > 0.5


class _Ordered(_Memory):
    """A store that writes down when it is told of something, in one list with the draws of its noise."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = []

    def act(self) -> int:
        self.order.append("act")
        return super().act()

    def begin(self, first: FirstGuess) -> None:
        self.order.append("begin")
        super().begin(first)

    def record(self, run: int, update: Update) -> None:
        self.order.append("record")
        super().record(run, update)


class _OrderedNoise(Recorder):
    """Noise that writes down every draw."""

    def __init__(self, order: list[str], noise: Any) -> None:
        super().__init__(noise)
        self.order = order

    def add(self, x: Any, scale: Fraction) -> Any:
        self.order.append("add")
        return super().add(x, scale)

    def draw(self, law: Any, scale: Fraction) -> int:
        self.order.append("draw")
        return self.noise.draw(law, scale)

    def first_success(self, law: Any, scale: Fraction) -> Any:
        self.order.append("compare")
        return self.noise.first_success(law, scale)


def test_every_draw_comes_after_its_charge() -> None:
    """The first guess, then runs with their measurements: charged, drawn, stored, in this order."""
    store: Any = _Ordered()
    noise: Any = _OrderedNoise(store.order, tape_noise(EndlessTape("order")).session())
    session = WeightsSession(
        OnlineTerms.of(universe=UNIVERSE, epsilon=4, updates=2, threshold=30), store, store, DATA, noise
    )
    for _ in range(2):
        session.ask(_box(len(store.updates()), len(store.updates())))

    run = ["act", "draw", "compare", "add", "record"]
    assert store.order == ["act", "add", "add", "add", "begin", *run, *run]


class _NoMore(Exception):
    """The power is cut."""


@pytest.mark.parametrize("drawn", range(3))
def test_no_draw_of_the_first_guess_is_lost_uncharged(tmp_path: Path, drawn: int) -> None:
    """If the power fails at any draw of the first guess, the file has counted it and draws it no more."""

    class Failing(ZeroNoise):
        left = drawn

        def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
            if not self.left:
                raise _NoMore
            self.left -= 1
            return super().add(x, scale, parts=parts)

    with pytest.raises(_NoMore):
        _open(tmp_path / "s", noise=Failing())
    with pytest.raises(BudgetLost):
        _open(tmp_path / "s")


def _first_guess(points: Points, noise: Any, terms: OnlineTerms) -> FirstGuess:
    store: Any = _Memory()
    WeightsSession(terms, store, store, points, noise)
    begun: FirstGuess = store.first_guess
    return begun


def _crowd_border() -> tuple[OnlineTerms, list[int]]:
    """Terms, and the numbers of rows at which one more row changes the bins of a first guess."""
    terms = _terms(universe=line(40), epsilon=1)
    scale = terms.scales.marginal
    rows = range(1, 2_000)
    return terms, [n for n in rows if int(n / scale / 8) != int((n + 1) / scale / 8)]


def _replayed(terms: OnlineTerms, rows: int, begin: Any) -> Fraction:
    """What one more row costs in a first guess; it must not show in what is stored."""
    first = Recorder(tape_noise(EndlessTape(("bins", rows))).session())
    seen = begin(points_of((0, rows, *[0] * 38), line(40)), first, terms)
    second = Replayer(first.looks)
    assert begin(points_of((0, rows + 1, *[0] * 38), line(40)), second, terms) == seen, "unpaid"
    return second.loss


def test_the_bins_of_a_first_guess_follow_from_the_noisy_total() -> None:
    """Where one row would change the bins, neighbours with the same noisy total have the same first guess."""
    terms, borders = _crowd_border()
    cost = 1 / terms.scales.total + 1 / terms.scales.marginal

    assert len(borders) >= 5
    assert {_replayed(terms, rows, _first_guess) for rows in borders} == {cost}


def test_bins_by_the_true_total_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the bins of a first guess follow the true number of rows, neighbours show it."""
    terms, borders = _crowd_border()
    secret = [0]

    def leaking(shape: Any, axes: Any, loudness: float) -> Any:
        return choose_margins(shape, axes, secret[0] / float(terms.scales.marginal))

    def begin(points: Points, noise: Any, terms: OnlineTerms) -> FirstGuess:
        secret[0] = points.total
        return _first_guess(points, noise, terms)

    monkeypatch.setattr(online_weights, "choose_margins", leaking)

    with pytest.raises(AssertionError, match=r"depends on the data|unpaid"):
        assert {_replayed(terms, rows, begin) for rows in borders}


def test_a_row_that_moves_costs_both_of_its_bins() -> None:
    """Under change-one the first guess pays for a row that leaves one bin and enters another."""
    terms = _terms(universe=line(6), epsilon=1, neighbors="change-one")
    share = terms.guarantee.epsilon * Fraction(3, 10)
    one, other = (points_of((0, *counts, 0), line(6)) for counts in ((91, 90, 90, 90), (90, 90, 90, 91)))
    first = Recorder(tape_noise(EndlessTape("moved")).session())
    seen = _first_guess(one, first, terms)
    second = Replayer(first.looks)

    assert _first_guess(other, second, terms) == seen
    assert second.loss == share


def _open(path: Path, points: Points = DATA, **given: Any) -> WeightsSession:
    terms: dict[str, Any] = {"universe": UNIVERSE, "epsilon": 4, "updates": 3, "threshold": 30}
    noise = given.pop("noise", None) or tape_noise(EndlessTape("online"))
    budget = {name: given.pop(name) for name in ("ledger", "dataset") if name in given}
    return open_session(path, OnlineTerms.of(**{**terms, **given}), points, **budget, noise=noise)


def test_without_noise_a_session_is_exact_or_close(tmp_path: Path) -> None:
    """Answers that are off by more than the threshold are the truth, and others are within it."""
    with _open(tmp_path / "s", noise=ZeroNoise(), updates=16) as session:
        for age, pay in product(range(4), repeat=2):
            answer, truth = session.ask(_box(age, pay)), 300 * (age == pay)

            assert abs(answer.value - truth) <= 31
            assert answer.worst(0.05)[0] <= truth <= answer.worst(0.05)[1]
        assert 0 < len(session.measured) < 16


def test_a_session_learns(tmp_path: Path) -> None:
    """What was measured once is answered from the guess the next time."""
    with _open(tmp_path / "s", updates=9) as session:
        question = _box(1, 1)
        session.ask(question)
        updates = len(session.measured)
        again = session.ask(question)

        assert updates == len(session.measured) == 1
        assert again.value == pytest.approx(300, abs=60)


def test_a_session_refuses_when_its_updates_are_spent(tmp_path: Path) -> None:
    """After the last update nothing more is compared; the guess still answers where that is asked for."""
    with _open(tmp_path / "s", updates=1) as session:
        session.ask(_box(2, 2))
        assert session.remaining == 0
        before = session.public(_box(3, 3))

        with pytest.raises(BudgetExceeded, match="all 1 updates"):
            session.ask(_box(3, 3))

        assert session.public(_box(3, 3)).value == before.value
        assert before.worst(0.05) == (0.0, np.inf)


def test_what_was_measured_survives(tmp_path: Path) -> None:
    """Opened again, a session has the same guess, and pays for a new run when it is asked."""
    with _open(tmp_path / "s") as session:
        session.ask(_box(2, 2))
        known, answer = session.measured, session.public(_box(1, 2)).value
    with _open(tmp_path / "s", noise=tape_noise(EndlessTape("again"))) as session:
        assert session.measured == known
        assert session.public(_box(1, 2)).value == answer
        assert session.remaining == 2
        session.ask(_box(2, 2))
        assert session.remaining == 1


def test_a_run_is_charged_before_it_compares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the noise of a run is drawn, the file has counted it; if drawing fails, it stays counted."""
    seen = []

    def failing(terms: OnlineTerms, noise: Any) -> Any:
        with sqlite3.connect(tmp_path / "s") as other:
            seen.extend(other.execute("SELECT acts FROM session").fetchone())
        other.close()
        raise RuntimeError("the power is cut")

    with _open(tmp_path / "s") as session:
        monkeypatch.setattr(online_weights, "AboveThreshold", failing)
        with pytest.raises(RuntimeError, match="power"):
            session.ask(total())
        assert session.remaining == 2
    assert seen == [2]


def test_a_measurement_is_stored_before_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it cannot be stored, it is not told, and its run is over."""
    with _open(tmp_path / "s") as session:
        monkeypatch.setattr(session._store, "record", _fail)
        with pytest.raises(StreamError, match="full"):
            session.ask(_box(2, 2))

        assert session.measured == ()
        assert session.remaining == 2


def _fail(*_: object, **__: object) -> None:
    raise StreamError("the disk is full")


def test_a_lost_first_guess_is_not_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Charged and not stored, it is gone."""
    with monkeypatch.context() as patch:
        patch.setattr("partita.trusted.mechanisms.online_weights.OnlineStore.begin", _fail)
        with pytest.raises(StreamError):
            _open(tmp_path / "s")

    with pytest.raises(BudgetLost):
        _open(tmp_path / "s")


def test_a_session_has_one_writer(tmp_path: Path) -> None:
    """A second object is told to ask the first one."""
    with _open(tmp_path / "s"), pytest.raises(StreamBusy, match="weights session"):
        _open(tmp_path / "s")


def test_a_ledger_is_debited_once_and_knows_copies(tmp_path: Path) -> None:
    """All of epsilon is paid at the first opening; an old copy is refused, and so is another ledger."""
    ledger = Ledger(tmp_path / "ledger")
    ledger.open("people", epsilon=5)
    paid: dict[str, Any] = {"ledger": ledger, "dataset": "people"}
    with _open(tmp_path / "s", **paid):
        shutil.copy(tmp_path / "s", tmp_path / "copy")
    with _open(tmp_path / "s", **paid) as session:
        session.ask(total())

    assert ledger.balance("people").left.epsilon == 1
    with pytest.raises(StreamForked, match="old copy"):
        _open(tmp_path / "copy", **paid)
    with pytest.raises(BudgetExceeded):
        _open(tmp_path / "other", **paid)
    other = Ledger(tmp_path / "second")
    other.open("people", epsilon=5)
    with pytest.raises(LedgerRefusal, match="not paid"):
        _open(tmp_path / "s", ledger=other, dataset="people")


def test_what_a_ledger_pays_is_not_opened_without_it(tmp_path: Path) -> None:
    """A copy used without the ledger would spend the one debit twice: it is refused, and so is the file."""
    ledger = Ledger(tmp_path / "ledger")
    ledger.open("people", epsilon=5)
    with _open(tmp_path / "s", ledger=ledger, dataset="people"):
        shutil.copy(tmp_path / "s", tmp_path / "copy")

    for path in (tmp_path / "copy", tmp_path / "s"):
        with pytest.raises(LedgerRefusal, match="open it with the same ledger"):
            _open(path)
    with _open(tmp_path / "s", ledger=ledger, dataset="people") as session:
        assert session.remaining == 3


def test_that_a_ledger_pays_is_stored_before_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the debit fails, or the power does after it, the file is already tied to the ledger."""
    ledger = Ledger(tmp_path / "ledger")
    ledger.open("people", epsilon=5)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "debit", _fail)
        with pytest.raises(StreamError, match="full"):
            _open(tmp_path / "s", ledger=ledger, dataset="people")

    with pytest.raises(LedgerRefusal):
        _open(tmp_path / "s")
    with _open(tmp_path / "s", ledger=ledger, dataset="people"):
        assert ledger.balance("people").left.epsilon == 1


def test_whoever_opened_it_last_goes_on(tmp_path: Path) -> None:
    """With a ledger, a session that was opened again from a copy may begin no further run."""
    ledger = Ledger(tmp_path / "ledger")
    ledger.open("people", epsilon=5)
    paid: dict[str, Any] = {"ledger": ledger, "dataset": "people"}
    with _open(tmp_path / "s", **paid) as first:
        shutil.copy(tmp_path / "s", tmp_path / "copy")
        with _open(tmp_path / "copy", **paid) as second:
            second.ask(total())
            with pytest.raises(StreamForked):
                first.ask(total())


def test_other_terms_are_refused(tmp_path: Path) -> None:
    """A session is opened again with the terms that it has."""
    _open(tmp_path / "s").close()

    for name, changed in (("epsilon", 5), ("updates", 4), ("threshold", 3), ("granularity", 2)):
        with pytest.raises(InvalidParameter, match="these terms"):
            _open(tmp_path / "s", DATA, **{name: changed})


def test_unfitting_questions_are_refused_for_nothing(tmp_path: Path) -> None:
    """Several queries, large weights and fine weights are refused before a run is begun."""
    with _open(tmp_path / "s") as session:
        wrong: list[Any] = [
            ranges("age"),
            value("age"),
            total() * Fraction(1, 2),
            "age",
            between("age", 1, 2) * 2,
        ]
        for question in wrong:
            with pytest.raises(InvalidParameter):
                session.ask(question)
        assert session.remaining == 3


def test_fine_weights_need_a_granularity(tmp_path: Path) -> None:
    """Halves are answered in a session that counts in halves."""
    with _open(tmp_path / "s", granularity=2, noise=ZeroNoise()) as session:
        assert session.ask(total() * Fraction(1, 2)).value == pytest.approx(DATA.total / 2, abs=31)


def test_data_of_another_universe_are_refused(tmp_path: Path) -> None:
    """Points must lie in the universe, and bound contributions as tightly."""
    with pytest.raises(InvalidData):
        _open(tmp_path / "s", points_of((1,) * 6, line(6)))
    with pytest.raises(InvalidParameter, match="contributions"):
        _open(tmp_path / "s", Points.from_rows([[1, 1]], axes=UNIVERSE.axes, contributions=3))
    assert not (tmp_path / "s").exists()


def test_a_foreign_file_is_left_alone(tmp_path: Path) -> None:
    """What is no session is refused and not changed."""
    (tmp_path / "s").write_bytes(b"hello" * 1000)

    with pytest.raises(StreamError, match="not a weights session"):
        _open(tmp_path / "s")

    assert (tmp_path / "s").read_bytes() == b"hello" * 1000


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE session SET begun = '{}'",
        "UPDATE session SET begun = '[1]'",
        """UPDATE session SET begun = '{"total": "x", "axes": [], "bins": [], "marginals": []}'""",
        """UPDATE session SET begun = '{"total": 1, "axes": [7], "bins": [2], "marginals": [1, 2]}'""",
        "INSERT INTO updates VALUES (1, 'between(', '3')",
        "INSERT INTO updates VALUES (1, 'total()', 'three')",
    ],
)
def test_damaged_sessions_are_refused(tmp_path: Path, statement: str) -> None:
    """Nothing of a file that is not as it must be is believed."""
    _open(tmp_path / "s").close()
    with sqlite3.connect(tmp_path / "s") as connection:
        connection.execute(statement)
    connection.close()

    with pytest.raises(InvalidState):
        _open(tmp_path / "s")


def test_the_file_never_forgets(tmp_path: Path) -> None:
    """Acts do not become fewer, a ledger that pays stays, and so do measurements."""
    with _open(tmp_path / "s") as session:
        session.ask(_box(2, 2))
    connection = sqlite3.connect(tmp_path / "s")

    connection.execute("UPDATE session SET by_ledger = 1")

    for statement in (
        "UPDATE session SET acts = 0",
        "UPDATE session SET by_ledger = 0",
        "DELETE FROM updates",
        "UPDATE updates SET noisy = '0'",
    ):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
    connection.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parent and child would share one run."""
    with _open(tmp_path / "s") as session:
        session.ask(total())
        monkeypatch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(StreamForked, match="process"):
            session.ask(total())


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_terms_stay_within_their_budget(neighbors: Any, delta: object) -> None:
    """By their scales, the first guess, all comparisons and all measurements cost at most epsilon."""
    terms = _terms(neighbors=neighbors, delta=delta, updates=30, contributions=2, epsilon=2)
    change, scales = terms.change, terms.scales
    mass = Fraction(change.of_total)
    looks = [mass / scales.total, Fraction(change.of_cells) / scales.marginal]
    runs = [mass / terms.threshold_scale + 2 * mass / terms.query_scale, mass / scales.answer] * 30

    if not delta:
        assert sum(looks + runs) == 2
    else:
        assert sum(loss**2 for loss in looks + runs) / 2 <= Fraction(2) ** 2 / 4 / 13
