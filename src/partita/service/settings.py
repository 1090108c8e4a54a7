"""Settings of a service, validated once: folders, addresses, access, limits; and its version."""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, final

from partita.errors import InvalidParameter, check
from partita.numbers import freeze, integer, rational

LOOPBACK: Final = "127.0.0.1"

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Names of releases, streams and specs in an address; no other text reaches the disk."""

_PATHS: Final = ("folder", "streams", "tokens", "specs")
_HIGHEST_PORT: Final = 2**16 - 1
_SHORTEST_DELAY: Final = Fraction(1, 10)  # seconds: early outputs against many looks at files
_LONGEST_DELAY: Final = 3600
ANY_EMBEDDER: Final = "*"
"""All pages may show charts of the service."""

_ORIGIN: Final = re.compile(r"https?://(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?")
_USUAL_PORTS: Final = {"https": ":443", "http": ":80"}
_PASSWORD: Final = re.compile(r"://[^/@\s]*:[^@]*@|password\s*=", re.IGNORECASE)


@final
@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a service. All of them are public, and none depends on data.

    Sizes are in bytes; `counts_body` is that of a batch of counts, which is parsed in one piece while nothing
    else is, and `events_body` that of a feeding request; `rows` counts the values of made-up rows; `rate` and
    `burst` count requests of a token, or of an address without one; `connections` are those of a process, and
    `per_address` those of one address among them. `header` is the size of a request's first line and headers
    together. `seconds` is how long a request may take from its first byte to its last, and then until its
    answer begins; `idle` is how long a connection may stay open without a request; `slow_write` is how long a
    reader may take for the next part of an answer. `grace` is how long open requests may go on once the
    service is told to end.

    `work` is the predicted work of one request (see `reading.work`), and what is below `small_work` is
    answered in a lane of its own.
    """

    header: int = 2**16  # uvicorn has the same for its other parser
    body: int = 2**20
    counts_body: int = 4 * 2**20  # a larger body holds the interpreter lock for longer while it is parsed
    events_body: int = 16 * 2**20  # 100,000 events with ids
    ranges: int = 200_000  # size of one batch against the memory of 8 that are read at once
    rows: int = 1_000_000  # about 5 s of work
    points: int = 4096  # more bins than a screen has pixels
    where: int = 4096
    subscribers: int = 1_000
    connections: int = 4_096  # file handles and memory of a process against readers at once
    per_address: int = 128  # people behind one address against one client that takes all connections
    rate: int = 200
    burst: int = 400  # a page asks for about a dozen answers at once
    callers: int = 10_000  # memory against callers whose rate is known
    seconds: int = 30
    idle: int = 10
    slow_write: int = 10
    grace: int = 3  # the whole service ends within five seconds
    work: int = 6_000_000  # about 6 s of one core; a larger limit lets one request hold a thread for longer
    small_work: int = 25_000  # about 25 ms: what a small question may have to wait for another
    jobs: int = 16

    def __post_init__(self) -> None:
        freeze(self, **{name: integer(value, name, low=1) for name, value in vars(self).items()})

    @property
    def largest_body(self) -> int:
        """The size of the largest body that any address takes."""
        return max(self.body, self.counts_body, self.events_body)


