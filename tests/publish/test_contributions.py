"""`contributions="auto"`: from a call to a release that states the choice, its price, and planted bugs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import partita as pt
from partita.domain import Category, Domain, Integer
from partita.errors import InvalidParameter, InvalidRelease, KeyReused, SourceError
from partita.ledger.ledger import Ledger
from partita.public.contributions import USUAL, AutoContributions, ChosenContributions
from partita.public.file import decode, encode
from partita.public.file_entries import provenance_entries, provenance_from
from partita.publish import publish as module
from partita.publish.publish import RankedCounts, count
from partita.publish.request import Request
from partita.testing import EndlessTape, replay_publish, system_noise, tape_noise
from partita.trusted.mechanisms.contributions import BoundSelection
from partita.trusted.sources.engine import LocalSource
from partita.trusted.sources.open import open_source

SCHEMA: Final[dict[str, Domain]] = {"age": Integer(0, 3), "pay": Integer(0, 8)}
ASKED: Final[dict[str, Any]] = {"epsilon": 1, "by": ["age"], "person": "id", "mechanism": "histogram"}
AUTO: Final = "auto among 1,2,4 with 1/2"

Table = dict[str, list[Any]]


def people(*rows: int, start: int = 0) -> Table:
    """Persons with so many rows each."""
    ids = [start + person for person, each in enumerate(rows) for _ in range(each)]
    turns = range(len(ids))
    return {"id": ids, "age": [turn % 4 for turn in turns], "pay": [turn * 5 % 9 for turn in turns]}


def and_one(table: Table, rows: int) -> Table:
    """The same with one more person."""
    more = people(rows, start=99)
    return {name: [*table[name], *more[name]] for name in table}


def publish(table: Any, **given: Any) -> pt.Release:
    """A release with noise from a tape; it carries no guarantee."""
    with system_noise(tape_noise(EndlessTape("publish"))):
        return pt.publish(table, SCHEMA, **{**ASKED, "contributions": AUTO, **given})


# What a caller may write.
@pytest.mark.parametrize(
    ("text", "among", "share"),
    [
        ("auto", USUAL, "1/20"),
        ("auto with 0.1", USUAL, "1/10"),
        ("auto among 1, 2,5", (1, 2, 5), "1/20"),
        ("auto among 3,7 with 1/3", (3, 7), "1/3"),
    ],
)
def test_the_text_of_a_choice_is_read_and_written(text: str, among: Any, share: str) -> None:
    """Candidates and share, with the usual ones where they are left out."""
    read = AutoContributions.parse(text)

    assert (read.among, read.share) == (among, Fraction(share))
    assert AutoContributions.parse(str(read)) == read == AutoContributions(list(among), share)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ("automatic", "contributions must be an integer, or auto, got 'automatic'"),
        ("auto among 5,2", "must be a choice among 2 to 64 bounds, ascending, got '5, 2'"),
        ("auto among 2", "must be a choice among 2 to 64 bounds, ascending, got '1 of them'"),
        ("auto among 0,2", "contributions must be at least 1, got 0"),
        ("auto among 1,10000000", "contributions must be at most 1000000"),
        ("auto with 1", "with a share of epsilon above 0 and below 1, got '1'"),
        ("auto with x", "contributions must be an integer, or auto"),
        (1.5, "contributions must be an integer"),
    ],
)
def test_what_no_choice_can_be_made_of_is_refused(given: Any, rule: str) -> None:
    """By name, before anything is read."""
    with pytest.raises(InvalidParameter, match=rule):
        pt.publish(_Unread(), SCHEMA, **ASKED, contributions=given)


class _Unread:
    """A source that must not be touched."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError("rows were asked for")


@pytest.mark.parametrize("budget", [{"rho": "1/8"}, {"rho": "1/8", "delta": "1e-6"}])
def test_a_choice_is_not_paid_in_rho(budget: Any) -> None:
    """Refused before a row is read: what the choice costs in rho is not accounted yet."""
    asked = {name: each for name, each in ASKED.items() if name != "epsilon"}

    with pytest.raises(InvalidParameter, match="contributions must be a number of rows where rho is spent"):
        pt.publish(_Unread(), SCHEMA, **asked, **budget, contributions="auto")


