"""What honest reports cannot say: estimates that leave [0, 1] by more than noise explains.

Anybody can send a report that no randomizer drew. One alone cannot be told from an honest one, since every
report is possible about every value. Many of them together can be: whatever people hold, the reports that
support a cell are independent trials whose mean chance lies between `miss` and `hit`.
"""

from __future__ import annotations

import warnings
from math import log
from typing import Any, Final

import numpy as np

from partita.errors.errors import ImplausibleReports
from partita.local.encodings.means import MeanRandomizer
from partita.local.estimates.estimates import Floats, divergence
from partita.local.frequency.columns import Ints
from partita.local.randomizer.randomizer import FrequencyRandomizer
from partita.local.randomizer.unary import UnaryEncoding

_FALSE_ALARM: Final = 1e-9
"""How often all checks of one estimate together may fail if all reports are honest, whatever people hold."""


def implausible_cells(law: FrequencyRandomizer, n: int, supports: Ints, *, checks: int = 1) -> Ints:
    """The cells whose estimate lies below 0 or above 1 by more than noise explains.

    A share s of supporters above `hit` has probability at most exp(-n KL(s, hit)) if all reports are honest,
    and one below `miss` at most exp(-n KL(s, miss)) [Hoeffding 1963, Theorem 1]. Each cell has its share of
    the false alarms, on both sides; `checks` is how many such lists are looked at.
    """
    allowed = log(4 * len(supports) * checks / _FALSE_ALARM) / n
    return np.flatnonzero(_outside(supports / n, float(law.miss), float(law.hit), allowed))


def implausible_total(law: FrequencyRandomizer, n: int, supports: Ints, *, checks: int = 1) -> bool:
    """Whether reports support more or fewer cells than honest ones do, on average.

    An honest report supports hit + (size - 1) miss cells on average, whatever the value: estimated
    frequencies add up to 1. One that supports all cells at once moves no estimate by much, and all of them.
    The bits of unary encoding are independent trials; of other kinds each report is one, as a share of the
    most cells that a report can support.
    """
    most = law.forged_report_cells
    expected = float(law.hit + (law.size - 1) * law.miss)
    width, trials = (law.size, n * law.size) if isinstance(law, UnaryEncoding) else (most, n)
    share = np.array([int(supports.sum()) / n / width]).clip(0, 1)
    mean = min(1.0, expected / width)
    return bool(_outside(share, mean, mean, log(4 * checks / _FALSE_ALARM) / trials).any())


def implausible_mean(law: MeanRandomizer, n: int, total: int) -> bool:
    """Whether the mean report is one of no numbers between the bounds, by more than noise explains."""
    most = law.reports - 1
    ends = law.offset, law.offset + law.slope * (law.size - 1)
    low, high = (float(end / most) for end in ends)
    return bool(_outside(np.array([total / n / most]), low, high, log(2 / _FALSE_ALARM) / n).any())


def warn_of_forgery(found: bool, stacklevel: int = 3) -> None:
    """Say that not all reports can be honest."""
    if found:
        message = (
            "estimates leave [0, 1] by more than noise explains: with honest reports alone that would happen "
            "less than once in 10^9 estimates; some were forged, or made by another law"
        )
        warnings.warn(ImplausibleReports(message), stacklevel=stacklevel)


def _outside(share: Floats, low: float, high: float, allowed: float) -> Any:
    """Whether a share of trials is further below `low` or above `high` than noise explains."""
    above = (share > high + _ROUNDING) & (divergence(share, np.full_like(share, high)) > allowed)
    below = (share < low - _ROUNDING) & (divergence(share, np.full_like(share, low)) > allowed)
    return above | below


_ROUNDING: Final = 2.0**-40
"""Shares that are equal but for rounding: where a mean is 0 or 1, the divergence of these is infinite."""
