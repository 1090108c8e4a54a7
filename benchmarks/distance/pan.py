"""Distances of pan-private sketches, from a bound that uses the look.

Let a sketch of m users be epsilon-DP for one user at one look, and let what it says be unbiased. The look
comes after users S came, any set; then users R come, and the number of those in S or R is estimated. On
average over all sets R the variance of that number is at least (m - 1 + sqrt(m + 1))^2 / (4 m c), c = 4
sinh(epsilon / 2)^2.

*Proof.* Let f_R be the mean of the output given the state at the look, if R comes after it: a function of
the state, unbiased for the number, and its variance is at most that of the output. All 2^m numbers f_R
together are a function of one state, so they are epsilon-DP, and the bound of `streams` applies. One user
more in S moves the true number by 1 for each R without that user, so W is the matrix of all 2^m subsets.
W'W is 2^m / 4 times identity plus all ones: m - 1 singular values are 2^(m/2) / 2 and one is sqrt(m + 1)
times that. QED

The output may be exact and the time of the look known: what it costs is that the state must be good for all
R. If users of S come t > 1 times and those of R once, the number who came exactly t times is that of S
without R: the same matrix, and the same bound for "exactly-t". So many ids of no known list are a universe
of m too: with S empty and R about half of it, about n = m/2 came, so the bound for n distinct ids is that for
m = 2n, on average over who they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np

from benchmarks.distance.row import Distance, Measured, noises
from benchmarks.distance.streams import information
from partita.pan import Density, Distinct, RampRegisters, Registers

LOOKED_AT = "every unbiased sketch that is epsilon-DP at one look, on average over who comes after it"

_EPSILON = 1
_USERS = 1_000
_FEW_USERS = 256
_MANY_USERS = 10**6
_TIMES = 2
_SLOW_TRIALS = 50


def pan_density(trials: int) -> Distance:
    """One in ten of the universe came."""
    came = np.arange(_USERS // 10)
    made = (Density(universe=_USERS, epsilon=_EPSILON, noise=noise) for noise in noises(trials))
    squares = [(_updated(each, came).release("density").value - 0.1) ** 2 for each in made]
    many = Density(universe=_MANY_USERS, epsilon=_EPSILON).expected_error("density")
    return _fraction("pan_density", "density", _USERS, squares, _predicted(many))


def pan_registers(trials: int) -> Distance:
    """One in eight of the universe came twice."""
    made = (Registers(universe=_FEW_USERS, epsilon=_EPSILON, most=30, noise=noise) for noise in _few(trials))
    many = Registers(universe=_MANY_USERS, epsilon=_EPSILON, most=30).expected_error(f"exactly-{_TIMES}")
    return _exactly("pan_registers", made, _predicted(many))


def pan_ramp_registers(trials: int) -> Distance:
    """The same, from ramps of three tops, which are what the question needs."""
    tops = [_TIMES - 1, _TIMES, _TIMES + 1]
    made = (
        RampRegisters(universe=_FEW_USERS, epsilon=_EPSILON, tops=tops, noise=noise) for noise in _few(trials)
    )
    return _exactly("pan_ramp_registers", made)


def pan_distinct(trials: int) -> Distance:
    """Two thousand ids in 256 buckets of six levels, a salt for each trial."""
    ids, squares = 2_000, []
    for trial, noise in enumerate(noises(trials)):
        sketch = Distinct(epsilon=_EPSILON, buckets=256, most=4096, salt=f"{trial}", noise=noise)
        squares.append((_updated(sketch, range(ids)).release("distinct").value - ids) ** 2)
    return Distance(
        mechanism="pan_distinct",
        setting=f"{ids:,} ids, 256 buckets, epsilon 1",
        what="root mean square error of the number",
        measured=Measured.root(squares),
        bound=sqrt(least_variance(2 * ids, _EPSILON)),
        source=LOOKED_AT,
        note="the bound has as much memory as it likes; our estimate is a fit, and not quite unbiased",
    )


def least_variance(users: int, epsilon: float) -> float:
    """Of the number of users who came, on average over who comes after the look."""
    return (users - 1 + sqrt(users + 1)) ** 2 / (4 * users * information(epsilon))


def _exactly(name: str, sketches: Iterator[Any], note: str = "") -> Distance:
    came = np.repeat(np.arange(_FEW_USERS // 8), _TIMES)
    asked = f"exactly-{_TIMES}"
    squares = [(_updated(each, came).release(asked).value - 1 / 8) ** 2 for each in sketches]
    return _fraction(name, asked, _FEW_USERS, squares, note)


def _fraction(name: str, asked: str, users: int, squares: list[float], note: str) -> Distance:
    return Distance(
        mechanism=name,
        setting=f"{asked} of {users:,} users, epsilon 1",
        what="root mean square error of the fraction",
        measured=Measured.root(squares),
        bound=sqrt(least_variance(users, _EPSILON)) / users,
        source=LOOKED_AT,
        note=note,
    )


def _predicted(error: float) -> str:
    """What the ratio is for many users, by the error that is known beforehand."""
    bound = sqrt(least_variance(_MANY_USERS, _EPSILON)) / _MANY_USERS
    return f"for a million users {error / bound:.3g}, by the error known beforehand"


def _updated(sketch: Any, ids: Any) -> Any:
    sketch.update_many(ids)
    return sketch


def _few(trials: int) -> Iterator[Any]:
    """Registers are drawn one by one from a tape, which takes its time."""
    return noises(min(trials, _SLOW_TRIALS))
