"""`partita serve`: releases and streams over HTTP."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from partita.cli.common import Commands, Options, Outcome, argument, command, show, whole
from partita.errors import InvalidParameter, PrivacyWarning
from partita.numbers import rational
from partita.public.records import Record

if TYPE_CHECKING:
    from partita.service.settings import ServiceSettings
    from partita.service.tokens import AccessToken, TokenFile

_NOTHING: Final = Outcome("", [])
_BURST: Final = 2


def declare(commands: Commands) -> None:
    """The public folder, who may read it, and what else is offered."""
    declared = command(
        commands,
        "serve",
        run,
        says="serve the releases and streams of a folder over HTTP, with a page to explore them",
        example="partita serve releases --public\n"
        "  partita serve releases --tokens tokens.json --streams secret --ledger budget.db",
    )
    declared.add_argument("folder", metavar="DIR", help="releases and published outputs; all of it is public")
    _add_access(declared)
    _add_steward(declared)
    _add_addresses(declared)
    declared.set_defaults(interrupted="the service had not begun")


def _add_access(declared: argparse.ArgumentParser) -> None:
    declared.add_argument("--public", action="store_true", help="everybody may read, without a token")
    declared.add_argument("--tokens", metavar="FILE", help="who may do what; `partita token` writes it")
    declared.add_argument(
        "--rate",
        type=whole("rate"),
        metavar="N",
        help="requests a second of one token, or of one address without a token; default: 200",
    )
    declared.add_argument(
        "--connections-per-address",
        type=whole("connections_per_address"),
        metavar="N",
        help="connections of one address at a time; default: 128; behind a proxy the proxy limits them",
    )
    declared.add_argument(
        "--request-seconds",
        type=whole("request_seconds"),
        metavar="S",
        help="how long a request may take to arrive, and then to be answered; default: 30",
    )
    declared.add_argument(
        "--work",
        type=whole("work"),
        metavar="N",
        help="predicted work of one question, about a microsecond a unit; default: 6000000",
    )
    declared.add_argument(
        "--log-addresses", action="store_true", help="log where requests come from; default: do not"
    )


def _add_steward(declared: argparse.ArgumentParser) -> None:
    declared.add_argument(
        "--streams", metavar="FOLDER", help="offer streams; their secret state is kept in this folder"
    )
    declared.add_argument(
        "--publish", metavar="SPECS", help="let admins publish the specs of this folder; needs --ledger"
    )
    declared.add_argument("--ledger", metavar="FILE", help="the ledger that pays for streams and releases")
    declared.add_argument(
        "--delay",
        type=_seconds,
        default=None,
        metavar="S",
        help="show outputs so many seconds after their period; default: 1",
    )


def _add_addresses(declared: argparse.ArgumentParser) -> None:
    declared.add_argument(
        "--host", metavar="H", help="where readers are listened to; default: 127.0.0.1, this machine only"
    )
    declared.add_argument(
        "--steward-host",
        metavar="H",
        help="where feeders and admins are; default: 127.0.0.1, whatever --host is",
    )
    declared.add_argument("--port", type=whole("port", low=0), metavar="N", help="for readers; default: 8000")
    declared.add_argument(
        "--steward-port", type=whole("steward_port", low=0), metavar="N", help="for the rest; default: 8001"
    )
    declared.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="answer to this name too; may be repeated, * for any",
    )
    declared.add_argument(
        "--behind-proxy",
        action="store_true",
        help="a proxy on this machine ends TLS, and says who asks",
    )
    declared.add_argument(
        "--workers", type=whole("workers"), metavar="N", help="processes for readers; default: 1"
    )


def run(options: Options) -> Outcome:
    """Serve until told to end; the addresses are shown as soon as they answer."""
    from partita.service.process import check_installed, serve

    check_installed()
    settings = _settings(options)
    _warn(settings)

    def announce(side: str, address: str) -> None:
        show(Outcome.of(f"{side:<8} {address}", process=side, address=address), as_json=options.json)

    serve(settings, announce=announce)
    return _NOTHING


def _settings(options: Options) -> ServiceSettings:
    """What the options say; what nobody has said is left to the defaults."""
    from partita.service.settings import Limits, ServiceSettings

    said = {
        "host": options.host,
        "port": options.port,
        "steward_host": options.steward_host,
        "steward_port": options.steward_port,
        "delay": options.delay,
        "workers": options.workers,
        "limits": Limits(**_limits(options)),
    }
    return ServiceSettings(
        folder=Path(options.folder),
        streams=options.streams and Path(options.streams),
        tokens=options.tokens and Path(options.tokens),
        public=options.public,
        ledger=options.ledger,
        specs=options.publish and Path(options.publish),
        hosts=tuple(options.allow_host),
        proxied=options.behind_proxy,
        log_addresses=options.log_addresses,
        **{name: value for name, value in said.items() if value is not None},
    )


def _limits(options: Options) -> dict[str, int]:
    """The limits that were said."""
    said = {
        "rate": options.rate,
        "burst": options.rate and _BURST * options.rate,
        "per_address": options.connections_per_address,
        "seconds": options.request_seconds,
        "work": options.work,
    }
    return {name: value for name, value in said.items() if value is not None}


def _warn(settings: ServiceSettings) -> None:
    """Say what others on the network can do, where they can do anything."""
    from partita.service.settings import is_loopback

    steward_is_local = not settings.has_steward or is_loopback(settings.steward_host)
    if not settings.is_local and settings.public:
        _caution(f"everybody who reaches {settings.host} may read all releases and streams")
    if not steward_is_local:
        _caution(
            f"how fast the steward answers tells of feeding, and {settings.steward_host} can be reached by "
            "others; let nobody but feeders through, see docs/deployment.md"
        )
    if not (settings.is_local and steward_is_local) and not settings.proxied:
        _caution(
            "tokens and answers travel unencrypted; put a proxy with TLS in front, see docs/deployment.md"
        )


def _caution(message: str) -> None:
    warnings.warn(PrivacyWarning(message), stacklevel=2)


@argument
def _seconds(text: str) -> object:
    return rational(text, "delay")


# `partita token`: who may read, feed and administer a service.


_SCOPES: Final = ("read", "feed", "admin")
_ONCE: Final = "it is shown this once; only its hash is kept"


def declare_token(commands: Commands) -> None:
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
    from partita.public.base import table

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
    from partita.public.streams import SECOND, moment_of

    return None if seconds is None else moment_of(seconds * SECOND).isoformat()


def _file(options: Options) -> TokenFile:
    from partita.service.tokens import TokenFile

    return TokenFile(Path(options.tokens))


@argument
def _length(text: str) -> int:
    """A length of time in whole seconds."""
    from partita.public.streams import SECOND, period_of

    try:
        return max(1, period_of(text) // SECOND)
    except InvalidParameter as error:
        raise InvalidParameter("time", error.rule, given=text, fix="write for example 12h or 90d") from None
