"""A fresh ledger, and the dataset that most tests spend from."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger with three epsilon for the rows of `people`."""
    made = Ledger(tmp_path / "budget.db")
    made.open("people", epsilon=3)
    return made
