"""Pictures of the mechanisms for linear queries, released by the shipped code on a fixed tape."""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from partita import Histogram
from partita.domain import Integer
from partita.public.queries.language import between, matrix, prefixes, ranges
from partita.public.queries.queries import Universe
from partita.testing import EndlessTape
from partita.trusted.mechanisms.online_weights import OnlineTerms, open_session
from partita.trusted.mechanisms.weights import MultiplicativeWeights
from partita.trusted.mechanisms.workload import LinearQueries, LinearWorkload, ProjectedLaplace
from partita.trusted.secret import Points
from scripts.pictures.style import BLUE, FAINT, ORANGE, canvas, fixed_noise

_CELLS: Final = 32
_LINE: Final = Universe(["age"], [Integer(0, _CELLS - 1)])
_SQUARE: Final = Universe(["age", "pay"], [Integer(0, 15), Integer(0, 15)])
_BEFORE: Final = np.array([axis.before for axis in _SQUARE.axes])
_DIAGONAL: Final = np.repeat(np.arange(16), 2).reshape(16, 2)
"""Pay that grows with age, which sums along each axis do not show."""
_CORNERS: Final = [(turn * 3 % 11, turn * 5 % 12) for turn in range(40)]


def linear_queries() -> Any:
    """Four queries over six cells, and their answers."""
    figure, (left, right) = canvas(columns=2)
    weights: list[list[object]] = [
        [1] * 6,
        [1, 1, 1, 0, 0, 0],
        [0, 1, 0, 1, 0, 1],
        [0, "1/2", "1/2", 0, 0, 1],
    ]
    counts = Histogram.dense([9, 14, 21, 17, 8, 3])
    mechanism = LinearQueries(queries=weights, epsilon=1)
    table = np.array([[float(weight) for weight in row] for row in mechanism.queries])
    released = mechanism.release(counts, noise=fixed_noise()).noisy / mechanism.granularity
    left.imshow(table, cmap="Blues", vmin=0, vmax=3, aspect="auto")
    for (query, cell), weight in np.ndenumerate(table):
        left.text(cell, query, f"{weight:g}", ha="center", va="center")
    left.add_patch(_frame(left, int(table.sum(axis=0).argmax())))
    left.set(title="weights; the heaviest cell sets the noise", xlabel="cell", ylabel="query")
    left.set_yticks(range(len(weights)))
    _draw_answers(right, table @ counts.spread(), released, float(mechanism.scale) / mechanism.granularity)
    return figure


def linear_workload() -> Any:
    """All prefixes of a line: each has the noise of the first cell, which is in all of them."""
    figure, axes = canvas()
    mechanism = LinearWorkload(queries=prefixes("age"), universe=_LINE, epsilon=1)
    release = mechanism.release(_points(), noise=fixed_noise())
    truth = np.bincount(_ages(), minlength=_CELLS).cumsum()
    places = np.arange(_CELLS)
    axes.step(places, truth, where="mid", color=FAINT, lw=3, label="secret prefixes")
    axes.errorbar(
        places, release.values, 2 * release.spreads, fmt="o", ms=4, color=BLUE, label="released, ± 2 errors"
    )
    axes.set(xlabel="age", ylabel="rows up to it")
    axes.legend()
    return figure


def projected_laplace() -> Any:
    """Random sets of cells: noisy answers, and those that some table has."""
    figure, axes = canvas()
    words = EndlessTape(5).take(170).tolist()
    sets = np.array([[word >> cell & 1 for cell in range(_CELLS)] for word in words])
    listed = matrix("age", [dict.fromkeys(np.flatnonzero(chosen).tolist(), 1) for chosen in sets])
    mechanism = ProjectedLaplace(queries=listed, universe=_LINE, epsilon="1/4")
    release = mechanism.release(_points(), noise=fixed_noise())
    truth = sets @ np.bincount(_ages(), minlength=_CELLS)
    axes.plot(truth, release.unprojected, ".", color=ORANGE, ms=4, alpha=0.7, label="with noise")
    axes.plot(truth, release.values, ".", color=BLUE, ms=4, label="projected")
    axes.axline((0, 0), slope=1, color=FAINT, lw=3, alpha=0.5)
    axes.set(xlabel="secret answer", ylabel="released", xlim=(truth.min(), truth.max()))
    axes.legend(loc="upper left", markerscale=3)
    return figure