def test_a_choice_beside_a_delta_spends_no_rho() -> None:
    """Of few views epsilon alone is spent; many would spend the largest rho that follows, and are refused."""
    names = [f"c{number}" for number in range(60)]
    schema: dict[str, Domain] = {name: Integer(0, 3) for name in names}
    asked: dict[str, Any] = {"epsilon": 1, "delta": "1e-6", "person": "id", "contributions": "auto among 1,9"}

    assert pt.plan(schema, **asked, views=names[:2]).guarantee.pure
    with pytest.raises(InvalidParameter, match="where rho is spent"):
        pt.plan(schema, **asked, views=names)


def test_a_choice_needs_ids() -> None:
    """Without a column of ids nobody has several rows."""
    with pytest.raises(InvalidParameter, match="contributions needs person, got 'auto'"):
        pt.publish(_Unread(), SCHEMA, epsilon=1, contributions="auto")


# The release, its file and its price.
def test_the_release_states_what_was_chosen_among_what_for_how_much() -> None:
    """In its guarantee, its provenance, its report and its file."""
    table = people(*[4] * 30, 1, 9)
    release = pt.publish(table, SCHEMA, **ASKED, contributions=AUTO)
    chosen = release.provenance.contributions

    assert chosen is not None
    assert (chosen.among, chosen.share, chosen.epsilon) == ((1, 2, 4), Fraction(1, 2), Fraction(1, 2))
    assert release.guarantee is not None
    assert release.guarantee.epsilon == 1
    assert release.guarantee.contributions == chosen.chosen
    assert f"at most {chosen.chosen}, chosen privately among 1, 2, 4 with 1/2 of epsilon" in release.report()
    assert "chosen privately" in release._repr_html_()
    read = decode(encode(release))
    assert (read.provenance, read.guarantee) == (release.provenance, release.guarantee)
    assert read.count(age=(0, 3)).value == release.count(age=(0, 3)).value


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"by": ["age", "pay"], "mechanism": "auto"},
        {"by": ["age"], "sums": ["pay"], "mechanism": "auto"},
        {"by": None, "wants": ["median of pay", "mean of pay by age"], "mechanism": "auto"},
        {"by": None, "queries": "ranges(age)", "mechanism": "auto"},
        {"mechanism": "tree", "options": {"branching": 3}},
        {"neighbors": "change-one"},
    ],
    ids=["column", "boxes", "sums", "wants", "queries", "options", "change-one"],
)
def test_all_kinds_of_releases_are_made_and_read(asked: Any) -> None:
    """With the chosen bound in every view, and all of epsilon in the guarantee; the file is read again."""
    table = people(*[3] * 20)

    release = pt.publish(table, SCHEMA, **{**ASKED, "contributions": AUTO, **asked})
    read = decode(encode(release))

    assert release.guarantee is not None
    assert release.provenance.contributions is not None
    assert all(
        view.guarantee is not None and view.guarantee.contributions == release.provenance.contributions.chosen
        for view in release.published
    )
    assert release.guarantee.epsilon <= 1
    assert (read.guarantee, read.provenance, read.wants) == (
        release.guarantee,
        release.provenance,
        release.wants,
    )


def test_the_rows_of_the_chosen_bound_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """For each bound the same counts as when it is given, in each view by its own public rule."""
    table = people(1, 2, 3, 5, 7)
    asked = {"views": [("age",), ("age", "pay")], "mechanism": "auto", "by": None}
    wanted = {**ASKED, **asked}
    auto = Request.checked(SCHEMA, **wanted, contributions=AUTO)
    counted = count(open_source(table), auto, "people")

    assert isinstance(counted, RankedCounts)
    assert counted.within == [5, 9, 14]
    for place, bound in enumerate((1, 2, 4)):
        fixed = Request.checked(SCHEMA, **{**wanted, "epsilon": "1/2"}, contributions=bound)
        alone: Any = count(open_source(table), fixed, "people")
        column, points = counted.at(place)
        assert column.histogram.spread().tolist() == alone[0].histogram.spread().tolist()
        assert (points.spread() == alone[1].spread()).all()
        assert column.histogram.contributions == points.contributions == bound


