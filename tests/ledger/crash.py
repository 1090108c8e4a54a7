"""A process that dies inside a transaction: python crash.py PLACE DATASET.

In a file its page cache is one page, so that most of what it wrote is in the file when it dies, and the
journal that undoes it lies beside.
"""

from __future__ import annotations

import os
import sys
from fractions import Fraction

from partita.guarantee import Guarantee
from partita.ledger.entries import Amount, Connection, Debit
from partita.ledger.ledger import Ledger, add_debit
from partita.ledger.postgres import is_address


def main(place: str, dataset: str) -> None:
    price = Fraction(1, 10**6)
    debit = Debit(
        number=0,
        dataset=dataset,
        what="doomed " * 20,
        day="2026-01-31",
        stated=Guarantee(epsilon=price),
        charged=Amount(price),
    )

    def die(connection: Connection) -> None:
        if not is_address(place):
            connection.execute("PRAGMA cache_size = 1")
        for _ in range(500):
            add_debit(connection, debit)
        os._exit(9)

    Ledger(place).store.write(die)


if __name__ == "__main__":
    main(*sys.argv[1:])
