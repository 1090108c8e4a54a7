"""Publish once: one file per published algorithm."""

from partita.mechanisms.partition import Cutter, Partition
from partita.mechanisms.tree import Tree

__all__ = ["Cutter", "Partition", "Tree"]
