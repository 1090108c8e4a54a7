"""pure-ldp, as its documentation uses it: one call for each person, one for each report; cells from 1 on."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Peer:
    """A client, and the server that understands it."""

    client: Any
    server: Any

    def randomize(self, cells: list[int]) -> list[Any]:
        return [self.client.privatise(cell + 1) for cell in cells]

    def collect(self, reports: list[Any], size: int) -> Any:
        """Aggregate all reports, and estimate every cell."""
        self.server.reset()
        for report in reports:
            self.server.aggregate(report)
        return np.array([self.server.estimate(cell + 1, suppress_warnings=True) for cell in range(size)])


def peer(kind: str, size: int, epsilon: float) -> Peer:
    """The oracle of pure-ldp that does what our kind does."""
    oracles: Any = import_module("pure_ldp.frequency_oracles")
    if kind == "response":
        return Peer(oracles.DEClient(epsilon, size), oracles.DEServer(epsilon, size))
    if kind == "unary":
        both = oracles.UEClient, oracles.UEServer
        return Peer(*(side(epsilon, size, use_oue=True) for side in both))
    server = oracles.HadamardResponseServer(epsilon, size)
    client = oracles.HadamardResponseClient(epsilon, size, hash_funcs=server.get_hash_funcs())
    return Peer(client, server)
