"""Which engines take part: pytest tests --engine duckdb,postgres. By default all that are there."""

from __future__ import annotations

import pytest

from tests.engines.loading import ENGINES, SERVERS
from tests.engines.postgres_server import postgres_server
from tests.engines.spark_session import spark, spark_log

__all__ = ["postgres_server", "spark", "spark_log"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" in metafunc.fixturenames:
        asked = str(metafunc.config.getoption("--engine") or ",".join(ENGINES)).split(",")
        metafunc.parametrize("engine", [marked(name) for name in asked])


def marked(name: str) -> object:
    """The name of an engine; those with processes of their own are for the stage of engines."""
    if name not in ENGINES:
        raise pytest.UsageError(f"no engine named {name!r}; the engines are {', '.join(ENGINES)}")
    # Polars is installed by the slow stages only.
    if name == "polars-arrow":
        return pytest.param(name, marks=pytest.mark.thorough)
    return pytest.param(name, marks=[pytest.mark.engines] if name in SERVERS else [])
