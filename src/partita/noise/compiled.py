"""Numba kernels. Each does, on the same words, what its NumPy or Python counterpart does.

`look_up` mirrors `Table.look_up`; `sweep` mirrors `Sweep._decide`. A kernel never guesses:
where floats, and then pairs of floats, leave a doubt, it stops before the segment in doubt and
the exact code goes on from the same word. Arrays are not handed to helper functions within the
innermost loops: Numba would count references to them there.
"""

# mypy: ignore-errors

from __future__ import annotations

import math

import numpy as np
from numba import float64, int64, njit, uint64

from partita.noise.hazard import NEGLIGIBLE, float_hazard
from partita.noise.sweep import float_offset

__all__ = ["look_up", "sweep"]

_compile = njit(cache=True, nogil=True)
_float_hazard = _compile(float_hazard)
_float_offset = _compile(float_offset)


@_compile
def look_up(words, thresholds, guide, guide_shift):
    """The category of each word, or -1 where it equals a threshold."""
    out = np.empty(words.size, np.int64)
    count = thresholds.size
    shift = uint64(guide_shift)
    for i in range(words.size):
        word = words[i]
        category = int64(guide[word >> shift])
        while category < count and thresholds[category] < word:
            category += 1
        if category < count and thresholds[category] == word:
            category = -1
        out[i] = category
    return out


@_compile
def _two_sum(a, b):
    """The rounded sum and its error [Knuth]."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@_compile
def _two_product(a, b):
    """The rounded product and its error [Dekker]."""
    product = a * b
    spread = 134217729.0 * a
    a_high = spread - (spread - a)
    a_low = a - a_high
    spread = 134217729.0 * b
    b_high = spread - (spread - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@_compile
def _draw(words, thresholds, bounds, guides, guide_shift, places, laplace):
    """Noise from the first words; (False, 0) where they leave a doubt."""
    sure = True
    sign = magnitude = int64(0)
    for table in range(places.size):
        word = words[table]
        category = bounds[table] + guides[table, word >> uint64(guide_shift)]
        while category < bounds[table + 1] and thresholds[category] < word:
            category += 1
        sure = sure and (category == bounds[table + 1] or thresholds[category] != word)
        category -= bounds[table]
        if table == 0:
            sign, category = category & 1, category >> 1
            sure = sure and category < int64(1) << (61 - places[0])
        magnitude += category << places[table]
    return sure, (magnitude ^ -sign) if laplace else magnitude


@_compile
def _find_run(positions, weights, last, start, item, level, aim, hazards, lowest, rate, laplace):
    """The first run at whose end the cumulative hazard may reach `aim`.

    Returns whether there is one, the item behind it, its level and start, the cumulative hazard
    before it and the hazard of each of its positions.
    """
    total = 0.0
    while True:
        behind = item == positions.size
        length = float64(last - start) + 1.0 if behind else float64(positions[item] - start)
        if length > 0.0:
            index = level - lowest
            each = hazards[index] if 0 <= index < hazards.size else _float_hazard(level, rate, laplace)
            reached = total + length * each
            if reached >= aim:
                return True, item, level, start, total, each
            total = reached
        if behind:
            return False, item, level, start, total, 0.0
        start = positions[item]
        level -= weights[item]
        item += 1


@_compile
def _pair_sum(positions, weights, start, first, behind, level, pairs_high, pairs_low):
    """The cumulative hazard of the runs that end before items first..behind-1, as a pair of floats."""
    high = low = 0.0
    for item in range(first, behind):
        length = positions[item] - start
        beyond = length & uint64(0x7FF) if length >> uint64(53) else uint64(0)
        whole, rest = float64(length - beyond), float64(beyond)
        product, error = _two_product(whole, pairs_high[level])
        high, more = _two_sum(high, product)
        low += more + (error + (whole * pairs_low[level] + rest * pairs_high[level]))
        start = positions[item]
        level -= weights[item]
    return high, low


@_compile
def _pair_offset(target_high, target_low, width, before_high, before_low, each_high, each_low, tight):
    """The same offset in pairs of floats, rounded down to (whole, part), or (-1, 0) in doubt."""
    high, low = _two_sum(target_high, -before_high)
    low += target_low - before_low
    quotient = high / each_high
    product, error = _two_product(quotient, each_high)
    correction = (((high - product) - error) + (low - quotient * each_low)) / each_high
    doubt = tight * (1.0 + target_high + before_high) / each_high + 2.0**-40
    whole = math.floor(quotient)
    part = (quotient - whole) + correction
    least = math.floor(part - doubt)
    if quotient < doubt or quotient >= 2.0**63 or least != math.floor(part + doubt + width / each_high):
        return -1.0, int64(0)
    return whole, int64(least)


@_compile
def sweep(
    positions, weights, last, start, threshold, laplace, rate, slack, tight,
    thresholds, bounds, guides, guide_shift, places,
    hazards, lowest, pairs_high, pairs_low,
    words, targets_high, targets_low,
):  # fmt: skip
    """Ends of the segments from `start` on that are beyond doubt, and how many words they used."""
    per_segment = places.size + 1
    ends = np.empty(words.size // per_segment, np.uint64)
    count = used = 0
    first = np.searchsorted(positions, start)
    while used + per_segment <= words.size:
        sure, noise = _draw(words[used:], thresholds, bounds, guides, guide_shift, places, laplace)
        if not sure:
            break
        level = threshold + noise
        target = targets_high[count]
        rest = float64(~words[used + per_segment - 1])
        width = 1.0 / rest if rest > 0.0 else math.inf
        passed, behind, at_level, here, before, each = _find_run(
            positions, weights, last, start, first, level, target * (1 - slack) / (1 + slack) - NEGLIGIBLE,
            hazards, lowest, rate, laplace,
        )  # fmt: skip
        end = last
        if passed:
            offset = uint64(0)
            found = _float_offset(target * (1 - slack), (target + width) * (1 + slack), before, each, slack)
            if found >= 0.0:
                offset = uint64(found)
            elif at_level >= 0 and level < pairs_high.size:
                sum_high, sum_low = _pair_sum(
                    positions, weights, start, first, behind, level, pairs_high, pairs_low
                )
                whole, part = _pair_offset(
                    target, targets_low[count], width, sum_high, sum_low,
                    pairs_high[at_level], pairs_low[at_level], tight,
                )  # fmt: skip
                if whole < 0.0:
                    break
                offset = uint64(whole) + uint64(part)
            else:
                break
            room = last - here if behind == positions.size else positions[behind] - here - uint64(1)
            if offset > room:
                break
            end = here + offset
        ends[count] = end
        count += 1
        used += per_segment
        if end == last:
            break
        start = end + uint64(1)
        first = behind
    return ends[:count], used
