"""Released sums taken apart for a file, put together again, and refused where somebody changed them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from partita.domain import Integer
from partita.domain.axis import Axis
from partita.errors import InvalidRelease
from partita.public.axis.base import Parts
from partita.public.boxes.base import BoxTerm
from partita.public.sums.level_trees import LevelTreesRelease
from partita.public.sums.log_tree import LogTreeRelease
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.sums import LevelTrees, LogTree
from partita.trusted.secret import Points

AXIS, VALUE = Axis(size=9), Integer(-50, 10**6)


def _level(moments: bool = True) -> LevelTreesRelease:
    random = np.random.default_rng(1)
    rows = np.stack([random.integers(0, 9, 3000), random.integers(1, 9000, 3000)], axis=1)
    points = Points.from_rows(rows, axes=[AXIS, Axis.of(VALUE)])
    mechanism = LevelTrees(keys=[AXIS], value=VALUE, epsilon=1, moments=moments)
    return mechanism.release(points, noise=tape_noise(EndlessTape(2)))


def _log() -> LogTreeRelease:
    rows = np.random.default_rng(1).integers(1, 9000, (3000, 1))
    points = Points.from_rows(rows, axes=[Axis.of(VALUE)])
    return LogTree(value=VALUE, epsilon=1).release(points, noise=tape_noise(EndlessTape(2)))


def _again(release: Any, parts: Parts) -> Any:
    if isinstance(release, LogTreeRelease):
        return LogTreeRelease.from_parts(parts, None, value=VALUE)
    return LevelTreesRelease.from_parts(parts, None, keys=[AXIS], value=VALUE)


@pytest.mark.parametrize("release", [_level(), _level(moments=False), _log()], ids=["moments", "sums", "log"])
def test_parts_make_the_same_release(release: Any) -> None:
    """A release from its parts gives the same answers, errors and bounds, to the last bit."""
    again = _again(release, release.parts())
    for term in (release.everything, BoxTerm((2,), (6,))):
        mine, theirs = release.sum([term]), again.sum([term])
        assert (mine.value, mine.error, mine.worst(), mine.covers) == (
            theirs.value,
            theirs.error,
            theirs.worst(),
            theirs.covers,
        )
        assert repr(release.mean([term])) == repr(again.mean([term]))
        if release.moments:
            assert repr(release.std([term])) == repr(again.std([term]))
    assert again.spent == release.spent
    assert again.story == release.story


@pytest.mark.parametrize("release", [_level(), _log()], ids=["level", "log"])
def test_parts_hold_no_floats(release: Any) -> None:
    """Facts are whole numbers and text, and series hold integers."""
    parts = release.parts()
    assert {type(fact) for fact in parts.facts.values()} <= {int, str}
    assert {series.dtype.name for series in parts.series.values()} <= {"int64", "uint64", "object"}


def _fact(name: str, value: Any) -> Callable[[Parts], Parts]:
    return lambda parts: parts._replace(facts={**parts.facts, name: value})


def _series(name: str, value: Any) -> Callable[[Parts], Parts]:
    return lambda parts: parts._replace(series={**parts.series, name: value})


HOSTILE = [
    _fact("degree", 3),
    _fact("degree", True),
    _fact("branching", 1),
    _fact("branching", 2**40),
    _fact("scale", "0"),
    _fact("scale", 1.5),
    _fact("scale", "1e300"),
    _fact("rule", 1),
    _fact("rule", 3),
    _fact("extra", 1),
    _series("extra", np.zeros(1, np.int64)),
    _series("noisy", np.zeros(3, np.int64)),
    _series("noisy", np.zeros(3)),
    _series("noisy", None),
    _series("buckets", np.zeros(2, np.int64)),
    _series("along", np.array([0], np.int64)),
    _series("along", np.array([5, -1, -1], np.int64)),
    _series("at", np.array([2**63], np.uint64)),
]


@pytest.mark.parametrize("change", HOSTILE)
def test_what_was_changed_is_refused(change: Callable[[Parts], Parts]) -> None:
    """Parts of the wrong type, number or size are an `InvalidRelease`, and nothing else comes out."""
    for release in (_level(), _log()):
        with pytest.raises(InvalidRelease):
            _again(release, change(release.parts()))


def test_files_of_the_earlier_rule_have_the_caps_that_they_had() -> None:
    """They do not name the rule, by which rows below 0 could choose the cap of values above."""
    value, places = Integer(0, 10**6), np.repeat([0, 900], [5_000, 20])[:, np.newaxis]
    points = Points.from_rows(places, axes=[Axis.of(value)])
    release = LevelTrees(keys=[], value=value, epsilon=1).release(points, noise=tape_noise(EndlessTape(2)))
    earlier = replace(release, rule=1)
    size = earlier.controls.size
    facts = {name: fact for name, fact in release.parts().facts.items() if name != "rule"}
    series = {**release.parts().series, "noisy": np.arange(size)}
    read = LevelTreesRelease.from_parts(Parts(facts, series), None, keys=[], value=value)

    assert read.controls.tops == earlier.controls.tops != release.controls.tops
    assert "rule" not in read.parts().facts


def test_any_noisy_numbers_make_a_release() -> None:
    """Absurd released numbers give finite answers: no question fails, whatever the file says."""
    release = _level()
    for number in (-(2**62), 0, 2**62):
        parts = _series("noisy", np.full_like(release.noisy, number))(release.parts())
        again = _again(release, parts)
        assert np.isfinite(again.sum([again.everything]).value)
        assert str(again.mean([again.everything]))
        assert str(again.std([again.everything]))
