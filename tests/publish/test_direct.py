"""What a class releases by itself is asked, saved and read back like what `publish` makes."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import partita as pt
from partita.domain import Category, Domain, Integer
from partita.domain.axis import Axis
from partita.errors import InvalidParameter
from partita.public.axis.base import Specials
from partita.public.queries.language import ranges, value
from partita.public.queries.queries import Universe
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.base import WithSpecials
from partita.trusted.mechanisms.catalogue import (
    axis_mechanisms,
    box_mechanisms,
    quantile_mechanisms,
    query_mechanisms,
    sum_mechanisms,
)
from partita.trusted.secret import Histogram, Points

AGE: Final = Integer(0, 120)
ONE: Final[dict[str, Domain]] = {"age": AGE}
SEVERAL: Final[dict[str, Domain]] = {"age": Integer(0, 20), "town": Category(["a", "b"])}
SUMMED: Final[dict[str, Domain]] = {"year": Integer(0, 5), "wage": Integer(0, 999)}
CELLS: Final = np.sort(np.arange(300) % 121)


def _points(schema: Mapping[str, Domain]) -> Points:
    axes = tuple(map(Axis.of, schema.values()))
    rows = [[(place * 7 + number) % axis.width for number, axis in enumerate(axes)] for place in range(3000)]
    return Points.from_rows(rows, axes=axes)


def _made(kind: type[Any]) -> tuple[Any, Any, dict[str, Domain]]:
    """A mechanism, its secret, and the schema of what it releases."""
    if kind in {**axis_mechanisms(), **quantile_mechanisms()}.values():
        return kind(size=AGE.size, epsilon=1), Histogram.from_cells(CELLS, size=AGE.size), ONE
    if kind in box_mechanisms().values():
        axes = [Axis.of(domain) for domain in SEVERAL.values()]
        return kind(axes=axes, epsilon=1), _points(SEVERAL), SEVERAL
    if kind in query_mechanisms().values():
        universe = Universe.of(SEVERAL, list(SEVERAL))
        asked = value("age") if kind.name == "single-truncation" else ranges("age")
        return kind(queries=asked, universe=universe, epsilon=1), _points(SEVERAL), SEVERAL
    own = kind.name == "log-tree"
    schema = {"wage": SUMMED["wage"]} if own or kind.name == "level-trees" else SUMMED
    keys = {} if own else {"keys": tuple(Axis.of(schema[name]) for name in list(schema)[:-1])}
    return kind(value=SUMMED["wage"], epsilon=1, **keys), _points(schema), schema


KINDS: Final = {
    **axis_mechanisms(),
    **quantile_mechanisms(),
    **box_mechanisms(),
    **query_mechanisms(),
    **sum_mechanisms(),
}
kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def _answers(release: Any) -> Any:
    """A few answers of a release of any kind."""
    if release.queries is not None:
        return release.answers().values[:5].tolist()
    if release.quantiles:
        return float(release.quantile("age", "1/2").value)
    if release.sums:
        view = release.sums[0]
        asked: dict[str, Any] = {view.column: (0, 500)} if view.keys == (view.column,) else {}
        statistic = release.mean if view.mechanism == "group-means" else release.sum
        asked |= {"year": 3} if view.mechanism == "group-means" else {}
        return statistic(view.column, asked).value
    return [release.count(age=(3, 15)).value, release.count().value]


@kinds
def test_what_a_class_releases_is_saved_and_asked(kind: Any, tmp_path: Path) -> None:
    """The guarantee travels, spending was not recorded, and a copy answers alike."""
    mechanism, secret, schema = _made(kind)

    release = pt.as_release(mechanism.release(secret), schema)
    release.save(tmp_path / "release.parquet")
    copy = pt.load(tmp_path / "release.parquet")

    assert copy.guarantee == release.guarantee == mechanism.guarantee
    assert not copy.provenance.recorded
    assert "not recorded in any ledger" in copy.report()
    assert _answers(copy) == pytest.approx(_answers(release), rel=1e-12)  # to the last bits of a fit
    assert copy.report() == release.report()


@kinds
def test_foreign_noise_carries_no_guarantee(kind: Any) -> None:
    """A release from a tape protects nobody, and says so."""
    mechanism, secret, schema = _made(kind)

    release = pt.as_release(mechanism.release(secret, noise=tape_noise(EndlessTape(kind.name))), schema)

    assert release.guarantee is None
    assert "protects nobody" in release.report()


def _tree() -> Any:
    return pt.Tree(size=AGE.size, epsilon=1).release(Histogram.from_cells(CELLS, size=AGE.size))


def test_questions_are_about_rows_that_have_a_value() -> None:
    """Open ends stop at the ends of the axis, and special cells cannot be asked for."""
    tree = _tree()
    release = pt.as_release(tree, ONE)

    assert release.count(age=(30, None)).value == tree.count(30, 120).value
    assert release.count().value == tree.count(0, 120).value
    assert release.count(age=pt.Not((30, 120))).value == tree.count(0, 29).value
    for cell in (pt.NULL, pt.BELOW, [30, pt.NULL]):
        with pytest.raises(InvalidParameter, match="age has no special cells in this release"):
            release.count(age=cell)
    assert "Special cells were not counted" in release.report()
    assert "is counted in the special cell" not in release.report()


def test_groups_plots_and_synthetic_rows_do_without_special_cells() -> None:
    """Groups are those of labels, and synthetic rows all have a value."""
    towns = {"town": Category(["a", "b"])}
    counted = pt.HistogramCounts(size=2, epsilon=1).release(Histogram.from_cells([0, 0, 1], size=2))
    release = pt.as_release(counted, towns)

    assert [entry[0] for entry in release.group("town").count().entries] == ["a", "b"]
    assert None not in release.synthesize(20)["town"]
    assert release.count(town=pt.Not("a")).value == counted.count(1, 1).value
    assert release.counts(town=["a", "b"]).values.tolist() == [counted.count(c, c).value for c in (0, 1)]


def test_special_cells_come_with_their_noise(tmp_path: Path) -> None:
    """Given beside the axis, they are asked for as usual."""
    column = WithSpecials(axis=pt.Tree(size=AGE.size, epsilon=1), specials=AGE.specials)
    beside = {"below": 0, "above": 0, "invalid": 5, "null": 70}
    axis, specials = column.release(Histogram.from_cells(CELLS, size=AGE.size), beside)

    release = pt.as_release(axis, ONE, specials=specials)
    release.save(tmp_path / "release.parquet")

    assert pt.load(tmp_path / "release.parquet").count(age=pt.NULL).value == specials.counts["null"]


def test_statements_of_the_publisher_are_kept() -> None:
    """The name of the mechanism, of the dataset and of the column of ids."""
    made = pt.Tree(size=AGE.size, epsilon=1, contributions=2, unit="person")
    tree = made.release(Histogram.from_cells(CELLS, size=AGE.size))
    release = pt.as_release(tree, ONE, mechanism="mine", dataset="people", person="id")

    assert release.views[0].mechanism == "mine"
    assert (release.provenance.dataset, release.provenance.person) == ("people", "id")
    assert pt.as_release(tree, ONE).views[0].mechanism == "tree"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": {"age": Integer(0, 9)}}, "schema must have the cells that were released, 121 cells, got"),
        ({"schema": SEVERAL}, "schema must have 1 column for what was released, got 2"),
        ({"schema": {}}, "schema must map columns to domains"),
        ({"released": 7}, "released must be what the release of a mechanism returned, got 'int'"),
        ({"dataset": ""}, "dataset must"),
        ({"person": ""}, "person must name the column of ids"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    """A typed error names the parameter and what would fit."""
    given = {"released": _tree(), "schema": ONE} | change

    with pytest.raises(InvalidParameter, match=message):
        pt.as_release(given.pop("released"), given.pop("schema"), **given)


def test_axes_with_other_special_cells_are_refused() -> None:
    """A grid over bare axes is not one over the columns of a schema."""
    bare = (Axis(size=21), Axis(size=2))
    grid = pt.GridCounts(axes=bare, epsilon=1).release(Points.from_rows([[3, 1]], axes=bare))

    message = r"0\+21\+0 cells, 0\+2\+0 cells, got '1\+21\+3 cells, 0\+2\+2 cells'"
    with pytest.raises(InvalidParameter, match=message):
        pt.as_release(grid, SEVERAL)
    with pytest.raises(InvalidParameter, match="specials must be of one axis"):
        pt.as_release(grid, SEVERAL, specials=Specials(counts={}, scale=pt.Tree(size=2, epsilon=1).scale))


def test_special_cells_beside_an_axis_of_change_one_neighbours_are_refused() -> None:
    """A row may leave the axis for one of them, and noise for moves along the axis does not pay for that."""
    tree = pt.Tree(size=AGE.size, epsilon=1, neighbors="change-one")
    released = tree.release(Histogram.from_cells(CELLS, size=AGE.size))
    beside = Specials(counts=dict.fromkeys(AGE.specials, 0), scale=Fraction(2))

    with pytest.raises(InvalidParameter, match="specials must be left out between change-one neighbours"):
        pt.as_release(released, ONE, specials=beside)


def test_sums_that_need_counts_of_their_keys_are_refused() -> None:
    """Sums by keys are cut by counts that publish releases beside them."""
    axes = tuple(Axis.of(domain) for domain in SUMMED.values())
    trees = pt.LevelTrees(keys=axes[:1], value=SUMMED["wage"], epsilon=1)

    with pytest.raises(InvalidParameter, match="released must stand by itself"):
        pt.as_release(trees.release(_points(SUMMED)), SUMMED)
