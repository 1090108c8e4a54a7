"""A release, its debit and its file: in an order that no crash can turn into a free release.

    validate, count, debit, draw, write beside the place, sync, rename, mark done

What fails before the debit costs nothing. What fails after it has cost what it costs: noise may have
been drawn, and nobody can know who saw it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, final

from partita.errors.checks import check_release
from partita.errors.errors import IncompatibleGuarantees, PartitaError
from partita.ledger.entries import Debit, Part, digest
from partita.ledger.ledger.ledger import Ledger
from partita.public.release.release import Release
from partita.publish.publish.place import Place, Store
from partita.publish.request.request import Request

_LONGEST_NAME: Final = 200


@final
@dataclass(frozen=True, kw_only=True)
class Account:
    """The budget of a dataset in a ledger, and the request that is to be paid from it.

    `reading` says how the rows are read, as far as callers choose it: a part of the request.
    """

    ledger: Ledger
    dataset: str
    request: Request
    reading: Mapping[str, Any]
    key: str | None
    part: Part | None
    day: str

    def stored(self, place: Place) -> Release | None:
        """What an earlier call with the same key has stored; None if the key is new. Charges nothing.

        A key that was charged and has nothing stored is a `BudgetLost`. Where a crash came between the
        rename and the mark, the release is there, and the mark is made now: nobody else has asked for
        the same, so it can only be that one.
        """
        entries = self.ledger.entries(self.dataset)
        earlier = next((entry for entry in entries if self.key is not None and entry.key == self.key), None)
        if earlier is None:
            self._check_room()
            return None
        alike = [entry for entry in entries if entry.request == digest(self._asked)]
        if earlier.state == "debited" and alike == [earlier] and place.taken:
            release = self._loaded(place, earlier)
            self.ledger.mark_done(earlier)
            return release
        return self._loaded(place, self._debit())

    def pay(self, store: Store, make: Callable[[], Release]) -> Release:
        """Debit, make, mark done; `make` draws and stores, and is called once the debit is on disk."""
        debit = self._debit()
        if debit.state == "done":
            return self._loaded(store.place, debit)
        try:
            release = make()
        except BaseException:
            if not store.kept:
                self._give_up(debit)
            raise
        self.ledger.mark_done(debit)
        return release

    @property
    def _asked(self) -> dict[str, Any]:
        return {**self.request.to_json(), "reading": self.reading, "part": self.part}

    def _check_room(self) -> None:
        """Refuse at once what cannot be paid: what is left never grows, so that debit is refused."""
        try:
            affordable = self.ledger.forecast(self.dataset, self.request.guarantee, part=self.part)
        except IncompatibleGuarantees as error:
            raise IncompatibleGuarantees(f"dataset {self.dataset!r} cannot pay: {error}") from None
        if affordable == 0:
            self._debit()

    def _debit(self) -> Debit:
        return self.ledger.debit(
            self.dataset,
            self.request.guarantee,
            what=_name(self.request),
            key=self.key,
            request=self._asked,
            part=self.part,
            day=self.day,
        )

    def _give_up(self, debit: Debit) -> None:
        """The debit stays, and nothing will come of it."""
        with suppress(PartitaError):
            self.ledger.mark_lost(debit)

    def _loaded(self, place: Place, debit: Debit) -> Release:
        """What stands at the place, if it is the release that this debit has paid for."""
        release = place.load()
        said = release.provenance
        paid = said.recorded and (said.dataset, said.part, said.day) == (self.dataset, self.part, debit.day)
        rule, fix = "must hold the release of this key", "pass the path of the first call"
        check_release(paid and self.request.describes(release), "path", rule, fix=fix)
        return release


def _name(request: Request) -> str:
    """The views as a ledger writes them, or how many columns there are where they cannot be written."""
    listed = ", ".join(view.name for view in request.published)
    writable = listed.isprintable() and listed == listed.strip() and len(listed) <= _LONGEST_NAME
    return listed if writable else f"{len(request.columns)} columns"
