"""Devices with many answers, randomizers of many cells, columns of many people: the same laws as for few."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from partita.errors import BudgetExceeded
from partita.local import columns
from partita.local.device import Device
from partita.local.encodings import OneBit
from partita.local.question import Frequency, Mean
from partita.local.randomizer import WHOLE, KernelDraws, Randomizer, UnaryEncoding
from partita.testing import EndlessTape
from partita.trusted.noise import kernel

from .laws import column_law, device_law, loses_at_most, made

QUESTION = Frequency(1000, epsilon="1/90")
ROUNDS = [f"round {number}" for number in range(91)]
ONE = Fraction(1)


def test_a_budget_of_ninety_parts_pays_ninety_times(tmp_path: Path) -> None:
    """The ninety-first answer is refused, every answer is given again as it was, and each has its own id."""
    path = tmp_path / "device.json"
    said = [Device(path, budget=1).answer(QUESTION, 7, name=name) for name in ROUNDS[:45]]
    device = Device(path, budget=1)
    said += [device.answer(QUESTION, 8, name=name) for name in ROUNDS[45:90]]

    for each in (device, Device(path, budget=1)):
        assert (each.spent, each.left) == (Fraction(1), Fraction(0))
        assert [each.answer(QUESTION, 9, name=name) for name in ROUNDS[:90]] == said
        with pytest.raises(BudgetExceeded):
            each.answer(QUESTION, 7, name=ROUNDS[90])
    assert len({report.id for report in said}) == 90
    assert len(json.loads(path.read_bytes())["memo"]) == 90


def test_ids_of_reports_name_neither_device_nor_question(tmp_path: Path) -> None:
    """No two reports have one id, be they of one device, of one question, or of one value."""
    devices = [Device(tmp_path / f"{number}.json", budget=20) for number in range(3)]
    asked = [Frequency(10, epsilon=1), Frequency(11, epsilon=1), Mean(0, 1, epsilon=1)]
    ids = [
        device.answer(question, 1, name=name).id for device, question, name in product(devices, asked, "ab")
    ]

    assert len(set(ids)) == len(ids)
    assert len({id[:8] for id in ids}) == len({id[-8:] for id in ids}) == len(ids)


def test_a_device_draws_each_answer_afresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In later rounds too the report is drawn from the randomizer, and no earlier one is used again."""
    asked: list[int] = []

    def randomize(self: Any, value: Any, *, draws: Any = None) -> int:
        asked.append(value)
        return len(asked)

    monkeypatch.setattr(Frequency, "randomize", randomize)
    device = Device(tmp_path / "device.json", budget=1)

    assert [device.answer(QUESTION, n, name=ROUNDS[n]).value for n in range(80)] == list(range(1, 81))
    assert asked == list(range(80))


MANY = [made(kind, 100, ONE) for kind in ("response", "hadamard", "one-bit")]
many_cells = pytest.mark.parametrize("randomizer", MANY, ids=lambda randomizer: randomizer.kind)


@many_cells
def test_a_device_samples_exactly_its_law_of_a_hundred_cells(randomizer: Randomizer) -> None:
    """The last cell and one beyond the first 64, over all branches of all draws; epsilon is kept."""
    laws = {x: device_law(randomizer, x) for x in (0, 64, 99)}

    assert all(law == randomizer.pmf(x) for x, law in laws.items())
    assert all(loses_at_most(ONE, laws[0], laws[x]) for x in (64, 99))


@many_cells
def test_a_column_has_the_same_law_of_a_hundred_cells(
    monkeypatch: pytest.MonkeyPatch, randomizer: Randomizer
) -> None:
    """`randomize_many` of one cell, for a cell beyond the first 64."""
    for x in (65, 99):
        expected = {(report,): chance for report, chance in randomizer.pmf(x).items()}

        assert column_law(monkeypatch, randomizer, [x]) == expected


def test_a_place_of_many_is_sampled_as_listed() -> None:
    """A window beyond the first 64 places."""
    piecewise = made("piecewise", 66, Fraction(4))

    assert device_law(piecewise, 65) == piecewise.pmf(65)


