"""A public folder to look at: people of two ages and five regions, a table, a broken file, two streams."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

import partita as pt
from partita.trusted.durable.open import open_counter, open_family
from partita.trusted.durable.stream import DurableCounter
from tests.table_releases import table_release

PEOPLE = "people-2026"
VISITS, BEFORE = "visits-2026", "visits-2025"
KEYS = [f"key {number:04}" for number in range(4_100)]
TOWNS = [f"Town {number:03}" for number in range(140)]
KINDS = ["bus", "car", "train"]
TABLE = "table"
REGIONS = ["Lazio", "Liguria", "Puglia", "Sicily", "Veneto"]
ROWS = 20_000
PERIODS = 40


@dataclass(frozen=True)
class World:
    """What is published, and the counter that goes on publishing."""

    folder: Path
    release: pt.Release
    visits: pt.Release
    before: pt.Release
    door: DurableCounter


def made_world(folder: Path) -> World:
    """Publish everything into a folder, and keep what is secret beside it."""
    public, secret = folder / "public", folder / "secret"
    public.mkdir()
    secret.mkdir()
    release = _people()
    release.save(public / f"{PEOPLE}.release.parquet")
    table_release().save(public / f"{TABLE}.release.parquet")
    (public / "damaged.release.parquet").write_bytes(b"PAR1 and no more")
    visits, before = _visits(2026, 5_000), _visits(2025, 4_000)
    visits.save(public / f"{VISITS}.release.parquet")
    before.save(public / f"{BEFORE}.release.parquet")
    keys = {"key": KEYS[:1] * 500 + KEYS[-1:] * 800}
    pt.publish(keys, {"key": pt.Category(KEYS)}, epsilon=1).save(public / "keys.release.parquet")
    _beside(public)
    _wards(public, secret)
    return World(public, release, visits, before, _door(public, secret))


def _beside(public: Path) -> None:
    """Kinds by days, and few rows on a wide map."""
    draw = np.random.default_rng(5)
    days = np.datetime64("2026-01-01") + draw.integers(0, 90, 3_000)
    months = {"kind": draw.choice(KINDS, 3_000), "day": days}
    schema: dict[str, pt.Domain] = {"kind": pt.Category(KINDS), "day": pt.Date("2026-01-01", "2026-03-31")}
    pt.publish(months, schema, epsilon=2).save(public / "months.release.parquet")
    places = {"lon": np.round(draw.normal(12, 2, 600), 1), "lat": np.round(draw.normal(42, 2, 600), 1)}
    earth = {"lon": pt.Real(-180, 180, step="0.1"), "lat": pt.Real(-90, 90, step="0.1")}
    pt.publish(places, earth, epsilon=1).save(public / "places.release.parquet")


def _people() -> pt.Release:
    """Two generations whose salaries rise with age, and when they came."""
    draw = np.random.default_rng(7)
    age = np.where(draw.random(ROWS) < 0.3, draw.normal(28, 7, ROWS), draw.normal(52, 15, ROWS))
    age = np.clip(age, 0, 108).astype(np.int64)
    salary = np.exp(draw.normal(10.1, 0.45, ROWS)) * (0.55 + 0.011 * np.minimum(age, 60))
    table = {
        "id": np.arange(ROWS),
        "age": age,
        "salary": np.clip(salary, 0, 150_000).astype(np.int64),
        "region": draw.choice(REGIONS, ROWS, p=[0.34, 0.12, 0.22, 0.12, 0.2]),
        "visited": np.datetime64("2026-01-01") + np.clip(draw.gamma(3, 40, ROWS), 0, 300).astype(np.int64),
        "arrived": np.datetime64("2026-03-01T00") + draw.integers(0, 7 * 24, ROWS).astype("timedelta64[h]"),
        "hours": np.round(np.clip(draw.gamma(4, 9, ROWS), 0, 79) * 4) / 4,
    }
    schema: dict[str, pt.Domain] = {
        "age": pt.Integer(0, 110),
        "salary": pt.Integer(0, 150_000),
        "region": pt.Category(REGIONS),
        "visited": pt.Date("2026-01-01", "2026-12-31"),
        "arrived": pt.Timestamp("2026-03-01", "2026-03-07T23:00", "1h", zone="Europe/Rome"),
        "hours": pt.Real(0, 80, step="0.25"),
    }
    views = [("age",), ("region",), ("visited",), ("arrived",), ("hours",), ("age", "salary")]
    return pt.publish(table, schema, epsilon=3, person="id", views=views, shares=[1, 1, 1, 1, 1, 5])


def _visits(year: int, rows: int) -> pt.Release:
    """Many towns, money with wide bounds, times in a zone behind UTC, and places on a map."""
    draw = np.random.default_rng(year)
    weights = 1 / np.arange(1, len(TOWNS) + 1)
    hours = draw.integers(0, 365 * 24 - 1, rows).astype("timedelta64[h]")
    table = {
        "town": draw.permutation(draw.choice(TOWNS[::-1], rows, p=weights / weights.sum())),
        "kind": draw.choice(KINDS, rows, p=[0.5, 0.3, 0.2]),
        "spent": np.exp(draw.normal(5, 0.5, rows)).astype(np.int64),
        "seen": np.datetime64("2013-01-01T05") + hours,
        "lat": np.round(draw.normal(41.9, 0.5, rows), 2),
        "lon": np.round(draw.normal(12.5, 0.5, rows), 2),
        "cost": np.round(np.exp(draw.normal(3, 0.4, rows)) * 4) / 4,
    }
    schema: dict[str, pt.Domain] = {
        "town": pt.Category(TOWNS),
        "kind": pt.Category(KINDS),
        "spent": pt.Integer(0, 10_000_000),
        "seen": pt.Timestamp("2013-01-01", "2013-12-31T23:00", "1h", zone="America/New_York"),
        "lat": pt.Real(-90, 90, step="0.01"),
        "lon": pt.Real(-180, 180, step="0.01"),
        "cost": pt.Real(0, 10_000, step="0.25"),
    }
    views = [("town",), ("seen",), ("kind", "spent"), ("lat", "lon"), ("town", "kind")]
    return pt.publish(table, schema, epsilon=5, views=views, sums=["cost"], dataset="visits")


def _door(public: Path, secret: Path) -> DurableCounter:
    """A counter of seconds that began some of them ago, and has published those."""
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=PERIODS)
    counter = open_counter(
        secret / "door", epsilon=1, period="1s", start=start, now=start, outputs=public / "door.outputs"
    )
    for period in range(PERIODS):
        counter.add(20 + period % 7, feeder="door", sequence=period)
        counter.tick(now=start + timedelta(seconds=period + 1))
    return counter


def _wards(public: Path, secret: Path) -> None:
    """Three counters together, which have ended."""
    start = datetime(2026, 3, 1, 6, tzinfo=UTC)
    with open_family(
        secret / "wards",
        keys=["north", "south", "west"],
        epsilon=1,
        period="5m",
        horizon=PERIODS,
        start=start,
        now=start,
        outputs=public / "wards.outputs",
    ) as family:
        for period in range(PERIODS):
            family.add({"north": 30, "south": 12, "west": 3}, feeder="door", sequence=period)
            family.tick(now=start + timedelta(minutes=5 * (period + 1)))
