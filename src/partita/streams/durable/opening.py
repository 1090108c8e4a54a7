"""Open a durable counter: make it and pay for it once, or go on where it was."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias, final

from partita.errors import InvalidParameter
from partita.exact import integer
from partita.ledger import Ledger
from partita.noise.protocol import Noise
from partita.streams.durable.account import Account, account_of
from partita.streams.durable.clock import nanoseconds, period_of, present
from partita.streams.durable.durable_counter import DurableCounter
from partita.streams.durable.files import base_path, failed, with_suffix
from partita.streams.durable.journal import SECRET, Journal
from partita.streams.durable.keeper import Keeper
from partita.streams.durable.mechanisms import made
from partita.streams.durable.outputs import OUTPUTS, Output, OutputsFile
from partita.streams.durable.settings import Level, Settings
from partita.streams.durable.slots import SLOTS, Slots

__all__ = ["Published", "open_counter", "read_outputs", "resume_counter"]

FilePath: TypeAlias = str | os.PathLike[str]

_KEEPERS: Final[dict[str, Any]] = {SECRET: Journal, SLOTS: Slots}


@final
@dataclass(frozen=True)
class Published:
    """What the public file of a counter holds."""

    settings: Settings
    outputs: tuple[Output, ...]


def open_counter(
    path: FilePath,
    *,
    epsilon: object,
    period: object,
    mechanism: str = "counter",
    horizon: int | None = None,
    start: object = None,
    change: int = 1,
    contributions: int = 1,
    unit: Level | None = None,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    outputs: FilePath | None = None,
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
    base, account, moment = base_path(path), account_of(ledger, dataset), present(now)
    asked = Settings.of(
        mechanism=mechanism,
        epsilon=epsilon,
        period=period,
        start=_start(start, period, moment),
        horizon=horizon,
        change=change,
        contributions=contributions,
        unit=unit,
        dataset=dataset,
        options=options,
    )
    made(asked, noise)
    _refuse_users_of_pan_private(asked)
    keeper = _keeper(_place(base) or _created(base, asked, account), noise)
    try:
        keeper.settings.check_same(
            asked if start is not None else replace(asked, start=keeper.settings.start)
        )
        return _opened(
            keeper,
            account,
            _public(base, outputs),
            republish=republish,
            catch_up=catch_up,
            moment=moment,
            noise=noise,
        )
    except BaseException:
        keeper.close()
        raise


def resume_counter(
    path: FilePath,
    *,
    ledger: Ledger | None = None,
    outputs: FilePath | None = None,
    republish: bool = False,
    catch_up: bool = True,
    now: object = None,
    noise: Noise | None = None,
) -> DurableCounter:
    """A counter that is there, with the parameters that it has."""
    base, moment = base_path(path), present(now)
    place = _place(base)
    if place is None:
        raise failed(with_suffix(base, SECRET), "does not exist", "open the counter first, or check the path")
    keeper = _keeper(place, noise)
    try:
        account = account_of(ledger, keeper.settings.dataset)
        return _opened(
            keeper,
            account,
            _public(base, outputs),
            republish=republish,
            catch_up=catch_up,
            moment=moment,
            noise=noise,
        )
    except BaseException:
        keeper.close()
        raise


def read_outputs(path: FilePath, *, since: int = 0) -> Published:
    """What was published by the counter at a path, from its public file alone.

    Nothing secret is read, and whoever has the counter open is not disturbed.
    """
    base = base_path(path)
    place = base if base.name.endswith(OUTPUTS) else with_suffix(base, OUTPUTS)
    file = OutputsFile.read(place)
    return Published(file.settings, tuple(file.outputs(since=integer(since, "since", low=0))))


def _opened(
    keeper: Keeper,
    account: Account | None,
    public: Path,
    *,
    republish: bool,
    catch_up: bool,
    moment: int,
    noise: Noise | None,
) -> DurableCounter:
    """The counter that a keeper has: paid for, begun, and up to date."""
    settings, new = keeper.settings, keeper.counter is None
    if new and account is not None:
        account.pay(settings)
    file = _public_file(keeper, public, republish=republish, noise=noise)
    if account is not None:
        account.mark_done(settings)
    durable = DurableCounter(keeper, file, account)
    if catch_up and not new:
        durable.close_until(settings.schedule.ended(moment))
    return durable


def _public_file(keeper: Keeper, path: Path, *, republish: bool, noise: Noise | None) -> OutputsFile:
    """The public file, which is there before the first state is: a state without one may be an old copy."""
    counter = keeper.counter
    new = made(keeper.settings, noise) if counter is None else counter
    file = OutputsFile(path, keeper.settings, new.granularity)
    if counter is not None and not republish:
        file.check()
        return file
    file.create()
    if counter is None:
        keeper.begin(new)
    return file


def _place(base: Path) -> Path | None:
    """Where the secret file of a counter is, if there is one."""
    places = [(with_suffix(base, suffix), keeper) for suffix, keeper in _KEEPERS.items()]
    return next((place for place, keeper in places if keeper.exists(place)), None)


def _created(base: Path, settings: Settings, account: Account | None) -> Path:
    if account is not None:
        account.check_room(settings)
    suffix = SLOTS if settings.pan_private else SECRET
    place = with_suffix(base, suffix)
    _KEEPERS[suffix].create(place, settings)
    return place


def _keeper(place: Path, noise: Noise | None) -> Keeper:
    keeper: Keeper = _KEEPERS[place.suffix](place, noise=noise)
    return keeper


def _public(base: Path, outputs: FilePath | None) -> Path:
    return with_suffix(base, OUTPUTS) if outputs is None else Path(os.path.realpath(outputs))


def _start(start: object, period: object, moment: int) -> int:
    if start is not None:
        return nanoseconds(start, "start")
    return moment - moment % period_of(period)


def _refuse_users_of_pan_private(settings: Settings) -> None:
    if settings.pan_private and settings.unit == "user":
        raise InvalidParameter(
            "unit",
            "must be 'event' for a pan-private counter, which keeps no list of people",
            given="user",
            fix="cap events before they are fed, and lower epsilon",
        )
