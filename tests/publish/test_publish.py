"""From rows to a release: every container, every kind of column, every mistake."""

from __future__ import annotations

import io
import logging
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import partita
from partita.domain import Category, Date, Domain, Integer, Real
from partita.errors import (
    IncompatibleGuarantees,
    InvalidData,
    InvalidParameter,
    PartitaError,
    PrivacyWarning,
    SourceError,
)
from partita.guarantee import Guarantee
from partita.ledger.ledger import Ledger
from partita.public.file import load
from partita.public.release import Release
from partita.publish import publish as progress
from partita.publish.publish import publish, salt
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import tally
from tests.publish.people import AGE, CANARY, NUMBER, SCHEMA, people, single
from tests.seams import PIPELINE

VIEWS = list(SCHEMA)
LARGE = 10_000
"""An epsilon so large that noise is all but always zero: what is left is the exact count."""


def exactly(source: Any, schema: Any = SCHEMA, **other: Any) -> Release:
    """A release whose numbers are the exact counts, to all but certainty."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return publish(source, schema, **{"epsilon": LARGE, "mechanism": "histogram", **other})


def test_every_container_is_counted_alike(source: Any) -> None:
    """Four columns from a mapping, a table, Parquet and CSV: the exact counts of the same cells."""
    release = exactly(source, views=VIEWS)

    assert [view.column for view in single(release)] == VIEWS
    for view in single(release):
        column = tally(open_source(people()), SCHEMA, by=[view.column]).column(view.column)
        exact = column.histogram.spread()
        cells = np.arange(view.domain.size, dtype=np.uint64)
        assert view.axis.counts(cells, cells).tolist() == exact.tolist()
        assert dict(view.specials.counts) == dict(column.specials)


@pytest.mark.parametrize("name", VIEWS)
def test_every_kind_of_column_is_published_alone(name: str) -> None:
    """Integers, reals, days and categories, with the mechanism that is chosen for each."""
    release = publish(people(), {name: SCHEMA[name]}, epsilon=1)

    [view] = single(release)
    assert (view.column, view.domain) == (name, SCHEMA[name])
    assert view.axis.guarantee == release.guarantee == Guarantee(epsilon=1)
    assert view.why


def test_views_share_epsilon_and_the_guarantee_is_their_sum() -> None:
    """Noise follows the share of each view, and the release states the whole."""
    release = publish(people(), SCHEMA, epsilon="1/2", views=VIEWS, shares=[1, 2, 3, 4], mechanism="tree")

    parts = [view.axis.guarantee for view in single(release)]
    assert [part.epsilon for part in parts if part] == [Fraction(share, 20) for share in (1, 2, 3, 4)]
    assert [view.specials.scale for view in single(release)] == [
        Fraction(20, share) for share in (1, 2, 3, 4)
    ]
    assert release.guarantee == Guarantee(epsilon="1/2")


def test_a_universe_of_2_to_the_64_is_published() -> None:
    """The default mechanism tells apart atoms that no float can."""
    atoms = np.array([2**63 + 1, 2**64 - 1] * 5_000, np.uint64)
    release = publish({"x": atoms}, {"x": Integer(0, 2**64 - 1)}, epsilon=1)

    axis = single(release)[0].axis
    assert axis.count(2**63 + 1, 2**63 + 1).value == pytest.approx(5_000, abs=500)
    assert axis.count(2**63 + 2, 2**64 - 2).value == pytest.approx(0, abs=500)


@pytest.mark.parametrize("domain", [Integer(0, 120), Integer(0, 2**64 - 1), Category(["a", "b"])], ids=str)
def test_nobody_can_be_published(domain: Domain) -> None:
    """An empty table is a release like any other, and says nothing by an error."""
    release = publish({"x": np.array([], np.int64)}, {"x": domain}, epsilon=1)

    assert single(release)[0].axis.count(0, domain.size - 1).value < 1_000


def test_rows_of_a_person_are_bounded() -> None:
    """With at most two rows each, a person with a thousand counts twice in every view."""
    data = {"id": [7] * 1000 + [8], "age": [30] * 1000 + [40], "region": ["north"] * 1001}

    release = exactly(
        data,
        {"age": SCHEMA["age"], "region": SCHEMA["region"]},
        views=["age", "region"],
        person="id",
        contributions=2,
    )

    age, region = single(release)
    assert [age.axis.count(cell, cell).value for cell in (30, 40)] == [2, 1]
    assert region.axis.count(0, 0).value == 3
    assert release.guarantee is not None
    assert (release.guarantee.unit, release.guarantee.contributions) == ("person", 2)
    assert release.provenance.person == "id"


def test_which_rows_are_kept_follows_from_public_names() -> None:
    """The same rows as the rule of the sources keeps with the documented salt."""
    data = {"id": [1] * 50 + [2] * 50, "age": [*range(50), *range(50)]}

    release = exactly(data, AGE, person="id", contributions=3, dataset="people")

    column = tally(open_source(data), AGE, person="id", contributions=3, salt=salt("people", "age"))
    kept = np.flatnonzero(column.column("age").histogram.spread())
    assert [cell for cell in range(121) if single(release)[0].axis.count(cell, cell).value] == kept.tolist()


def test_provenance_holds_public_facts_only(ledger: Ledger) -> None:
    """Version, day, the names that the steward gave, and whether a ledger paid."""
    alone = publish(people(), AGE, epsilon=1, mechanism="tree").provenance
    paid = publish(people(), AGE, epsilon=1, mechanism="tree", ledger=ledger, dataset="people").provenance

    assert (alone.version, alone.dataset, alone.recorded) == (partita.__version__, None, False)
    assert (paid.dataset, paid.recorded, paid.person) == ("people", True, None)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", paid.day)


def test_a_stored_release_is_the_one_returned(tmp_path: Path) -> None:
    """What lies at the path answers as the release in memory does."""
    path = tmp_path / "people.release.parquet"
    release = publish(people(), SCHEMA, epsilon=1, views=VIEWS, mechanism="tree", path=path)

    stored = load(path)

    assert stored.guarantee == release.guarantee
    assert stored.provenance == release.provenance
    for one, other in zip(single(stored), single(release), strict=True):
        assert (one.column, one.mechanism, one.why) == (other.column, other.mechanism, other.why)
        assert dict(one.specials.counts) == dict(other.specials.counts)
        assert one.axis.count(0, 1).value == other.axis.count(0, 1).value
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_large_epsilon_is_warned_about_and_published() -> None:
    """The warning is the only objection."""
    with pytest.warns(PrivacyWarning, match="epsilon"):
        release = publish(people(), AGE, epsilon=50, mechanism="tree")

    assert release.guarantee is not None
    assert release.guarantee.epsilon == 50


def test_a_warning_made_an_error_costs_nothing(ledger: Ledger) -> None:
    """Whoever turns warnings into errors gets it before the debit."""
    with pytest.warns(PrivacyWarning):
        ledger.open("rich", epsilon=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        with pytest.raises(PrivacyWarning):
            publish(people(), AGE, epsilon=50, mechanism="tree", ledger=ledger, dataset="rich")

    assert ledger.entries("rich") == ()


# --- mistakes -----------------------------------------------------------------------------------


def raising(*_: object, **__: object) -> Any:
    raise AssertionError("data were touched before all parameters were checked")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"epsilon": -1}, "epsilon must be positive"),
    ({"schema": {f"c{number}": AGE["age"] for number in range(41)}}, "views must have at most 40 columns"),
    ({"schema": SCHEMA, "by": ("age", "born"), "mechanism": "tree"}, "mechanism must suit a view"),
    ({"schema": SCHEMA, "views": [("age", "born"), ("born", "age")]}, "views must be of different columns"),
    ({"sums": ["id"]}, "sums must name columns of the schema"),
    ({"moments": np.array(["age", "id"])}, "moments must be a list of columns"),
    ({"queries": "ranges(age"}, "queries"),
    ({"mechanism": "magic"}, "mechanism must be"),
    ({"ledger": "budget.db"}, "dataset must name the budget"),
    ({"ledger": 5, "dataset": "people"}, "ledger must be a Ledger or the path of one"),
    ({"key": "k1"}, "key needs a ledger"),
    ({"part": ("region", "north")}, "part needs a ledger"),
    ({"dataset": " people"}, "dataset must be non-empty text"),
    ({"ledger": "budget.db", "dataset": "people", "key": "k1"}, "key needs a path"),
    ({"path": 5}, "path must be the path of a file"),
    ({"path": "missing/folder/release.parquet"}, "path must be writable"),
    ({"header": "age"}, "header must be a list"),
    (
        {"schema": {"\ud800": AGE["age"]}},
        r"schema must have names of columns that UTF-8 can write, got .*ud800",
    ),
    ({"person": "\ud800"}, "person must have names of columns that UTF-8 can write"),
    ({"part": "north", "ledger": "budget.db", "dataset": "people"}, "part must be a pair"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_parameters_are_checked_before_data(
    changes: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is wrong with public parameters is said before a row is read."""
    monkeypatch.setattr(PIPELINE, "count", raising)
    monkeypatch.chdir(tmp_path)
    schema = changes.pop("schema", AGE)
    if "header" in changes:
        changes |= {"ledger": funded(tmp_path), "dataset": "people"}

    with pytest.raises(InvalidParameter, match=message):
        publish(people(), schema, **{"epsilon": 1, **changes})


