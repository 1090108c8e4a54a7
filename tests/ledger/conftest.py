"""A fresh ledger in a file and in PostgreSQL, and the dataset that most tests spend from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from partita.ledger.ledger import Ledger
from tests.engines.postgres_server import PostgresServer, postgres_server

__all__ = ["PLACES", "ledger", "place", "places", "postgres_server"]

PLACES = ("file", pytest.param("postgres", marks=pytest.mark.engines))


@pytest.fixture(params=PLACES)
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Where ledgers can be: a name becomes the path of a file, or the address of a database."""
    if request.param == "file":
        return lambda name: str(tmp_path / f"{name}.db")
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.emptied


@pytest.fixture
def place(places: Callable[[str], str]) -> str:
    """Where there is no ledger yet."""
    return places("budget")


@pytest.fixture
def ledger(place: str) -> Ledger:
    """A ledger with three epsilon for the rows of `people`."""
    made = Ledger(place)
    made.open("people", epsilon=3)
    return made
