"""`partita publish` as a process of its own: the service never opens data.

Where the data lie is written in a file beside the spec, by the steward; a request cannot name it. What
the process says on its terminal is read for the phases it has begun and for its last words. How long
anything took is dropped.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from partita.errors import InvalidParameter
from partita.service.settings import Settings
from partita.service.steward.jobs import Order
from partita.service.web.errors import not_found, without_folders

__all__ = ["Publisher", "Told"]

_KEPT: Final = ("HOME", "LANG", "LC_ALL", "PATH", "PGPASSFILE", "TMPDIR", "TZ")
_LIBRARY: Final = str(Path(__file__).resolve().parents[3])
_LARGEST: Final = 2**16
_PHASE: Final = re.compile(r"partita: ([^:\r\n]+?) \.\.\.")
_LAST_WORDS: Final = re.compile(r"partita: (?:error|refused): ([^\r\n]+)")
_SILENT: Final = "the job ended without a word; run it by hand to see why"


@final
@dataclass(frozen=True)
class Publisher:
    """Publishes specs of a folder into the public folder, charged to the ledger of the service."""

    settings: Settings

    def check(self, spec: str) -> None:
        """Refuse a spec that is not there, or does not say where its data are."""
        self._data(spec)

    def run(self, order: Order, phase: Callable[[str], None]) -> str | None:
        """Publish, and wait for the end; why it failed, or None.

        The process is in a session of its own, so it outlives the service: killed after its debit, it
        would lose what was paid.
        """
        master, slave = pty.openpty()
        try:
            process = subprocess.Popen(
                self.command(order),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=slave,
                cwd=self._specs,
                env=_environment(),
                start_new_session=True,
            )
        finally:
            os.close(slave)
        told = Told(phase)
        for piece in _pieces(master):
            told.hear(piece)
        return None if process.wait() == 0 else told.last_words

    def command(self, order: Order) -> list[str]:
        """The command line, one argument each: no shell ever reads any of it."""
        spec, output = (
            self._specs / f"{order.spec}.toml",
            self.settings.folder / f"{order.name}.release.parquet",
        )
        epsilon = [] if order.epsilon is None else [f"--epsilon={order.epsilon}"]
        charged = [f"--ledger={self.settings.ledger}", f"--key={order.key}"]
        publish = [sys.executable, "-P", "-m", "partita", "publish", f"--spec={spec}", f"--output={output}"]
        return [*publish, *charged, *epsilon, "--json", "--", *self._data(order.spec)]

    @property
    def _specs(self) -> Path:
        assert self.settings.specs is not None
        return self.settings.specs

    def _data(self, spec: str) -> list[str]:
        """Where the data of a spec are: `data` in the file SPEC.job.toml, relative to its folder."""
        if not (self._specs / f"{spec}.toml").is_file():
            raise not_found("spec")
        data = _entries(self._specs / f"{spec}.job.toml").get("data")
        listed = [data] if isinstance(data, str) else data
        if isinstance(listed, list) and listed and all(isinstance(each, str) and each for each in listed):
            return listed
        raise InvalidParameter(
            "spec",
            "must say where its data are",
            given=spec,
            fix=f'write data = "people.parquet" into {spec}.job.toml beside it',
        )


@final
class Told:
    r"""What a process says on its terminal: the phases that it begins, and its last words.

    >>> phases: list[str] = []
    >>> told = Told(phases.append)
    >>> told.hear("partita: counting age ..."); told.hear(". 3.1 s\npartita: drawing noise ...")
    >>> phases
    ['counting age', 'drawing noise']
    """

    def __init__(self, phase: Callable[[str], None]) -> None:
        self._phase, self._text = phase, ""

    @property
    def last_words(self) -> str:
        """The error that the process ended with, without the folders in it."""
        said = _LAST_WORDS.findall(self._text)
        return without_folders(said[-1]) if said else _SILENT

    def hear(self, piece: str) -> None:
        """More of what it says; only the latest is kept."""
        self._text = (self._text + piece)[-_LARGEST:]
        found = _PHASE.search(self._text)
        while found is not None:
            self._phase(found[1])
            self._text = self._text[found.end() :]
            found = _PHASE.search(self._text)


def _pieces(master: int) -> Iterator[str]:
    """What is written to a terminal, until nobody is left who could."""
    with open(master, "rb", buffering=0) as terminal:
        while True:
            try:
                piece = terminal.read(4096)
            except OSError:
                return
            if not piece:
                return
            yield piece.decode("utf-8", "replace")


def _entries(path: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(path.read_bytes()[:_LARGEST].decode())
    except (OSError, ValueError, RecursionError):
        return {}


def _environment() -> dict[str, str]:
    """Nothing of the service's own but where programs, this library and the password of a database are."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {"PYTHONPATH": _LIBRARY}
