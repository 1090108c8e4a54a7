"""Files appear whole or not at all, and every obstacle is named."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from partita.errors import InvalidParameter, InvalidRelease, PartitaError
from partita.releases.file import encode, load, reserve, save, write_temporary

from .specimens import release


@pytest.fixture
def umask() -> Iterator[None]:
    """Put the process's mask back."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_nothing_is_overwritten_unless_told(tmp_path: Path) -> None:
    """A second save is refused and changes nothing; with `overwrite=True` it replaces the file."""
    path = tmp_path / "a.parquet"
    save(release("tree"), path)
    before = path.read_bytes()

    with pytest.raises(InvalidParameter, match=r"^path must not exist yet, got .*; choose another, or pass"):
        save(release("laplace"), path)
    assert path.read_bytes() == before
    save(release("laplace"), path, overwrite=True)
    assert load(path).columns == ("laplace",)
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    """Whoever commits first has the name; the other is refused and leaves nothing behind."""
    path = tmp_path / "a.parquet"
    with write_temporary(release("tree"), path) as one, write_temporary(release("laplace"), path) as other:
        assert not path.exists()
        one.commit()
        with pytest.raises(InvalidParameter, match="must not exist yet"):
            other.commit()

    assert load(path).columns == ("tree",)
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_without_hard_links_files_are_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some disks know one name per file only; saving works there, and still keeps what is there."""

    def refuse(*names: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "a.parquet"
    save(release("tree"), path)
    assert load(path).columns == ("tree",)
    with write_temporary(release("laplace"), tmp_path / "b.parquet") as late:
        (tmp_path / "b.parquet").write_text("mine")
        with pytest.raises(InvalidParameter):
            late.commit()
    assert (tmp_path / "b.parquet").read_text() == "mine"


def test_what_is_not_committed_is_removed(tmp_path: Path) -> None:
    """An error inside the block leaves the folder as it was."""
    place = reserve(tmp_path / "a.parquet")
    place.write(encode(release("tree")))
    assert len(os.listdir(tmp_path)) == 1
    with pytest.raises(KeyboardInterrupt), place:
        raise KeyboardInterrupt

    assert os.listdir(tmp_path) == []


def test_a_release_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    """The file beside the path goes when the release turns out to be none."""
    with pytest.raises(AttributeError):
        save(object(), tmp_path / "a.parquet")  # type: ignore[arg-type]

    assert os.listdir(tmp_path) == []


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o000, 0o644)])
def test_the_mask_of_the_process_is_obeyed(tmp_path: Path, mask: int, mode: int) -> None:
    """A release is public: readable by all, unless the process says otherwise; never writable by others."""
    os.umask(mask)
    save(release("tree"), tmp_path / "a.parquet")

    assert stat.S_IMODE((tmp_path / "a.parquet").stat().st_mode) == mode


@pytest.mark.parametrize("path", ["missing/a.parquet", "file/a.parquet", "", "x" * 300, "folder"])
def test_a_path_that_cannot_be_written_is_named_early(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reserving a path says what is wrong with it."""
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidParameter, match=r"^path must "), reserve(path, overwrite=True) as place:
        place.commit()


@pytest.mark.parametrize("path", [None, 3, b"a.parquet", "nul\0"])
def test_a_path_is_text(path: Any) -> None:
    """Anything else is refused, for reading and for writing."""
    for act in (load, reserve):
        with pytest.raises(InvalidParameter, match="path must be the path of a file"):
            act(path)


@pytest.mark.parametrize(
    ("name", "said"),
    [("missing", "cannot be read .No such file"), ("folder", "is not a file"), ("pipe", "is not a file")],
)
def test_only_files_are_read(tmp_path: Path, name: str, said: str) -> None:
    """A folder is refused, and so is a pipe, without waiting for somebody to write to it."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidRelease, match=f"^release '.*{name}' {said}"):
        load(tmp_path / name)


def test_a_file_may_not_be_larger_than_allowed(tmp_path: Path) -> None:
    """The limit is the caller's, and it is exact."""
    path = tmp_path / "a.parquet"
    save(release("tree"), path)
    size = path.stat().st_size

    assert load(path, largest=size).columns == ("tree",)
    with pytest.raises(PartitaError, match=f"is longer than {size - 1} bytes"):
        load(path, largest=size - 1)


def test_only_the_file_that_was_begun_is_written(tmp_path: Path) -> None:
    """Whoever puts a link in the place of the file beside the path does not get another file written."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    with reserve(tmp_path / "a.parquet") as place:
        [beside] = tmp_path.glob(".partita-*.part")
        beside.unlink()
        beside.symlink_to(victim)
        place.write(encode(release("tree")))

    assert victim.read_text() == "precious"


def test_what_stands_at_the_path_is_known_by_more_than_its_name(tmp_path: Path) -> None:
    """A file has arrived once it was moved, and not because another one is there."""
    path, seen = tmp_path / "a.parquet", []
    with reserve(path) as place:
        place.write(encode(release("tree")))
        seen.append(place.arrived)
        path.write_text("mine")
        seen.append(place.arrived)
        path.unlink()
        place.commit()
        seen.append(place.arrived)

    assert seen == [False, False, True]


def test_a_folder_that_cannot_be_synced_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is whole and in its place then, and the error says so."""

    def fail(folder: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("partita.releases.file_disk._sync_folder", fail)
    path = tmp_path / "a.parquet"
    with pytest.raises(InvalidParameter, match=r"^path holds the whole file now.*Input/output error"):
        save(release("tree"), path)

    assert load(path).columns == ("tree",)