class _DrawLog:
    """Draws that say what they are asked for, of a device whose numbers are all zero."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, int]] = []

    def below(self, count: int) -> int:
        self.asked.append(("below", count, 1))
        return 0

    def row(self, threshold: int, width: int) -> int:
        self.asked.append(("row", threshold, width))
        return (1 << width) - 1

    def with_bit(self, row: int, place: int, bit: int) -> int:
        return row & ~(1 << place) | bit << place


@pytest.mark.parametrize("size", [65, 1000, 5000])
def test_every_bit_of_a_long_row_is_random(size: int) -> None:
    """A bit for each cell with the same chance, and a fair coin at the place of the cell."""
    unary = UnaryEncoding(size=size, epsilon=ONE)
    for x in (0, 63, 64, size - 1):
        draws: Any = _DrawLog()
        report = unary.randomize(x, draws=draws)

        assert draws.asked == [("row", WHOLE - unary.threshold, size), ("below", 2, 1)]
        assert report == (1 << size) - 1 - (1 << x)


@pytest.mark.parametrize("kind", ["response", "hadamard", "one-bit"])
def test_reports_of_different_blocks_are_independent(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The law of three reports that are made in blocks of two is the product of their laws."""
    monkeypatch.setattr(columns, "_BLOCK", 2)
    randomizer, cells = made(kind, 2, ONE), [1, 0, 1]
    laws = [randomizer.pmf(x) for x in cells]

    expected = {
        reports: laws[0][reports[0]] * laws[1][reports[1]] * laws[2][reports[2]] for reports in product(*laws)
    }

    assert column_law(monkeypatch, randomizer, cells) == expected


@pytest.mark.parametrize("kind", ["response", "projective", "hadamard", "unary", "hashing", "piecewise"])
def test_no_block_of_a_long_column_repeats_another(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """People who hold the same cell have reports of their own, in each of five blocks."""
    monkeypatch.setattr(columns, "_BLOCK", 64)
    reports = made(kind, 100, ONE).randomize_many(np.full(320, 7), words=EndlessTape(kind))
    blocks = [reports[start : start + 64] for start in range(0, 320, 64)]

    assert not any(np.array_equal(one, other) for one, other in combinations(blocks, 2))


class _ColumnThresholds:
    """Draws of a column that keep the thresholds they are given."""

    def __init__(self) -> None:
        self.thresholds: list[int] = []
        self._columns = columns.ColumnDraws(1, EndlessTape("ramp"))

    def chance(self, threshold: Any) -> Any:
        self.thresholds += threshold.tolist()
        return self._columns.chance(threshold)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._columns, name)


@pytest.mark.parametrize("x", [0, 1, 2**19, 2**20 - 1, 2**20])
def test_the_chance_of_one_bit_is_the_same_in_a_column(x: int) -> None:
    """The threshold of a column is that of a device for all numbers, also the largest, and keeps epsilon."""
    bit, draws = OneBit(epsilon=ONE), _ColumnThresholds()
    bit.sample(np.array([x]), cast("Any", draws))

    assert [Fraction(threshold, WHOLE) for threshold in draws.thresholds] == [bit.pmf(x)[1]]
    assert loses_at_most(ONE, bit.pmf(x), bit.pmf(0))


@pytest.mark.parametrize("width", [1, 64, 65, 1000])
def test_every_bit_of_a_row_has_a_word_of_its_own(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Bit i of a device's row is one exactly if word i of the kernel is below the threshold."""
    words = EndlessTape("row").take(width)
    asked: list[int] = []

    def entropy(count: int) -> bytes:
        asked.append(count)
        return words.tobytes()

    monkeypatch.setattr(kernel, "entropy", entropy)
    threshold = WHOLE // 3
    row = KernelDraws().row(threshold, width)

    assert asked == [8 * width]
    assert [row >> place & 1 for place in range(width)] == [int(word < threshold) for word in words.tolist()]
