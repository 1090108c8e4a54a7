"""Opening, resuming, paying, and refusing what would publish a period twice."""

from __future__ import annotations

import copy
import os
import pickle
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from partita.errors import (
    BudgetExceeded,
    EntropyError,
    InvalidParameter,
    InvalidState,
    LedgerError,
    LedgerRefusal,
    StreamBusy,
    StreamError,
    StreamForked,
    UnknownDataset,
)
from partita.guarantee import Guarantee
from partita.ledger.ledger import Ledger
from partita.public.streams import Output, Settings, read_outputs
from partita.testing import EndlessTape, ForbiddenNoise, ZeroNoise, tape_noise
from partita.trusted.durable import stream
from partita.trusted.durable.events import MECHANISMS
from partita.trusted.durable.journal import Journal
from partita.trusted.durable.open import open_counter, resume_counter
from partita.trusted.durable.stream import DurableCounter, StreamAccount
from partita.trusted.noise import SYSTEM
from partita.trusted.streams.base import ContinualCounter
from tests.trusted.streams.durable.conftest import Opener, known_by, made_with


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger with three epsilon for the events of `visits`."""
    made = Ledger(tmp_path / "budget.db")
    made.open("visits", epsilon=3, unit="event")
    return made


def backup(folder: Path, *names: str) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names}


def restore(folder: Path, copies: dict[str, bytes]) -> None:
    for name, data in copies.items():
        (folder / name).write_bytes(data)


def test_secret_and_public_side_are_two_files(opened: Opener, tmp_path: Path) -> None:
    """The secret one is for its owner only; beside them an empty lock is left when the counter is closed."""
    with opened() as counter:
        counter.add(feeder="gate", sequence=1)
        counter.tick(now=1)

    assert sorted(os.listdir(tmp_path)) == ["visits.db", "visits.db.lock", "visits.outputs"]
    assert stat.S_IMODE((tmp_path / "visits.db").stat().st_mode) == 0o600


def test_the_public_file_may_be_elsewhere(tmp_path: Path) -> None:
    """The secret one then has a folder for itself and its lock."""
    public = tmp_path / "public" / "visits.outputs"
    public.parent.mkdir()
    with open_counter(tmp_path / "visits", epsilon=1, period=1, start=0, now=0, outputs=public) as counter:
        counter.tick(now=2)

    assert len(read_outputs(public).outputs) == 2
    assert sorted(os.listdir(tmp_path)) == ["public", "visits.db", "visits.db.lock"]


def test_a_counter_goes_on_where_it_was(opened: Opener) -> None:
    """Events of the open period, all outputs and the guarantee are as before."""
    with opened(noise=None) as counter:
        counter.add(2, feeder="gate", sequence=1)
        before = counter.tick(now=2)
        counter.add(3, feeder="gate", sequence=2)
    with opened(noise=None) as counter:
        assert list(counter.outputs()) == before
        assert counter.guarantee == Guarantee(epsilon=1, unit="event")
        assert counter.answer().value == before[-1].value
        counter.tick(now=3)
        assert [output.period for output in counter.outputs()] == [1, 2, 3]


@pytest.mark.parametrize("mechanism", sorted(set(MECHANISMS) - {"pan-private"}))
@pytest.mark.spread(2)
def test_a_restart_changes_no_output(opened: Opener, tmp_path: Path, mechanism: str) -> None:
    """On one tape of noise, a counter that is opened anew for each period publishes what one left open does.

    Noise that was drawn and not used is in its state, and so is all that was counted. A pan-private counter
    draws anew on purpose.
    """
    named = made_with(mechanism)

    def published(*, restarts: bool) -> list[Output]:
        noise = tape_noise(EndlessTape(7))
        counter = opened(noise=noise, **named)
        for period, count in enumerate([30, 0, 7, 0, 0, 90, 2, 1] * 3, start=1):
            counter.add(count, **known_by(mechanism, period))
            counter.tick(now=period)
            if restarts:
                counter.close()
                counter = opened(noise=noise, **named)
        counter.close()
        return list(counter.outputs())

    whole = published(restarts=False)
    for file in tmp_path.iterdir():
        file.unlink()

    assert len({output.exact for output in whole}) > 1
    assert published(restarts=True) == whole


def test_injected_noise_has_no_guarantee(opened: Opener) -> None:
    """Neither at first nor after a restart with noise that is sound."""
    with opened() as counter:
        assert counter.guarantee is None
    with opened(noise=SYSTEM) as counter:
        assert counter.guarantee is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", 2),
        ("period", "1m"),
        ("horizon", 8),
        ("start", 60),
        ("mechanism", "pan-private"),
        ("change", 2),
        ("contributions", 2),
        ("unit", "user"),
    ],
)
def test_other_parameters_are_refused(opened: Opener, name: str, value: object) -> None:
    """The error names the parameter; the counter is untouched and can be opened again."""
    opened().close()
    with pytest.raises(InvalidParameter, match=rf"^{name} must be what the counter was opened with"):
        opened(**{name: value})
    opened().close()


def test_options_belong_to_the_mechanism(opened: Opener) -> None:
    """Those that it has are kept and compared, others are refused before any file is made."""
    with pytest.raises(InvalidParameter, match=r"^options must be among"):
        opened(branching=4)
    opened(mechanism="tree", horizon=8, branching=4).close()
    with pytest.raises(InvalidParameter, match=r"^options must be what"):
        opened(mechanism="tree", horizon=8, branching=2)


def test_what_is_there_can_be_resumed_without_its_parameters(opened: Opener, tmp_path: Path) -> None:
    """They are in the file."""
    opened(epsilon="1/3").close()
    with resume_counter(tmp_path / "visits", now=5) as counter:
        assert (counter.settings.epsilon, counter.periods) == ("1/3", 5)
    with pytest.raises(StreamError, match="does not exist"):
        resume_counter(tmp_path / "nothing")


def test_bad_parameters_make_no_file_and_draw_nothing(opened: Opener, tmp_path: Path) -> None:
    """Nothing is left behind."""
    bad: list[dict[str, Any]] = [
        {"epsilon": 0},
        {"horizon": 0},
        {"mechanism": "abacus"},
        {"unit": "row"},
        {"unit": "event", "contributions": 2},
        {"change": 0},
        {"start": "never"},
        {"dataset": "visits"},
        {"mechanism": "pan-private", "unit": "user"},
        {"mechanism": "tree", "horizon": 4, "branching": [2]},
    ]
    for named in bad:
        with pytest.raises(InvalidParameter):
            opened(**named)

    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("path", ["", 7, "visits\0", None])
def test_what_is_no_path_is_refused(path: Any) -> None:
    """The error names the parameter."""
    with pytest.raises(InvalidParameter, match=r"^path must be"):
        open_counter(path, epsilon=1, period=1)


def test_a_counter_has_one_writer(opened: Opener) -> None:
    """A second one is refused while the first is open, and succeeds after."""
    first = opened()
    with pytest.raises(StreamBusy):
        opened()
    first.close()
    with opened() as second:
        assert second.tick(now=1)[0].value == 0
    for act in (first.tick, first.answer, lambda: first.add(feeder="gate", sequence=1)):
        with pytest.raises(StreamBusy, match="closed"):
            act()


def test_a_writer_of_an_earlier_epoch_is_stopped(opened: Opener) -> None:
    """Where locks do not work, who opened it last goes on, and the other writes nothing any more."""
    counter = opened()
    store = counter._store
    assert isinstance(store, Journal)
    with store._file.transaction() as connection:
        connection.execute("UPDATE counter SET epoch = epoch + 1")

    with pytest.raises(StreamBusy, match="opened again elsewhere"):
        counter.add(feeder="gate", sequence=1)
    with pytest.raises(StreamBusy, match="opened again elsewhere"):
        counter.tick(now=1)
    assert list(counter.outputs()) == []


def test_a_counter_cannot_be_copied(opened: Opener) -> None:
    """A copy would publish with the same noise."""
    counter = opened()
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(EntropyError):
            act(counter)


def test_a_ledger_is_charged_once(opened: Opener, ledger: Ledger) -> None:
    """However often the counter is opened, with one debit that is done."""
    for now in range(3):
        opened(ledger=ledger, dataset="visits", now=now).close()

    (entry,) = ledger.entries("visits")
    assert (entry.state, entry.stated) == ("done", Guarantee(epsilon=1, unit="event"))


def test_what_cannot_be_paid_is_not_begun(opened: Opener, ledger: Ledger, tmp_path: Path) -> None:
    """No file is made, nothing is drawn, and nothing is charged."""
    refused: list[tuple[dict[str, Any], type[LedgerRefusal]]] = [
        ({"epsilon": 4, "dataset": "visits"}, BudgetExceeded),
        ({"dataset": "others"}, UnknownDataset),
    ]
    for named, error in refused:
        with pytest.raises(error):
            opened(ledger=ledger, **named)

    assert ledger.entries("visits") == ()
    assert not (tmp_path / "visits.db").exists()


def test_whoever_comes_second_is_told_that_the_counter_is_open(
    opened: Opener, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that nothing is left to pay with: the first one has paid the last of it, in the same moment."""
    plain = StreamAccount.check_room
    raced: list[object] = []

    def slow(self: StreamAccount, settings: Settings) -> None:
        if not raced:
            raced.append(True)
            raced.append(opened(epsilon=3, ledger=ledger, dataset="visits"))
        plain(self, settings)

    monkeypatch.setattr(StreamAccount, "check_room", slow)
    with pytest.raises(StreamBusy):
        opened(epsilon=3, ledger=ledger, dataset="visits")


