"""A sketch in a file: one state at any time, every output paid for before it is seen."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from partita.errors import (
    BudgetExceeded,
    EntropyError,
    InvalidParameter,
    InvalidState,
    PartitaError,
    StreamBusy,
    StreamError,
)
from partita.pan import Density, Distinct, RampRegisters, Registers, SketchFile
from partita.trusted.durable import slots
from partita.trusted.durable.slots import PanStore

SKETCHES: list[Any] = [
    lambda: Density(universe=50_000, epsilon=1, releases=2),
    lambda: Registers(universe=20_000, epsilon=1, releases=2),
    lambda: RampRegisters(universe=2000, epsilon=1, tops=[1, 2], releases=2),
    lambda: Distinct(epsilon=1, releases=2),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clinic.pan"


@pytest.mark.parametrize("make", SKETCHES)
def test_a_sketch_lives_in_its_file(path: Path, make: Any) -> None:
    """Made, updated, released and gone on with: each time from the bytes of the file, whose size stays."""
    SketchFile.create(path, make()).close()
    size = path.stat().st_size
    with SketchFile(path) as file:
        file.update_many(range(100))
        state = file.sketch.state()
    with SketchFile(path) as file:
        assert file.sketch.state() == state
        file.release(file.sketch.names[0])
    with SketchFile(path) as file:
        assert file.sketch.releases_left == 1
        file.announce_intrusion()
    with SketchFile(path) as file, pytest.raises(BudgetExceeded):
        file.release(file.sketch.names[0])
    assert path.stat().st_size == size
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == [path.name]


def test_an_output_is_paid_for_before_it_is_seen(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk fails, nothing is returned; if the process ends after the save, the share is gone."""
    SketchFile.create(path, Density(universe=10, epsilon=1)).close()
    file = SketchFile(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", _full)
        with pytest.raises(StreamError):
            file.release("density")
    file.close()
    with SketchFile(path) as again:
        again.release("density")
    with SketchFile(path) as spent, pytest.raises(BudgetExceeded):
        spent.release("density")


@pytest.mark.parametrize("act", [lambda file: file.update_many([1]), lambda file: file.announce_intrusion()])
def test_a_failed_save_leaves_one_state(path: Path, monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
    """The one in the file: the sketch in memory is erased and does not go on, and the file is closed."""
    file = SketchFile.create(path, Density(universe=1000, epsilon=1, epochs=2))
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", _full)
        with pytest.raises(StreamError):
            act(file)

    assert not any(table.any() for table in file.sketch._tables())
    with pytest.raises(EntropyError):
        file.sketch.state()
    with pytest.raises(PartitaError):
        act(file)
    assert path.read_bytes() == before
    with SketchFile(path) as again:
        again.update_many([1])


def test_an_untouched_file_looks_like_an_updated_one(path: Path) -> None:
    """Beside the key, both are two slots of random bytes after the same first page; no page is empty."""
    pages = []
    for name, batches in (("untouched", 0), ("updated", 3)):
        file = path.with_name(name)
        with SketchFile.create(file, Density(universe=1000, epsilon=1)) as made:
            for _ in range(batches):
                made.update_many([1, 2, 3])
        data = file.read_bytes()
        pages.append([data[start : start + 4096] for start in range(0, len(data), 4096)])

    assert pages[0][0] == pages[1][0]
    assert pages[0][1][65:] == pages[1][1][65:]
    assert min(len(set(page)) for each in pages for page in each[2:]) > 200


def _full(*_: object) -> int:
    raise OSError(28, "No space left on device")


def test_the_state_before_cannot_be_read_any_more(path: Path) -> None:
    """After an update and after an announcement the file holds one key, and not the one before."""
    keys = []
    with SketchFile.create(path, Density(universe=10_000, epsilon=1, epochs=3)) as file:
        for act in (lambda: file.update_many([1]), file.announce_intrusion, lambda: file.release("density")):
            keys.append(path.read_bytes()[slots._PAGE :][1:33])
            act()
    data = path.read_bytes()
    assert not any(key in data for key in keys)


def test_names_are_given_again(path: Path) -> None:
    """The file does not hold the list of ids."""
    names = ["ann", "bob"]
    SketchFile.create(path, Density(universe=names, epsilon=1)).close()
    with SketchFile(path, universe=names) as file:
        file.update_many(["bob"])
    with SketchFile(path) as file, pytest.raises(InvalidParameter, match="given again"):
        file.update_many(["bob"])
    with pytest.raises(InvalidParameter, match="universe"):
        SketchFile(path, universe=["ann", "eve"])


def test_files_that_are_no_sketches_are_refused(path: Path) -> None:
    """Missing, taken, open elsewhere, empty, of a counter, damaged."""
    with pytest.raises(StreamError):
        SketchFile(path)
    PanStore(path).close()
    with pytest.raises(InvalidState, match="never saved"):
        SketchFile(path)
    with pytest.raises(InvalidParameter, match="must not exist"):
        SketchFile.create(path, Density(universe=4, epsilon=1))
    with PanStore(path) as store:
        store.save(b"something else", sequence=0)
    with pytest.raises(InvalidState, match="kind"):
        SketchFile(path)
    other = path.with_name("other.pan")
    with SketchFile.create(other, Distinct(epsilon=1)), pytest.raises(StreamBusy):
        SketchFile(other)
    with pytest.raises(InvalidParameter, match="universe must be left out"):
        SketchFile(other, universe=5)
    with pytest.raises(StreamError):
        SketchFile.create(path / "none" / "x", Density(universe=4, epsilon=1))


@pytest.mark.parametrize("room", [0, 8000, 8161, 10**6])
def test_slots_have_the_room_that_was_asked_for(path: Path, room: int) -> None:
    """A state of that size fits; what a counter has is the least."""
    with PanStore.new(path, room=room) as store:
        store.save(b"x" * room, sequence=3)
    with PanStore(path) as store:
        assert store.load() == (3, b"x" * room)
        with pytest.raises(InvalidParameter, match="state must be at most"):
            store.save(b"x" * (room + 3 * 4096), sequence=3)


def test_a_file_whose_size_was_changed_is_refused(path: Path) -> None:
    """The first page says how large slots are, and the file must be as large."""
    with PanStore.new(path, room=10**5) as store:
        store.save(b"state", sequence=0)
    data = path.read_bytes()
    for damaged in (data[: 2 * 4096 + 2 * 2 * 4096], data + bytes(2 * 4096), data[:-1], data[:4096]):
        path.write_bytes(damaged)
        with pytest.raises(InvalidState):
            PanStore(path)
