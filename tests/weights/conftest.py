"""Tests of weights settle the guess in few steps: what is public may be computed in any way."""

from __future__ import annotations

import pytest


@pytest.fixture
def quick_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guess of forty steps."""
    monkeypatch.setattr("partita.inference.weights.measured._SETTLING", 40)
