"""`partita token`: who may read, feed and administer a service."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from partita.cli.common.arguments import Commands, Options, argument, command
from partita.cli.common.output import Outcome
from partita.errors.errors import InvalidParameter
from partita.public.records import Record

if TYPE_CHECKING:
    from partita.service.tokens import AccessToken, TokenFile

_SCOPES: Final = ("read", "feed", "admin")
_ONCE: Final = "it is shown this once; only its hash is kept"


def declare(commands: Commands) -> None:
    """One act makes a token, two change it, one lists them all."""
    group = commands.add_parser("token", help="say who may use a service", allow_abbrev=False)
    acts = group.add_subparsers(title="acts", metavar="ACT", required=True)
    _declare_create(acts)
    _act(acts, "list", _list, says="list every token, never its secret", example="", named=False)
    rotate = _act(acts, "rotate", _rotate, says="give a token a new secret", example=" web --grace 1d")
    rotate.add_argument(
        "--grace", type=_length, default=0, metavar="T", help="how long the old one stays good"
    )
    _add_expires(rotate, otherwise="when the old one would have")
    _act(acts, "revoke", _revoke, says="end a token, now", example=" web")


def _act(
    acts: Commands,
    name: str,
    run: Callable[[Options], Outcome],
    *,
    says: str,
    example: str,
    named: bool = True,
) -> argparse.ArgumentParser:
    declared = command(acts, name, run, says=says, example=f"partita token {name}{example}")
    if named:
        declared.add_argument("name", metavar="NAME")
    declared.add_argument("--tokens", default="tokens.json", metavar="FILE", help="default: %(default)s")
    return declared


def _declare_create(acts: Commands) -> None:
    example = " web --scope feed --stream visits --expires 90d"
    declared = _act(acts, "create", _create, says="make a token, and show it once", example=example)
    declared.add_argument(
        "--scope", action="append", choices=_SCOPES, required=True, help="what it may do; may be repeated"
    )
    declared.add_argument(
        "--stream", action="append", metavar="NAME", help="feed this stream only; may be repeated"
    )
    _add_expires(declared, otherwise="never")


def _add_expires(declared: argparse.ArgumentParser, *, otherwise: str) -> None:
    says = f"after how long it ends: 12h, 90d, 52w; default: {otherwise}"
    declared.add_argument("--expires", type=_length, metavar="T", help=says)


def _create(options: Options) -> Outcome:
    text = _file(options).create(
        options.name, scopes=options.scope, streams=options.stream, expires=options.expires
    )
    return _shown(options.name, text)


def _rotate(options: Options) -> Outcome:
    text = _file(options).rotate(options.name, grace=options.grace, expires=options.expires)
    return _shown(options.name, text)


def _revoke(options: Options) -> Outcome:
    _file(options).revoke(options.name)
    return Outcome.of(f"{options.name} is revoked", name=options.name, revoked=True)


def _list(options: Options) -> Outcome:
    from partita.public.base.figures import table

    tokens = _file(options).read().all
    lines = [(token.name, _line(token)) for token in tokens]
    return Outcome(table(lines, left=2) if lines else "no tokens", [_record(token) for token in tokens])


def _shown(name: str, text: str) -> Outcome:
    return Outcome.of(f"{text}\n{_ONCE}", name=name, token=text)


def _record(token: AccessToken) -> Record:
    return {
        "name": token.name,
        "scopes": list(token.scopes),
        "streams": None if token.streams is None else list(token.streams),
        "keys": [{"number": key.number, "until": _moment(key.until)} for key in token.keys],
    }


def _line(token: AccessToken) -> str:
    limited = "" if token.streams is None else f" of {', '.join(token.streams)}"
    ends = ("for good" if key.until is None else f"until {_moment(key.until)}" for key in token.keys)
    return f"{', '.join(token.scopes)}{limited}; {', '.join(ends)}"


def _moment(seconds: int | None) -> str | None:
    from partita.public.streams.settings import SECOND, moment_of

    return None if seconds is None else moment_of(seconds * SECOND).isoformat()


def _file(options: Options) -> TokenFile:
    from partita.service.tokens import TokenFile

    return TokenFile(Path(options.tokens))


@argument
def _length(text: str) -> int:
    """A length of time in whole seconds."""
    from partita.public.streams.settings import SECOND, period_of

    try:
        return max(1, period_of(text) // SECOND)
    except InvalidParameter as error:
        raise InvalidParameter("time", error.rule, given=text, fix="write for example 12h or 90d") from None
