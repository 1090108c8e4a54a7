"""What can be asked about how often users came, by name."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from partita.errors.checks import check
from partita.errors.errors import InvalidParameter

_FORM: Final = re.compile(r"(density|(exactly|mean|heavy)-(0|[1-9][0-9]{0,8}))", re.ASCII)


class Statistic(NamedTuple):
    """`exactly` t times, the `mean` of min(t, times), or `heavy`: at least t times."""

    kind: str
    at: int


def statistic(name: object, *, lowest: int, highest: int) -> Statistic:
    """The statistic called "density", "exactly-3", "mean-3" or "heavy-3", if there can be such.

    >>> statistic("heavy-3", lowest=0, highest=9)
    Statistic(kind='heavy', at=3)
    """
    form = _FORM.fullmatch(name) if isinstance(name, str) else None
    if form is None:
        raise InvalidParameter(
            "name",
            'must be "density", "exactly-T", "mean-T" or "heavy-T" with a number T',
            given=name,
            fix='ask for example for "heavy-3"',
        )
    asked = Statistic(form[2] or "density", int(form[3] or 0))
    least = lowest if asked.kind == "exactly" else lowest + 1
    rule, fix = f"must ask for a number from {least} to {highest}", "ask within that"
    check(asked.kind == "density" or least <= asked.at <= highest, "name", rule, given=name, fix=fix)
    return asked
