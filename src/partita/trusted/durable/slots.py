"""A pan-private counter in a file of two slots: no events, no log, and a lost period is lost.

    page 0   what this file is, and how large its slots are
    page 1   the key slot: which slot is in force, its key, a checksum
    then     slot 0 and slot 1, each a state encrypted under a key of its own

Of two states, the older one cannot be read any more. A save writes the new state into the slot that is not in
force, under a fresh key that is in memory only, and waits for the disk. Then it overwrites the key slot in
place with the new key, and waits again. Before this small write the old state is in force, after it the new
one, and at no time does the file hold both keys. There is no journal, no log and no copy; sizes never change.

A save does this once or twice, by a coin, so each slot is as likely to be in force, whatever was before:
which one it is does not say how often the file was saved. A new file is filled with random bytes, as a slot
that is not in force looks.

The key slot lies within one sector, which disks write whole or not at all. If one was torn all the same, the
state is lost, never wrong: to be safe from that, both keys would have to be in the file at once, and two
states are as two looks.

An overwritten key is gone from the file. It is not gone from what keeps older contents of the file: backups,
snapshots of a file system or a virtual machine, copy-on-write and log-structured file systems, the data
journal of a file system, spare cells of a flash disk, swap, core dumps. Each such copy is a look at the
state. Put the file on a plain file system that overwrites in place, on an encrypted disk whose key you can
destroy, and turn the others off.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self, final

from partita.errors import InvalidParameter, InvalidState, StreamBusy, StreamError, check
from partita.numbers import integer
from partita.public.streams import LARGEST, OutputsFile, Settings, file_error
from partita.storage import Closing, FilePath, check_path, sync_folder
from partita.trusted.durable.events import (
    AnyCounter,
    CheckedEvent,
    record_after,
    restore_counter,
    sum_by_period,
)
from partita.trusted.noise.kernel import below, entropy
from partita.trusted.noise.system import Noise
from partita.trusted.streams.pan_private import PanPrivateCounter

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_MAGIC: Final = b"partita-slots 1\n"
_PAGE: Final = 4096
_TAG: Final = 16
_SLOT: Final = 2 * _PAGE
_LARGEST_SLOT: Final = 2**28
_FIRST_SLOT: Final = 2 * _PAGE
_KEY: Final = 32
_CHECKSUM: Final = 32
_NUMBER: Final = 8
_NONCE: Final = bytes(12)  # every key encrypts one state, so all share one nonce
_OPEN: Final = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_NOT_OURS: Final = 0o077
_LENGTH: Final = 4

SLOTS: Final = ".pan"


class Saved(NamedTuple):
    """A state, and the number of what was fed to it last."""

    sequence: int
    state: bytes


class _InForce(NamedTuple):
    """Which slot holds the state, and the key to it."""

    slot: int
    key: bytes


@final
class PanStore(Closing):
    """The state of one pan-private counter or sketch in one file, open in one process.

    What is in the file is what a look at it sees: the state and the sequence number. So the number must be
    public: it numbers periods, or the batch of each period, never events. For the same reason save by
    the clock, never on arrival. What was counted after the last save is lost in a crash, and is not replayed.

    A counter that goes on after a save has a state in memory and another one in the file, and these are two
    looks. So save its `restart_state()`, which has no cells, and never its `state()`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, PanStore(f"{folder}/visits.pan") as store:
    ...     store.save(b"state", sequence=1)
    ...     store.load()
    Saved(sequence=1, state=b'state')
    """

    def __init__(self, path: FilePath, *, create: bool = True) -> None:
        self.path = check_path(path)
        self._owner = os.getpid()
        try:
            if create and not os.path.lexists(self.path):
                _create(self.path, _SLOT)
            self._file = os.open(self.path, _OPEN)
        except OSError as error:
            raise self._unusable(error) from None
        try:
            self._claim()
            saved = self.load()
        except BaseException:
            os.close(self._file)
            raise
        self._sequence = None if saved is None else saved.sequence

    @classmethod
    def new(cls, path: FilePath, *, room: int) -> Self:
        """A new file for states of up to `room` bytes, a public number; no file may be there."""
        room = integer(room, "room", low=0, high=_LARGEST_SLOT - _PAGE)
        place = check_path(path)
        try:
            is_new = not os.path.lexists(place) and _create(place, _slot_for(room))
        except OSError as error:
            raise StreamError(f"{place} could not be written ({error.strerror}); check the disk") from None
        check(is_new, "path", "must not exist yet", given=str(path), fix="choose another")
        return cls(place, create=False)

    def load(self) -> Saved | None:
        """What was saved last; None if nothing was. A damaged file is an `InvalidState`."""
        self._require_owner()
        try:
            if os.pread(self._file, _PAGE, 0) != _first_page(self._slot):
                raise self._damaged("is not the state of a pan-private counter", fix="check the path")
            in_force = self._in_force()
            return None if in_force is None else self._decrypt(in_force)
        except OSError as error:
            raise self._unusable(error) from None

    def save(self, state: bytes, *, sequence: int) -> None:
        """Put a state in the place of the last one, which cannot be read any more when this returns.

        The sequence number never falls.
        """
        self._require_owner()
        sequence = integer(sequence, "sequence", low=self._sequence or 0, high=2**63 - 1)
        record = _record(sequence, state, self._slot - _TAG)
        try:
            for _ in range(1 + below(2)):
                self._replace(record)
        except OSError as error:
            raise self._unusable(error) from None
        self._sequence = sequence

    def close(self) -> None:
        """Let others open the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _replace(self, record: bytes) -> None:
        """First the new state beside the old one, then its key over the old key."""
        old = self._in_force()
        new = _InForce(slot=0 if old is None else 1 - old.slot, key=entropy(_KEY))
        sealed = _cipher(new).encrypt(_NONCE, record, _context(new.slot))
        _write(self._file, _place(new.slot, self._slot), sealed)
        _write(self._file, _PAGE, _key_slot(new))

    def _in_force(self) -> _InForce | None:
        stored = os.pread(self._file, 1 + _KEY + _CHECKSUM, _PAGE)
        if not any(stored):
            return None
        in_force = _InForce(slot=stored[0], key=stored[1 : 1 + _KEY])
        if in_force.slot > 1 or stored != _key_slot(in_force):
            raise self._damaged("has lost its key", fix="start a new counter from the last output")
        return in_force

    def _decrypt(self, in_force: _InForce) -> Saved:
        from cryptography.exceptions import InvalidTag

        sealed = os.pread(self._file, self._slot, _place(in_force.slot, self._slot))
        try:
            record = _cipher(in_force).decrypt(_NONCE, sealed, _context(in_force.slot))
        except InvalidTag:
            raise self._damaged("is damaged", fix="start a new counter from the last output") from None
        sequence, length = (int.from_bytes(record[i : i + _NUMBER], "big") for i in (0, _NUMBER))
        return Saved(sequence, record[2 * _NUMBER :][:length])

    def _claim(self) -> None:
        """Refuse a file that others may read, that is no state, or that another process has open."""
        about = os.fstat(self._file)
        self._slot = (about.st_size - _FIRST_SLOT) // 2
        is_usual = _SLOT <= self._slot <= _LARGEST_SLOT and about.st_size == _FIRST_SLOT + 2 * self._slot
        if not stat.S_ISREG(about.st_mode) or not is_usual:
            raise self._damaged("is not the state of a pan-private counter", fix="check the path")
        if about.st_mode & _NOT_OURS:
            raise StreamError(f"{self._name} may be read by others; chmod 600, and ask who read it")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise self._in_use() from None

    def _require_owner(self) -> None:
        if os.getpid() != self._owner or self._file < 0:
            raise self._in_use()

    def _in_use(self) -> StreamBusy:
        return StreamBusy(f"{self._name} is open elsewhere; close it there, and open it again here")

    def _unusable(self, error: OSError) -> StreamError:
        return StreamError(f"{self._name} could not be read or written ({error.strerror}); check the disk")

    @property
    def _name(self) -> str:
        return f"state file {str(self.path)!r}"

    def _damaged(self, rule: str, *, fix: str) -> InvalidState:
        return InvalidState(self._name, rule, fix=fix)


