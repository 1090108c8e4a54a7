"""Open a durable counter or family, or go on with one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack, cast

from partita.errors import InvalidParameter
from partita.ledger import LedgerPlace
from partita.noise.protocol import Noise
from partita.streams.durable.clock import nanoseconds, period_of
from partita.streams.durable.durable_counter import DurableCounter
from partita.streams.durable.durable_family import DurableFamily
from partita.streams.durable.making import AnyStream, Opening, Wishes
from partita.streams.durable.reading import FilePath
from partita.streams.durable.settings import FAMILY, Level, Settings

__all__ = ["open_counter", "open_family", "resume_counter", "resume_family", "resume_stream"]


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
    ledger: LedgerPlace | None = None,
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
    opening = Opening.of(
        path,
        ledger=ledger,
        outputs=outputs,
        republish=republish,
        catch_up=catch_up,
        now=now,
        noise=noise,
    )
    asked = Settings.of(
        mechanism=mechanism,
        epsilon=epsilon,
        period=period,
        start=_start(start, period, opening.moment),
        horizon=horizon,
        change=change,
        contributions=contributions,
        unit=unit,
        dataset=dataset,
        options=options,
    )
    _refuse_users_of_pan_private(asked)
    return cast("DurableCounter", opening.opened(asked, any_start=start is None))


def open_family(
    path: FilePath,
    *,
    keys: Sequence[str],
    epsilon: object,
    period: object,
    horizon: int,
    start: object = None,
    change: int = 1,
    contributions: int = 1,
    unit: Level | None = None,
    ledger: LedgerPlace | None = None,
    dataset: str | None = None,
    outputs: FilePath | None = None,
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
    opening = Opening.of(
        path,
        ledger=ledger,
        outputs=outputs,
        republish=republish,
        catch_up=catch_up,
        now=now,
        noise=noise,
    )
    asked = Settings.of(
        mechanism=FAMILY,
        epsilon=epsilon,
        period=period,
        start=_start(start, period, opening.moment),
        horizon=horizon,
        change=change,
        contributions=contributions,
        unit=unit,
        dataset=dataset,
        options={},
        keys=_listed(keys),
    )
    return cast("DurableFamily", opening.opened(asked, any_start=start is None))


def resume_counter(path: FilePath, **wishes: Unpack[Wishes]) -> DurableCounter:
    """A counter that is there, with the parameters that it has; wishes are those of `open_counter`."""
    return cast("DurableCounter", Opening.of(path, **wishes).resumed(DurableCounter))


def resume_family(path: FilePath, **wishes: Unpack[Wishes]) -> DurableFamily:
    """A family that is there, with the parameters that it has; wishes are those of `open_family`."""
    return cast("DurableFamily", Opening.of(path, **wishes).resumed(DurableFamily))


def resume_stream(path: FilePath, **wishes: Unpack[Wishes]) -> AnyStream:
    """A counter or a family that is there, whichever it is."""
    return Opening.of(path, **wishes).resumed(DurableCounter, DurableFamily)


def _listed(keys: object) -> Sequence[str]:
    if isinstance(keys, Sequence) and not isinstance(keys, (str, bytes)) and keys:
        return keys
    raise InvalidParameter("keys", "must be a list of names", given=keys, fix='pass for example ["north"]')


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
