"""`cached_property` as Python 3.12 has it, without a lock.

In Python 3.11 all instances of a class share one lock for each cached property, which is held while the value
is worked out: whoever asks for the errors of many boxes would keep all others from any error of any release.
Without it two threads may work out the same value at the same time, and the last one stays.
"""

from __future__ import annotations

import sys

if sys.version_info >= (3, 12):
    from functools import cached_property
else:
    from collections.abc import Callable
    from typing import Any, Generic, TypeVar, overload

    T = TypeVar("T")

    class cached_property(Generic[T]):  # noqa: N801
        """A property that is worked out once for each instance, and kept in its `__dict__`."""

        def __init__(self, func: Callable[[Any], T]) -> None:
            self.func = func
            self.__doc__ = func.__doc__

        def __set_name__(self, owner: type[Any], name: str) -> None:
            self.attrname = name

        @overload
        def __get__(self, instance: None, owner: type[Any] | None = None) -> cached_property[T]: ...

        @overload
        def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...

        def __get__(self, instance: object | None, owner: type[Any] | None = None) -> cached_property[T] | T:
            if instance is None:
                return self
            value = self.func(instance)
            instance.__dict__[self.attrname] = value
            return value
