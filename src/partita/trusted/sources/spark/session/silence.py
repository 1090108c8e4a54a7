"""Spark without a word on the driver, for as long as anybody here is at work.

What Spark logs may hold rows. Levels of logs and filters of warnings are those of a whole process, so that
the first of several threads turns them off, and the last one brings them back.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final, final

_LOGGERS: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger", "py4j")


@final
class Silence:
    """A `with SILENCE.on(context)` turns off what the driver of a Spark context logs; several may overlap."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._before = ExitStack()

    @contextmanager
    def on(self, context: Any) -> Iterator[None]:
        """Silence while inside; the lock may be taken twice, since what is collected closes clusters."""
        self._enter(context)
        try:
            yield
        finally:
            self._leave()

    def _enter(self, context: Any) -> None:
        with self._lock:
            if self._depth == 0:
                self._before = _silenced(context)
            self._depth += 1

    def _leave(self) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._before.close()


SILENCE: Final = Silence()
"""The one of this process."""


def _silenced(context: Any) -> ExitStack:
    """All is off; what closes the stack brings it back, as far as there is still a Spark."""
    with ExitStack() as stack:
        stack.enter_context(_without_python(map(logging.getLogger, _LOGGERS)))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(_without_java(context._jvm.org.apache.logging.log4j))
        return stack.pop_all()


@contextmanager
def _without_python(loggers: Iterable[logging.Logger]) -> Iterator[None]:
    before = [(logger, logger.disabled) for logger in loggers]
    for logger, _ in before:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in before:
            logger.disabled = disabled


@contextmanager
def _without_java(log4j: Any) -> Iterator[None]:
    """Every logger that was configured has a level of its own, not only the root of them."""
    context = log4j.LogManager.getContext(False)
    configured = list(context.getConfiguration().getLoggers().values())
    before = [(logger, logger.getLevel()) for logger in configured]
    _set(context, [(logger, log4j.Level.OFF) for logger in configured])
    try:
        yield
    finally:
        with suppress(Exception):
            _set(context, before)


def _set(context: Any, levels: Iterable[tuple[Any, Any]]) -> None:
    for logger, level in levels:
        logger.setLevel(level)
    context.updateLoggers()
