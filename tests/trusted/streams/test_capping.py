"""Caps: the first events of each person count, and nobody's cap is another's."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import pytest

from partita.errors import InvalidData, InvalidParameter
from partita.testing import ZeroNoise
from partita.trusted.noise.system import KERNEL, Noise
from partita.trusted.streams.counter import Counter
from partita.trusted.streams.pan_private import Cap, Capped, PanPrivateCounter
from partita.trusted.streams.tree_counter import PerStepCounter

Stream = tuple[tuple[str, ...], ...]


def _capped(contributions: int = 2) -> Capped:
    return Capped(
        PerStepCounter(epsilon=1, horizon=9, contributions=contributions, noise=ZeroNoise()),
        contributions=contributions,
    )


def _counted(people: Stream, cap: Callable[[], Capped] = _capped) -> list[int]:
    """What the counter is told in each period."""
    capped = cap()
    outputs = [0, *(int(capped.update(period)) for period in people)]
    return [after - before for before, after in pairwise(outputs)]


def test_the_first_events_count() -> None:
    """Two of each person, in whichever periods they come."""
    assert _counted((("ann", "bob"), ("ann",), ("ann", "bob", "bob"), ())) == [2, 1, 1, 0]


def _streams() -> list[Stream]:
    """All streams of three periods in which ann comes up to three times each, and bob some times."""
    return [
        tuple(("ann",) * ann + ("bob",) * bob for ann, bob in zip(anns, bobs, strict=True))
        for anns in product(range(4), repeat=3)
        for bobs in ((0, 0, 0), (1, 2, 1), (0, 2, 1))
    ]


def _moves(cap: Callable[[], Capped]) -> set[int]:
    """By how much a user who is there or not changes all that is counted, over all streams."""
    moved = set()
    for stream in _streams():
        without = tuple(tuple(person for person in period if person != "ann") for period in stream)
        pairs = zip(_counted(stream, cap), _counted(without, cap), strict=True)
        moved.add(sum(abs(one - other) for one, other in pairs))
    return moved


def test_a_user_moves_no_more_than_the_cap() -> None:
    """Over all streams of three periods, whatever others do: at most two events, and two for some."""
    assert max(_moves(_capped)) == 2


def _one_cap_for_all(cap: Cap, person: object) -> bool:
    """One user's events use up the cap of another."""
    return RIGHT(cap, "anyone")


def _no_cap(cap: Cap, person: object) -> bool:
    """Everything counts."""
    return True


def _forgetful(cap: Cap, person: object) -> bool:
    """Only the last person is remembered."""
    cap._seen = {known: count for known, count in cap._seen.items() if known == person}
    return RIGHT(cap, person)


RIGHT = Cap.admits


@pytest.mark.parametrize("plant", [_one_cap_for_all, _no_cap, _forgetful])
def test_planted_caps_are_caught(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With each of the wrong ones some user moves more than two events."""
    monkeypatch.setattr(Cap, "admits", plant)

    assert max(_moves(_capped)) > 2


def test_the_guarantee_is_for_users() -> None:
    """Epsilon for all events of a user; an event has its part."""
    capped = Capped(Counter(epsilon=1, horizon=50, contributions=4), contributions=4)

    assert capped.guarantee is not None
    assert (capped.guarantee.unit, capped.guarantee.contributions) == ("user", 4)
    assert capped.counter.terms.rate == Fraction(1, 4)


@pytest.mark.parametrize("noise", [KERNEL, ZeroNoise()])
def test_a_pan_private_counter_is_refused(noise: Noise) -> None:
    """Its promise covers a look at the memory, where the cap has the ids of people in the clear."""
    counter = PanPrivateCounter(epsilon=1, horizon=50, contributions=2, noise=noise)
    with pytest.raises(InvalidParameter) as refused:
        Capped(counter, contributions=2)

    assert refused.value.parameter == "counter"


@pytest.mark.parametrize("made_for", [1, 3])
def test_cap_and_counter_must_agree(made_for: int) -> None:
    """A counter that was made for fewer events promises too much."""
    with pytest.raises(InvalidParameter) as refused:
        Capped(Counter(epsilon=1, horizon=50, contributions=made_for), contributions=2)

    assert refused.value.parameter == "contributions"


@pytest.mark.parametrize("bad", [0, -1, 1.5, True])
def test_a_cap_is_a_positive_integer(bad: Any) -> None:
    """Nothing else bounds anything."""
    with pytest.raises(InvalidParameter):
        Cap(contributions=bad)


def test_bad_ids_are_refused_before_anyone_is_seen() -> None:
    """The period stays open, the error shows no id, and nobody's cap is used up."""
    capped = _capped()

    with pytest.raises(InvalidData) as refused:
        capped.update(["secret", ["unhashable"]])  # type: ignore[list-item]

    assert "secret" not in str(refused.value)
    assert capped.counter.periods == 0
    assert capped.update(["secret", "secret"]) == capped.value == 2
