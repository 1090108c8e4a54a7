"""Questions of every kind about a table, asked one by one: how far answers are off, and their intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.accuracy.score import Json, short
from benchmarks.accuracy.tables_sets import Table
from partita import Release
from partita.arrays import Bools, Floats

Generator = np.random.Generator

CONFIDENCE = 0.95
SET_OF_LABELS = 4
"""Labels in a random set at most: over four columns they make 256 boxes."""
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Selection:
    """Some values of a column: as a question names them, and whether each code is among them."""

    value: object
    holds: Bools


@dataclass(frozen=True, eq=False)
class Question:
    """A selection for each of some columns, by their numbers."""

    table: Table
    selections: Mapping[int, Selection]

    @property
    def where(self) -> dict[str, object]:
        """As a release takes it."""
        return {self.table.columns[column]: chosen.value for column, chosen in self.selections.items()}

    @cached_property
    def truth(self) -> int:
        """How many rows there are in fact."""
        held = [chosen.holds[self.table.rows[:, column]] for column, chosen in self.selections.items()]
        return int(np.logical_and.reduce(held).sum())


def select_code(table: Table, column: int, code: int) -> Selection:
    """One value or label."""
    holds = np.arange(table.sizes[column]) == code
    return Selection(code if table.ordered[column] else str(code), holds)


def select_range(table: Table, column: int, low: int, high: int) -> Selection:
    """A range of an ordered column."""
    codes = np.arange(table.sizes[column])
    return Selection((low, high), (codes >= low) & (codes <= high))


def select_some(table: Table, column: int, rng: Generator) -> Selection:
    """A range between the values of two rows, or the labels of a few rows."""
    if table.ordered[column]:
        low, high = sorted(rng.choice(table.rows[:, column], 2).tolist())
        return select_range(table, column, low, high)
    drawn = np.unique(rng.choice(table.rows[:, column], int(rng.integers(1, SET_OF_LABELS + 1))))
    holds = np.isin(np.arange(table.sizes[column]), drawn)
    return Selection([str(code) for code in drawn.tolist()], holds)


def draw_code(table: Table, column: int, rng: Generator) -> Selection:
    """The value of a row, or any value: by turns, so that rare ones and empty cells are asked for too."""
    from_row = rng.random() < 0.5
    code = rng.choice(table.rows[:, column]) if from_row else rng.integers(table.sizes[column])
    return select_code(table, column, int(code))


def pick(columns: Sequence[int], number: int, rng: Generator) -> list[int]:
    return sorted(int(column) for column in rng.choice(columns, number, replace=False))


def ask_labels(table: Table, number: int, rng: Generator) -> list[Question]:
    """Labels of categories, all of them if there are few."""
    every = [(column, code) for column in categories(table) for code in range(table.sizes[column])]
    chosen = rng.permutation(len(every))[:number]
    return [Question(table, {c: select_code(table, c, code)}) for c, code in (every[i] for i in chosen)]


def ask_cells(table: Table, number: int, rng: Generator) -> list[Question]:
    """Cells of two columns: half of them those of a row, the others anywhere."""
    return [ask_cell(table, place % 2 == 0, rng) for place in range(number)]


def ask_cell(table: Table, at_row: bool, rng: Generator) -> Question:
    pair = pick(range(len(table.columns)), 2, rng)
    row = table.rows[rng.integers(len(table.rows))]
    codes = row[pair] if at_row else [rng.integers(table.sizes[column]) for column in pair]
    chosen = zip(pair, codes, strict=True)
    return Question(table, {column: select_code(table, column, int(code)) for column, code in chosen})


def ask_label_ranges(table: Table, number: int, rng: Generator) -> list[Question]:
    """A label, and a range of another column."""
    found = []
    for _ in range(number):
        label, other = int(rng.choice(categories(table))), int(rng.choice(ordered(table)))
        sides = {label: draw_code(table, label, rng), other: select_some(table, other, rng)}
        found.append(Question(table, sides))
    return found


def ask_groups(table: Table, number: int, rng: Generator) -> list[Question]:
    """Group-by: each label of a category, of the rows in a random selection of another column."""
    found: list[Question] = []
    while len(found) < number:
        label = int(rng.choice(categories(table)))
        other = int(rng.choice([column for column in range(len(table.columns)) if column != label]))
        given = select_some(table, other, rng)
        codes = rng.permutation(table.sizes[label])[:10]
        found += [
            Question(table, {label: select_code(table, label, int(code)), other: given}) for code in codes
        ]
    return found[:number]


def ask_boxes(table: Table, number: int, rng: Generator, *, columns: int) -> list[Question]:
    """Ranges of ordered columns and sets of labels, over so many columns."""
    places = [pick(range(len(table.columns)), columns, rng) for _ in range(number)]
    return [Question(table, {column: select_some(table, column, rng) for column in each}) for each in places]


def ask_ranges(table: Table, number: int, rng: Generator) -> list[Question]:
    """Ranges of one ordered column between the values of two rows."""
    places = rng.choice(ordered(table), number).tolist()
    return [Question(table, {column: select_some(table, column, rng)}) for column in places]


def ask_values(table: Table, number: int, rng: Generator) -> list[Question]:
    """Single values of one ordered column, by turns of a row and any."""
    places = rng.choice(ordered(table), number).tolist()
    return [Question(table, {column: draw_code(table, column, rng)}) for column in places]


def ordered(table: Table) -> list[int]:
    return [column for column, is_ordered in enumerate(table.ordered) if is_ordered]


def categories(table: Table) -> list[int]:
    return [column for column, is_ordered in enumerate(table.ordered) if not is_ordered]


def ask(table: Table, number: int, seed: int) -> dict[str, list[Question]]:
    """So many questions of every kind that the table has columns for."""
    rng = np.random.default_rng(seed)
    kinds: dict[str, Callable[[Table, int, Generator], list[Question]]] = {"cell": ask_cells}
    if categories(table):
        kinds |= {"label": ask_labels, "group": ask_groups}
        kinds |= {"label_range": ask_label_ranges} if any(table.ordered) else {}
    found = {kind: make(table, number, rng) for kind, make in kinds.items()}
    for columns in range(2, min(4, len(table.columns)) + 1):
        found[f"box_{columns}"] = ask_boxes(table, number, rng, columns=columns)
    if any(table.ordered):
        found |= {"range": ask_ranges(table, number, rng), "value": ask_values(table, number, rng)}
    return found


@dataclass(frozen=True, eq=False)
class Seen:
    """Answers of one or several releases beside the truth, with the ends of their intervals."""

    values: Floats
    lows: Floats
    highs: Floats
    errors: Floats
    truth: Floats

    @classmethod
    def of(cls, release: Release, questions: Sequence[Question]) -> Seen:
        """Every question is asked alone, as users do."""
        answers = [release.count(question.where) for question in questions]
        lows, highs = np.array([answer.interval(CONFIDENCE) for answer in answers]).T
        values, errors = np.array([(answer.value, answer.error) for answer in answers]).T
        return cls(values, lows, highs, errors, np.array([float(question.truth) for question in questions]))

    @classmethod
    def joined(cls, parts: Sequence[Seen]) -> Seen:
        """Several releases together."""
        names = ("values", "lows", "highs", "errors", "truth")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    @property
    def figures(self) -> Json:
        """Errors, the share of intervals that hold the truth, and widths over the true mean error.

        `width` is the mean half-width of the intervals, and `predicted` the mean error that normal errors of
        the stated size would have, each over the mean error. Exact normal intervals have a width of 2.46.
        """
        missed = np.abs(self.values - self.truth)
        held = (self.lows <= self.truth + _ROUNDING) & (self.truth <= self.highs + _ROUNDING)
        mean = max(float(missed.mean()), 1e-9)
        return {
            "RMSE": short(float(np.sqrt((missed**2).mean()))),
            "mean": short(mean),
            "covered": short(float(held.mean())),
            "width": short(float((self.highs - self.lows).mean()) / 2 / mean),
            "predicted": short(float(self.errors.mean()) * (2 / np.pi) ** 0.5 / mean),
        }
