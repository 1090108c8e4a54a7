"""Publishing in rho: shares, what is stated, what is charged, and the choice between rho and epsilon."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import combinations_with_replacement, product
from operator import add
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import partita as pt
from partita.concentrated import epsilon_of_rho, pure_within, rho_of_laplace, rho_within
from partita.errors import (
    BudgetExceeded,
    IncompatibleGuarantees,
    InvalidParameter,
    InvalidRelease,
    PrivacyWarning,
)
from partita.guarantee import Guarantee
from partita.ledger.entries import Amount
from partita.numbers import frozen
from partita.public.axis.flat import HistogramRelease
from partita.public.file import Stored
from partita.publish import views as publish_views
from partita.publish.plan import plan
from partita.publish.publish import publish
from partita.publish.request import Request
from partita.testing import replay_publish
from partita.trusted.mechanisms.base import Additive, Private, WithSpecials
from partita.trusted.mechanisms.catalogue import ROWS
from partita.trusted.mechanisms.flat import HistogramCounts, Laplace, Thresholds
from partita.trusted.noise.system import SYSTEM, Noise
from partita.trusted.secret import AxisCounts

SCHEMA: dict[str, Any] = {
    "age": pt.Integer(0, 120),
    "sex": pt.Category(["f", "m"]),
    "pay": pt.Integer(0, 999),
}
PEOPLE: dict[str, Any] = {"age": [30, 31, 30, 64], "sex": ["f", "m", "m", "f"], "pay": [100, 10, 999, 500]}
MANY: dict[str, Any] = {f"c{number}": pt.Integer(0, 9) for number in range(12)}
EIGHTH = Fraction(1, 8)

LAYOUTS: dict[str, dict[str, Any]] = {
    "column": {"by": ["age"]},
    "category": {"by": ["sex"]},
    "views": {"views": ["age", "sex", "pay"]},
    "shares": {"views": ["age", "sex"], "shares": [3, 1]},
    "table": {},
    "sums": {"by": ["sex"], "sums": ["pay"]},
    "moments": {"views": ["pay"], "moments": ["pay"]},
    "totals": {"by": [], "sums": ["pay"], "mechanism": "totals"},
    "means": {"by": ["sex"], "sums": ["pay"], "mechanism": "group-means"},
    "quantiles": {"by": ["pay"], "mechanism": "quantiles", "quantiles": 3},
    "queries": {"queries": "ranges(age)"},
    "wants": {"wants": ["median of pay", "mean of pay by sex"]},
    "intervals": {"by": ["age"], "mechanism": "thresholds"},
    "tree": {"by": ["age"], "mechanism": "tree"},
}


# --- shares and guarantees --------------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_views_spend_no_more_rho_than_was_asked_for(layout: str, neighbors: Any) -> None:
    """What all views cost adds up to rho at most, and to nearly all of it."""
    request = Request.checked(SCHEMA, rho=EIGHTH, neighbors=neighbors, **LAYOUTS[layout])

    spent = sum(view.guarantee.cost_in_rho for view in request.published)
    assert EIGHTH * Fraction(99, 100) < spent <= EIGHTH
    assert request.guarantee.rho == EIGHTH


@pytest.mark.parametrize("layout", ["column", "category", "views", "sums", "table", "wants", "queries"])
def test_a_release_states_rho_and_its_file_does(layout: str, tmp_path: Path) -> None:
    """Published, written and read, it promises the same; the file is of the version that knows rho."""
    release = publish(PEOPLE, SCHEMA, rho=EIGHTH, **LAYOUTS[layout])
    release.save(tmp_path / "release.parquet")

    assert release.guarantee is not None
    assert release.guarantee.rho == EIGHTH
    assert pt.load(tmp_path / "release.parquet").guarantee == release.guarantee
    assert Stored.of(release).spec["version"] == 7
    assert "rho 1/8" in release.report()


def test_a_release_without_rho_is_of_the_version_that_it_was() -> None:
    """Only rho needs the new version."""
    assert Stored.of(publish(PEOPLE, SCHEMA, epsilon=1, by=["age"])).spec["version"] == 1
    assert Stored.of(publish(PEOPLE, SCHEMA, epsilon=1)).spec["version"] == 2


def test_pure_views_state_their_epsilon_where_it_is_less() -> None:
    """Two views of rho 1/16 are pure with less epsilon than any that follows from rho 1/8."""
    views: dict[str, Any] = {"views": ["age", "pay"], "mechanism": "intervals"}
    guarantee = Request.checked(SCHEMA, rho=EIGHTH, **views).guarantee

    assert guarantee.pure
    assert guarantee.epsilon == 2 * pure_within(EIGHTH / 2)


def test_many_views_state_the_point_that_follows_from_rho() -> None:
    """Where epsilons add up to more, the stated epsilon is that of rho at the delta that was chosen."""
    guarantee = Request.checked(MANY, rho=EIGHTH, delta="1e-2", views=list(MANY)).guarantee

    assert guarantee == Guarantee.concentrated(rho=EIGHTH, delta="1e-2")
    assert guarantee.epsilon == epsilon_of_rho(EIGHTH, "1e-2") < 12 * pure_within(EIGHTH / 12)


def test_flat_counts_spend_their_exact_rho() -> None:
    """A histogram has less noise than epsilon^2 / 2 would buy."""
    request = Request.checked(SCHEMA, rho=2, by=["sex"], mechanism="histogram")
    made = request.views[0].choice.mechanism

    assert made.epsilon > Fraction(23, 10) > pure_within(2)
    assert made.guarantee.rho == rho_of_laplace(made.epsilon) <= 2


@pytest.mark.parametrize(
    "given", [{"epsilon": 1, "rho": 1}, {"rho": 0}, {"rho": -1}, {"rho": 1, "delta": 0}, {"rho": "x"}]
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any]) -> None:
    """epsilon and rho together, an rho that is not positive, a delta that states nothing."""
    with pytest.raises(InvalidParameter):
        publish(PEOPLE, SCHEMA, **given)


def test_a_large_rho_warns_once() -> None:
    """As a large epsilon does, whatever epsilon follows at 10^-9."""
    with pytest.warns(PrivacyWarning, match="rho 3 is above 2") as caught:
        publish(PEOPLE, SCHEMA, rho=3, by=["sex"])

    assert len(caught) == 1


# --- epsilon and delta ------------------------------------------------------------------------------


def test_many_views_of_epsilon_and_delta_spend_rho() -> None:
    """Of twelve columns at epsilon 1 and delta 10^-3, the rho that follows buys each more than a twelfth."""
    request = Request.checked(MANY, epsilon=1, delta="1e-3", views=list(MANY))
    pure = Request.checked(MANY, epsilon=1, views=list(MANY))

    assert request.guarantee == Guarantee(epsilon=1, delta="1e-3", rho=request.guarantee.rho)
    assert request.guarantee.rho >= rho_within(1, "1e-3")
    assert _error(request) < _error(pure)


def test_one_view_of_epsilon_and_delta_spends_epsilon_alone() -> None:
    """Of one column the rho that follows would buy more noise, so that delta is left unused."""
    request = Request.checked(SCHEMA, epsilon=1, delta="1e-9", by=["age"])

    assert request.guarantee == Guarantee(epsilon=1)
    assert request.to_json() == Request.checked(SCHEMA, epsilon=1, by=["age"]).to_json()


def test_queries_compose_their_delta_by_themselves() -> None:
    """Their guarantee is as without rho."""
    request = Request.checked(SCHEMA, epsilon=1, delta="1e-6", queries="ranges(age)")

    assert request.guarantee.rho == 0


def _error(request: Request) -> float:
    errors = [view.predicted_error(rows) for view in request.published for rows in ROWS]
    return math.prod(errors) ** (1 / len(errors))


def test_a_release_of_epsilon_and_delta_is_what_it_says(tmp_path: Path) -> None:
    """Its point is the one that was asked for, in its file, too."""
    data = {name: [1, 2, 3] for name in MANY}
    release = publish(data, MANY, epsilon=1, delta="1e-3", views=list(MANY))
    release.save(tmp_path / "release.parquet")

    assert pt.load(tmp_path / "release.parquet").guarantee == release.guarantee
    assert "epsilon is 1 at delta" in release.report()


# --- what is claimed, and what is believed ----------------------------------------------------------


@pytest.mark.parametrize(
    "claim",
    [
        {"rho": Fraction(1, 9)},
        {"epsilon": Fraction(1, 10)},
        {"epsilon": Fraction(1, 2), "delta": Fraction(1, 10**9)},
        {"neighbors": "change-one"},
        {"unit": "event"},
    ],
)
def test_a_release_that_claims_more_than_its_views_is_refused(claim: dict[str, Any]) -> None:
    """Less rho, a smaller epsilon than pure views or rho give, or other neighbours."""
    release = publish(PEOPLE, SCHEMA, rho=EIGHTH, views=["age", "pay"], mechanism="intervals")
    assert release.guarantee is not None

    with pytest.raises(InvalidRelease, match="guarantee"):
        replace(release, guarantee=replace(release.guarantee, **claim))


def test_a_release_may_claim_less() -> None:
    """A larger rho, and the epsilon that follows from it, are true as well."""
    release = publish(PEOPLE, SCHEMA, rho=EIGHTH, views=["age", "pay"], mechanism="intervals")

    assert replace(release, guarantee=Guarantee.concentrated(rho="1/4")).guarantee is not None


# --- mechanisms that spend rho ----------------------------------------------------------------------


@frozen(kw_only=True)
class Concentrated(Private):
    """Counts of cells that take rho by themselves: a stand-in whose noise is as in a histogram."""

    takes_rho: ClassVar[bool] = True
    name: ClassVar[str] = "concentrated"
    factor: ClassVar[int] = 1

    epsilon: Any = None
    rho: Any = None
    delta: Any = Fraction(1, 10**9)
    size: int = 1

    def _convert(self) -> None:
        object.__setattr__(self, "epsilon", pure_within(self.rho))
        super()._convert()

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.concentrated(rho=self.rho * self.factor, delta=self.delta, **self.protected)

    def predicted_error(self, rows: int) -> float:
        return 1.0

    def predicted_numbers(self, rows: int) -> int:
        return self.size

    def release(self, data: AxisCounts, *, noise: Noise = SYSTEM) -> HistogramRelease:
        made = HistogramCounts(size=self.size, epsilon=self.epsilon, **self.protected)
        return replace(made.release(data, noise=noise), guarantee=self.guarantee)


class Dearer(Concentrated):
    """One that costs twice what it is given."""

    factor: ClassVar[int] = 2


def test_a_mechanism_that_takes_rho_gets_it() -> None:
    """With the delta of the point; and the release states what the view does."""
    release = publish(PEOPLE, SCHEMA, rho=EIGHTH, delta="1e-6", by=["sex"], mechanism=Concentrated)

    assert release.guarantee == release.views[0].guarantee == Guarantee.concentrated(rho=EIGHTH, delta="1e-6")


class Stated(Concentrated):
    """One whose epsilon is the one that it states at its delta, far above what its rho buys."""

    def _convert(self) -> None:
        super()._convert()
        object.__setattr__(self, "epsilon", epsilon_of_rho(self.rho, self.delta))


def test_special_cells_beside_it_pay_from_its_rho() -> None:
    """Their noise is for the epsilon whose square is twice rho, and not for the one that is stated."""
    made = Stated(size=2, rho=EIGHTH)

    assert made.epsilon > 3
    assert WithSpecials(axis=made, specials=("null",)).scale == 1 / pure_within(EIGHTH) == 2


def test_a_mechanism_that_takes_rho_is_not_given_epsilon_alone() -> None:
    """It could not keep a pure promise; with a delta it spends the rho that follows."""
    with pytest.raises(InvalidParameter, match="epsilon alone where no delta is given"):
        publish(object(), SCHEMA, epsilon=1, by=["sex"], mechanism=Concentrated)

    request = Request.checked(SCHEMA, epsilon=1, delta="1e-6", by=["sex"], mechanism=Concentrated)
    assert request.guarantee.rho == rho_within(1, "1e-6")
    assert request.guarantee.epsilon == 1


def test_a_mechanism_that_costs_more_rho_than_it_gets_is_refused() -> None:
    """Before any row is read."""
    with pytest.raises(InvalidParameter, match="must cost rho 1/8 at most"):
        publish(object(), SCHEMA, rho=EIGHTH, by=["sex"], mechanism=Dearer)


# --- the rho of flat counts -------------------------------------------------------------------------


def _units(kind: type[Additive], neighbors: str, most: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Two lists of cells that a unit may have; cells from the size on are special ones."""
    cells = range(5)
    held = [each for count in range(most + 1) for each in combinations_with_replacement(cells, count)]
    if neighbors == "add-remove":
        yield from ((each, ()) for each in held)
    elif most == 1:
        yield from product([(cell,) for cell in cells], repeat=2)
    else:
        yield from product(held, repeat=2)