def funded(folder: Path) -> Ledger:
    ledger = Ledger(folder / "funded.db")
    ledger.open("people", epsilon=1)
    return ledger


def test_a_path_that_is_taken_is_refused_before_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ledger: Ledger
) -> None:
    """Nothing is overwritten, nothing is spent and no row is read."""
    path = tmp_path / "taken"
    path.write_text("precious")
    monkeypatch.setattr(PIPELINE, "count", raising)

    with pytest.raises(InvalidParameter, match="path must not exist yet"):
        publish(people(), AGE, epsilon=1, path=path, ledger=ledger, dataset="people")

    assert path.read_text() == "precious"
    assert ledger.entries("people") == ()


BAD_SOURCES: dict[str, tuple[Callable[[Path], Any], type[PartitaError]]] = {
    "missing file": (lambda at: at / "no.parquet", SourceError),
    "directory": (lambda at: at, SourceError),
    "not parquet": (lambda at: written(at / "t.parquet", CANARY.encode() * 99), SourceError),
    "missing column": (lambda at: {"agee": [NUMBER]}, SourceError),
    "nested": (lambda at: pa.table({"age": [[NUMBER]]}), SourceError),
    "number": (lambda at: NUMBER, InvalidData),
    "list": (lambda at: [NUMBER], InvalidData),
    "nothing": (lambda at: None, InvalidData),
}


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("mistake", BAD_SOURCES)
def test_rows_that_cannot_be_read_cost_nothing(mistake: str, tmp_path: Path, ledger: Ledger) -> None:
    """The error is typed and shows no value; no debit, no file and no rest of one is left."""
    make, kind = BAD_SOURCES[mistake]
    folder = tmp_path / "out"
    folder.mkdir()

    with pytest.raises(kind) as refused:
        publish(make(tmp_path), AGE, epsilon=1, ledger=ledger, dataset="people", path=folder / "r.parquet")

    assert CANARY not in str(refused.value)
    assert str(NUMBER) not in str(refused.value)
    assert ledger.entries("people") == ()
    assert list(folder.iterdir()) == []


