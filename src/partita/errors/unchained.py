"""Errors that know nothing of their cause: what failed on data must not carry the data along."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from partita.errors.errors import PartitaError

T = TypeVar("T")


def unchained(work: Callable[[], T], failure: PartitaError, *kinds: type[Exception]) -> T:
    """The result of `work`; if it fails with an error of these kinds, `failure`.

    It is raised outside of the handler. With `from None` inside of it, the cause would not be shown, but it
    would still be there for every tool that looks at the context of an error.
    """
    try:
        return work()
    except kinds:
        pass
    raise failure
