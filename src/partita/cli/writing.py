"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from partita.errors import InvalidParameter

__all__ = ["write_whole"]


def write_whole(path: str, write: Callable[[Path], object], *, overwrite: bool = False) -> None:
    """Let `write` fill a file beside `path`, and give it that name once it is complete."""
    target = Path(path)
    try:
        if target.exists() and not overwrite:
            raise InvalidParameter(
                "output", "must not exist yet", given=path, fix="choose another name, or pass --force"
            )
        with tempfile.TemporaryDirectory(prefix=".partita.", dir=target.parent) as folder:
            draft = Path(folder) / target.name
            write(draft)
            os.replace(draft, target)
    except OSError as error:
        raise InvalidParameter(
            "output",
            f"must be a file that can be written ({error.strerror})",
            given=path,
            fix="check the folder and its permissions",
        ) from None
