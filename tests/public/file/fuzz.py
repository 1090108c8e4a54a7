"""Read hostile files and ask them all: python -m tests.public.file.fuzz FOLDER FIRST LAST [EVERY ASKED]

Every second file is forged, or one in EVERY, and the others are damaged; of damaged files that are accepted
all are asked, or one in ASKED. Prints one line of counts. An error that is not ours ends it with a traceback,
and so do too much memory, and too much processor time for one file (SIGPROF).
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from partita.answer import Answer
from partita.arrays import Floats
from partita.errors import PartitaError
from partita.public.axis.base import AxisRelease, Term
from partita.public.boxes.base import BoxRelease, BoxTerm
from partita.public.boxes.plan import Corners
from partita.public.file import decode
from partita.public.release import Release
from partita.public.sums.view import SumView
from partita.public.views import BoxView

from .mutations import damaged, forged

LARGEST = 2**22
MEMORY = 2**30
SECONDS = 10


def main(folder: str, first: str, last: str, every: str = "2", asked: str = "1") -> None:
    """Go through the files with these numbers."""
    files = [path.read_bytes() for path in sorted(Path(folder).glob("*.parquet"))]
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    outcomes: Counter[str] = Counter()
    decode(files[0], largest=LARGEST)
    limit_memory()
    for number in range(int(first), int(last)):
        make = forged if number % int(every) == 1 else damaged
        asking = make is forged or number % int(asked) == 0
        data = make(files, number)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        outcomes[f"{make.__name__}: {outcome(data, number, asking=asking)}"] += 1
        signal.setitimer(signal.ITIMER_PROF, 0)
    print(json.dumps(outcomes))


def limit_memory() -> None:
    """Allow so much more than is in use now."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def outcome(data: bytes, number: int, *, asking: bool) -> str:
    """What became of a file, in a word; anything but a release or an error of ours is fatal."""
    try:
        release = decode(data, largest=LARGEST)
    except PartitaError:
        return "refused"
    except BaseException:
        fail(number)
    if not asking:
        return "accepted"
    try:
        ask(release)
    except PartitaError:
        return "refused when asked"
    except BaseException:
        fail(number)
    return "answered"


def fail(number: int) -> None:
    """End, and say which file it was: each is a function of its number."""
    traceback.print_exc()
    print(f"file number {number}", file=sys.stderr)
    sys.exit(1)


def ask(release: Release) -> None:
    """Every question there is, about every view and about all together."""
    for view in release.views:
        if isinstance(view, BoxView):
            ask_boxes(view.boxes)
        else:
            ask_axis(view.axis)
            for cell in view.specials.counts:
                ask_answer(view.specials.answer(cell))
        ask_together(release, view.columns)
    for column in release.columns:
        ask_column(release, column)
    for summed in release.sums:
        ask_sums(release, summed)
    if release.queries is not None:
        ask_queries(release)
    assert all((release.report(), release.citation(), repr(release)))
    release.synthesize(10)
    ask_answer(release.count())


def ask_sums(release: Release, view: SumView) -> None:
    """Sums, means and variances of all rows, and of half of them."""
    halves: dict[str, object] = dict.fromkeys(view.keys, (None, None))
    for asked in ({}, halves):
        summed = release.sum(view.column, asked)
        assert np.isfinite([summed.value, summed.error, *summed.interval(0.9)]).all()
        ratios = [release.mean, *([release.variance, release.std] if view.moments else [])]
        for ask_ratio in ratios:
            found = ask_ratio(view.column, asked)
            assert not found.determinable or np.isfinite([found.value, found.error]).all()
            assert len(found.interval(0.9)) == len(found.worst(0.1)) == 2


def ask_queries(release: Release) -> None:
    """All answers, and the first by itself."""
    assert np.isfinite(release.answers().values).all()
    assert np.isfinite(release.answers().error).all()
    assert len(release.labels()) == len(release.answers())
    ask_answer(release.answer(0))


def ask_together(release: Release, columns: tuple[str, ...]) -> None:
    """The questions that name several columns."""
    everything: dict[str, object] = dict.fromkeys(columns, (None, None))
    ask_answer(release.count(everything))
    if len(columns) > 1:
        one, other, *_ = columns
        assert np.isfinite(np.asarray(release.histogram(one, other, bins=2).counts)).all()
        assert len(release.quantile(one, 0.5, {other: (None, None)}).interval(0.9)) == 2


def ask_column(release: Release, column: str) -> None:
    """The questions that name a column."""
    everything = {column: (None, None)}
    ask_answer(release.count(everything))
    ask_answer(release.difference(everything, everything))
    assert np.isfinite(np.asarray(release.cdf(column).counts)).all()
    assert np.isfinite(np.asarray(release.histogram(column, bins=1).counts)).all()
    first, median = release.quantile(column, [0.1, 0.5])
    assert len(first.interval(0.9)) == len(median.worst(0.05))


def ask_axis(axis: AxisRelease) -> None:
    """Every method of an axis, at its ends and inside."""
    last, half = axis.size - 1, axis.size // 2
    ask_answer(axis.count(0, last))
    ask_answer(axis.answer(Term(0, half), Term(min(half, last), last, -1)))
    lows, highs = np.array([0, half // 2, 0], np.uint64), np.array([last, half, 0], np.uint64)
    assert np.isfinite(axis.counts(lows, highs)).all()
    assert np.isfinite(axis.errors(lows, highs)).all()
    assert np.isfinite(axis.curve.upto(highs)).all()
    assert axis.error(0.05) >= 0


def ask_boxes(boxes: BoxRelease) -> None:
    """Every method of boxes, at their ends and inside."""
    whole = boxes.everything
    half = BoxTerm(whole.low, tuple(last // 2 for last in whole.high), -1)
    ask_answer(boxes.answer(whole))
    ask_answer(boxes.answer(whole, half))
    lows, highs = (np.array(corners, np.uint64) for corners in ([whole.low] * 2, [whole.high, half.high]))
    assert np.isfinite(boxes.counts(lows, highs)).all()
    assert np.isfinite(boxes.errors(lows, highs)).all()
    assert np.isfinite(boxes.along(0, half).upto(highs[:, 0])).all()
    assert boxes.error(0.05) >= 0
    ask_answer(boxes.region(LowerHalf(), whole))
    assert boxes.points(10).shape == (10, len(boxes.axes))


class LowerHalf:
    """A region that has half of every box."""

    def shares(self, lows: Corners, highs: Corners) -> Floats:
        return np.full(len(lows), 0.5)


def ask_answer(answer: Answer) -> None:
    """A value, a standard error that is a number, and bounds in order."""
    assert np.isfinite([answer.value, answer.error]).all()
    for low, high in (answer.interval(0.9), answer.worst(0.05)):
        assert low <= high


if __name__ == "__main__":
    main(*sys.argv[1:])
