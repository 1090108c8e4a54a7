"""Why parities cannot be learned from statistical queries, as numbers that can be looked at.

Let x be uniform on d bits and the label y = <s, x> mod 2 for a secret s. For any query phi,

    E[phi(x, y)] = E[phi(x, 0) + phi(x, 1)] / 2 + g(s) / 2,   g(s) = E[(phi(x, 0) - phi(x, 1)) (-1)^<s, x>].

Only g knows of the secret, and the sum of g(s)^2 over all secrets is at most 1 (Parseval). So at most
1/(4 tau^2) of the 2^d secrets change the answer by more than tau: for all others an oracle of tolerance tau
may give one and the same answer. It takes about 2 tau^2 2^d queries to rule out half of the secrets.
"""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from partita.local.aggregate.consistency import Floats
from partita.local.frequency.decoders import walsh_hadamard


def parity_signal(phi: Any) -> Floats:
    """For each secret s, by how much the true answer to a query differs from the answer without a secret.

    `phi` holds the query as a table: phi[x, y] for every x of d bits, written as a number, and both labels.

    >>> parity_signal(np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [0.0, 0.5]
    """
    table: Floats = np.asarray(phi, dtype=np.float64)
    signal: Floats = walsh_hadamard(table[:, 0] - table[:, 1]) / len(table) / 2
    return signal


def parity_suspects(phi: Any, tau: float) -> int:
    """How many secrets the answer can be told from at tolerance tau; at most 1 / (4 tau^2)."""
    return int((np.abs(parity_signal(phi)) > tau).sum())


def parity_queries_needed(dimension: int, tau: float) -> int:
    """How many queries rule out half of all secrets, at least: 4 tau^2 2^(d-1).

    >>> parity_queries_needed(64, 0.01) > 10**15
    True
    """
    return ceil(4 * tau**2 * (1 << dimension - 1))
