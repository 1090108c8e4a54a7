"""What a file cannot hold is refused before a row is read, and what is granted fits."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from partita.domain import Category, Domain, Integer
from partita.errors import InvalidParameter
from partita.ledger.ledger import Ledger
from partita.public.axis.base import AxisRelease
from partita.public.base import Provenance, ReleaseKind
from partita.public.boxes.base import BoxRelease
from partita.public.file import decode, encode
from partita.public.file_entries import to_canonical
from partita.public.sums.base import SumRelease
from partita.public.workload.release import WorkloadRelease
from partita.publish.publish import publish
from partita.publish.request import _FACTS_BESIDE_SERIES, Request, check_fits_in_file
from partita.publish.request import _view as entries_of
from partita.trusted.mechanisms.catalogue import axis_mechanisms, box_mechanisms, takes_rho
from tests.public.file.specimens import BOX_DOMAINS, DOMAINS, axis, boxes, query_view, sum_view
from tests.publish.people import AGE
from tests.seams import PIPELINE

MINIMAL = Provenance(version="0", day="2026-11-15")


def fits(schema: Any, **other: Any) -> bool:
    asked = {"views": list(schema), **budget(other.get("mechanism"), 1), **other}
    request = Request.checked(schema, **asked)
    try:
        check_fits_in_file(request, MINIMAL)
    except InvalidParameter:
        return False
    return True


def budget(mechanism: object, epsilon: Any) -> dict[str, Any]:
    """What a mechanism can spend: epsilon, and delta beside it if it takes rho only."""
    return {"epsilon": epsilon, "delta": "1e-9"} if takes_rho(mechanism) else {"epsilon": epsilon}


def never(*_: object, **__: object) -> Any:
    raise AssertionError("rows were read")


def test_every_kind_has_a_bound() -> None:
    """A new kind of release must say how many series it has at most."""
    assert all(kind.count_series(levels=1) > 0 for kind in ReleaseKind.kinds().values())


@pytest.mark.parametrize("kind", AxisRelease.kinds())
def test_no_release_has_more_series_than_it_may(kind: str) -> None:
    """Counted in releases of the shipped mechanisms."""
    released = axis(kind)

    assert len(released.parts().series) <= released.count_series(DOMAINS[kind].size.bit_length())


@pytest.mark.parametrize("kind", BoxRelease.kinds())
def test_no_release_of_boxes_has_more_series_or_facts_than_it_may(kind: str) -> None:
    """Counted in releases of the shipped mechanisms, down to every number in the facts."""
    released = boxes(kind)
    axes, parts = len(released.axes), released.parts()

    assert len(parts.series) <= released.count_series(axes)
    room: Any = entries_of(asked(kind))["facts"]
    assert len(to_canonical(dict(parts.facts))) <= len(to_canonical(room))


@pytest.mark.parametrize("kind", [*SumRelease.kinds(), *WorkloadRelease.kinds()])
def test_no_release_of_numbers_has_more_series_or_facts_than_it_may(kind: str) -> None:
    """Counted in releases of the shipped mechanisms, down to every number in the facts."""
    released = sum_view(kind).sums if kind in SumRelease.kinds() else query_view(kind).answers
    parts = released.parts()

    assert len(parts.series) <= released.count_series(levels=1)
    granted = len(parts.series) + _FACTS_BESIDE_SERIES
    assert len(to_canonical(dict(parts.facts))) <= len(to_canonical({"all": ["9" * 400] * granted}))


def asked(kind: str) -> Any:
    """The request of a view like the specimen."""
    schema = {f"c{number}": domain for number, domain in enumerate(BOX_DOMAINS[kind])}
    return Request.checked(schema, **budget(kind, 1), mechanism=kind).views[0]


@pytest.mark.parametrize("size", [1, 2, 3, 127, 128, 129, 4096])
@pytest.mark.parametrize("root", [True, False])
def test_no_tree_has_more_levels_than_it_may(size: int, root: bool) -> None:
    """Binary trees are the tallest, and the bound is theirs."""
    from partita.public.axis.base import Hierarchy

    levels = Hierarchy.of(size=size, branching=2, root=root).levels

    tree, paper = map(AxisRelease.of_kind, ("tree", "intervals-paper"))
    assert levels <= tree.count_series(size.bit_length()) < paper.count_series(size.bit_length())


@pytest.mark.parametrize("name", sorted(axis_mechanisms()))
def test_every_mechanism_has_room(name: str) -> None:
    """A few columns fit, whatever releases them."""
    assert fits({f"c{number}": Integer(0, 99) for number in range(5)}, mechanism=name)


def _domain(name: str) -> Domain:
    """Viewed boxes need categories."""
    return Category(["0", "1", "2"]) if name == "viewed-boxes" else Integer(0, 2)


@pytest.mark.parametrize("name", sorted(box_mechanisms()))
def test_every_mechanism_over_boxes_has_room(name: str) -> None:
    """Several views of six columns fit, whatever releases them."""
    schema = {f"c{number}": _domain(name) for number in range(8)}
    views = [tuple(f"c{number}" for number in range(first, first + 6)) for first in range(3)]

    assert fits(schema, mechanism=name, views=views)


def test_columns_whose_names_run_together_are_refused() -> None:
    """Their series would have the same names in the file."""
    schema = {name: Integer(0, 9) for name in ("a", "b", "a x b", "c", "b x c")}

    assert not fits(schema, views=[("a x b", "c"), ("a", "b x c")], mechanism="grid")
    assert fits(schema, views=[("a x b", "c"), ("a", "b")], mechanism="grid")


@pytest.mark.parametrize(
    ("schema", "other"),
    [
        ({f"c{number}": Integer(0, 127) for number in range(300)}, {"mechanism": "tree"}),
        ({"c": Category([f"{number:>9000}" for number in range(2000)])}, {}),
        ({"c" * 2**24: Integer(0, 9)}, {"mechanism": "histogram"}),
        ({"c" * 10**6: Integer(0, 2**20)}, {"mechanism": "tree"}),
    ],
    ids=["columns", "labels", "a name", "a name in many columns"],
)
@pytest.mark.spread(2)
def test_what_does_not_fit_costs_nothing(
    schema: Any, other: dict[str, Any], ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many columns, too many labels, too long a name: refused before rows are read, with a fix."""
    monkeypatch.setattr(PIPELINE, "count", never)

    with pytest.raises(
        InvalidParameter, match=r"^views must fit into one file.*; publish fewer columns at a time"
    ):
        publish(
            {},
            schema,
            epsilon=1,
            views=list(schema),
            ledger=ledger,
            dataset="people",
            path=tmp_path / "r",
            **other,
        )
    assert ledger.entries("people") == ()


