"""Several columns together, from rows to a release: counted jointly, paid once, asked by boxes."""

from __future__ import annotations

import sys
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.domain import Category, Domain, Integer
from partita.domain.axis import Axis
from partita.errors import KeyReused, PrivacyWarning, SourceError
from partita.guarantee import Guarantee
from partita.ledger.ledger import Ledger
from partita.public.file import load
from partita.public.release import Release
from partita.public.views import BoxView, View
from partita.publish.publish import publish, salt
from partita.trusted.secret import Points
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import tally
from tests.publish.people import CANARY, NUMBER, SCHEMA, people
from tests.publish.test_publish import PLACES, Terminal, whole_story

LARGE = 10_000
"""An epsilon so large that noise is all but always zero: what is left is the exact count."""
PAIR = ("age", "region")
MIXED = [("age",), PAIR, ("region",)]


def exactly(source: Any, schema: Any = SCHEMA, **other: Any) -> Release:
    """A release whose numbers are the exact counts, to all but certainty."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return publish(source, schema, **{"epsilon": LARGE, "mechanism": "grid", **other})


def together(release: Release, number: int = 0) -> BoxView:
    """The view with this number, which has several columns."""
    view = release.views[number]
    assert isinstance(view, BoxView)
    return view


def cells(view: BoxView) -> dict[tuple[int, ...], float]:
    """The count of every single position, where there is any."""
    grids = np.meshgrid(*(np.arange(axis.width) for axis in view.boxes.axes), indexing="ij")
    corners = np.stack([grid.ravel() for grid in grids], axis=1).astype(np.uint64)
    counts = view.boxes.counts(corners, corners)
    return {tuple(map(int, corner)): count for corner, count in zip(corners, counts, strict=True) if count}


def exact(points: Points) -> dict[tuple[int, ...], float]:
    return {tuple(map(int, place)): count for place, count in zip(points.places, points.counts, strict=True)}


def test_every_container_is_counted_jointly(source: Any) -> None:
    """Two columns from a mapping, a table, Parquet and CSV: the exact counts of the same points."""
    release = exactly(source, by=PAIR)

    view = together(release)
    points = tally(open_source(people()), {name: SCHEMA[name] for name in PAIR}).points(PAIR)
    assert cells(view) == exact(points)
    assert (view.columns, view.domains) == (PAIR, (SCHEMA["age"], SCHEMA["region"]))
    assert len(points.counts) > 200


def test_a_column_that_is_not_asked_for_is_not_constrained() -> None:
    """Who has no region, or another one, is still counted by age; a table of two columns is one view."""
    release = exactly(
        {"age": [30, 30, 30, 40], "region": ["north", None, "west", "north"]},
        {name: SCHEMA[name] for name in PAIR},
    )

    assert [view.columns for view in release.views] == [PAIR]
    assert release.count(age=(30, 39)).value == 3
    assert release.count({"age": (30, 39), "region": "north"}).value == 1
    assert release.count().value == 4


def test_the_default_publishes_columns_of_every_kind_together() -> None:
    """Integers, reals, days and categories in one release with all of epsilon, and a reason."""
    release = publish(people(), SCHEMA, epsilon=1)

    view = together(release)
    assert view.columns == tuple(SCHEMA)
    assert view.mechanism == "graph"
    assert view.why.startswith("It is the default for 4 columns, some of them categories: ")
    assert view.guarantee == release.guarantee == Guarantee(epsilon=1)
    assert 0 <= release.count(age=(20, 60), salary=(100, None)).value < 1_000


def test_views_of_one_column_and_of_several_cost_one_debit(ledger: Ledger) -> None:
    """Shares are those of the views, the guarantee is their sum, and the ledger has one entry."""
    release = publish(
        people(),
        SCHEMA,
        epsilon="1/2",
        views=MIXED,
        shares={"age": 1, PAIR: 2, "region": 1},
        mechanism="grid",
        ledger=ledger,
        dataset="people",
    )

    assert [type(view) for view in release.views] == [View, BoxView, View]
    assert [view.guarantee.epsilon for view in release.views if view.guarantee] == [
        Fraction(1, 8),
        Fraction(1, 4),
        Fraction(1, 8),
    ]
    [entry] = ledger.entries("people")
    assert (entry.what, entry.state) == ("age, age x region, region", "done")
    assert entry.charged.epsilon == Fraction(1, 2)


def test_views_of_several_columns_agree_about_the_rows() -> None:
    """All views count the same people, so exact views have one total and the same marginals."""
    release = exactly(people(), views=MIXED)

    column, boxes, _ = release.views
    assert isinstance(column, View)
    assert isinstance(boxes, BoxView)
    for age in (0, 30, 60):
        place = Axis.of(SCHEMA["age"]).position(age)
        line = boxes.boxes.everything._replace(low=(place, 0), high=(place, boxes.boxes.axes[1].width - 1))
        assert boxes.boxes.answer(line).value == column.axis.count(age, age).value


def test_rows_of_a_person_are_bounded_in_the_columns_together() -> None:
    """With at most two rows each, a person with a thousand counts twice, whatever the columns."""
    data = {"id": [7] * 1000 + [8], "age": [*range(100)] * 10 + [40], "region": ["north"] * 1001}

    release = exactly(data, by=PAIR, person="id", contributions=2)

    assert release.count().value == 3
    assert release.guarantee is not None
    assert (release.guarantee.unit, release.guarantee.contributions) == ("person", 2)


def test_which_rows_are_kept_follows_from_public_names() -> None:
    """The same rows as the rule of the sources keeps with the documented salt, in each view its own."""
    data = {"id": [1] * 50 + [2] * 50, "age": [*range(50), *range(50)], "region": ["north", "south"] * 50}
    schema = {name: SCHEMA[name] for name in PAIR}

    release = exactly(data, schema, views=[PAIR, ("age",)], person="id", contributions=3, dataset="people")

    assert salt("people", *PAIR) == "partita 1 people age x region"
    rows = tally(open_source(data), schema, person="id", contributions=3, salt=salt("people", *PAIR))
    assert cells(together(release)) == exact(rows.points(PAIR))


def test_part_of_the_rows_is_counted_alone(ledger: Ledger) -> None:
    """Only rows of the part are at the points, and the budget pays for that part."""
    release = publish(
        people(),
        {name: SCHEMA[name] for name in PAIR},
        epsilon=1,
        mechanism="grid",
        ledger=ledger,
        dataset="people",
        part=("region", "north"),
    )

    assert release.provenance.part == ("region", "north")
    assert release.count(where={"region": "south"}).value < 60


def test_a_key_brings_back_the_stored_boxes(ledger: Ledger, tmp_path: Path) -> None:
    """The second call reads no rows and draws nothing; another order of columns is another request."""
    call: dict[str, Any] = {
        "epsilon": 1,
        "mechanism": "grid",
        "ledger": ledger,
        "dataset": "people",
        "key": "k1",
        "path": tmp_path / "r.parquet",
    }
    first = publish(people(), SCHEMA, by=PAIR, **call)

    again = publish({}, SCHEMA, by=PAIR, **call)

    assert cells(together(again)) == cells(together(first))
    assert len(ledger.entries("people")) == 1
    for other in ({"by": PAIR[::-1]}, {"by": "age", "mechanism": "tree"}, {"views": [PAIR, "age"]}):
        with pytest.raises(KeyReused):
            publish({}, SCHEMA, **call | other)


def test_a_stored_release_is_the_one_returned(tmp_path: Path) -> None:
    """What lies at the path answers as the release in memory does."""
    path = tmp_path / "people.release.parquet"
    release = publish(people(), SCHEMA, epsilon=1, views=MIXED, mechanism="grid", path=path)

    stored = load(path)

    assert (stored.guarantee, stored.provenance) == (release.guarantee, release.provenance)
    assert [view.columns for view in stored.views] == [view.columns for view in release.views]
    one, other = (each.count({"age": (20, 60), "region": "north"}) for each in (stored, release))
    assert (one.value, one.error) == (other.value, other.error)


@pytest.mark.parametrize("rows", [0, 1])
def test_almost_nobody_can_be_published(rows: int) -> None:
    """An empty table is a release like any other, and says nothing by an error."""
    schema: dict[str, Domain] = {"x": Integer(0, 2**63 - 1), "y": Integer(0, 0), "z": Category(["a"])}
    data = {"x": np.zeros(rows, np.int64), "y": np.zeros(rows, np.int64), "z": np.array(["a"] * rows)}

    release = publish(data, schema, epsilon=1)

    assert 0 <= release.count(x=(0, None), y=0).value < 1_000


def test_what_can_be_read_once_serves_one_view_of_several_columns(ledger: Ledger) -> None:
    """Its columns are counted in one go; a second view is refused, and costs nothing."""
    publish(people().to_reader(), SCHEMA, by=PAIR, epsilon=1, mechanism="grid")

    with pytest.raises(SourceError, match="can be read once only"):
        publish(
            people().to_reader(),
            SCHEMA,
            views=[PAIR, "age"],
            epsilon=1,
            mechanism="grid",
            ledger=ledger,
            dataset="people",
        )
    assert ledger.entries("people") == ()


def test_progress_names_the_columns_of_a_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one view, with no number but the elapsed time."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    publish(people(), SCHEMA, by=PAIR, epsilon=1, mechanism="grid")

    assert terminal.getvalue().startswith("partita: counting age x region ... ")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("mechanism", ["grid", "auto"])
def test_no_value_is_ever_shown(
    place: str, mechanism: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Strange values leave no trace in output, errors, the release or its file."""
    schema: dict[str, Domain] = {"x": Category(["x"]), "id": Integer(0, 9)}
    path, story = tmp_path / "r.parquet", ""
    try:
        release = publish(PLACES[place](tmp_path), schema, epsilon=1, mechanism=mechanism, path=path)
        story += repr(release) + repr(release.views) + path.read_bytes().decode("latin-1")
    except SourceError as error:
        story += whole_story(error)
    output = capfd.readouterr()

    assert CANARY not in story + output.out + output.err
    assert str(NUMBER) not in story + output.out + output.err
