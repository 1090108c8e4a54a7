"""Everybody's budget, exactly: in memory, in a file, in batches, and against those who want more."""

from __future__ import annotations

import os
import shutil
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.errors import BudgetExceeded, InvalidParameter, InvalidState, StreamBusy, StreamForked
from partita.local import BudgetFile, BudgetMemory, Budgets

THIRD = Fraction(1, 3)


def test_three_thirds_are_one() -> None:
    """1/3 + 1/3 + 1/3 is accepted at cap 1, and then nothing, however small."""
    budgets = Budgets.new(people=2, cap=1)
    for _ in range(3):
        budgets = budgets.charged([0], THIRD)

    assert budgets.left(0) == 0
    with pytest.raises(BudgetExceeded, match="nobody was charged"):
        budgets.charged([0], Fraction(1, 10**15))
    assert budgets.charged([1], 1).left(1) == 0


@given(st.lists(st.tuples(st.integers(0, 2), st.fractions("1/50", 1, max_denominator=60)), max_size=40))
@settings(max_examples=60)
def test_budgets_are_sums_of_fractions(charges: list[tuple[int, Fraction]]) -> None:
    """What is accepted is exactly what Fractions accept, and what is left is what they leave."""
    budgets, left = Budgets.new(people=3, cap="5/7"), [Fraction(5, 7)] * 3
    for person, price in charges:
        try:
            budgets = budgets.charged([person], price)
        except BudgetExceeded:
            assert price > left[person]
        except InvalidParameter:
            assert lcm(budgets.denominator, price.denominator) * budgets.cap >= 2**62
        else:
            left[person] -= price
        assert [budgets.left(at) for at in range(3)] == left


def test_a_batch_is_charged_as_a_whole() -> None:
    """People who are listed twice pay twice, and if one of them cannot, nobody pays."""
    budgets = Budgets.new(people=4, cap=1).charged([0, 1, 1], "1/2")

    assert [budgets.left(at) for at in range(4)] == [Fraction(1, 2), 0, 1, 1]
    with pytest.raises(BudgetExceeded):
        budgets.charged([3, 2, 1], "1/2")
    with pytest.raises(BudgetExceeded):
        budgets.charged([0] * 10**5, "1/2")
    assert budgets.charged([], 1).spent.tolist() == budgets.spent.tolist()
    assert budgets.unspent().tolist() == [2, 3]


@pytest.mark.parametrize("ids", [[-1], [4], [0, 10**30], [0.5], [True], ["0"], [[0]], 0, None])
def test_people_who_are_not_there_are_refused(ids: object) -> None:
    """With a typed error that names the parameter."""
    with pytest.raises(InvalidParameter, match="ids must be"):
        Budgets.new(people=4, cap=1).charged(ids, THIRD)


def test_denominators_are_bounded() -> None:
    """Prices whose common denominator would need more than 62 bits are refused, and nothing overflows."""
    budgets = Budgets.new(people=1, cap=1)
    for denominator in (10**6 + 3, 10**6 + 33, 10**6 + 37):
        budgets = budgets.charged([0], Fraction(1, denominator))

    with pytest.raises(InvalidParameter, match="common denominator"):
        budgets.charged([0], Fraction(1, 10**6 + 39))
    with pytest.raises(BudgetExceeded):
        budgets.charged([0], 2**80)
    with pytest.raises(InvalidParameter, match="cap"):
        Budgets.new(people=1, cap=2**70)
    for price in (0, -1, "x", float("inf")):
        with pytest.raises(InvalidParameter, match="epsilon"):
            budgets.charged([0], price)


