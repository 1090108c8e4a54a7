"""Publish once: one file per published algorithm."""

from partita.mechanisms.grid_counts import GridCounts
from partita.mechanisms.histogram_counts import HistogramCounts
from partita.mechanisms.intervals import Intervals
from partita.mechanisms.laplace import Laplace
from partita.mechanisms.linear_queries import LinearQueries
from partita.mechanisms.paper_intervals import PaperIntervals
from partita.mechanisms.paper_rectangles import PaperRectangles
from partita.mechanisms.partition import Cutter, Partition
from partita.mechanisms.partition_tents import PartitionTents
from partita.mechanisms.rank_boxes import RankBoxes
from partita.mechanisms.rectangles import Rectangles
from partita.mechanisms.spending_boxes import SpendingBoxes
from partita.mechanisms.spending_tree import SpendingTree
from partita.mechanisms.tents import Tents
from partita.mechanisms.thresholds import Thresholds
from partita.mechanisms.tree import Tree

__all__ = [
    "Cutter",
    "GridCounts",
    "HistogramCounts",
    "Intervals",
    "Laplace",
    "LinearQueries",
    "PaperIntervals",
    "PaperRectangles",
    "Partition",
    "PartitionTents",
    "RankBoxes",
    "Rectangles",
    "SpendingBoxes",
    "SpendingTree",
    "Tents",
    "Thresholds",
    "Tree",
]
