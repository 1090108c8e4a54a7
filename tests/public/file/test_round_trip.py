"""What is saved is what is loaded, for every kind of release and by every tool."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.domain import Integer
from partita.public.axis.base import AxisRelease, Parts
from partita.public.base import RELEASE_PACKAGES
from partita.public.boxes.base import BoxRelease
from partita.public.file import decode, encode, load, save, unpack
from partita.public.release import Release
from partita.public.sums.base import SumRelease
from partita.public.views import BoxView, View
from partita.public.workload.release import WorkloadRelease

from .specimens import axis, box_mechanism, box_view, boxes, mechanism, places, release, rows, view


def kinds(released: type[object]) -> Iterator[Any]:
    """The kinds of all classes of this sort in the package."""
    for package in RELEASE_PACKAGES:
        for module in pkgutil.iter_modules(import_module(package).__path__):
            home = import_module(f"{package}.{module.name}")
            for each in vars(home).values():
                if isinstance(each, type) and issubclass(each, released) and "kind" in vars(each):
                    yield vars(each)["kind"]


def only(loaded: Release) -> View:
    """The one view, which has one column."""
    [found] = loaded.views
    assert isinstance(found, View)
    return found


def together(loaded: Release) -> BoxView:
    """The one view, which has several columns."""
    [found] = loaded.views
    assert isinstance(found, BoxView)
    return found


def same(ours: Parts, theirs: Parts) -> bool:
    """Whether two releases are made of the same facts and the same numbers of the same types."""
    arrays = [(ours.series[name], theirs.series[name]) for name in {*ours.series, *theirs.series}]
    return ours.facts == theirs.facts and all(
        one.dtype == other.dtype and np.array_equal(one, other) for one, other in arrays
    )


def test_every_kind_has_a_home() -> None:
    """The table of kinds names exactly the classes there are."""
    assert set(AxisRelease.kinds()) == set(kinds(AxisRelease))
    assert set(BoxRelease.kinds()) == set(kinds(BoxRelease))
    assert set(WorkloadRelease.kinds()) == set(kinds(WorkloadRelease))
    for family in (AxisRelease, BoxRelease, WorkloadRelease, SumRelease):
        for kind in family.kinds():
            assert family.of_kind(kind).kind == kind
            assert issubclass(family.of_kind(kind), family)


@pytest.mark.parametrize("kind", AxisRelease.kinds())
def test_a_release_survives_a_file(kind: str, tmp_path: Path) -> None:
    """Numbers, facts, domain, guarantee and answers are the same after a save and a load."""
    path, original = tmp_path / "a.parquet", release(kind)
    save(original, path)
    loaded = load(path)

    before, after = only(original), only(loaded)
    assert same(before.axis.parts(), after.axis.parts())
    assert (before.domain, before.mechanism, before.why) == (after.domain, after.mechanism, after.why)
    assert before.axis.guarantee == after.axis.guarantee is not None
    assert (original.guarantee, original.provenance) == (loaded.guarantee, loaded.provenance)
    assert before.specials.counts == after.specials.counts
    assert before.specials.scale == after.specials.scale
    assert original.report() == loaded.report()
    last = before.domain.size - 1
    assert before.axis.count(0, last // 2).worst() == after.axis.count(0, last // 2).worst()


@pytest.mark.parametrize("kind", BoxRelease.kinds())
def test_a_release_of_several_columns_survives_a_file(kind: str, tmp_path: Path) -> None:
    """Numbers, facts, domains, guarantee and answers are the same after a save and a load."""
    path, original = tmp_path / "a.parquet", release(kind)
    save(original, path)
    loaded = load(path)

    before, after = together(original), together(loaded)
    assert same(before.boxes.parts(), after.boxes.parts())
    assert (before.columns, before.domains) == (after.columns, after.domains)
    assert (before.mechanism, before.why) == (after.mechanism, after.why)
    assert before.guarantee == after.guarantee is not None
    assert (original.guarantee, original.provenance) == (loaded.guarantee, loaded.provenance)
    assert original.report() == loaded.report()
    whole = before.boxes.everything
    half = whole._replace(high=tuple(last // 2 for last in whole.high))
    one, other = before.boxes.answer(half), after.boxes.answer(half)
    assert (one.value, one.error, one.worst()) == (other.value, other.error, other.worst())


@pytest.mark.parametrize("kind", BoxRelease.kinds())
def test_fresh_noise_on_boxes_survives_a_file(kind: str) -> None:
    """A release with the system's own noise keeps the guarantee that it was made with."""
    made = box_mechanism(kind)
    released = made.release(places(made.axes, 3))
    original = replace(release(kind), views=(replace(box_view(kind), boxes=released),))

    loaded = together(decode(encode(original))).boxes
    assert loaded.guarantee == made.guarantee
    assert same(released.parts(), loaded.parts())


@pytest.mark.parametrize("kind", AxisRelease.kinds())
def test_fresh_noise_survives_a_file(kind: str) -> None:
    """A release with the system's own noise keeps the guarantee that it was made with."""
    made = mechanism(kind)
    released = made.release(rows(kind))
    original = replace(release(kind), views=(view(kind, released=released),))

    loaded = only(decode(encode(original))).axis
    assert loaded.guarantee == made.guarantee
    assert same(released.parts(), loaded.parts())


def test_several_views_are_one_file() -> None:
    """Views of all kinds lie side by side, in their order."""
    original = release()
    assert [each.columns for each in decode(encode(original)).published] == [
        each.columns for each in original.published
    ]


