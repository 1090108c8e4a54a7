"""Enumerated neighbour pairs: the auditor's cases, with ever more rows until there are enough of them.

Of every mechanism at least a hundred pairs are compared. The cases of those that have more universes are gone
through with more and more other people in them, the same number of turns for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Final

from campaign.part import Outcome, Part
from partita.auditing import CaseCount, enumerate_all, public_mechanisms
from partita.auditing.cases import Depth

PART: Final = Part(
    name="pairs", case="a pair of neighbouring inputs, compared exactly", goal=100_000, quick=500
)
LEAST: Final = 100
QUICK: Final = 1_000


def run(cases: int) -> Outcome:
    """All cases of the auditor, deeper and deeper, until so many pairs have been compared."""
    spread: Counter[str] = Counter()
    violations = []
    for found in _deeper(cases):
        spread[found.mechanism] += found.pairs
        if found.violations:
            violations.append(f"{found.mechanism}, {found.about}: loss {found.loss} above {found.epsilon}")
        if spread.total() >= cases and (cases < QUICK or _all_have_enough(spread)):
            break
    return Outcome(cases=spread.total(), violations=tuple(violations), spread=spread)


def _deeper(cases: int) -> Iterator[CaseCount]:
    """The cases once as the auditor has them, then with one more row each turn."""
    depth: Depth = "quick" if cases < QUICK else "deep"
    for more in count():
        yield from enumerate_all(depth=depth, more=more)


def _all_have_enough(spread: Counter[str]) -> bool:
    return all(spread[name] >= LEAST for name in public_mechanisms())
