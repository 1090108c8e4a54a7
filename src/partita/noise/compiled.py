"""Numba kernels. Each does, on the same words, what its NumPy or Python counterpart does.

`look_up` mirrors `Table.look_up`; `sweep` mirrors `Sweep._decide`. A kernel never guesses:
where floats, and then pairs of floats, leave a doubt, it stops before the segment in doubt and
the exact code goes on from the same word. `sweep` is one long function because Numba counts
references to every array that is handed to a helper, which would cost more than the work.
"""

# mypy: ignore-errors

from __future__ import annotations

import math

import numpy as np
from numba import float64, int64, njit, uint64

from partita.noise.hazard import NEGLIGIBLE, ROUNDING, float_hazard
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
def _pair_sum(positions, weights, start, first, behind, level, exact_from, pairs_high, pairs_low):
    """The cumulative hazard of the runs that end before items first..behind-1, as a pair of floats.

    Runs of a level above `exact_from` weigh little and are added up in floats; how far off that may
    be comes back as well.
    """
    rough, begin = 0.0, first
    while first < behind and level > exact_from:
        rough += float64(positions[first] - start) * pairs_high[level]
        start = positions[first]
        level -= weights[first]
        first += 1
    high, low = rough, 0.0
    for item in range(first, behind):
        length = positions[item] - start
        beyond = length & uint64(0x7FF) if length >> uint64(53) else uint64(0)
        whole, rest = float64(length - beyond), float64(beyond)
        product, error = _two_product(whole, pairs_high[level])
        high, more = _two_sum(high, product)
        low += more + (error + (whole * pairs_low[level] + rest * pairs_high[level]))
        start = positions[item]
        level -= weights[item]
    return high, low, rough * float64(first - begin + 2) * ROUNDING


@_compile
def _pair_offset(target_high, target_low, width, before_high, before_low, off, each_high, each_low, tight):
    """The same offset in pairs of floats, rounded down to (whole, part), or (-1, 0) in doubt."""
    high, low = _two_sum(target_high, -before_high)
    low += target_low - before_low
    quotient = high / each_high
    product, error = _two_product(quotient, each_high)
    correction = (((high - product) - error) + (low - quotient * each_low)) / each_high
    doubt = (tight * (1.0 + target_high + before_high) + off) / each_high + 2.0**-40
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
    shift = uint64(guide_shift)
    nearby = int64(9.0 / rate)
    ends = np.empty(words.size // per_segment, np.uint64)
    count = 0
    first = np.searchsorted(positions, start)
    while (count + 1) * per_segment <= words.size:
        used = count * per_segment
        # The level that the segment opens with, from one word for each table.
        sure = True
        sign = noise = int64(0)
        for table in range(places.size):
            word = words[used + table]
            category = bounds[table] + guides[table, word >> shift]
            while category < bounds[table + 1] and thresholds[category] < word:
                category += 1
            sure = sure and (category == bounds[table + 1] or thresholds[category] != word)
            category -= bounds[table]
            if table == 0:
                sign, category = category & 1, category >> 1
                sure = sure and category < int64(1) << (61 - places[0])
            noise += category << places[table]
        if not sure:
            break
        level = threshold + (noise ^ -sign if laplace else noise)
        # The first run at whose end the cumulative hazard may reach the target.
        target = targets_high[count]
        aim = target * (1 - slack) / (1 + slack) - NEGLIGIBLE
        item, at_level, here = first, level, start
        before = each = 0.0
        passed = False
        while True:
            behind = item == positions.size
            length = float64(last - here) + 1.0 if behind else float64(positions[item] - here)
            if length > 0.0:
                index = at_level - lowest
                each = hazards[index] if 0 <= index < hazards.size else _float_hazard(at_level, rate, laplace)
                reached = before + length * each
                passed = reached >= aim
                if passed:
                    break
                before = reached
            if behind:
                break
            here = positions[item]
            at_level -= weights[item]
            item += 1
        # Where in that run.
        end = last
        if passed:
            rest = float64(~words[used + per_segment - 1])
            width = 1.0 / rest if rest > 0.0 else math.inf
            found = _float_offset(target * (1 - slack), (target + width) * (1 + slack), before, each, slack)
            offset = uint64(max(found, 0.0))
            if found < 0.0:
                if at_level < 0 or level >= pairs_high.size:
                    break
                sum_high, sum_low, off = _pair_sum(
                    positions, weights, start, first, item, level, at_level + nearby, pairs_high, pairs_low
                )
                whole, part = _pair_offset(
                    target, targets_low[count], width, sum_high, sum_low, off,
                    pairs_high[at_level], pairs_low[at_level], tight,
                )  # fmt: skip
                if whole < 0.0:
                    break
                offset = uint64(whole) + uint64(part)
            room = last - here if behind else positions[item] - here - uint64(1)
            if offset > room:
                break
            end = here + offset
        ends[count] = end
        count += 1
        if end == last:
            break
        start, first = end + uint64(1), item
    return ends[:count], count * per_segment
