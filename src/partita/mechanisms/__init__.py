"""Publish once: one file per published algorithm."""

from partita.mechanisms.composition import ComposedTruncation
from partita.mechanisms.global_truncation import GlobalTruncation
from partita.mechanisms.grid_counts import GridCounts
from partita.mechanisms.histogram_counts import HistogramCounts
from partita.mechanisms.instance_truncation import InstanceTruncation
from partita.mechanisms.intervals import Intervals
from partita.mechanisms.laplace import Laplace
from partita.mechanisms.level_trees import LevelTrees
from partita.mechanisms.linear_queries import LinearQueries
from partita.mechanisms.linear_workload import LinearWorkload
from partita.mechanisms.log_tree import LogTree
from partita.mechanisms.multiplicative_weights import MultiplicativeWeights
from partita.mechanisms.normalization import Normalization
from partita.mechanisms.paper_intervals import PaperIntervals
from partita.mechanisms.paper_rectangles import PaperRectangles
from partita.mechanisms.partition import Cutter, Partition
from partita.mechanisms.partition_tents import PartitionTents
from partita.mechanisms.projected_laplace import ProjectedLaplace
from partita.mechanisms.rank_boxes import RankBoxes
from partita.mechanisms.rectangles import Rectangles
from partita.mechanisms.single_truncation import SingleTruncation
from partita.mechanisms.spending_boxes import SpendingBoxes
from partita.mechanisms.spending_tree import SpendingTree
from partita.mechanisms.tents import Tents
from partita.mechanisms.thresholds import Thresholds
from partita.mechanisms.tree import Tree

__all__ = [
    "ComposedTruncation",
    "Cutter",
    "GlobalTruncation",
    "GridCounts",
    "HistogramCounts",
    "InstanceTruncation",
    "Intervals",
    "Laplace",
    "LevelTrees",
    "LinearQueries",
    "LinearWorkload",
    "LogTree",
    "MultiplicativeWeights",
    "Normalization",
    "PaperIntervals",
    "PaperRectangles",
    "Partition",
    "PartitionTents",
    "ProjectedLaplace",
    "RankBoxes",
    "Rectangles",
    "SingleTruncation",
    "SpendingBoxes",
    "SpendingTree",
    "Tents",
    "Thresholds",
    "Tree",
]
