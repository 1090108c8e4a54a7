"""The releases that the command line is tested with."""

from __future__ import annotations

from tests.cli.conftest import shelf

__all__ = ["shelf"]
