"""Exact integer noise: the only place where randomness is drawn.

    noise.discrete_laplace(scale, size)      two-sided geometric noise
    noise.discrete_laplace_units(unit, k)    many scales at once
    noise.geometric(scale, size)             one-sided
    noise.add(x, scale)                      the one way to add noise to a secret
    noise.bernoulli(p), noise.categorical(weights), noise.exponential(scores, scale)
    noise.first_success(law, scale)          where fresh noise first exceeds a level

These draw from `SYSTEM`; pan-private objects use `KERNEL`. Names are loaded when they are
asked for, so that `partita.noise.kernel` works with the standard library alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partita.noise.hazard import FirstSuccess, Law
    from partita.noise.protocol import IntegerArray, Noise
    from partita.noise.system import KERNEL, SYSTEM, SystemNoise
    from partita.noise.words import KernelWords, Tape, Words, WordSource

    add = SYSTEM.add
    bernoulli = SYSTEM.bernoulli
    categorical = SYSTEM.categorical
    discrete_laplace = SYSTEM.discrete_laplace
    discrete_laplace_units = SYSTEM.discrete_laplace_units
    exponential = SYSTEM.exponential
    first_success = SYSTEM.first_success
    geometric = SYSTEM.geometric

__all__ = [
    "KERNEL",
    "SYSTEM",
    "FirstSuccess",
    "IntegerArray",
    "KernelWords",
    "Law",
    "Noise",
    "SystemNoise",
    "Tape",
    "WordSource",
    "Words",
    "add",
    "bernoulli",
    "categorical",
    "discrete_laplace",
    "discrete_laplace_units",
    "exponential",
    "first_success",
    "geometric",
]

_HOMES = {
    "hazard": ("FirstSuccess", "Law"),
    "protocol": ("IntegerArray", "Noise"),
    "system": ("KERNEL", "SYSTEM", "SystemNoise"),
    "words": ("KernelWords", "Tape", "WordSource", "Words"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return getattr(import_module(f"{__name__}.system").SYSTEM, name)


def __dir__() -> list[str]:
    return sorted(__all__)
