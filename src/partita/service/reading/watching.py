"""What readers see of streams: looks at the public files at public moments, and nothing between two looks.

A look falls on every whole multiple of the delay of the service. A period is shown from the first look on
that is at least the delay after its end. So whoever asks, however often, learns when periods end, and not
when their outputs were written: that may depend on what was being stored just then.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, final

import anyio
import anyio.to_thread

from partita.service.settings import NAME, Settings
from partita.service.web.errors import not_found
from partita.service.web.logs import Log
from partita.streams.durable.outputs import OUTPUTS, AnyOutput, OutputsFile
from partita.streams.durable.settings import SECOND

__all__ = ["Shown", "Watch"]

_LONGEST_SLEEP: Final = 1.0


@final
@dataclass(frozen=True)
class Shown:
    """A stream as the last look found it: its public file, and how many periods of it are shown."""

    name: str
    file: OutputsFile
    periods: int

    def outputs(self, *, since: int, limit: int) -> list[AnyOutput]:
        """What was published after a period, as far as it is shown."""
        wanted = max(0, min(limit, self.periods - since))
        return list(islice(self.file.outputs(since=since), wanted)) if wanted else []

    @property
    def last(self) -> AnyOutput | None:
        """The last output that is shown."""
        return next(iter(self.outputs(since=self.periods - 1, limit=1)), None) if self.periods else None


@final
class Watch:
    """The streams of the public folder as of the last look; `moment` says when that was.

    A name whose file is none of a stream stands for None. No file but public ones is ever opened. Looks have
    a thread of their own, so that whoever asks for much delays none.
    """

    def __init__(self, settings: Settings, *, now: Callable[[], int] = time.time_ns) -> None:
        self.folder, self.delay, self._now = settings.folder, settings.delay, now
        self._every = int(settings.delay * SECOND)
        self._log, self._eye = Log("reading", now), anyio.CapacityLimiter(1)
        self._shown: dict[str, Shown | None] = {}
        self._told = asyncio.Event()
        self._ended = False
        self.moment = 0

    def streams(self) -> dict[str, Shown | None]:
        """All streams by name, sorted; whoever asks first makes the first look."""
        if not self.moment:
            self.look()
        return dict(sorted(self._shown.items()))

    def __getitem__(self, name: str) -> Shown:
        """A stream by name, or a 404: also for names that no stream may have."""
        found = self.streams().get(name)
        if found is None:
            raise not_found("stream")
        return found

    def look(self) -> None:
        """See what may be shown from now on. A folder that cannot be read leaves all as it was."""
        self.moment = max(self.moment, self._now() // self._every * self._every)
        with suppress(OSError):
            self._shown = {name: self._seen(name, path) for name, path in _outputs_in(self.folder)}

    async def keep_looking(self) -> None:
        """Look at every whole multiple of the delay, and tell all who wait for it.

        Whatever goes wrong in a look, there is a next one.
        """
        while True:
            due = (self._now() // self._every + 1) * self._every
            while (left := due - self._now()) > 0:
                await asyncio.sleep(min(left / SECOND, _LONGEST_SLEEP))
            await self.look_aside()
            self.tell()

    async def look_aside(self) -> None:
        """Look without anybody waiting for it; what goes wrong is noted by its kind."""
        try:
            await anyio.to_thread.run_sync(self.look, limiter=self._eye)
        except Exception as error:
            self._log.error("look failed", kind=type(error).__name__)

    def tell(self) -> None:
        """Let all go on who wait for the next look, at once."""
        told, self._told = self._told, asyncio.Event()
        told.set()

    def end(self) -> None:
        """Tell all who wait that there will be no more looks."""
        self._ended = True
        self.tell()

    async def next_look(self) -> bool:
        """Wait for the next look; False if there will be none."""
        if not self._ended:
            await self._told.wait()
        return not self._ended

    def _seen(self, name: str, path: Path) -> Shown | None:
        """A stream as it is now; its file is opened only if there is something to be shown.

        Whatever a file makes us stumble over, it is that one which is damaged, and no other.
        """
        before = self._shown.get(name)
        if before is not None and before.periods >= self._due(before.file):
            return before
        try:
            file = OutputsFile.read(path)
            periods = min(self._due(file), file.closed)
        except Exception:
            return None
        known = before.periods if before is not None and before.file == file else 0
        return Shown(name, file, max(known, periods))

    def _due(self, file: OutputsFile) -> int:
        """How many periods had ended a delay before the look: all that may be shown."""
        settings = file.settings
        ended = settings.schedule.ended(self.moment - self._every)
        return ended if settings.horizon is None else min(ended, settings.horizon)


def _outputs_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """The public files of streams, by the name of the stream; plain files only."""
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name.removesuffix(OUTPUTS)
            if name != entry.name and NAME.fullmatch(name) and entry.is_file(follow_symlinks=False):
                yield name, Path(entry.path)
