"""What must be so before anything starts: packages, folders, files and ports."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from partita.errors import InvalidParameter
from partita.service.access.token_file import TokenFile
from partita.service.settings import Settings

__all__ = ["check_installed", "check_places", "listening"]

_NEEDED: Final = ("fastapi", "prometheus_client", "uvicorn")
_OTHERS: Final = 0o077
_ALL_WRITE: Final = 0o002
_BACKLOG: Final = 2048


def check_installed() -> None:
    """Refuse to start without what the extra `serve` brings."""
    for module in _NEEDED:
        if find_spec(module) is None:
            raise InvalidParameter(
                "serve",
                f"needs {module}",
                given=f"no {module}",
                fix='install it: pip install "partita[serve]"',
            )


def check_places(settings: Settings) -> None:
    """Refuse folders and files that cannot be used; the secret folder is made if it is not there."""
    _check_public(settings.folder, write=settings.has_steward)
    if settings.streams is not None:
        _check_secret(settings.streams)
    if settings.specs is not None:
        _check_folder(settings.specs, "publish", write=False)
    if settings.tokens is not None:
        TokenFile(settings.tokens).read()
    if settings.ledger is not None and "://" not in settings.ledger:
        fix = "open a dataset with `partita ledger open`"
        _check_there(Path(settings.ledger).is_file(), "ledger", settings.ledger, fix=fix)


@contextmanager
def listening(settings: Settings, side: str) -> Iterator[socket.socket]:
    """A socket that listens where a side should."""
    parameter, (host, port) = "port" if side == "reading" else "steward_port", settings.place(side)
    try:
        opened = _opened(host, port)
    except OSError as error:
        raise InvalidParameter(
            parameter,
            f"must be free on {host} ({_reason(error)})",
            given=port,
            fix="choose another, or end who listens there",
        ) from None
    with opened:
        yield opened


def _reason(error: OSError) -> str:
    """What the system says; a name that nobody knows has an error number of another kind."""
    return "no such address" if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)


def _opened(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)


def _check_folder(folder: Path, name: str, *, write: bool) -> None:
    _check_there(folder.is_dir(), name, folder, fix="make the folder first, or check its name")
    if not os.access(folder, os.R_OK | os.X_OK | (os.W_OK if write else 0)):
        act = "write" if write else "read"
        raise InvalidParameter(
            name, f"must be a folder that you may {act}", given=str(folder), fix="check its permissions"
        )


def _check_public(folder: Path, *, write: bool) -> None:
    """Whoever may write where the steward does could lay links for it to follow."""
    _check_folder(folder, "folder", write=write)
    if write and folder.stat().st_mode & _ALL_WRITE:
        raise InvalidParameter(
            "folder", "must not be writable for everybody", given=str(folder), fix="chmod o-w it"
        )


def _check_secret(folder: Path) -> None:
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
    _check_folder(folder, "streams", write=True)
    if folder.stat().st_mode & _OTHERS:
        raise InvalidParameter(
            "streams", "must be closed to others, as it is secret", given=str(folder), fix="chmod 700 it"
        )


def _check_there(there: bool, name: str, path: object, *, fix: str) -> None:
    if not there:
        raise InvalidParameter(name, "must exist", given=str(path), fix=fix)
