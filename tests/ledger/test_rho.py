"""A dataset in rho: exact sums, prices, refusals, and ledgers of earlier days that get their first rho."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.concentrated import epsilon_of_rho, rho_of_laplace
from partita.errors import (
    BudgetExceeded,
    BudgetLost,
    IncompatibleGuarantees,
    InvalidParameter,
    KeyReused,
    LedgerError,
    PrivacyWarning,
    TermsDiffer,
)
from partita.guarantee import Guarantee
from partita.ledger import entries
from partita.ledger import ledger as sqlite
from partita.ledger.entries import Amount, Connection, Spending, Terms
from partita.ledger.ledger import Ledger

OLD = Path(__file__).parents[1] / "fixtures" / "version-0.1" / "budget.ledger"
EIGHTH = Guarantee.concentrated(rho="1/8")
RHOS = st.fractions(min_value=Fraction(1, 1000), max_value=2, max_denominator=1000)


@pytest.fixture
def ledger(place: str) -> Ledger:
    """A ledger with half a rho for the rows of `people`."""
    made = Ledger(place)
    made.open("people", rho="1/2")
    return made


def terms_of(**changes: Any) -> Terms:
    """Terms of half a rho for rows, but for what is changed."""
    given: dict[str, Any] = {"rho": "1/2", "neighbors": "add-remove", "unit": "row", "contributions": None}
    return Terms.checked(**{**given, "constant": (), **changes})


# --- what it costs ----------------------------------------------------------------------------------


def test_rho_is_spent_to_the_last_digit(ledger: Ledger) -> None:
    """Four releases of rho 1/8 spend a half, exactly; another is refused and written nowhere."""
    for _ in range(4):
        ledger.debit("people", EIGHTH, what="ages")

    with pytest.raises(BudgetExceeded, match="spent rho 1/2 of rho 1/2, asked rho 1/8, left rho 0"):
        ledger.debit("people", EIGHTH, what="ages")
    balance = ledger.balance("people")
    assert (balance.spent, balance.left) == (Amount.of_rho(Fraction(1, 2)), Amount.of_rho(Fraction(0)))
    assert len(ledger.entries("people")) == 4


def test_nothing_spent_is_no_rho(ledger: Ledger) -> None:
    """A fresh dataset in rho says so of what it has spent, too."""
    balance = ledger.balance("people")

    assert (str(balance.spent), str(balance.left)) == ("rho 0", "rho 1/2")
    assert balance.curve[0].spent == 0


@given(rhos=st.lists(RHOS, min_size=1, max_size=12))
def test_sums_are_exact(rhos: list[Fraction]) -> None:
    """Spending adds up rationals, sequentially and over the parts of a column."""
    north, south = ("region", "north"), ("region", "south")
    amounts = [Amount.of_rho(rho) for rho in rhos]
    half = len(rhos) // 2

    first, second = (sum(some, start=Amount()) for some in (amounts[:half], amounts[half:]))
    spending = Spending({None: amounts[0], north: first, south: second})

    assert sum(amounts, start=Amount()).rho == sum(rhos)
    assert spending.spent.rho == rhos[0] + max(sum(rhos[:half]), sum(rhos[half:]))
    assert amounts[0].times_in(amounts[0] * 7) == 7


PRICES: list[tuple[Guarantee, dict[str, Any], Any]] = [
    (Guarantee(epsilon=1), {}, "1/2"),
    (Guarantee(epsilon="1/10"), {}, "1/200"),
    (Guarantee(epsilon=1, rho=rho_of_laplace(1)), {}, rho_of_laplace(1)),
    (Guarantee(epsilon=1, rho=2), {}, "1/2"),
    (EIGHTH, {}, "1/8"),
    (EIGHTH, {"neighbors": "change-one"}, "1/2"),
    (EIGHTH, {"unit": "person", "contributions": 3}, "9/8"),
    (EIGHTH, {"unit": "person", "contributions": 3, "neighbors": "change-one"}, "9/2"),
    (Guarantee(epsilon="1/10"), {"unit": "person", "contributions": 3}, "9/200"),
    (Guarantee.concentrated(rho="1/8", unit="person", contributions=3), {"unit": "person"}, "1/8"),
]


@pytest.mark.parametrize(("release", "terms", "rho"), PRICES)
def test_prices_in_rho(release: Guarantee, terms: dict[str, Any], rho: Any) -> None:
    """A pure release costs epsilon^2 / 2 or the rho that it states; k rows cost k^2, a change twice two."""
    with warnings.catch_warnings(action="ignore", category=PrivacyWarning):
        assert terms_of(**terms).price(release) == Amount.of_rho(Fraction(rho))


def test_an_approximate_release_has_no_price_in_rho(ledger: Ledger) -> None:
    """epsilon and delta bound no divergence."""
    with pytest.raises(IncompatibleGuarantees, match=r"says nothing about rho; make the release pure"):
        ledger.debit("people", Guarantee(epsilon=1, delta="1e-9"), what="queries")


def test_rho_in_a_dataset_of_epsilon_and_delta_costs_the_point_that_it_states(place: str) -> None:
    """The (epsilon, delta) of the guarantee is the price, and deltas add up."""
    ledger = Ledger(place)
    ledger.open("people", epsilon=4, delta="2e-9")

    charged = ledger.debit("people", EIGHTH, what="ages").charged

    assert charged == Amount(EIGHTH.epsilon, EIGHTH.delta)
    assert ledger.entries("people")[0].stated == EIGHTH
    assert ledger.forecast("people", EIGHTH) == 0


def test_a_dataset_of_pure_epsilon_refuses_rho(place: str) -> None:
    """It says why, and what to do; a release that is pure as well pays its epsilon."""
    ledger = Ledger(place)
    ledger.open("people", epsilon=4)

    with pytest.raises(IncompatibleGuarantees, match=r"pure epsilon: .* delta has to pay for; release with"):
        ledger.debit("people", EIGHTH, what="ages")
    assert ledger.entries("people") == ()
    with pytest.raises(IncompatibleGuarantees):
        ledger.forecast("people", EIGHTH)
    assert ledger.debit("people", Guarantee(epsilon=1, rho="1/2"), what="ages").charged == Amount(Fraction(1))


def test_a_forecast_counts_in_rho(ledger: Ledger) -> None:
    """So many more, to the last one, of rho or of pure epsilon."""
    assert ledger.forecast("people", EIGHTH) == 4
    assert ledger.forecast("people", Guarantee(epsilon="1/2")) == 4
    assert ledger.forecast("people", Guarantee(epsilon=2)) == 0


def test_a_balance_tells_epsilon_at_three_deltas(ledger: Ledger) -> None:
    """Each point is what follows from the rho that is spent, and from the total."""
    ledger.debit("people", EIGHTH, what="ages")

    balance = ledger.balance("people")

    assert [point.delta for point in balance.curve] == [Fraction(1, 10**power) for power in (6, 9, 12)]
    assert all(point.spent == epsilon_of_rho("1/8", point.delta) for point in balance.curve)
    assert all(point.total == epsilon_of_rho("1/2", point.delta) for point in balance.curve)
    assert "epsilon 3.05813 is spent of 6.47408" in balance._repr_html_()
    assert ledger.balance("people").total.epsilon_at(Fraction(1, 10**6)) == balance.curve[0].total


def test_parts_share_no_rho(place: str) -> None:
    """People of two regions pay each for their own."""
    ledger = Ledger(place)
    ledger.open("people", rho="1/4")
    for region in ("north", "south"):
        ledger.debit("people", EIGHTH, what="ages", part=("region", region))

    assert str(ledger.balance("people").left) == "rho 1/8"


# --- terms ------------------------------------------------------------------------------------------


def test_a_dataset_is_opened_in_one_currency(place: str) -> None:
    """epsilon or rho, never both or neither; delta belongs to epsilon."""
    ledger = Ledger(place)

    for wrong in ({}, {"epsilon": 1, "rho": 1}, {"rho": 1, "delta": "1e-6"}, {"rho": 0}, {"rho": -1}):
        with pytest.raises(InvalidParameter):
            ledger.open("people", **wrong)
    assert not ledger.exists()


def test_terms_in_rho_never_change(ledger: Ledger) -> None:
    """The same terms again change nothing; others are refused in words."""
    assert ledger.open("people", rho=Fraction(1, 2)) == ledger.datasets()["people"]

    with pytest.raises(TermsDiffer, match="is open with rho 1/2 under add-remove per row"):
        ledger.open("people", rho=1)
    with pytest.raises(TermsDiffer):
        ledger.open("people", epsilon=1)


def test_a_large_rho_warns(place: str) -> None:
    """As a large epsilon does."""
    with pytest.warns(PrivacyWarning, match="rho 20 is above 2"):
        Ledger(place).open("people", rho=20)


def test_a_key_names_a_request_in_rho(ledger: Ledger) -> None:
    """Asked again it costs once; another rho under the same key is another request."""
    ledger.mark_done(ledger.debit("people", EIGHTH, what="ages", key="k"))

    again = ledger.debit("people", EIGHTH, what="ages", key="k")

    assert (again.state, again.stated) == ("done", EIGHTH)
    with pytest.raises(KeyReused):
        ledger.debit("people", Guarantee.concentrated(rho="1/16"), what="ages", key="k")
    ledger.debit("people", EIGHTH, what="ages", key="lost")
    with pytest.raises(BudgetLost, match="was debited rho 1/8"):
        ledger.debit("people", EIGHTH, what="ages", key="lost")


# --- ledgers of earlier days, and earlier versions --------------------------------------------------


def _version(place: str) -> int:
    with closing(sqlite3.connect(place)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _copy(folder: Path) -> str:
    shutil.copy(OLD, folder / "budget.db")
    return str(folder / "budget.db")


def _know_one_version(patch: pytest.MonkeyPatch) -> None:
    """Read files as version 0.1 did, which knew one stamp."""
    patch.setattr(sqlite, "_FORMAT", replace(sqlite._FORMAT, versions=(1,)))


def test_a_ledger_without_rho_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opened, debited and marked by this version, it stays one that version 0.1 reads and writes."""
    place = _copy(tmp_path)
    Ledger(place).open("more", epsilon=1)
    Ledger(place).debit("more", Guarantee(epsilon="1/3"), what="ages")

    _know_one_version(monkeypatch)
    assert str(Ledger(place).balance("more").left) == "epsilon 2/3"
    assert _version(place) == 1


