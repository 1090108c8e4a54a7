"""A public law from cells to reports: what devices sample, and what a description names."""

from __future__ import annotations

import json
import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from partita.errors.checks import check
from partita.errors.errors import InvalidData
from partita.local.randomizer.draws import Draws, KernelDraws, Numbers

if TYPE_CHECKING:
    from partita.trusted.noise.laws.words import WordSource

Json: TypeAlias = dict[str, Any]
Pmf: TypeAlias = dict[int, Fraction]

LARGEST_SIZE: Final = 1 << 22
_LARGEST_PMF: Final = 1 << 20
_SHOWN: Final = 1 << 64


@dataclass(frozen=True, kw_only=True)
class LocalLaw(ABC):
    """A law from cells 0, ..., size-1 to reports 0, ..., reports-1, which is epsilon-local.

    No report is more than e^epsilon times as likely about one cell as about another
    [Dwork-Roth, Definition 12.1].
    """

    kind: ClassVar[str]
    size: int
    epsilon: Fraction

    @property
    @abstractmethod
    def reports(self) -> int:
        """How many reports there are."""

    @abstractmethod
    def sample(self, x: Numbers, draws: Draws) -> Numbers:
        """A report about the cell x; or about each cell of an array, with draws for arrays."""

    @abstractmethod
    def pmf(self, x: int) -> Pmf:
        """The exact probability of every report about the cell x."""

    @abstractmethod
    def to_json(self) -> Json:
        """All that a device needs to know, and to verify."""

    @property
    def report_bytes(self) -> int:
        """How many bytes a report takes."""
        return ((self.reports - 1).bit_length() + 7) // 8

    def clamp(self, x: object) -> int:
        """The nearest cell; what is no whole number goes to the first cell. Nothing raises."""
        return clamped(x, self.size)

    def randomize(self, x: object, *, draws: Draws | None = None) -> int:
        """One report about one person, with entropy from the kernel."""
        drawn: int = self.sample(self.clamp(x), KernelDraws() if draws is None else draws)
        return drawn

    def randomize_many(self, cells: object, *, words: WordSource | None = None) -> Any:
        """One report for every cell of a column."""
        from partita.local.frequency.columns import randomized

        return randomized(self, cells, words)

    def check_report(self, report: object) -> int:
        """The report, if it is one."""
        whole = isinstance(report, Integral) and not isinstance(report, bool)
        exact: int = operator.index(report) if whole else -1  # type: ignore[arg-type]
        if not 0 <= exact < self.reports:
            raise InvalidData("report", f"must be an integer below {_shown(self.reports)}", fix="drop it")
        return exact

    @cached_property
    def digest(self) -> str:
        """A name for exactly this law: SHA-256 of its description, in hex."""
        return digest_of(self.to_json())

    def _enumerable(self) -> range:
        """Every report, if there are not too many to list."""
        rule = f"must leave at most {_LARGEST_PMF} reports to list"
        check(self.reports <= _LARGEST_PMF, "size", rule, given=self.size, fix="lower it")
        return range(self.reports)


def clamped(x: object, size: int) -> int:
    """The cell of 0, ..., size-1 that is nearest to a whole number; the first one for all else."""
    if isinstance(x, Integral) or (isinstance(x, float) and x.is_integer()):
        return min(max(int(x), 0), size - 1)
    return 0


def digest_of(description: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON, in hex."""
    import hashlib

    text = json.dumps(description, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _shown(count: int) -> str:
    return str(count) if count < _SHOWN else f"2^{count.bit_length() - 1}"
