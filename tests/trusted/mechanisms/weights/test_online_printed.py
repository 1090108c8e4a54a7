"""Online weights as printed: the law of whole sessions, steps, the bound before the data, refusals."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.domain import Integer
from partita.errors import BudgetExceeded, InvalidParameter, InvalidState
from partita.public.queries.language import between
from partita.public.queries.queries import Universe
from partita.testing import EndlessTape, ZeroNoise, change_one_pairs, law, privacy_loss, tape_noise
from partita.trusted.mechanisms import online_weights
from partita.trusted.mechanisms.online_weights import (
    AboveThreshold,
    FirstGuess,
    OnlineTerms,
    PrintedGuess,
    Update,
    WeightsSession,
    open_session,
)
from partita.trusted.noise import SYSTEM
from partita.trusted.secret import Points
from tests.seams import SETTLING

from .weights_tools import Clamped, Counts, line, points_of

pytestmark = [
    pytest.mark.usefixtures("quick_settling"),
    pytest.mark.filterwarnings("ignore::partita.PrivacyWarning"),
]

BASE, UNIT = Fraction(9, 10), Fraction(1, 18)
UNIVERSE = Universe(["age"], [Integer(0, 15)])
ROWS = 4000
DATA = Points.from_rows([[at] for at in (3, 4, 11)], axes=UNIVERSE.axes, counts=[2000, 1000, 1000])
QUESTIONS = (between("age", 0, 0), between("age", 1, 1), between("age", 0, 0))


def _terms(**given: Any) -> OnlineTerms:
    common: dict[str, Any] = {
        "universe": line(6),
        "epsilon": 1,
        "updates": 2,
        "threshold": 0,
        "neighbors": "change-one",
        "variant": "printed",
    }
    return OnlineTerms.of(**{**common, **given})


class _Memory:
    """A session's store without a file, which writes down when it is told of something."""

    def __init__(self) -> None:
        self.acts, self._updates, self.order = 0, list[Update](), list[str]()
        self.first_guess: FirstGuess | None = None

    def act(self) -> int:
        self.order.append("act")
        self.acts += 1
        return self.acts

    def begin(self, first: FirstGuess) -> None:
        self.first_guess = first

    def record(self, run: int, update: Update) -> None:
        self.order.append("record")
        self._updates.append(update)

    def updates(self) -> list[Update]:
        return self._updates


class _Kept(WeightsSession):  # type: ignore[misc]
    """Goes on with the noise of the threshold after a comparison that was above."""

    kept: AboveThreshold | None = None

    def _open_run(self) -> AboveThreshold:
        if self.kept is None or self._run is not None:
            self.kept = super()._open_run()
            return self.kept
        self._account.act()
        self.kept._over, self._run = False, self.kept
        return self.kept


class _Quiet(Clamped):
    """Measurements with an eighth of their noise."""

    def _add(self, value: int, scale: Fraction) -> int | str:
        return super()._add(value, scale / 8)


class _Truthful(WeightsSession):  # type: ignore[misc]
    """Steps follow the true answer."""

    def _measure(self, query: Any, truth: int) -> Any:
        guess = self._measurements
        answer = super()._measure(query, truth)
        again = PrintedGuess(self.terms, self._points.total).learn(self._operator(query), truth)
        self._measurements = again if len(self._store.updates()) == 1 else guess
        return answer


def _law(counts: Counts, kind: Any, noise_kind: Any, questions: Any) -> Any:
    terms, points = _terms(), points_of((0, *counts, 0, 0, 0), line(6))

    def asked(noise: Any) -> tuple[Any, ...]:
        store: Any = _Memory()
        session = kind(terms, store, store, points, noise)
        seen: list[float | None] = []
        for question in questions:
            try:
                seen.append(session.ask(question).value)
            except BudgetExceeded:
                seen.append(None)
        return store.first_guess.total, tuple(seen), tuple(store.updates())

    return law(asked, noise_kind(BASE, unit=UNIT, window=range(2)))


PAIRS = [((1, 0), (0, 1))]


def _loss(kind: Any = WeightsSession, noise_kind: Any = Clamped, pairs: Any = PAIRS) -> Any:
    return max(
        privacy_loss(*(_law(each, kind, noise_kind, QUESTIONS) for each in pair), base=BASE, unit=UNIT)
        for pair in pairs
    )