def test_an_old_ledger_gets_its_first_rho(tmp_path: Path) -> None:
    """Its entries and terms stay as they were, and it takes rho beside epsilon."""
    place = _copy(tmp_path)
    before = {name: Ledger(place).entries(name) for name in Ledger(place).datasets()}
    left = {name: Ledger(place).balance(name) for name in before}

    Ledger(place).open("new", rho=1)
    Ledger(place).debit("new", EIGHTH, what="ages")

    assert {name: Ledger(place).entries(name) for name in before} == before
    assert {name: Ledger(place).balance(name) for name in before} == left
    assert str(Ledger(place).balance("new").left) == "rho 7/8"
    assert _version(place) == 2


def test_an_old_ledger_takes_a_release_that_states_rho(tmp_path: Path) -> None:
    """A dataset in epsilon stores what was stated, so that a key finds it again."""
    place = _copy(tmp_path)
    Ledger(place).open("new", epsilon=4, delta="1e-6")

    Ledger(place).mark_done(Ledger(place).debit("new", EIGHTH, what="ages", key="new"))

    assert Ledger(place).debit("new", EIGHTH, what="ages", key="new").stated == EIGHTH


def test_an_earlier_version_refuses_a_ledger_with_rho(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot misread a debit in rho as free: every act is refused, by the stamp, and nothing changes."""
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", epsilon=1)
    ledger.open("others", rho=1)

    _know_one_version(monkeypatch)
    for act in (ledger.datasets, lambda: ledger.debit("people", Guarantee(epsilon=1), what="ages")):
        with pytest.raises(LedgerError, match="has schema version 2, not 1; use the Partita that wrote it"):
            act()
    with pytest.raises(LedgerError, match="schema version 2"):
        Ledger(tmp_path / "budget.db")


def test_a_process_that_is_at_work_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier version that opened the ledger before looks at the stamp in each transaction."""
    early = Ledger(tmp_path / "budget.db")
    early.open("people", epsilon=1)
    Ledger(tmp_path / "budget.db").open("others", rho=1)

    _know_one_version(monkeypatch)
    with pytest.raises(LedgerError, match="schema version 2"):
        early.debit("people", Guarantee(epsilon=1), what="ages")


def test_the_columns_of_rho_come_whole_or_not_at_all(place: str) -> None:
    """What fails after them undoes them: the ledger is as before, and the next rho adds them again."""
    ledger = Ledger(place)
    ledger.open("people", epsilon=1)

    def fail(connection: Connection) -> None:
        ledger.store.widen(connection)
        raise RuntimeError("in between")

    with pytest.raises(RuntimeError):
        ledger.store.write(fail)
    assert "rho" not in _columns(ledger)
    ledger.open("others", rho=1)
    ledger.open("more", rho=2)
    assert _columns(ledger).count("rho") == 1
    Ledger(place).debit("others", EIGHTH, what="ages")


_DIE = """
import os, sys
from partita.ledger.ledger import Ledger
store = Ledger(sys.argv[1]).store

def die(connection):
    connection.execute("PRAGMA cache_size = 1")
    store.widen(connection)
    os._exit(9)

store.write(die)
"""


@pytest.mark.faults
def test_a_crash_leaves_the_ledger_without_rho(tmp_path: Path) -> None:
    """A process that dies after the columns and before its commit has changed nothing."""
    place = _copy(tmp_path)
    before = Ledger(place).entries("people")

    died = subprocess.run([sys.executable, "-c", _DIE, place], check=False)

    assert died.returncode == 9
    Ledger(place).store.check()
    assert Ledger(place).entries("people") == before
    assert (_version(place), "rho" in _columns(Ledger(place))) == (1, False)


def _columns(ledger: Ledger) -> list[str]:
    """The columns of terms, read in a way that both stores understand."""

    def look(connection: Connection) -> list[str]:
        found: Any = connection.execute("SELECT * FROM datasets")
        return [column[0] for column in found.description]

    return ledger.store.read(look)


def test_rho_is_never_rewritten(tmp_path: Path) -> None:
    """What was charged in rho is refused to be changed, as all of an entry is."""
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", rho=1)
    ledger.debit("people", EIGHTH, what="ages")

    with closing(sqlite3.connect(ledger.path)) as connection:
        for statement in (
            "UPDATE entries SET rho = '0'",
            "UPDATE entries SET stated_rho = '0'",
            "UPDATE datasets SET rho = '9'",
        ):
            with pytest.raises(sqlite3.DatabaseError, match="never"):
                connection.execute(statement)


@pytest.mark.parametrize("column", ["rho", "stated_rho"])
def test_a_damaged_rho_is_no_price(tmp_path: Path, column: str) -> None:
    """A value that is no number, or a negative one, is damage and never nothing."""
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", rho=1)
    ledger.debit("people", EIGHTH, what="ages")
    for value in ("'free'", "'-1/8'"):
        with closing(sqlite3.connect(ledger.path)) as connection:
            connection.execute("DROP TRIGGER IF EXISTS entries_keep_rho")
            connection.execute(f"UPDATE entries SET {column} = {value}")
            connection.commit()
        with pytest.raises(LedgerError, match="is damaged"):
            ledger.entries("people")


# --- planted bugs -----------------------------------------------------------------------------------


def _half(self: Guarantee) -> Fraction:
    return RIGHT(self) / 2


def _epsilon(self: Guarantee) -> Fraction:
    return self.rho or self.epsilon


def _no_square(self: Guarantee, size: int) -> Guarantee:
    return replace(self, epsilon=self.epsilon * size, rho=self.rho * size)


RIGHT: Callable[[Guarantee], Fraction] = Guarantee.cost_in_rho.fget  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("cost_in_rho", property(_half)), ("cost_in_rho", property(_epsilon)), ("_group", _no_square)],
)
def test_a_wrong_price_is_seen(name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of rho, epsilon for its square, or k for k^2: some price is not what was promised."""
    monkeypatch.setattr(Guarantee, name, wrong)

    with warnings.catch_warnings(action="ignore", category=PrivacyWarning):
        found = [terms_of(**terms).price(release) for release, terms, _ in PRICES]

    assert found != [Amount.of_rho(Fraction(rho)) for *_, rho in PRICES]


def test_a_charge_that_is_not_stored_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the column of rho were left out, nothing would seem spent: the sums tell."""
    monkeypatch.setattr(entries.Debit, "states_rho", False)
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", rho="1/2")

    ledger.debit("people", EIGHTH, what="ages")

    assert ledger.balance("people").spent != Amount.of_rho(Fraction(1, 8))
