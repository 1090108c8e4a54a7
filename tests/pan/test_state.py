"""The state of a sketch is all that it remembers; what no sketch gave is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidParameter, InvalidState
from partita.pan.bits import Density
from partita.pan.registers import Registers
from partita.pan.sketch import Sketch
from partita.testing import EndlessTape, tape_noise
from partita.trusted.noise.system import KERNEL
from partita.trusted.streams.base import pack, unpack

from .test_life import MAKERS, Make, _name

PLANS: list[dict[str, Any]] = [{}, {"releases": 3, "epochs": 2, "output_share": "0.3"}]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("plan", PLANS)
def test_a_sketch_goes_on_from_its_state(make: Make, plan: dict[str, Any]) -> None:
    """The same updates and releases, on the same noise."""
    sketch = make(**plan)
    sketch.update_many(range(30))
    state = sketch.state()
    again = type(sketch).from_state(state)

    assert again.state() == state
    for each in (sketch, again):
        each._noise = tape_noise(EndlessTape("later"))
        each.update_many([1, 2, 3, 3])
    assert sketch.release(_name(sketch)).value == again.release(_name(again)).value
    assert sketch.state() == again.state()


@pytest.mark.parametrize("make", MAKERS)
def test_the_memory_of_a_sketch_is_its_state(make: Make) -> None:
    """One that is made from the bytes holds the same numbers as the one that was used."""
    used = make(releases=2, epochs=3)
    used.update_many(range(10))
    used.announce_intrusion()
    used.update_many([5, 5, 7])
    again = type(used).from_state(used.state(), noise=used._noise)

    assert list(_numbers(vars(again))) == list(_numbers(vars(used)))


def _numbers(thing: Any) -> Iterator[Any]:
    """Every number and text that can be reached from the attributes of a sketch, but for the noise."""
    if isinstance(thing, dict):
        for name in sorted(set(thing) - {"_noise", "member", "inside", "outside"}, key=str):
            yield name
            yield from _numbers(thing[name])
    elif isinstance(thing, np.ndarray):
        yield from thing.ravel().tolist()
    elif isinstance(thing, tuple):
        for each in thing:
            yield from _numbers(each)
    elif hasattr(thing, "__dict__"):
        yield from _numbers(vars(thing))
    else:
        yield thing


@pytest.mark.parametrize("make", MAKERS)
def test_states_have_one_length(make: Make) -> None:
    """Whatever happens to a sketch, up to its end."""
    sketch = make(releases=2, epochs=2)
    lengths = {len(sketch.state())}
    for _ in range(2):
        sketch.update_many(range(40))
        lengths.add(len(sketch.state()))
        sketch.announce_intrusion()
        lengths.add(len(sketch.state()))

    assert len(lengths) == 1


def test_a_universe_of_names_is_given_again() -> None:
    """The state does not hold the names; others than those, or none, are refused."""
    names = ["ann", "bob", "eve"]
    sketch = Registers(universe=names, epsilon=1, most=3)
    state = sketch.state()

    assert b"ann" not in state
    Registers.from_state(state, universe=names).update("bob")
    with pytest.raises(InvalidParameter, match="universe must be given again"):
        Registers.from_state(state).update("bob")
    assert Registers.from_state(state).release("density").error > 0
    for wrong in (names[::-1], names[:2], 3, ["ann", "bob", "ivy"]):
        with pytest.raises(InvalidParameter, match="universe must be the one"):
            Registers.from_state(state, universe=wrong)


@pytest.mark.parametrize("make", MAKERS)
def test_a_state_with_injected_noise_stays_without_a_promise(make: Make) -> None:
    """And one with the kernel's keeps it."""
    made = make(noise=KERNEL)

    assert type(made).from_state(made.state()).guarantee == made.guarantee == made.promise
    assert type(made).from_state(make().state()).guarantee is None


def _fields(sketch: Sketch) -> dict[str, list[int]]:
    return unpack(sketch.state(), sketch.name, 1)


CHANGES: dict[str, list[list[int]]] = {
    "plan": [[], [0, 1, 0], [1, 1, 2], [1, 1, 0], [10**9, 1, 1], [1, 1, -1], [2**80, 1, 1]],
    "clock": [[2, 0], [-1, 0], [0]],
    "terms": [[300], [48, 32, 49, 32, 49], list(b"1e400 1 1"), list(b"1000 1 1"), list(b"1e-300 1 1")],
    "shape": [[], [0] * 4, [-1, 1, 2, 3], [2**70] * 6, [0, 1, 0, 40], [0, -1, 2, 40], [0, 1, 2, 2**60, 1]],
    "bits": [[], [0] * 3, [1] * 500, [2**80] * 3],
    "registers": [[], [0], [-1] * 500, [-1] * 5],
    "counters": [[], [-1] * 10, [0] * 11],
    "tops": [[], [0], [1], [1, 2, 3], [2**70]],
}


@pytest.mark.parametrize("make", MAKERS)
def test_states_that_no_sketch_gave_are_refused(make: Make) -> None:
    """Every field with other contents, without it, cut short: only an `InvalidState` comes out."""
    sketch = make()
    kind, fields = type(sketch), _fields(sketch)
    kind.from_state(pack(sketch.name, 1, fields))
    for field in fields:
        for wrong in CHANGES[field]:
            with pytest.raises(InvalidState):
                kind.from_state(pack(sketch.name, 1, fields | {field: wrong}))
        with pytest.raises(InvalidState):
            kind.from_state(
                pack(sketch.name, 1, {name: row for name, row in fields.items() if name != field})
            )
    for cut in (b"", sketch.state()[:-1], sketch.state() + b"\0", None, 5):
        with pytest.raises(InvalidState):
            kind.from_state(cut)  # type: ignore[arg-type]


def test_a_state_is_of_one_kind() -> None:
    """That of a density makes no registers."""
    with pytest.raises(InvalidState, match="pan-registers"):
        Registers.from_state(Density(universe=4, epsilon=1).state())
