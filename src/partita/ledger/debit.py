"""One entry of the ledger, and how it is written in a row of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, final

from partita.guarantee import Guarantee
from partita.ledger.amount import Amount
from partita.ledger.names import Part
from partita.ledger.store import Damaged

__all__ = ["COLUMNS", "Debit", "State", "amount", "from_row", "to_row"]

State: TypeAlias = Literal["debited", "done", "lost"]

COLUMNS = (
    "number",
    "dataset",
    "what",
    "day",
    "epsilon",
    "delta",
    "part_column",
    "part_value",
    "stated_epsilon",
    "stated_delta",
    "stated_neighbors",
    "stated_unit",
    "stated_contributions",
    "stated_intrusions",
    "key",
    "request",
    "state",
)


@final
@dataclass(frozen=True, kw_only=True)
class Debit:
    """A charge that is on disk: `debited`, then `done` once its release is stored, or `lost`.

    `stated` is the guarantee of the release, `charged` its price in the unit and relation of the
    dataset. `request` is a digest of the public request. Nothing here depends on data.
    """

    number: int
    dataset: str
    what: str
    day: str
    stated: Guarantee
    charged: Amount
    part: Part | None = None
    key: str | None = None
    request: str | None = None
    state: State = "debited"

    def same_request(self, other: Debit) -> bool:
        """Whether both ask for the same thing, on whatever day."""
        return _request(self) == _request(other)


def to_row(debit: Debit) -> tuple[str | None, ...]:
    """All but the number, in the order of `COLUMNS`."""
    stated = debit.stated
    return (
        debit.dataset,
        debit.what,
        debit.day,
        str(debit.charged.epsilon),
        str(debit.charged.delta),
        *(debit.part or (None, None)),
        str(stated.epsilon),
        str(stated.delta),
        stated.neighbors,
        stated.unit,
        str(stated.contributions),
        str(stated.intrusions),
        debit.key,
        debit.request,
        debit.state,
    )


def from_row(row: Sequence[Any]) -> Debit:
    """The entry in a row of `COLUMNS`."""
    number, dataset, what, day, epsilon, delta, column, value, *stated, key, request, state = row
    return Debit(
        number=number,
        dataset=dataset,
        what=what,
        day=day,
        stated=_stated(*stated),
        charged=amount(epsilon, delta),
        part=(column, value) if column is not None else None,
        key=key,
        request=request,
        state=state,
    )


def amount(epsilon: object, delta: object) -> Amount:
    """The amount that two columns of a row hold."""
    return Amount(_stored(epsilon), _stored(delta))


def _request(debit: Debit) -> tuple[object, ...]:
    return debit.dataset, debit.what, debit.stated, debit.part, debit.request


def _stated(
    epsilon: str, delta: str, neighbors: str, unit: str, contributions: str, intrusions: str
) -> Guarantee:
    """A guarantee as it was written; it was checked, and warned about, before."""
    guarantee = object.__new__(Guarantee)
    guarantee.__dict__.update(
        epsilon=_stored(epsilon),
        delta=_stored(delta),
        neighbors=neighbors,
        unit=unit,
        contributions=int(_stored(contributions)),
        intrusions=int(_stored(intrusions)),
    )
    return guarantee


def _stored(text: object) -> Fraction:
    try:
        number = Fraction(str(text))
    except (ValueError, ZeroDivisionError):
        raise Damaged from None
    if number < 0:
        raise Damaged
    return number
