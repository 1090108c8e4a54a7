"""Functions that fail, lie or look aside by data: what the oracles answer keeps epsilon all the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidParameter
from partita.local import BudgetMemory, LROracle, RandomizedResponse, SQOracle, learn_logistic
from partita.trusted.noise.laws import Tape
from tests.local.laws import column_law, loses_at_most

EPSILON = Fraction(1, 1000)
UNIVERSE = (0, 1, 2)
TARGET = 1


class Untouchable:
    """A result that cannot be read."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("nothing to see")

    def __float__(self) -> float:
        raise RuntimeError("nothing to see")

    def __len__(self) -> int:
        raise RuntimeError("nothing to see")


class Unreadable(int):
    """A whole number that cannot be read."""

    def __int__(self) -> int:
        raise RuntimeError("nothing to see")


def _there(column: Any) -> bool:
    return bool((np.asarray(column) == TARGET).any())


def _raises(column: Any) -> Any:
    if _there(column):
        raise ValueError("it is there")
    return column * 0


def _raises_an_odd_error(column: Any) -> Any:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    if _there(column):
        raise Odd
    return column * 0


def _recurses(column: Any) -> Any:
    return _recurses(column) if _there(column) else column * 0


def _mixes(column: Any) -> Any:
    """All cells say what the first row is."""
    return np.full(len(column), int(column[0] == TARGET))


def _looks_at_the_base(column: Any) -> Any:
    """All cells say what is in the array that the rows come from."""
    whole = column if column.base is None else column.base
    return np.full(len(column), int(whole.ravel()[0] == TARGET))


def _writes(column: Any) -> Any:
    """The rows that come later are changed, if rows are shared."""
    whole = column if column.base is None else column.base
    if _there(column):
        whole[...] = TARGET
    return column == TARGET


def _instead(result: Any) -> Callable[[Any], Any]:
    return lambda column: result if _there(column) else column * 0


HOSTILE: dict[str, Callable[[Any], Any]] = {
    "raises": _raises,
    "raises an odd error": _raises_an_odd_error,
    "recurses": _recurses,
    "mixes rows": _mixes,
    "looks at the base": _looks_at_the_base,
    "writes": _writes,
    "nothing": _instead(None),
    "text": _instead("one"),
    "a shorter column": _instead(np.zeros(0, dtype=int)),
    "a longer column": _instead(np.zeros(5, dtype=int)),
    "a table": _instead(np.zeros((1, 1), dtype=int)),
    "a scalar": _instead(np.int64(1)),
    "ragged lists": _instead([[1], [1, 2]]),
    "not a number": _instead([float("nan")]),
    "infinite": _instead([float("inf")]),
    "out of range": _instead([10**30]),
    "below range": _instead([-(10**30)]),
    "a complex number": _instead([1j]),
    "unreadable": _instead(Untouchable()),
    "unreadable in a list": _instead([Untouchable()]),
    "a type": _instead(int),
}


class LRAsked:
    """Asks everybody once; what is seen is all reports, or that there was an error."""

    def __init__(self, through: Any) -> None:
        self.through = through

    def randomize_many(self, values: Any, *, words: Any) -> Any:
        oracle = LROracle(np.array(values), BudgetMemory(people=len(values), cap=1))
        law = RandomizedResponse(size=2, epsilon=EPSILON)
        try:
            return oracle.ask(range(len(values)), law, through=self.through, words=words)
        except Exception:
            return np.array([-1])


class SQAsked:
    """One query of everybody; what is seen is the answer, or that there was an error."""

    def __init__(self, phi: Any, *, columnwise: bool) -> None:
        self.phi, self.columnwise = phi, columnwise

    def randomize_many(self, values: Any, *, words: Any) -> Any:
        book = BudgetMemory(people=len(values), cap=1)
        oracle = SQOracle(LROracle(np.array(values), book), epsilon=EPSILON)
        try:
            tau = oracle.tau(len(values))
            oracle.people = lambda tau: len(values)  # type: ignore[method-assign]
            answer = oracle.ask(self.phi, tau=tau, columnwise=self.columnwise, words=words)
            return np.array([round(answer.value * 10**12)])
        except Exception:
            return np.array([-1])


