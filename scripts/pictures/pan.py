"""Pictures of pan-private sketches: what somebody who looks at the memory sees."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap

from partita.pan import Density, Distinct
from partita.pan.registers import difference_set, make_law
from partita.pan.sketch import Coin
from scripts.pictures.style import BLUE, FAINT, GREEN, INK, ORANGE, canvas, fixed_noise


def pan_density() -> Any:
    """The whole memory before anybody came and after the upper half came; what the sum of bits says."""
    figure, axes = canvas(columns=3)
    sketch = Density(universe=400, epsilon=2, noise=fixed_noise())
    before = _memory(sketch)
    sketch.update_many(np.arange(200))
    _show(axes[0], before, "nobody came")
    _show(axes[1], _memory(sketch), "the upper half came")
    _line_of_shares(axes[2], sketch.coin)
    return figure


def pan_distinct() -> Any:
    """The expected share of ones in each level, for three numbers of ids: their profile tells the number."""
    figure, axes = canvas()
    buckets, sketch = 256, Distinct(epsilon=2, buckets=256, most=10**5, noise=fixed_noise())
    low, high = float(sketch.coin.q0), float(sketch.coin.q1)
    shares = 2.0 ** -np.append(np.arange(1, sketch.levels), sketch.levels - 1)
    for number, colour in ((100, GREEN), (2_000, ORANGE), (50_000, BLUE)):
        empty = (1 - shares / buckets) ** number
        ones = high - (high - low) * empty
        axes.plot(range(1, sketch.levels + 1), ones, "o-", color=colour, label=f"{number:,} ids")
    axes.axhline(low, color=FAINT, lw=1, ls="--")
    axes.axhline(high, color=FAINT, lw=1, ls="--")
    axes.set(xlabel="level: half of all ids in the first, a quarter in the second, ...", ylim=(0, 1))
    axes.set_ylabel("expected share of ones")
    axes.legend()
    return figure


def pan_registers() -> Any:
    """The law of a register after 0, 1 and 4 events: the same two heights, moved around."""
    figure, axes = canvas(columns=3, height=2.0)
    law = make_law(difference_set(3, 3), Fraction(1))
    places, inside, hit = np.arange(law.set.period), law.set.member, float(law.hit)
    height = np.where(inside, hit / inside.sum(), (1 - hit) / (~inside).sum())
    for place, events in zip(axes, (0, 1, 4), strict=True):
        place.bar(places, np.roll(height, events), color=np.where(np.roll(inside, events), BLUE, FAINT))
        place.set(title=f"{events} events", xlabel="register", xticks=places[::4], yticks=[])
    axes[0].set_ylabel("probability")
    return figure


def pan_ramp_registers() -> Any:
    """How likely the counter of a top has wrapped around, by the number of events: a ramp for each top."""
    figure, axes = canvas()
    events = np.arange(9)
    for top, colour in ((1, BLUE), (3, ORANGE), (6, GREEN)):
        axes.plot(events, np.minimum(events, top) / top, "o-", color=colour, label=f"top {top}")
    axes.set(xlabel="events of a user", ylabel="chance to have wrapped")
    axes.legend()
    return figure


def _memory(sketch: Density) -> Any:
    """The table of bits, as whoever reads the memory finds it."""
    return sketch._bits.astype(int)


def _show(axes: Any, bits: Any, title: str) -> None:
    axes.imshow(bits.reshape(20, 20), cmap=ListedColormap([FAINT, BLUE]), interpolation="nearest")
    axes.set(title=title, xticks=[], yticks=[])


def _line_of_shares(axes: Any, coin: Coin) -> None:
    """The expected share of ones, by the share of users who came."""
    axes.plot([0, 1], [float(coin.q0), float(coin.q1)], color=ORANGE)
    axes.set(xlabel="share who came", ylabel="expected share of ones", ylim=(0, 1))
    axes.axhline(0.5, color=INK, lw=0.4, ls=":")
