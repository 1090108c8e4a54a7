"""A process that debits as fast as it can: python worker.py PLACE DATASET EPSILON TIMES.

It prints a line for each debit that it was told is stored, and one for its refusals in the end. Where it
could not hear the answer, it asks again with the same key, and prints that the debit was made if it was.
"""

from __future__ import annotations

import os
import sys
import time

from partita.errors import BudgetExceeded, BudgetLost, LedgerError
from partita.guarantee import Guarantee
from partita.ledger.entries import Debit
from partita.ledger.ledger import Ledger


def main(place: str, dataset: str, epsilon: str, times: str) -> None:
    ledger, release, refused = Ledger(place, patience=300), Guarantee(epsilon=epsilon), 0
    for turn in range(int(times)):
        try:
            print("granted", debit(ledger, dataset, release, f"{os.getpid()} {turn}").number, flush=True)
        except BudgetExceeded:
            refused += 1
        except BudgetLost:
            print("unheard", turn, flush=True)
    print("refused", refused, flush=True)


def debit(ledger: Ledger, dataset: str, release: Guarantee, key: str) -> Debit:
    """Ask until there is an answer."""
    while True:
        try:
            return ledger.debit(dataset, release, what="turn", key=key)
        except (BudgetExceeded, BudgetLost):
            raise
        except LedgerError as error:
            if "cut off" not in str(error) and "reached" not in str(error):
                raise
            time.sleep(0.01)


if __name__ == "__main__":
    main(*sys.argv[1:])
