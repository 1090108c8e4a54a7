"""Addresses of databases: taken apart without a driver, and never shown with what is secret in them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import InvalidParameter, LedgerError, PartitaError
from partita.ledger.ledger import Ledger
from partita.ledger.postgres import Address, is_address, is_no_path, shown

CANARY = "CANARY-93ab"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (f"postgresql://u:{CANARY}@db.example.org:5432/budget", "postgresql://db.example.org:5432/budget"),
        (f"postgres://u:{CANARY}@db/budget?sslmode=require&password={CANARY}", "postgresql://db/budget"),
        (f"postgresql:///budget?host=/run/postgresql&user={CANARY}", "postgresql:///budget"),
        (f"postgresql://{CANARY}@one:1,two:2/budget", "postgresql://one:1,two:2/budget"),
        ("postgresql://[::1]:5432", "postgresql://[::1]:5432/"),
        ("postgresql://%2Frun%2Fpostgresql/budget", "postgresql://%2Frun%2Fpostgresql/budget"),
    ],
)
def test_host_and_database_are_shown(address: str, said: str) -> None:
    """And nothing else: no user, no password, no option."""
    assert str(Address(address)) == repr(Address(address)) == shown(address) == said


@given(password=st.text(st.characters(codec="utf-8"), max_size=30).map(lambda text: f"{CANARY}{text}"))
def test_no_password_is_ever_shown(password: str) -> None:
    """Written with percent signs it is left out; as it is it is left out, or the address is refused."""
    assert str(Address(f"postgresql://u:{quote(password, safe='')}@db/budget")) == "postgresql://db/budget"
    for raw in (f"postgresql://u:{password}@db/budget", f"postgresql://db/budget?password={password}"):
        assert CANARY not in said_of(raw)


def said_of(address: str) -> str:
    """What is shown of an address, or of the refusal to take it."""
    try:
        return str(Address(address))
    except InvalidParameter as refusal:
        return str(refusal)


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://u:{CANARY}/x@db/budget",
        f"postgresql://u:{CANARY}?x@db/budget",
        f"postgresql://u:{CANARY}#x@db/budget",
        f"postgresql://u:{CANARY}@x@db/budget",
        f"postgresql://db/budget?password={CANARY}@x",
        f"postgresql://u:{CANARY} @db/budget",
        f"postgresql://u:{CANARY}/budget",
        f"postgresql://one,u:{CANARY}/budget",
        f" postgresql://u:{CANARY}@db/budget",
        f"PostgreSQL://u:{CANARY}@db/budget",
        f"mysql://u:{CANARY}@db/budget",
        f"host=db password={CANARY} dbname=budget",
        f"password = '{CANARY}'",
    ],
)
def test_what_could_be_misread_is_refused(address: str) -> None:
    """Nobody can say where its password ends, so nothing of it is shown, and the fix says how to write it."""
    for take in (Ledger, Address, shown):
        with pytest.raises(InvalidParameter, match="as %40 %3A %2F %3F %23") as refusal:
            take(address)
        assert CANARY not in str(refusal.value)


@pytest.mark.parametrize("place", ["budget.db", "a/b", "password", "host=db dbname=budget", b"x://y", None])
def test_what_is_no_address_is_none(place: Any) -> None:
    """Only what looks like an address is taken for one."""
    assert not is_address(place)
    assert not is_no_path(place)


@pytest.mark.engines
def test_nobody_answers_without_the_password_being_told(unused_port: int) -> None:
    """A server that is not there is an error of ours, with host and database in it."""
    pytest.importorskip("psycopg")
    with pytest.raises(LedgerError, match=f"127.0.0.1:{unused_port}/budget' cannot be reached") as refusal:
        Ledger(f"postgresql://u:{CANARY}@127.0.0.1:{unused_port}/budget", patience=0)
    assert CANARY not in str(refusal.value)
    assert refusal.value.__cause__ is None


@pytest.fixture
def unused_port() -> int:
    """A port on which nobody listens: ports below 1024 are given to nobody by chance."""
    return 1


def test_without_the_driver_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver comes with an extra."""
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(LedgerError, match=r'needs psycopg; install it: pip install "partita\[postgres\]"'):
        Ledger(f"postgresql://u:{CANARY}@db/budget")


def test_a_ledger_in_a_file_needs_no_driver() -> None:
    """The driver is loaded when an address is given, and not before."""
    code = "import sys, partita.ledger, partita.trusted.sources.open; print('psycopg' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert done.stdout == "False\n"


def test_an_address_is_no_file_of_rows() -> None:
    """Handed in as data it is refused unseen, and the fix says what to pass."""
    from partita.trusted.sources.open import open_source

    with pytest.raises(PartitaError, match="must say which rows of a database") as refusal:
        open_source(f"postgresql://u:{CANARY}@db/budget")
    assert CANARY not in str(refusal.value)
