"""Which names of a column are found, by their number of rows: ours, pure and at delta 1e-6, and OpenDP's.

    python -m benchmarks.names

Words are those of the sources of Python's standard library, with the counts that they have there. Cities are
those of the time zone database, and their counts fall like 1 / rank: nothing has to be downloaded.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any, Final
from zoneinfo import available_timezones

from benchmarks import machine
from partita import NameCounts, Names, StableNames, Text

BANDS: Final = (20, 50, 100, 150, 200, 500, 10**9)
"""Rows of names, from each up to the next."""
DELTA: Final = 1e-6
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_CITY_ROWS: Final = 200_000

Find = Callable[[Sequence[str]], set[str]]


def words() -> list[str]:
    """Every word of the standard library's sources, as often as it stands there."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = [*sorted(folder.glob("*.py")), *sorted(folder.glob("[a-l]*/*.py"))]
    texts = (path.read_text("utf-8", "replace") for path in files if "site-packages" not in path.parts)
    return [word for text in texts for word in re.findall(r"[a-z]{3,24}", text)]


def cities() -> list[str]:
    """Cities of the time zone database, of which the k-th has 1 / k of the rows of the first."""
    names = sorted({zone.rpartition("/")[2].replace("_", " ") for zone in available_timezones()})
    listed = Random(0).sample(names, len(names))
    weights = [1 / rank for rank in range(1, len(listed) + 1)]
    return Random(1).choices(listed, weights=weights, k=_CITY_ROWS)


def ours(text: Text, epsilon: str) -> Find:
    """The names that `Names` lists."""

    def find(rows: Sequence[str]) -> set[str]:
        found = Names(text=text, epsilon=epsilon).release(NameCounts.from_texts(rows, text))
        return set(found.domain.labels)

    return find


def stable(text: Text, epsilon: str) -> Find:
    """The names that `StableNames` lists at the same delta."""

    def find(rows: Sequence[str]) -> set[str]:
        made = StableNames(text=text, epsilon=epsilon, delta=str(DELTA))
        found = made.release(NameCounts.from_texts(rows, text))
        return set(found.domain.labels)

    return find


def opendp(epsilon: str) -> Find:
    """The keys that OpenDP's Laplace threshold releases, at the least threshold for the delta."""
    import opendp.prelude as dp

    dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
    space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    counter: Any = dp.t.make_count_by(*space, TV="i32")

    def make(threshold: int) -> Any:
        return counter >> dp.m.then_laplace_threshold(scale=float(1 / Fraction(epsilon)), threshold=threshold)

    least = next(each for each in range(1, 10**4) if make(each).map(1)[1] <= DELTA)
    measure = make(least)
    return lambda rows: set(measure(list(rows)))


def recall(find: Find, rows: Sequence[str], trials: int) -> Mapping[str, object]:
    """The share of the names of each band that is found, false names, and seconds."""
    counts, found, names = Counter(rows), Counter[int](), Counter[int]()
    band = {name: max((low for low in BANDS if low <= n), default=0) for name, n in counts.items()}
    false, start = 0, time.process_time()
    for _ in range(trials):
        listed = find(rows)
        false += len(listed - counts.keys())
        names.update(band.values())
        found.update(band[name] for name in listed & counts.keys())
    seconds = (time.process_time() - start) / trials
    shares = {f"{low}+": round(found[low] / names[low], 3) for low in BANDS[:-1] if names[low]}
    return {
        "recall": shares,
        "listed": sum(found.values()) / trials,
        "false": false,
        "seconds": round(seconds, 1),
    }


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    tables = {"words": (words(), LETTERS), "cities": (cities(), None)}
    for name, (rows, letters) in tables.items():
        for epsilon in options.epsilon:
            ways = {"partita, pure": ours(Text(24), epsilon), "opendp, delta 1e-6": opendp(epsilon)}
            ways["partita, delta 1e-6"] = stable(Text(24), epsilon)
            if letters is not None:
                ways["partita, pure, 26 letters"] = ours(Text(24, letters), epsilon)
            for way, find in ways.items():
                facts = {"table": name, "rows": len(rows), "names": len(set(rows)), "epsilon": epsilon}
                row = {**facts, "way": way, **recall(find, rows, options.trials), **machine.facts()}
                print(json.dumps(row), flush=True)
    return 0


def parser() -> argparse.ArgumentParser:
    """The options of this module."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.names", description=__doc__)
    made.add_argument("--trials", type=int, default=5, help="releases of each; default: %(default)s")
    made.add_argument("--epsilon", nargs="+", default=["1"], help="default: 1")
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
