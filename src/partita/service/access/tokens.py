"""Tokens: a name, what it may do, and the digests of the keys that prove it.

A key is 32 random bytes, so its plain SHA-256 cannot be inverted by guessing; see docs/decisions/service.md.
Its text is shown once and kept nowhere. The first part of the text is a public number that finds the
digest; the rest is secret, and is only ever compared as a digest, in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, final

from partita.errors import InvalidParameter
from partita.exact import one_of
from partita.noise.kernel import token as fresh
from partita.service.settings import NAME
from partita.streams.durable.settings import UNNAMED_FEEDER

__all__ = ["ANYBODY", "SCOPES", "Caller", "Key", "Token", "Tokens"]

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
        if name in self.retired or name == UNNAMED_FEEDER:
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
