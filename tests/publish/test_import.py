"""Noisy counts of another library, as a release whose guarantee its caller declares."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.cli import main
from partita.domain.axis import Axis
from partita.errors import (
    BudgetExceeded,
    IncompatibleGuarantees,
    InvalidData,
    InvalidParameter,
    InvalidRelease,
)
from partita.guarantee import Guarantee
from partita.public.axis.base import AxisRelease, Parts, Term
from partita.public.axis.flat import HistogramRelease
from partita.public.boxes.base import BoxRelease
from partita.public.boxes.grid import GridRelease
from partita.public.file import decode, encode
from partita.public.release import Release

AGES = {"age": pt.Integer(0, 4)}
ONE = Guarantee(epsilon=1)
IN_RHO = Guarantee.concentrated(rho="1/9")
DECLARED = "declared by the caller, not checked by Partita"


def imported(counts: Any = (3, -1, 4, 1, 5), schema: Any = AGES, **changes: Any) -> Release:
    """Ages that were counted elsewhere."""
    options = {"scale": 1, "guarantee": ONE, "source": "OpenDP 0.16.0", **changes}
    return pt.import_view(counts, schema, **options)


def test_an_imported_view_answers_ranges_with_the_error_of_its_noise() -> None:
    """As a histogram of the same counts and the same scale does."""
    release = imported(scale="3/2")
    same = HistogramRelease(noisy=np.array([3, -1, 4, 1, 5]), size=5, scale=Fraction(3, 2))

    for low, high in [(0, 4), (1, 1), (1, 3)]:
        found, expected = release.count(age=(low, high)), same.answer(Term(low, high))
        assert (found.value, found.error) == (expected.value, expected.error)
        assert found.interval() == expected.interval()
        assert found.worst(0.01) == expected.worst(0.01)


def test_special_cells_are_counted_if_they_are_given() -> None:
    """A count for each position: below, the cells, above, invalid, null."""
    release = imported([7, 3, -1, 4, 1, 5, 8, 0, 2])

    assert release.count(age=pt.NULL).value == 2
    assert release.count(age=pt.BELOW).value == 7
    assert release.count(age=(0, 4)).value == 12
    with pytest.raises(InvalidParameter, match="has no special cells in this release"):
        imported().count(age=pt.NULL)


def test_several_columns_are_a_grid_of_positions() -> None:
    """Special cells of both too, the last column fastest."""
    domains: dict[str, pt.Domain] = {"age": pt.Integer(0, 1), "town": pt.Category(["Rome", "Bari"])}
    shape = tuple(Axis.of(domain).width for domain in domains.values())
    counts = np.arange(np.prod(shape)).reshape(shape)

    release = imported(counts, domains, scale=2)

    assert release.count(age=0, town="Bari").value == counts[1, 1]
    assert release.count(age=pt.NULL).value == counts[-1].sum()
    with pytest.raises(InvalidParameter, match="special cells too: 6 x 4"):
        imported([[1, 2], [3, 4]], domains)


def test_everything_says_that_the_guarantee_was_declared(tmp_path: Path, capsys: Any) -> None:
    """The release, its report, its cards, its view, `partita info`, and all of them after a round trip."""
    path = tmp_path / "ages.release.parquet"
    release = imported(path=path)

    for each in (release, pt.load(path)):
        assert DECLARED in repr(each)
        assert DECLARED in each.views[0].why
        assert DECLARED in each.report().splitlines()[1]
        assert DECLARED in each._repr_html_()
        assert DECLARED in each.views[0]._repr_html_()
        assert each.views[0].mechanism == "imported"
        assert len(each.imported) == 1
    with redirect_stdout(io.StringIO()) as said:
        assert main(["info", str(path)]) == 0
    assert DECLARED in " ".join(said.getvalue().split())


def test_a_published_release_says_nothing_of_the_kind() -> None:
    """What Partita drew is checked by its tests."""
    release = pt.publish({"age": [1, 2]}, AGES, epsilon=1)

    assert release.imported == ()
    assert DECLARED not in release.report() + repr(release) + release._repr_html_()


@pytest.mark.parametrize("columns", [1, 2])
def test_a_round_trip_keeps_that_it_was_imported(columns: int) -> None:
    """A file says so by a fact that is true, so that older readers refuse it."""
    schema = {f"c{number}": pt.Integer(0, 1) for number in range(columns)}
    release = imported(np.ones((6,) * columns, np.int64), schema)

    read = decode(encode(release))

    assert [view.why for view in read.imported] == [view.why for view in release.views]
    assert read.report() == release.report()


def test_the_fact_is_true_or_left_out() -> None:
    """A file that says `false`, or anything else, is no valid file."""
    grid = imported(np.ones((6, 6), np.int64), {"a": pt.Integer(0, 1), "b": pt.Integer(0, 1)})
    for released, kind in ((imported().views[0].axis, AxisRelease), (grid.views[0].boxes, BoxRelease)):  # type: ignore[union-attr]
        parts = released.parts()
        assert parts.facts["imported"] is True
        read = kind.of_kind(released.kind).from_parts
        for wrong in (False, 1, "true", None):
            changed = Parts({**parts.facts, "imported": wrong}, parts.series)
            with pytest.raises(InvalidRelease, match="must be true, or left out"):
                read(changed, None)
    plain = GridRelease(axes=(Axis(size=1),), noisy=np.zeros(1, np.int64), scale=Fraction(1))
    assert "imported" not in plain.parts().facts


# --- what is checked, and what it costs ---------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"scale": "1/2"}, "must not claim less than epsilon 2"),
        ({"guarantee": Guarantee(epsilon="1/2")}, "must not claim less than epsilon 1,"),
        ({"guarantee": Guarantee(epsilon=1, neighbors="change-one")}, "must not claim less than epsilon 2"),
        (
            {"guarantee": Guarantee(epsilon=2, unit="person", contributions=3)},
            "must not claim less than epsilon 3",
        ),
        ({"guarantee": Guarantee.concentrated(rho="1/4")}, "must not claim less than rho 0.462"),
        ({"guarantee": 1}, "must be what the other library promises"),
        ({"scale": 0}, "scale must be between"),
        ({"scale": None}, "scale must be given for discrete Laplace noise, or variance"),
        ({"variance": 4}, "scale must be given for discrete Laplace noise, or variance"),
        ({"scale": None, "variance": 0}, "variance must be between"),
        ({"scale": None, "variance": 4}, "must be in rho, and not below 1/8"),
        ({"scale": None, "variance": 4, "guarantee": IN_RHO}, "must be in rho, and not below 1/8"),
        ({"scale": "many"}, "scale must be a finite number"),
        ({"source": ""}, "source must be non-empty"),
        ({"ledger": "l.db"}, "dataset must name the budget"),
        ({"counts": [1, 2, 3]}, "must be one for each of 5 cells, or of 9 positions"),
        ({"counts": [[1], [2]]}, "must be one for each of 5 cells"),
        ({"counts": []}, "counts must be integers"),
        ({"counts": [2**130] * 5}, "at most 127 bits"),
        ({"counts": [1.0, 2.0, 3.0, 4.0, 5.0]}, r"counts must be integers.*atom_domain\(T=int\)"),
        ({"counts": ["a"] * 5}, "counts must be integers"),
        ({"schema": {}}, "schema"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(changes: dict[str, Any], rule: str) -> None:
    """By the parameter and the rule; no count is shown."""
    with pytest.raises(InvalidParameter, match=rule):
        imported(**changes)


def test_objects_that_are_no_integers_are_refused() -> None:
    """Halves among Python ints are found, too."""
    with pytest.raises(InvalidData, match="integers only"):
        imported(np.array([1, 2, 3, 4, 0.5], object))


def test_the_guarantee_is_debited_before_the_file_is_there(tmp_path: Path) -> None:
    """The ledger has the declared guarantee, and the release says that it was recorded."""
    ledger = pt.Ledger(tmp_path / "l.db")
    ledger.open("people", epsilon=2)

    release = imported(ledger=ledger, dataset="people", path=tmp_path / "r.parquet")

    assert release.provenance.recorded
    assert release.provenance.dataset == "people"
    (debit,) = ledger.entries("people")
    assert (debit.state, debit.what, debit.stated) == ("done", "age, imported", ONE)
    assert pt.load(tmp_path / "r.parquet").provenance.recorded


def test_what_the_budget_does_not_allow_is_not_stored(tmp_path: Path) -> None:
    """Too little left, or a budget of other neighbours."""
    ledger = pt.Ledger(tmp_path / "l.db")
    ledger.open("people", epsilon="1/2")
    ledger.open("swaps", epsilon=5, neighbors="change-one")

    with pytest.raises(BudgetExceeded):
        imported(ledger=ledger, dataset="people", path=tmp_path / "r.parquet")
    with pytest.raises(IncompatibleGuarantees):
        imported(
            scale=1, guarantee=Guarantee(epsilon=3, unit="person"), ledger=ledger, dataset="swaps",
            path=tmp_path / "r.parquet",
        )  # fmt: skip
    assert list(tmp_path.glob("r.parquet*")) == []
    assert ledger.entries("people") == ()


def test_nothing_is_spent_where_a_file_cannot_be_written(tmp_path: Path) -> None:
    """A path that is taken is found before the debit."""
    ledger = pt.Ledger(tmp_path / "l.db")
    ledger.open("people", epsilon=2)
    (tmp_path / "r.parquet").write_text("taken")

    with pytest.raises(InvalidParameter, match="must not exist yet"):
        imported(ledger=ledger, dataset="people", path=tmp_path / "r.parquet")
    assert ledger.entries("people") == ()


def test_a_write_that_fails_is_marked_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it cost stays spent, as the noise was drawn and the caller has seen it."""
    ledger = pt.Ledger(tmp_path / "l.db")
    ledger.open("people", epsilon=2)

    def fail(*_: object) -> None:
        raise OSError("disk")

    monkeypatch.setattr("partita.storage.Temporary.commit", fail)
    with pytest.raises(OSError, match="disk"):
        imported(ledger=ledger, dataset="people", path=tmp_path / "r.parquet")

    assert [debit.state for debit in ledger.entries("people")] == ["lost"]


