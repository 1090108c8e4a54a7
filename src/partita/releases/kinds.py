"""The kinds of releases along an axis that a file may hold."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from partita.errors import InvalidRelease
from partita.releases.ranges import Ranges

__all__ = ["KINDS", "class_of"]

KINDS: Final[Mapping[str, str]] = {
    "histogram": "histogram_counts",
    "intervals-paper": "paper_intervals",
    "laplace": "laplace",
    "partition-tents": "partition_tents",
    "spending-tree": "spending_tree",
    "tents": "tents",
    "thresholds": "thresholds",
    "tree": "tree",
}
"""The module of `partita.releases` in which each kind is at home."""


def class_of(kind: str) -> type[Ranges]:
    """The class of this kind; nothing but the modules above is ever imported for a file."""
    if kind in KINDS:
        home = import_module(f"partita.releases.{KINDS[kind]}")
        for each in vars(home).values():
            if isinstance(each, type) and issubclass(each, Ranges) and vars(each).get("kind") == kind:
                return each
    raise InvalidRelease("kind", "is not known here", fix="read the file with a newer Partita")
