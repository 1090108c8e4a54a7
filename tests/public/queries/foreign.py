"""An array library that is not NumPy: arrays that only its own functions understand, and other sums."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

__all__ = ["Foreign"]

_AS_IN_NUMPY: Final = frozenset(
    {"clip", "exp", "matmul", "max", "moveaxis", "permute_dims", "repeat", "reshape", "take"}
)


class Foreign:
    """An array of another library. NumPy cannot read it, as it cannot read one on a graphics card."""

    device = "elsewhere"

    def __init__(self, held: Any) -> None:
        self.held = held

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.held.shape)

    @property
    def dtype(self) -> Any:
        return self.held.dtype

    def get(self) -> Any:
        """A copy in memory."""
        return np.array(self.held)

    def __array_namespace__(self) -> _Library:
        return _Library()

    def __array__(self, *given: Any, **named: Any) -> Any:
        raise TypeError("this array is not NumPy's")

    def __getitem__(self, key: Any) -> Foreign:
        return Foreign(self.held[key])

    def __add__(self, other: Any) -> Foreign:
        return Foreign(self.held + _held(other))

    def __sub__(self, other: Any) -> Foreign:
        return Foreign(self.held - _held(other))

    def __mul__(self, other: Any) -> Foreign:
        return Foreign(self.held * _held(other))

    def __truediv__(self, other: Any) -> Foreign:
        return Foreign(self.held / _held(other))

    def __rtruediv__(self, other: Any) -> Foreign:
        return Foreign(_held(other) / self.held)

    __radd__, __rmul__ = __add__, __mul__


class _Library:
    """The functions of the array API that take and give such arrays. It adds up from the last entry on."""

    def isdtype(self, dtype: Any, kind: str) -> bool:
        return {"real floating": "f", "integral": "iu"}[kind].find(dtype.kind) >= 0

    def asarray(self, values: Any, *, dtype: Any = None, device: str) -> Foreign:
        assert device == Foreign.device
        return Foreign(np.asarray(values, dtype))

    def ones(self, shape: Any, *, dtype: Any, device: str) -> Foreign:
        assert device == Foreign.device
        return Foreign(np.ones(shape, dtype))

    def sum(self, x: Foreign, *, axis: Any = None, keepdims: bool = False) -> Foreign:
        axes = tuple(range(len(x.shape))) if axis is None else axis
        return Foreign(np.flip(x.held, axes).sum(axis=axes, keepdims=keepdims))

    def cumulative_sum(self, x: Foreign, *, axis: int, include_initial: bool) -> Foreign:
        """All of it, less what comes behind."""
        behind = np.cumsum(x.held[::-1], axis=axis)[::-1]
        sums = np.concatenate([behind, np.zeros((1, *x.shape[1:]), x.dtype)])
        return Foreign((sums[:1] - sums)[int(not include_initial) :])

    def concat(self, arrays: list[Foreign], *, axis: int) -> Foreign:
        return Foreign(np.concatenate([each.held for each in arrays], axis=axis))

    def __getattr__(self, name: str) -> Any:
        assert name in _AS_IN_NUMPY
        function = getattr(np, name)
        return lambda *given, **named: Foreign(function(*map(_held, given), **named))


def _held(value: Any) -> Any:
    return value.held if isinstance(value, Foreign) else value
