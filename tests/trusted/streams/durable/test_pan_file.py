"""What a durable pan-private counter has on disk: published numbers, at every instant, and no cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from partita.errors import StreamError
from partita.testing import EndlessTape
from partita.trusted.durable import slots
from partita.trusted.durable.open import open_counter
from partita.trusted.durable.slots import PanStore, _joined, _parted
from partita.trusted.durable.stream import DurableCounter
from partita.trusted.streams.base import unpack
from partita.trusted.streams.pan_private import PanPrivateCounter
from tests.trusted.streams.pan_views import GivenNoise, Vector, Views, look, pan_private, unit

VARIANTS = ("default", "book")
PLACE = "visits.pan"

Steps = tuple[str, ...]

FIRST: Steps = ("add", "add", "tick", "add", "tick", "add", "restart")
STEPS: Steps = (*FIRST, "add", "tick", "fail", "add", "tick", "add")
"""What happens to a counter; each event is counted by an `add`. A look may come before each of them."""

SHORT: Steps = ("add", "tick", "add", "restart", "add", "tick")


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is about power cuts, so nobody waits for the disk."""
    monkeypatch.setattr(slots, "_sync", lambda file: None)


def stored(path: Path) -> dict[str, list[int]]:
    """Every number in the file, as somebody reads it who has found the key in it."""
    data = path.read_bytes()
    slot, key = data[slots._PAGE], data[slots._PAGE + 1 :][:32]
    sealed = data[slots._place(slot) :][: slots._SLOT]
    record = AESGCM(key).decrypt(slots._NONCE, sealed, slots._context(slot))
    length = int.from_bytes(record[8:16], "big")
    _, state = _parted(record[16:][:length])
    return unpack(state, PanPrivateCounter.name, 1)


class Life:
    """A durable counter, and what somebody sees of it: the outputs, the memory, and the file."""

    def __init__(self, folder: Path, noise: GivenNoise, **named: Any) -> None:
        self.folder, self.noise, self.named, self.seconds = folder, noise, named, 0
        self.open()

    def open(self) -> None:
        usual: dict[str, Any] = {"epsilon": 1, "period": 1, "start": 0, "mechanism": "pan-private"}
        self.counter: DurableCounter = open_counter(
            self.folder / "visits", now=self.seconds, noise=self.noise, **(usual | self.named)
        )

    def act(self, step: str, count: int) -> None:
        """Do one step; `fail` is a period that the disk refuses to store."""
        if step == "add":
            self.counter.add(count)
        elif step == "tick":
            self.seconds += 1
            self.counter.tick(now=self.seconds)
        elif step == "restart":
            self.counter.close()
            self.open()
        else:
            self._fail()

    def _fail(self) -> None:
        def refuse(store: PanStore, state: bytes, *, sequence: int) -> None:
            raise StreamError("full")

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(PanStore, "save", refuse)
            with pytest.raises(StreamError):
                self.counter.tick(now=self.seconds + 1)

    def memory(self) -> Vector:
        return look(self.counter._store.counter)

    def file(self) -> Vector:
        return [number for row in stored(self.folder / PLACE).values() for number in row]

    def outputs(self) -> Vector:
        return [int(output.exact) for output in self.counter.outputs()]


def lives(folder: Path) -> Callable[..., Life]:
    """Begins lives, each in a folder of its own."""
    numbers = iter(range(10**6))

    def begin(noise: GivenNoise, **named: Any) -> Life:
        place = folder / str(next(numbers))
        place.mkdir()
        return Life(place, noise, **named)

    return begin


def numbers(seed: object, count: int) -> Vector:
    return [int(word) % 21 - 10 for word in EndlessTape(seed).take(count).tolist()]


def files(life: Life, steps: Steps, counts: Sequence[int]) -> Iterator[tuple[dict[str, list[int]], int]]:
    """What is in the file before each step and after the last, and the last output at that time."""
    rest = iter(counts)
    for step in (*steps, "end"):
        yield stored(life.folder / PLACE), (life.outputs() or [0])[-1]
        if step != "end":
            life.act(step, next(rest) if step == "add" else 0)
    life.counter.close()


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_file_is_a_function_of_outputs_and_the_clock(variant: str, tmp_path: Path) -> None:
    """At every instant it is that of a counter without events and noise, but for the last output."""
    begin, events = lives(tmp_path), STEPS.count("add")
    silent = begin(GivenNoise(), horizon=8, variant=variant)
    quiet = [rows for rows, _ in files(silent, STEPS, [0] * events)]
    for seed in range(3):
        loud = begin(GivenNoise(numbers((seed, "noise"), 200)), horizon=8, variant=variant)
        seen = list(files(loud, STEPS, numbers((seed, "events"), events)))
        for (rows, output), public in zip(seen, quiet, strict=True):
            *times, _ = public["now"]
            assert rows == {**public, "now": [*times, output]}
            assert not any(rows["cells"])


Look = tuple[str, int]


