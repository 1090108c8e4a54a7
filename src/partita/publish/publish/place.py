"""Where a release is stored: under a name that is free, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

from partita.errors.errors import InvalidParameter
from partita.public.file.file import encode, load, reserve
from partita.public.release.release import Release
from partita.publish.publish.progress import phase
from partita.storage.file_disk import Temporary, checked_path


@final
@dataclass(frozen=True)
class Place:
    """A path to store a release at, or None to keep it in memory only."""

    path: Path | None

    @staticmethod
    def checked(path: object) -> Place:
        """The place that a path names."""
        return Place(None if path is None else checked_path(path))

    @property
    def taken(self) -> bool:
        """Whether anything stands at the path, be it a broken link."""
        return self.path is not None and os.path.lexists(self.path)

    @contextmanager
    def reserved(self) -> Iterator[Store]:
        """A way to store one release; a path that is taken or cannot be written is refused now.

        Whatever ends the block, nothing half-written is left behind.
        """
        if self.path is None:
            yield Store(self, None)
            return
        if self.taken:
            fix = "choose another, or remove the file"
            raise InvalidParameter("path", "must not exist yet", given=str(self.path), fix=fix)
        with reserve(self.path) as temporary:
            yield Store(self, temporary)

    def load(self) -> Release:
        """The release that stands at the path."""
        if self.path is None or not self.taken:
            rule, fix = "must be where the release of this key was stored", "pass the path of the first call"
            raise InvalidParameter("path", rule, given=None if self.path is None else str(self.path), fix=fix)
        return load(self.path)


@final
@dataclass(frozen=True)
class Store:
    """A place, and the file beside it that is about to move there; None where nothing is stored."""

    place: Place
    temporary: Temporary | None

    @property
    def kept(self) -> bool:
        """Whether the file stands at its place, whatever was said while it moved there."""
        return self.temporary is not None and self.temporary.arrived

    def keep(self, release: Release) -> Release:
        """Write, sync, rename; the same release."""
        if self.temporary is not None:
            with phase("writing"):
                self.temporary.write(encode(release))
                self.temporary.commit()
        return release
