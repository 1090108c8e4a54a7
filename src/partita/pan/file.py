"""A sketch that lives in a file: everything that was done to it is on disk when the call returns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Self, final

from partita.answer import Answer
from partita.errors import InvalidState, check, check_arguments
from partita.pan.bits import Density, Distinct
from partita.pan.registers import RampRegisters, Registers
from partita.pan.sketch import Ids, ListedSketch, Sketch
from partita.storage import Closing, FilePath
from partita.trusted.durable.slots import PanStore

KINDS: Final[dict[str, type[Sketch]]] = {
    kind.name: kind for kind in (Density, Distinct, Registers, RampRegisters)
}

_SEQUENCE: Final = 0  # always: a number of saves would be seen by a look, and say how often somebody came


@final
@check_arguments
class SketchFile(Closing):
    """The state of one sketch in one file, of which one state can be read at any time, open in one process.

    Every call ends with a save, and the state before it cannot be read any more. An output is paid for on
    disk before it is returned. Update by the clock, with all events since the last update: the times at which
    a file was written may be seen. There is no log of events: a crash loses what was not counted. If a save
    fails, the sketch in memory is erased and the file is closed: open it again, as it was before.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     SketchFile.create(f"{folder}/clinic.pan", Density(universe=1000, epsilon=1)).close()
    ...     with SketchFile(f"{folder}/clinic.pan") as file:
    ...         file.update_many([1, 2, 3])
    ...         answer = file.release("density")
    """

    def __init__(self, path: FilePath, *, universe: Ids | None = None) -> None:
        self._store = PanStore(path, create=False)
        try:
            saved = self._store.load()
            if saved is None:
                raise InvalidState("sketch", "was never saved", fix="make it anew")
            self._sketch = _sketch_of(saved.state, universe)
        except BaseException:
            self._store.close()
            raise

    @classmethod
    def create(cls, path: FilePath, sketch: Sketch) -> Self:
        """A new file for a sketch, which lives there from now on; it never takes the place of another."""
        state = _state_of(sketch)
        made = object.__new__(cls)
        made._store, made._sketch = PanStore.new(path, room=len(state)), sketch
        made._save()
        return made

    @property
    def sketch(self) -> Sketch:
        """The sketch, to read its public properties. Do not update or release it: that is not saved."""
        return self._sketch

    def update_many(self, ids: Iterable[object], **keywords: Any) -> None:
        """Count users, and save."""
        self._sketch.update_many(ids, **keywords)
        self._save()

    def release(self, name: str) -> Answer:
        """Publish a statistic; it is returned when the file says that it is paid for."""
        answer = self._sketch.release(name)
        self._save()
        return answer

    def announce_intrusion(self) -> None:
        """End the epoch, and save: from now on a look at the file sees fresh noise only."""
        self._sketch.announce_intrusion()
        self._save()

    def close(self) -> None:
        """Let others open the file."""
        self._store.close()

    def _save(self) -> None:
        """On disk, or nowhere: a state that could not be saved would be a second one beside the file's."""
        try:
            self._store.save(_state_of(self._sketch), sequence=_SEQUENCE)
        except BaseException:
            self._sketch.abandon()
            self._store.close()
            raise


def _state_of(sketch: Sketch) -> bytes:
    return sketch.name.encode() + b"\n" + sketch.state()


def _sketch_of(data: bytes, universe: Ids | None) -> Sketch:
    name, _, state = data.partition(b"\n")
    kind = KINDS.get(name.decode("ascii", "replace"))
    if kind is None:
        raise InvalidState("sketch", "must be of a known kind", fix="use a newer version")
    if issubclass(kind, ListedSketch):
        return kind.from_state(state, universe=universe)
    check(universe is None, "universe", "must be left out for this sketch", given=universe, fix="drop it")
    return kind.from_state(state)
