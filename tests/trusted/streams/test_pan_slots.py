"""The two-slot file: one state at any time, old or new, and no way back."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count, cycle, product
from pathlib import Path
from typing import Any, NoReturn

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from partita.errors import InvalidParameter, InvalidState, StreamBusy, StreamError
from partita.trusted.durable import slots as module
from partita.trusted.durable.slots import PanStore, Saved
from partita.trusted.streams.pan_private import PanPrivateCounter

DOOMED = Path(__file__).with_name("pan_doomed.py")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "visits.pan"


def _loaded(path: Path) -> Saved | None:
    with PanStore(path) as store:
        return store.load()


def test_what_was_saved_last_is_loaded(path: Path) -> None:
    """Nothing at first; then always the last state, here and in the next process to open the file."""
    assert _loaded(path) is None
    with PanStore(path) as store:
        for number in range(5):
            store.save(b"%d" % number, sequence=number)
            assert store.load() == (number, b"%d" % number)
    assert _loaded(path) == (4, b"4")


def test_a_counter_goes_on_from_the_file(path: Path) -> None:
    """The state of a counter fits, whatever its variant."""
    counter = PanPrivateCounter(epsilon="0.1", variant="book", live=True)
    counter.update_many([1, 2, 3])
    with PanStore(path) as store:
        store.save(counter.state(), sequence=counter.periods)
    saved = _loaded(path)

    assert saved is not None
    assert PanPrivateCounter.from_state(saved.state).state() == counter.state()


def test_the_file_tells_nothing_by_its_size_or_mode(path: Path) -> None:
    """It has one size from its creation on, and its owner alone may read it."""
    sizes = set()
    with PanStore(path) as store:
        for state in (b"", b"x", b"y" * 8000):
            sizes.add(path.stat().st_size)
            store.save(state, sequence=0)
            sizes.add(path.stat().st_size)

    assert len(sizes) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == [path.name]


def test_sequence_numbers_never_fall(path: Path) -> None:
    """What was fed before is recognised by one number; a lower one is refused, and nothing is written."""
    with PanStore(path) as store:
        store.save(b"a", sequence=7)
        store.save(b"b", sequence=7)
        with pytest.raises(InvalidParameter, match="sequence must be at least 7"):
            store.save(b"c", sequence=6)
    with PanStore(path) as store, pytest.raises(InvalidParameter, match="sequence"):
        store.save(b"c", sequence=6)
    assert _loaded(path) == (7, b"b")


# Erasure.


def _readable(data: bytes) -> list[bytes]:
    """Every state that any 32 bytes of a file decrypt, with whatever is known of its layout."""
    found = []
    for slot in (0, 1):
        start = module._place(slot)
        sealed = data[start : start + module._SLOT]
        for place in range(len(data) - 31):
            with suppress(InvalidTag):
                cipher = AESGCM(data[place : place + 32])
                found.append(cipher.decrypt(module._NONCE, sealed, module._context(slot)))
    return found


def test_one_state_can_be_read_and_no_older_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each save the file holds the key of one state; earlier keys are nowhere in it."""
    keys: list[bytes] = []

    def recorded(size: int) -> bytes:
        keys.append(os.urandom(size))
        return keys[-1]

    with PanStore(path) as store:
        monkeypatch.setattr(module, "entropy", recorded)
        for number in range(1, 4):
            store.save(b"secret %d" % number, sequence=number)
            data = path.read_bytes()
            assert number <= len(keys) <= 2 * number
            assert [key in data for key in keys] == [False] * (len(keys) - 1) + [True]
            assert b"secret" not in data
    (state,) = _readable(path.read_bytes())
    assert b"secret 3" in state


