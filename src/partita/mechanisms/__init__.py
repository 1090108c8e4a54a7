"""Publish once: one file per published algorithm."""

from partita.mechanisms.histogram_counts import HistogramCounts
from partita.mechanisms.intervals import Intervals
from partita.mechanisms.laplace import Laplace
from partita.mechanisms.linear_queries import LinearQueries
from partita.mechanisms.paper_intervals import PaperIntervals
from partita.mechanisms.partition import Cutter, Partition
from partita.mechanisms.partition_tents import PartitionTents
from partita.mechanisms.spending_tree import SpendingTree
from partita.mechanisms.tents import Tents
from partita.mechanisms.thresholds import Thresholds
from partita.mechanisms.tree import Tree

__all__ = [
    "Cutter",
    "HistogramCounts",
    "Intervals",
    "Laplace",
    "LinearQueries",
    "PaperIntervals",
    "Partition",
    "PartitionTents",
    "SpendingTree",
    "Tents",
    "Thresholds",
    "Tree",
]