def test_what_can_be_read_once_serves_one_view(ledger: Ledger) -> None:
    """A reader is counted for one column; for a second one it is refused, and costs nothing."""
    publish(people().to_reader(), AGE, epsilon=1, mechanism="tree")

    with pytest.raises(SourceError, match="can be read once only"):
        publish(
            people().to_reader(), SCHEMA, epsilon=1, views=["age", "region"], ledger=ledger, dataset="people"
        )
    assert ledger.entries("people") == ()


def test_a_budget_of_persons_wants_a_release_about_persons(ledger: Ledger) -> None:
    """A release about rows has no price there, and is refused before a row is read."""
    ledger.open("persons", epsilon=1, unit="person")

    with pytest.raises(IncompatibleGuarantees, match="person"):
        publish(people(), AGE, epsilon=1, ledger=ledger, dataset="persons")
    publish(people(), AGE, epsilon=1, mechanism="tree", person="id", ledger=ledger, dataset="persons")

    assert len(ledger.entries("persons")) == 1


# --- canaries -----------------------------------------------------------------------------------

DOMAINS: list[Domain] = [
    Integer(0, 9),
    Real(0, 9, step=1),
    Date("2024-01-01", "2024-02-01"),
    Category(["x"]),
]
PLACES: dict[str, Callable[[Path], Any]] = {
    "csv": lambda at: written(at / "t.csv", f'x,id\n{CANARY},{CANARY}\n"{CANARY}\n1,1\n'.encode()),
    "parquet": lambda at: stored_table(at / "t.parquet"),
    "list": lambda at: {"x": [CANARY, NUMBER, [CANARY], None], "id": [CANARY, NUMBER, 1, None]},
    "torn": lambda at: torn(stored_table(at / "t.parquet")),
}


