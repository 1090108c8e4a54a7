"""Both processes of a service together: started, watched, ended.

The supervisor opens the ports, so that a taken one is said before anything starts, and hands the sockets
on. It holds one pipe to each process: when the pipe ends the process does, so none is left behind even
if the supervisor is killed. A process that dies is not started again in silence: the whole ends.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from socket import socket
from typing import IO, Final, TypeAlias, final

from partita.errors import PartitaError
from partita.service.settings import Settings
from partita.service.web.ready import check_places, listening

__all__ = ["ServiceEnded", "serve"]

Announce: TypeAlias = Callable[[str, str], None]

_STOPS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_LONGEST_WORD: Final = 64
_MARGIN: Final = 1
"""Seconds beyond the grace of open requests in which a process closes its files; then it is killed."""


class ServiceEnded(PartitaError, RuntimeError):
    """A process of the service ended by itself, and the others were ended with it."""


def serve(settings: Settings, *, announce: Announce) -> None:
    """Run the service until it is told to end by SIGTERM, SIGINT or SIGHUP.

    `announce` is told the side and the address of each process once all of them answer.
    """
    check_places(settings)
    with ExitStack() as stack:
        sockets = {side: stack.enter_context(listening(settings, side)) for side in _sides(settings)}
        settings = _with_ports(settings, sockets)
        told = stack.enter_context(_told_to_end())
        children = stack.enter_context(_children(settings, sockets))
        if _all_answer(children, told):
            for side in sockets:
                announce(side, settings.address(side))
            next(_said(children, told), None)


def _sides(settings: Settings) -> tuple[str, ...]:
    return ("reading", "steward") if settings.has_steward else ("reading",)


def _with_ports(settings: Settings, sockets: Mapping[str, socket]) -> Settings:
    """The settings with the ports that were got, where any free one was asked for."""
    ports = {side: opened.getsockname()[1] for side, opened in sockets.items()}
    steward = ports.get("steward", settings.steward_port)
    return replace(settings, port=ports["reading"], steward_port=steward)


@final
@dataclass(frozen=True)
class _Child:
    """A process that serves one side; it ends when `lifeline` does, and `words` end when it does."""

    side: str
    process: subprocess.Popen[bytes]
    lifeline: IO[bytes]
    words: IO[bytes]

    @staticmethod
    def started(side: str, opened: socket, settings: Settings) -> _Child:
        """A new process, in a session of its own: Ctrl-C at a terminal reaches the supervisor only."""
        process = subprocess.Popen(
            [sys.executable, "-m", "partita.service.web.server", side, str(opened.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(opened.fileno(),),
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write(f"{settings.to_json()}\n".encode())
            process.stdin.flush()
        return _Child(side, process, process.stdin, process.stdout)

    def end(self, deadline: float) -> None:
        """Wait until it has ended; kill it if it has not by the deadline."""
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.words.close()


@contextmanager
def _children(settings: Settings, sockets: Mapping[str, socket]) -> Iterator[Sequence[_Child]]:
    """All processes; they are told to end together, and have ended when the block has."""
    children: list[_Child] = []
    try:
        for side, opened in sockets.items():
            for _ in range(settings.workers if side == "reading" else 1):
                children.append(_Child.started(side, opened, settings))
        yield children
    finally:
        for child in children:
            with suppress(BrokenPipeError):
                child.lifeline.close()
        deadline = time.monotonic() + settings.limits.grace + _MARGIN
        for child in children:
            child.end(deadline)


@contextmanager
def _told_to_end() -> Iterator[int]:
    """A handle that can be read from once a signal has asked for the end."""
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = {each: signal.signal(each, lambda *_: None) for each in _STOPS}
    woken = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        yield read
    finally:
        signal.set_wakeup_fd(woken)
        for each, handler in before.items():
            signal.signal(each, handler)
        os.close(read)
        os.close(write)


def _all_answer(children: Sequence[_Child], told: int) -> bool:
    """Wait until every process has said that it answers; False if the end was asked for before."""
    waiting = {id(child) for child in children}
    for child in _said(children, told):
        waiting.discard(id(child))
        if not waiting:
            return True
    return False


def _said(children: Sequence[_Child], told: int) -> Iterator[_Child]:
    """Whoever says something, until the end is asked for; one that ended by itself ends all."""
    with selectors.DefaultSelector() as selector:
        selector.register(told, selectors.EVENT_READ)
        for child in children:
            selector.register(child.words, selectors.EVENT_READ, child)
        while True:
            heard = [key.data for key, _ in selector.select()]
            if None in heard:
                return
            for child in heard:
                if not os.read(child.words.fileno(), _LONGEST_WORD):
                    raise ServiceEnded(f"the {child.side} process ended by itself; the service ended with it")
                yield child
