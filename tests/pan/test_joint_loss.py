"""One look at the whole state, with the outputs, loses what the proofs say, exactly; two looks lose all."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from partita.pan import registers as registers_module
from partita.pan.bits import Density, Distinct, Occupancy
from partita.pan.registers import RampRegisters, Registers, difference_set, make_law
from partita.pan.sketch import joint_ratios, state_ratios
from partita.testing import ZeroNoise

from .looks import Act, Make, Stream, Views, neighbors, one_look

BIT = range(2)


def density(**parameters: Any) -> Make:
    """A maker of densities over one user, unless told otherwise, with epsilon 1."""
    usual = {"universe": 1, "epsilon": 1, "output_share": "0.1"}
    return lambda noise: Density(**{**usual, **parameters}, noise=noise)


def registers(**parameters: Any) -> Make:
    """Registers that tell four numbers apart, -1, 0, 1 and 2."""
    usual = {"universe": 1, "epsilon": 1, "most": 2, "lowest": -1, "output_share": "0.2"}
    return lambda noise: Registers(**{**usual, **parameters}, noise=noise)


def ramp(**parameters: Any) -> Make:
    """Counters modulo two."""
    usual = {"universe": 1, "epsilon": 1, "tops": [2], "output_share": "0.2"}
    return lambda noise: RampRegisters(**{**usual, **parameters}, noise=noise)


# Density.


@pytest.mark.parametrize("variant", ["default", "book"])
@pytest.mark.parametrize(("users", "length"), [(1, 3), (2, 2)])
@pytest.mark.spread(2)
def test_the_joint_loss_of_a_density_is_the_formula(variant: str, users: int, length: int) -> None:
    """All streams, one look at any time, then the output: the greatest ratio is exactly that of the proof."""
    views = Views(density(universe=users, variant=variant), sums=range(users + 1))

    worst = views.worst(neighbors(users, length), one_look(length, "density"))

    assert worst == max(joint_ratios(views.sketch.coin.q0, views.sketch.coin.q1, views.growth))


@pytest.mark.parametrize(
    ("variant", "base", "term"),
    [("default", Fraction(9, 10), 1), ("default", Fraction(1, 6), 0), ("book", Fraction(1, 50), 2)],
)
def test_every_term_of_the_formula_is_needed(variant: str, base: Fraction, term: int) -> None:
    """From a faint output to one that is nearly exact: each term is the greatest somewhere."""
    views = Views(density(variant=variant, output_share="0.8"), sums=BIT, base=base)
    terms = joint_ratios(views.sketch.coin.q0, views.sketch.coin.q1, views.growth)

    assert views.worst(neighbors(1, 2), one_look(2, "density")) == terms[term] == max(terms)


def test_the_last_output_leaves_nothing_to_look_at() -> None:
    """A look after the only output sees an erased table, whatever came in between."""
    views = Views(density(), sums=BIT)
    before = [Act(looks=(), outputs=((1, "density"),))]
    after = [Act(looks=(2,), outputs=((1, "density"),))]

    assert views.worst(neighbors(1, 2), after) == views.worst(neighbors(1, 2), before)


def test_several_outputs_and_a_look_between_them_add_up() -> None:
    """Two outputs and a look, at any times: no more than the state and both outputs lose, and nearly that."""
    views = Views(density(releases=2), sums=BIT)
    times = [(0, 2), (1, 2)]
    acts = [Act((look,), tuple((at, "density") for at in at_both)) for look in range(3) for at_both in times]
    state = max(state_ratios(views.sketch.coin.q0, views.sketch.coin.q1))

    worst = views.worst(neighbors(1, 2), acts)

    assert worst is not None
    assert state * views.growth < worst <= state * views.growth**2


def test_an_announced_look_sees_nothing_old() -> None:
    """After an announcement the table is fresh: what came before is neither seen nor published."""
    views = Views(density(epochs=2), sums=BIT)
    acts = [Act(looks=(2,), outputs=((2, "density"),), announced=(2,))]

    assert views.worst(neighbors(1, 2), acts) == 1


def test_each_epoch_has_a_look_of_its_own() -> None:
    """A look in each of two epochs, and both outputs: no more than two sketches of half of epsilon."""
    one, both = Views(density(epsilon="0.5"), sums=BIT), Views(density(epochs=2), sums=BIT)
    single = one.worst(neighbors(1, 1), one_look(1, "density"))

    worst = both.worst(neighbors(1, 2), [Act(looks=(1, 2), outputs=((1, "density"), (2, "density")))])

    assert both.sketch.coin == one.sketch.coin
    assert single is not None
    assert worst is not None
    assert single < worst <= single**2


def test_replacement_costs_twice() -> None:
    """All events of one user become those of another: more than one epsilon, and no more than two."""
    views = Views(density(universe=2), sums=range(3))
    replaced: list[tuple[Stream, Stream]] = [((0, None), (1, None)), ((0, 0), (1, 1)), ((None, 0), (None, 1))]
    single = max(joint_ratios(views.sketch.coin.q0, views.sketch.coin.q1, views.growth))

    worst = views.worst(replaced, one_look(2, "density"))

    assert worst is not None
    assert single < worst <= single**2
    changed = views.sketch.promise.to_neighbors("change-one")
    assert changed.epsilon == 2 * views.sketch.promise.epsilon


# Distinct.


@pytest.fixture
def sums_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the number of ids that noisy sums of all levels say, those sums themselves."""
    monkeypatch.setattr(Occupancy, "_best", lambda _, noisy: float(noisy @ 100.0 ** np.arange(noisy.size)))


