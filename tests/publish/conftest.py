"""The table in each container, and a budget to publish it from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from partita.ledger.ledger import Ledger
from tests.publish.people import CONTAINERS


@pytest.fixture(params=CONTAINERS)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """The table in each of the containers in turn."""
    return CONTAINERS[request.param](tmp_path)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger with three epsilon for the rows of `people`."""
    made = Ledger(tmp_path / "budget.db")
    made.open("people", epsilon=3)
    return made
