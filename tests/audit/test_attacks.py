"""Attacks find what they are made for, and nothing on what is right."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.audit import ATTACKS, public_mechanisms
from partita.audit.attacks import Attack, AttackTrial
from partita.audit.base import COVERED_BY
from partita.audit.subjects import CounterSubject, ReleaseSubject, release_subject, subjects
from partita.trusted.noise import SYSTEM

from . import planted

NAMED = {attack.name: attack for attack in ATTACKS}


def tried(name: str, subject: Any) -> AttackTrial:
    return NAMED[name].on(subject)


def test_at_least_twelve_attacks_have_names_of_their_own() -> None:
    """Each says in a sentence what it looks for."""
    assert len(NAMED) == len(ATTACKS) >= 12
    assert all(attack.says for attack in ATTACKS)


def test_every_public_mechanism_is_attacked() -> None:
    """A new mechanism that discovery finds is a subject too; whoever is left out says what covers it."""
    assert {subject.name for subject in subjects()} == set(public_mechanisms())
    assert set(COVERED_BY).isdisjoint(public_mechanisms())
    assert all(hasattr(pt, name) for name in COVERED_BY)


@pytest.mark.parametrize("subject", subjects(), ids=lambda subject: subject.name)
def test_every_subject_withstands_one_attack(subject: Any) -> None:
    """Each is made with parameters that it takes, so that the full audit has something to attack."""
    found = tried("least significant bits", subject)

    assert found.verdict == "no violation found" or (found.verdict == "does not apply" and found.said)


@pytest.mark.parametrize("name", ["HistogramCounts", "Partition", "LogTree", "GridCounts", "LinearWorkload"])
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_what_ships_withstands(name: str, attack: Attack) -> None:
    """Quick mechanisms of each kind: no attack finds anything, and each tries something."""
    found = attack.on(release_subject(name))

    assert found.verdict == "no violation found"
    assert found.tried > 0


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_counters_sketches_and_randomizers_withstand(attack: Attack) -> None:
    """One of each family; where an attack makes no sense, it says why."""
    chosen = [each for each in subjects() if each.name in ("TreeCounter", "Density", "RandomizedResponse")]

    for found in (attack.on(each) for each in chosen):
        assert found.verdict == "no violation found" or (found.verdict == "does not apply" and found.said)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_the_right_mechanism_passes_all(attack: Attack) -> None:
    """A count of ones with all the noise that it needs."""
    subject = planted.subject(planted.right, factory=_exact)

    assert attack.on(subject).verdict in ("no violation found", "does not apply")


def _exact(epsilon: Any) -> Any:
    scale = 1 / pt.Guarantee(epsilon=epsilon).epsilon
    if not 0 < scale < 10**9 or scale < Fraction(1, 100):
        raise ValueError("epsilon")
    return lambda rows, noise: int(noise.add(sum(planted.clamped(row) for row in rows), scale))


@pytest.mark.parametrize(
    ("attack", "mechanism"),
    [
        ("least significant bits", planted.float_secret),
        ("order of rows", planted.float_sum),
        ("huge integers", planted.plain_sum),
        ("overflow of floats", planted.plain_sum),
        ("not a number", planted.plain_sum),
        ("infinity", planted.plain_sum),
        ("negative zero", planted.signed_zero),
        ("subnormal values", planted.inverse_weights),
        ("rounding at bounds", planted.plain_sum),
        ("repeated rows", planted.distinct_only),
        ("bool as value", planted.true_is_special),
        ("values in messages", planted.refuses_large),
        ("types and sizes", planted.wide_type),
    ],
)
def test_planted_weaknesses_are_found(attack: str, mechanism: Any) -> None:
    """What each attack is made for, it finds."""
    assert tried(attack, planted.subject(mechanism)).verdict == "violation"


@pytest.mark.parametrize(
    ("attack", "factory"),
    [
        ("subnormal epsilon", planted.underflow),
        ("scale underflow", planted.underflow),
        ("cancellation in epsilon", planted.rounded_epsilon),
    ],
)
def test_planted_epsilons_are_found(attack: str, factory: Any) -> None:
    """A scale that is a float, or rounded down, keeps no promise."""
    subject = planted.subject(factory(1), factory=factory)

    assert tried(attack, subject).verdict == "violation"


class _Careless:
    """Counts by 32 bits or by floats, takes any bound, promises whatever it was asked for."""

    epsilon = Fraction(1)

    def __init__(self, *, epsilon: object = 1, contributions: Any = 1) -> None:
        self.contributions = int(contributions) if contributions == contributions else 1
        self.guarantee = pt.Guarantee(epsilon=1)

    def release(self, data: pt.Histogram, *, noise: Any = SYSTEM) -> Any:
        with np.errstate(all="ignore"):
            narrow = data.counts.astype(np.int32).astype(np.int64)
        return _Cut(noise.add(narrow, Fraction(1)))


class _Cut:
    def __init__(self, edges: Any) -> None:
        self.edges = edges


class _Rounded(_Careless):
    """Keeps counts as floats, which have 53 bits."""

    def release(self, data: pt.Histogram, *, noise: Any = SYSTEM) -> Any:
        near = data.counts.astype(np.float64).astype(np.int64) if data.counts.size else data.counts
        return _Cut(noise.add(near, Fraction(1)))


def _subject(kind: Any) -> ReleaseSubject:
    right = release_subject("HistogramCounts")
    return ReleaseSubject("careless", kind, right._data)


@pytest.mark.parametrize(
    ("attack", "kind"),
    [
        ("overflow of counts", _Careless),
        ("precision", _Rounded),
        ("float and bool contributions", _Careless),
        ("subnormal epsilon", _Careless),
    ],
)
def test_planted_carelessness_is_found(attack: str, kind: Any) -> None:
    """Counts that wrap around or are rounded, bounds that are taken as they come."""
    assert tried(attack, _subject(kind)).verdict == "violation"


def test_a_counter_that_counts_floats_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half an event is none, and a NaN less than that."""
    monkeypatch.setattr("partita.trusted.streams.counter.counted", lambda x: 0 if x != x else int(x))

    assert tried("rounding at bounds", CounterSubject("TreeCounter")).verdict == "violation"