@pytest.mark.usefixtures("sums_only")
def test_the_joint_loss_of_distinct_is_that_of_a_density() -> None:
    """Ids that share a bucket and ids that do not: the greatest ratio is exactly that of one bit."""
    views = Views(_distinct(levels=1), sums=range(3))
    first, second = _ids(views.sketch)
    streams: list[Stream] = list(product((None, first, second), repeat=2))
    pairs = [(stream, tuple(None if each == user else each for each in stream))
             for stream in streams for user in (first, second) if user in stream]  # fmt: skip

    worst = views.worst(pairs, one_look(2, "distinct"))

    assert len(set(views.sketch._find([first, second]).tolist())) == 1
    assert worst == max(joint_ratios(views.sketch.coin.q0, views.sketch.coin.q1, views.growth))


@pytest.mark.usefixtures("sums_only")
def test_all_levels_of_distinct_together_are_one_output() -> None:
    """Two levels: an id moves the sum of one of them, so both sums together lose what one does."""
    views = Views(_distinct(levels=2), sums=range(3))

    worst = views.ratio((0,), (None,), Act((0,), ((1, "distinct"),)))

    coin = views.sketch.coin
    assert worst == max(coin.q1 * views.growth + 1 - coin.q1, 1 / (coin.q1 / views.growth + 1 - coin.q1))


def _distinct(levels: int) -> Make:
    return lambda noise: Distinct(epsilon=1, buckets=2, most=2 * levels - 1, output_share="0.1", noise=noise)


def _ids(sketch: Distinct) -> list[int]:
    """Two ids in the first bucket."""
    return [number for number in range(50) if sketch._find([number])[0] == 0][:2]


# Registers.


NAMES = ["density", "exactly-1", "mean-2", "heavy-2"]


