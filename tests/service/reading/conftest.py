"""A folder of releases, and the app that serves it, in this process."""

from __future__ import annotations

import asyncio
import datetime
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

import partita as pt
from partita.domain import Domain
from partita.public.file import load
from partita.public.release import Release
from partita.service.reading.app import reading_app
from partita.service.settings import Limits, ServiceSettings

START = datetime.date(2024, 1, 1)
SCHEMA: dict[str, Domain] = {
    "age": pt.Integer(0, 99),
    "salary": pt.Real(0, 1000, step="0.5"),
    "seen": pt.Date("2024-01-01", "2024-03-31"),
    "town": pt.Category(["Rome", "Bari", "L'Aquila"]),
}
LIMITS = Limits(rate=10**6, burst=10**6, ranges=6_000, rows=2_000, points=1_024)


def people() -> dict[str, list[Any]]:
    """Six thousand people whose values follow from their numbers."""
    rows = range(6_000)
    return {
        "age": [None if row % 500 == 0 else (7 * row + row // 99) % 97 for row in rows],
        "salary": [(row * 37 % 1999) / 2 for row in rows],
        "seen": [START + datetime.timedelta(days=row % 90) for row in rows],
        "town": [("Rome", "Rome", "Bari", "L'Aquila")[row % 4] for row in rows],
    }


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases, made once: columns apart, together and summed; and answers to queries."""
    shelf = tmp_path_factory.mktemp("shelf")
    views = [("age",), ("salary",), ("seen",), ("town",), ("age", "town")]
    pt.publish(
        people(), SCHEMA, epsilon=4, views=views, moments=["salary"], path=shelf / "people.release.parquet"
    )
    ages = {"age": SCHEMA["age"]}
    pt.publish(people(), ages, epsilon=1, queries="ranges(age)", path=shelf / "asked.release.parquet")
    return shelf


@pytest.fixture
def folder(shelf: Path, tmp_path: Path) -> Path:
    """A copy of the shelf that a test may change."""
    return Path(shutil.copytree(shelf, tmp_path / "folder"))


@pytest.fixture(scope="session")
def release(shelf: Path) -> Release:
    """The release of people, opened as anybody would."""
    return load(shelf / "people.release.parquet")


class Client:
    """Sends requests to an app without any network."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        self._runner = asyncio.Runner()

    def get(self, path: str, **parameters: Any) -> httpx.Response:
        """The answer to an address and its parameters."""
        return self.send("GET", path, params=parameters or None)

    def post(self, path: str, **arguments: Any) -> httpx.Response:
        """The answer to a body."""
        return self.send("POST", path, **arguments)

    def send(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        """The answer to any request."""

        async def sent() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, path, **arguments)

        return self._runner.run(sent())

    def close(self) -> None:
        """Nothing is sent any more."""
        self._runner.close()


def served(folder: Path, **settings: Any) -> FastAPI:
    """The app of a folder that everybody may read."""
    return reading_app(ServiceSettings(folder=folder, **{"public": True, "limits": LIMITS, **settings}))


@pytest.fixture(scope="session")
def client(shelf: Path) -> Iterator[Client]:
    """A client of the shelf, which no test changes."""
    client = Client(served(shelf))
    yield client
    client.close()


@pytest.fixture
def fresh(folder: Path) -> Iterator[Client]:
    """A client of a folder that a test may change."""
    client = Client(served(folder))
    yield client
    client.close()