@pytest.mark.parametrize("columns", [1, 2])
def test_gaussian_noise_is_imported_with_its_rho(columns: int) -> None:
    """Errors are those of its variance, and a file has the law, the promise and whose word it is."""
    schema = {f"c{number}": pt.Integer(0, 1) for number in range(columns)}
    promise = Guarantee.concentrated(rho="1/8")
    counts = np.full((6,) * columns, 3)

    made = imported(counts, schema, scale=None, variance=4, guarantee=promise)
    release = decode(encode(made))

    answer = release.count(c0=(0, 1))
    assert answer.value == counts[:2].sum()
    assert answer.error == pytest.approx(2 * np.sqrt(2 * 6 ** (columns - 1)))
    assert release.guarantee == promise
    assert release.imported == release.views
    assert DECLARED in release.report()
    (only,) = release.measurements()
    assert (only.law, only.scale, str(only.variance)) == ("discrete gaussian", None, "4")
    assert (only.matrix, only.noisy.tolist()) == (None, counts.ravel().tolist())


def test_imported_counts_are_measurements_again() -> None:
    """What comes in can go out: the same integers, the same scale."""
    (only,) = imported([7, 3, -1, 4, 1, 5, 8, 0, 2], scale=2).measurements()

    assert only.noisy.tolist() == [7, 3, -1, 4, 1, 5, 8, 0, 2]
    assert only.matrix is None
    assert only.scale == 2


@pytest.mark.parametrize("delta", ["1e-9", 0])
def test_an_epsilon_that_does_not_follow_from_rho_is_refused(delta: object) -> None:
    """Neither a smaller epsilon than rho gives at that delta, nor one without delta."""
    claimed = pt.Guarantee(epsilon="1/100", delta=delta, rho="1/2")

    with pytest.raises(pt.InvalidParameter, match="an epsilon and a delta that follow from its rho"):
        pt.import_view([4, 0, 7], {"a": pt.Integer(0, 2)}, variance=1, guarantee=claimed, source="x")
