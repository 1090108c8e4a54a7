"""Whether two releases hold the same numbers, field by field."""

from __future__ import annotations

import dataclasses
from types import FunctionType
from typing import Any

import numpy as np

__all__ = ["alike"]


def alike(one: Any, other: Any) -> bool:
    """The same class, the same fields, the same arrays."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and bool((one == other).all())
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        return all(alike(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, FunctionType):
        return bool(one.__qualname__ == other.__qualname__)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)
