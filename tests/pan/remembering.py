"""A process that lets users come to a sketch, and then waits: python remembering.py KIND START STEP ERASED.

The ids START, START + STEP, ... are made in one array, which is overwritten at the end, if ERASED is 1.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from partita.pan import Density, RampRegisters, Registers

UNIVERSE, COUNT = 1 << 20, 1000

SKETCHES: dict[str, Any] = {
    "density": lambda: Density(universe=UNIVERSE, epsilon=1),
    "registers": lambda: Registers(universe=UNIVERSE, epsilon=1, output_share="0.1"),
    "ramp-registers": lambda: RampRegisters(universe=UNIVERSE, epsilon=1, tops=[3], output_share="0.1"),
}


def main(kind: str, start: str, step: str, erased: str) -> None:
    sketch = SKETCHES[kind]()
    ids = np.arange(COUNT)
    ids *= int(step)
    ids += int(start)
    sketch.update_many(ids)
    if erased == "1":
        ids.fill(0)
    print("waiting", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
