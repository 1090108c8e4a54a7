"""pure-ldp, as its documentation uses it: one call for each person, one for each report; cells from 1 on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pure_ldp.frequency_oracles as oracles

from benchmarks.peers.worker import Answers, Problem, between, serve

Sides = tuple[Any, Any]
"""A client, and the server that understands it."""

HASHES = 1_000


def direct(epsilon: float, size: int) -> Sides:
    return oracles.DEClient(epsilon, size), oracles.DEServer(epsilon, size)


def unary(epsilon: float, size: int) -> Sides:
    both = oracles.UEClient, oracles.UEServer
    client, server = (side(epsilon, size, use_oue=True) for side in both)
    return client, server


def hashing(epsilon: float, size: int) -> Sides:
    """Local hashing with a thousand hash functions instead of one for each person, which takes minutes."""
    both = oracles.FastLHClient, oracles.FastLHServer
    client, server = (side(epsilon, size, HASHES, use_olh=True) for side in both)
    return client, server


def hadamard(epsilon: float, size: int) -> Sides:
    server = oracles.HadamardResponseServer(epsilon, size)
    client = oracles.HadamardResponseClient(epsilon, size, hash_funcs=server.get_hash_funcs())
    return client, server


def frequencies(problem: Problem, *, sides: Callable[[float, int], Sides]) -> Answers:
    """Everybody's report, then an estimate of how many hold each cell."""
    size = int(problem["size"])
    client, server = sides(float(problem["epsilon"]), size)
    for cell in problem["values"].tolist():
        server.aggregate(client.privatise(cell + 1))
    return lambda: np.array([server.estimate(cell + 1, suppress_warnings=True) for cell in range(size)])


def ranges(problem: Problem) -> Answers:
    """Ranges as sums of cells: the library has nothing made for them."""
    estimates = frequencies(problem, sides=hadamard)
    return lambda: between(estimates(), problem["lows"], problem["highs"])


METHODS = {
    "direct": partial(frequencies, sides=direct),
    "unary": partial(frequencies, sides=unary),
    "hashing": partial(frequencies, sides=hashing),
    "hadamard": partial(frequencies, sides=hadamard),
    "ranges": ranges,
}

if __name__ == "__main__":
    serve(METHODS)
