"""The public side: what may be copied, stored and queried without limit.

Nothing here can reach noise, histograms or sources; an import contract holds it to that.
"""

from partita.releases.cut import Cut
from partita.releases.grid import GridRelease
from partita.releases.histogram_counts import HistogramRelease
from partita.releases.laplace import LaplaceRelease
from partita.releases.level_trees import LevelTreesRelease
from partita.releases.linear_queries import LinearQueriesRelease
from partita.releases.linear_workload import LinearWorkloadRelease
from partita.releases.log_tree import LogTreeRelease
from partita.releases.multiplicative_weights import WeightsRelease
from partita.releases.numerical_global import GlobalTruncationRelease
from partita.releases.numerical_instance import InstanceTruncationRelease
from partita.releases.numerical_normalization import NormalizationRelease
from partita.releases.numerical_truncation import TruncationRelease
from partita.releases.paper_intervals import PaperIntervalsRelease
from partita.releases.paper_rectangles import PaperRectanglesRelease
from partita.releases.partition_tents import PartitionTentsRelease
from partita.releases.projected_laplace import ProjectedLaplaceRelease
from partita.releases.rank_boxes import RankBoxesRelease
from partita.releases.rectangles import RectanglesRelease
from partita.releases.release import Release
from partita.releases.spending_boxes import SpendingBoxesRelease
from partita.releases.spending_tree import SpendingTreeRelease
from partita.releases.tents import TentRelease
from partita.releases.thresholds import ThresholdRelease
from partita.releases.tree import TreeRelease

__all__ = [
    "Cut",
    "GlobalTruncationRelease",
    "GridRelease",
    "HistogramRelease",
    "InstanceTruncationRelease",
    "LaplaceRelease",
    "LevelTreesRelease",
    "LinearQueriesRelease",
    "LinearWorkloadRelease",
    "LogTreeRelease",
    "NormalizationRelease",
    "PaperIntervalsRelease",
    "PaperRectanglesRelease",
    "PartitionTentsRelease",
    "ProjectedLaplaceRelease",
    "RankBoxesRelease",
    "RectanglesRelease",
    "Release",
    "SpendingBoxesRelease",
    "SpendingTreeRelease",
    "TentRelease",
    "ThresholdRelease",
    "TreeRelease",
    "TruncationRelease",
    "WeightsRelease",
]