def test_a_session_loses_at_most_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs, their steps and all answers, enumerated over all rows that change."""
    monkeypatch.setattr(SETTLING, 1)
    worst = _loss(pairs=[pair for pair in change_one_pairs(2, 1) if sum(pair[0])])

    assert worst <= 1
    assert float(worst) > 0.3


class _HalfCompared(AboveThreshold):  # type: ignore[misc]
    """Comparisons with an eighth of their noise."""

    def __init__(self, terms: OnlineTerms, noise: Any) -> None:
        super().__init__(terms, noise)
        self._fresh = noise.first_success("laplace", terms.query_scale / 8)


@pytest.mark.parametrize(
    ("kind", "noise"), [(WeightsSession, _Quiet), (_Truthful, Clamped)], ids=["answers", "true steps"]
)
def test_wrong_sessions_are_caught(kind: Any, noise: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measurements with too little noise, and steps towards the truth, cost more than epsilon."""
    monkeypatch.setattr(SETTLING, 1)

    assert _loss(kind, noise) > 1


def test_comparisons_with_too_little_noise_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same law shows them."""
    monkeypatch.setattr(SETTLING, 1)
    monkeypatch.setattr(online_weights, "AboveThreshold", _HalfCompared)

    assert _loss() > 1


def test_runs_and_measurements_share_all_of_epsilon() -> None:
    """As printed, eight ninths for comparisons; noise is 9c/4, 9c/2 and 9c over epsilon."""
    terms = _terms(updates=30, epsilon=2)
    run = 1 / terms.threshold_scale + 2 / terms.query_scale

    assert 30 * (run + 1 / terms.scales.answer) == 2
    assert 30 * run == Fraction(16, 9)
    assert [terms.threshold_scale, terms.query_scale, terms.scales.answer] == [
        Fraction(9 * 30, 2 * factor) for factor in (4, 2, 1)
    ]


class _Watched(ZeroNoise):
    """No noise; every draw is written down."""

    def __init__(self, order: list[str]) -> None:
        super().__init__()
        self.order = order

    def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
        self.order.append("add")
        return super().add(x, scale, parts=parts)

    def draw(self, law: Any, scale: Fraction) -> int:
        self.order.append("draw")
        return super().draw(law, scale)


def _session(kind: Any = WeightsSession) -> list[str]:
    """What a session of three hard queries does, in order."""
    store: Any = _Memory()
    noise: Any = _Watched(store.order)
    noise.session = lambda: noise
    session = kind(_terms(universe=UNIVERSE, updates=3, threshold=100), store, store, DATA, noise)
    for age in (2, 3, 10):
        session.ask(between("age", age, age))
    order: list[str] = store.order
    return order


def test_every_run_is_charged_and_draws_a_threshold_of_its_own() -> None:
    """Charged, drawn, measured, stored; a session that keeps the threshold's noise would not draw again."""
    run = ["act", "draw", "add", "record"]

    assert _session() == ["act", *run * 3]
    assert _session(_Kept) != _session()


def _open(path: Path, points: Points = DATA, noise: Any = None, **given: Any) -> WeightsSession:
    terms = _terms(**{"universe": UNIVERSE, "epsilon": 50, "threshold": 300, **given})
    return open_session(path, terms, points, noise=noise or tape_noise(EndlessTape("printed")))


def test_steps_are_those_of_the_book(tmp_path: Path) -> None:
    """Even at first; cells of a hard query are multiplied by e^(alpha / 2) or e^(-alpha / 2)."""
    with _open(tmp_path / "s", noise=ZeroNoise(), updates=5, threshold=300) as session:
        cells, first = UNIVERSE.size, UNIVERSE.axes[0].before
        assert session.public(between("age", 0, 3)).value == pytest.approx(ROWS * 4 / cells)
        session.ask(between("age", 2, 2))
        session.ask(between("age", 4, 9))

        weights = np.ones(cells)
        weights[first + 2] *= math.exp(session.terms.alpha / 2)
        weights[first + 4 : first + 10] *= math.exp(-session.terms.alpha / 2)
        expected = (weights * ROWS / weights.sum())[first : first + 16]
        got = [session.public(between("age", age, age)).value for age in range(16)]

        assert len(session.measured) == 2
        assert session.terms.alpha == pytest.approx(math.sqrt(4 * math.log(cells) / 5))
        np.testing.assert_allclose(got, expected)


