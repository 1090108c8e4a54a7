"""A debit before any noise, one release for a key, and nothing half-written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from partita.errors import (
    BudgetExceeded,
    BudgetLost,
    InvalidParameter,
    InvalidRelease,
    KeyReused,
    LedgerError,
    SourceError,
    UnknownDataset,
)
from partita.guarantee import Guarantee
from partita.ledger.ledger import Ledger
from partita.public.file import load, save
from partita.public.release import Release
from partita.publish import publish as making
from partita.publish.publish import publish
from partita.storage import Temporary
from tests.publish.people import AGE, SCHEMA, people, single
from tests.seams import PIPELINE

ASKED: dict[str, Any] = {"epsilon": 2, "mechanism": "tree", "dataset": "people", "key": "k1"}
STEPS = [(PIPELINE, "draw"), (PIPELINE, "encode"), (Temporary, "write"), (Temporary, "commit")]


def ask(ledger: Ledger, folder: Path, schema: Any = AGE, **other: Any) -> Release:
    asked = {**ASKED, "ledger": ledger, "path": folder / "people.release.parquet", **other}
    return publish(people(), schema, **asked)


def never(*_: object, **__: object) -> Any:
    raise AssertionError("this must not happen again")


def failing(error: BaseException) -> Any:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


def numbers(release: Release) -> list[Any]:
    """All that a release holds, to be compared."""
    return [[list(series) for series in view.axis.parts().series.values()] for view in single(release)]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"budget.db", "budget.db-journal"}


def test_one_call_is_one_debit_that_is_done(ledger: Ledger, tmp_path: Path) -> None:
    """It states the guarantee of the release, the columns, the key, and the day of the release."""
    release = ask(ledger, tmp_path, SCHEMA, views=["age", "region"])

    [entry] = ledger.entries("people")
    assert (entry.state, entry.what, entry.key) == ("done", "age, region", "k1")
    assert (entry.stated, entry.day) == (release.guarantee, release.provenance.day)


def test_the_ledger_may_be_a_path(ledger: Ledger, tmp_path: Path) -> None:
    """Text, a Path or an open ledger."""
    for turn, given in enumerate((str(ledger.path), ledger.path, ledger)):
        ask(given, tmp_path, epsilon=1, key=f"k{turn}", path=tmp_path / f"{turn}.parquet")  # type: ignore[arg-type]

    assert ledger.balance("people").left.epsilon == 0


def test_the_same_key_returns_what_is_stored(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is read, drawn or charged, and the data may be gone."""
    first = ask(ledger, tmp_path)
    monkeypatch.setattr(PIPELINE, "count", never)
    monkeypatch.setattr(PIPELINE, "draw", never)

    again = publish(
        "gone.parquet", AGE, **{**ASKED, "ledger": ledger, "path": tmp_path / "people.release.parquet"}
    )

    assert numbers(again) == numbers(first)
    assert len(ledger.entries("people")) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"epsilon": 1},
        {"mechanism": "histogram"},
        {"neighbors": "change-one"},
        {"schema": {"age": SCHEMA["salary"]}},
        {"part": ("region", "north")},
        {"delimiter": ";"},
    ],
    ids=str,
)
def test_the_same_key_for_another_request_is_refused(
    ledger: Ledger, tmp_path: Path, other: dict[str, Any]
) -> None:
    """Whatever differs, a key names one request; nothing is charged or changed."""
    ledger.open("changed", epsilon=3, neighbors="change-one")
    if "neighbors" in other:
        other = {**other, "dataset": "changed"}
    first = ask(ledger, tmp_path)

    with pytest.raises(KeyReused):
        ask(ledger, tmp_path, **{**other, "path": tmp_path / "free.parquet"})

    assert len(ledger.entries("people")) == 1
    assert numbers(load(tmp_path / "people.release.parquet")) == numbers(first)
    assert names(tmp_path) == {"people.release.parquet"}


