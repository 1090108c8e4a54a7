"""Files appear whole or not at all, and every obstacle is named."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from partita.errors import InvalidParameter, InvalidRelease, PartitaError
from partita.public.file import encode, load, reserve, save, write_temporary

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

    monkeypatch.setattr("partita.storage.sync_folder", fail)
    path = tmp_path / "a.parquet"
    with pytest.raises(InvalidParameter, match=r"^path holds the whole file now.*Input/output error"):
        save(release("tree"), path)

    assert load(path).columns == ("tree",)


def _leftover(folder: Path, name: str | None = None) -> Path:
    """What a killed process leaves: a file with the name that it had, which nobody has locked."""
    with reserve(folder / "a.parquet") as place:
        beside = place._beside
    left = folder / (name or beside.name)
    left.write_bytes(b"half of a release")
    return left


def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    """The next process that writes to the folder removes it, whatever process has its number now."""
    mine = _leftover(tmp_path)
    others = [
        _leftover(tmp_path, mine.name.replace(f"-{os.getpid()}-", f"-{pid}-")) for pid in (1, 4_000_000)
    ]
    save(release("tree"), tmp_path / "a.parquet")

    assert not any(path.exists() for path in (mine, *others))
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_files_of_living_processes_are_kept(tmp_path: Path) -> None:
    """Two that write to one folder at the same time leave each other alone, in one process and in two."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDS, str(tmp_path / "b.parquet")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        held = Path(child.stdout.readline().strip()) if child.stdout is not None else tmp_path
        with reserve(tmp_path / "a.parquet") as one:
            save(release("tree"), tmp_path / "c.parquet")
            assert one._beside.exists()
            assert held.exists()
        child.communicate("end")
    assert held.exists()
    save(release("tree"), tmp_path / "d.parquet")

    assert held.name.endswith(".part")
    assert not held.exists()


_HOLDS = """
import os, sys
from partita.storage import Temporary
from pathlib import Path
held = Temporary(Path(sys.argv[1]))
print(held._beside, flush=True)
sys.stdin.read()
os._exit(0)
"""


def test_files_that_may_belong_to_others_are_kept(tmp_path: Path) -> None:
    """Other machines, files that are not locked, other names, links and folders are left alone."""
    name = _leftover(tmp_path).name
    boot = name.split("-")[1]
    (tmp_path / name).unlink()
    (tmp_path / "precious").write_text("precious")
    kept = [
        f".partita-{os.getpid()}-0.part",
        name.replace(boot, "0" * len(boot)),
        name + ".bak",
        "x" + name,
        name.replace("-0.part", "-one.part"),
    ]
    for other in kept:
        (tmp_path / other).write_text("not ours")
    (tmp_path / name.replace("-0.part", "-7.part")).symlink_to(tmp_path / "precious")
    (tmp_path / name.replace("-0.part", "-8.part")).mkdir()
    before = sorted(os.listdir(tmp_path))
    save(release("tree"), tmp_path / "a.parquet")

    assert sorted(os.listdir(tmp_path)) == sorted([*before, "a.parquet"])
    assert (tmp_path / "precious").read_text() == "precious"


def test_files_of_other_users_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of several users each removes files of their own only."""
    left = _leftover(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    save(release("tree"), tmp_path / "a.parquet")

    assert left.exists()


def test_a_new_file_that_is_taken_for_abandoned_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who looks between making and locking may remove the file; the next name is used then."""
    real, times = fcntl.flock, iter(range(9))

    def flock(handle: int, operation: int) -> None:
        if next(times) == 0:
            [made] = tmp_path.glob(".partita-*.part")
            made.unlink()
        real(handle, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with reserve(tmp_path / "a.parquet") as place:
        assert place._beside.name.endswith("-1.part")
        place.write(encode(release("tree")))
        place.commit()

    assert load(tmp_path / "a.parquet").columns == ("tree",)


def test_where_files_cannot_be_locked_they_have_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody may take them for abandoned, so nobody removes them; saving works as before."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with reserve(tmp_path / "a.parquet") as place:
        assert place._beside.name == f".partita-{os.getpid()}-0.part"
        assert os.listdir(tmp_path) == [place._beside.name]
        place.write(encode(release("tree")))
        place.commit()
    assert os.listdir(tmp_path) == ["a.parquet"]
