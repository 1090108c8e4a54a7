"""What all releases share: facts about a kind, checks of released numbers, text for people, checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, Protocol, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from partita.arrays import integer_array
from partita.domain.base import Domain
from partita.domain.category import Category
from partita.errors import InvalidData, InvalidRelease, check_release
from partita.guarantee import Guarantee
from partita.html import Html, card, shortlist
from partita.lazy import find_classes
from partita.public.contributions import ChosenContributions

RELEASE_PACKAGES: Final = tuple(
    f"partita.public.{part}" for part in ("axis", "boxes", "sums", "tables", "workload")
)
"""The packages whose modules define releases. Whatever a file says, nothing else is imported for it."""


DECLARED: Final = "declared by the caller, not checked by Partita"
"""What is said of the guarantee of counts that another library made."""

IMPORTED: Final = "imported"
"""The fact that is true of such counts, and the name that stands for their mechanism."""


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

    imported: bool = False
    """Whether another library made the noise, so that the guarantee is `DECLARED`."""

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
        known = cls.kinds()
        check_release(kind in known, "kind", "is not known here", fix="read the file with a newer Partita")
        return known[kind]


@final
@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a release comes from: what the steward stated and which version made it, nothing of the data.

    `day` is the calendar day, as text like 2026-11-15. `recorded` says whether a ledger was debited.
    `person` is the name of the column of ids whose rows were bounded, if any. `part` is the column and
    the value that a row must have to be counted, if not all rows are. `options` are those of the mechanism
    that were asked for, each with its value as text, in the order of their names. `contributions` says how
    the bound on rows per person was chosen, if it was not given.
    """

    version: str
    day: str
    dataset: str | None = None
    recorded: bool = False
    person: str | None = None
    part: tuple[str, str] | None = None
    options: tuple[tuple[str, str], ...] = ()
    contributions: ChosenContributions | None = None


# Released numbers as they may come from anybody: one limit for integers, one for noise, one refusal.

LARGEST_NUMBER: Final = 2**127
"""No released integer is further from zero."""

_LEAST_SCALE: Final = Fraction(1, 2**20)
_LARGEST_SCALE: Final = Fraction(2**62)
_LARGEST_VARIANCE: Final = Fraction(2**124)


def damaged(name: str, rule: str) -> InvalidRelease:
    """The error for a part of a release that is not what it should be."""
    return InvalidRelease(name, rule, fix="get the release again from where it was published")


def noise_scale(scale: Fraction, name: str) -> Fraction:
    """A scale of noise, if it is one that can be drawn."""
    if not _LEAST_SCALE <= scale <= _LARGEST_SCALE:
        raise damaged(name, "must be a noise scale between 2^-20 and 2^62")
    return scale


def noise_rate(rate: Fraction, name: str) -> Fraction:
    """One over a scale of noise, if it is one that can be drawn."""
    if not 1 / _LARGEST_SCALE <= rate <= 1 / _LEAST_SCALE:
        raise damaged(name, "must give noise of a scale between 2^-20 and 2^62")
    return rate


def noise_variance_parameter(variance: Fraction, name: str) -> Fraction:
    """A variance of discrete Gaussian noise, if it is one that can be drawn."""
    if not _LEAST_SCALE <= variance <= _LARGEST_VARIANCE:
        raise damaged(name, "must be a noise variance between 2^-20 and 2^124")
    return variance


