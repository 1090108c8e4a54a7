"""The releases that the command line is tested with, and the command line."""

from __future__ import annotations

from tests.cli.conftest import run, shelf

__all__ = ["run", "shelf"]