def keeps_epsilon(monkeypatch: pytest.MonkeyPatch, asked: Any) -> bool:
    """Whether the law of what is seen of three people loses at most epsilon, whatever one of them holds."""
    laws = {value: column_law(monkeypatch, asked, [value, 0, 2]) for value in UNIVERSE}
    return all(loses_at_most(EPSILON, one, other) for one in laws.values() for other in laws.values())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_function_costs_no_more_than_its_epsilon(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """By enumeration: errors, wrong results and glances at other rows tell of nobody beyond epsilon."""
    assert keeps_epsilon(monkeypatch, LRAsked(HOSTILE[name]))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("columnwise", [True, False])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_query_costs_no_more_than_its_epsilon(
    monkeypatch: pytest.MonkeyPatch, name: str, columnwise: bool
) -> None:
    """By enumeration, for queries that get columns and for queries that get rows."""
    phi = HOSTILE[name] if columnwise else lambda row: HOSTILE[name](row[np.newaxis])
    assert keeps_epsilon(monkeypatch, SQAsked(phi, columnwise=columnwise))


def test_a_query_gets_a_copy_of_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of several columns does not lead to the table that it comes from."""
    bases: list[Any] = []

    def phi(row: Any) -> float:
        bases.append(row if row.base is None else row.base)
        return 0.5

    oracle = SQOracle(LROracle(np.zeros((4, 3)), BudgetMemory(people=4, cap=9)), epsilon=9)
    oracle.ask(phi, tau=1.0)

    assert {base.size for base in bases} == {3}


def _fixed_for_all(rows: Any, one: Any, fixed: Any) -> list[Any]:
    try:
        return [one(row[np.newaxis]) for row in rows]
    except Exception:
        return [fixed] * len(rows)


def test_one_failure_must_not_change_the_cells_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a failure puts the whole batch into the fixed cell, the enumeration sees that it tells too much."""
    from partita.local import oracle

    def raises_or_one(column: Any) -> Any:
        return _raises(column) + 1

    assert keeps_epsilon(monkeypatch, LRAsked(raises_or_one))
    monkeypatch.setattr(oracle, "evaluate_rows", _fixed_for_all)
    assert not keeps_epsilon(monkeypatch, LRAsked(raises_or_one))


def strong(values: Any, universe: Any = None) -> LROracle:
    return LROracle(values, BudgetMemory(people=len(values), cap=100), universe=universe)


CERTAIN = RandomizedResponse(size=4, epsilon=Fraction(30))


def tape(words: int = 10_000) -> Tape:
    return Tape(np.random.default_rng(1).integers(0, 2**64, size=words, dtype=np.uint64))


def test_who_fails_is_in_the_first_cell_and_others_are_not() -> None:
    """A failure moves one person, everybody has paid, and reports keep their order."""

    def fails_on_two(column: Any) -> Any:
        return 3 // (column != 2) if (column == 2).any() and 1 / 0 else column

    oracle = strong(np.array([1, 2, 3]))

    assert oracle.ask([2, 1, 0, 1], CERTAIN, through=fails_on_two, words=tape()).tolist() == [3, 0, 1, 0]
    assert [oracle.book.now.left(at) for at in range(3)] == [70, 40, 70]


def test_values_that_are_no_cells_are_in_the_first_one() -> None:
    """Objects that cannot be read as a number are no error either."""
    odd = np.empty(6, dtype=object)
    for at, value in enumerate([1, None, Unreadable(), "3", 2.0, 2.5]):
        odd[at] = value

    assert strong(odd).ask(range(6), CERTAIN, words=tape()).tolist() == [1, 0, 0, 0, 2, 0]


def test_a_table_without_a_function_is_refused_before_anybody_pays() -> None:
    """That rows have several columns is public."""
    oracle = strong(np.zeros((3, 2)))

    with pytest.raises(InvalidParameter, match="through must be given"):
        oracle.ask([0], CERTAIN)
    with pytest.raises(InvalidParameter, match="through must be a function"):
        oracle.ask([0], CERTAIN, through=3)  # type: ignore[arg-type]
    assert oracle.book.now.left(0) == 100


def test_a_stop_of_the_operator_is_no_failure() -> None:
    """KeyboardInterrupt and SystemExit end the question; everybody has paid, and nothing was said."""
    oracle = strong(np.array([1]))

    def stops(column: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        oracle.ask([0], CERTAIN, through=stops)
    assert oracle.book.now.left(0) == 70


def test_arithmetic_prints_no_warning() -> None:
    """NumPy would warn of a division by zero on somebody's value only."""
    oracle = strong(np.array([0.0, 1.0]))

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert oracle.ask([0, 1], CERTAIN, through=lambda column: 2 / column, words=tape()).tolist() == [0, 2]
    assert not seen


def test_with_a_universe_functions_see_no_data() -> None:
    """A function is called on the public rows only, before anybody pays; data beyond them are in cell 0."""
    seen: list[int] = []

    def through(column: Any) -> Any:
        seen.extend(column.tolist())
        return column + 1

    oracle = strong(np.array([2, 7, 1, 1]), universe=[0, 1, 2])

    assert oracle.ask(range(4), CERTAIN, through=through, words=tape()).tolist() == [3, 0, 2, 2]
    assert seen == [0, 1, 2]


@pytest.mark.parametrize(
    "name", ["raises", "nothing", "a longer column", "a table", "unreadable", "recurses"]
)
def test_with_a_universe_a_failure_is_an_error_that_costs_nothing(name: str) -> None:
    """It is one whatever people hold, so it may be raised."""
    for values in ([0, 0], [1, 1]):
        oracle = strong(np.array(values), universe=UNIVERSE)
        with pytest.raises(InvalidParameter, match="through must") as caught:
            oracle.ask([0], CERTAIN, through=HOSTILE[name])
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert oracle.book.now.left(0) == 100
        with pytest.raises(InvalidParameter, match="phi must"):
            SQOracle(oracle, epsilon=9).ask(HOSTILE[name], tau=1.0, columnwise=True)
        assert oracle.book.now.left(0) == 100


def test_with_a_universe_of_rows_a_query_answers_about_them() -> None:
    """Rows of several columns are found as a whole; NaN is no row of a universe."""
    rows = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, float("nan")]] * 2_000)
    oracle = SQOracle(LROracle(rows, BudgetMemory(people=6_000, cap=9), universe=[[0, 1], [1, 1]]), epsilon=9)
    answer = oracle.ask(lambda row: row[0], tau=oracle.tau(6_000), words=tape(20_000))

    assert answer.value == pytest.approx((0 + 1 + 0.5) / 3, abs=0.01)


@pytest.mark.parametrize("universe", [[], 3, [[1, 2]], [1, 1], np.zeros((2, 2, 2))])
def test_what_is_no_universe_is_refused(universe: Any) -> None:
    """It must list different rows of the width of the data."""
    with pytest.raises(InvalidParameter, match="universe"):
        strong(np.array([1, 2]), universe=universe)


def test_a_learner_does_not_fail_on_odd_rows() -> None:
    """What is no number in a table counts as if nothing were known of that person."""
    rows = np.array([[1.0, 1], [None, 0], ["x", None]] * 20, dtype=object)
    oracle = SQOracle(LROracle(rows, BudgetMemory(people=60, cap=1)), epsilon=1)

    assert learn_logistic(oracle, rounds=2, tau=oracle.tau(30)).people == 60
