"""The public names, each once: type checkers read them here, and so does `partita/__init__.py`."""

from partita import local as local
from partita import pan as pan
from partita.answer import Answer as Answer
from partita.answer import Answers as Answers
from partita.domain import Category as Category
from partita.domain import Date as Date
from partita.domain import Domain as Domain
from partita.domain import Integer as Integer
from partita.domain import Real as Real
from partita.domain import Timestamp as Timestamp
from partita.domain.axis import Axis as Axis
from partita.errors.errors import BudgetExceeded as BudgetExceeded
from partita.errors.errors import BudgetLost as BudgetLost
from partita.errors.errors import EntropyError as EntropyError
from partita.errors.errors import HorizonReached as HorizonReached
from partita.errors.errors import ImplausibleReports as ImplausibleReports
from partita.errors.errors import IncompatibleGuarantees as IncompatibleGuarantees
from partita.errors.errors import InvalidData as InvalidData
from partita.errors.errors import InvalidParameter as InvalidParameter
from partita.errors.errors import InvalidRelease as InvalidRelease
from partita.errors.errors import InvalidState as InvalidState
from partita.errors.errors import KeyReused as KeyReused
from partita.errors.errors import LedgerError as LedgerError
from partita.errors.errors import LedgerRefusal as LedgerRefusal
from partita.errors.errors import PartitaError as PartitaError
from partita.errors.errors import PrivacyWarning as PrivacyWarning
from partita.errors.errors import SourceError as SourceError
from partita.errors.errors import StreamBusy as StreamBusy
from partita.errors.errors import StreamError as StreamError
from partita.errors.errors import StreamForked as StreamForked
from partita.errors.errors import TermsDiffer as TermsDiffer
from partita.errors.errors import UnknownDataset as UnknownDataset
from partita.guarantee.guarantee import Guarantee as Guarantee
from partita.ledger.entries import Amount as Amount
from partita.ledger.entries import Balance as Balance
from partita.ledger.entries import Debit as Debit
from partita.ledger.entries import Terms as Terms
from partita.ledger.ledger.ledger import Ledger as Ledger
from partita.public.axis.flat.histogram_counts import HistogramRelease as HistogramRelease
from partita.public.axis.flat.laplace import LaplaceRelease as LaplaceRelease
from partita.public.axis.flat.thresholds import ThresholdRelease as ThresholdRelease
from partita.public.axis.spending_tree.spending_tree import SpendingTreeRelease as SpendingTreeRelease
from partita.public.axis.tents.partition_tents import PartitionTentsRelease as PartitionTentsRelease
from partita.public.axis.tents.tents import TentRelease as TentRelease
from partita.public.axis.tree.cut import Cut as Cut
from partita.public.axis.tree.paper_intervals import PaperIntervalsRelease as PaperIntervalsRelease
from partita.public.axis.tree.tree import TreeRelease as TreeRelease
from partita.public.boxes.grid.grid import GridRelease as GridRelease
from partita.public.boxes.paper.paper_rectangles import PaperRectanglesRelease as PaperRectanglesRelease
from partita.public.boxes.rank_boxes.rank_boxes import RankBoxesRelease as RankBoxesRelease
from partita.public.boxes.rank_boxes.rectangles import RectanglesRelease as RectanglesRelease
from partita.public.boxes.regions.regions import HalfSpace as HalfSpace
from partita.public.boxes.regions.regions import Polygon as Polygon
from partita.public.boxes.spending_boxes.spending_boxes import SpendingBoxesRelease as SpendingBoxesRelease
from partita.public.file.file import load as load
from partita.public.queries.language.language import between as between
from partita.public.queries.language.language import clipped as clipped
from partita.public.queries.language.language import marginal as marginal
from partita.public.queries.language.language import matrix as matrix
from partita.public.queries.language.language import power as power
from partita.public.queries.language.language import prefixes as prefixes
from partita.public.queries.language.language import ranges as ranges
from partita.public.queries.language.language import total as total
from partita.public.queries.language.language import value as value
from partita.public.queries.language.language import weights as weights
from partita.public.queries.language.parsing import parse as parse
from partita.public.queries.queries.queries import Queries as Queries
from partita.public.queries.queries.universe import Universe as Universe
from partita.public.release.release import Release as Release
from partita.public.results.bins import Bins as Bins
from partita.public.results.cdf import Cdf as Cdf
from partita.public.results.heat import Heat as Heat
from partita.public.results.quantiles import Quantile as Quantile
from partita.public.streams.outputs import read_outputs as read_outputs
from partita.public.sums.base.answers import Ratio as Ratio
from partita.public.sums.base.answers import SumAnswer as SumAnswer
from partita.public.sums.base.covers import Covers as Covers
from partita.public.sums.level_trees.level_trees import LevelTreesRelease as LevelTreesRelease
from partita.public.sums.log_tree.log_tree import LogTreeRelease as LogTreeRelease
from partita.public.sums.view.sum_view import SumView as SumView
from partita.public.where import ABOVE as ABOVE
from partita.public.where import BELOW as BELOW
from partita.public.where import INVALID as INVALID
from partita.public.where import NULL as NULL
from partita.public.where import OTHER as OTHER
from partita.public.workload.numerical.numerical_global import (
    GlobalTruncationRelease as GlobalTruncationRelease,
)
from partita.public.workload.numerical.numerical_instance import (
    InstanceTruncationRelease as InstanceTruncationRelease,
)
from partita.public.workload.numerical.numerical_normalization import (
    NormalizationRelease as NormalizationRelease,
)
from partita.public.workload.numerical.numerical_truncation import TruncationRelease as TruncationRelease
from partita.public.workload.projection.projected_laplace import (
    ProjectedLaplaceRelease as ProjectedLaplaceRelease,
)
from partita.public.workload.release.linear_queries import LinearQueriesRelease as LinearQueriesRelease
from partita.public.workload.release.linear_workload import LinearWorkloadRelease as LinearWorkloadRelease
from partita.public.workload.release.query_view import QueryView as QueryView
from partita.public.workload.weights.multiplicative_weights import WeightsRelease as WeightsRelease
from partita.publish.plan.planning import Plan as Plan
from partita.publish.plan.planning import plan as plan
from partita.publish.plan.simulation import Simulation as Simulation
from partita.publish.plan.simulation import simulate as simulate
from partita.publish.publish.pipeline import publish as publish
from partita.publish.publish.sessions import open_weights as open_weights
from partita.trusted import noise as noise
from partita.trusted.durable.events.events import Event as Event
from partita.trusted.durable.open import open_counter as open_counter
from partita.trusted.durable.open import open_family as open_family
from partita.trusted.durable.open import resume_counter as resume_counter
from partita.trusted.durable.open import resume_family as resume_family
from partita.trusted.durable.open import resume_stream as resume_stream
from partita.trusted.durable.stream.stream import DurableCounter as DurableCounter
from partita.trusted.durable.stream.stream import DurableFamily as DurableFamily
from partita.trusted.mechanisms.boxes.grid_counts import GridCounts as GridCounts
from partita.trusted.mechanisms.boxes.rank_boxes import RankBoxes as RankBoxes
from partita.trusted.mechanisms.boxes.rectangles import Rectangles as Rectangles
from partita.trusted.mechanisms.boxes.spending_boxes import SpendingBoxes as SpendingBoxes
from partita.trusted.mechanisms.flat.histogram_counts import HistogramCounts as HistogramCounts
from partita.trusted.mechanisms.flat.laplace import Laplace as Laplace
from partita.trusted.mechanisms.flat.thresholds import Thresholds as Thresholds
from partita.trusted.mechanisms.numerical.composition import ComposedTruncation as ComposedTruncation
from partita.trusted.mechanisms.numerical.decomposed import decomposed as decomposed
from partita.trusted.mechanisms.numerical.global_truncation import GlobalTruncation as GlobalTruncation
from partita.trusted.mechanisms.numerical.instance_truncation import InstanceTruncation as InstanceTruncation
from partita.trusted.mechanisms.numerical.normalization import Normalization as Normalization
from partita.trusted.mechanisms.numerical.single_truncation import SingleTruncation as SingleTruncation
from partita.trusted.mechanisms.online_weights.online_weights import WeightsSession as WeightsSession
from partita.trusted.mechanisms.paper_boxes import PaperRectangles as PaperRectangles
from partita.trusted.mechanisms.partition.partition import Cutter as Cutter
from partita.trusted.mechanisms.partition.partition import Partition as Partition
from partita.trusted.mechanisms.partition.partition_tents import PartitionTents as PartitionTents
from partita.trusted.mechanisms.partition.tents import Tents as Tents
from partita.trusted.mechanisms.spending_tree.intervals import Intervals as Intervals
from partita.trusted.mechanisms.spending_tree.spending_tree import SpendingTree as SpendingTree
from partita.trusted.mechanisms.sums.level_trees import LevelTrees as LevelTrees
from partita.trusted.mechanisms.sums.log_tree import LogTree as LogTree
from partita.trusted.mechanisms.tree.paper_intervals import PaperIntervals as PaperIntervals
from partita.trusted.mechanisms.tree.tree import Tree as Tree
from partita.trusted.mechanisms.weights.multiplicative_weights import (
    MultiplicativeWeights as MultiplicativeWeights,
)
from partita.trusted.mechanisms.workload.linear_queries import LinearQueries as LinearQueries
from partita.trusted.mechanisms.workload.linear_workload import LinearWorkload as LinearWorkload
from partita.trusted.mechanisms.workload.projected_laplace import ProjectedLaplace as ProjectedLaplace
from partita.trusted.secret.histogram import Histogram as Histogram
from partita.trusted.secret.points import Points as Points
from partita.trusted.sources.postgres.postgres import Postgres as Postgres
from partita.trusted.streams.base.base import ContinualCounter as ContinualCounter
from partita.trusted.streams.base.base import Running as Running
from partita.trusted.streams.counter.counter import Counter as Counter
from partita.trusted.streams.family.family import CounterFamily as CounterFamily
from partita.trusted.streams.pan_private.capping import Cap as Cap
from partita.trusted.streams.pan_private.capping import Capped as Capped
from partita.trusted.streams.pan_private.pan_private import PanPrivateCounter as PanPrivateCounter
from partita.trusted.streams.sliding import SlidingCounter as SlidingCounter
from partita.trusted.streams.sparse.sparse_counter import SparseCounter as SparseCounter
from partita.trusted.streams.tree_counter.naive import DirectCounter as DirectCounter
from partita.trusted.streams.tree_counter.naive import PerStepCounter as PerStepCounter
from partita.trusted.streams.tree_counter.naive import RandomizedResponseCounter as RandomizedResponseCounter
from partita.trusted.streams.tree_counter.tree_counter import TreeCounter as TreeCounter

__version__: str
__all__: list[str]
