"""Durable families: a counter for each public key, in the same two files, by the same clock."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from partita.errors import (
    BudgetExceeded,
    HorizonReached,
    InvalidData,
    InvalidParameter,
    InvalidState,
    StreamError,
    StreamForked,
)
from partita.guarantee import Guarantee
from partita.ledger.ledger import Ledger
from partita.public.stream_errors import error_band
from partita.public.streams import FamilyOutput, OutputsFile, read_outputs
from partita.testing import EndlessTape, ZeroNoise, tape_noise
from partita.trusted.durable.events import Event
from partita.trusted.durable.open import (
    open_counter,
    open_family,
    resume_counter,
    resume_family,
    resume_stream,
)
from partita.trusted.durable.stream import DurableCounter, DurableFamily
from partita.trusted.streams.family import FAMILY_LARGEST, CounterFamily

KEYS = ["south", "north", "höhe 3"]
HEADER = 1024
RECORD = 8 + 3 * 40 + 16

Opener: TypeAlias = Callable[..., DurableFamily]


@pytest.fixture
def opened(tmp_path: Path) -> Opener:
    """Opens the family `visits` of this test: periods of a second from 1970 on, no noise unless told."""

    def opener(**named: Any) -> DurableFamily:
        usual: dict[str, Any] = {"keys": KEYS, "epsilon": 1, "period": 1, "horizon": 64, "start": 0, "now": 0}
        return open_family(tmp_path / "visits", **({"noise": ZeroNoise()} | usual | named))

    return opener


def values(outputs: Any) -> list[list[float]]:
    return [list(output.value.values()) for output in outputs]


def test_each_period_has_an_output_for_every_key(opened: Opener) -> None:
    """In the order of the keys, whatever was counted; what comes late counts in the open period."""
    with opened() as family:
        assert family.value == {"south": 0, "north": 0, "höhe 3": 0}
        family.add({"north": 3, "south": 1}, feeder="gate", sequence=1)
        family.add({"höhe 3": -2}, feeder="gate", sequence=2)
        assert values(family.tick(now=2)) == [[1, 3, -2], [1, 3, -2]]
        family.add({}, feeder="gate", sequence=3)
        assert values(family.tick(now=3)) == [[1, 3, -2]]
        assert family.value == {"south": 1, "north": 3, "höhe 3": -2}


def test_all_keys_of_a_call_are_under_one_number(opened: Opener) -> None:
    """Sent again, with other keys or counts, it counts nothing; nor after a restart."""
    with opened() as family:
        family.add({"north": 3, "south": 1}, feeder="gate", sequence=1)
        family.add({"höhe 3": 9}, feeder="gate", sequence=1)
        family.add({"north": 1}, feeder="gate", sequence="a text")
    with opened() as family:
        family.add({"north": 5}, feeder="gate", sequence=1)
        family.add({"north": 5, "south": 5}, feeder="gate", sequence="a text")
        assert values(family.tick(now=1)) == [[1, 4, 0]]


def test_an_answer_has_bounds_for_its_key(opened: Opener) -> None:
    """The same as those of a family in memory after as many periods, and those of the band."""
    family, twin = opened(), CounterFamily(keys=KEYS, epsilon=1, horizon=64, noise=ZeroNoise())
    family.add({"north": 7}, feeder="gate", sequence=1)
    outputs = family.tick(now=5)
    twin.update({"north": 7})
    twin.advance(4)

    assert family.answer("north", 0.1) == twin.answer("north", 0.1)
    with pytest.raises(InvalidParameter, match=r"^key must be one of the family"):
        family.answer("west")
    half = error_band(outputs, family.settings, 0.1)
    assert half is not None
    assert 7 + half[-1] == pytest.approx(twin.answer("north", 0.1).high, rel=1e-8)


@pytest.mark.parametrize(
    "count",
    [{"north": 1, "west-271828": 1}, {271828: 1}, 271828, {"north": 1.5}, {"north": None}, ["north"], None],
)
def test_unknown_keys_are_refused_before_anything_counts(opened: Opener, count: Any) -> None:
    """No error shows what was given, and the good events of the batch wait for a good one."""
    family = opened()
    with pytest.raises(InvalidData) as refused:
        family.add_many([Event("gate", 1, {"north": 1}), Event("gate", 2, count)])
    family.add_many([Event("gate", 1, {"north": 1}), Event("gate", 2, {"south": 1})])

    assert "271828" not in str(refused.value)
    assert values(family.tick(now=1)) == [[1, 1, 0]]


def test_a_person_has_so_many_events_over_all_keys(opened: Opener) -> None:
    """The first of them count, each under one key and by at most the change."""
    with opened(contributions=2, change=3) as family:
        for number, key in enumerate(["south", "north", "north", "höhe 3"]):
            family.add({key: 10}, person="ann", id=number)
        family.add({"north": 1}, person="bob", id=0)
        family.add({"north": 1}, person="bob", id=0)
        assert values(family.tick(now=1)) == [[3, 3 + 1, 0]]
        assert family.guarantee is None
        assert family.settings.guarantee == Guarantee(epsilon=1, unit="user", contributions=2)
        with pytest.raises(InvalidData, match="under one key"):
            family.add({"north": 1, "south": 1}, person="eve", id=0)
        with pytest.raises(InvalidParameter, match=r"^unit decides"):
            family.add({"north": 1}, feeder="gate", sequence=1)


def test_totals_stay_within_what_a_family_takes(opened: Opener) -> None:
    """No data can stop the clock: a period holds the most there is, for each key alone."""
    family = opened()
    for sequence in range(2):
        family.add({"north": FAMILY_LARGEST, "south": -1}, feeder="gate", sequence=sequence)

    assert values(family.tick(now=1)) == [[-2, FAMILY_LARGEST - 1, 0]]


def test_records_have_a_fixed_size_and_both_kinds_are_read(opened: Opener, tmp_path: Path) -> None:
    """The public file says what it is, and is never longer for events."""
    with opened() as family:
        family.tick(now=3)
        family.add({"north": 3}, feeder="gate", sequence=1)
        family.tick(now=4)
    with open_counter(tmp_path / "one", epsilon=1, period=1, start=0, now=0, noise=ZeroNoise()) as counter:
        counter.tick(now=2)
    published = read_outputs(tmp_path / "visits", since=2)

    assert (tmp_path / "visits.outputs").stat().st_size == HEADER + 4 * RECORD
    assert published.settings.keys == tuple(KEYS)
    assert [output.period for output in published.outputs] == [3, 4]
    assert published.outputs[-1].exact == {"south": Fraction(0), "north": Fraction(3), "höhe 3": Fraction(0)}
    assert read_outputs(tmp_path / "visits", since=-1) == read_outputs(tmp_path / "visits", since=3)
    assert len(read_outputs(tmp_path / "visits", limit=2).outputs) == 2
    assert OutputsFile.read(tmp_path / "visits.outputs").closed == 4
    assert read_outputs(tmp_path / "one", since=-9).settings.keys == ()
    assert (tmp_path / "one.outputs").stat().st_size == HEADER + 2 * 64


def test_many_keys_have_a_longer_header(opened: Opener, tmp_path: Path) -> None:
    """A thousand long names are read as they were written, and a file cut within them is refused."""
    keys = [f"{number:0150}" for number in range(1000)]
    with opened(keys=keys) as family:
        family.add({keys[777]: 5}, feeder="gate", sequence=1)
        family.tick(now=1)
    place = tmp_path / "visits.outputs"
    [output] = read_outputs(place).outputs

    assert isinstance(output, FamilyOutput)
    assert [key for key, value in output.value.items() if value] == [keys[777]]
    assert list(output.value) == keys
    os.truncate(place, 4096)
    with pytest.raises(InvalidState):
        read_outputs(place)


def test_a_damaged_byte_of_the_public_file_is_noticed(opened: Opener, tmp_path: Path) -> None:
    """In the header, in the values of any key, and in the check; the last record is then no output yet."""
    with opened(noise=None) as family:
        family.tick(now=2)
    place = tmp_path / "visits.outputs"
    whole = place.read_bytes()
    for byte in [5, 18, 40, HEADER - 1, *range(HEADER, HEADER + RECORD, 7)]:
        place.write_bytes(whole[:byte] + bytes([whole[byte] ^ 1]) + whole[byte + 1 :])
        with pytest.raises(InvalidState):
            read_outputs(place)
    for byte in range(HEADER + RECORD, len(whole), 7):
        place.write_bytes(whole[:byte] + bytes([whole[byte] ^ 1]) + whole[byte + 1 :])
        assert [output.period for output in read_outputs(place).outputs] == [1]
        with pytest.raises(StreamForked, match="differs from what the state has published"):
            resume_family(tmp_path / "visits", now=2)


MANY = [f"key {number}" for number in range(250)]
PAGE = 4096


def torn(whole: bytes, page: int) -> bytes:
    """What a power cut leaves of a file of which one page was not written."""
    return whole[: page * PAGE] + bytes(PAGE) + whole[(page + 1) * PAGE :]


def test_a_torn_record_is_written_again(opened: Opener, tmp_path: Path) -> None:
    """Whichever page of it is missing: readers see the periods before it, and the state has it as it was."""
    with opened(keys=MANY, noise=None) as family:
        family.tick(now=1)
        begin = (tmp_path / "visits.outputs").stat().st_size
        family.tick(now=2)
    place = tmp_path / "visits.outputs"
    whole, true = place.read_bytes(), read_outputs(place).outputs
    for page in range(-(-begin // PAGE), -(-len(whole) // PAGE)):
        place.write_bytes(torn(whole, page)[: len(whole)])
        assert read_outputs(place).outputs == true[:1]
        assert read_outputs(place, since=-1).outputs == true[:1]
        assert OutputsFile.read(place).closed == 1
        resume_family(tmp_path / "visits", now=2).close()
        assert place.read_bytes() == whole


def test_what_was_written_at_once_is_torn_at_once(opened: Opener, tmp_path: Path) -> None:
    """A record that is whole after one that is torn hides nothing: both are as the state has them."""
    with opened(keys=MANY, noise=None) as family:
        family.tick(now=9)
    place = tmp_path / "visits.outputs"
    whole = place.read_bytes()
    place.write_bytes(torn(whole, len(whole) // PAGE - 4))
    assert place.read_bytes()[-RECORD:] == whole[-RECORD:]
    resume_family(tmp_path / "visits", now=9).close()

    assert place.read_bytes() == whole


def test_a_torn_record_of_another_story_is_refused(opened: Opener, tmp_path: Path) -> None:
    """What is left of it is not what the state has published: the state is a copy that was overtaken."""
    secret, place = tmp_path / "visits.db", tmp_path / "visits.outputs"
    with opened(keys=MANY) as family:
        family.tick(now=1)
    old = secret.read_bytes(), place.read_bytes()
    with opened(keys=MANY) as family:
        family.add({MANY[0]: 3}, feeder="gate", sequence=1)
        family.tick(now=2)
    left = torn(place.read_bytes(), place.stat().st_size // PAGE)
    for path, data in zip((secret, place), old, strict=True):
        path.write_bytes(data)
    with opened(keys=MANY) as family:
        family.tick(now=2)
    place.write_bytes(left[: place.stat().st_size])

    with pytest.raises(StreamForked, match="differs from what the state has published"):
        opened(keys=MANY)


def test_a_restart_changes_no_output(opened: Opener, tmp_path: Path) -> None:
    """On one tape, a family that is opened for every period publishes what an uninterrupted one does."""
    tape = tape_noise(EndlessTape(3))
    with opened(noise=tape) as family:
        whole = family.tick(now=20)
    for file in tmp_path.iterdir():
        file.unlink()
    tape = tape_noise(EndlessTape(3))
    for period in range(1, 21):
        with opened(noise=tape, catch_up=False) as family:
            family.tick(now=period)

    assert list(family.outputs()) == whole


def test_each_kind_is_resumed_as_what_it_is(opened: Opener, tmp_path: Path) -> None:
    """Without its parameters; the other kind, other keys and another order are refused."""
    opened().close()
    with open_counter(tmp_path / "one", epsilon=1, period=1, horizon=64, start=0, now=0) as counter:
        assert counter.settings.keys == ()
    with resume_stream(tmp_path / "visits", now=0) as family, resume_stream(tmp_path / "one", now=0) as one:
        assert (type(family), type(one)) == (DurableFamily, DurableCounter)
    with resume_family(tmp_path / "visits", now=0) as family:
        assert family.keys == tuple(KEYS)
    for resume, name in ((resume_counter, "visits"), (resume_family, "one")):
        with pytest.raises(StreamError, match="resume it as what it is"):
            resume(tmp_path / name)
    for keys in (KEYS[::-1], KEYS[:2]):
        with pytest.raises(InvalidParameter, match=r"^keys must be what"):
            opened(keys=keys)
    with pytest.raises(InvalidParameter, match=r"^mechanism must be what"):
        open_counter(tmp_path / "visits", epsilon=1, period=1, horizon=64)


@pytest.mark.parametrize(
    "keys", [[], "north", None, ["a", "a"], ["a", ""], ["a", 7], ["a\0b"], ["a\nb"], ["k" * 201], {"a", "b"}]
)
def test_what_are_no_keys_make_no_file(opened: Opener, tmp_path: Path, keys: Any) -> None:
    """The error names the parameter."""
    with pytest.raises(InvalidParameter, match=r"^keys must be"):
        opened(keys=keys)

    assert list(tmp_path.iterdir()) == []


def test_a_family_needs_a_horizon_and_ends_with_it(opened: Opener) -> None:
    """The last period is published; what comes later is refused."""
    with pytest.raises(InvalidParameter, match=r"^horizon must"):
        opened(horizon=None)
    family = opened(horizon=2)

    assert len(family.tick(now=9)) == 2
    with pytest.raises(HorizonReached):
        family.add({"north": 1}, feeder="gate", sequence=1)


def test_a_ledger_pays_once_and_finds_old_copies(opened: Opener, tmp_path: Path) -> None:
    """What it keeps of a period is short however many keys there are, and tells stories apart."""
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("visits", epsilon=1, unit="event")
    paid = {"ledger": ledger, "dataset": "visits", "noise": None}
    with opened(**paid) as family:
        family.tick(now=1)
    old = {path: path.read_bytes() for path in tmp_path.glob("visits.*")}
    with opened(**paid) as family:
        family.tick(now=2)
    for path, data in old.items():
        path.write_bytes(data)

    with pytest.raises(StreamForked, match="old copy"):
        opened(**paid)
    assert [entry.state for entry in ledger.entries("visits")] == ["done"]
    with closing(sqlite3.connect(tmp_path / "budget.db")) as connection:
        assert connection.execute("SELECT periods, length(record) FROM counters").fetchall() == [(2, 24)]
    with pytest.raises(BudgetExceeded):
        open_family(
            tmp_path / "more", keys=["a"], epsilon=1, period=1, horizon=9, ledger=ledger, dataset="visits"
        )


def test_times_by_key_are_fed(opened: Opener) -> None:
    """Each in its period; keys that are left out had none, and a call that is repeated counts once."""
    family = opened()
    for _ in range(2):
        family.feed_timestamps({"north": [0.5, 2.5, 99], "south": ["?", 1]}, start=0, end=3, feeder="file")

    assert values(family.outputs()) == [[0, 1, 0], [1, 1, 0], [1, 3, 0]]
    with pytest.raises(InvalidData, match="times must be under keys"):
        family.feed_timestamps({"west": [1]}, start=3, end=4)
    assert family.periods == 3


def public_side(opened: Opener, folder: Path, events: list[dict[str, int]]) -> tuple[bytes, list[Any]]:
    """The public file after feeding, and its outputs; all files are removed."""
    with opened(noise=tape_noise(EndlessTape(7))) as family:
        for period, counts in enumerate(events, start=1):
            if counts:
                family.add(counts, feeder="gate", sequence=period)
            assert len(family.tick(now=period)) == 1
        outputs = list(family.outputs())
    data = (folder / "visits.outputs").read_bytes()
    for file in folder.iterdir():
        file.unlink()
    return data, outputs


def without_values(data: bytes) -> bytes:
    """A public file less the outputs in it, and the checks, which depend on outputs."""
    places = range(HEADER, len(data), RECORD)
    return data[:HEADER] + b"".join(data[place : place + 8] for place in places)


def test_the_public_side_is_the_same_but_for_the_values(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one tape, other events change the values of their keys by their counts, and no other byte."""
    monkeypatch.setattr("partita.trusted.durable.open.token", lambda: "0" * 32)
    none: list[dict[str, int]] = [{}] * 30
    many = [{"north": period * period % 7} if period % 3 else {} for period in range(30)]
    (quiet, low), (busy, high) = (public_side(opened, tmp_path, events) for events in (none, many))

    assert len(quiet) == len(busy) == HEADER + 30 * RECORD
    assert without_values(quiet) == without_values(busy) != quiet
    moved = [{key: h.exact[key] - o.exact[key] for key in KEYS} for o, h in zip(low, high, strict=True)]
    sums = [sum(counts.get("north", 0) for counts in many[:period]) for period in range(1, 31)]
    assert moved == [{"south": 0, "north": total, "höhe 3": 0} for total in sums]
