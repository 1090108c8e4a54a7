"""`python -m benchmarks.speed.weights_gpu`: rounds of weights with torch or CuPy, which agree with NumPy.

It says which libraries and devices there are, checks that the same measurements give the same answers to
1e-9 of the mass, and times steps of the fit over 10^6, 10^7 and 10^8 cells. JSON lines on stdout.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import machine
from benchmarks.speed.weights_workload import ranges_over
from partita.public.workload.weights import Margin, Measurements, Scales, WeightsFit

RANGES, MEASURED, STEPS, TURNS = 100, 50, 10, 5
ROWS, BINS = 10**6, 200
AGREEMENT = 1e-9
SCALES = Scales(total=Fraction(20), marginal=Fraction(7), selection=Fraction(300), answer=Fraction(150))
"""Noise of a usual size."""


class Library(NamedTuple):
    """An array of a library on a device, and how to wait until the device is done."""

    name: str
    arrays: Any
    wait: Callable[[], object]


def main(arguments: Sequence[str]) -> int:
    """Measure every library that is there; without a device the processor is measured, and it is said."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", default="1e6,1e7,1e8", help="numbers of cells, with commas between them")
    parser.add_argument(
        "--numpy-up-to", type=float, default=1e7, help="NumPy is measured up to so many cells"
    )
    options = parser.parse_args(arguments)
    found = libraries()
    said = {"libraries": [library.name for library in found], "absent": absent(), **machine.facts()}
    print(json.dumps(said), flush=True)
    worst = 0.0
    for cells in (round(float(text)) for text in options.cells.split(",")):
        for row in measured(cells, found, options.numpy_up_to):
            worst = max(worst, row.get("apart", 0.0))
            print(json.dumps(row), flush=True)
    return 0 if worst <= AGREEMENT else 1


def measured(cells: int, found: list[Library], numpy_up_to: float) -> list[dict[str, Any]]:
    """Rows of one size: NumPy where it is not too slow, and all others with how far apart they are."""
    rows, weighed = [], release(cells)
    numpy = Library("numpy", np.zeros(1), lambda: None)
    reference = weighed.answers if cells <= numpy_up_to else None
    for library in ([numpy] if reference is not None else []) + found:
        there = replace(weighed, arrays=library.arrays)
        row: dict[str, Any] = {"cells": cells, "library": library.name, "queries": len(weighed.operator)}
        row["seconds_per_round"] = turn(there, library)
        if reference is not None:
            row["apart"] = float(np.abs(there.answers - reference).max() / there.mass)
        rows.append(row)
    return rows


def turn(weighed: Measurements, library: Library) -> float:
    """Median seconds of a round's work on the device: all answers, and ten steps."""
    fit = WeightsFit(weighed.operator.shape, weighed.mass, weighed.blocks, weighed.arrays).climb(1)
    taken = []
    for _ in range(TURNS):
        library.wait()
        start = perf_counter()
        weighed.answer_from(fit.x)
        fit.climb(STEPS)
        library.wait()
        taken.append(perf_counter() - start)
    return median(taken)


def release(cells: int) -> Measurements:
    """Measurements of a made-up table of two columns, with noise of a usual size that protects nobody."""
    rng = np.random.default_rng(1)
    width = round(cells**0.5)
    operator = ranges_over((width, width), RANGES, rng)
    table = correlated(width, rng)
    indices = rng.choice(len(operator), MEASURED, replace=False)
    truth = operator.answers(table)[indices]
    margins = tuple(Margin((width, width), axis, BINS) for axis in (0, 1))
    marginals = np.concatenate([margin.sums(table) for margin in margins])
    return Measurements(
        operator=operator,
        unit=1,
        grain=1,
        total=ROWS,
        margins=margins,
        marginals=marginals + rng.laplace(scale=float(SCALES.marginal), size=marginals.size).astype(np.int64),
        indices=indices,
        noisy=truth + rng.laplace(scale=float(SCALES.answer), size=MEASURED).astype(np.int64),
        scales=SCALES,
    )


def correlated(width: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """How many of a million made-up rows are in each cell."""
    common, own = rng.normal(size=(ROWS, 1)), rng.normal(size=(ROWS, 2))
    places = ((0.8 * common + 0.6 * own + 4) / 8 * width).astype(np.int64).clip(0, width - 1)
    return np.bincount(places @ [width, 1], minlength=width * width).reshape(width, width)


def libraries() -> list[Library]:
    """torch and CuPy where they are, on a device where there is one."""
    return [library for library in (torch_library(), cupy_library()) if library is not None]


def absent() -> list[str]:
    return [name for name in ("torch", "cupy", "array_api_compat") if find_spec(name) is None]


def torch_library() -> Library | None:
    if find_spec("torch") is None or find_spec("array_api_compat") is None:
        return None
    torch: Any = import_module("torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = torch.cuda.get_device_name() if device == "cuda" else "no device, on the processor"
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    return Library(
        f"torch {torch.__version__}, {name}", torch.zeros(1, dtype=torch.float64, device=device), wait
    )


def cupy_library() -> Library | None:
    if find_spec("cupy") is None:
        return None
    cupy: Any = import_module("cupy")
    return Library(f"cupy {cupy.__version__}", cupy.zeros(1), cupy.cuda.Device().synchronize)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
