"""`partita serve`: releases and streams over HTTP; `partita token`: who may use them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from partita.cli import common
from partita.errors import InvalidParameter, PrivacyWarning
from partita.numbers import rational
from partita.public.records import Record

if TYPE_CHECKING:
    from partita.service.settings import ServiceSettings
    from partita.service.tokens import AccessToken, TokenFile

_SAME_NAME: Final = (
    "host",
    "port",
    "steward_host",
    "steward_port",
    "delay",
    "workers",
    "public",
    "ledger",
    "log_addresses",
)
_BURST: Final = 2  # seconds of its rate that a client may use at once


def declare(commands: common.Commands) -> None:
    """The public folder, who may read it, and what else is offered."""
    says = "serve the releases and streams of a folder over HTTP, with a page to explore them"
    full = "partita serve releases --tokens tokens.json --streams secret --ledger budget.db"
    parser = common.command(
        commands, "serve", run, says, example=f"partita serve releases --public\n  {full}"
    )
    parser.add("folder DIR", "releases and published outputs; all of it is public")
    _add_access(parser)
    _add_steward(parser)
    _add_addresses(parser)
    parser.set_defaults(interrupted="the service had not begun")


def _add_access(parser: common.CommandParser) -> None:
    parser.add("--public", "everybody may read, without a token")
    parser.add("--tokens FILE", "who may do what; `partita token` writes it")
    rate = "requests a second of one token, or of one address without a token; default: 200"
    parser.add("--rate N", rate, type=common.whole("rate"))
    connections = "connections of one address at a time; default: 128; behind a proxy the proxy limits them"
    parser.add("--connections-per-address N", connections, type=common.whole("connections_per_address"))
    seconds = "how long a request may take to arrive, and then to be answered; default: 30"
    parser.add("--request-seconds S", seconds, type=common.whole("request_seconds"))
    work = "predicted work of one question, about a microsecond a unit; default: 6000000"
    parser.add("--work N", work, type=common.whole("work"))
    parser.add("--log-addresses", "log where requests come from; default: do not")


def _add_steward(parser: common.CommandParser) -> None:
    parser.add("--streams FOLDER", "offer streams; their secret state is kept in this folder")
    parser.add("--publish SPECS", "let admins publish the specs of this folder; needs --ledger")
    parser.add("--ledger FILE", "the ledger that pays for streams and releases")
    parser.add("--delay S", "show outputs so many seconds after their period; default: 1", type=_seconds)


def _add_addresses(parser: common.CommandParser) -> None:
    parser.add("--host H", "where readers are listened to; default: 127.0.0.1, this machine only")
    parser.add("--steward-host H", "where feeders and admins are; default: 127.0.0.1, whatever --host is")
    parser.add("--port N", "for readers; default: 8000", type=common.whole("port", low=0))
    parser.add("--steward-port N", "for the rest; default: 8001", type=common.whole("steward_port", low=0))
    says = "answer to this name too; may be repeated, * for any"
    parser.add("--allow-host NAME", says, action="append", default=[])
    says = "let pages of this origin ask and read answers, such as https://example.org; may be repeated"
    parser.add("--allow-origin ORIGIN", says, action="append", default=[])
    says = "let pages of this origin show charts in a frame; may be repeated; without ORIGIN any page"
    parser.add("--allow-embedding ORIGIN", says, action="append", nargs="?", const="*", default=[])
    parser.add("--behind-proxy", "a proxy on this machine ends TLS, and says who asks")
    parser.add("--workers N", "processes for readers; default: 1", type=common.whole("workers"))


def run(options: common.Options) -> common.Outcome:
    """Serve until stopped; print the addresses as soon as they answer."""
    from partita.service.process import check_installed, serve

    check_installed()
    settings = _settings(options)
    _warn(settings)
    _note_names(settings.folder)

    def announce(side: str, address: str) -> None:
        common.show(
            common.Outcome.of(f"{side:<8} {address}", process=side, address=address), as_json=options.json
        )

    serve(settings, announce=announce)
    return common.NOTHING


def _settings(options: common.Options) -> ServiceSettings:
    """The settings that the options give; the others have their defaults."""
    from partita.service.settings import Limits, ServiceSettings

    given = {
        **{name: getattr(options, name) for name in _SAME_NAME},
        "streams": options.streams and Path(options.streams),
        "tokens": options.tokens and Path(options.tokens),
        "specs": options.publish and Path(options.publish),
    }
    limits = {
        "rate": options.rate,
        "burst": options.rate and _BURST * options.rate,
        "per_address": options.connections_per_address,
        "seconds": options.request_seconds,
        "work": options.work,
    }
    return ServiceSettings(
        folder=Path(options.folder),
        hosts=tuple(options.allow_host),
        origins=tuple(options.allow_origin),
        embedders=tuple(options.allow_embedding),
        proxied=options.behind_proxy,
        limits=Limits(**_given(limits)),
        **_given(given),
    )


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in values.items() if value is not None}


def _warn(settings: ServiceSettings) -> None:
    """Say what others on the network can do, where they can do anything."""
    from partita.service.settings import is_loopback

    steward_is_local = not settings.has_steward or is_loopback(settings.steward_host)
    if not settings.is_local and settings.public:
        _warn_privacy(f"everybody who reaches {settings.host} may read all releases and streams")
    if not steward_is_local:
        _warn_privacy(
            f"how fast the steward answers tells of feeding, and {settings.steward_host} can be reached by "
            "others; let only feeders through, see docs/deployment.md"
        )
    if not (settings.is_local and steward_is_local) and not settings.proxied:
        _warn_privacy(
            "tokens and answers travel unencrypted; put a proxy with TLS in front, see docs/deployment.md"
        )


def _note_names(folder: Path) -> None:
    """Say that files are left out whose names are not those of releases: their page would be empty."""
    from partita.service.reading.catalogue import SUFFIX

    found = [path.name for path in folder.glob("*.parquet") if not path.name.endswith(SUFFIX)]
    if found:
        common.say(f"note: {len(found)} Parquet files are not served: releases are called NAME{SUFFIX}")


def _warn_privacy(message: str) -> None:
    warnings.warn(PrivacyWarning(message), stacklevel=2)


@common.argument
def _seconds(text: str) -> object:
    return rational(text, "delay")


# `partita token`: who may read, feed and administer a service.
_SCOPES: Final = ("read", "feed", "admin")
_ONCE: Final = "it is shown this once; only its hash is kept"


def declare_token(commands: common.Commands) -> None:
    """One act makes a token, two change it, one lists them all."""
    acts = common.command_group(commands, "token", "say who may use a service")
    _declare_create(acts)
    _act(acts, "list", _list, "list every token, never its secret", example="", named=False)
    rotate = _act(acts, "rotate", _rotate, "give a token a new secret", example=" web --grace 1d")
    rotate.add("--grace T", "how long the old one stays good", type=_length, default=0)
    _add_expires(rotate, otherwise="when the old one would have")
    _act(acts, "revoke", _revoke, "end a token, now", example=" web")


def _act(
    acts: common.Commands, name: str, run: common.Action, says: str, *, example: str, named: bool = True
) -> common.CommandParser:
    parser = common.command(acts, name, run, says, example=f"partita token {name}{example}")
    if named:
        parser.add("NAME")
    parser.add("--tokens FILE", "default: %(default)s", default="tokens.json")
    return parser


def _declare_create(acts: common.Commands) -> None:
    example = " web --scope feed --stream visits --expires 90d"
    parser = _act(acts, "create", _create, "make a token, and show it once", example=example)
    parser.add("--scope", "what it may do; may be repeated", action="append", choices=_SCOPES, required=True)
    parser.add("--stream NAME", "feed this stream only; may be repeated", action="append")
    _add_expires(parser, otherwise="never")


def _add_expires(parser: common.CommandParser, *, otherwise: str) -> None:
    says = f"after how long it ends: 12h, 90d, 52w; default: {otherwise}"
    parser.add("--expires T", says, type=_length)


def _create(options: common.Options) -> common.Outcome:
    text = _file(options).create(
        options.name, scopes=options.scope, streams=options.stream, expires=options.expires
    )
    return _show_token(options.name, text)


def _rotate(options: common.Options) -> common.Outcome:
    text = _file(options).rotate(options.name, grace=options.grace, expires=options.expires)
    return _show_token(options.name, text)


def _revoke(options: common.Options) -> common.Outcome:
    _file(options).revoke(options.name)
    return common.Outcome.of(f"{options.name} is revoked", name=options.name, revoked=True)


def _list(options: common.Options) -> common.Outcome:

    tokens = _file(options).read().all
    lines = [(token.name, _format_token(token)) for token in tokens]
    return common.Outcome(
        common.table(lines, left=2) if lines else "no tokens", [_record(token) for token in tokens]
    )


def _show_token(name: str, text: str) -> common.Outcome:
    return common.Outcome.of(f"{text}\n{_ONCE}", name=name, token=text)


def _record(token: AccessToken) -> Record:
    return {
        "name": token.name,
        "scopes": list(token.scopes),
        "streams": None if token.streams is None else list(token.streams),
        "keys": [{"number": key.number, "until": _format_moment(key.until)} for key in token.keys],
    }


def _format_token(token: AccessToken) -> str:
    limited = "" if token.streams is None else f" of {', '.join(token.streams)}"
    ends = ("for good" if key.until is None else f"until {_format_moment(key.until)}" for key in token.keys)
    return f"{', '.join(token.scopes)}{limited}; {', '.join(ends)}"


def _format_moment(seconds: int | None) -> str | None:
    from partita.public.streams import SECOND
    from partita.public.streams import to_datetime as moment_of

    return None if seconds is None else moment_of(seconds * SECOND).isoformat()


def _file(options: common.Options) -> TokenFile:
    from partita.service.tokens import TokenFile

    return TokenFile(Path(options.tokens))


@common.argument
def _length(text: str) -> int:
    """A length of time in whole seconds."""
    from partita.public.streams import SECOND
    from partita.public.streams import parse_period as period_of

    try:
        return max(1, period_of(text) // SECOND)
    except InvalidParameter as error:
        raise InvalidParameter("time", error.rule, given=text, fix="write for example 12h or 90d") from None
