"""Pictures of the mechanisms, and of the README (`release`): one function for each, named like its page.

A picture is drawn from what the shipped code releases on a fixed tape: it comes out the same each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import getmembers, isfunction
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

__all__ = ["Picture", "pictures"]

Picture = Callable[[], Any]
"""Draws a matplotlib figure."""

_TOOLS = ("__main__", "style")


def pictures() -> dict[str, Picture]:
    """Every picture by the name of its page: the public functions of the groups."""
    return {name: draw for group in _groups() for name, draw in _drawn(group)}


def _groups() -> Iterator[ModuleType]:
    for found in iter_modules(__path__):
        if found.name not in _TOOLS:
            yield import_module(f"{__name__}.{found.name}")


def _drawn(group: ModuleType) -> Iterator[tuple[str, Picture]]:
    for name, member in getmembers(group, isfunction):
        if member.__module__ == group.__name__ and not name.startswith("_"):
            yield name, member
