"""Enumerated neighbour pairs: all cases of the auditor at its deepest, with a row more where pairs are quick.

No pair is counted twice. How many there are of a mechanism depends on how small its universes can be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from typing import Final

from campaign.part import Outcome, Part, shown
from partita.audit import CaseCount, enumerate_all, public_mechanisms
from partita.audit.base import Depth

PART: Final = Part(
    name="pairs", case="a pair of neighbouring inputs, compared exactly", goal=100_000, quick=2_000
)
WORKERS: Final = 2
SLOW: Final = frozenset(
    {
        "GlobalTruncation",
        "InstanceTruncation",
        "LevelTrees",
        "MultiplicativeWeights",
        "Normalization",
        "Partition",
        "ProjectedLaplace",
        "RankBoxes",
        "TableGraph",
        "ViewedBoxes",
    }
)
"""Mechanisms that get no more rows than in a deep audit: a pair of theirs takes a tenth of a second or so."""


def run(goal: int) -> Outcome:
    """All of them: in a hurry those of a quick audit."""
    depth: Depth = "quick" if goal == PART.quick else "deep"
    names = sorted(public_mechanisms())
    quick, slow = [name for name in names if name not in SLOW], [name for name in names if name in SLOW]
    groups = [(depth, slow[::2], 0), (depth, slow[1::2], 0)]
    groups += [(depth, quick[place::4], int(depth == "deep")) for place in range(4)]
    with ProcessPoolExecutor(WORKERS) as pool:
        counts = chain.from_iterable(shown(pool.map(_counted, groups), "groups of mechanisms", len(groups)))
        return _together(list(counts))


def _counted(group: tuple[Depth, Sequence[str], int]) -> list[CaseCount]:
    depth, names, more = group
    return list(enumerate_all(depth=depth, only=names, more=more))


def _together(counts: Sequence[CaseCount]) -> Outcome:
    spread: Counter[str] = Counter()
    for found in counts:
        spread[found.mechanism] += found.pairs
    lost = [found for found in counts if found.violations]
    violations = tuple(f"{found.mechanism}, {found.about}: {found.loss} of {found.epsilon}" for found in lost)
    return Outcome(cases=spread.total(), violations=violations, spread=spread)
