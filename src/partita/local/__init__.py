"""The local model: everybody randomizes on their own device, and only reports are collected.

    Frequency(1024, epsilon=1)           how many people hold each of 1,024 values
    Mean(0, 24, epsilon=1)               the mean of numbers between 0 and 24
    Range(1024, epsilon=1)               how many people lie in any range; quantiles
    Rectangles({"x": 32, "y": 32}, ...)  how many people lie in any box of columns
    Device("state.json", budget=4)       what answers on a person's side, with a budget of its own
    question.aggregator()                counts reports, and estimates
    LROracle(values, book)               local randomizers within everybody's budget, for simulations
    SQOracle(oracle, epsilon=1)          statistical queries, each from people who were never asked

Names are loaded when they are first used: a device needs the standard library only.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partita.local.aggregator import FrequencyAggregator
    from partita.local.device import Device, Report
    from partita.local.estimates import Frequencies, HeavyHitter
    from partita.local.frequency import Frequency
    from partita.local.hadamard import HadamardResponse
    from partita.local.hashing import LocalHashing
    from partita.local.law import LocalLaw
    from partita.local.learners import Logistic, Stump, StumpTask, learn_logistic
    from partita.local.learners_parity import parity_queries_needed, parity_signal, parity_suspects
    from partita.local.mean import Mean
    from partita.local.mean_aggregator import MeanAggregator
    from partita.local.means import OneBit, Piecewise
    from partita.local.mixture import Mixture
    from partita.local.oracle import LROracle
    from partita.local.oracle_budgets import BudgetFile, BudgetMemory, Budgets
    from partita.local.oracle_laws import ListedLaw
    from partita.local.projective import ProjectiveResponse
    from partita.local.randomizer import FrequencyRandomizer, Randomizer
    from partita.local.range_estimate import RangeAggregator, RangeEstimate
    from partita.local.ranges import Range
    from partita.local.rectangle_estimate import RectangleAggregator, RectangleEstimate
    from partita.local.rectangles import Rectangles
    from partita.local.registry import question_from, randomizer_from
    from partita.local.response import RandomizedResponse
    from partita.local.statistical import SQAnswer, SQOracle
    from partita.local.unary import UnaryEncoding

_HOMES = {
    "aggregator": ("FrequencyAggregator",),
    "device": ("Device", "Report"),
    "estimates": ("Frequencies", "HeavyHitter"),
    "frequency": ("Frequency",),
    "hadamard": ("HadamardResponse",),
    "hashing": ("LocalHashing",),
    "law": ("LocalLaw",),
    "learners": ("Logistic", "Stump", "StumpTask", "learn_logistic"),
    "learners_parity": ("parity_queries_needed", "parity_signal", "parity_suspects"),
    "mean": ("Mean",),
    "mean_aggregator": ("MeanAggregator",),
    "means": ("OneBit", "Piecewise"),
    "mixture": ("Mixture",),
    "oracle": ("LROracle",),
    "oracle_budgets": ("BudgetFile", "BudgetMemory", "Budgets"),
    "oracle_laws": ("ListedLaw",),
    "projective": ("ProjectiveResponse",),
    "randomizer": ("FrequencyRandomizer", "Randomizer"),
    "range_estimate": ("RangeAggregator", "RangeEstimate"),
    "ranges": ("Range",),
    "rectangle_estimate": ("RectangleAggregator", "RectangleEstimate"),
    "rectangles": ("Rectangles",),
    "registry": ("question_from", "randomizer_from"),
    "response": ("RandomizedResponse",),
    "statistical": ("SQAnswer", "SQOracle"),
    "unary": ("UnaryEncoding",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BudgetFile",
    "BudgetMemory",
    "Budgets",
    "Device",
    "Frequencies",
    "Frequency",
    "FrequencyAggregator",
    "FrequencyRandomizer",
    "HadamardResponse",
    "HeavyHitter",
    "LROracle",
    "ListedLaw",
    "LocalHashing",
    "LocalLaw",
    "Logistic",
    "Mean",
    "MeanAggregator",
    "Mixture",
    "OneBit",
    "Piecewise",
    "ProjectiveResponse",
    "RandomizedResponse",
    "Randomizer",
    "Range",
    "RangeAggregator",
    "RangeEstimate",
    "RectangleAggregator",
    "RectangleEstimate",
    "Rectangles",
    "Report",
    "SQAnswer",
    "SQOracle",
    "Stump",
    "StumpTask",
    "UnaryEncoding",
    "learn_logistic",
    "parity_queries_needed",
    "parity_signal",
    "parity_suspects",
    "question_from",
    "randomizer_from",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
