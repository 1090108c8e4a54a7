"""Special cells have noise of a known law: their bounds hold by exact enumeration."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from itertools import combinations, product

import numpy as np
import pytest

from partita.errors import InvalidRelease
from partita.public.axis.base import Specials
from partita.public.bounds import laplace_variance

NAMES = ("below", "above", "invalid", "null")


def _specials(**counts: int) -> Specials:
    return Specials(counts=counts, scale=Fraction(1))


def _law(scale: Fraction, reach: int) -> dict[int, float]:
    """P[X = k] of discrete Laplace noise for |k| <= reach; the rest counts as a failure of every bound."""
    a = math.exp(-1 / scale)
    return {k: (1 - a) / (1 + a) * a ** abs(k) for k in range(-reach, reach + 1)}


@pytest.mark.parametrize("beta", [0.3, 0.05])
@pytest.mark.parametrize("truth", [(0, 0), (0, 3), (5, 1)])
def test_no_sum_of_cells_misses_by_more_than_its_error(truth: tuple[int, int], beta: float) -> None:
    """Over all noises, some sum of cells misses by more than `error` with probability at most beta."""
    bound = _specials(below=0, above=0).error(beta)
    held = sum(
        p * q
        for (x, p), (y, q) in product(_law(Fraction(1), 40).items(), repeat=2)
        if _largest_miss(_specials(below=truth[0] + x, above=truth[1] + y), truth) <= bound
    )

    assert 1 - held <= beta


def _largest_miss(specials: Specials, truth: tuple[int, int]) -> float:
    values = dict(zip(("below", "above"), truth, strict=True))
    sums = (names for size in (1, 2) for names in combinations(values, size))
    return max(abs(specials.answer(*names).value - sum(values[name] for name in names)) for names in sums)


@pytest.mark.parametrize("cells", [1, 2, 3, 4])
def test_every_sum_of_cells_has_its_share_of_the_error(cells: int) -> None:
    """`error` at beta is no less than the reach of any of the 2^k - 1 sums at that share of beta."""
    specials = _specials(**dict.fromkeys(NAMES[:cells], 10**6))
    share = 0.05 / (2**cells - 1)

    for size in range(1, cells + 1):
        low, high = specials.answer(*NAMES[:size]).worst(share)
        assert (high - low) / 2 <= specials.error(0.05) * (1 + 1e-9)


@pytest.mark.parametrize("beta", [0.3, 1e-6])
@pytest.mark.parametrize("signs", [(1, 0, 0, 0), (1, -1, 0, 0), (1, 1, 1, 1), (-1, 1, -1, 1)])
def test_guaranteed_bounds_hold(signs: tuple[int, ...], beta: float) -> None:
    """By convolution, `worst` of a signed sum misses the truth at most beta often, and not never."""
    names = dict(zip(NAMES, signs, strict=True))
    truth = dict.fromkeys(NAMES, 1000)
    held = 0.0
    for noise, probability in _law_of_sum(sum(map(abs, signs))).items():
        drawn = truth | {"below": truth["below"] + signs[0] * noise}
        low, high = _specials(**drawn).sum(names).worst(beta)
        held += probability * (low <= sum(1000 * sign for sign in signs) <= high)

    assert beta / 100 <= 1 - held <= beta


def _law_of_sum(cells: int) -> dict[int, float]:
    law = [np.array(list(_law(Fraction(1), 40).values()))] * cells
    whole = reduce(np.convolve, law)
    return dict(zip(range(-40 * cells, 40 * cells + 1), whole.tolist(), strict=True))


def test_values_are_never_negative_and_errors_add_up() -> None:
    """A negative noisy count is shown as 0; k cells have k variances."""
    counts = {"below": -7, "above": 4, "invalid": 1, "null": 2}
    specials = Specials(counts=counts, scale=Fraction(3))

    assert [specials.answer(name).value for name in NAMES] == [0.0, 4.0, 1.0, 2.0]
    assert specials.answer("below").worst(0.5)[0] == 0.0
    assert specials.answer(*NAMES).error == pytest.approx(math.sqrt(4 * laplace_variance(Fraction(3))))
    assert specials.sum({"below": 0}).error == 0.0


@pytest.mark.parametrize(
    "counts", [{"below": 10**400}, {"below": 1.5}, {"below": True}, {"below": None}], ids=str
)
def test_counts_that_are_none_are_refused(counts: dict[str, int]) -> None:
    """A file may hold anything: counts must be integers of a sane size, and so must scales."""
    with pytest.raises(InvalidRelease, match=r"^special cells must hold integer counts"):
        Specials(counts=counts, scale=Fraction(1))
    for scale in (Fraction(0), Fraction(-1), Fraction(10**400), Fraction(1, 10**400)):
        with pytest.raises(InvalidRelease, match=r"^scale of the special cells must be a noise scale"):
            Specials(counts={}, scale=scale)
