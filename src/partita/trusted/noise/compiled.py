"""Numba kernels. Each does, on the same words, what its NumPy or Python counterpart does.

`look_up` mirrors `Table.look_up`; `sweep` mirrors `Sweep._decide`. A kernel never guesses:
where floats, and then pairs of floats, leave a doubt, it stops before the segment in doubt and
the exact code goes on from the same word. `sweep` is one long function because Numba counts
references to every array that is handed to a helper, which would cost more than the work;
`_pair_sum` runs only in doubt.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, int64, njit, types, uint64
from numba.extending import intrinsic

from partita.trusted.noise.hazard import (
    NEGLIGIBLE,
    ROUNDING,
    STEPS,
    float_hazard,
    float_offset,
    log_constants,
)

# mypy: ignore-errors


_compile = njit(cache=True, nogil=True)
_float_hazard = _compile(float_hazard)
_float_offset = _compile(float_offset)
_RECIPROCALS, _LOG_HIGH, _LOG_LOW, _TWO_HIGH, _TWO_LOW = log_constants()


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
def gaussians(
    words, places, chances, thresholds, guide, guide_shift, sure,
    shift, bits, chance_bits, rate, margin,
):  # fmt: skip
    """The accepted values of a block of proposals and their number, or -1 where one of them is in doubt."""
    out = np.empty(words.size, np.int64)
    accepted = 0
    unit = 2.0**-chance_bits
    mask = uint64(0xFFFFFFFFFFFFFFFF) >> uint64(64 - chance_bits)
    guide_by, place_by = uint64(guide_shift), uint64(bits - shift)
    for i in range(words.size):
        word = words[i]
        category = int64(guide[word >> guide_by])
        while category < thresholds.size and thresholds[category] < word:
            category += 1
        if category == thresholds.size or thresholds[category] == word:
            return out, -1
        block, sign = category >> 1, category & 1
        low = int64(places[i] >> place_by)
        chance = chances[i] & mask
        if chance >= sure[block]:
            away = float64(low + sign)
            ratio = math.exp(-(float64(block) * 2.0 ** (shift + 1) + away) * away * rate)
            drawn = float64(chance) * unit
            if drawn + (unit + margin) > ratio:
                if drawn - margin < ratio:
                    return out, -1
                continue
        out[accepted] = ((block << shift) | low) ^ -sign
        accepted += 1
    return out, accepted


@_compile
def _two_sum(a, b):
    """The rounded sum and its error [Knuth]."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@intrinsic
def _fused(typing_context, a, b, c):
    """a b + c with one rounding."""

    def generate(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@_compile
def _two_product(a, b):
    """The rounded product and its error."""
    product = a * b
    return product, _fused(a, b, -product)


@_compile
def _float_target(word):
    """E = -ln(1 - word / 2^64)."""
    if word < uint64(1 << 63):
        return -math.log1p(-float64(word) * 2.0**-64)
    return -math.log((float64(~word) + 1.0) * 2.0**-64)


@_compile
def pair_target(word):
    """E as a pair of floats; the same steps as `exponential_targets`."""
    rest = ~word
    head, tail = float64(rest & uint64(0xFFFFFFFF00000000)), float64(rest & uint64(0xFFFFFFFF)) + 1.0
    exponent = (np.float64(head + tail).view(np.int64) >> 52) - 1022
    power = np.int64((1023 - exponent) << 52).view(np.float64)
    head, tail = head * power, tail * power
    step = int64((head + tail) * (2 * STEPS)) - STEPS
    r = _RECIPROCALS[step]
    z, z_low = _two_sum(head * r - 1.0, tail * r)
    square, square_low = _two_product(z, z)
    series = z * square * (-1 / 3 + z * (1 / 4 + z * (-1 / 5 + z * (1 / 6 - z / 7))))
    missing = 64.0 - exponent
    high, low = _two_sum(missing * _TWO_HIGH, _LOG_HIGH[step])
    high, more = _two_sum(high, -z)
    low += more
    high, more = _two_sum(high, square / 2)
    low += more + (missing * _TWO_LOW + _LOG_LOW[step] + square_low / 2 + (z - 1.0) * z_low + series)
    return _two_sum(high, low)


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
    if each_high == 0.0:  # so small that no pair holds it: only integers can divide by it
        return -1.0, int64(0)
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
    positions, weights, last, start, threshold, laplace, rate, slack, fine, tight,
    thresholds, bounds, guides, guide_shift, places,
    hazards, lowest, pairs_high, pairs_low,
    words,
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
        own = words[used + per_segment - 1]
        paired = level < pairs_high.size
        target, target_low = pair_target(own) if paired else (_float_target(own), 0.0)
        # E lies within `off_target` of the target, which is more than any relative grant if E is tiny.
        off_target = tight * (1.0 + target)
        least, most = target - off_target, target + off_target
        aim = least * (1 - slack) / (1 + slack) - NEGLIGIBLE
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
            rest = float64(~own)
            width = 1.0 / rest if rest > 0.0 else math.inf
            grant = (fine if paired and at_level >= 0 else slack) + float64(item - first + 4) * ROUNDING
            found = _float_offset(least * (1 - grant), (most + width) * (1 + grant), before, each, grant)
            offset = uint64(max(found, 0.0))
            if found < 0.0:
                if at_level < 0 or not paired:
                    break
                sum_high, sum_low, off = _pair_sum(
                    positions, weights, start, first, item, level, at_level + nearby, pairs_high, pairs_low
                )
                whole, part = _pair_offset(
                    target, target_low, width, sum_high, sum_low, off,
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