def test_bytes_are_read_strictly() -> None:
    """There and back; anything shorter, longer, or beyond the cap is damaged."""
    budgets = Budgets.new(people=3, cap="3/2").charged([1], THIRD)
    data = budgets.to_bytes()
    read = Budgets.from_bytes(data)

    assert read.spent.tolist() == budgets.spent.tolist()
    assert (read.cap, read.denominator) == (budgets.cap, budgets.denominator)
    over = data[:-8] + (10**9).to_bytes(8, "little")
    negative = data[:-8] + b"\xff" * 8
    for damaged in (
        b"",
        data[:-1],
        data + b"\0",
        over,
        negative,
        bytes(16) + data[16:],
        b"\xff" * 8 + data[8:],
    ):
        with pytest.raises(InvalidState):
            Budgets.from_bytes(damaged)


def test_a_file_remembers(tmp_path: Path) -> None:
    """Open again, budgets are as they were; other terms are refused, and so is a second one who opens it."""
    path = tmp_path / "budgets"
    with BudgetFile(path, people=5, cap=1) as book:
        book.charge([0, 1], THIRD)
        with pytest.raises(StreamBusy):
            BudgetFile(path, people=5, cap=1)
    with BudgetFile(path, people=5, cap=1) as book:
        assert book.now.left(0) == Fraction(2, 3)
    for terms in ({"people": 5, "cap": 2}, {"people": 6, "cap": 1}):
        with pytest.raises(InvalidParameter, match="as in the file"):
            BudgetFile(path, **terms)


def test_a_copy_is_refused(tmp_path: Path) -> None:
    """A copy would spend again what was spent: it knows that it is none, and the first one goes on."""
    path = tmp_path / "budgets"
    with BudgetFile(path, people=5, cap=1) as book:
        book.charge([0], 1)
    shutil.copy(path, tmp_path / "copy")

    with pytest.raises(StreamForked, match="copy"):
        BudgetFile(tmp_path / "copy", people=5, cap=1)
    os.rename(path, tmp_path / "moved")
    with BudgetFile(tmp_path / "moved", people=5, cap=1) as book:
        assert book.now.left(0) == 0


def _restored(path: Path, backup: bytes) -> None:
    """The bytes of a backup in the same inode, as `rm` and `cp` leave them where it is used again."""
    with open(path, "r+b") as file:
        file.write(backup)


def test_a_backup_is_refused_by_whoever_knows_how_many_batches_there_were(tmp_path: Path) -> None:
    """The file alone cannot see that it is older than what was charged; a number kept elsewhere can."""
    path = tmp_path / "budgets"
    with BudgetFile(path, people=5, cap=1) as book:
        book.charge([0], THIRD)
        assert book.batches == 1
    backup = path.read_bytes()
    with BudgetFile(path, people=5, cap=1, at_least=1) as book:
        book.charge([0], THIRD)
        book.charge([1], THIRD)
        assert book.batches == 3
    _restored(path, backup)

    with BudgetFile(path, people=5, cap=1) as book:
        assert (book.batches, book.now.left(0)) == (1, Fraction(2, 3))
    with pytest.raises(StreamForked, match="holds 1 batches, and 3 were charged"):
        BudgetFile(path, people=5, cap=1, at_least=3)
    BudgetFile(path, people=5, cap=1, at_least=1).close()


def test_a_file_that_is_gone_is_not_started_again(tmp_path: Path) -> None:
    """Whoever knows of batches does not get a new file, nor one that nobody was charged in."""
    path = tmp_path / "budgets"
    with pytest.raises(StreamForked, match="holds 0 batches"):
        BudgetFile(path, people=5, cap=1, at_least=2)
    assert not path.exists()
    for wrong in (-1, 0.5, "1", True):
        with pytest.raises(InvalidParameter, match="at_least"):
            BudgetFile(path, people=5, cap=1, at_least=wrong)  # type: ignore[arg-type]


def test_a_refused_batch_is_not_counted(tmp_path: Path) -> None:
    """Only what was charged is a batch, and the number is on the disk with the charge."""
    path = tmp_path / "budgets"
    with BudgetFile(path, people=5, cap=1) as book:
        book.charge([0], 1)
        with pytest.raises(BudgetExceeded):
            book.charge([0], 1)
        assert book.batches == 1
    with BudgetFile(path, people=5, cap=1) as book:
        assert book.batches == 1