@final
@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """The settings of one service: the public folder, the secret folders, the addresses, and the limits.

    Paths are made absolute, so that no process depends on where it was started; nothing is opened here.

    >>> ServiceSettings(folder=Path("/srv/releases"), public=True).address("reading")
    'http://127.0.0.1:8000'
    """

    folder: Path
    streams: Path | None = None
    tokens: Path | None = None
    public: bool = False
    ledger: str | None = field(default=None, repr=False)
    specs: Path | None = None
    host: str = LOOPBACK
    port: int = 8000
    steward_host: str = LOOPBACK
    steward_port: int = 8001
    delay: Fraction = Fraction(1)
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    embedders: tuple[str, ...] = ()
    proxied: bool = False
    workers: int = 1
    log_addresses: bool = False
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        freeze(self, **{name: _absolute(getattr(self, name), name) for name in _PATHS})
        freeze(self, ledger=_ledger(self.ledger), hosts=tuple(_host(host) for host in self.hosts))
        freeze(self, origins=tuple(_origin(origin, "allow_origin") for origin in self.origins))
        freeze(self, embedders=tuple(map(_embedder, self.embedders)))
        freeze(self, delay=_delay(self.delay), workers=integer(self.workers, "workers", low=1, high=64))
        for name in ("port", "steward_port"):
            freeze(self, **{name: integer(getattr(self, name), name, low=0, high=_HIGHEST_PORT)})
        self._check_access()
        self._check_publishing()
        self._check_apart()

    @property
    def has_steward(self) -> bool:
        """Whether anything is fed or published; if not, there is no steward process at all."""
        return self.streams is not None or self.specs is not None

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the reading side; the steward's side has its own host."""
        return is_loopback(self.host)

    def place(self, side: str) -> tuple[str, int]:
        """The host and port of one of the two processes, `reading` or `steward`."""
        return (self.host, self.port) if side == "reading" else (self.steward_host, self.steward_port)

    def address(self, side: str) -> str:
        """The URL of one of the two processes."""
        host, port = self.place(side)
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def to_json(self) -> str:
        """The settings in one line, for the processes of the service."""
        plain = {name: _plain(getattr(self, name)) for name in (each.name for each in fields(self))}
        return json.dumps(plain | {"limits": asdict(self.limits)})

    @staticmethod
    def from_json(text: str) -> ServiceSettings:
        """The settings that `to_json` wrote.

        >>> settings = ServiceSettings(folder=Path("/srv"), public=True, delay=Fraction(1, 3))
        >>> ServiceSettings.from_json(settings.to_json()) == settings
        True
        """
        entries: Mapping[str, Any] = json.loads(text)
        limits = Limits(**entries["limits"])
        lists = {name: tuple(entries[name]) for name in ("hosts", "origins", "embedders")}
        return ServiceSettings(**{**entries, **lists, "limits": limits})

    def _check_access(self) -> None:
        if not self.public and self.tokens is None:
            fix = "make one with `partita token create`, or say that everybody may read with --public"
            rule = "must be a file of tokens, as reading is not public"
            raise InvalidParameter("tokens", rule, given=None, fix=fix)
        if self.has_steward and self.tokens is None:
            rule = "must be a file of tokens, as feeding and publishing are never public"
            fix = "make one with `partita token create NAME --scope admin`"
            raise InvalidParameter("tokens", rule, given=None, fix=fix)

        if self.embedders and not self.public:
            rule = "needs public reading, as a chart in another page asks for no token"
            fix = "add --public, or leave out --allow-embedding"
            raise InvalidParameter("allow_embedding", rule, given="tokens only", fix=fix)

    def _check_publishing(self) -> None:
        if self.specs is not None and self.ledger is None:
            rule = "must be given where specs may be published"
            raise InvalidParameter("ledger", rule, given=None, fix="pass --ledger too")

    def _check_apart(self) -> None:
        """Readers get files of the public folder by name, so nothing secret may lie in it."""
        for name, path in (("streams", self.streams), ("specs", self.specs)):
            if path is not None and (path == self.folder or self.folder in path.parents):
                rule = "must not lie in the public folder"
                raise InvalidParameter(name, rule, given=str(path), fix="choose another folder")
        if self.port and self.port == self.steward_port and self.has_steward:
            rule = "must differ from port"
            raise InvalidParameter("steward_port", rule, given=self.steward_port, fix="choose another")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _absolute(path: object, name: str) -> Path | None:
    if path is None and name != "folder":
        return None
    if not isinstance(path, (str, Path)) or not str(path) or "\0" in str(path):
        raise InvalidParameter(name, "must be a path", given=path, fix="pass text or a Path")
    return Path(os.path.abspath(path))


def _ledger(ledger: object) -> str | None:
    """A ledger in a file by its absolute path; one in a database by its address, as it is.

    Processes are started with the address, and others on the machine see what a process is started with.
    """
    rule, given = "must be an address without a password", "one with a password"
    fix = "put the password into a file, and its path into PGPASSFILE"
    has_password = isinstance(ledger, str) and _PASSWORD.search(ledger)
    check(not has_password, "ledger", rule, given=given, fix=fix)
    if isinstance(ledger, str) and "://" in ledger:
        return ledger
    return None if ledger is None else str(_absolute(ledger, "ledger"))


def _delay(delay: object) -> Fraction:
    exact = rational(delay, "delay")
    rule = f"must be {float(_SHORTEST_DELAY)} to {_LONGEST_DELAY} seconds"
    fits = _SHORTEST_DELAY <= exact <= _LONGEST_DELAY
    check(fits, "delay", rule, given=delay, fix="pass for example 1")
    return exact


def _host(host: object) -> str:
    if isinstance(host, str) and re.fullmatch(r"[A-Za-z0-9.:*_-]{1,253}", host):
        return host.lower()
    fix = "write for example stats.example.org"
    raise InvalidParameter("allow_host", "must be a host name", given=host, fix=fix)


def _origin(origin: object, name: str) -> str:
    """A scheme, a host and perhaps a port, as browsers write them: in lower case, without a usual port.

    >>> [_origin(f"https://Example.org{port}", "allow_origin") for port in (":8443", ":443")]
    ['https://example.org:8443', 'https://example.org']
    """
    if isinstance(origin, str) and _ORIGIN.fullmatch(origin.lower()):
        lower = origin.lower()
        return lower.removesuffix(_USUAL_PORTS[lower.partition(":")[0]])
    rule, fix = (
        "must be an origin: a scheme and a host, without a path",
        "write for example https://example.org",
    )
    raise InvalidParameter(name, rule, given=origin, fix=fix)


def _embedder(origin: object) -> str:
    """An origin, or any."""
    return ANY_EMBEDDER if origin == ANY_EMBEDDER else _origin(origin, "allow_embedding")


def _plain(value: object) -> object:
    return str(value) if isinstance(value, (Path, Fraction)) else value


VERSION: Final = version("partita")
"""The installed version. It is not read from `partita`, as importing that would import sources."""
