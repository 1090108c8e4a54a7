"""What was made last, as long as there is room for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar, final

__all__ = ["Kept"]

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@final
class Kept(Generic[Key, Value]):
    """Values by their keys; those that were used longest ago go first when the weights exceed `room`.

    >>> kept = Kept[str, int](room=5)
    >>> for key, weight in [("a", 2), ("b", 2), ("c", 9), ("d", 2)]:
    ...     kept.put(key, 1, weight)
    >>> [kept.get(key) for key in "abcd"]
    [None, 1, None, 1]
    """

    def __init__(self, *, room: int) -> None:
        self._room = room
        self._held = 0
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """The value of a key that is still here; it is used now."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: Key, value: Value, weight: int) -> None:
        """Keep a value, unless it has more weight than there is room."""
        self.drop(key)
        if weight > self._room:
            return
        self._values[key] = value, weight
        self._held += weight
        while self._held > self._room:
            self.drop(next(iter(self._values)))

    def drop(self, key: Key) -> None:
        """Let a value go, if it is here."""
        _, weight = self._values.pop(key, (None, 0))
        self._held -= weight
