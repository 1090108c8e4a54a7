"""The domains that every general law of domains is tested on."""

from __future__ import annotations

from fractions import Fraction

import pytest

from partita.domain import Category, Date, Domain, Integer, Real, Timestamp

DOMAINS: list[Domain] = [
    Integer(0, 120),
    Integer(0, 2**64 - 1),
    Integer(-(2**63), 2**63 - 1),
    Integer(-(2**70), -(2**70) + 5),
    Real(0, 1000, step="0.01"),
    Real(-1, 1, step="1/3"),
    Real(0, 2**64 - 1, step=1),
    Real("-1e-149", "1e-149", step="1e-150"),
    Real(1, 1 + Fraction(1, 2**498), step=Fraction(1, 2**498)),
    Date("2024-01-01", "2024-12-31"),
    Date("0001-01-01", "9999-12-31"),
    Timestamp("2024-01-01", "2024-12-31", "1h", zone="Europe/Rome"),
    Timestamp("2000-01-01", "2500-01-01", "1ns"),
    Timestamp("0001-01-03", "9999-12-29", "90m", zone="America/New_York"),
    Category(["north", "south", "1", "0.5", "true", "2024-01-31"]),
]


@pytest.fixture(scope="session", params=DOMAINS, ids=repr)
def domain(request: pytest.FixtureRequest) -> Domain:
    """Each of the domains in turn."""
    chosen: Domain = request.param
    return chosen