def stored_table(path: Path) -> Path:
    pq.write_table(pa.table({"x": [f"{CANARY}{i}" for i in range(99)], "id": [CANARY] * 99}), path)
    return path


def torn(path: Path) -> Path:
    content = bytearray(path.read_bytes())
    content[40:400] = (CANARY * 99).encode()[:360]
    path.write_bytes(bytes(content))
    return path


def whole_story(error: BaseException | None) -> str:
    """Everything that an exception can tell: itself, its causes and contexts, suppressed or not."""
    if error is None:
        return ""
    own = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
    return own + whole_story(error.__cause__) + whole_story(error.__context__)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: type(domain).__name__)
@pytest.mark.parametrize("person", [None, "id"])
def test_no_value_is_ever_shown(
    place: str,
    domain: Domain,
    person: str | None,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Strange values leave no trace in output, logs, warnings, errors, the release, its file, the ledger."""
    caplog.set_level(logging.DEBUG)
    ledger, path, story = funded(tmp_path), tmp_path / "r.parquet", ""
    ledger.open("persons", epsilon=1, unit="person")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            release = publish(
                PLACES[place](tmp_path),
                {"x": domain},
                epsilon=1,
                mechanism="histogram",
                person=person,
                path=path,
                ledger=ledger,
                dataset="persons" if person else "people",
            )
            story += repr(release) + repr(release.views) + path.read_bytes().decode("latin-1")
        except SourceError as error:
            story += whole_story(error)
    story += ledger.path.read_bytes().decode("latin-1")
    output = capfd.readouterr()

    shown = story + output.out + output.err + caplog.text + "".join(str(item.message) for item in warned)
    assert CANARY not in shown
    assert str(NUMBER) not in shown


# --- progress and names ---------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_shows_phases_and_time_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No number but the elapsed time of each phase."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    publish(people(), AGE, epsilon=1, mechanism="tree", path=tmp_path / "r.parquet")

    phases = r"partita: counting age ... T s\npartita: drawing noise ... T s\npartita: writing ... T s\n"
    assert re.fullmatch(phases.replace("T", r"\d+\.\d"), terminal.getvalue())


class Heard(Terminal):
    """A terminal that knows when something was written, and when a sign of life."""

    def __init__(self) -> None:
        super().__init__()
        self.alive = threading.Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        if text == ".":
            self.alive.set()
        return written


@pytest.mark.parametrize("patience", [0.0, 0.001])
def test_a_long_phase_shows_that_it_lasts(monkeypatch: pytest.MonkeyPatch, patience: float) -> None:
    """A dot now and then, begun at once or once patience has run out."""
    terminal = Heard()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_BEAT", 0.001)

    with progress.phase("counting age", patience=patience):
        assert terminal.alive.wait(60)

    assert re.fullmatch(r"partita: counting age \.{4,} \d+\.\d s\n", terminal.getvalue())


def test_a_phase_that_is_shorter_than_patience_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal too."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    with progress.phase("counting age", patience=600.0):
        pass

    assert terminal.getvalue() == ""


def test_progress_of_a_phase_that_fails_ends_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes on a line of its own, and not even the time is shown."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    with pytest.raises(SourceError):
        publish({"agee": [1]}, AGE, epsilon=1, mechanism="tree")

    assert terminal.getvalue() == "partita: counting age ... stopped\n"


class Gone(Terminal):
    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


@pytest.mark.parametrize("stream", [Gone(), None], ids=["gone", "none"])
def test_a_terminal_that_goes_away_disturbs_nothing(
    stream: Any, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress is written after the debit too, and must never cost a release."""
    monkeypatch.setattr(sys, "stderr", stream)

    publish(people(), AGE, epsilon=1, mechanism="tree", ledger=ledger, dataset="people")

    assert [entry.state for entry in ledger.entries("people")] == ["done"]


def test_without_a_terminal_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    """Results and errors are all that programs see."""
    publish(people(), AGE, epsilon=1, mechanism="tree")

    assert capfd.readouterr() == ("", "")
