"""The file of tokens: JSON, for its owner only, changed whole or not at all, read again when it changes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias, final

from partita.errors import InvalidParameter
from partita.releases.file_disk import new_file
from partita.service.access.tokens import Caller, Key, Token, Tokens
from partita.storage import FileLock, sync_folder

__all__ = ["Keyring", "TokenFile"]

Now: TypeAlias = Callable[[], int]

_SECOND: Final = 10**9
_OWNER: Final = 0o600
_OTHERS_WRITE: Final = 0o022
_VERSION: Final = 1
_LARGEST: Final = 2**24


@final
@dataclass(frozen=True)
class TokenFile:
    """Where the tokens are. Every act reads the file, and writers wait for each other."""

    path: Path
    now: Now = time.time_ns

    def read(self) -> Tokens:
        """The tokens of the file; a file that others may write, or that is none, is refused."""
        return _tokens(_content(self.path), self.path)

    def create(
        self,
        name: str,
        *,
        scopes: Iterable[str],
        streams: Iterable[str] | None = None,
        expires: int | None = None,
    ) -> str:
        """A new token that lasts for `expires` seconds, or for good; its text, for the only time."""
        wanted = list(scopes)
        limited = None if streams is None else list(streams)

        def created(tokens: Tokens) -> tuple[Tokens, str]:
            return tokens.created(name, scopes=wanted, streams=limited, until=self._until(expires))

        with self._writing():
            return self._keep(*created(self.read() if os.path.lexists(self.path) else Tokens()))

    def rotate(self, name: str, *, grace: int = 0, expires: int | None = None) -> str:
        """A new key for a token; the old one is valid for `grace` seconds more."""
        with self._writing():
            changed = self.read().rotated(name, now=self._seconds(), grace=grace, until=self._until(expires))
            return self._keep(*changed)

    def revoke(self, name: str) -> None:
        """End a token, now."""
        with self._writing():
            self._keep(self.read().revoked(name), "")

    def _seconds(self) -> int:
        return self.now() // _SECOND

    def _until(self, lasting: int | None) -> int | None:
        return None if lasting is None else self._seconds() + lasting

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One writer at a time; the file of the lock is empty, and stays."""
        try:
            lock = FileLock(self.path, wait=True)
        except OSError as error:
            raise _unusable(self.path, f"must be in a folder you may write ({error.strerror})") from None
        with closing(lock):
            yield

    def _keep(self, tokens: Tokens, text: str) -> str:
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        with suppress(FileNotFoundError):
            os.unlink(beside)
        new_file(beside, _written(tokens), mode=_OWNER)
        os.replace(beside, self.path)
        sync_folder(self.path.parent)
        return text


@final
@dataclass
class Keyring:
    """The tokens of a file for a running process, which notices that the file was changed.

    A file that cannot be read any more proves nobody: `caller` raises, and nothing is allowed.
    """

    file: TokenFile
    _seen: tuple[int, ...] = ()
    _tokens: Tokens = field(default_factory=Tokens)

    def caller(self, text: str) -> Caller | None:
        """Who a text proves to be, now."""
        seen = _identity(self.file.path)
        if seen != self._seen:
            self._tokens, self._seen = self.file.read(), seen
        return self._tokens.caller(text, now=self.file.now() // _SECOND)


def _identity(path: Path) -> tuple[int, ...]:
    try:
        about = os.stat(path)
    except OSError:
        return ()
    return about.st_ino, about.st_size, about.st_mtime_ns, about.st_mode


def _content(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_mode & _OTHERS_WRITE:
                raise _unusable(path, "must not be writable for others", fix="chmod 600 the file")
            return file.read(_LARGEST)
    except OSError as error:
        raise _unusable(path, f"must be a file that you may read ({error.strerror})") from None


def _written(tokens: Tokens) -> bytes:
    said = {
        "version": _VERSION,
        "tokens": [asdict(token) for token in tokens.all],
        "retired": list(tokens.retired),
    }
    return json.dumps(said, indent=1).encode()


def _tokens(content: bytes, path: Path) -> Tokens:
    try:
        said = json.loads(content)
        if said["version"] == _VERSION:
            return Tokens(tuple(map(_token, said["tokens"])), tuple(said.get("retired", ())))
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise _unusable(path, "must be a file of tokens", fix="restore it, or begin a new one with token create")


def _token(said: dict[str, Any]) -> Token:
    limited = said["streams"]
    return Token(
        name=said["name"],
        scopes=tuple(said["scopes"]),
        streams=None if limited is None else tuple(limited),
        keys=tuple(Key(**key) for key in said["keys"]),
    )


def _unusable(path: Path, rule: str, *, fix: str = "check the path and its permissions") -> InvalidParameter:
    return InvalidParameter("tokens", rule, given=str(path), fix=fix)
