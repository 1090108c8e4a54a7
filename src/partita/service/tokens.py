"""Tokens: names, scopes and hashed keys, and the one file that stores them.

A key is 32 random bytes, so its plain SHA-256 cannot be inverted by guessing; see docs/decisions/service.md.
Its text is shown once and stored nowhere. The first part of the text is a public number that finds the
digest; the rest is secret, and is only ever compared as a digest, in constant time.

Nothing here needs the packages of a server: `partita token` works without them.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias, final

from partita.errors import InvalidParameter
from partita.exact import one_of
from partita.ledger.file import sync_folder
from partita.noise.kernel import token as fresh
from partita.releases.file_disk import new_file
from partita.service.settings import NAME
from partita.streams.durable.feeding import FILE

__all__ = ["ANYBODY", "SCOPES", "Caller", "Key", "Keyring", "Token", "TokenFile", "Tokens"]

# ---- tokens ----

SCOPES: Final = ("read", "feed", "admin")

_PREFIX: Final = "partita"
_TEXT: Final = re.compile(rf"{_PREFIX}_([0-9a-f]{{16}})_[0-9a-f]{{64}}")
_NOBODY: Final = "0" * 16
_NO_DIGEST: Final = "0" * 64


@final
@dataclass(frozen=True)
class Caller:
    """Who asks: a name, the scopes it has, and the streams it may feed; None for all of them."""

    name: str | None
    scopes: frozenset[str] = frozenset()
    streams: frozenset[str] | None = None


ANYBODY: Final = Caller(None)
"""A caller without a token."""


@final
@dataclass(frozen=True, kw_only=True)
class Key:
    """One secret of a token, as its digest; valid until a moment in seconds since 1970, or for good."""

    number: str
    digest: str
    until: int | None = None

    def is_valid(self, now: int) -> bool:
        """Whether its time has not come yet."""
        return self.until is None or now < self.until


@final
@dataclass(frozen=True, kw_only=True)
class Token:
    """A name that may do something, and its keys: one, or two while it is rotated."""

    name: str
    scopes: tuple[str, ...]
    streams: tuple[str, ...] | None
    keys: tuple[Key, ...]

    @property
    def caller(self) -> Caller:
        """What a request with one of the keys may do."""
        return Caller(
            self.name, frozenset(self.scopes), None if self.streams is None else frozenset(self.streams)
        )


@final
@dataclass(frozen=True)
class Tokens:
    """All tokens of a service. Every change gives new ones, with the text of a new key where one is made.

    >>> tokens, text = Tokens().created("web", scopes=["feed"])
    >>> tokens.caller(text, now=0).name
    'web'
    >>> tokens.revoked("web").caller(text, now=0) is None
    True
    """

    all: tuple[Token, ...] = ()
    retired: tuple[str, ...] = ()
    """Names of feeders that were revoked. Streams know what they fed by these names, for ever."""

    def caller(self, text: str, *, now: int) -> Caller | None:
        """Who a text proves to be. One digest is compared in any case, so time tells nothing of a secret."""
        number = _number(text)
        token, key = self._by_number.get(number, (None, None))
        expected = _NO_DIGEST if key is None else key.digest
        proven = hmac.compare_digest(expected, _digest(text))
        return token.caller if proven and token and key and key.is_valid(now) else None

    def created(
        self,
        name: str,
        *,
        scopes: Iterable[str],
        streams: Iterable[str] | None = None,
        until: int | None = None,
    ) -> tuple[Tokens, str]:
        """A new name with a key of its own."""
        if any(token.name == name for token in self.all):
            raise InvalidParameter("name", "must not be taken", given=name, fix="rotate or revoke that token")
        if name in self.retired or name == FILE:
            rule = "must be new to the streams, which know feeders by their names"
            raise InvalidParameter("name", rule, given=name, fix="choose another name")
        key, text = _new_key(until)
        token = Token(
            name=_checked_name(name, "name"),
            scopes=_checked_scopes(scopes),
            streams=_checked_streams(streams, scopes),
            keys=(key,),
        )
        return replace(self, all=(*self.all, token)), text

    def rotated(self, name: str, *, now: int, grace: int, until: int | None = None) -> tuple[Tokens, str]:
        """A new key for a name; the keys it has end after `grace` seconds, or when they would have anyway.

        The new key lasts until `until`; if that is not said, as long as the latest one would have.
        """
        token = self._named(name)
        key, text = _new_key(token.keys[-1].until if until is None else until)
        old = (_ended(each, now + grace) for each in token.keys if each.is_valid(now))
        return self._changed(replace(token, keys=(*old, key))), text

    def revoked(self, name: str) -> Tokens:
        """The others; the name of a feeder is not given again."""
        gone = self._named(name)
        retired = (*self.retired, name) if "feed" in gone.scopes else self.retired
        return Tokens(tuple(token for token in self.all if token is not gone), retired)

    @cached_property
    def _by_number(self) -> Mapping[str, tuple[Token, Key]]:
        return {key.number: (token, key) for token in self.all for key in token.keys}

    def _named(self, name: str) -> Token:
        for token in self.all:
            if token.name == name:
                return token
        raise InvalidParameter("name", "must be a token", given=name, fix="see `partita token list`")

    def _changed(self, changed: Token) -> Tokens:
        return replace(
            self, all=tuple(changed if token.name == changed.name else token for token in self.all)
        )


def _new_key(until: int | None) -> tuple[Key, str]:
    number = fresh(8)
    text = f"{_PREFIX}_{number}_{fresh(32)}"
    return Key(number=number, digest=_digest(text), until=until), text


def _ended(key: Key, until: int) -> Key:
    return replace(key, until=until if key.until is None else min(key.until, until))


def _number(text: str) -> str:
    """The public part of a text that is written as a token is; that of nobody otherwise."""
    written = _TEXT.fullmatch(text)
    return written[1] if written else _NOBODY


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _checked_name(name: object, parameter: str) -> str:
    if isinstance(name, str) and NAME.fullmatch(name):
        return name
    raise InvalidParameter(
        parameter,
        "must begin with a letter or digit, and have at most 100 letters, digits, dots, dashes, underscores",
        given=name,
        fix="choose a name like web-1",
    )


def _checked_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    chosen = {one_of(scope, "scope", SCOPES) for scope in scopes}
    if not chosen:
        raise InvalidParameter(
            "scope", "must be given", given=None, fix=f"choose among {', '.join(SCOPES)}; several are fine"
        )
    return tuple(scope for scope in SCOPES if scope in chosen)


def _checked_streams(streams: Iterable[str] | None, scopes: Iterable[str]) -> tuple[str, ...] | None:
    if streams is None:
        return None
    if "feed" not in scopes:
        raise InvalidParameter(
            "stream", "limits what is fed", given=None, fix="give the token the scope feed too"
        )
    return tuple(sorted({_checked_name(stream, "stream") for stream in streams}))


# ---- the file of tokens ----

Now: TypeAlias = Callable[[], int]

_SECOND: Final = 10**9
_OWNER: Final = 0o600
_OTHERS_WRITE: Final = 0o022
_VERSION: Final = 1
_LARGEST: Final = 2**24
_LOCK: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


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
            lock = os.open(self.path.with_name(f"{self.path.name}.lock"), _LOCK, _OWNER)
        except OSError as error:
            raise _unusable(self.path, f"must be in a folder you may write ({error.strerror})") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

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
