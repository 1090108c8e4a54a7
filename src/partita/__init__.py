"""Differentially private statistics: publish once, answer forever.

Names are loaded when they are first used, so that `import partita` costs next to nothing and a
device that only needs `partita.noise.kernel` needs the standard library only.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partita.answer import Answer, Answers
    from partita.domain import Category, Date, Domain, Integer, Real, Timestamp
    from partita.errors import (
        BudgetExceeded,
        BudgetLost,
        EntropyError,
        HorizonReached,
        IncompatibleGuarantees,
        InvalidData,
        InvalidParameter,
        InvalidRelease,
        InvalidState,
        KeyReused,
        LedgerError,
        LedgerRefusal,
        PartitaError,
        PrivacyWarning,
        SourceError,
        StreamBusy,
        StreamError,
        StreamForked,
        TermsDiffer,
        UnknownDataset,
    )
    from partita.guarantee import Guarantee
    from partita.histogram import Histogram
    from partita.inference.boxes.axis import Axis
    from partita.ledger import Amount, Balance, Debit, Ledger, Terms
    from partita.mechanisms import (
        Cutter,
        GridCounts,
        HistogramCounts,
        Intervals,
        Laplace,
        LinearQueries,
        PaperIntervals,
        PaperRectangles,
        Partition,
        PartitionTents,
        RankBoxes,
        Rectangles,
        SpendingBoxes,
        SpendingTree,
        Tents,
        Thresholds,
        Tree,
    )
    from partita.points import Points
    from partita.publishing import Plan, Simulation, plan, publish, simulate
    from partita.releases import (
        Cut,
        GridRelease,
        HistogramRelease,
        LaplaceRelease,
        LinearQueriesRelease,
        PaperIntervalsRelease,
        PaperRectanglesRelease,
        PartitionTentsRelease,
        RankBoxesRelease,
        RectanglesRelease,
        Release,
        SpendingBoxesRelease,
        SpendingTreeRelease,
        TentRelease,
        ThresholdRelease,
        TreeRelease,
    )
    from partita.releases.bins import Bins
    from partita.releases.cdf import Cdf
    from partita.releases.file import load
    from partita.releases.heat import Heat
    from partita.releases.quantiles import Quantile
    from partita.releases.regions import HalfSpace, Polygon
    from partita.releases.where import ABOVE, BELOW, INVALID, NULL, OTHER
    from partita.streams.base import ContinualCounter, Running
    from partita.streams.capping import Cap, Capped
    from partita.streams.counter import Counter
    from partita.streams.durable import DurableCounter, Event, open_counter, read_outputs, resume_counter
    from partita.streams.family import CounterFamily
    from partita.streams.naive import DirectCounter, PerStepCounter, RandomizedResponseCounter
    from partita.streams.pan_private import PanPrivateCounter
    from partita.streams.sliding_counter import SlidingCounter
    from partita.streams.sparse_counter import SparseCounter
    from partita.streams.tree_counter import TreeCounter

__version__ = "0.1.0"

_HOMES = {
    "answer": ("Answer", "Answers"),
    "domain": ("Category", "Date", "Domain", "Integer", "Real", "Timestamp"),
    "errors": (
        "BudgetExceeded",
        "BudgetLost",
        "EntropyError",
        "HorizonReached",
        "IncompatibleGuarantees",
        "InvalidData",
        "InvalidParameter",
        "InvalidRelease",
        "InvalidState",
        "KeyReused",
        "LedgerError",
        "LedgerRefusal",
        "PartitaError",
        "PrivacyWarning",
        "SourceError",
        "StreamBusy",
        "StreamError",
        "StreamForked",
        "TermsDiffer",
        "UnknownDataset",
    ),
    "guarantee": ("Guarantee",),
    "histogram": ("Histogram",),
    "inference.boxes.axis": ("Axis",),
    "ledger": ("Amount", "Balance", "Debit", "Ledger", "Terms"),
    "mechanisms": (
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
    ),
    "points": ("Points",),
    "publishing": ("Plan", "Simulation", "plan", "publish", "simulate"),
    "releases": (
        "Cut",
        "GridRelease",
        "HistogramRelease",
        "LaplaceRelease",
        "LinearQueriesRelease",
        "PaperIntervalsRelease",
        "PaperRectanglesRelease",
        "PartitionTentsRelease",
        "RankBoxesRelease",
        "RectanglesRelease",
        "Release",
        "SpendingBoxesRelease",
        "SpendingTreeRelease",
        "TentRelease",
        "ThresholdRelease",
        "TreeRelease",
    ),
    "releases.bins": ("Bins",),
    "releases.cdf": ("Cdf",),
    "releases.file": ("load",),
    "releases.heat": ("Heat",),
    "releases.quantiles": ("Quantile",),
    "releases.regions": ("HalfSpace", "Polygon"),
    "releases.where": ("ABOVE", "BELOW", "INVALID", "NULL", "OTHER"),
    "streams.base": ("ContinualCounter", "Running"),
    "streams.capping": ("Cap", "Capped"),
    "streams.counter": ("Counter",),
    "streams.durable": ("DurableCounter", "Event", "open_counter", "read_outputs", "resume_counter"),
    "streams.family": ("CounterFamily",),
    "streams.naive": ("DirectCounter", "PerStepCounter", "RandomizedResponseCounter"),
    "streams.pan_private": ("PanPrivateCounter",),
    "streams.sliding_counter": ("SlidingCounter",),
    "streams.sparse_counter": ("SparseCounter",),
    "streams.tree_counter": ("TreeCounter",),
}
_PACKAGES = ("noise", "sources")
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ABOVE",
    "BELOW",
    "INVALID",
    "NULL",
    "OTHER",
    "Amount",
    "Answer",
    "Answers",
    "Axis",
    "Balance",
    "Bins",
    "BudgetExceeded",
    "BudgetLost",
    "Cap",
    "Capped",
    "Category",
    "Cdf",
    "ContinualCounter",
    "Counter",
    "CounterFamily",
    "Cut",
    "Cutter",
    "Date",
    "Debit",
    "DirectCounter",
    "Domain",
    "DurableCounter",
    "EntropyError",
    "Event",
    "GridCounts",
    "GridRelease",
    "Guarantee",
    "HalfSpace",
    "Heat",
    "Histogram",
    "HistogramCounts",
    "HistogramRelease",
    "HorizonReached",
    "IncompatibleGuarantees",
    "Integer",
    "Intervals",
    "InvalidData",
    "InvalidParameter",
    "InvalidRelease",
    "InvalidState",
    "KeyReused",
    "Laplace",
    "LaplaceRelease",
    "Ledger",
    "LedgerError",
    "LedgerRefusal",
    "LinearQueries",
    "LinearQueriesRelease",
    "PanPrivateCounter",
    "PaperIntervals",
    "PaperIntervalsRelease",
    "PaperRectangles",
    "PaperRectanglesRelease",
    "PartitaError",
    "Partition",
    "PartitionTents",
    "PartitionTentsRelease",
    "PerStepCounter",
    "Plan",
    "Points",
    "Polygon",
    "PrivacyWarning",
    "Quantile",
    "RandomizedResponseCounter",
    "RankBoxes",
    "RankBoxesRelease",
    "Real",
    "Rectangles",
    "RectanglesRelease",
    "Release",
    "Running",
    "Simulation",
    "SlidingCounter",
    "SourceError",
    "SparseCounter",
    "SpendingBoxes",
    "SpendingBoxesRelease",
    "SpendingTree",
    "SpendingTreeRelease",
    "StreamBusy",
    "StreamError",
    "StreamForked",
    "TentRelease",
    "Tents",
    "Terms",
    "TermsDiffer",
    "ThresholdRelease",
    "Thresholds",
    "Timestamp",
    "Tree",
    "TreeCounter",
    "TreeRelease",
    "UnknownDataset",
    "__version__",
    "load",
    "open_counter",
    "plan",
    "publish",
    "read_outputs",
    "resume_counter",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