def test_nothing_is_read_after_the_debit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Rows are counted before the ledger is charged, once for each set of columns."""
    ledger, events = Ledger(tmp_path / "budget.db"), list[str]()
    ledger.open("people", epsilon=3, unit="person")
    shipped_counts, shipped_debit = LocalSource.counts, Ledger.debit

    def counts(self: LocalSource, *given: Any, **named: Any) -> Any:
        events.append("read")
        return shipped_counts(self, *given, **named)

    def debit(self: Ledger, *given: Any, **named: Any) -> Any:
        events.append("debit")
        return shipped_debit(self, *given, **named)

    monkeypatch.setattr(LocalSource, "counts", counts)
    monkeypatch.setattr(Ledger, "debit", debit)

    pt.publish(people(3, 4), SCHEMA, **ASKED, contributions=AUTO, ledger=ledger, dataset="people")

    assert events == ["read", "debit"]


def test_a_ledger_is_charged_epsilon_and_told_the_largest_candidate(tmp_path: Path) -> None:
    """The entry is written before the choice and cannot tell it. A key gives the release again."""
    ledger, path = Ledger(tmp_path / "budget.db"), tmp_path / "r.parquet"
    ledger.open("people", epsilon=3, unit="person")
    given = {**ASKED, "ledger": ledger, "dataset": "people", "key": "k", "path": path}

    first = pt.publish(people(3, 4), SCHEMA, **given, contributions=AUTO)
    again = pt.publish(people(3, 4), SCHEMA, **given, contributions="auto among 1,2,4 with 0.5")

    [entry] = ledger.entries("people")
    assert entry.stated.epsilon == 1
    assert entry.stated.contributions == 4
    assert ledger.balance("people").left.epsilon == 2
    assert again.is_same(first)
    for other in ("auto among 1,2,4 with 1/4", "auto among 1,2,8 with 1/2", 4):
        with pytest.raises(KeyReused):
            pt.publish(people(3, 4), SCHEMA, **given, contributions=other)


@pytest.mark.filterwarnings("ignore::partita.PrivacyWarning")
@pytest.mark.parametrize("epsilon", ["1e-6", "1/7", 10**4])
def test_any_epsilon_can_be_shared(epsilon: Any) -> None:
    """Where noise all but ends, every row that it pays to count is counted; where it is large, few are."""
    table = people(*[3] * 20)

    release = pt.publish(table, SCHEMA, **{**ASKED, "epsilon": epsilon}, contributions="auto among 1,3,9")

    assert release.guarantee is not None
    assert release.guarantee.epsilon == Fraction(epsilon)
    if epsilon == 10**4:
        assert release.guarantee.contributions in (3, 9)
        assert release.count(age=(0, 3)).value == 60


def test_a_share_that_no_file_can_hold_is_refused() -> None:
    """Before a row is read."""
    share = Fraction(10**120 + 1, 3 * 10**120)

    with pytest.raises(InvalidParameter, match="a part of epsilon of at most 100 digits"):
        pt.publish(_Unread(), SCHEMA, **ASKED, contributions=AutoContributions((1, 2), share))


def test_what_cannot_be_read_costs_nothing(tmp_path: Path) -> None:
    """A missing column of ids is found while rows are counted, before the debit."""
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", epsilon=3, unit="person")

    with pytest.raises(SourceError):
        pt.publish({"age": [1]}, SCHEMA, **ASKED, contributions=AUTO, ledger=ledger, dataset="people")

    assert ledger.balance("people").left.epsilon == 3


@pytest.mark.parametrize(
    ("damage", "rule"),
    [
        ({"chosen": 3}, "one of the bounds"),
        ({"chosen": 1, "among": (1, 1)}, "one of the bounds"),
        ({"epsilon": Fraction(1, 4)}, "what its views promise together"),
        ({"share": Fraction(2)}, "one of the bounds"),
        ({"chosen": 2, "among": (2, 9)}, "about the same neighbors"),
    ],
)
def test_a_choice_that_does_not_fit_is_refused(damage: Any, rule: str) -> None:
    """Whoever changes what a release says of the choice makes it invalid."""
    release = pt.publish(people(3, 4), SCHEMA, **ASKED, contributions="auto among 1,4 with 1/2")
    chosen = release.provenance.contributions
    assert chosen is not None

    with pytest.raises(InvalidRelease, match=rule):
        replace(release, provenance=replace(release.provenance, contributions=replace(chosen, **damage)))
    with pytest.raises(InvalidRelease):
        replace(release, provenance=replace(release.provenance, contributions=None))


def test_entries_of_a_choice_are_read_strictly() -> None:
    """Each of its type, none more and none less."""
    chosen = ChosenContributions(chosen=2, among=(1, 2), share=Fraction(1, 20), epsilon=Fraction(1, 40))
    origin = pt.publish(people(1), SCHEMA, **ASKED).provenance
    entries: Any = provenance_entries(replace(origin, contributions=chosen))

    assert provenance_from(entries).contributions == chosen
    damages: list[dict[str, Any]] = [
        {"chosen": "2"},
        {"among": 2},
        {"among": [1, "2"]},
        {"share": 0.05},
        {"more": 1},
    ]
    for damage in damages:
        with pytest.raises(InvalidRelease):
            provenance_from({**entries, "contributions": {**entries["contributions"], **damage}})


# Privacy: replay through `publish`, and planted bugs.
TABLES: Final = [people(), people(4, 4, 1), people(2, 2, 2, 2)]


@pytest.mark.spread(4)
@pytest.mark.parametrize("rows", [1, 2, 4, 9])
@pytest.mark.parametrize("table", TABLES, ids=["nobody", "three", "four"])
def test_a_person_with_any_number_of_rows_costs_epsilon_at_most(table: Table, rows: int) -> None:
    """The same file is at most e^epsilon times likelier with one person more, who may have nine rows."""
    loss = replay_publish(table, and_one(table, rows), SCHEMA, **ASKED, contributions=AUTO)

    assert loss <= 1


def test_the_choice_and_the_counts_use_up_epsilon() -> None:
    """Some pair loses nearly all: half by the choice, half by the counts."""
    losses = [
        float(replay_publish(table, and_one(table, rows), SCHEMA, **ASKED, contributions=AUTO, seed=seed))
        for table in TABLES
        for rows in (4, 9)
        for seed in range(1)
    ]

    assert 0.8 < max(losses) <= 1


def test_a_person_who_changes_costs_epsilon_at_most() -> None:
    """Under change-one a person of two rows may have nine others."""
    changed = {**ASKED, "neighbors": "change-one", "contributions": AUTO}
    pairs = [(and_one(table, 2), and_one(table, 9)) for table in TABLES]

    assert all(replay_publish(*pair, SCHEMA, **changed) <= 1 for pair in pairs)


def test_rows_without_an_id_are_one_person_whose_rows_are_all_counted_within_the_bound() -> None:
    """Nine of them more cost what one person costs."""
    table = people(2, 1)
    nulls = {name: [*table[name], *[None if name == "id" else 1] * 9] for name in table}

    assert replay_publish(table, nulls, SCHEMA, **ASKED, contributions=AUTO) <= 1


def _plant_uncapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows beyond the largest candidate reach the scores."""
    shipped = count

    def counting(source: Any, *given: Any, **named: Any) -> Any:
        counted: Any = shipped(source, *given, **named)
        total = len(source.rows.data["id"])
        counted.__dict__["within"] = [*counted.within[:-1], total]
        return counted

    monkeypatch.setattr(module, "count", counting)


