"""Readers of streams need no noise, no counter and no ledger: what they load is the public side."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import partita as pt

TOKENS = {"partita.trusted", "partita.trusted.noise", "partita.trusted.noise.kernel"}
"""The function that makes tokens and ids at random, which every process may load."""

LOADED = (
    "import sys; print(*(name for name in sys.modules if name.startswith(('partita.trusted', 'partita.l'))))"
)

SERVE = """
import asyncio, sys, httpx
from pathlib import Path
from partita.service.reading.app import reading_app
from partita.service.settings import ServiceSettings

app = reading_app(ServiceSettings(folder=Path(sys.argv[1]), public=True))

async def read():
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8000") as client:
        for path in ("/", "/index.json", "/streams/visits.json", "/streams/regions.json",
                     "/streams/visits/outputs.json", "/streams/visits/outputs.csv"):
            answer = await client.get(path)
            assert answer.status_code == 200, (path, answer.text)
            if path == "/streams/visits/outputs.json":
                assert answer.json()["outputs"][0]["off"] > 1

asyncio.run(read())
"""

READ = """
import sys, partita as pt
published = pt.read_outputs(f"{sys.argv[1]}/visits")
assert len(published.outputs) == 3
"""

PLOT = """
import sys, matplotlib
matplotlib.use("Agg")
from partita.public.stream_plot import plot, stream_card, stream_figure
from partita.public.streams import read_outputs
for name in ("visits", "regions"):
    published = read_outputs(f"{sys.argv[1]}/{name}")
    plot(published.outputs, published.settings)
    stream_figure(published.outputs, published.settings)
    stream_card(name, published.settings, published.settings.guarantee, 3, published.outputs)
"""

COMMAND = """
import sys
from partita.cli import main
for words in (["info"], ["read"], ["plot", "--output", f"{sys.argv[1]}/visits.svg"]):
    assert main(["stream", words[0], f"{sys.argv[1]}/visits", *words[1:]]) == 0
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the public files of a counter and of a family."""
    secret, public = tmp_path / "secret", tmp_path / "public"
    secret.mkdir()
    public.mkdir()
    with pt.open_counter(secret / "visits", epsilon=1, period="1m", horizon=100, start=0, now=0) as visits:
        visits.tick(now=180)
    keys = ["north", "south"]
    with pt.open_family(
        secret / "regions", keys=keys, epsilon=1, period="1m", horizon=9, start=0, now=0
    ) as regions:
        regions.tick(now=180)
    for file in secret.glob("*.outputs"):
        file.rename(public / file.name)
    return public


@pytest.mark.parametrize("work", [SERVE, READ, PLOT, COMMAND], ids=["serve", "read", "plot", "command"])
def test_readers_of_streams_load_the_public_side_only(work: str, folder: Path) -> None:
    """Of the trusted side the function that makes tokens, and nothing of the ledger."""
    code = [sys.executable, "-c", f"{work}\n{LOADED}", str(folder)]
    done = subprocess.run(code, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.splitlines()[-1].split())
    assert {name for name in loaded if name.startswith(("partita.trusted", "partita.ledger"))} <= TOKENS
