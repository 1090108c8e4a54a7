"""A process that debits as fast as it can: python worker.py PATH DATASET EPSILON TIMES.

It prints one line for each debit that it was told is on disk, and one for its refusals.
"""

from __future__ import annotations

import sys

from partita.errors import BudgetExceeded
from partita.guarantee import Guarantee
from partita.ledger import Ledger


def main(path: str, dataset: str, epsilon: str, times: str) -> None:
    ledger, release = Ledger(path, patience=300), Guarantee(epsilon=epsilon)
    refused = 0
    for turn in range(int(times)):
        try:
            debit = ledger.debit(dataset, release, what=f"turn {turn}")
        except BudgetExceeded:
            refused += 1
        else:
            print(debit.number, flush=True)
    print("refused", refused, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