def test_as_many_columns_as_fit_are_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the largest number of views that is granted the file is written and read."""
    monkeypatch.setattr("partita.public.file._MOST_COLUMNS", 60)
    schema = {f"c{number}": Integer(0, 127) for number in range(60)}
    grown = [dict(islice(schema.items(), count)) for count in range(1, 61)]
    granted = [each for each in grown if fits(each, mechanism="tree")]
    assert granted == grown[: len(granted)] != grown

    release = publish(
        {name: [1] for name in schema}, granted[-1], epsilon=1, views=list(granted[-1]), mechanism="tree"
    )

    assert decode(encode(release)).columns == tuple(granted[-1])


@pytest.mark.parametrize("name", sorted(axis_mechanisms()))
def test_an_epsilon_of_many_digits_is_refused_or_fits(name: str) -> None:
    """With 99 digits the release survives its file; with more than 100 it is refused before rows are read.

    What spends rho has a rho of few digits, whatever epsilon has.
    """
    long, longer = (Fraction(10**digits - 1, 10 ** (digits - 1)) / 4 for digits in (99, 101))

    release = publish({"age": [30, 31]}, AGE, **budget(name, long), mechanism=name)

    assert decode(encode(release)).guarantee == release.guarantee
    if takes_rho(name):
        assert fits(AGE, mechanism=name, epsilon=longer)
        return
    with pytest.raises(
        InvalidParameter, match="epsilon must be, for each view, a ratio of integers of at most 100"
    ):
        publish({"age": [30, 31]}, AGE, **budget(name, longer), mechanism=name)


@pytest.mark.parametrize("name", sorted(box_mechanisms()))
def test_boxes_with_an_epsilon_of_many_digits_survive_their_file(name: str) -> None:
    """With 99 digits for each view, whatever releases it."""
    long = Fraction(10**99 - 1, 10**98) / 4
    schema = {f"c{number}": _domain(name) for number in range(3)}
    data = {column: [0, 1] for column in schema}

    release = publish(data, schema, **budget(name, long), mechanism=name)

    assert decode(encode(release)).guarantee == release.guarantee
