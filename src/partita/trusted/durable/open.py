"""Open a durable counter or family, or go on with one: its files, its first state, and who paid."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self, TypeAlias, TypedDict, Unpack, cast, final

from partita.errors import BudgetExceeded, InvalidParameter, check
from partita.ledger.ledger import Ledger, LedgerPlace, ledger_at
from partita.public import streams
from partita.trusted.durable.events import MOST_PERIODS, make_counter
from partita.trusted.durable.journal import SECRET, Journal
from partita.trusted.durable.slots import SLOTS, SlotStore
from partita.trusted.durable.stream import (
    DurableCounter,
    DurableFamily,
    StateStore,
    StreamAccount,
    account_of,
)
from partita.trusted.noise.kernel import token
from partita.trusted.noise.system import Noise

AnyStream: TypeAlias = DurableCounter | DurableFamily

_STORES: Final[dict[str, Any]] = {SECRET: Journal, SLOTS: SlotStore}


class OpenOptions(TypedDict, total=False):
    """The options of everything that can be opened."""

    ledger: LedgerPlace | None
    outputs: streams.FilePath | None
    republish: bool
    catch_up: bool
    now: object
    noise: Noise | None


@final
@dataclass(frozen=True, kw_only=True)
class Opener:
    """Where files are, what time it is, and the options, whatever is opened."""

    base: Path
    public: Path
    ledger: Ledger | None
    republish: bool
    catch_up: bool
    moment: int
    noise: Noise | None

    @classmethod
    def of(cls, path: streams.FilePath, **options: Unpack[OpenOptions]) -> Self:
        """The options as people write them, checked."""
        base, outputs, ledger = streams.base_path(path), options.get("outputs"), options.get("ledger")
        return cls(
            base=base,
            public=streams.with_suffix(base, streams.OUTPUTS)
            if outputs is None
            else Path(os.path.realpath(outputs)),
            ledger=None if ledger is None else ledger_at(ledger),
            republish=options.get("republish", False),
            catch_up=options.get("catch_up", True),
            moment=streams.parse_now(options.get("now")),
            noise=options.get("noise"),
        )

    def open(self, settings: streams.Settings, *, any_start: bool) -> AnyStream:
        """The counter at the path, if it was opened with the same settings; a new one if there is none."""
        account = account_of(self.ledger, settings.dataset)
        make_counter(settings, self.noise)
        with self._store(self._find() or self._create(settings, account)) as store:
            stored = store.settings
            stored.check_same(replace(settings, start=stored.start) if any_start else settings)
            return self._begin(store, account)

    def resume(self, *kinds: type[AnyStream]) -> AnyStream:
        """The counter at the path, with the settings that it has, if it is of one of these kinds."""
        place = self._find()
        if place is None:
            missing = streams.with_suffix(self.base, SECRET)
            raise streams.file_error(missing, "does not exist", "open the counter first, or check the path")
        with self._store(place) as store:
            if _kind(store.settings) not in kinds:
                raise streams.file_error(
                    place, f"is of a {_kind(store.settings).__name__}", "resume it as what it is"
                )
            return self._begin(store, account_of(self.ledger, store.settings.dataset))

    def _begin(self, store: StateStore, account: StreamAccount | None) -> AnyStream:
        """What a store has: paid for, begun, and up to date."""
        settings, new = store.settings, store.counter is None
        if new and account is not None:
            account.pay(settings)
        file = self._public_file(store)
        if account is not None:
            account.mark_done(settings)
        stream = _kind(settings)(store, file, account)
        if self.catch_up and not new:
            stream.close_until(settings.schedule.ended(self.moment))
        return stream

    def _public_file(self, store: StateStore) -> streams.OutputsFile:
        """The public file, there before the first state is: a state without one may be an old copy."""
        counter = store.counter
        new = make_counter(store.settings, self.noise) if counter is None else counter
        file = streams.OutputsFile(self.public, store.settings, new.granularity)
        if counter is not None and not self.republish:
            file.check()
            return file
        file.create()
        if counter is None:
            store.begin(new)
        return file

    def _find(self) -> Path | None:
        """Where the secret file is, if there is one."""
        places = [(streams.with_suffix(self.base, suffix), store) for suffix, store in _STORES.items()]
        return next((place for place, store in places if store.exists(place)), None)

    def _create(self, settings: streams.Settings, account: StreamAccount | None) -> Path:
        """A new secret file; or the one of somebody who was faster, and has paid what was left for it."""
        try:
            if account is not None:
                account.check_room(settings)
        except BudgetExceeded:
            place = self._find()
            if place is None:
                raise
            return place
        self._check_start(settings)
        suffix = SLOTS if settings.pan_private else SECRET
        place = streams.with_suffix(self.base, suffix)
        _STORES[suffix].create(place, settings)
        return place

    def _check_start(self, settings: streams.Settings) -> None:
        """Refuse a new counter that has more periods to close than anybody would wait for."""
        due = settings.due(self.moment)
        rule, fix = (
            f"must be at most {MOST_PERIODS} periods ago",
            "start later, choose a longer period, or give a horizon",
        )
        check(due <= MOST_PERIODS, "start", rule, given=due, fix=fix)

    @contextmanager
    def _store(self, place: Path) -> Iterator[StateStore]:
        """The secret file; it is closed again if the block fails."""
        store: StateStore = _STORES[place.suffix](place, noise=self.noise)
        try:
            yield store
        except BaseException:
            store.close()
            raise


def _kind(settings: streams.Settings) -> type[AnyStream]:
    return DurableFamily if settings.keys else DurableCounter


def open_counter(
    path: streams.FilePath,
    *,
    epsilon: object,
    period: object,
    mechanism: str = "counter",
    horizon: int | None = None,
    start: object = None,
    change: int = 1,
    contributions: int = 1,
    unit: streams.Level | None = None,
    ledger: LedgerPlace | None = None,
    dataset: str | None = None,
    outputs: streams.FilePath | None = None,
    republish: bool = False,
    catch_up: bool = True,
    now: object = None,
    noise: Noise | None = None,
    **options: object,
) -> DurableCounter:
    """A counter at a path: `visits` is the secret visits.db and the public visits.outputs.

    A new one begins its first period at `start`, or now, rounded down to whole periods since 1970. If a
    ledger is given, it pays once, before any noise is drawn. One that is there goes on, if all parameters
    are the same; periods that ended in the meantime are closed now, unless `catch_up` is False. `options` are
    those of the mechanism. `outputs` puts the public file elsewhere: best into another folder, since sizes
    and times of the secret file tell when something came. A counter whose public file is not there is refused
    with `StreamForked`, since its state may be an old copy; `republish` writes the file again from the state.

    `change` is how much one event changes the count at most. At event level that is the caller's word: a
    count of n is n events of one change each, not one event, and is not cut. At user level it is cut.
    """
    opener = Opener.of(
        path, ledger=ledger, outputs=outputs, republish=republish, catch_up=catch_up, now=now, noise=noise
    )
    settings = streams.Settings.of(
        mechanism=mechanism,
        epsilon=epsilon,
        period=period,
        start=_start(start, period, opener.moment),
        horizon=horizon,
        change=change,
        contributions=contributions,
        unit=unit,
        dataset=dataset,
        options=options,
        counter=token(),
    )
    rule = "must be 'event' for a pan-private counter, which keeps no list of people"
    fix = "cap events before they are fed, and lower epsilon"
    check(not (settings.pan_private and settings.unit == "user"), "unit", rule, given="user", fix=fix)
    return cast("DurableCounter", opener.open(settings, any_start=start is None))


def open_family(
    path: streams.FilePath,
    *,
    keys: Sequence[str],
    epsilon: object,
    period: object,
    horizon: int,
    start: object = None,
    change: int = 1,
    contributions: int = 1,
    unit: streams.Level | None = None,
    ledger: LedgerPlace | None = None,
    dataset: str | None = None,
    outputs: streams.FilePath | None = None,
    republish: bool = False,
    catch_up: bool = True,
    now: object = None,
    noise: Noise | None = None,
) -> DurableFamily:
    """A counter for each of some public keys, at one path: files, clock and all else as for `open_counter`.

    Each period has one output for every key. `keys` are names in an order that stays: a key that is there
    because someone came is no public key. Each has all of epsilon, since an event is under one key; a person
    has at most `contributions` events over all of them together.
    """
    opener = Opener.of(
        path, ledger=ledger, outputs=outputs, republish=republish, catch_up=catch_up, now=now, noise=noise
    )
    settings = streams.Settings.of(
        mechanism=streams.FAMILY,
        epsilon=epsilon,
        period=period,
        start=_start(start, period, opener.moment),
        horizon=horizon,
        change=change,
        contributions=contributions,
        unit=unit,
        dataset=dataset,
        options={},
        counter=token(),
        keys=_check_keys(keys),
    )
    return cast("DurableFamily", opener.open(settings, any_start=start is None))


def resume_counter(path: streams.FilePath, **options: Unpack[OpenOptions]) -> DurableCounter:
    """A counter that is there, with the parameters that it has; options are those of `open_counter`."""
    return cast("DurableCounter", Opener.of(path, **options).resume(DurableCounter))


def resume_family(path: streams.FilePath, **options: Unpack[OpenOptions]) -> DurableFamily:
    """A family that is there, with the parameters that it has; options are those of `open_family`."""
    return cast("DurableFamily", Opener.of(path, **options).resume(DurableFamily))


def resume_stream(path: streams.FilePath, **options: Unpack[OpenOptions]) -> AnyStream:
    """A counter or a family that is there, whichever it is."""
    return Opener.of(path, **options).resume(DurableCounter, DurableFamily)


def _check_keys(keys: object) -> Sequence[str]:
    if isinstance(keys, Sequence) and not isinstance(keys, (str, bytes)) and keys:
        return keys
    raise InvalidParameter("keys", "must be a list of names", given=keys, fix='pass for example ["north"]')


def _start(start: object, period: object, moment: int) -> int:
    if start is not None:
        return streams.nanoseconds(start, "start")
    return moment - moment % streams.parse_period(period)
