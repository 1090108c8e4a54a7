"""docs/service-streams.md tells the truth: its commands run, in order, with the answers that it names."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import httpx

from tests.service.streams.conftest import Service, asked

PAGE = (Path(__file__).parents[3] / "docs" / "service-streams.md").read_text()
TOKENS = {"ADMIN": "boss", "FEED": "gate", "READ": "reader"}
HOSTS = {"localhost:8000": "reading", "localhost:8001": "steward"}


def commands() -> list[tuple[str, int]]:
    """All commands of the page, each with the status that a comment says."""
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)).replace("\\\n", " ")
    return [
        (line, int(status)) for line, status in re.findall(r"^(curl .*?)\s+# (\d+)$", blocks, re.MULTILINE)
    ]


def answered(service: Service, command: str) -> httpx.Response:
    """What the service answers to a command."""
    for name, token in TOKENS.items():
        command = command.replace(f"${name}", service.tokens[token])
    words = iter(shlex.split(command)[1:])
    named: dict[str, Any] = {"headers": {}}
    method = address = ""
    for word in words:
        if word == "-X":
            method = next(words)
        elif word == "-H":
            header, _, value = next(words).partition(": ")
            named["headers"][header] = value
        elif word == "-d":
            named["content"] = next(words)
        else:
            address = word
    host, _, path = address.partition("/")
    app = getattr(service, HOSTS[host])
    return asked(app, method or "GET", f"/{path}", **named)


def test_the_commands_of_the_page_do_what_it_says(service: Service) -> None:
    """Two streams are made and fed, a repeated request counts nothing, and readers see the counts."""
    given = commands()
    for command, status in given:
        if "localhost:8000" in command:
            service.at(61)
        assert answered(service, command).status_code == status, command

    assert len(given) == PAGE.count("curl ") == 9
    assert service.values() == [500]
    assert service.values("regions") == [{"north": 3, "south": 1}]
    listing = answered(service, given[2][0]).json()
    assert [stream["name"] for stream in listing] == ["regions", "visits"]
