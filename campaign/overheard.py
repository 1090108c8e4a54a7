"""What could be overheard of a call: output, errors, warnings, logs, and the files that it leaves."""

from __future__ import annotations

import io
import logging
import traceback
import warnings
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from partita.errors import PartitaError

__all__ = ["Overheard", "overheard"]

Expected = (PartitaError, SystemExit)


@dataclass(frozen=True)
class Overheard:
    """What was said, which files lie there now, and what ended the call, if it was no error of ours."""

    said: str
    files: dict[str, bytes]
    surprise: str | None

    def leaks(self, signs: Iterable[bytes], *, given: Iterable[str]) -> list[str]:
        """Where a sign of the secret is seen, apart from the files that were given."""
        places = {"what was said": self.said.encode(errors="replace"), **self.files}
        looked = {place: content for place, content in places.items() if place not in set(given)}
        return [place for place, content in looked.items() if any(sign in content for sign in signs)]


def overheard(call: Callable[[], object], folder: Path) -> Overheard:
    """Make the call, and keep whatever can be seen of it."""
    said, log = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    root, surprise = logging.getLogger(), None
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as warned, redirect_stdout(said), redirect_stderr(said):
            warnings.simplefilter("always")
            surprise = _ended(call, said)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    seen = "\n".join([said.getvalue(), log.getvalue(), *(str(each.message) for each in warned)])
    return Overheard(seen, _files(folder), surprise)


def _ended(call: Callable[[], object], said: io.StringIO) -> str | None:
    """Make the call; its result and its errors are said, with all that led to them."""
    try:
        said.write(repr(call()))
    except Expected as error:
        said.writelines(traceback.format_exception(error))
        said.writelines(_behind(error))
    except Exception as error:
        said.writelines(traceback.format_exception(error))
        return f"{type(error).__name__}, which is no error of ours"
    return None


def _behind(error: BaseException) -> Iterable[str]:
    """What an error drags along without showing it, and its arguments."""
    seen: set[int] = set()
    while id(error) not in seen:
        seen.add(id(error))
        yield f"{error!r} {error.args!r}\n"
        error = error.__cause__ or error.__context__ or error


def _files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}