def _create(path: Path, slot: int) -> bool:
    """An empty store, for its owner only; it appears whole, and never in the place of another: then False.

    There is no key yet, and both slots look as if they held something.
    """
    handle, name = tempfile.mkstemp(prefix=".slots.", dir=path.parent)
    try:
        _write(handle, 0, _first_page(slot) + bytes(_PAGE) + entropy(2 * slot))
        os.link(name, path)
    except FileExistsError:
        return False
    finally:
        os.close(handle)
        os.unlink(name)
    sync_folder(path.parent)
    return True


def _first_page(slot: int) -> bytes:
    """What this file is; slots that are larger than those of a counter are named."""
    larger = b"" if slot == _SLOT else b"slots of %d bytes\n" % slot
    return (_MAGIC + larger).ljust(_PAGE, b"\0")


def _slot_for(room: int) -> int:
    """Whole pages for a state of so many bytes, its number and length, and a tag."""
    return max(_SLOT, -(-(room + 2 * _NUMBER + _TAG) // _PAGE) * _PAGE)


def _key_slot(in_force: _InForce) -> bytes:
    content = bytes([in_force.slot]) + in_force.key
    return content + hashlib.sha256(_MAGIC + content).digest()


def _record(sequence: int, state: object, length: int) -> bytes:
    """A state with its number and length, filled up to the length that all have."""
    most = length - 2 * _NUMBER
    if not isinstance(state, bytes) or len(state) > most:
        fix = "pass counter.state()"
        raise InvalidParameter("state", f"must be at most {most} bytes", given=type(state).__name__, fix=fix)
    numbers = (number.to_bytes(_NUMBER, "big") for number in (sequence, len(state)))
    return (b"".join(numbers) + state).ljust(length, b"\0")


def _cipher(in_force: _InForce) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(in_force.key)


def _context(slot: int) -> bytes:
    return _MAGIC + bytes([slot])


def _place(slot: int, size: int = _SLOT) -> int:
    return _FIRST_SLOT + slot * size


def _write(file: int, start: int, data: bytes) -> None:
    """Overwrite in place, and wait until the disk has it."""
    while data:
        size = os.pwrite(file, data, start)
        start, data = start + size, data[size:]
    _sync(file)


def _sync(file: int) -> None:
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is None:
        os.fsync(file)
    else:
        fcntl.fcntl(file, full)


@final
class SlotStore:
    """The secret file of a pan-private counter, written by the clock only.

    Events go straight into noisy cells in memory, and no cell is ever on disk: cells in the file would be a
    second state beside the one in memory, and their difference is what came in the open period. The file has
    settings, the clock and the last output. If the process ends within a period, its events are lost, in
    whatever way it ends. Whoever looked at the memory may have seen them, with noise that must not be used
    again: so a counter that is opened again begins a new block, with fresh noise on its last output.
    """

    at_once = 1

    def __init__(self, path: Path, *, noise: Noise | None) -> None:
        self._store = PanStore(path)
        self._noise = noise
        self._counter: PanPrivateCounter | None = None
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def exists(path: Path) -> bool:
        """Whether there is a counter; a crash may have left a file to which nothing was saved."""
        if not os.path.lexists(path):
            return False
        with PanStore(path) as store:
            return store.load() is not None

    @staticmethod
    def create(path: Path, settings: Settings) -> None:
        """Put a new counter there, unless there is one."""
        with PanStore(path) as store:
            if store.load() is None:
                store.save(_joined(settings, b""), sequence=0)

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def counter(self) -> AnyCounter | None:
        """The counter, with the events of the open period in it; None if it was not begun."""
        if self._counter is None:
            self._load()
        return self._counter

    def follow(self, outputs: OutputsFile) -> None:
        self._outputs = outputs

    def begin(self, counter: AnyCounter) -> AnyCounter:
        self._save(_pan_private(counter))
        self._load()
        return self._present

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Events, or one period; if it cannot be stored, the open period is lost.

        The counter in memory may have closed a period that is not stored, so it is dropped before the file is
        read: if that fails too, nothing is left that could be published.
        """
        try:
            yield
        except BaseException:
            self._drop()
            self._counter = None
            self._load()
            raise

    def portions(self, call: list[CheckedEvent]) -> list[list[CheckedEvent]]:
        """The totals of a call, which are counted in one step; nothing of it is stored."""
        return [sum_by_period(call)] if call else []

    def add(self, events: Iterable[CheckedEvent], *, complete: bool = True) -> None:
        """Count events in the open period; all of them, since nothing is known of earlier ones."""
        for event in events:
            for _, count in event.counts:
                for piece in _pieces(count):
                    self._present.add(piece)

    def settle_calls(self) -> bool:
        """Nothing of a call is stored."""
        return False

    def has_counted(self, feeder: str, first: int, last: int) -> bool:
        """Whether any of these periods is closed; nothing is kept about feeders."""
        return first <= self._present.periods

    def close_period(self) -> None:
        """Close the open period, store the state, and open the next period."""
        counter = self._present
        counter.update()
        self._save(counter)
        _open(counter)

    def record(self, period: int) -> bytes | None:
        """The record of the last period; of earlier ones the state knows nothing."""
        if not period or period != self._present.periods:
            return None
        return record_after(self._outputs.record(period - 1), self._present)

    def records(self, *, since: int) -> Iterator[bytes]:
        """The record of the last period, if it is the only one after that."""
        missing = self._present.periods - since
        if missing > 1:
            raise file_error(self._outputs.path, "has lost outputs that nothing else holds", "restore it")
        last = self.record(self._present.periods) if missing else None
        return iter([] if last is None else [last])

    def settle(self) -> None:
        """There is nothing that could wait."""

    def close(self) -> None:
        """Let others open it; the events of the open period are lost, and erased from memory."""
        self._drop()
        self._store.close()

    @property
    def _present(self) -> PanPrivateCounter:
        counter = self.counter
        if not isinstance(counter, PanPrivateCounter):
            raise StreamError("this counter was not begun; open it again")
        return counter

    def _load(self) -> None:
        saved = self._store.load()
        if saved is None:
            raise InvalidState("counter", "must have been opened", fix="check the path")
        self._settings, state = _parted(saved.state)
        self._drop()
        self._counter = self._restored(state) if state else None

    def _drop(self) -> None:
        """Erase the counter in memory: its block is over, and a later look must not find it."""
        if self._counter is not None:
            self._counter.abandon()

    def _save(self, counter: PanPrivateCounter) -> None:
        """Published numbers only, under the number of the periods, which is public too."""
        self._store.save(_joined(self._settings, counter.restart_state()), sequence=counter.periods)

    def _restored(self, state: bytes) -> PanPrivateCounter:
        """The counter in a new block; cells in a file of an earlier version are ignored and overwritten."""
        counter = _pan_private(restore_counter(self._settings, state, self._noise))
        counter.announce_intrusion()
        if counter.state() != state:
            self._save(counter)
        _open(counter)
        return counter


def _pan_private(counter: AnyCounter) -> PanPrivateCounter:
    if not isinstance(counter, PanPrivateCounter):
        raise InvalidState("counter", "must be pan-private", fix="check the path")
    return counter


def _pieces(count: int) -> Iterator[int]:
    """A total modulo 2^64, as the cells hold it, in at most three numbers that a counter takes."""
    left = (count + 2**63) % 2**64 - 2**63
    for _ in range(3):
        piece = max(1 - LARGEST, min(left, LARGEST - 1))
        yield piece
        left -= piece


def _open(counter: PanPrivateCounter) -> None:
    """Begin the next period, if there is one."""
    if counter.horizon is None or counter.periods < counter.horizon:
        counter.open()


def _joined(settings: Settings, state: bytes) -> bytes:
    text = settings.to_text().encode()
    return len(text).to_bytes(_LENGTH, "big") + text + state


def _parted(stored: bytes) -> tuple[Settings, bytes]:
    end = _LENGTH + int.from_bytes(stored[:_LENGTH], "big")
    return Settings.from_text(stored[_LENGTH:end].decode(errors="replace")), stored[end:]
