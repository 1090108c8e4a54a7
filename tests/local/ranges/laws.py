"""The exact law of mixed reports, branch by branch."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from partita.local.randomizer import LocalLaw
from partita.testing import OutputLaw, RationalNoise, law
from tests.local.laws import BranchingDraws


class MixedDraws(BranchingDraws):
    """Draws that take every branch, those of the view that was drawn too."""

    def each(self, part: int, samplers: Any, x: int) -> Any:
        return samplers[part](x, self)


def mixed_law(mixture: LocalLaw, x: int) -> OutputLaw:
    """The law of one person's report, the view included."""
    noise = RationalNoise(Fraction(1, 2))
    return law(lambda noise: mixture.randomize(x, draws=MixedDraws(noise)), noise)