@pytest.mark.parametrize(
    ("kinds", "version"),
    [
        (["tree"], 1),
        (["tree", "laplace"], 1),
        (["grid"], 2),
        (["tree", "grid"], 2),
        (["log-tree"], 3),
        (["tree", "level-trees"], 3),
        (["linear"], 3),
        (["tree", "weights"], 3),
    ],
)
def test_files_without_anything_new_are_as_they_were(kinds: list[str], version: int) -> None:
    """Readers that know one column in each view only, or counts only, go on reading these."""
    stored, _ = unpack(encode(release(*kinds)), largest=2**24)

    assert stored.spec["version"] == version


@pytest.mark.parametrize("kind", AxisRelease.kinds())
def test_a_release_without_a_guarantee_stays_without(kind: str) -> None:
    """What was made with injected noise protects nobody, after a load as before."""
    foreign = replace(view(kind), axis=replace_guarantee(axis(kind)))
    loaded = decode(encode(replace(release(kind), views=(foreign,), guarantee=None)))

    assert loaded.guarantee is None
    assert loaded.views[0].guarantee is None


@pytest.mark.parametrize("kind", BoxRelease.kinds())
def test_boxes_without_a_guarantee_stay_without(kind: str) -> None:
    """The same of several columns."""
    foreign = replace(box_view(kind), boxes=replace_guarantee(boxes(kind)))
    loaded = decode(encode(replace(release(kind), views=(foreign,), guarantee=None)))

    assert loaded.guarantee is None
    assert loaded.views[0].guarantee is None


def replace_guarantee(released: Any) -> Any:
    return replace(released, guarantee=None)


def test_a_file_is_a_function_of_the_release() -> None:
    """The same release gives the same bytes; so does the loaded one."""
    original = release()
    data = encode(original)

    assert data == encode(release()) == encode(decode(data))


class Numbers(AxisRelease):
    """Any series at all; asked for nothing."""

    kind = "numbers"
    curve = answer = counts = errors = error = None  # type: ignore[assignment]

    def __init__(self, **series: Any) -> None:
        self.size, self.guarantee, self.series = 8, None, series

    def parts(self) -> Parts:
        return Parts({"size": self.size}, self.series)

    @classmethod
    def from_parts(cls, parts: Parts, guarantee: object) -> Numbers:
        return cls(**parts.series)


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files hold the class above."""
    monkeypatch.setattr(AxisRelease, "of_kind", lambda kind: Numbers)


def with_series(column: str = "age", **series: Any) -> Release:
    changed = replace(view("tree", column), axis=Numbers(**series), domain=Integer(0, 7))
    return replace(release("tree"), views=(changed,), guarantee=None)


@pytest.mark.usefixtures("numbers")
@pytest.mark.parametrize(
    "values",
    [
        np.array([0, 2**64 - 1, 2**63], np.uint64),
        np.array([-(2**63), 2**63 - 1, 0]),
        np.zeros(0, np.uint64),
        np.zeros(0, object),
        np.array([-(2**127), 2**127 - 1, -1, 0, 2**64, -(2**64) - 1], object),
        np.arange(200_000) ** 3 * 7919 % 1_000_003,
    ],
)
def test_every_number_survives(values: Any) -> None:
    """Unsigned, signed and wide integers, none at all, and more than one page of them."""
    loaded = only(decode(encode(with_series(values=values)))).axis.parts().series["values"]

    assert loaded.dtype == values.dtype
    assert loaded.tolist() == values.tolist()


@pytest.mark.usefixtures("numbers")
@pytest.mark.parametrize(
    "column", ["a.b", "", " ", "größe", "a/b", "list.element", 'say "x"', "nul\0", "x" * 900]
)
def test_columns_may_have_any_name(column: str) -> None:
    """Names are told apart by the place of the last dot, so they may hold dots."""
    assert only(decode(encode(with_series(column, level=np.arange(3))))).column == column


def rows_by_arrow(path: Path) -> dict[str, Any]:
    import pyarrow.parquet as pq

    return dict(pq.read_table(path).to_pylist()[0])


def rows_by_pandas(path: Path) -> dict[str, Any]:
    import pandas as pd

    (row,) = pd.read_parquet(path).to_dict("records")
    return {str(name): value.tolist() for name, value in row.items()}


def rows_by_duckdb(path: Path) -> dict[str, Any]:
    import duckdb

    found = duckdb.execute(f"select * from '{path}'")
    names = [about[0] for about in found.description]
    (row,) = found.fetchall()
    return dict(zip(names, row, strict=True))


@pytest.mark.usefixtures("numbers")
@pytest.mark.parametrize("read", [rows_by_arrow, rows_by_pandas, rows_by_duckdb])
def test_any_tool_reads_the_numbers(read: Any, tmp_path: Path) -> None:
    """One row, a list for each series, two for a wide one."""
    path = tmp_path / "a.parquet"
    wide = [2**70 + 5, -3]
    save(
        with_series(
            edges=np.array([3, 2**64 - 1], np.uint64), noisy=np.arange(-2, 2), wide=np.array(wide, object)
        ),
        path,
    )
    row = read(path)

    assert row["age.edges"] == [3, 2**64 - 1]
    assert row["age.noisy"] == [-2, -1, 0, 1]
    assert [
        high * 2**64 + low for high, low in zip(row["age.wide_high"], row["age.wide_low"], strict=True)
    ] == wide