def multiplicative_weights() -> Any:
    """The synthetic counts that the measured queries lead to, and these queries."""
    figure, axes = canvas()
    mechanism = MultiplicativeWeights(queries=ranges("age"), universe=_LINE, epsilon=1, rounds=6)
    release = mechanism.release(_points(), noise=fixed_noise())
    before = _LINE.axes[0].before
    guess = np.asarray(release.x, dtype=float).ravel()[before : before + _CELLS]
    places = np.arange(_CELLS)
    axes.bar(places, np.bincount(_ages(), minlength=_CELLS), color=FAINT, alpha=0.5, label="secret counts")
    axes.step(places, guess, where="mid", color=BLUE, label="synthetic counts")
    pairs = [(low, high) for low in range(_CELLS) for high in range(low, _CELLS)]
    for turn, chosen in enumerate(release.weighed.indices.tolist()):
        low, high = pairs[chosen]
        axes.plot([low - 0.4, high + 0.4], [-4 - 4 * turn] * 2, color=ORANGE, lw=2)
    axes.plot([], [], color=ORANGE, lw=2, label="ranges measured, one a round")
    axes.set(xlabel="age", ylabel="rows")
    axes.legend()
    return figure


def online_weights() -> Any:
    """Questions one after the other: how far the public guess was off, and which were measured."""
    figure, axes = canvas()
    terms = OnlineTerms.of(universe=_SQUARE, epsilon=2, updates=12)
    off, measured = _asked_in_turn(terms)
    places = np.arange(len(off))
    axes.axhline(float(terms.threshold), color=FAINT, ls="--", label="threshold, before its noise")
    axes.vlines(places, 0, off, color=FAINT, alpha=0.5)
    axes.plot(places[~measured], off[~measured], "o", color=BLUE, label="answered by the guess")
    axes.plot(places[measured], off[measured], "D", color=ORANGE, label="measured, and learnt from")
    axes.set(xlabel="question", ylabel="secret: guess off by")
    axes.legend()
    return figure


def _asked_in_turn(terms: OnlineTerms) -> tuple[Any, Any]:
    """How far the guess was off at each question, and whether it was measured."""
    points = Points.from_rows(np.repeat(_DIAGONAL, 400, axis=0) + _BEFORE, axes=_SQUARE.axes)
    off, measured = [], []
    with (
        TemporaryDirectory() as folder,
        open_session(Path(folder) / "session", terms, points, noise=fixed_noise()) as session,
    ):
        for age, pay in _CORNERS:
            query, known = _quarter(age, pay), len(session.measured)
            off.append(abs(session.public(query).value - 400 * max(0, 5 - abs(age - pay))))
            session.ask(query)
            measured.append(len(session.measured) > known)
    return np.array(off), np.array(measured)


def _quarter(age: int, pay: int) -> Any:
    """People in a box of five ages and five steps of pay."""
    return between("age", age, age + 4) * between("pay", pay, pay + 4)


def _ages() -> NDArray[np.int64]:
    """Two groups of people, around 8 and around 22."""
    groups = [(NormalDist(8, 2.5), 700), (NormalDist(22, 3), 500)]
    drawn = [group.inv_cdf((row + 0.5) / rows) for group, rows in groups for row in range(rows)]
    return np.clip(np.rint(drawn), 0, _CELLS - 1).astype(np.int64)


def _points() -> Points:
    return Points.from_rows((_ages() + _LINE.axes[0].before)[:, None], axes=_LINE.axes)


def _draw_answers(axes: Any, truth: Any, released: Any, scale: float) -> None:
    places = np.arange(len(truth))
    axes.bar(places, truth, color=FAINT, alpha=0.5, label="secret answers")
    bars = 2 * np.sqrt(2) * scale
    axes.errorbar(places, released, bars, fmt="o", color=BLUE, label="released, ± 2 errors")
    axes.set(title=f"noise of scale {scale:g} on each", xlabel="query")
    axes.set_xticks(places)
    axes.legend()


def _frame(axes: Any, cell: int) -> Any:
    """A frame round the column of a cell."""
    low, high = sorted(axes.get_ylim())
    corner = (cell - 0.5, low)
    return Rectangle(corner, 1, high - low, fill=False, ec=ORANGE, lw=2)
