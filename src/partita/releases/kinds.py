"""The kinds of releases that a file may hold."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from partita.errors import InvalidRelease
from partita.releases.boxes import Boxes
from partita.releases.ranges import Ranges
from partita.releases.sum_view import Sums
from partita.releases.workload import WorkloadRelease

__all__ = [
    "BOX_KINDS",
    "KINDS",
    "QUERY_KINDS",
    "SUM_KINDS",
    "box_class_of",
    "class_of",
    "query_class_of",
    "sum_class_of",
]

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
"""The module of `partita.releases` in which each kind of release along an axis is at home."""

BOX_KINDS: Final[Mapping[str, str]] = {
    "grid": "grid",
    "rank-boxes": "rank_boxes",
    "rectangles": "rectangles",
    "rectangles-paper": "paper_rectangles",
    "spending-boxes": "spending_boxes",
}
"""The same for each kind of release over several axes."""

SUM_KINDS: Final[Mapping[str, str]] = {"level-trees": "level_trees", "log-tree": "log_tree"}
"""The same for each kind of release of sums."""

QUERY_KINDS: Final[Mapping[str, str]] = {
    "global-truncation": "numerical_global",
    "instance-specific": "numerical_instance",
    "linear": "linear_workload",
    "normalization": "numerical_normalization",
    "projected-laplace": "projected_laplace",
    "truncation": "numerical_truncation",
    "weights": "multiplicative_weights",
}
"""The same for each kind of release of answers to queries."""


def class_of(kind: str) -> type[Ranges]:
    """The class of this kind along an axis; nothing but the modules above is ever imported for a file."""
    found: type[Ranges] = _found(kind, KINDS)
    return found


def box_class_of(kind: str) -> type[Boxes]:
    """The class of this kind over several axes."""
    found: type[Boxes] = _found(kind, BOX_KINDS)
    return found


def sum_class_of(kind: str) -> type[Sums]:
    """The class of this kind of sums."""
    found: type[Sums] = _found(kind, SUM_KINDS)
    return found


def query_class_of(kind: str) -> type[WorkloadRelease]:
    """The class of this kind of answers to queries."""
    found: type[WorkloadRelease] = _found(kind, QUERY_KINDS)
    return found


def _found(kind: str, homes: Mapping[str, str]) -> type[Any]:
    if kind in homes:
        home = import_module(f"partita.releases.{homes[kind]}")
        for each in vars(home).values():
            if isinstance(each, type) and vars(each).get("kind") == kind:
                return each
    raise InvalidRelease("kind", "is not known here", fix="read the file with a newer Partita")
