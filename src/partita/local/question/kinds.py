"""The sealed registry: every randomizer that a description may name, loaded when it is named."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from partita.errors.errors import InvalidParameter

if TYPE_CHECKING:
    from partita.local.randomizer.randomizer import Randomizer

_FREQUENCY: Final = {
    "response": ("randomizer.response", "RandomizedResponse"),
    "projective": ("encodings.projective", "ProjectiveResponse"),
    "hadamard": ("encodings.hadamard", "HadamardResponse"),
    "unary": ("randomizer.unary", "UnaryEncoding"),
    "hashing": ("encodings.hashing", "LocalHashing"),
}
_MEAN: Final = {"one-bit": ("encodings.means", "OneBit"), "piecewise": ("encodings.means", "Piecewise")}
_HOMES: Final = {**_FREQUENCY, **_MEAN}

FREQUENCY_KINDS: Final = tuple(_FREQUENCY)
MEAN_KINDS: Final = tuple(_MEAN)
KINDS: Final = tuple(_HOMES)


def randomizer_kind(name: object) -> type[Randomizer]:
    """The class of randomizers of this kind.

    >>> randomizer_kind("response").__name__
    'RandomizedResponse'
    """
    if not isinstance(name, str) or name not in _HOMES:
        fix = "check it, or use a newer Partita"
        raise InvalidParameter("kind", f"must be one of {', '.join(KINDS)}", given=name, fix=fix)
    module, kind = _HOMES[name]
    found: type[Randomizer] = getattr(import_module(f"partita.local.{module}"), kind)
    return found
