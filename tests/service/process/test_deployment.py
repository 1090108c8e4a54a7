"""docs/deployment.md tells the truth."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from partita.cli import main
from partita.cli.main import parser
from partita.service.web import Metrics

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "deployment.md").read_text()


def blocks(language: str) -> list[str]:
    """The blocks of the page in one language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def served(line: str) -> list[str]:
    """The arguments after `partita` in a line that serves."""
    return shlex.split(re.split(r" {3,}", line[line.index("serve ") :])[0])


def test_the_commands_on_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    lines = [shlex.split(line) for block in blocks("sh") for line in block.splitlines()]

    assert {line[0] for line in lines} == {"partita"}
    assert [main(line[1:]) for line in lines] == [0] * len(lines)
    assert len(lines) >= 8


def test_the_services_on_the_page_are_understood() -> None:
    """Those of the examples and that of the unit."""
    text = [
        line for block in blocks("text") for line in block.splitlines() if line.startswith("partita serve")
    ]
    [unit] = [line for line in blocks("ini")[0].splitlines() if line.startswith("ExecStart=")]

    for line in [*text, unit]:
        assert parser().parse_args(served(line)).folder == "public"
    assert len(text) == 4


def test_the_unit_is_hardened() -> None:
    """It parses, keeps secrets out of swap and core dumps, and reaches this machine only."""
    unit = configparser.RawConfigParser(strict=True)
    unit.read_string(blocks("ini")[0])
    service = unit["Service"]

    assert (service["DynamicUser"], service["NoNewPrivileges"]) == ("yes", "yes")
    assert (service["ProtectSystem"], service["MemorySwapMax"], service["LimitCORE"]) == ("strict", "0", "0")
    assert (service["IPAddressDeny"], service["IPAddressAllow"]) == ("any", "localhost")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here")
def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    """Every key of it is known; that the program is not installed where the unit says is no fault of it."""
    unit = tmp_path / "partita.service"
    unit.write_text(blocks("ini")[0].replace("/opt/partita/bin/partita", "/bin/true"))
    said = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    wrong = [line for line in said.stderr.splitlines() if "partita.service" in line]

    assert wrong == []


def test_readers_never_reach_the_steward() -> None:
    """In both proxies its port stands behind the name for feeding, for events only."""
    [nginx], [caddy] = blocks("nginx"), blocks("caddy")
    readers, feeders = nginx.split("\n\nserver {")

    assert ("8001" in readers, "8000" in feeders) == (False, False)
    assert "access_log off" in feeders
    assert "proxy_buffering off" in readers
    assert caddy.index("feed.example.org") < caddy.index("127.0.0.1:8001")
    assert caddy.count("8001") == 1


def test_every_metric_is_on_the_page() -> None:
    """And none that is not there."""
    text = Metrics(releases=lambda: 0).text().decode()
    named = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    listed = set(re.findall(r"^\| `(\w+)", PAGE, re.MULTILINE)) - {"public", "secret", "budget", "tokens"}

    assert listed == named