def test_the_search_would_find_a_key_that_stayed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If an old key lay somewhere else in the file, two states could be read, and the search says so."""
    _toss(monkeypatch, 0)
    with PanStore(path) as store:
        store.save(b"one", sequence=1)
        old_key = path.read_bytes()[module._PAGE :][:65]
        store.save(b"two", sequence=2)
    data = path.read_bytes()

    assert len(_readable(data)) == 1
    assert len(_readable(data[:5000] + old_key + data[5000 + 65 :])) == 2


# What one look at the file tells.


def _toss(patch: pytest.MonkeyPatch, *coins: int) -> None:
    """The coins of the saves to come, over and over."""
    tossed = cycle(coins)
    patch.setattr(module, "below", lambda count: next(tossed))


def _slot_law(patch: pytest.MonkeyPatch, path: Path, saves: int) -> Counter[int]:
    """How often each slot is in force after so many saves, over all coins that they may toss."""
    found: Counter[int] = Counter()
    for coins in product(range(2), repeat=saves):
        path.unlink(missing_ok=True)
        _toss(patch, *coins)
        with PanStore(path) as store:
            for number in range(saves):
                store.save(b"state", sequence=number)
        found[path.read_bytes()[module._PAGE]] += 1
    return found


@pytest.mark.parametrize("saves", [1, 2, 3])
def test_the_slot_in_force_says_nothing_about_the_saves(
    path: Path, monkeypatch: pytest.MonkeyPatch, saves: int
) -> None:
    """Both slots have the same probability after any number of saves; without the coin it was the parity."""
    law = _slot_law(monkeypatch, path, saves)
    assert law[0] == law[1] > 0

    monkeypatch.setattr(module, "below", lambda count: 0)
    with PanStore(path) as store:
        before = path.read_bytes()[module._PAGE]
        store.save(b"state", sequence=saves)
        assert path.read_bytes()[module._PAGE] != before


def test_a_slot_never_written_looks_like_one_that_was(path: Path) -> None:
    """A file saved once and one saved often: four slots of random bytes, in which no value is frequent.

    Of 8,192 random bytes a given value is expected 32 times; that any is there 100 times in one of four
    slots has probability below 1e-18.
    """
    other = path.with_name("other.pan")
    for file, saves in ((path, 1), (other, 5)):
        with PanStore(file) as store:
            for number in range(saves):
                store.save(bytes(8000), sequence=number)
        for slot in (0, 1):
            sealed = file.read_bytes()[module._place(slot) :][: module._SLOT]
            assert max(Counter(sealed).values()) < 100


# Crashes.


Torn = Callable[[bytes, int], bytes]
Writes = list[tuple[int, bytes, int]]
CALLS = range(5)
TWICE = range(9)
"""A save replaces the state once or twice, by a coin: two writes and two waits each time."""


class _Crash(BaseException):
    """The machine stops here."""


def _crashing(patch: pytest.MonkeyPatch, at: int, torn: Torn, lost: Callable[[Writes], Writes]) -> None:
    """Stop at the call with this number; a write of it is torn, and some that were not synced are lost."""
    calls, unsynced = count(), Writes()
    pwrite, fsync = os.pwrite, os.fsync

    def stop() -> NoReturn:
        for file, before, start in reversed(lost(unsynced)):
            pwrite(file, before, start)
        raise _Crash

    def write(file: int, data: bytes, start: int) -> int:
        unsynced.append((file, os.pread(file, len(data), start), start))
        if next(calls) == at:
            pwrite(file, torn(data, start), start)
            stop()
        return pwrite(file, data, start)

    def sync(file: int) -> None:
        if next(calls) == at:
            stop()
        fsync(file)
        unsynced.clear()

    patch.setattr(os, "pwrite", write)
    patch.setattr(os, "fsync", sync)


def _tears() -> Iterator[Torn]:
    """A write to a slot may stop anywhere; the key slot lies in one sector, which is whole or untouched."""
    for share in (0.0, 0.001, 0.5, 0.999, 1.0):

        def torn(data: bytes, start: int, share: float = share) -> bytes:
            whole = len(data) if share > 0.5 else 0
            return data[: whole if start == module._PAGE else int(share * len(data))]

        yield torn


LOSSES: tuple[Callable[[Writes], Writes], ...] = (
    lambda unsynced: [],
    lambda unsynced: unsynced,
    lambda unsynced: unsynced[:-1],
)
CRASHES = list(product(CALLS, _tears(), LOSSES))
CRASHES_TWICE = list(product(TWICE, _tears(), LOSSES))


def _after_crash(
    path: Path, at: int, torn: Torn, lost: Callable[[Writes], Writes], coin: int = 0
) -> Saved | None:
    """What is in the file after a crash in the third save."""
    path.unlink(missing_ok=True)
    with PanStore(path) as store:
        store.save(b"older", sequence=0)
        store.save(b"old", sequence=1)
        with pytest.MonkeyPatch.context() as patch, suppress(_Crash):
            _toss(patch, coin)
            _crashing(patch, at, torn, lost)
            store.save(b"new", sequence=2)
    return _loaded(path)


@pytest.mark.parametrize(("coin", "crashes"), [(0, CRASHES), (1, CRASHES_TWICE)])
def test_after_a_crash_there_is_one_state(path: Path, coin: int, crashes: list[Any]) -> None:
    """Stopped at any call, whatever is torn or lost: the old state or the new one, and only one of them."""
    for at, torn, lost in crashes:
        saved = _after_crash(path, at, torn, lost, coin)
        assert saved in ([(2, b"new")] if at >= CALLS[-1] else [(1, b"old"), (2, b"new")])
        assert len(_readable_by_slot(path)) == 1
        with PanStore(path) as store:
            store.save(b"next", sequence=3)
        assert _loaded(path) == (3, b"next")


def _key_first(store: Any, record: bytes) -> None:
    new = module._InForce(slot=1 - store._in_force().slot, key=os.urandom(32))
    module._write(store._file, module._PAGE, module._key_slot(new))
    sealed = module._cipher(new).encrypt(module._NONCE, record, module._context(new.slot))
    module._write(store._file, module._place(new.slot), sealed)


def _same_slot(store: Any, record: bytes) -> None:
    new = module._InForce(slot=store._in_force().slot, key=os.urandom(32))
    sealed = module._cipher(new).encrypt(module._NONCE, record, module._context(new.slot))
    module._write(store._file, module._place(new.slot), sealed)
    module._write(store._file, module._PAGE, module._key_slot(new))


def _unsynced(store: Any, record: bytes) -> None:
    new = module._InForce(slot=1 - store._in_force().slot, key=os.urandom(32))
    sealed = module._cipher(new).encrypt(module._NONCE, record, module._context(new.slot))
    os.pwrite(store._file, sealed, module._place(new.slot))
    module._write(store._file, module._PAGE, module._key_slot(new))


@pytest.mark.parametrize("wrong", [_key_first, _same_slot, _unsynced])
def test_a_wrong_order_of_writes_is_caught(path: Path, monkeypatch: pytest.MonkeyPatch, wrong: Any) -> None:
    """The key before the state, one slot for both, no wait between them: some crash loses both states."""
    right = PanStore._replace

    def replace(store: PanStore, record: bytes) -> None:
        (right if store._in_force() is None else wrong)(store, record)

    monkeypatch.setattr(PanStore, "_replace", replace)
    with pytest.raises(InvalidState):
        deque(_after_crash(path, *crash) for crash in CRASHES)


def _readable_by_slot(path: Path) -> list[bytes]:
    """What the key in the key slot opens: a quick form of `_readable`."""
    data, found = path.read_bytes(), []
    key = data[module._PAGE + 1 :][:32]
    for slot in (0, 1):
        sealed = data[module._place(slot) :][: module._SLOT]
        with suppress(InvalidTag):
            found.append(AESGCM(key).decrypt(module._NONCE, sealed, module._context(slot)))
    return found


def test_a_torn_key_is_a_lost_state_and_never_a_wrong_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a disk tears a sector, the file says so; it never gives a state that was not saved."""
    _toss(monkeypatch, 0)
    with PanStore(path) as store:
        store.save(b"old", sequence=1)
    old = path.read_bytes()
    with PanStore(path) as store:
        store.save(b"new", sequence=2)
    new = path.read_bytes()
    for cut in range(1, 65):
        edge = module._PAGE + cut
        path.write_bytes(new[: module._PAGE] + new[module._PAGE : edge] + old[edge : 2 * module._PAGE]
                         + new[2 * module._PAGE :])  # fmt: skip
        with pytest.raises(InvalidState, match="lost its key"):
            PanStore(path)