@pytest.mark.parametrize("name", NAMES)
def test_the_joint_loss_of_a_register_is_state_and_output(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Z_3: events come and are taken back, one look at any time: the loss is the sum of both, and reached."""
    _over(monkeypatch, 2, 2)
    make = registers(most=2, lowest=0)
    weights, spread = _weights_of(make(ZeroNoise()), name)
    views = Views(make, sums=range(int(weights.min()), int(weights.max()) + 1), spread=spread)

    worst = views.worst(_moves(2), one_look(2, name))

    assert worst == views.sketch._law.ratio * views.growth


def test_several_outputs_of_registers_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look, and outputs on both sides of a moment after it: they lose what each loses alone, added up."""
    _over(monkeypatch, 2, 2)
    views = Views(registers(most=2, lowest=0, releases=2), sums=BIT)
    names = "exactly-1", "exactly-2"
    assert [_weights_of(views.sketch, name)[1] for name in names] == [1, 1]
    acts = [Act(looks=(1,), outputs=((first, names[0]), (2, names[1]))) for first in (1, 2)]
    moves: list[tuple[Stream, Stream]] = [
        (((0, before), (0, after)), (None, None)) for before, after in product((1, -1), repeat=2)
    ]

    worst = views.worst(moves, acts)

    assert worst == views.sketch._law.ratio * views.growth**2


def _over(monkeypatch: pytest.MonkeyPatch, q: int, dimension: int) -> None:
    """Registers over this difference set."""
    chosen = difference_set(q, dimension)
    monkeypatch.setattr(registers_module, "best_law", lambda epsilon, least: make_law(chosen, epsilon))


def _weights_of(sketch: Any, name: str) -> tuple[Any, int]:
    weights = sketch._weights(sketch._statistic(name))
    return weights, int(weights.max() - weights.min())


def _moves(length: int) -> list[tuple[Stream, Stream]]:
    """One user comes, goes, or does nothing; or is not there at all. A move is written as (user, by)."""
    nobody = (None,) * length
    return [(moves, nobody) for moves in product((None, (0, 1), (0, -1)), repeat=length) if any(moves)]


@pytest.mark.parametrize(("q", "dimension"), [(2, 2), (3, 2), (2, 3), (3, 3)])
def test_the_law_of_a_register_is_the_law_of_the_proof(
    q: int, dimension: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Enumerated: every place of the set has one probability, every other place another, e^epsilon apart."""
    _over(monkeypatch, q, dimension)
    views = Views(registers(), sums=BIT)
    found = _register_law(views)
    law = views.sketch._law

    for place, member in enumerate(law.set.member.tolist()):
        inside, outside = law.hit / law.set.size, (1 - law.hit) / (law.set.period - law.set.size)
        assert found[place] == (inside if member else outside)
    assert law.ratio == max(found.values()) / min(found.values())


def _register_law(views: Views) -> dict[int, Fraction]:
    return {view[0][0][0]: mass for view, mass in views.law((), Act((0,), ())).items()}  # type: ignore[index]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("q", "dimension"), [(3, 2), (2, 3), (3, 3)])
def test_all_moves_of_larger_registers(
    name: str, q: int, dimension: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every net number before the look, every one after it: what the state and the output lose, no more."""
    _over(monkeypatch, q, dimension)
    views = Views(registers(), sums=BIT)
    weights, spread = _weights_of(views.sketch, name)
    chance, period = _register_law(views), views.sketch._law.set.period
    growth = Fraction(3, 2) ** spread

    worst = max(
        chance[(seen - before) % period] / chance[seen]
        * Fraction(3, 2) ** abs(int(weights[(seen + after) % period] - weights[seen]))
        for seen, before, after in product(range(period), repeat=3)
    )  # fmt: skip

    assert worst == views.sketch._law.ratio * growth


def test_registers_of_two_users_are_independent() -> None:
    """The second user may do anything: the first one loses no more."""
    views = Views(registers(universe=2, most=1, lowest=0), sums=range(3))

    worst = views.worst(neighbors(2, 1), one_look(1, "exactly-1"))

    assert worst is not None
    assert worst <= views.sketch._law.ratio * views.growth


# Ramp registers.


@pytest.mark.parametrize(("tops", "name", "length"), [([2], "mean-2", 2), ([1, 2], "heavy-2", 1)])
def test_the_joint_loss_of_ramp_registers_is_at_most_state_and_output(
    tops: list[int], name: str, length: int
) -> None:
    """One user, one or two counters: no more than all bits and the output lose."""
    make = ramp(tops=tops)
    sketch: Any = make(ZeroNoise())
    spread = sketch._readout(sketch._statistic(name)).spread
    views = Views(make, sums=range(1 - len(tops), 3), spread=spread)

    worst = views.worst(neighbors(1, length), one_look(length, name))

    coin = views.sketch._coin
    assert worst is not None
    assert worst <= max(state_ratios(coin.q0, coin.q1)) ** len(tops) * views.growth


def test_the_state_of_a_ramp_register_is_a_biased_bit() -> None:
    """Without outputs: a look loses exactly what a bit loses, however many events there were."""
    views = Views(ramp(), sums=BIT)

    worst = views.worst(neighbors(1, 2), [Act((moment,), ()) for moment in range(3)])

    assert worst == max(state_ratios(views.sketch._coin.q0, views.sketch._coin.q1))


# Two looks.


@pytest.mark.parametrize("make", [density(), registers(), ramp(), _distinct(levels=1)])
def test_two_looks_that_nobody_announced_tell_everything(make: Make) -> None:
    """Something is seen of a stream with one event that is never seen without it: the loss is infinite."""
    views = Views(make, sums=BIT)
    came, nobody = (0,), (None,)

    assert views.ratio(came, nobody, Act(looks=(0, 1), outputs=())) is None
    assert views.ratio(came, nobody, Act(looks=(1,), outputs=())) is not None


@pytest.mark.parametrize("make", [density(epochs=2), registers(epochs=2), ramp(epochs=2)])
def test_two_looks_are_safe_if_one_of_them_was_announced(make: Make) -> None:
    """The announcement comes between them: then the second look sees fresh noise."""
    views = Views(make, sums=BIT)

    ratio = views.ratio((0,), (None,), Act(looks=(0, 1), outputs=(), announced=(1,)))

    assert ratio == 1
