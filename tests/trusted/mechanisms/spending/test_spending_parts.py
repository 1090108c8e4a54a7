"""A spending tree taken apart for a file, put together again, and refused where somebody changed it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidRelease, PartitaError
from partita.guarantee import Guarantee
from partita.public.axis.base import Parts
from partita.public.axis.spending_tree import SpendingTreeRelease
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.spending_tree import SpendingTree
from partita.trusted.secret import Histogram

Series = dict[str, Any]


def _release(seed: int = 0, **changes: Any) -> SpendingTreeRelease:
    data = Histogram.from_counts(range(0, 900, 3), [40] * 300, size=1000)
    tree = SpendingTree(size=1000, **{"epsilon": 1, "total": 12_000, **changes})
    return tree.release(data, noise=tape_noise(EndlessTape(seed)))


@pytest.mark.parametrize("changes", [{}, {"total_scale": 100}, {"epsilon": "1/1000000000000"}], ids=str)
def test_parts_make_the_same_release(changes: dict[str, Any]) -> None:
    """A release from its parts gives the same answers, errors and bounds, to the last bit."""
    release, guarantee = _release(**changes), Guarantee(epsilon=1)

    again = SpendingTreeRelease.from_parts(release.parts(), guarantee)

    lows, highs = np.array([0, 5, 990], np.uint64), np.array([999, 700, 999], np.uint64)
    assert again.guarantee == guarantee
    assert again.counts(lows, highs).tolist() == release.counts(lows, highs).tolist()
    assert again.errors(lows, highs).tolist() == release.errors(lows, highs).tolist()
    assert again.count(5, 700).worst(0.05) == release.count(5, 700).worst(0.05)
    assert again.error(0.05) == release.error(0.05)


def test_parts_hold_no_floats() -> None:
    """Facts are whole numbers and text, and series hold integers of 64 bits, or Python's."""
    for release in (_release(), _release(total_scale=100, epsilon="1/1000000000000")):
        parts = release.parts()
        assert {type(fact) for fact in parts.facts.values()} <= {int, str, type(None)}
        assert {series.dtype.name for series in parts.series.values()} <= {"int64", "uint64", "object"}


def _changed(name: str, at: int, value: int) -> Callable[[Series], None]:
    def change(series: Series) -> None:
        series[name] = series[name].copy()
        series[name][at] = value

    return change


def _with(name: str, values: Any) -> Callable[[Series], None]:
    return lambda series: series.__setitem__(name, values)


HOSTILE: list[tuple[str, Callable[[Series], None]]] = [
    ("a root that ends early", _changed("last", 0, 998)),
    ("a root that is a leaf", _changed("expanded", 0, 0)),
    ("a root that starts late", _changed("first", 0, 1)),
    ("a root beyond 2^63", _changed("last", 0, 2**64 - 1)),
    ("a gap", _changed("first", 2, 65)),
    ("an overlap", _changed("first", 2, 10)),
    ("a node that ends before it starts", _changed("last", 1, 2**64 - 1)),
    ("a last level that is cut further", _changed("expanded", -1, 1)),
    ("a leaf with children", _changed("expanded", 1, 0)),
    ("a flag of two", _changed("expanded", 1, 2)),
    ("a level too many", _with("levels", np.array([1, 16, 10**6]))),
    ("a level of nothing", _with("levels", np.array([1, 0, 16]))),
    ("levels that wrap around", _with("levels", np.array([1, 2**62, 2**62, 2**62, 2**62 + 16]))),
    ("negative levels", _with("levels", np.array([1, -16]))),
    ("no levels", _with("levels", np.zeros(0, np.int64))),
    ("very many levels", _with("levels", np.ones(10**5, np.int64))),
    ("cells that are floats", _with("first", np.zeros(17))),
    ("cells that are a table", _with("first", np.zeros((17, 1), np.uint64))),
    ("a look at the root", _changed("nodes", 0, 0)),
    ("a look at nobody", _changed("nodes", 0, 10**9)),
    ("a look at a negative node", _changed("nodes", 0, -1)),
    ("a look for free", _changed("units", 0, 0)),
    ("a look that costs too much", _changed("units", 0, 2**20 + 1)),
    ("a look that costs less than none", _changed("units", 0, -(2**63))),
    ("a path that costs too much", _changed("units", -1, 2**20)),
    ("a look too few", lambda series: series.__setitem__("noisy", series["noisy"][1:])),
    ("units too few", lambda series: series.__setitem__("units", series["units"][1:])),
    ("a step too long", _changed("steps", 0, 17)),
    ("a step of nothing", _changed("steps", 0, 0)),
    ("steps that wrap around", _with("steps", np.array([2**62, 2**62, 2**62, 2**62]))),
    ("noise that is a float", _with("noisy", np.zeros(16))),
    ("noise that is text", _with("noisy", np.array(["1"] * 16, object))),
]


@pytest.mark.parametrize("change", [change for _, change in HOSTILE], ids=[name for name, _ in HOSTILE])
def test_hostile_series_are_refused(change: Callable[[Series], None]) -> None:
    """Whatever breaks the tree or its looks is an `InvalidRelease`."""
    parts = _release().parts()
    series = dict(parts.series)
    change(series)

    with pytest.raises(InvalidRelease):
        SpendingTreeRelease.from_parts(Parts(parts.facts, series), None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size", 999),
        ("size", "1000"),
        ("scale", "0"),
        ("scale", "-1"),
        ("scale", 1.5),
        ("scale", "nan"),
        ("total", "12000"),
        ("total", 2**200),
        ("total", True),
        ("total_scale", "1e400"),
        ("branching", 0),
        ("growth", "fast"),
        ("worth", 8),
        ("depth_power", None),
    ],
    ids=str,
)
def test_hostile_facts_are_refused(name: str, value: Any) -> None:
    """A fact of another type, or out of its range, is an `InvalidRelease`."""
    parts = _release().parts()

    with pytest.raises(InvalidRelease):
        SpendingTreeRelease.from_parts(Parts({**parts.facts, name: value}, parts.series), None)


@pytest.mark.parametrize("where", ["facts", "series"])
def test_missing_and_foreign_parts_are_refused(where: str) -> None:
    """A release has the parts of its kind, no more and no less."""
    parts = _release().parts()
    for name in [*getattr(parts, where), "more"]:
        changed = dict(getattr(parts, where))
        changed.pop(name, None) if name in changed else changed.update({name: 1})
        with pytest.raises(InvalidRelease):
            SpendingTreeRelease.from_parts(parts._replace(**{where: changed}), None)


def test_changed_numbers_never_raise_anything_else() -> None:
    """Of 400 releases with numbers changed at random those that are believed can be asked."""
    parts, words = _release().parts(), EndlessTape("numbers").take(1_600).reshape(-1, 4)
    believed = 0
    for which, at, high, low in words.tolist():
        name = sorted(parts.series)[which % len(parts.series)]
        values = parts.series[name].copy()
        values[at % values.size] = (high >> 1 + high % 63) if low % 2 else values[low % values.size]
        try:
            again = SpendingTreeRelease.from_parts(Parts(parts.facts, {**parts.series, name: values}), None)
            believed += int(np.isfinite([again.count(0, 9).value, again.error(0.05)]).all())
        except PartitaError:
            continue

    assert believed > 20