def test_a_file_without_batch_numbers_is_read(tmp_path: Path) -> None:
    """Files of earlier versions say 0 for ever; they are counted on from there."""
    path = tmp_path / "budgets"
    with BudgetFile(path, people=5, cap=1) as book:
        book._store.save(book._place + book.now.charged([0], THIRD).to_bytes(), sequence=0)
    with BudgetFile(path, people=5, cap=1) as book:
        assert (book.batches, book.now.left(0)) == (0, Fraction(2, 3))
        book.charge([0], THIRD)
        assert book.batches == 1


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """A flipped bit of the first page, of the key, or of the slot in force, whichever it is, is seen."""
    path = tmp_path / "budgets"
    with BudgetFile(path, people=5, cap=1):
        pass
    whole = path.read_bytes()
    for places in ((3,), (4096,), (4096 + 20,), (8192, 16384), (8192 + 50, 16384 + 50)):
        damaged = bytearray(whole)
        for place in places:
            damaged[place] ^= 1
        with open(path, "r+b") as file:
            file.write(damaged)
        with pytest.raises(InvalidState):
            BudgetFile(path, people=5, cap=1)
    with open(path, "r+b") as file:
        file.write(whole)
    BudgetFile(path, people=5, cap=1).close()


def test_a_failed_write_charges_or_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error of the disk the file is asked again what was spent."""
    from partita.trusted.durable import slots as slots_file

    with BudgetFile(tmp_path / "budgets", people=2, cap=1) as book:
        shipped = slots_file._sync

        def broken(file: int) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(slots_file, "_sync", broken)
        with pytest.raises(Exception, match="could not be read or written"):
            book.charge([0], THIRD)
        monkeypatch.setattr(slots_file, "_sync", shipped)

        assert book.now.left(0) in (1, Fraction(2, 3))
        book.charge([0], THIRD)
        assert book.now.left(0) in (Fraction(2, 3), THIRD)


def test_budgets_in_memory_do_not_survive_a_fork() -> None:
    """A child has a copy, and must not charge it."""
    book = BudgetMemory(people=1, cap=1)
    child = os.fork()
    if not child:
        try:
            book.charge([0], 1)
        except StreamForked:
            os._exit(7)
        os._exit(0)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.faults
@pytest.mark.parametrize("step", range(1, 5))
def test_a_kill_leaves_the_old_or_the_new(tmp_path: Path, step: int) -> None:
    """Killed at any write or wait of a batch of 10^5 people, all of them have paid or none of them."""
    path, people = tmp_path / "budgets", 100_000
    BudgetFile(path, people=people, cap=1).close()
    child = os.fork()
    if not child:
        _charge_and_die(path, people, step)
    os.waitpid(child, 0)

    with BudgetFile(path, people=people, cap=1) as book:
        left = {book.now.left(at) for at in (0, 1, people - 1)}
        numerators = set(book.now.spent.tolist())

    assert len(left) == len(numerators) == 1
    assert left == ({Fraction(1)} if step < 4 else {Fraction(2, 3)})


def _charge_and_die(path: Path, people: int, step: int) -> None:
    """In a child: be killed in the middle of the write of that number, or instead of waiting for the disk."""
    from partita.trusted.durable import slots as slots_file

    book, calls, write, wait = BudgetFile(path, people=people, cap=1), 0, os.pwrite, slots_file._sync

    def counted() -> bool:
        nonlocal calls
        calls += 1
        return calls == step

    def half(file: int, data: Any, start: int) -> int:
        if counted():
            write(file, data[: len(data) // 2 if step == 1 else 0], start)
            os.kill(os.getpid(), 9)
        return write(file, data, start)

    def gone(file: int) -> None:
        if counted():
            os.kill(os.getpid(), 9)
        wait(file)

    os.pwrite, slots_file._sync = half, gone
    book.charge(np.arange(people), THIRD)
    os._exit(0)
