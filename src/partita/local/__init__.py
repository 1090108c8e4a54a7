"""The local model: everybody randomizes on their own device, and only reports are collected.

    Frequency(1024, epsilon=1)           how many people hold each of 1,024 values
    Mean(0, 24, epsilon=1)               the mean of numbers between 0 and 24
    Device("state.json", budget=4)       what answers on a person's side, with a budget of its own
    question.aggregator()                counts reports, and estimates

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
    from partita.local.mean import Mean
    from partita.local.mean_aggregator import MeanAggregator
    from partita.local.means import OneBit, Piecewise
    from partita.local.projective import ProjectiveResponse
    from partita.local.randomizer import FrequencyRandomizer, Randomizer
    from partita.local.registry import question_from, randomizer_from
    from partita.local.response import RandomizedResponse
    from partita.local.unary import UnaryEncoding

_HOMES = {
    "aggregator": ("FrequencyAggregator",),
    "device": ("Device", "Report"),
    "estimates": ("Frequencies", "HeavyHitter"),
    "frequency": ("Frequency",),
    "hadamard": ("HadamardResponse",),
    "hashing": ("LocalHashing",),
    "mean": ("Mean",),
    "mean_aggregator": ("MeanAggregator",),
    "means": ("OneBit", "Piecewise"),
    "projective": ("ProjectiveResponse",),
    "randomizer": ("FrequencyRandomizer", "Randomizer"),
    "registry": ("question_from", "randomizer_from"),
    "response": ("RandomizedResponse",),
    "unary": ("UnaryEncoding",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Device",
    "Frequencies",
    "Frequency",
    "FrequencyAggregator",
    "FrequencyRandomizer",
    "HadamardResponse",
    "HeavyHitter",
    "LocalHashing",
    "Mean",
    "MeanAggregator",
    "OneBit",
    "Piecewise",
    "ProjectiveResponse",
    "RandomizedResponse",
    "Randomizer",
    "Report",
    "UnaryEncoding",
    "question_from",
    "randomizer_from",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
