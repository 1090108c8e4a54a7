"""The state of a pan-private counter is all that it remembers."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita.errors import EntropyError, InvalidState
from partita.public.stream_errors import PAN_CELLS
from partita.public.stream_trees import Variant
from partita.testing import EndlessTape, ZeroNoise, tape_noise
from partita.trusted.noise import laws
from partita.trusted.noise.system import KERNEL
from partita.trusted.streams.base import pack, unpack
from partita.trusted.streams.pan_private import PanPrivateCounter

from .pan_views import GivenNoise, taped

VARIANTS: tuple[Variant, ...] = ("default", "book")
KINDS = [(variant, live) for variant in VARIANTS for live in (False, True)]


@pytest.mark.parametrize(("variant", "live"), KINDS)
def test_a_state_goes_on_as_the_counter_would(variant: Variant, live: bool) -> None:
    """After every period: the same outputs on the same noise."""
    for closed in range(9):
        one = taped(variant=variant, live=live, horizon=9)
        one.update_many([3] * closed)
        other = PanPrivateCounter.from_state(one.state(), noise=tape_noise(EndlessTape("later")))
        one._noise = tape_noise(EndlessTape("later"))
        one._block = one._block_here()

        assert other.update_many([2] * (9 - closed)).tolist() == one.update_many([2] * (9 - closed)).tolist()


@pytest.mark.parametrize(("variant", "live"), KINDS)
def test_the_memory_of_a_counter_is_its_state(variant: Variant, live: bool) -> None:
    """A counter made from the bytes holds the same numbers as the one that was used: nothing else is kept."""
    used = taped(variant=variant, live=live, noise=KERNEL)
    used.update_many(range(100))
    used.announce_intrusion()
    used.advance(37)
    if live:
        used.open()
        used.add(12)

    assert list(_numbers(vars(used))) == list(_numbers(vars(PanPrivateCounter.from_state(used.state()))))


def _numbers(thing: Any) -> Iterator[Any]:
    """Every number and text that can be reached from the attributes of a counter, but for the noise."""
    if isinstance(thing, dict):
        for name in sorted(thing, key=str):
            yield from _numbers(thing[name])
    elif isinstance(thing, np.ndarray):
        assert thing.base is None
        yield from thing.tolist()
    elif hasattr(thing, "__dict__") and thing is not KERNEL:
        yield from _numbers(vars(thing))
    elif thing is not KERNEL:
        yield thing


@pytest.mark.parametrize("variant", VARIANTS)
def test_erased_values_are_overwritten_in_place(variant: Variant) -> None:
    """The cells lie in one place for good; those of ended intervals are zero."""
    counter = taped(variant=variant, horizon=8, noise=ZeroNoise())
    cells = counter._cells
    counter.update_many([5, 5, 5, 5])

    assert counter._cells is cells
    assert np.flatnonzero(cells).tolist() == ([] if variant == "default" else [0])
    counter.announce_intrusion()
    assert counter._cells is cells
    assert not cells.any()


def test_no_noise_waits_in_memory() -> None:
    """A draw takes its words from the kernel when it happens; no session is kept, which might have some."""
    gc.collect()
    before = len(laws._Fresh._alive)
    counter = PanPrivateCounter(epsilon=1, horizon=64)
    for x in range(64):
        counter.update(x)
        gc.collect(0)
        assert len(laws._Fresh._alive) == before
    session = KERNEL.session()
    assert session.secure
    assert len(laws._Fresh._alive) == before + 1


def test_what_is_shown_is_published() -> None:
    """`repr` of two counters with equal outputs is equal, whatever is in their cells."""
    one, other = (taped(horizon=8, noise=GivenNoise(noise)) for noise in ([1, 2, 3], [1, 2, 0]))
    one.update()
    other.update(3)

    assert one.state() != other.state()
    assert repr(one) == repr(other)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_are_refused(duplicate: Any) -> None:
    """Two counters with one noise are two looks."""
    with pytest.raises(EntropyError):
        duplicate(taped(horizon=8))


def test_a_forked_child_has_nothing() -> None:
    """A counter goes on in the process that made it only, and what is read in another is no second look."""
    counter = taped(horizon=8)
    counter.update(1)
    assert counter._cells.any()

    PanPrivateCounter.after_fork()

    assert not counter._cells.any()
    with pytest.raises(EntropyError, match="forked"):
        counter.update(1)


def test_half_a_step_breaks_a_counter() -> None:
    """If noise cannot be had in the middle of a step, nothing of it can be seen or used any more."""

    class Failing(ZeroNoise):
        left = 2

        def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
            self.left -= 1
            if not self.left:
                raise EntropyError("no randomness")
            return super().add(x, scale, parts=parts)

    counter = taped(horizon=8, noise=Failing())
    with pytest.raises(EntropyError, match="no randomness"):
        counter.update(1)
    assert not counter._cells.any()
    for act in (counter.update, counter.state, counter.announce_intrusion):
        with pytest.raises(EntropyError, match="interrupted"):
            act()


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [4, 2, 0]},
        {"shape": [0, 0, 0]},
        {"shape": [4, 0, 2]},
        {"shape": [4, 0]},
        {"clock": [5, 0]},
        {"clock": [-1, 0]},
        {"now": [2, 0, 0]},
        {"now": [-1, 0, 0]},
        {"now": [0, 1, 0]},
        {"now": [0, 0, 2**63]},
        {"carried": [0] * (PAN_CELLS - 1)},
        {"carried": [-1] * PAN_CELLS},
        {"cells": [0] * (PAN_CELLS + 1)},
        {"cells": [2**70] * PAN_CELLS},
        {"terms": [300]},
    ],
)
def test_states_that_no_counter_gave_are_refused(change: dict[str, list[int]]) -> None:
    """Only an `InvalidState` comes out."""
    counter = taped(horizon=4)
    counter.update()
    fields = unpack(counter.state(), counter.name, 1)
    assert PanPrivateCounter.from_state(pack(counter.name, 1, fields)).periods == 1
    with pytest.raises(InvalidState):
        PanPrivateCounter.from_state(pack(counter.name, 1, fields | change))
    for name in fields:
        with pytest.raises(InvalidState):
            PanPrivateCounter.from_state(
                pack(counter.name, 1, {k: v for k, v in fields.items() if k != name})
            )