class Seen:
    """All that can be seen of a life, as a linear function of its noise and events."""

    def __init__(self, begin: Callable[..., Life], steps: Steps, **named: Any) -> None:
        self.begin, self.steps, self.named = begin, steps, named
        self.events = steps.count("add")
        self.places: dict[Look, list[int]] = {}
        recorder = GivenNoise()
        self.public = self.all(self.nothing, recorder)
        self.rates: list[Fraction] = [1 / scale for scale in recorder.scales]
        draws = len(self.rates)
        self.of_noise = [self.column(self.nothing, unit(i, draws)) for i in range(draws)]
        self.of_events = [self.column(unit(i, self.events), []) for i in range(self.events)]

    @property
    def nothing(self) -> Vector:
        return [0] * self.events

    def all(self, counts: Vector, noise: GivenNoise) -> Vector:
        """The memory and the file before each step and after the last, and all outputs."""
        life, rest = self.begin(noise, **self.named), iter(counts)
        view: Vector = []

        def note(what: str, moment: int, numbers: Vector) -> None:
            self.places[what, moment] = list(range(len(view), len(view) + len(numbers)))
            view.extend(numbers)

        for moment, step in enumerate((*self.steps, "end")):
            note("memory", moment, life.memory())
            note("file", moment, life.file())
            if step != "end":
                life.act(step, next(rest) if step == "add" else 0)
        note("outputs", 0, life.outputs())
        life.counter.close()
        return view

    def column(self, counts: Vector, noise: Vector) -> Vector:
        return [a - b for a, b in zip(self.all(counts, GivenNoise(noise)), self.public, strict=True)]

    def hides_all(self, *looks: Look) -> bool:
        """Whether a shift that costs at most epsilon hides each event from all outputs and some looks."""
        places = [place for look in (*looks, ("outputs", 0)) for place in self.places[look]]
        of_noise, of_events = (
            [[column[place] for place in places] for column in columns]
            for columns in (self.of_noise, self.of_events)
        )
        views = Views(of_noise, of_events, self.rates, self.public, places)
        return all(views.shift(each) is not None and views.cost(each) <= 1 for each in range(self.events))


@pytest.mark.parametrize("variant", VARIANTS)
def test_memory_file_and_outputs_together_hide_every_event(variant: str, tmp_path: Path) -> None:
    """One snapshot of the machine at any time; and a look at memory, a restart, and a look at the file."""
    seen, restart = Seen(lives(tmp_path), SHORT, horizon=4, variant=variant), SHORT.index("restart")

    for moment in range(len(SHORT) + 1):
        assert seen.hides_all(("memory", moment), ("file", moment))
    for moment in range(restart, len(SHORT) + 1):
        assert seen.hides_all(("memory", restart), ("file", moment))
        assert moment == restart or seen.hides_all(
            ("memory", restart), ("memory", moment), ("file", restart), ("file", moment)
        )


@pytest.mark.parametrize("variant", VARIANTS)
def test_two_looks_in_one_block_are_told_from_one(variant: str, tmp_path: Path) -> None:
    """The check has teeth: the memory before and after an event reveals it."""
    seen = Seen(lives(tmp_path), ("add", "tick", "add"), horizon=4, variant=variant)

    assert not seen.hides_all(("memory", 2), ("memory", 3))


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_hand_made_save_within_a_live_period_has_no_cells(variant: str) -> None:
    """What a restart needs is the same before and after events, and is the state after an announcement."""
    counter = pan_private(horizon=8, variant=variant, live=True)(GivenNoise(numbers("noise", 99)))
    counter.update(3)
    counter.update(4)
    between = counter.restart_state()
    counter.open()
    opened = counter.restart_state()
    counter.add(5)
    added = counter.restart_state()
    again = PanPrivateCounter.from_state(added, noise=GivenNoise())
    before = again.state()
    again.announce_intrusion()

    assert between == opened == added == before == again.state()
    assert again.exact == counter.exact
    assert not any(unpack(added, counter.name, 1)["cells"])


def test_old_files_are_read_and_lose_their_cells_at_once(tmp_path: Path) -> None:
    """A file with cells goes on from its last output, and is overwritten before an event comes."""
    life = Life(tmp_path, GivenNoise(numbers("noise", 99)), horizon=8)
    for step in ("add", "tick", "add", "tick", "add", "tick"):
        life.act(step, 5)
    before = life.outputs()
    life.counter.close()
    with PanStore(tmp_path / PLACE) as store:
        saved = store.load()
        assert saved is not None
        settings, _ = _parted(saved.state)
        old = pan_private(horizon=8, live=True)(GivenNoise(numbers("noise", 99)))
        old.update_many([5, 5, 5])
        assert old.exact == before[-1]
        store.save(_joined(settings, old.state()), sequence=saved.sequence)
    assert any(stored(tmp_path / PLACE)["cells"])
    life.open()
    assert not any(stored(tmp_path / PLACE)["cells"])
    life.act("tick", 0)

    assert life.outputs()[:3] == before
    assert len(life.outputs()) == 4


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_counter_that_is_closed_or_dropped_leaves_no_cells_in_memory(variant: str, tmp_path: Path) -> None:
    """Whoever looks after a restart in the same process does not find the block before it."""
    life = Life(tmp_path, GivenNoise(numbers("noise", 99)), horizon=8, variant=variant)
    life.act("add", 5)
    dropped: Any = life.counter._store.counter
    life.act("fail", 0)
    life.act("add", 5)
    closed: Any = life.counter._store.counter
    life.counter.close()

    assert dropped is not closed
    assert not dropped._cells.any()
    assert not closed._cells.any()
