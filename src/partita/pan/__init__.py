"""Pan-private sketches: statistics of users whose memory may be read once, by anybody, at any time.

    Density         what fraction of a public universe has appeared
    Distinct        how many different ids came, of a universe that nobody can list
    Registers       how many appeared exactly t times, t times at most, k times at least; may be taken back
    RampRegisters   the same from counters that wrap around: the simple version, for comparison
    SketchFile      a sketch that lives in a file, of which one state can be read at any time

The noise is in the state before the first event is. Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partita.pan.density import Density
    from partita.pan.distinct import Distinct
    from partita.pan.ramp_registers import RampRegisters
    from partita.pan.registers import Registers
    from partita.pan.sharding import shard_of, whole
    from partita.pan.sketch import Sketch
    from partita.pan.sketch_file import SketchFile

_HOMES = {
    "density": ("Density",),
    "distinct": ("Distinct",),
    "ramp_registers": ("RampRegisters",),
    "registers": ("Registers",),
    "sharding": ("shard_of", "whole"),
    "sketch": ("Sketch",),
    "sketch_file": ("SketchFile",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["Density", "Distinct", "RampRegisters", "Registers", "Sketch", "SketchFile", "shard_of", "whole"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