def test_a_session_goes_on_where_it_was(tmp_path: Path) -> None:
    """Opened again it has the same guess; for another number of rows it is refused."""
    with _open(tmp_path / "s", updates=5) as session:
        session.ask(between("age", 2, 2))
        known, answer = session.measured, session.public(between("age", 2, 3)).value
    with _open(tmp_path / "s", updates=5) as session:
        assert (session.measured, session.remaining) == (known, 4)
        assert session.public(between("age", 2, 3)).value == answer
    fewer = Points.from_rows([[3]], axes=UNIVERSE.axes, counts=[7])
    with pytest.raises(InvalidState, match="rows"):
        _open(tmp_path / "s", fewer, updates=5)


def test_the_terms_of_other_sessions_stay_as_they_were() -> None:
    """The variant stands in the terms of a printed session alone: files of earlier versions are opened."""
    assert '"variant": "printed"' in _terms().to_text()
    assert "variant" not in _terms(variant="fitted").to_text()


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"neighbors": "add-remove"}, "variant"),
        ({"contributions": 2, "unit": "person"}, "variant"),
        ({"delta": "1e-6"}, "delta"),
        ({"threshold": None}, "threshold"),
        ({"variant": "other"}, "variant"),
    ],
)
def test_terms_that_are_not_printed_are_refused(given: dict[str, Any], name: str) -> None:
    """Where n is secret, with delta, and without a threshold, which is a function of n."""
    with pytest.raises(InvalidParameter, match=name):
        _terms(**given)


def test_only_the_printed_variant_has_a_bound() -> None:
    """A typed error says so, and names what the bound grows with."""
    with pytest.raises(InvalidParameter, match=r"variant.*printed"):
        _terms(variant="fitted").bound(rows=10, queries=3)
    with pytest.raises(InvalidParameter, match="rows must be given"):
        _terms().bound(queries=3)
    with pytest.raises(InvalidParameter, match="queries"):
        _terms().bound(rows=3)


def test_least_threshold_is_the_first_with_a_bound() -> None:
    """One row less, and the theorem says nothing."""
    sizes: dict[str, Any] = {"rows": ROWS, "queries": 100}
    least = _terms(universe=UNIVERSE, updates=100, epsilon=50).least_threshold(**sizes)
    bounds = [
        _terms(universe=UNIVERSE, updates=100, epsilon=50, threshold=least + more).bound(**sizes)
        for more in (-1, 0, 10)
    ]

    assert bounds[0] == math.inf
    assert least < bounds[1] < bounds[2] == bounds[1] + 10


def _largest_miss(noise: Any, terms: OnlineTerms, questions: int) -> float:
    """Over adaptive questions: always the cell that is off by most, or a random range."""
    store: Any = _Memory()
    session = WeightsSession(terms, store, store, DATA, noise.session())
    truth, worst = np.zeros(16), 0.0
    np.add.at(truth, DATA.places[:, 0].astype(int) - UNIVERSE.axes[0].before, DATA.counts)
    for number in range(questions):
        guess = np.array([session.public(between("age", age, age)).value for age in range(16)])
        low = int(np.argmax(abs(guess - truth))) if number % 2 else number % 16
        high = low if number % 2 else min(15, low + number % 5)
        answer = session.ask(between("age", low, high)).value
        worst = max(worst, abs(answer - truth[low : high + 1].sum()))
    return worst


@pytest.mark.parametrize("seed", range(2))
def test_bound_holds_for_all_answers_on_fixed_tapes(seed: int) -> None:
    """All questions are answered, and none misses by more than the bound of nineteen in twenty sessions."""
    terms = _terms(universe=UNIVERSE, updates=60, epsilon=200, threshold=1)
    sizes: dict[str, Any] = {"rows": ROWS, "queries": 40}
    terms = _terms(
        universe=UNIVERSE, updates=60, epsilon=200, threshold=terms.least_threshold("0.05", **sizes)
    )

    miss = _largest_miss(tape_noise(EndlessTape(seed)), terms, 40)

    assert miss <= terms.bound("0.05", **sizes) < ROWS
    assert miss > 0


@pytest.mark.statistics
def test_bound_holds_at_its_rate() -> None:
    """Of 60 sessions with fresh noise more than 45 beyond the bound at one half have a chance below 1e-4."""
    sizes: dict[str, Any] = {"rows": ROWS, "queries": 30}
    common: dict[str, Any] = {"universe": UNIVERSE, "updates": 40, "epsilon": 100}
    least = _terms(**common, threshold=1).least_threshold("1/2", **sizes)
    terms = _terms(**common, threshold=least)

    misses = [_largest_miss(SYSTEM, terms, 30) for _ in range(60)]

    assert sum(miss > terms.bound("1/2", **sizes) for miss in misses) <= 45
    assert max(misses) > terms.bound("1/2", **sizes) / 8
