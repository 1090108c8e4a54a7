"""The nouns of the report: questions, the settings they are asked in, who answers, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import sqrt
from typing import Any, Literal, TypeAlias

import numpy as np

from benchmarks.peers.worker import Method, Problem

Kind: TypeAlias = Literal["ours", "paper", "peer"]
"""A mechanism of the library, a published one written for the benchmark, another library."""

Miss: TypeAlias = Callable[[Problem, Any], float]
"""How far the answers of one release are from the truth."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is measured: in a quick run little, to see that it runs."""

    quick: bool = False

    @property
    def releases(self) -> int:
        """How many releases are made where they are fast."""
        return self.some(10)

    def first(self, settings: Iterator[Setting]) -> Iterator[Setting]:
        """All settings, or in a quick run the first of them."""
        return islice(settings, 1 if self.quick else None)

    def rows(self, full: int) -> int:
        """How many rows a set of data has."""
        return min(full, 2_000) if self.quick else full

    def some(self, full: int) -> int:
        """How many releases are made where each of them is slow."""
        return min(full, 2) if self.quick else full


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One set of data at one epsilon, with all that a method needs to know."""

    data: str
    epsilon: str
    problem: Problem

    @property
    def label(self) -> str:
        return f"{self.data}, epsilon {self.epsilon}"


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """A method that runs in this process."""

    name: str
    kind: Kind
    method: Method
    settings: str


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked, of which data, and who of us and of the papers answers."""

    name: str
    title: str
    about: str
    unit: str
    settings: Callable[[Effort], Iterator[Setting]]
    contestants: Sequence[Contestant]
    miss: Miss


@dataclass(frozen=True, kw_only=True)
class Row:
    """The error of one method in one setting: mean over fresh releases, with its standard error."""

    question: str
    data: str
    epsilon: str
    method: str
    kind: Kind
    error: float
    standard_error: float
    releases: int
    releasing: float
    answering: float

    @property
    def label(self) -> str:
        return f"{self.data}, epsilon {self.epsilon}"

    @property
    def seconds(self) -> float:
        """Of a release with the answers to all questions."""
        return self.releasing + self.answering


@dataclass(frozen=True)
class Failure:
    """What a peer could not do, and why, in one line."""

    peer: str
    what: str
    reason: str


def row_of(question: Question, setting: Setting, method: str, kind: Kind, measured: dict[str, Any]) -> Row:
    """From the answers of fresh releases to the figures of a row."""
    misses = np.array([question.miss(setting.problem, answers) for answers in measured["answers"]])
    deviation = float(misses.std(ddof=1)) if misses.size > 1 else 0.0
    return Row(
        question=question.name,
        data=setting.data,
        epsilon=setting.epsilon,
        method=method,
        kind=kind,
        error=short(misses.mean()),
        standard_error=short(deviation / sqrt(misses.size)),
        releases=misses.size,
        releasing=short(np.median(measured["releasing"])),
        answering=short(np.median(measured["answering"])),
    )


def mean_miss(problem: Problem, answers: Any) -> float:
    """The mean distance of all answers from `truth`."""
    return float(np.abs(answers - problem["truth"]).mean())


def short(figure: Any) -> float:
    """Four digits: more would be noise."""
    return float(f"{float(figure):.4g}")
