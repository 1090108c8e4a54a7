"""A mechanism of the caller's own is planned, simulated and published like ours, and named as theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import pytest

import partita as pt
from partita.errors import InvalidParameter, InvalidRelease
from partita.ledger.ledger import Ledger
from partita.publish.plan import plan, simulate
from partita.publish.publish import publish
from partita.trusted.mechanisms.catalogue import OWN
from partita.trusted.noise import SYSTEM

SCHEMA: dict[str, Any] = {"age": pt.Integer(0, 9)}
PAIR: dict[str, Any] = {"age": pt.Integer(0, 9), "size": pt.Integer(0, 9)}
ROWS = {"age": [1, 2, 3] * 100, "size": [4, 5, 6] * 100}


class Counted:
    """A mechanism that is no subclass of ours: one count with noise for each cell."""

    name = "counted"

    def __init__(self, *, size: int, epsilon: Any, **common: Any) -> None:
        self.inner = pt.HistogramCounts(size=size, epsilon=epsilon, **common)
        self.size, self.epsilon = self.inner.size, self.inner.epsilon
        self.neighbors, self.contributions = self.inner.neighbors, self.inner.contributions
        self.unit, self.guarantee = self.inner.unit, self.inner.guarantee

    def predicted_error(self, rows: int) -> float:
        return self.inner.predicted_error(rows)

    def predicted_numbers(self, rows: int) -> int:
        return self.size

    def release(self, data: Any, *, noise: Any = SYSTEM) -> pt.HistogramRelease:
        return self.inner.release(data, noise=noise)


class OwnRelease(pt.HistogramRelease):  # type: ignore[misc]
    """A release of a class that no file knows."""

    kind = "own"
    papers: ClassVar[dict[str, tuple[str, ...]]] = {}


class Foreign(Counted):
    """A mechanism whose release is of a class of its own, too."""

    def release(self, data: Any, *, noise: Any = SYSTEM) -> OwnRelease:
        made = self.inner.release(data, noise=noise)
        return OwnRelease(**{each.name: getattr(made, each.name) for each in fields(made)})


class Boxed:
    """A mechanism for several columns."""

    def __init__(self, *, axes: Any, epsilon: Any, **common: Any) -> None:
        self.inner = pt.GridCounts(axes=axes, epsilon=epsilon, **common)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inner"], name)

    def release(self, points: Any, *, noise: Any = SYSTEM) -> pt.GridRelease:
        return self.inner.release(points, noise=noise)


@pytest.mark.parametrize(
    "mechanism",
    [Counted, Counted(size=10, epsilon=1), lambda size, **common: Counted(size=size, **common)],
    ids=["class", "object", "function"],
)
def test_an_own_mechanism_is_planned_simulated_and_published(mechanism: Any, tmp_path: Path) -> None:
    """The guarantee is what it computes, and everything that is said of it says whose it is."""
    planned = plan(SCHEMA, epsilon=1, mechanism=mechanism)
    measured = simulate(planned, ROWS, ranges=20, questions=["count where age = 1"], times=3)
    release = publish(ROWS, SCHEMA, epsilon=1, mechanism=mechanism, path=tmp_path / "a.parquet")
    loaded = pt.load(tmp_path / "a.parquet")

    assert planned.guarantee == release.guarantee == loaded.guarantee == pt.Guarantee(epsilon=1)
    assert OWN in str(planned)
    assert {each.mechanism for each in measured.measured} == {"counted"}
    assert measured.asked[0].exact == 100
    for made in (release, loaded):
        assert abs(made.count(age=1).value - 100) < 40
        assert OWN in made.report()
        assert "'counted'" in made.report()


def test_an_own_mechanism_gets_its_share_of_epsilon(tmp_path: Path) -> None:
    """A class is made for each view of one column, and the ledger is debited with what all promise."""
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", epsilon=3)
    release = publish(
        *(ROWS, PAIR),
        epsilon=2,
        views=["age", "size"],
        shares=[3, 1],
        mechanism=Counted,
        ledger=ledger,
        dataset="people",
    )

    assert [str(view.guarantee and view.guarantee.epsilon) for view in release.views] == ["3/2", "1/2"]
    assert [view.mechanism for view in release.views] == ["counted", "counted"]
    assert ledger.balance("people").left.epsilon == 1


def test_an_own_mechanism_for_several_columns_is_published() -> None:
    """One that is made with axes suits views of several columns, and gets one of ours beside it."""
    release = publish(ROWS, PAIR, epsilon=4, views=[("age", "size"), "age"], mechanism=Boxed)

    assert [view.mechanism for view in release.views] == ["own grid", "histogram"]
    assert abs(release.count(age=1, size=4).value - 100) < 60


def test_a_mechanism_of_ours_may_be_passed_as_a_class() -> None:
    """It keeps its name, and is not taken for another's."""
    planned = plan(SCHEMA, epsilon=1, mechanism=pt.HistogramCounts)

    assert "age: histogram. It was asked for by name." in str(planned)


