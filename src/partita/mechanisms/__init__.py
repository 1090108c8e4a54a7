"""Publish once: one file per published algorithm."""

from partita.mechanisms.paper_intervals import PaperIntervals
from partita.mechanisms.partition import Cutter, Partition
from partita.mechanisms.tree import Tree

__all__ = ["Cutter", "PaperIntervals", "Partition", "Tree"]
