"""Enumerated neighbour pairs: every case of the auditor at its deepest, with one more row in every universe.

No pair is counted twice. How many there are of a mechanism depends on how small its universes can be.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from campaign.part import Outcome, Part, shown
from partita.auditing import enumerate_all
from partita.auditing.case import Depth
from partita.auditing.enumeration import cases

PART: Final = Part(
    name="pairs", case="a pair of neighbouring inputs, compared exactly", goal=100_000, quick=2_000
)


def run(goal: int) -> Outcome:
    """All of them: in a hurry those of a quick audit."""
    depth: Depth = "quick" if goal == PART.quick else "deep"
    more = int(depth == "deep")
    total = sum(1 for _ in cases(depth, more=more))
    spread: Counter[str] = Counter()
    violations = []
    for found in shown(enumerate_all(depth=depth, more=more), "cases", total):
        spread[found.mechanism] += found.pairs
        if found.violations:
            violations.append(f"{found.mechanism}, {found.about}: loss {found.loss} above {found.epsilon}")
    return Outcome(cases=spread.total(), violations=tuple(violations), spread=spread)