def test_what_no_file_can_hold_is_asked_and_not_saved(tmp_path: Path) -> None:
    """It is refused before anything is paid, where a path is given, and when it is saved by hand."""
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", epsilon=3)
    release = publish(ROWS, SCHEMA, epsilon=1, mechanism=Foreign)

    assert abs(release.count(age=1).value - 100) < 40
    with pytest.raises(InvalidRelease, match="must be of a class that a file can be read back to"):
        release.save(tmp_path / "a.parquet")
    with pytest.raises(InvalidParameter, match="'counted' releases a class of your own"):
        publish(
            *(ROWS, SCHEMA),
            epsilon=1,
            mechanism=Foreign,
            path=tmp_path / "a.parquet",
            ledger=ledger,
            dataset="people",
        )
    assert ledger.balance("people").left.epsilon == 3
    assert not (tmp_path / "a.parquet").exists()


def without(part: str) -> Callable[..., Any]:
    """A function that makes a mechanism which lacks something."""

    def make(size: int, **common: Any) -> Any:
        made = Counted(size=size, **common)
        parts = {
            name: each
            for name, each in vars(Counted).items()
            if name not in (part, "__dict__", "__weakref__")
        }
        kind: Any = type("Lacking", (), parts)
        lacking = kind.__new__(kind)
        lacking.__dict__.update({name: each for name, each in vars(made).items() if name != part})
        return lacking

    return make


class Silent(Counted):
    """It does not say what it releases."""

    def release(self, data: Any, *, noise: Any = SYSTEM):  # type: ignore[no-untyped-def]
        return self.inner.release(data, noise=noise)


class Boasting(Counted):
    """It promises less than it is asked for."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.guarantee = pt.Guarantee(epsilon=2)


@pytest.mark.parametrize(
    ("mechanism", "rule"),
    [
        (Counted(size=9, epsilon=1), "must be made for 10 cells"),
        (Counted(size=10, epsilon=2), "must promise just what it is given"),
        (Counted(size=10, epsilon=1, neighbors="change-one"), "must promise just what it is given"),
        (Boasting, "must promise just what it is given"),
        (Silent, "must annotate release with what it returns, a subclass of AxisRelease"),
        (Boxed, "must suit a view, and this one is for several columns"),
        (without("guarantee"), "must have guarantee"),
        (without("predicted_error"), "must have predicted_error"),
        (lambda size, **common: 3, "must have size"),
        (object(), "must be 'auto' or one of"),
        (3, "must be 'auto' or one of"),
    ],
    ids=[
        "size",
        "epsilon",
        "neighbors",
        "boasting",
        "silent",
        "boxes",
        "guarantee",
        "error",
        "number",
        "object",
        "3",
    ],
)
def test_what_is_no_mechanism_for_these_columns_is_refused(mechanism: Any, rule: str) -> None:
    """By publish and by plan, before any row is read."""
    for call in (lambda: plan(SCHEMA, epsilon=1, mechanism=mechanism),
                 lambda: publish("no such file", SCHEMA, epsilon=1, mechanism=mechanism)):  # fmt: skip
        with pytest.raises(InvalidParameter, match=rule) as refused:
            call()
        assert refused.value.parameter == "mechanism"


def test_an_own_mechanism_is_audited() -> None:
    """The same object, on histograms; one that adds no noise is found."""

    class Bare(Counted):
        def release(self, data: Any, *, noise: Any = SYSTEM) -> pt.HistogramRelease:
            return self.inner.release(data, noise=pt.testing.ZeroNoise())  # type: ignore[attr-defined]

    from partita.audit.engine import audit

    pairs = [(pt.Histogram.dense([count, 0]), pt.Histogram.dense([count + 1, 0])) for count in range(2)]
    sound = audit(Counted(size=2, epsilon=1), neighbours=pairs, draws=200, depth="quick")
    broken = audit(Bare(size=2, epsilon=1), neighbours=pairs, draws=200, depth="quick")

    assert sound.violations == []
    assert broken.violations != []