def noisy_integers(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Released integers in a row: int64, or Python ints where those do not fit; read-only."""
    try:
        array = integer_array(values, name)
    except InvalidData:
        raise damaged(name, "must hold integers") from None
    if array.ndim != 1 or (array.dtype == object and any(abs(value) > LARGEST_NUMBER for value in array)):
        raise damaged(name, "must be a row of integers of at most 127 bits")
    fits = array.dtype.kind == "i" or bool(((array >= -(2**63)) & (array < 2**63)).all())
    array = array.astype(np.int64 if fits else object)
    array.flags.writeable = False
    return array


# Numbers and tables for people to read.


def figure(number: float) -> str:
    """A count or its error to about three figures and at most a tenth, with an exponent only from 10^15 on.

    >>> figure(54.598), figure(1234567.8), figure(3.0), figure(0.0044), figure(-0.0)
    ('54.6', '1,234,568', '3', '0', '0')
    """
    return f"{number:,.0f}" if 100 <= abs(number) < 1e15 else f"{round(number, 1) + 0.0:.3g}"


def shorten(text: str, width: int) -> str:
    """The text itself, or as much of it as fits, with dots behind it.

    >>> shorten("northernmost", 8)
    'north...'
    """
    return text if len(text) <= width else f"{text[: max(0, width - 3)]}..."


def table(rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """Aligned columns, the first `left` of them to the left and the others to the right.

    >>> print(table([("age", "12"), ("salary", "3")]))
    age     12
    salary   3
    """
    listed = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    signs = ["<" if place < left else ">" for place in range(len(widths))]
    lines = (map("{:{}{}}".format, row, signs, widths) for row in listed)
    return "\n".join("  ".join(line).rstrip() for line in lines)


def format_excerpt(names: Sequence[str], length: int, row: Callable[[int], Sequence[object]]) -> str:
    """The names of the columns above the rows of a table: all of up to 24, or the first and the last five.

    >>> print(format_excerpt(["n", "square"], 3, lambda n: [n, n * n]))
    n  square
    0       0
    1       1
    2       4
    """
    rows = [names, *shortlist(length, row)]
    return table(([shorten(str(entry), 25) for entry in row] for row in rows), left=0)


LONGEST: Final = 60
_LISTED: Final = 8  # labels that are all written where a column is described
_FIRST: Final = 3  # of more labels
"""No name and no domain is shown with more characters."""


class ViewFacts(Protocol):
    """What every view says about itself."""

    @property
    def mechanism(self) -> str: ...

    @property
    def why(self) -> str: ...

    @property
    def guarantee(self) -> Guarantee | None: ...


def view_card(
    view: ViewFacts,
    declared: Mapping[str, Domain],
    *,
    below: Iterable[Html] = (),
    imported: bool = False,
    **facts: object,
) -> str:
    """One view: how it was made and why, and what its columns may hold."""
    lines: list[tuple[str, object]] = [
        ("mechanism", view.mechanism),
        ("why", view.why or None),
        ("promise", promise(view.guarantee, imported=imported)),
        *facts.items(),
        *((shorten(column, LONGEST), describe_domain(domain)) for column, domain in declared.items()),
    ]
    return card(type(view).__name__, lines, below=below)


def promise(guarantee: Guarantee | None, *, imported: bool = False) -> str:
    """The promise in words, or that there is none; for counts that were imported, whose promise it is."""
    if guarantee is None:
        return "none: made with injected noise"
    return f"{guarantee}, {DECLARED}" if imported else str(guarantee)


def describe_domain(domain: Domain, width: int = LONGEST) -> str:
    """What a column may hold; of many labels their number, the first ones and the last.

    >>> describe_domain(Category([str(number) for number in range(300)]))
    "Category of 300 labels: '0', '1', '2', ..., '299'"
    """
    if not isinstance(domain, Category) or domain.size <= _LISTED:
        return shorten(repr(domain), width)
    if domain.nodes:
        return shorten(f"Category of {domain.size:,} labels below {len(domain.nodes):,} nodes", width)
    first = ", ".join(map(repr, domain.labels[:_FIRST]))
    return shorten(f"Category of {domain.size:,} labels: {first}, ..., {domain.labels[-1]!r}", width)


# Long work that somebody else may stop.
#
# Loops that can take long call `checkpoint` between chunks. It does nothing, unless the work was started
# under a `Stop` that has been set: then the work ends with `Stopped`. Only the service starts work that way.

Result = TypeVar("Result")


class Stopped(Exception):
    """The work ended at a checkpoint, because its caller does not wait any more."""


@final
class Stop:
    """Tells one piece of work to end at its next checkpoint; may be set by any thread."""

    __slots__ = ("is_set",)

    def __init__(self) -> None:
        self.is_set = False

    def set(self) -> None:
        """End the work that was started under this."""
        self.is_set = True


_current: Final[ContextVar[Stop | None]] = ContextVar("stop", default=None)


def run_stoppable(stop: Stop, work: Callable[[], Result]) -> Result:
    """What the work makes; it ends at its next checkpoint once `stop` is set, also before it begins.

    >>> stop = Stop()
    >>> stop.set()
    >>> run_stoppable(stop, lambda: 7)
    Traceback (most recent call last):
    partita.public.base.Stopped
    """
    before = _current.set(stop)
    try:
        checkpoint()
        return work()
    finally:
        _current.reset(before)


def checkpoint() -> None:
    """End the work here if it was stopped."""
    stop = _current.get()
    if stop is not None and stop.is_set:
        raise Stopped


def chunk_size(all_of_it: int, chunk: int) -> int:
    """How much to do until the next checkpoint: a chunk if the work may be stopped, else all of it.

    Chunks cost time of their own, which only work that somebody may stop should pay for.
    """
    return max(1, all_of_it) if _current.get() is None else chunk