def _loss(
    made: Additive, specials: Fraction | None, one: tuple[int, ...], other: tuple[int, ...]
) -> Fraction:
    """What two neighbours cost: the rho of every count that differs, at its scale."""

    def counts(cells: tuple[int, ...]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        held = np.bincount(cells, minlength=5) if cells else np.zeros(5, np.int64)
        return made.exact(held[:3]), held[3:]

    axis, beside = (abs(a - b).tolist() for a, b in zip(counts(one), counts(other), strict=True))
    changes = [(each, made.scale) for each in axis]
    changes += [(each, specials) for each in beside if specials is not None]
    return sum((rho_of_laplace(Fraction(d) / scale, d) for d, scale in changes if d), start=Fraction(0))


@pytest.mark.parametrize("contributions", [1, 2])
@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
@pytest.mark.parametrize("kind", [HistogramCounts, Thresholds, Laplace])
def test_flat_counts_cost_the_rho_that_they_state(kind: Any, neighbors: Any, contributions: int) -> None:
    """Of all pairs of units on three cells and two special ones, none costs more, and some just that."""
    for epsilon in (Fraction(1, 3), Fraction(2)):
        facts = {"neighbors": neighbors, "contributions": contributions, "special_cells": True}
        made = kind(size=3, epsilon=epsilon, states_rho=True, **facts)
        specials = WithSpecials(axis=made, specials=("null", "other")).scale

        losses = [_loss(made, specials, *pair) for pair in _units(kind, neighbors, contributions)]

        stated = made.guarantee.rho
        assert max(losses) <= stated * (1 + Fraction(1, 2**28))
        assert max(losses) > stated / 3
        if neighbors == "add-remove":
            assert max(losses) > stated * Fraction(999, 1000)


# --- ledgers ----------------------------------------------------------------------------------------


def test_rho_is_charged_and_a_key_finds_it(tmp_path: Path) -> None:
    """Once, exactly; another release that does not fit is refused before a row is read."""
    ledger = pt.Ledger(tmp_path / "budget.db")
    ledger.open("people", rho="1/4")
    paid: dict[str, Any] = {
        "ledger": ledger,
        "dataset": "people",
        "key": "ages",
        "path": tmp_path / "ages.parquet",
    }

    first = publish(PEOPLE, SCHEMA, rho=EIGHTH, views=["age", "sex"], **paid)
    again = publish(object(), SCHEMA, rho=EIGHTH, views=["age", "sex"], **paid)

    assert first.guarantee == again.guarantee
    assert ledger.balance("people").spent == Amount.of_rho(EIGHTH)
    with pytest.raises(BudgetExceeded, match="asked rho 1/2, left rho 1/8"):
        publish(object(), SCHEMA, rho="1/2", ledger=ledger, dataset="people")


def test_a_pure_release_pays_half_its_square(tmp_path: Path) -> None:
    """epsilon 1/2 in a dataset of rho."""
    ledger = pt.Ledger(tmp_path / "budget.db")
    ledger.open("people", rho="1/4")

    publish(PEOPLE, SCHEMA, epsilon="1/2", by=["age"], ledger=ledger, dataset="people")

    assert ledger.balance("people").left == Amount.of_rho(EIGHTH)


def test_a_pure_dataset_says_why_it_refuses_rho(tmp_path: Path) -> None:
    """Before a row is read, and nothing is debited."""
    ledger = pt.Ledger(tmp_path / "budget.db")
    ledger.open("people", epsilon=5)

    with pytest.raises(IncompatibleGuarantees, match=r"'people' cannot pay: .* pure epsilon"):
        publish(object(), MANY, rho=EIGHTH, delta="1e-2", views=list(MANY), ledger=ledger, dataset="people")
    assert ledger.entries("people") == ()


# --- plans, and replay ------------------------------------------------------------------------------


def test_a_plan_is_in_rho() -> None:
    """It shows the rho of each view beside the epsilon that it buys, and warns in rho."""
    planned = plan(SCHEMA, rho=EIGHTH, views=["age", "pay"], rows=1000, mechanism="intervals")
    line = planned.rows()[0]

    assert planned.guarantee.rho == EIGHTH
    assert (line["rho"], line["epsilon"]) == ("1/16", str(pure_within(EIGHTH / 2)))
    assert "rho" in str(planned)
    assert "rho 1/8" in planned._repr_html_()
    assert "rho" not in plan(SCHEMA, epsilon=1, views=["age", "sex"], rows=1000).rows()[0]


def test_a_plan_warns_in_rho() -> None:
    """Where labels are hidden, it says which rho would tell them: noise falls with its root."""
    wide: dict[str, Any] = {
        "code": pt.Category([f"l{number}" for number in range(300)]),
        "age": pt.Integer(0, 120),
    }
    [first, *_] = plan(wide, rho=Fraction(1, 50), rows=1000).warnings
    [pure, *_] = plan(wide, epsilon="1/5", rows=1000).warnings

    found = [float(each.split(word)[1].split()[0]) for each, word in ((first, "rho "), (pure, "epsilon "))]
    assert math.isclose(2 * found[0], found[1] ** 2, rel_tol=0.02)


PURE: dict[str, dict[str, Any]] = {
    "intervals": {"by": ["age"], "mechanism": "intervals"},
    "tree": {"by": ["age"], "mechanism": "tree"},
    "views": {"views": ["age", "pay"], "mechanism": "intervals"},
    "sum": {"by": [], "sums": ["pay"]},
}


@pytest.mark.parametrize("layout", PURE)
def test_neighbours_lose_what_a_release_in_rho_promises(layout: str) -> None:
    """One row more, released with the same outcome, costs no more than rho, and the epsilon of pure views."""
    table = {name: values[:3] for name, values in PEOPLE.items()}

    loss = replay_publish(table, PEOPLE, SCHEMA, rho=EIGHTH, **PURE[layout])

    promised = Request.checked(SCHEMA, rho=EIGHTH, **PURE[layout]).guarantee
    assert promised.pure
    assert loss <= promised.epsilon
    assert loss.within_rho(EIGHTH)


# --- planted bugs -----------------------------------------------------------------------------------


def _epsilon_for_its_square(rho: Fraction) -> Fraction:
    return 2 * Fraction(rho)


def _twice(rho: Fraction) -> Fraction:
    return pure_within(2 * rho)


@pytest.mark.parametrize("wrong", [_epsilon_for_its_square, _twice])
def test_a_share_that_buys_too_much_is_seen(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view that costs more than its share of rho stops the request before anything is spent."""
    monkeypatch.setattr(publish_views, "pure_within", wrong)

    with pytest.raises(AssertionError):
        assert Request.checked(SCHEMA, rho=1, by=["age"]).guarantee


def test_a_share_of_epsilon_in_place_of_rho_is_seen() -> None:
    """Half of rho buys more than half of epsilon: the two do not agree but for one view."""
    halves = Request.checked(SCHEMA, rho=EIGHTH, views=["age", "pay"])

    together = reduce(add, (view.guarantee for view in halves.published))
    assert together.epsilon > pure_within(EIGHTH)
