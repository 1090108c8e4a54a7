"""Hypothesis profiles: `fast` (the default) repeats itself, `fresh` looks for new examples."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("fast", derandomize=True, deadline=None)
settings.register_profile("fresh", deadline=None, max_examples=1_000, print_blob=True)
settings.load_profile("fast")


def pytest_addoption(parser: pytest.Parser) -> None:
    engines = "duckdb,polars-arrow,pandas,spark,postgres"
    parser.addoption("--engine", default="", help=f"some of {engines}; default: all that are there")


@pytest.fixture
def quick_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights settle their guess in few steps: what is public may be computed in any way."""
    monkeypatch.setattr("partita.inference.weights.measured._SETTLING", 40)