def test_a_crash_between_debit_and_first_state_charges_once(
    opened: Opener, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counter that was paid for is begun at the next start."""

    def crash(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "begin", crash)
        with pytest.raises(KeyboardInterrupt):
            opened(ledger=ledger, dataset="visits")
    assert [entry.state for entry in ledger.entries("visits")] == ["debited"]
    opened(ledger=ledger, dataset="visits").close()

    assert [entry.state for entry in ledger.entries("visits")] == ["done"]


class Undrawn(ForbiddenNoise):
    """Noise that may be held, and must not be drawn."""

    def session(self) -> Undrawn:
        return self


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_mechanism_draws_before_the_debit(
    opened: Opener, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    """Parameters are checked, files are made and the budget is asked without a draw."""

    class Paying(Exception):
        pass

    def debit(*arguments: object, **named: object) -> None:
        raise Paying

    monkeypatch.setattr(Ledger, "debit", debit)
    with pytest.raises(Paying):
        opened(ledger=ledger, dataset="visits", noise=Undrawn(), **made_with(mechanism))


def test_the_debit_comes_before_the_first_draw(
    opened: Opener, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pan-private counter draws as soon as it is begun, and not before it is paid for."""
    acts, debit = [], Ledger.debit

    class Watched(ZeroNoise):
        def add(self, *arguments: Any, **named: Any) -> Any:
            acts.append("draw")
            return super().add(*arguments, **named)

    def watched(*arguments: Any, **named: Any) -> Any:
        acts.append("debit")
        return debit(*arguments, **named)

    monkeypatch.setattr(Ledger, "debit", watched)
    opened(ledger=ledger, dataset="visits", mechanism="pan-private", horizon=8, noise=Watched())

    assert acts[:2] == ["debit", "draw"]


def test_a_ledger_may_be_given_by_its_path(opened: Opener, ledger: Ledger) -> None:
    """As everywhere else; what is neither a ledger nor a path is refused before anything is made."""
    opened(ledger=str(ledger.path), dataset="visits").close()

    assert [entry.state for entry in ledger.entries("visits")] == ["done"]
    with pytest.raises(InvalidParameter, match="must be a Ledger or the path of one"):
        opened(ledger=17, dataset="visits")


def test_a_counter_that_a_ledger_paid_for_needs_it(opened: Opener, ledger: Ledger, tmp_path: Path) -> None:
    """Without it nobody could tell an old copy; another ledger has not paid."""
    opened(ledger=ledger, dataset="visits").close()
    with pytest.raises(InvalidParameter, match=r"^ledger and dataset"):
        resume_counter(tmp_path / "visits", now=0)
    other = Ledger(tmp_path / "other.db")
    other.open("visits", epsilon=3, unit="event")
    with pytest.raises(LedgerRefusal, match="has not paid"):
        resume_counter(tmp_path / "visits", ledger=other, now=0)
    resume_counter(tmp_path / "visits", ledger=ledger, now=0).close()


def advanced(counter: DurableCounter, period: int) -> None:
    counter.tick(now=period)
    counter.close()


def test_an_old_state_beside_the_outputs_is_refused(opened: Opener, tmp_path: Path) -> None:
    """The public file has periods that it does not know, and nothing is drawn or changed."""
    advanced(opened(), 2)
    old = backup(tmp_path, "visits.db")
    advanced(opened(), 3)
    public = backup(tmp_path, "visits.outputs")
    restore(tmp_path, old)
    with pytest.raises(StreamForked, match="old copy"):
        opened(now=10)

    assert backup(tmp_path, "visits.outputs") == public


def test_an_old_copy_of_both_files_is_refused_by_the_ledger(
    opened: Opener, ledger: Ledger, tmp_path: Path
) -> None:
    """It knows how many periods were published."""
    paid: dict[str, Any] = {"ledger": ledger, "dataset": "visits"}
    advanced(opened(**paid), 2)
    old = backup(tmp_path, "visits.db", "visits.outputs")
    advanced(opened(**paid), 3)
    latest = backup(tmp_path, "visits.db", "visits.outputs")
    restore(tmp_path, old)
    with pytest.raises(StreamForked, match="knows of 3 published periods, and this state of 2"):
        opened(now=10, **paid)
    restore(tmp_path, latest)
    opened(**paid).close()


def test_the_ledger_hears_of_a_period_before_the_public(
    opened: Opener, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it cannot, nothing is published; later the stored output is, without a new draw."""
    counter = opened(ledger=ledger, dataset="visits", noise=None)
    with monkeypatch.context() as patched:
        patched.setattr(stream, "_REACH", "no such statement")
        with pytest.raises(LedgerError):
            counter.tick(now=1)
    assert list(counter.outputs()) == []
    stored = cast("ContinualCounter", counter._counter).exact
    counter.tick(now=1)

    assert [output.exact for output in counter.outputs()] == [stored]


def test_without_a_ledger_whoever_kept_the_outputs_can_tell(opened: Opener, tmp_path: Path) -> None:
    """An old copy of both files goes on unnoticed here, and its records differ from those that were seen."""
    advanced(opened(noise=None, epsilon="1/100"), 2)
    old = backup(tmp_path, "visits.db", "visits.outputs")
    advanced(opened(noise=None, epsilon="1/100"), 300)
    seen = backup(tmp_path, "visits.outputs")["visits.outputs"]
    restore(tmp_path, old)
    advanced(opened(noise=None, epsilon="1/100"), 300)
    forked = backup(tmp_path, "visits.outputs")["visits.outputs"]

    assert seen[: 1024 + 2 * 64] == forked[: 1024 + 2 * 64]
    assert seen[-16:] != forked[-16:]


@pytest.mark.parametrize("kept", [0, 1024, 1024 + 64, 1024 + 100, 1024 + 3 * 64])
def test_outputs_that_are_missing_are_written_again(opened: Opener, tmp_path: Path, kept: int) -> None:
    """The state has them all: the public file is whole again, byte for byte; one that is gone, if asked."""
    advanced(opened(noise=None), 4)
    place = tmp_path / "visits.outputs"
    whole = place.read_bytes()
    place.write_bytes(whole[:kept]) if kept else place.unlink()
    opened(noise=None, republish=not kept).close()

    assert place.read_bytes() == whole


def test_blank_records_are_written_again(opened: Opener, tmp_path: Path) -> None:
    """A crash of the machine may leave zeros where records were; readers see the end there."""
    advanced(opened(noise=None), 4)
    place = tmp_path / "visits.outputs"
    whole = place.read_bytes()
    place.write_bytes(whole[: 1024 + 2 * 64] + bytes(2 * 64))
    assert [output.period for output in read_outputs(tmp_path / "visits").outputs] == [1, 2]
    opened(noise=None).close()

    assert place.read_bytes() == whole


def test_outputs_of_another_story_are_refused(opened: Opener, tmp_path: Path) -> None:
    """A record that differs from the stored one is no matter for the next start to decide."""
    advanced(opened(noise=None), 3)
    place = tmp_path / "visits.outputs"
    data = bytearray(place.read_bytes())
    data[-20] ^= 1
    place.write_bytes(data)
    with pytest.raises(StreamForked):
        opened(noise=None)


def test_every_damaged_byte_of_the_public_file_is_noticed(opened: Opener, tmp_path: Path) -> None:
    """Whatever is changed or cut off, a reader gets a typed error or a beginning of what was published."""
    advanced(opened(noise=None), 3)
    place = tmp_path / "visits.outputs"
    whole, true = place.read_bytes(), read_outputs(place).outputs
    for position in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[position] ^= 0x40
        place.write_bytes(damaged)
        if position < len(whole) - 64:
            with pytest.raises(InvalidState):
                read_outputs(place)
        else:
            assert read_outputs(place).outputs == true[:-1]
    for size in range(0, len(whole), 31):
        place.write_bytes(whole[:size])
        if size < 1024:
            with pytest.raises(InvalidState):
                read_outputs(place)
        else:
            assert read_outputs(place).outputs == true[: (size - 1024) // 64]


@contextmanager
def stored_in(folder: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(folder / "visits.db", isolation_level=None)) as connection:
        yield connection


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE counter SET state = x'00'",
        "UPDATE counter SET settings = '{}'",
        "UPDATE counter SET settings = replace(settings, 'event', 'users')",
        "UPDATE counter SET pending = 'many'",
        "PRAGMA user_version = 9",
        "PRAGMA application_id = 9",
        "DROP TRIGGER outputs_stay; DELETE FROM outputs WHERE period = 2",
        "DROP TABLE runs; DROP TABLE outputs",
    ],
)
def test_a_damaged_state_is_refused(opened: Opener, tmp_path: Path, change: str) -> None:
    """With a typed error, and the public file stays as it is."""
    advanced(opened(), 2)
    public = backup(tmp_path, "visits.outputs")
    with stored_in(tmp_path) as connection:
        connection.executescript(change)
    for _ in range(2):
        with pytest.raises((InvalidState, StreamError)) as refused:
            resume_counter(tmp_path / "visits", now=5, noise=ZeroNoise())
        assert not isinstance(refused.value, StreamBusy)

    assert backup(tmp_path, "visits.outputs") == public


def test_what_is_no_counter_is_refused(tmp_path: Path) -> None:
    """Neither text, nor an empty file, nor another database."""
    for data in (b"", b"hello" * 1000):
        (tmp_path / "visits.db").write_bytes(data)
        with pytest.raises(StreamError, match="is not a Partita counter"):
            resume_counter(tmp_path / "visits")
    (tmp_path / "visits.db").unlink()
    Ledger(tmp_path / "visits.db").open("people", epsilon=1)
    ledger = (tmp_path / "visits.db").read_bytes()
    with pytest.raises(StreamError, match="is not a Partita counter"):
        resume_counter(tmp_path / "visits")
    assert (tmp_path / "visits.db").read_bytes() == ledger


def test_a_public_file_of_another_counter_is_not_overwritten(opened: Opener, tmp_path: Path) -> None:
    """It is refused, and stays."""
    opened().close()
    shutil.move(tmp_path / "visits.outputs", tmp_path / "kept")
    (tmp_path / "visits.db").unlink()
    shutil.copy(tmp_path / "kept", tmp_path / "visits.outputs")
    with pytest.raises(StreamError, match="belongs to another counter"):
        opened()

    assert (tmp_path / "kept").read_bytes() == (tmp_path / "visits.outputs").read_bytes()


@pytest.mark.parametrize(
    ("seconds", "horizon", "fits"), [(10**8, None, True), (10**8 + 1, None, False), (10**9, 9, True)]
)
def test_a_start_that_nobody_would_wait_for_is_refused(
    tmp_path: Path, seconds: int, horizon: int | None, fits: bool
) -> None:
    """At most 10^8 periods of a new counter have ended; else an error names it, and no file is made."""
    usual: dict[str, Any] = {"epsilon": 1, "period": 1, "start": 0, "noise": ZeroNoise()}
    if fits:
        open_counter(tmp_path / "visits", now=seconds, horizon=horizon, **usual).close()
    else:
        with pytest.raises(
            InvalidParameter, match=r"^start must be at most 100000000 periods ago"
        ) as refused:
            open_counter(tmp_path / "visits", now=seconds, horizon=horizon, **usual)
        assert refused.value.parameter == "start"
        assert list(tmp_path.iterdir()) == []


def test_opening_reads_each_stored_record_once(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """To compare the public file with the state takes one row for each record, not all later ones too."""
    with opened() as counter:
        counter.tick(now=40)
    read = []
    some = Journal._some_records

    def counted(self: Journal, since: int) -> list[bytes]:
        found = some(self, since)
        read.extend(found)
        return found

    monkeypatch.setattr(Journal, "_some_records", counted)
    with opened() as counter:
        assert counter.periods == 40

    assert len(read) <= 40


def test_past_periods_are_counted_after_a_crash(opened: Opener, tmp_path: Path) -> None:
    """The interval counts of a tree are in its state: a counter that is resumed answers as the one before."""
    noise = tape_noise(EndlessTape(2))
    with opened(mechanism="tree", horizon=16, intervals=True, noise=noise) as counter:
        for period in range(1, 8):
            counter.add(period, feeder="gate", sequence=period)
            counter.tick(now=period)
        asked = [counter.count(first, 6) for first in range(1, 7)]
        outputs = [output.value for output in counter.outputs()]

    with resume_counter(tmp_path / "visits", now=7) as again:
        assert [again.count(first, 6) for first in range(1, 7)] == asked
        assert again.count(1, 7).value == outputs[-1]
        with pytest.raises(InvalidParameter):
            again.count(3, 8)


def test_a_counter_without_interval_counts_says_so(opened: Opener) -> None:
    """By what it was opened with, before anything is published or answered."""
    with opened(horizon=16) as counter, pytest.raises(InvalidParameter) as refused:
        counter.count(1, 1)
    assert refused.value.parameter == "mechanism"
