"""What every kind of release says about itself, and how the class of a kind is found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Self

from partita.errors.errors import InvalidRelease
from partita.lazy.discovery import find_classes

RELEASE_PACKAGES: Final = (
    "partita.public.axis",
    "partita.public.axis.base",
    "partita.public.axis.curve",
    "partita.public.axis.flat",
    "partita.public.axis.shrinkage",
    "partita.public.axis.spending_tree",
    "partita.public.axis.tent_solver",
    "partita.public.axis.tents",
    "partita.public.axis.tree",
    "partita.public.axis.tree_solver",
    "partita.public.boxes",
    "partita.public.boxes.base",
    "partita.public.boxes.cover",
    "partita.public.boxes.density",
    "partita.public.boxes.engine",
    "partita.public.boxes.grid",
    "partita.public.boxes.paper",
    "partita.public.boxes.plan",
    "partita.public.boxes.rank_boxes",
    "partita.public.boxes.regions",
    "partita.public.boxes.spending_boxes",
    "partita.public.boxes.tree_of_trees",
    "partita.public.sums",
    "partita.public.sums.base",
    "partita.public.sums.knots",
    "partita.public.sums.level_trees",
    "partita.public.sums.log_tree",
    "partita.public.sums.parts",
    "partita.public.sums.view",
    "partita.public.workload",
    "partita.public.workload.decomposition",
    "partita.public.workload.numerical",
    "partita.public.workload.projection",
    "partita.public.workload.release",
    "partita.public.workload.weights",
)
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
