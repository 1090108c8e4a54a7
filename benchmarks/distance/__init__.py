"""How far each mechanism is from what nobody can beat: one function for each, in the module of its group.

A row is found by its name, which is the name of the mechanism's page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import getmembers, isfunction
from pkgutil import iter_modules
from types import ModuleType

from benchmarks.distance.row import Distance

__all__ = ["Distance", "Measure", "rows"]

Measure = Callable[[int], Distance]
"""Measures over so many trials."""

_TOOLS = ("__main__", "row")


def rows() -> dict[str, Measure]:
    """Every row by its name: the public functions of the groups that give a `Distance`."""
    return {name: measure for group in _groups() for name, measure in _measured(group)}


def _groups() -> Iterator[ModuleType]:
    for found in iter_modules(__path__):
        if found.name not in _TOOLS:
            yield import_module(f"{__name__}.{found.name}")


def _measured(group: ModuleType) -> Iterator[tuple[str, Measure]]:
    for name, member in getmembers(group, isfunction):
        gives = member.__annotations__.get("return") == "Distance"
        if gives and member.__module__ == group.__name__ and not name.startswith("_"):
            yield name, member
