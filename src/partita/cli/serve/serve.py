"""`partita serve`: releases and streams over HTTP."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final

from partita.cli.common.arguments import Commands, Options, argument, command, whole
from partita.cli.common.output import Outcome, show
from partita.errors.errors import PrivacyWarning
from partita.numbers import rational

if TYPE_CHECKING:
    from partita.service.settings import ServiceSettings

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
