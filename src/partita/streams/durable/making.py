"""How a durable counter or family comes to be: its files, its first state, who paid, and up to date."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self, TypeAlias, TypedDict, Unpack, final

from partita.errors import BudgetExceeded, InvalidParameter
from partita.ledger import Ledger, LedgerPlace, ledger_at
from partita.noise.protocol import Noise
from partita.streams.durable.account import Account, account_of
from partita.streams.durable.clock import present
from partita.streams.durable.durable_counter import DurableCounter
from partita.streams.durable.durable_family import DurableFamily
from partita.streams.durable.feeding import MOST_PERIODS
from partita.streams.durable.files import base_path, failed, with_suffix
from partita.streams.durable.journal import SECRET, Journal
from partita.streams.durable.keeper import Keeper
from partita.streams.durable.mechanisms import made
from partita.streams.durable.outputs import OUTPUTS, OutputsFile
from partita.streams.durable.reading import FilePath
from partita.streams.durable.settings import Settings
from partita.streams.durable.slots import SLOTS, Slots

__all__ = ["AnyStream", "Opening", "Wishes"]

AnyStream: TypeAlias = DurableCounter | DurableFamily

_KEEPERS: Final[dict[str, Any]] = {SECRET: Journal, SLOTS: Slots}


class Wishes(TypedDict, total=False):
    """What may be wished for when something is opened, whatever it is."""

    ledger: LedgerPlace | None
    outputs: FilePath | None
    republish: bool
    catch_up: bool
    now: object
    noise: Noise | None


@final
@dataclass(frozen=True, kw_only=True)
class Opening:
    """Where files are, what time it is, and what is wished for, whatever is opened."""

    base: Path
    public: Path
    ledger: Ledger | None
    republish: bool
    catch_up: bool
    moment: int
    noise: Noise | None

    @classmethod
    def of(cls, path: FilePath, **wishes: Unpack[Wishes]) -> Self:
        """The wishes as people write them."""
        base, outputs, ledger = base_path(path), wishes.get("outputs"), wishes.get("ledger")
        return cls(
            base=base,
            public=with_suffix(base, OUTPUTS) if outputs is None else Path(os.path.realpath(outputs)),
            ledger=None if ledger is None else ledger_at(ledger),
            republish=wishes.get("republish", False),
            catch_up=wishes.get("catch_up", True),
            moment=present(wishes.get("now")),
            noise=wishes.get("noise"),
        )

    def opened(self, asked: Settings, *, any_start: bool) -> AnyStream:
        """What is there, if it was opened with the same settings; if nothing is there, a new one."""
        account = account_of(self.ledger, asked.dataset)
        made(asked, self.noise)
        keeper = self._keeper(self._place() or self._created(asked, account))
        try:
            stored = keeper.settings
            stored.check_same(replace(asked, start=stored.start) if any_start else asked)
            return self._begun(keeper, account)
        except BaseException:
            keeper.close()
            raise

    def resumed(self, *kinds: type[AnyStream]) -> AnyStream:
        """What is there, with the settings that it has, if it is of one of these kinds."""
        place = self._place()
        if place is None:
            missing = with_suffix(self.base, SECRET)
            raise failed(missing, "does not exist", "open the counter first, or check the path")
        keeper = self._keeper(place)
        try:
            if _kind(keeper.settings) not in kinds:
                raise failed(place, f"is of a {_kind(keeper.settings).__name__}", "resume it as what it is")
            return self._begun(keeper, account_of(self.ledger, keeper.settings.dataset))
        except BaseException:
            keeper.close()
            raise

    def _begun(self, keeper: Keeper, account: Account | None) -> AnyStream:
        """What a keeper has: paid for, begun, and up to date."""
        settings, new = keeper.settings, keeper.counter is None
        if new and account is not None:
            account.pay(settings)
        file = self._public_file(keeper)
        if account is not None:
            account.mark_done(settings)
        stream = _kind(settings)(keeper, file, account)
        if self.catch_up and not new:
            stream.close_until(settings.schedule.ended(self.moment))
        return stream

    def _public_file(self, keeper: Keeper) -> OutputsFile:
        """The public file, there before the first state is: a state without one may be an old copy."""
        counter = keeper.counter
        new = made(keeper.settings, self.noise) if counter is None else counter
        file = OutputsFile(self.public, keeper.settings, new.granularity)
        if counter is not None and not self.republish:
            file.check()
            return file
        file.create()
        if counter is None:
            keeper.begin(new)
        return file

    def _place(self) -> Path | None:
        """Where the secret file is, if there is one."""
        places = [(with_suffix(self.base, suffix), keeper) for suffix, keeper in _KEEPERS.items()]
        return next((place for place, keeper in places if keeper.exists(place)), None)

    def _created(self, settings: Settings, account: Account | None) -> Path:
        """A new secret file; or the one of somebody who was faster, and has paid what was left for it."""
        try:
            if account is not None:
                account.check_room(settings)
        except BudgetExceeded:
            place = self._place()
            if place is None:
                raise
            return place
        self._check_start(settings)
        suffix = SLOTS if settings.pan_private else SECRET
        place = with_suffix(self.base, suffix)
        _KEEPERS[suffix].create(place, settings)
        return place

    def _check_start(self, settings: Settings) -> None:
        """Refuse a new counter that has more periods to close than anybody would wait for."""
        due = settings.due(self.moment)
        if due > MOST_PERIODS:
            raise InvalidParameter(
                "start",
                f"must be at most {MOST_PERIODS} periods ago",
                given=due,
                fix="start later, choose a longer period, or give a horizon",
            )

    def _keeper(self, place: Path) -> Keeper:
        keeper: Keeper = _KEEPERS[place.suffix](place, noise=self.noise)
        return keeper


def _kind(settings: Settings) -> type[AnyStream]:
    return DurableFamily if settings.keys else DurableCounter
