"""What every kind of release says about itself, and how the class of a kind is found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Self

from partita.discovery import find_classes
from partita.errors import InvalidRelease

__all__ = ["RELEASE_PACKAGES", "ReleaseKind"]

RELEASE_PACKAGES: Final = ("partita.releases",)
"""The packages whose modules define releases. Whatever a file says, nothing else is imported for it."""


class ReleaseKind:
    """The facts about a kind of release that files, citations and the check of a request need.

    A concrete class states them as class attributes and is found by them; there is no list to add it to.
    """

    kind: ClassVar[str]
    """The name of this kind in files; never changes its meaning."""

    papers: ClassVar[Mapping[str, tuple[str, ...]]]
    """The names of the mechanisms that make such releases, each with the keys of the papers behind it."""

    max_series: ClassVar[int]
    """The largest number of series of such a release in a file, but for those of its levels."""

    max_series_per_level: ClassVar[int] = 0
    """The largest number of series for each level, see `count_series`."""

    @classmethod
    def count_series(cls, levels: int) -> int:
        """The largest number of series of such a release in a file.

        `levels` is the number of bits of the size of one axis, or the number of several axes.
        """
        return cls.max_series + levels * cls.max_series_per_level

    @classmethod
    def kinds(cls) -> dict[str, type[Self]]:
        """The subclasses that a file may hold, by the name of their kind."""
        found = [each for each in find_classes(*RELEASE_PACKAGES) if issubclass(each, cls)]
        return dict(sorted({each.kind: each for each in found if "kind" in vars(each)}.items()))

    @classmethod
    def of_kind(cls, kind: str) -> type[Self]:
        """The subclass of this kind."""
        found = cls.kinds().get(kind)
        if found is None:
            raise InvalidRelease("kind", "is not known here", fix="read the file with a newer Partita")
        return found
