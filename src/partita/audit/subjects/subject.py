"""What attacks are run against: one small interface for every mechanism.

A method returns what is wrong, in a few words, or None.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Final

from partita.audit.base.discovery import Family
from partita.errors.errors import PartitaError
from partita.testing.laws.coupling import CouplingBroken

CANARY: Final = 987_654_321
"""A number that no message may show."""


class Subject(ABC):
    """One mechanism: how it is made, and what may be tried on it."""

    family: ClassVar[Family]

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def make(self, **changes: Any) -> Any:
        """The mechanism at epsilon 1, or with other parameters."""

    @abstractmethod
    def hides(self, value: object) -> str | None:
        """Whether one more row with this value is hidden as well as any other."""

    @abstractmethod
    def numbers(self) -> str | None:
        """Whether secrets go into the noise as integers, and come out on a public grid."""

    @abstractmethod
    def sizes(self) -> str | None:
        """Whether the types and sizes of what is published are the same for all data."""

    @abstractmethod
    def keeps(self, epsilon: object, exact: Fraction) -> str | None:
        """Whether a mechanism made with this epsilon promises and keeps exactly that number."""

    def spares(self, attack: str) -> str | None:
        """Why an attack makes no sense on this very mechanism; None if it does."""
        return None

    def fitting(self, values: Sequence[object]) -> Sequence[object]:
        """Those of some values that a row may hold."""
        return values

    @abstractmethod
    def takes(self, value: object) -> object:
        """Hand over a value as it is, malformed or not."""

    def silent(self, value: object) -> str | None:
        """Whether no error or warning about this value shows the canary in it."""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                self.takes(value)
            except Exception as error:
                said += [error]  # type: ignore[list-item]
        shown = any(str(CANARY) in text for each in said for text in _texts(each))
        return "a message shows a value" if shown else None

    def refuses(self, **changes: object) -> str | None:
        """Whether a parameter that makes no sense is refused by an error of ours."""
        ((name, value),) = changes.items()
        try:
            with warnings.catch_warnings(action="ignore"):
                self.make(**changes)
        except PartitaError:
            return None
        except Exception as error:
            return f"{name} {value!r} raised {type(error).__name__}"
        return f"{name} {value!r} was taken"


def _texts(said: object) -> Iterator[str]:
    """All that can be read of an error or a warning, and of the errors that are shown with it."""
    while said is not None:
        yield f"{said} {said!r} {getattr(said, 'args', '')} {getattr(said, 'message', '')}"
        cause, context = getattr(said, "__cause__", None), getattr(said, "__context__", None)
        said = cause if getattr(said, "__suppress_context__", True) else context


def wrong(call: Callable[[], str | None]) -> str | None:
    """What a call says is wrong; an error is wrong too, and its text is not shown."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return call()
    except CouplingBroken:
        return "the outputs differ by more than noise explains"
    except Exception as error:
        return f"{type(error).__name__} was raised: a refusal tells that the row is there"