def _plant_uncharged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views have all of epsilon, and the choice comes on top."""
    shipped = Request._bounded
    monkeypatch.setattr(
        Request,
        "_bounded",
        staticmethod(lambda schema, *, epsilon, **given: shipped(schema, epsilon=2 * epsilon, **given)),
    )


def _plant_true_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """What noise costs is predicted from the true number of rows."""
    shipped = BoundSelection.draw

    def drawing(self: BoundSelection, within: Any, **given: Any) -> Any:
        noise = [(1 + within[-1]) * (3 - place) for place in range(len(within))]
        told = BoundSelection(candidates=self.candidates, noise=noise, epsilon=self.epsilon)
        return shipped(told, within, **given)

    monkeypatch.setattr(BoundSelection, "draw", drawing)


def _plant_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the next larger candidate are counted, with the noise of the chosen one."""
    shipped = RankedCounts.at
    monkeypatch.setattr(
        RankedCounts, "at", lambda self, place: shipped(self, min(place + 1, len(self.within) - 1))
    )


@pytest.mark.parametrize("plant", [_plant_uncapped, _plant_uncharged, _plant_true_noise, _plant_one_more])
def test_planted_bugs_are_found(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what the replay loses, or by what the release and the counts refuse."""
    plant(monkeypatch)
    found = False
    for table in [*TABLES[1:], people(*[4] * 10)]:
        for rows in (4, 9):
            if found:
                break
            try:
                loss = replay_publish(table, and_one(table, rows), SCHEMA, **ASKED, contributions=AUTO)
            except (InvalidRelease, InvalidParameter):
                found = True
            else:
                found |= not loss <= 1

    assert found


def test_a_change_that_is_paid_like_a_coming_is_found() -> None:
    """Planted: views have the noise of add-remove where a person changes; the counts move twice as far."""
    changed = {**ASKED, "contributions": "auto among 2,4 with 1/10"}
    one, other = people(4, 4), people(4, 4)
    one["age"][4:], other["age"][4:] = [0] * 4, [3] * 4

    honest = replay_publish(one, other, SCHEMA, **changed, neighbors="change-one")
    planted = replay_publish(one, other, SCHEMA, **changed)

    assert honest <= 1
    assert not planted <= 1


# Plan and simulation.
def test_a_plan_shows_the_noise_of_every_candidate() -> None:
    """As text, as HTML and as JSON; it touches no rows."""
    planned = pt.plan(SCHEMA, **ASKED, contributions=AUTO)
    noise = planned.noise_by_bound

    assert list(noise) == [1, 2, 4]
    assert noise[4] == pytest.approx(4 * noise[1], rel=0.1)
    assert "chosen privately, with 1/2 of epsilon" in str(planned)
    assert "at most  error by noise" in str(planned)
    assert "chosen privately" in planned._repr_html_()
    told = planned.to_json()
    assert told["request"]["contributions"] == AUTO
    assert [each["contributions"] for each in told["noise"]] == [1, 2, 4]
    assert pt.plan(SCHEMA, **ASKED).noise_by_bound == {}
    assert "noise" not in pt.plan(SCHEMA, **ASKED).to_json()


def test_a_simulation_shows_what_the_choice_gains() -> None:
    """Beside the best bound in hindsight, the smallest and the largest one."""
    rng = np.random.default_rng(3)
    rows = rng.geometric(1 / 5, 3_000).tolist()
    table = people(*rows)
    planned = pt.plan(SCHEMA, **{**ASKED, "contributions": "auto"})

    simulated = pt.simulate(planned, table, times=2, questions=["count"])
    choice = simulated.choice

    assert choice is not None
    assert [each.contributions for each in choice.bounds] == list(USUAL)
    assert [each.left_out for each in choice.bounds] == [
        sum(max(0, each - bound) for each in rows) for bound in USUAL
    ]
    assert sum(each.chance for each in choice.bounds) == pytest.approx(1)
    assert choice.best.error < choice.auto < 5 * choice.best.error
    assert choice.auto < choice.bounds[0].error / 10
    assert str(choice) in " ".join(str(simulated).split())
    assert simulated.to_json()["contributions"]["auto"] == choice.auto
    assert "chosen privately" in simulated._repr_html_()
    assert simulated.asked[0].exact == len(table["id"])
    assert pt.simulate(pt.plan(SCHEMA, **ASKED), table).choice is None


def test_a_part_pays_for_its_own_choice(tmp_path: Path) -> None:
    """Rows of one region of a file, a label that is none among them, and the budget of that region."""
    path = tmp_path / "rows.csv"
    lines = [
        f"{person},{'north' if person % 2 else 'south'},{'ab?'[turn % 3]}"
        for person in range(40)
        for turn in range(3)
    ]
    path.write_text("\n".join(["id,region,kind", *lines, ""]))
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", epsilon=4, unit="person", constant=("region",))
    schema: dict[str, Domain] = {"kind": Category(["a", "b"])}

    release = pt.publish(
        path,
        schema,
        epsilon=4,
        person="id",
        contributions="auto among 1,3,9",
        ledger=ledger,
        dataset="people",
        part=("region", "north"),
    )

    chosen = release.provenance.contributions
    assert chosen is not None
    assert release.provenance.part == ("region", "north")
    assert ledger.balance("people").left.epsilon == 0
