"""What a sketch goes through: outputs that run out, epochs, announcements, accidents."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from partita import Guarantee
from partita.errors import BudgetExceeded, EntropyError, HorizonReached, InvalidParameter
from partita.guarantee import UNLIMITED
from partita.pan.bits import Density, Distinct
from partita.pan.registers import RampRegisters, Registers
from partita.pan.sketch import Sketch
from partita.testing import EndlessTape, ForbiddenNoise, ZeroNoise, tape_noise

Make = Callable[..., Sketch]


def _density(**given: Any) -> Density:
    return Density(**{"universe": 40, "epsilon": 1, "noise": tape_noise(EndlessTape(1)), **given})


def _distinct(**given: Any) -> Distinct:
    return Distinct(**{"buckets": 8, "most": 8, "epsilon": 1, "noise": tape_noise(EndlessTape(1)), **given})


def _registers(**given: Any) -> Registers:
    usual = {"universe": 40, "epsilon": 1, "most": 3, "noise": tape_noise(EndlessTape(1))}
    return Registers(**{**usual, **given})


def _ramp(**given: Any) -> RampRegisters:
    usual = {"universe": 40, "epsilon": 1, "tops": [1, 2], "noise": tape_noise(EndlessTape(1))}
    return RampRegisters(**{**usual, **given})


MAKERS = [_density, _distinct, _registers, _ramp]
every_sketch = pytest.mark.parametrize("make", MAKERS)


def _name(sketch: Sketch) -> str:
    return "distinct" if isinstance(sketch, Distinct) else "density"


@every_sketch
def test_outputs_run_out(make: Make) -> None:
    """So many releases, then none: refused before noise is asked for, and the table is gone."""
    sketch = make(releases=3)
    for left in (2, 1, 0):
        sketch.release(_name(sketch))
        assert sketch.releases_left == left

    sketch._noise = ForbiddenNoise()
    with pytest.raises(BudgetExceeded, match="3 outputs in each of 1 epochs"):
        sketch.release(_name(sketch))
    assert not any(table.any() for table in sketch._tables())
    with pytest.raises(HorizonReached, match="make a new one"):
        sketch.update(1)


@every_sketch
def test_the_shares_of_all_outputs_and_the_state_are_epsilon(make: Make) -> None:
    """Exactly: what outputs have, and what is left for the state, over all epochs."""
    sketch: Any = make(epsilon="0.7", releases=3, epochs=2)

    total = 2 * (sketch._shares.state + 3 * sketch.output)
    assert total == Fraction(7, 10) == sketch.terms.epsilon


@every_sketch
def test_the_last_output_of_an_epoch_begins_the_next(make: Make) -> None:
    """The tables are drawn afresh, in place."""
    sketch = make(epochs=2)
    tables = sketch._tables()
    before = [table.copy() for table in tables]
    sketch.release(_name(sketch))

    assert (sketch.epoch, sketch.releases_left) == (2, 1)
    assert all(now is then for now, then in zip(sketch._tables(), tables, strict=True))
    assert any((table != old).any() for table, old in zip(tables, before, strict=True))
    sketch.update(1)
    sketch.release(_name(sketch))
    assert "epoch=over" in repr(sketch)


@every_sketch
def test_an_announcement_begins_an_epoch_or_ends_the_sketch(make: Make) -> None:
    """It never fails, and what was not released is lost."""
    sketch = make(epochs=2, releases=2)
    sketch.release(_name(sketch))
    sketch.announce_intrusion()
    assert (sketch.epoch, sketch.releases_left) == (2, 2)
    sketch.announce_intrusion()
    sketch.announce_intrusion()
    assert (sketch.epoch, sketch.releases_left) == (3, 0)
    assert not any(table.any() for table in sketch._tables())


def test_the_promise_is_typed() -> None:
    """For a user with any number of events, one look and all announced ones; None for injected noise."""
    sketch = Density(universe=4, epsilon=1)

    assert sketch.guarantee == Guarantee(
        epsilon=1, unit="user", contributions=UNLIMITED, intrusions=1, announced=True
    )
    assert repr(sketch.guarantee) == (
        "Guarantee(epsilon=1, neighbors=add-remove, unit=user, contributions=unlimited, intrusions=1, "
        "announced=True)"
    )
    assert str(sketch.guarantee) == (
        "epsilon 1, pure, for adding or removing one user with any number of events, "
        "and 1 look at the state, besides any that are announced"
    )
    assert _density().guarantee is None


def test_any_number_of_looks_is_more_than_one() -> None:
    """Composed with a sketch, what allows any number of looks allows one, announced or not."""
    local = Guarantee(epsilon=1, unit="user", contributions=UNLIMITED, intrusions=UNLIMITED, announced=True)
    sketch = _density().promise

    assert (local + sketch).intrusions == 1
    assert "any number of looks at the state" in str(local)
    assert not (local + Guarantee(epsilon=1, unit="user", contributions=UNLIMITED)).announced
    with pytest.raises(InvalidParameter, match="announced must be True or False"):
        Guarantee(epsilon=1, announced=1)  # type: ignore[arg-type]


# Who came.


@every_sketch
def test_ids_that_are_none_are_left_out_without_a_word(make: Make) -> None:
    """Nothing is drawn for them, nothing changes, nothing is raised."""
    sketch = make()
    before = [table.copy() for table in sketch._tables()]
    sketch._noise = ZeroNoise()

    sketch.update_many([None, 2.5, object(), True, np.nan, (1,)])
    if not isinstance(sketch, Distinct):
        sketch.update_many(["3", b"3", -1, 40, 10**30])
        sketch.update_many(np.array([-1, 40, 2**40]))

    assert all((table == old).all() for table, old in zip(sketch._tables(), before, strict=True))


def test_a_universe_of_names() -> None:
    """Texts, bytes and integers are told apart; whoever is not listed is left out."""
    sketch = Registers(universe=["ann", b"ann", 3, "3"], epsilon=1, most=3, noise=ZeroNoise())
    before = sketch._registers.copy()
    sketch.update_many(["ann", "3", "bob", 3, 3, 4])

    period = sketch._law.set.period
    assert ((sketch._registers - before) % period).tolist() == [1, 0, 2, 1]


def test_arrays_and_lists_are_the_same() -> None:
    """Of any integer type."""
    made = [_density(noise=tape_noise(EndlessTape(5))) for _ in range(4)]
    ids = [3, 1, 3, 39, 40, -1]
    for sketch, given in zip(made, [ids, iter(ids), np.array(ids), np.array(ids, dtype=object)], strict=True):
        sketch.update_many(given)

    assert len({sketch.state() for sketch in made}) == 1


@pytest.mark.parametrize("universe", [0, -1, 2**40, 1.5, "name", [], ["a", "a"], [1, 2.5], None, True])
def test_universes_that_are_none_are_refused(universe: Any) -> None:
    """The error names the parameter."""
    with pytest.raises(InvalidParameter) as error:
        Density(universe=universe, epsilon=1)
    assert error.value.parameter == "universe"


@pytest.mark.parametrize(
    ("make", "given"),
    [
        (_density, {"epsilon": 0}),
        (_density, {"releases": 0}),
        (_density, {"epochs": True}),
        (_density, {"variant": "old"}),
        (_density, {"output_share": 1}),
        (_density, {"output_share": "-0.1"}),
        (_distinct, {"buckets": 1}),
        (_distinct, {"most": 2**40}),
        (_distinct, {"salt": "a salt that is far too long"}),
        (_distinct, {"salt": 5}),
        (_registers, {"most": 0}),
        (_registers, {"lowest": 1}),
        (_ramp, {"tops": []}),
        (_ramp, {"tops": [0]}),
        (_ramp, {"tops": "12"}),
    ],
)
def test_bad_parameters_are_named(make: Make, given: dict[str, Any]) -> None:
    """Each one is checked before anything is drawn."""
    with pytest.raises(InvalidParameter) as error:
        make(noise=ForbiddenNoise(), **given)
    assert [error.value.parameter] == list(given)


def test_moves_are_integers() -> None:
    """`by` may be any integer, of any size, and zero; what is none is refused, and not shown."""
    sketch = _registers()
    before = sketch._registers.copy()
    sketch.update(1, by=0)
    sketch.update(1, by=2**61)
    sketch.update(1, by=-(2**61))
    sketch.update(1, by=10**100)
    sketch.update(1, by=-(10**100))
    assert (sketch._registers == before).all()
    wrong: list[Any] = [271.5, True, "271.5", None]
    for by in wrong:
        with pytest.raises(InvalidParameter, match="by must be an integer") as refused:
            sketch.update(1, by=by)
        assert "271" not in str(refused.value)


def test_distinct_has_at_most_33_levels() -> None:
    """As many as half of a hash can tell apart, also for few buckets and many ids."""
    for most in (2**33, 2**35):
        sketch = Distinct(epsilon=1, buckets=2, most=most)
        sketch.update_many(range(1000))
        assert sketch.levels == 33
        assert Distinct.from_state(sketch.state()).state() == sketch.state()
        assert sketch.release("distinct").value >= 0


# Accidents.


@every_sketch
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_are_refused(make: Make, duplicate: Any) -> None:
    """Two sketches with one state are two looks."""
    with pytest.raises(EntropyError):
        duplicate(make())


@every_sketch
def test_a_forked_child_has_nothing(make: Make) -> None:
    """A sketch goes on in the process that made it only."""
    sketch = make()
    sketch.update(1)

    type(sketch).after_fork()

    assert not any(table.any() for table in sketch._tables())
    for act in (sketch.state, sketch.announce_intrusion, lambda: sketch.update(1)):
        with pytest.raises(EntropyError, match="forked"):
            act()


def test_half_an_output_breaks_a_sketch() -> None:
    """If noise cannot be had, the share is gone, and so is the table."""

    class Failing(ZeroNoise):
        def add(self, x: Any, scale: Fraction, *, parts: Any = None) -> Any:
            raise EntropyError("no randomness")

    sketch = _density(noise=Failing(), releases=2)
    sketch._bits[:] = True
    with pytest.raises(EntropyError, match="no randomness"):
        sketch.release("density")
    assert not sketch._bits.any()
    with pytest.raises(EntropyError, match="interrupted"):
        sketch.release("density")


def test_what_is_shown_is_public() -> None:
    """`repr` of two sketches is equal, whatever is in their tables."""
    one, other = _density(), _density()
    one.update_many(range(40))

    assert one.state() != other.state()
    assert repr(one) == repr(other)
