"""The cells of a `Domain` on one line: the ordinary ones, then the special ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from partita.domain.base.base import Domain, Special, is_domain
from partita.errors.errors import InvalidParameter
from partita.numbers import ordered

if TYPE_CHECKING:
    from partita.local.frequency.columns import Ints


def domain_size(domain: object) -> int:
    """The number of all cells, special ones included."""
    if not isinstance(domain, Domain) or not is_domain(domain):
        fix = "pass for example 1024"
        raise InvalidParameter("domain", "must be a number of cells or a Domain", given=domain, fix=fix)
    return domain.size + len(domain.specials)


def domain_cells(domain: Domain, values: object) -> Ints:
    """The cell of every value of a column."""
    encoded = domain.encode(values)
    places = np.zeros(len(Special), dtype=np.int64)
    for place, name in enumerate(domain.specials):
        places[Special.named(name).value] = domain.size + place
    return np.where(
        encoded.special == Special.ORDINARY.value, encoded.cells.astype(np.int64), places[encoded.special]
    )


def domain_label(domain: Domain, cell: int) -> str:
    """The value of an ordinary cell, or the name of a special one."""
    return str(domain.decode([cell])[0]) if cell < domain.size else domain.specials[cell - domain.size]


def domain_ends(domain: int | Domain, low: object, high: object) -> tuple[int, int]:
    """The first and the last cell from low to high; the first is behind the last if there is none between."""
    if isinstance(domain, int):
        return ordered(low, high, first=0, last=domain - 1)
    first, last = domain.locate(low, name="low"), domain.locate(high, name="high")
    start = domain.size if first.special is Special.ABOVE else first.cell
    end = {Special.BELOW: -1, Special.ABOVE: domain.size - 1}.get(last.special, last.cell)
    if start > end and Special.ORDINARY is first.special is last.special:
        raise InvalidParameter("low", "must not be above high", given=None, fix="swap them")
    return start, end
