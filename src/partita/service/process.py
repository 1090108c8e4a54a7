"""The processes of a service: checked before they start, supervised, and ended together.

The supervisor opens the ports, so that a taken port is reported before anything starts, and passes the
sockets on. It holds one pipe to each process: when the pipe ends the process does, so none is left behind
even if the supervisor is killed. A process that dies is not restarted silently: the whole service ends.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Final, TypeAlias, final

from partita.errors import InvalidParameter, PartitaError, check
from partita.service.settings import ServiceSettings
from partita.service.tokens import TokenFile

# ---- checks before the start ----

_NEEDED: Final = ("fastapi", "prometheus_client", "uvicorn")
_OTHERS: Final = 0o077  # permission bits of all but the owner
_ALL_WRITE: Final = 0o002
_BACKLOG: Final = 2048  # connections that wait in the kernel while the event loop is busy


def check_installed() -> None:
    """Refuse to start if a package of the extra `serve` is missing."""
    fix = 'install it: pip install "partita[serve]"'
    for module in _NEEDED:
        check(find_spec(module) is not None, "serve", f"needs {module}", given=f"no {module}", fix=fix)


def check_paths(settings: ServiceSettings) -> None:
    """Refuse folders and files that cannot be used; a missing secret folder is created."""
    _check_public(settings.folder, write=settings.has_steward)
    if settings.streams is not None:
        _check_secret(settings.streams)
    if settings.specs is not None:
        _check_folder(settings.specs, "publish", write=False)
    if settings.tokens is not None:
        TokenFile(settings.tokens).read()
    if settings.ledger is not None and "://" not in settings.ledger:
        fix = "open a dataset with `partita ledger open`"
        check(Path(settings.ledger).is_file(), "ledger", "must exist", given=settings.ledger, fix=fix)


@contextmanager
def open_listener(settings: ServiceSettings, side: str) -> Iterator[socket.socket]:
    """A socket that listens at the address of a side."""
    parameter, (host, port) = "port" if side == "reading" else "steward_port", settings.place(side)
    try:
        opened = _listen(host, port)
    except OSError as error:
        # A failed name lookup has error numbers of another kind.
        reason = "no such address" if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        rule, fix = (
            f"must be free on {host} ({reason})",
            "choose another port or stop the process that uses it",
        )
        raise InvalidParameter(parameter, rule, given=port, fix=fix) from None
    with opened:
        yield opened


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)


def _check_folder(folder: Path, name: str, *, write: bool) -> None:
    fix = "make the folder first, or check its name"
    check(folder.is_dir(), name, "must exist", given=str(folder), fix=fix)
    rule = f"must be a folder that you may {'write' if write else 'read'}"
    usable = os.access(folder, os.R_OK | os.X_OK | (os.W_OK if write else 0))
    check(usable, name, rule, given=str(folder), fix="check its permissions")


def _check_public(folder: Path, *, write: bool) -> None:
    """A folder that others may write could contain links for the steward to follow."""
    _check_folder(folder, "folder", write=write)
    closed, rule = not write or not folder.stat().st_mode & _ALL_WRITE, "must not be writable for everybody"
    check(closed, "folder", rule, given=str(folder), fix="chmod o-w it")


def _check_secret(folder: Path) -> None:
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
    _check_folder(folder, "streams", write=True)
    rule = "must be closed to others, as it is secret"
    check(not folder.stat().st_mode & _OTHERS, "streams", rule, given=str(folder), fix="chmod 700 it")


# ---- supervision ----

Announce: TypeAlias = Callable[[str, str], None]

_STOPS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_READ_SIZE: Final = 64  # bytes; a process writes one short line
_MARGIN: Final = 1
"""Seconds after the grace of open requests for closing files; then a process is killed."""


class ServiceEnded(PartitaError, RuntimeError):
    """A process of the service ended by itself, and the others were ended with it."""


def serve(settings: ServiceSettings, *, announce: Announce) -> None:
    """Run the service until SIGTERM, SIGINT or SIGHUP.

    `announce` is called with the side and the address of each process once all of them answer.
    """
    check_paths(settings)
    with ExitStack() as stack:
        sockets = {side: stack.enter_context(open_listener(settings, side)) for side in _sides(settings)}
        settings = _with_ports(settings, sockets)
        stop = stack.enter_context(_stop_signals())
        children = stack.enter_context(_children(settings, sockets))
        if _wait_until_ready(children, stop):
            for side in sockets:
                announce(side, settings.address(side))
            next(_ready_messages(children, stop), None)


def _sides(settings: ServiceSettings) -> tuple[str, ...]:
    return ("reading", "steward") if settings.has_steward else ("reading",)


def _with_ports(settings: ServiceSettings, sockets: Mapping[str, socket.socket]) -> ServiceSettings:
    """The settings with the ports that the system chose where port 0 was asked for."""
    ports = {side: opened.getsockname()[1] for side, opened in sockets.items()}
    steward = ports.get("steward", settings.steward_port)
    return replace(settings, port=ports["reading"], steward_port=steward)


@final
@dataclass(frozen=True)
class _ChildProcess:
    """A process that serves one side; it ends when `lifeline` is closed, and then `output` ends."""

    side: str
    process: subprocess.Popen[bytes]
    lifeline: IO[bytes]
    output: IO[bytes]

    @staticmethod
    def start(side: str, opened: socket.socket, settings: ServiceSettings) -> _ChildProcess:
        """A new process, in a session of its own: Ctrl-C at a terminal reaches the supervisor only."""
        process = subprocess.Popen(
            [sys.executable, "-m", "partita.service.server", side, str(opened.fileno())],
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
        return _ChildProcess(side, process, process.stdin, process.stdout)

    def end(self, deadline: float) -> None:
        """Wait until it has ended; kill it if it has not by the deadline."""
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.output.close()


@contextmanager
def _children(
    settings: ServiceSettings, sockets: Mapping[str, socket.socket]
) -> Iterator[Sequence[_ChildProcess]]:
    """All processes; when the block ends they are stopped together and waited for."""
    children: list[_ChildProcess] = []
    try:
        for side, opened in sockets.items():
            for _ in range(settings.workers if side == "reading" else 1):
                children.append(_ChildProcess.start(side, opened, settings))
        yield children
    finally:
        for child in children:
            with suppress(BrokenPipeError):
                child.lifeline.close()
        deadline = time.monotonic() + settings.limits.grace + _MARGIN
        for child in children:
            child.end(deadline)


@contextmanager
def _stop_signals() -> Iterator[int]:
    """A file descriptor that becomes readable when a signal asks the service to stop."""
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = {each: signal.signal(each, lambda *_: None) for each in _STOPS}
    previous = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        yield read
    finally:
        signal.set_wakeup_fd(previous)
        for each, handler in before.items():
            signal.signal(each, handler)
        os.close(read)
        os.close(write)


def _wait_until_ready(children: Sequence[_ChildProcess], stop: int) -> bool:
    """Wait until every process has reported that it answers; False if a signal came before."""
    waiting = {id(child) for child in children}
    for child in _ready_messages(children, stop):
        waiting.discard(id(child))
        if not waiting:
            return True
    return False


def _ready_messages(children: Sequence[_ChildProcess], stop: int) -> Iterator[_ChildProcess]:
    """The processes that write something, until a signal comes; raises if a process ended by itself."""
    with selectors.DefaultSelector() as selector:
        selector.register(stop, selectors.EVENT_READ)
        for child in children:
            selector.register(child.output, selectors.EVENT_READ, child)
        while True:
            readable = [key.data for key, _ in selector.select()]
            if None in readable:
                return
            for child in readable:
                if not os.read(child.output.fileno(), _READ_SIZE):
                    raise ServiceEnded(f"the {child.side} process ended by itself; the service ended with it")
                yield child
