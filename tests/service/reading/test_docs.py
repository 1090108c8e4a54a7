"""docs/service-api.md tells the truth: its commands run, and what it shows has the shape of what comes."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request

import httpx
import pytest

from partita.public.release import Release
from tests.table_releases import table_release

from .conftest import Client, served

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "service-api.md").read_text()
HOST = "http://localhost:8000"
BLOCKS = re.findall(r"```(sh|json)\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [line for kind, block in BLOCKS if kind == "sh" for line in block.splitlines()]


@pytest.fixture(scope="module")
def client(shelf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of the shelf with a table release beside, as on the page."""
    folder = shutil.copytree(shelf, tmp_path_factory.mktemp("page") / "folder")
    table_release().save(folder / "census.release.parquet")
    client = Client(served(folder))
    yield client
    client.close()


def curl(client: Client, line: str) -> httpx.Response:
    """What a curl command line asks, asked without any network."""
    program, *words = shlex.split(line)
    assert program == "curl"
    [address] = [word for word in words if word.startswith(HOST)]
    after = dict[str, list[str]]()
    for option, value in pairwise(words):
        after.setdefault(option, []).append(value)
    if "--json" in after:
        headers = {"Content-Type": "application/json"}
        return client.post(address.removeprefix(HOST), content=after["--json"][0], headers=headers)
    given = [pair for option in ("-d", "--data-urlencode") for pair in after.get(option, [])]
    pairs = [(name, value) for name, _, value in (pair.partition("=") for pair in given)]
    query = f"?{urlencode(pairs)}" if pairs else ""
    return client.send("GET", address.removeprefix(HOST) + query)


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_on_the_page_run(client: Client, line: str) -> None:
    """Each is answered; the one that shows an error gets that error."""
    answer = curl(client, line)

    assert answer.status_code == (400 if "agee" in line else 200), answer.text


def test_what_is_shown_has_the_shape_of_what_comes_back(client: Client) -> None:
    """Every answer on the page, entry by entry, stands behind the command that it answers."""
    pairs = list(pairwise(BLOCKS))
    shown = [(first, second) for (kind, first), (other, second) in pairs if (kind, other) == ("sh", "json")]

    for command, answer in shown:
        assert shape(json.loads(answer)) == shape(curl(client, command.strip()).json()), command
    assert len(shown) == 7


def shape(value: Any) -> Any:
    """The names of entries and the kinds of their values; of a list, that of its last."""
    if isinstance(value, dict):
        return {name: shape(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [shape(entry) for entry in value[-1:]]
    return (
        "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
    )


def test_the_program_on_the_page_runs(
    client: Client, release: Release, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints the counts of the three ranges that it asks for."""

    def opened(request: Request) -> AbstractContextManager[io.BytesIO]:
        path, data = request.full_url.removeprefix(HOST), request.data
        return io.BytesIO(client.post(path, content=data, headers=dict(request.headers)).content)

    monkeypatch.setattr("urllib.request.urlopen", opened)
    [program] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(program, {})

    printed = [float(number) for number in re.findall(r"\d+\.\d+", capsys.readouterr().out)]
    assert printed == release.counts({"age": ([0, 18, 65], [17, 64, None])}).values.tolist()


def test_every_address_of_the_api_is_on_the_page(client: Client) -> None:
    """Nothing is left to be found by chance."""
    paths = [path for path in client.get("/openapi.json").json()["paths"] if path.startswith("/releases")]

    assert [path for path in paths if path.rpartition("/")[2].removeprefix("{name}") not in PAGE] == []
