"""Every public mechanism of the installed version, found by what it is."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

import partita
from partita import local, pan
from partita.local.randomizer.law import LocalLaw
from partita.pan.sketch.sketch import Sketch
from partita.trusted.mechanisms.catalogue import mechanisms
from partita.trusted.streams.base.base import ContinualCounter
from partita.trusted.streams.base.stepping import Stepping
from partita.trusted.streams.family.family import CounterFamily

Family: TypeAlias = Literal["release", "counter", "sketch", "randomizer", "own"]

COVERED_BY: Final = {
    "Capped": "the counter behind its cap on how many events of a user count; the cap draws no noise",
    "Cutter": "Partition, whose law a cut in the making has",
    "DurableCounter": "the counter that it keeps in a file",
    "DurableFamily": "CounterFamily, which it keeps in a file",
    "WeightsSession": "MultiplicativeWeights; the law of a session is enumerated by the tests of the project",
}
"""Public names that draw no noise of their own kind, and what covers them."""


def public_mechanisms() -> dict[str, Family]:
    """The names of all public mechanisms, and to which family each belongs."""
    found: dict[str, Family] = {}
    found |= dict.fromkeys(mechanisms(), "release")
    found |= dict.fromkeys(_named(partita, _counts), "counter")
    found |= dict.fromkeys(_named(pan, lambda each: issubclass(each, Sketch)), "sketch")
    found |= dict.fromkeys(_named(local, lambda each: issubclass(each, LocalLaw)), "randomizer")
    return {name: family for name, family in found.items() if name not in COVERED_BY}


def _named(package: Any, wanted: Any) -> Iterator[str]:
    """The concrete classes of a package that are of this kind."""
    for name in package.__all__:
        each = getattr(package, name)
        if inspect.isclass(each) and not inspect.isabstract(each) and wanted(each):
            yield name


def _counts(each: type[Any]) -> bool:
    return issubclass(each, ContinualCounter | CounterFamily) and issubclass(each, Stepping)
