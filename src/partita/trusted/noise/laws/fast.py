"""The compiled kernels, where the `fast` extra is installed.

Numba takes most of a second to import, so it is loaded on the first large input only.
Every kernel gives, on the same words, what the NumPy code beside its caller gives.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

_MODULE: Final = "partita.trusted.noise.compiled"
POSITIONS: Final = 1 << 18
"""Sealing the segments of so many positions in Python takes about as long as loading the kernels."""
DRAWS: Final = 1 << 24
"""So do as many draws with NumPy."""
_SMALL: Final = 1 << 12


@cache
def available() -> bool:
    """Whether the compiled kernels can be loaded."""
    return find_spec("numba") is not None


@cache
def kernels() -> Any:
    """The module of compiled kernels."""
    return import_module(_MODULE)


@cache
def _loads() -> bool:
    """Whether the kernels can be loaded, for which they are loaded.

    A count may be secret. If a broken installation failed only from some count on, the failure would tell
    that; so it does not fail, and NumPy computes the same.
    """
    try:
        kernels()
    except Exception:
        return False
    return True


def worthwhile(count: int, *, large: int) -> bool:
    """Whether compiled code pays for so many; if it has to be loaded first, for at least `large`.

    The count may be secret: it decides how long the work takes, and never what comes of it nor how many
    words are used.
    """
    return available() and count >= (_SMALL if _MODULE in sys.modules else large) and _loads()
