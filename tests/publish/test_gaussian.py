"""Gaussian noise in `publish`: chosen by predicted errors, paid in rho, and held to its exact curve."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import partita as pt
from partita.concentrated import follows, rho_within
from partita.curves import gaussian_delta
from partita.errors import InvalidRelease
from partita.public.axis.flat import GaussianRelease
from partita.public.bounds import Gaussian
from partita.public.boxes.grid import GaussianGridRelease
from partita.public.report import check_views
from partita.testing import replay_publish

TOWNS = pt.Category(["north", "south", "east"])
SCHEMA: dict[str, Any] = {"town": TOWNS, "age": pt.Integer(0, 5)}
TABLE: dict[str, list[Any]] = {"town": ["north", "south", "north", None], "age": [1, 2, 9, 4]}
GAUSSIAN: dict[str, Any] = {"by": "town", "mechanism": "gaussian-histogram"}


def test_a_category_gets_gaussian_noise_for_rho_and_laplace_noise_for_epsilon() -> None:
    """What errs less is taken, a public choice that its reason tells."""
    for budget, name in (({"rho": "1/8"}, "gaussian-histogram"), ({"epsilon": 1}, "histogram")):
        plan = pt.publish(TABLE, SCHEMA, by="town", **budget)

        assert plan.views[0].mechanism == name
    assert "smallest predicted error" in pt.publish(TABLE, SCHEMA, by="town", rho="1/8").views[0].why


def test_special_cells_have_gaussian_noise_beside_gaussian_cells() -> None:
    """A row may leave the axis for one of them: all have the variance that rho asks for."""
    release = pt.publish(TABLE, SCHEMA, by="town", rho="1/8")
    view: Any = release.views[0]

    assert isinstance(view.axis, GaussianRelease)
    assert view.specials.scale == Gaussian(view.axis.variance) == Gaussian(Fraction(4))
    assert set(view.specials.counts) == set(TOWNS.specials)


def test_without_rho_it_is_refused_before_anything_is_spent() -> None:
    """Asked for by name with epsilon alone, the error says what to pass."""
    with pytest.raises(pt.InvalidParameter, match="rho"):
        pt.publish(TABLE, SCHEMA, epsilon=1, **GAUSSIAN)


@pytest.mark.parametrize("by", ["town", ["town", "age"]])
def test_epsilon_and_delta_are_spent_by_the_exact_curve(by: Any, tmp_path: Path) -> None:
    """If all noise is Gaussian, more rho is spent than follows from rho alone, and the file is read again."""
    name = "gaussian-histogram" if by == "town" else "gaussian-grid"
    release = pt.publish(TABLE, SCHEMA, by=by, mechanism=name, epsilon=1, delta="1e-6")
    promised = release.guarantee
    assert promised is not None

    assert (promised.epsilon, promised.delta) == (Fraction(1), Fraction(1, 10**6))
    assert promised.rho > rho_within(1, "1e-6")
    assert not follows(promised.rho, promised.epsilon, promised.delta)
    view = release.views[0]
    released: Any = view.axis if hasattr(view, "axis") else view.boxes
    assert isinstance(released, GaussianRelease | GaussianGridRelease)
    assert gaussian_delta(promised.rho, 1, least_variance=released.variance) <= Fraction(1, 10**6)
    release.save(tmp_path / "release.parquet")
    again = pt.load(tmp_path / "release.parquet")
    assert again.guarantee == promised
    assert again.count(town="north").value == release.count(town="north").value


def test_several_views_share_what_the_curve_allows() -> None:
    """The squares of all views add up, each has its share of rho, and the whole is what was asked for."""
    release = pt.publish(
        TABLE, {"town": TOWNS, "age": pt.Category(["1", "2"])}, views=[("town",), ("age",)], epsilon=1,
        delta="1e-6", mechanism="gaussian-histogram",
    )  # fmt: skip
    promised = release.guarantee
    assert promised is not None
    views: Any = release.views
    variances = [view.axis.variance for view in views]

    assert sum(1 / (2 * variance) for variance in variances) <= promised.rho
    assert promised.rho > rho_within(1, "1e-6")


def test_mixed_noise_stays_within_what_follows_from_rho() -> None:
    """The exact curve is about Gaussian noise only: a tree beside it takes it away."""
    release = pt.publish(
        TABLE, SCHEMA, views=[("town",), ("age",)] * 1, epsilon=1, delta="1e-6",
        shares={"town": 1, "age": 1},
    )  # fmt: skip
    promised = release.guarantee
    assert promised is not None
    gaussian = all(isinstance(getattr(view, "axis", None), GaussianRelease) for view in release.views)

    assert gaussian or promised.rho <= rho_within(1, "1e-6")


def test_a_file_that_promises_less_epsilon_than_the_curve_allows_is_refused() -> None:
    """The views of a release say what noise there is, and the curve what they may promise together."""
    release = pt.publish(TABLE, SCHEMA, epsilon=1, delta="1e-6", **GAUSSIAN)
    promised = release.guarantee
    assert promised is not None

    check_views(release.views, promised)
    claims: list[dict[str, Any]] = [
        {"epsilon": Fraction(99, 100)}, {"delta": Fraction(9, 10**7)}, {"rho": promised.rho / 2},
    ]  # fmt: skip
    for changes in claims:
        with pytest.raises(InvalidRelease):
            check_views(release.views, replace(promised, **changes))


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
@pytest.mark.parametrize("by", ["town", ["town", "age"]])
def test_neighbours_release_one_file_for_rho(by: Any, neighbors: Any) -> None:
    """What a file of one table costs to be that of a neighbour is rho at most, over special cells, too."""
    other = {"town": [*TABLE["town"][:3], "east"], "age": [*TABLE["age"][:3], None]}
    if neighbors == "add-remove":
        other = {name: values[:3] for name, values in TABLE.items()}
    name = "gaussian-histogram" if by == "town" else "gaussian-grid"
    options: dict[str, Any] = {"by": by, "mechanism": name, "rho": "1/8", "neighbors": neighbors}

    loss = replay_publish(TABLE, other, SCHEMA, **options)

    assert loss.within_rho(Fraction(1, 8))
    assert loss.rho == pytest.approx(1 / 8)
    assert not loss <= 100
