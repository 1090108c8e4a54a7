"""Tokens: names, scopes and hashed keys, and the one file that stores them.

A key is 32 random bytes, so its plain SHA-256 cannot be inverted by guessing; see docs/decisions/service.md.
Its text is shown once and stored nowhere. The first part of the text is a public number that finds the
digest; the rest is secret, and is only ever compared as a digest, in constant time.

Nothing here needs the packages of a server: `partita token` works without them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias, final

from partita.errors import InvalidParameter, check, check_type
from partita.numbers import check_choice
from partita.public.streams import SECOND, UNNAMED_FEEDER
from partita.service.settings import NAME
from partita.storage import FileLock, new_file, sync_folder
from partita.trusted.noise.kernel import token as random_hex

# ---- tokens ----

SCOPES: Final = ("read", "feed", "admin")

_PREFIX: Final = "partita"
_TEXT: Final = re.compile(rf"{_PREFIX}_([0-9a-f]{{16}})_[0-9a-f]{{64}}")
_NOBODY: Final = "0" * 16
_NO_DIGEST: Final = "0" * 64


@final
@dataclass(frozen=True)
class Caller:
    """The caller of a request: its name, its scopes, and the streams it may feed; None for all of them."""

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
        """Whether it has not expired."""
        return self.until is None or now < self.until


@final
@dataclass(frozen=True, kw_only=True)
class AccessToken:
    """A name that may do something, and its keys: one, or two while it is rotated."""

    name: str
    scopes: tuple[str, ...]
    streams: tuple[str, ...] | None
    keys: tuple[Key, ...]

    @property
    def caller(self) -> Caller:
        """What a request with one of the keys may do."""
        streams = None if self.streams is None else frozenset(self.streams)
        return Caller(self.name, frozenset(self.scopes), streams)


@final
@dataclass(frozen=True)
class TokenSet:
    """All tokens of a service, immutable. Each change returns a new set, and the text of a new key if any.

    >>> tokens, text = TokenSet().create("web", scopes=["feed"])
    >>> tokens.caller(text, now=0).name
    'web'
    >>> tokens.revoke("web").caller(text, now=0) is None
    True
    """

    all: tuple[AccessToken, ...] = ()
    retired: tuple[str, ...] = ()
    """Names of revoked feeders. Streams store these names with the events, so none is given again."""

    def caller(self, text: str, *, now: int) -> Caller | None:
        """The caller that a text authenticates. A digest is always compared, so timing reveals no secret."""
        number = _number(text)
        token, key = self._by_number.get(number, (None, None))
        expected = _NO_DIGEST if key is None else key.digest
        proven = hmac.compare_digest(expected, _digest(text))
        return token.caller if proven and token and key and key.is_valid(now) else None

    def create(
        self,
        name: str,
        *,
        scopes: Iterable[str],
        streams: Iterable[str] | None = None,
        until: int | None = None,
    ) -> tuple[TokenSet, str]:
        """A new name with a key of its own."""
        taken = any(token.name == name for token in self.all)
        check(not taken, "name", "must not be taken", given=name, fix="rotate or revoke that token")
        rule = "must be new to the streams, which know feeders by their names"
        known = name in self.retired or name == UNNAMED_FEEDER
        check(not known, "name", rule, given=name, fix="choose another name")
        key, text = _new_key(until)
        token = AccessToken(
            name=_check_name(name, "name"),
            scopes=_check_scopes(scopes),
            streams=_check_streams(streams, scopes),
            keys=(key,),
        )
        return replace(self, all=(*self.all, token)), text

    def rotate(self, name: str, *, now: int, grace: int, until: int | None = None) -> tuple[TokenSet, str]:
        """A new key for a name; its other keys expire after `grace` seconds, or earlier if they would have.

        The new key lasts until `until`; by default, as long as the latest one would have.
        """
        token = self._find(name)
        key, text = _new_key(token.keys[-1].until if until is None else until)
        old = (_expire_at(each, now + grace) for each in token.keys if each.is_valid(now))
        return self._replace_token(replace(token, keys=(*old, key))), text

    def revoke(self, name: str) -> TokenSet:
        """All tokens but one; the name of a feeder cannot be used again."""
        gone = self._find(name)
        retired = (*self.retired, name) if "feed" in gone.scopes else self.retired
        return TokenSet(tuple(token for token in self.all if token is not gone), retired)

    @cached_property
    def _by_number(self) -> Mapping[str, tuple[AccessToken, Key]]:
        return {key.number: (token, key) for token in self.all for key in token.keys}

    def _find(self, name: str) -> AccessToken:
        for token in self.all:
            if token.name == name:
                return token
        raise InvalidParameter("name", "must be a token", given=name, fix="see `partita token list`")

    def _replace_token(self, changed: AccessToken) -> TokenSet:
        tokens = (changed if token.name == changed.name else token for token in self.all)
        return replace(self, all=tuple(tokens))


def _new_key(until: int | None) -> tuple[Key, str]:
    number = random_hex(8)
    text = f"{_PREFIX}_{number}_{random_hex(32)}"
    return Key(number=number, digest=_digest(text), until=until), text


def _expire_at(key: Key, until: int) -> Key:
    return replace(key, until=until if key.until is None else min(key.until, until))


def _number(text: str) -> str:
    """The public number in the text of a token; a number that no token has if the text is malformed."""
    written = _TEXT.fullmatch(text)
    return written[1] if written else _NOBODY


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _check_name(name: object, parameter: str) -> str:
    rule = (
        "must begin with a letter or digit, and have at most 100 letters, digits, dots, dashes, underscores"
    )
    text: str = check_type(name, str, parameter, rule, fix="choose a name like web-1")
    check(NAME.fullmatch(text), parameter, rule, given=text, fix="choose a name like web-1")
    return text


def _check_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    chosen = {check_choice(scope, "scope", SCOPES) for scope in scopes}
    fix = f"choose among {', '.join(SCOPES)}; several are fine"
    check(chosen, "scope", "must be given", given=None, fix=fix)
    return tuple(scope for scope in SCOPES if scope in chosen)


def _check_streams(streams: Iterable[str] | None, scopes: Iterable[str]) -> tuple[str, ...] | None:
    if streams is None:
        return None
    fix = "give the token the scope feed too"
    check("feed" in scopes, "stream", "limits what is fed", given=None, fix=fix)
    return tuple(sorted({_check_name(stream, "stream") for stream in streams}))


# ---- the file of tokens ----

Now: TypeAlias = Callable[[], int]

_OWNER: Final = 0o600
_OTHERS_WRITE: Final = 0o022
_VERSION: Final = 1
_LARGEST: Final = 2**24  # bytes that are read: about 50,000 tokens


@final
@dataclass(frozen=True)
class TokenFile:
    """A file of tokens. Every method reads the file, and writers wait for each other."""

    path: Path
    now: Now = time.time_ns

    def read(self) -> TokenSet:
        """The tokens of the file; raises InvalidParameter if it is malformed or writable for others."""
        return _parse_tokens(_read_file(self.path), self.path)

    def create(
        self,
        name: str,
        *,
        scopes: Iterable[str],
        streams: Iterable[str] | None = None,
        expires: int | None = None,
    ) -> str:
        """A new token that lasts for `expires` seconds, or for good; its text, for the only time."""
        wanted, limited = list(scopes), None if streams is None else list(streams)
        with self._lock():
            tokens = self.read() if os.path.lexists(self.path) else TokenSet()
            changed = tokens.create(name, scopes=wanted, streams=limited, until=self._until(expires))
            return self._write(*changed)

    def rotate(self, name: str, *, grace: int = 0, expires: int | None = None) -> str:
        """A new key for a token; the old one is valid for `grace` seconds more."""
        with self._lock():
            changed = self.read().rotate(name, now=self._seconds(), grace=grace, until=self._until(expires))
            return self._write(*changed)

    def revoke(self, name: str) -> None:
        """End a token, now."""
        with self._lock():
            self._write(self.read().revoke(name), "")

    def _seconds(self) -> int:
        return self.now() // SECOND

    def _until(self, lasting: int | None) -> int | None:
        return None if lasting is None else self._seconds() + lasting

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """One writer at a time; the lock file is empty and stays in place."""
        try:
            lock = FileLock(self.path, wait=True)
        except OSError as error:
            raise _invalid_file(self.path, f"must be in a folder you may write ({error.strerror})") from None
        with closing(lock):
            yield

    def _write(self, tokens: TokenSet, text: str) -> str:
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        with suppress(FileNotFoundError):
            os.unlink(beside)
        new_file(beside, _to_json(tokens), mode=_OWNER)
        os.replace(beside, self.path)
        sync_folder(self.path.parent)
        return text


@final
@dataclass
class Keyring:
    """The tokens of a file for a running process, read again when the file changes.

    If the file cannot be read any more, `caller` raises, and nothing is allowed.
    """

    file: TokenFile
    _seen: tuple[int, ...] = ()
    _tokens: TokenSet = field(default_factory=TokenSet)

    def caller(self, text: str) -> Caller | None:
        """The caller that a text authenticates now."""
        seen = _identity(self.file.path)
        if seen != self._seen:
            self._tokens, self._seen = self.file.read(), seen
        return self._tokens.caller(text, now=self.file.now() // SECOND)


def _identity(path: Path) -> tuple[int, ...]:
    try:
        about = os.stat(path)
    except OSError:
        return ()
    return about.st_ino, about.st_size, about.st_mtime_ns, about.st_mode


def _read_file(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_mode & _OTHERS_WRITE:
                raise _invalid_file(path, "must not be writable for others", fix="chmod 600 the file")
            return file.read(_LARGEST)
    except OSError as error:
        raise _invalid_file(path, f"must be a file that you may read ({error.strerror})") from None


def _to_json(tokens: TokenSet) -> bytes:
    listed = [asdict(token) for token in tokens.all]
    entries = {"version": _VERSION, "tokens": listed, "retired": list(tokens.retired)}
    return json.dumps(entries, indent=1).encode()


def _parse_tokens(content: bytes, path: Path) -> TokenSet:
    try:
        entries = json.loads(content)
        if entries["version"] == _VERSION:
            return TokenSet(tuple(map(_parse_token, entries["tokens"])), tuple(entries.get("retired", ())))
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    fix = "restore it, or begin a new one with token create"
    raise _invalid_file(path, "must be a file of tokens", fix=fix)


def _parse_token(entries: dict[str, Any]) -> AccessToken:
    limited = entries["streams"]
    streams = None if limited is None else tuple(limited)
    keys = tuple(Key(**key) for key in entries["keys"])
    return AccessToken(name=entries["name"], scopes=tuple(entries["scopes"]), streams=streams, keys=keys)


def _invalid_file(
    path: Path, rule: str, *, fix: str = "check the path and its permissions"
) -> InvalidParameter:
    return InvalidParameter("tokens", rule, given=str(path), fix=fix)