@pytest.mark.faults
@pytest.mark.parametrize("call", range(1, 13))
def test_a_killed_process_leaves_what_it_said_it_saved(path: Path, call: int) -> None:
    """kill -9 before any of the first dozen calls: the last number printed is in the file, or the next."""
    run = subprocess.run(
        [sys.executable, str(DOOMED), str(path), str(call)], capture_output=True, text=True, check=False
    )
    printed = len(run.stdout.split())
    saved = _loaded(path)

    assert run.returncode == -9, run.stderr
    number = 0 if saved is None else saved.sequence
    assert printed <= number <= printed + 1
    assert saved is None or saved.state == f"state {number}".encode()
    assert len(_readable_by_slot(path)) == (number > 0)


# Who may use it.


def test_one_store_at_a_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one has the file no other does; a forked child and a closed store do not either."""
    store = PanStore(path)
    with pytest.raises(StreamBusy, match="open elsewhere"):
        PanStore(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(StreamBusy, match="open elsewhere"):
            store.save(b"", sequence=0)
    store.close()
    store.close()
    with pytest.raises(StreamBusy, match="open elsewhere"):
        store.load()
    PanStore(path).close()


def test_files_that_others_may_read_are_refused(path: Path) -> None:
    """Who could read the file may have looked."""
    PanStore(path).close()
    path.chmod(0o640)
    with pytest.raises(StreamError, match="by others"):
        PanStore(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: b"x" + data[1:],
        lambda data: data[: module._PAGE] + b"\2" + data[module._PAGE + 1 :],
        lambda data: data[: module._PAGE] + b"\1" + data[module._PAGE + 1 :],
        lambda data: data[:9000] + bytes([data[9000] ^ 1]) + data[9001:],
        lambda data: bytes(len(data)),
    ],
)
def test_damaged_files_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch, damage: Any) -> None:
    """Only an `InvalidState` comes out, and the file can be opened again when it is mended."""
    _toss(monkeypatch, 0)
    with PanStore(path) as store:
        store.save(b"state", sequence=1)
    data = path.read_bytes()
    path.write_bytes(damage(data))
    with pytest.raises(InvalidState):
        PanStore(path)
    path.write_bytes(data)
    assert _loaded(path) == (1, b"state")


def test_paths_that_are_no_files_are_refused(path: Path) -> None:
    """A folder, a link, a missing folder, no path at all."""
    link = path.with_name("link")
    link.symlink_to(path)
    for wrong in (path.parent, link, path.parent / "none" / "x", 5, "a\0b"):
        with pytest.raises((InvalidParameter, StreamError)):
            PanStore(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("state", [b"x" * 10**5, "text", None])
def test_states_that_do_not_fit_are_refused(path: Path, state: Any) -> None:
    """Nothing is written."""
    with PanStore(path) as store:
        with pytest.raises(InvalidParameter, match="state"):
            store.save(state, sequence=1)
        assert store.load() is None