def test_a_debit_without_a_release_is_lost(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that was charged and whose maker was never heard of again is not charged or drawn again."""
    with monkeypatch.context() as broken:
        broken.setattr(PIPELINE, "draw", failing(RuntimeError("no")))
        broken.setattr(Ledger, "mark_lost", failing(LedgerError("the disk is full")))
        with pytest.raises(RuntimeError, match="no"):
            ask(ledger, tmp_path)
    monkeypatch.setattr(PIPELINE, "draw", never)

    with pytest.raises(BudgetLost, match="use a new key"):
        ask(ledger, tmp_path)

    assert [entry.state for entry in ledger.entries("people")] == ["debited"]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step[1])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("no"), MemoryError()], ids=repr)
def test_a_failure_after_the_debit_loses_it(
    ledger: Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: tuple[Any, str],
    error: BaseException,
) -> None:
    """Nothing is left at the path or beside it, the entry says lost, and a new key pays again."""
    with monkeypatch.context() as broken:
        broken.setattr(*step, failing(error))
        with pytest.raises(type(error)):
            ask(ledger, tmp_path, epsilon=1)

    assert [entry.state for entry in ledger.entries("people")] == ["lost"]
    assert names(tmp_path) == set()
    with pytest.raises(BudgetLost):
        ask(ledger, tmp_path, epsilon=1)
    ask(ledger, tmp_path, epsilon=1, key="k2")
    assert ledger.balance("people").spent.epsilon == 2


def test_an_interrupt_while_counting_costs_nothing(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No debit, no file, and the key is as good as new."""
    with monkeypatch.context() as broken:
        broken.setattr(PIPELINE, "count", failing(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            ask(ledger, tmp_path)

    assert (ledger.entries("people"), names(tmp_path)) == ((), set())
    ask(ledger, tmp_path)


def test_a_ledger_that_fails_at_the_mark_leaves_a_release_to_be_found(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release is stored and paid; asking again marks it done and returns it."""
    with monkeypatch.context() as broken:
        broken.setattr(Ledger, "mark_done", failing(LedgerError("the disk is full")))
        with pytest.raises(LedgerError):
            ask(ledger, tmp_path)
    assert [entry.state for entry in ledger.entries("people")] == ["debited"]
    stored = load(tmp_path / "people.release.parquet")
    monkeypatch.setattr(PIPELINE, "draw", never)

    assert numbers(ask(ledger, tmp_path)) == numbers(stored)
    assert [entry.state for entry in ledger.entries("people")] == ["done"]


def test_an_unmarked_key_for_another_request_is_still_refused(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file at the path does not make another request the same one."""
    with monkeypatch.context() as broken:
        broken.setattr(Ledger, "mark_done", failing(LedgerError("the disk is full")))
        with pytest.raises(LedgerError):
            ask(ledger, tmp_path)

    with pytest.raises(KeyReused):
        ask(ledger, tmp_path, epsilon=1)
    assert [entry.state for entry in ledger.entries("people")] == ["debited"]


def test_a_release_of_another_key_is_not_taken_for_a_lost_one(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a second key has stored at the same path does not bring the first one back."""
    with monkeypatch.context() as broken:
        broken.setattr(PIPELINE, "draw", failing(RuntimeError("no")))
        broken.setattr(Ledger, "mark_lost", failing(LedgerError("the disk is full")))
        with pytest.raises(RuntimeError, match="no"):
            ask(ledger, tmp_path, epsilon=1)
    ask(ledger, tmp_path, epsilon=1, key="k2")

    with pytest.raises(BudgetLost):
        ask(ledger, tmp_path, epsilon=1)
    assert [entry.state for entry in ledger.entries("people")] == ["debited", "done"]


def test_a_place_taken_meanwhile_loses_the_debit(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else's file stays as it is, and the error says that the path is taken."""
    path, write = tmp_path / "people.release.parquet", Temporary.write

    def slowly(self: Temporary, data: bytes) -> None:
        write(self, data)
        path.write_text("precious")

    monkeypatch.setattr(Temporary, "write", slowly)
    with pytest.raises(InvalidParameter, match="path must not exist yet"):
        ask(ledger, tmp_path)

    assert path.read_text() == "precious"
    assert names(tmp_path) == {path.name}
    assert [entry.state for entry in ledger.entries("people")] == ["lost"]


def test_interrupted_right_after_the_rename_nothing_is_called_lost(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release stands at its path, so the key finds it."""
    commit = Temporary.commit

    def interrupted(self: Temporary) -> None:
        commit(self)
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(Temporary, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ask(ledger, tmp_path)

    assert names(tmp_path) == {"people.release.parquet"}
    assert ask(ledger, tmp_path).guarantee is not None
    assert [entry.state for entry in ledger.entries("people")] == ["done"]


def test_a_done_key_needs_the_path_of_its_release(ledger: Ledger, tmp_path: Path) -> None:
    """At another path there is nothing, and that is said; nothing is charged."""
    ask(ledger, tmp_path)

    with pytest.raises(InvalidParameter, match="must be where the release of this key was stored"):
        ask(ledger, tmp_path, path=tmp_path / "nothing.parquet")
    assert len(ledger.entries("people")) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"epsilon": 1},
        {"mechanism": "histogram"},
        {"dataset": "strangers"},
        {"dataset": None},
        {"schema": {"age": SCHEMA["salary"]}},
        {"schema": {"salary": SCHEMA["age"]}},
    ],
    ids=str,
)
def test_another_release_is_not_taken_for_the_stored_one(
    ledger: Ledger, tmp_path: Path, other: dict[str, Any]
) -> None:
    """Whatever differs, what stands at the path must be what was asked for."""
    ask(ledger, tmp_path)
    strange = tmp_path / "strange.parquet"
    asked = {"schema": AGE, **{name: ASKED[name] for name in ("epsilon", "mechanism", "dataset")}, **other}
    save(publish(people(), **asked), strange)

    with pytest.raises(InvalidRelease, match="must hold the release of this key"):
        ask(ledger, tmp_path, path=strange)
    assert len(ledger.entries("people")) == 1


def test_what_cannot_be_paid_is_refused_before_rows_are_read(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too much is refused at once, and so is a dataset that nobody has opened."""
    monkeypatch.setattr(PIPELINE, "count", never)

    with pytest.raises(BudgetExceeded, match="asked epsilon 4, left epsilon 3"):
        ask(ledger, tmp_path, epsilon=4)
    with pytest.raises(UnknownDataset):
        ask(ledger, tmp_path, dataset="strangers")
    assert names(tmp_path) == set()


def test_what_others_spend_while_rows_are_read_is_noticed(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The debit decides, not what was left before."""
    count = making.count

    def slowly(*arguments: Any) -> Any:
        ledger.debit("people", Guarantee(epsilon=2), what="others")
        return count(*arguments)

    monkeypatch.setattr(PIPELINE, "count", slowly)
    monkeypatch.setattr(PIPELINE, "draw", never)

    with pytest.raises(BudgetExceeded, match="asked epsilon 2, left epsilon 1"):
        ask(ledger, tmp_path)
    assert names(tmp_path) == set()


def test_a_key_that_is_done_while_rows_are_read_is_not_drawn_again(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two calls with one key at the same time: the slower one gets the release of the other."""
    count, first = making.count, []

    def overtaken(*arguments: Any) -> Any:
        counted = count(*arguments)
        with monkeypatch.context() as other:
            other.setattr(PIPELINE, "count", count)
            first.append(ask(ledger, tmp_path))
        monkeypatch.setattr(PIPELINE, "draw", never)
        return counted

    monkeypatch.setattr(PIPELINE, "count", overtaken)

    assert numbers(ask(ledger, tmp_path)) == numbers(first[0])
    assert len(ledger.entries("people")) == 1
    assert names(tmp_path) == {"people.release.parquet"}


def of_region(region: str, source: Any, ledger: Ledger, **other: Any) -> Release:
    asked = {"epsilon": 2, "mechanism": "histogram", "dataset": "people", **other}
    return publish(source, AGE, ledger=ledger, part=("region", region), **asked)


def test_parts_of_a_dataset_are_paid_beside_each_other(ledger: Ledger) -> None:
    """Under add-remove, two regions cost the larger of the two."""
    for region in ("north", "south"):
        of_region(region, people(), ledger)

    assert ledger.balance("people").spent.epsilon == 2


@pytest.mark.filterwarnings("ignore::partita.errors.PrivacyWarning")
def test_a_part_counts_its_own_rows_only(source: Any, tmp_path: Path) -> None:
    """From every container: rows of the region are counted, all others are not, and the file says so."""
    ledger = Ledger(tmp_path / "rich.db")
    ledger.open("people", epsilon=10_000)
    for region in ("north", "west", "nowhere"):
        path = tmp_path / f"{region}.parquet"
        of_region(region, source, ledger, epsilon=10_000, path=path)
        release = load(path)
        rows = [row for row in people().to_pylist() if row["region"] == region]

        assert release.count().value == len(rows)
        assert release.count(age=31).value == [row["age"] for row in rows].count(31)
        assert release.provenance.part == ("region", region)
        assert f"Only rows where region is '{region}' are counted." in release.report()
    assert ledger.balance("people").spent.epsilon == 10_000


def test_rows_that_are_all_in_another_part_cost_and_count_nothing_there(ledger: Ledger) -> None:
    """To call the same rows by another name does not publish them again."""
    rows = {"region": ["south"] * 1000, "age": [30] * 1000}
    counts = {name: of_region(name, rows, ledger).count(age=30).value for name in ("north", "south", "east")}

    assert counts["south"] > 900
    assert max(counts["north"], counts["east"]) < 100


def test_a_part_of_a_column_that_is_not_there_costs_nothing(ledger: Ledger) -> None:
    """It is refused as any missing column is, before the debit."""
    with pytest.raises(SourceError, match="column 'region' is not in the data"):
        of_region("north", {"age": [30]}, ledger)
    assert ledger.entries("people") == ()


def crash_before_the_file(ledger: Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A debit, and a maker that was never heard of again."""
    with monkeypatch.context() as broken:
        broken.setattr(PIPELINE, "draw", failing(RuntimeError("no")))
        broken.setattr(Ledger, "mark_lost", failing(LedgerError("the disk is full")))
        with pytest.raises(RuntimeError, match="no"):
            ask(ledger, folder)


@pytest.mark.parametrize(
    "change", [{"recorded": False}, {"day": "2020-02-29"}, {"part": ("region", "north")}], ids=str
)
def test_a_release_that_nobody_paid_is_not_taken_for_a_lost_one(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    """The same columns at the same path do not bring a key back: not without a ledger, nor on another day."""
    crash_before_the_file(ledger, tmp_path, monkeypatch)
    [entry] = ledger.entries("people")
    unpaid = publish(people(), AGE, epsilon=2, mechanism="tree", dataset="people")
    paid = replace(unpaid.provenance, recorded=True, day=entry.day)
    path = tmp_path / "people.release.parquet"
    save(replace(unpaid, provenance=replace(paid, **change)), path)

    with pytest.raises(InvalidRelease, match="must hold the release of this key"):
        ask(ledger, tmp_path)
    assert [entry.state for entry in ledger.entries("people")] == ["debited"]

    save(replace(unpaid, provenance=paid), path, overwrite=True)
    ask(ledger, tmp_path)
    assert [entry.state for entry in ledger.entries("people")] == ["done"]


def test_a_stored_release_is_never_called_lost(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that cannot be synced after the rename is an error, and the key finds the release."""
    with monkeypatch.context() as broken:
        broken.setattr("partita.storage.sync_folder", failing(OSError(5, "Input/output error")))
        with pytest.raises(InvalidParameter, match="path holds the whole file now"):
            ask(ledger, tmp_path)
    assert [entry.state for entry in ledger.entries("people")] == ["debited"]
    stored = load(tmp_path / "people.release.parquet")
    monkeypatch.setattr(PIPELINE, "draw", never)

    assert numbers(ask(ledger, tmp_path)) == numbers(stored)
    assert [entry.state for entry in ledger.entries("people")] == ["done"]


def test_names_that_a_ledger_cannot_write_are_counted(ledger: Ledger) -> None:
    """A column may be called anything; the entry then says how many columns there were."""
    name = "line\nbreak"
    publish({name: [1]}, {name: SCHEMA["age"]}, epsilon=1, mechanism="tree", ledger=ledger, dataset="people")

    assert [entry.what for entry in ledger.entries("people")] == ["1 columns"]
