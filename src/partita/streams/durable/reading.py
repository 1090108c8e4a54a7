"""What everybody may read: the public file of a counter or family, and nothing else."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias, final

from partita.exact import integer
from partita.streams.base import LARGEST
from partita.streams.durable.files import base_path, with_suffix
from partita.streams.durable.outputs import OUTPUTS, AnyOutput, OutputsFile
from partita.streams.durable.settings import Settings

__all__ = ["FilePath", "Published", "read_outputs"]

FilePath: TypeAlias = str | os.PathLike[str]


@final
@dataclass(frozen=True)
class Published:
    """What the public file of a counter or family holds, or some of it."""

    settings: Settings
    outputs: tuple[AnyOutput, ...]


def read_outputs(path: FilePath, *, since: int = 0, limit: int | None = None) -> Published:
    """What was published by the counter or family at a path, from its public file alone.

    All outputs after period `since`, or the last n of them for `since=-n`; no more than `limit`, if there is
    one. Nothing secret is read, and whoever has the counter open is not disturbed.
    """
    base = base_path(path)
    file = OutputsFile.read(base if base.name.endswith(OUTPUTS) else with_suffix(base, OUTPUTS))
    after = integer(since, "since", low=-LARGEST, high=LARGEST)
    begin = after if after >= 0 else max(0, file.closed + after)
    most = LARGEST if limit is None else integer(limit, "limit", low=0, high=LARGEST)
    return Published(file.settings, tuple(islice(file.outputs(since=begin), most)))
