"""`partita serve` and `partita token`: what is refused, what is said, what is shown once."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

from partita.cli import serve as token_command
from partita.cli.main import parser
from partita.service import process
from partita.service.settings import ServiceSettings
from partita.service.tokens import SCOPES

from .conftest import Run

STREAMS = ("--tokens", "tokens.json", "--streams", "../secret")

LIMITS = ("--connections-per-address", 7, "--request-seconds", 8, "--work", 9)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[ServiceSettings]:
    """What would have been served; nothing is started."""
    seen: list[ServiceSettings] = []

    def serve(settings: ServiceSettings, *, announce: Callable[[str, str], None]) -> None:
        seen.append(settings)
        announce("reading", settings.address("reading"))

    monkeypatch.setattr(process, "serve", serve)
    return seen


def test_a_public_folder_is_served_on_this_machine(
    run: Run, folder: Path, served: list[ServiceSettings]
) -> None:
    """The address is shown, and nothing is warned of."""
    done = run("serve", ".", "--public")

    assert done == (0, "reading  http://127.0.0.1:8000\n", "")
    assert served == [ServiceSettings(folder=folder, public=True)]


def test_files_of_other_names_are_said_to_be_left_out(
    run: Run, folder: Path, served: list[ServiceSettings]
) -> None:
    """A folder whose page would be empty says why."""
    (folder / "public").mkdir()
    (folder / "public" / "people.parquet").write_bytes(b"")
    (folder / "public" / "flights.release.parquet").write_bytes(b"")

    assert "1 Parquet files are not served: releases are called NAME.release.parquet" in (
        run("serve", "public", "--public").err
    )


def test_addresses_as_json(run: Run, folder: Path, served: list[ServiceSettings]) -> None:
    """One object for each process."""
    [record] = run("serve", ".", "--public", "--port", 9, "--json").records

    assert record == {"process": "reading", "address": "http://127.0.0.1:9"}


def test_every_option_arrives(run: Run, folder: Path, served: list[ServiceSettings]) -> None:
    """Where it belongs."""
    run("token", "create", "ada", "--scope", "admin")
    done = run(
        *("serve", ".", "--tokens", "tokens.json", "--streams", "../secret", "--publish", "../specs"),
        *(
            "--ledger",
            "budget.db",
            "--delay",
            "0.5",
            "--allow-host",
            "a.example",
            "--allow-host",
            "b.example",
        ),
        *("--behind-proxy", "--workers", 2, "--rate", 50, "--log-addresses", *LIMITS, "--steward-port", 8002),
        *("--steward-host", "localhost"),
    )
    [settings] = served

    assert done.code == 0
    assert (settings.streams, settings.specs) == (folder.parent / "secret", folder.parent / "specs")
    assert (settings.ledger, str(settings.delay)) == (str(folder / "budget.db"), "1/2")
    assert (settings.hosts, settings.proxied, settings.workers) == (("a.example", "b.example"), True, 2)
    assert (settings.limits.rate, settings.log_addresses) == (50, True)
    assert (settings.limits.per_address, settings.limits.seconds, settings.limits.work) == (7, 8, 9)
    assert settings.place("steward") == ("localhost", 8002)


@pytest.mark.parametrize(
    ("options", "origins", "embedders"),
    [
        ((), (), ()),
        (("--allow-origin", "https://a.example", "--allow-origin", "http://b.example:3000"), None, ()),
        (("--allow-embedding",), (), ("*",)),
        (("--allow-embedding", "https://a.example"), (), ("https://a.example",)),
    ],
)
def test_other_pages_are_allowed_by_options(
    run: Run,
    folder: Path,
    served: list[ServiceSettings],
    options: tuple[str, ...],
    origins: tuple[str, ...] | None,
    embedders: tuple[str, ...],
) -> None:
    """Nobody by default; origins one by one, and any page may embed if none is named."""
    assert run("serve", ".", "--public", *options).code == 0
    [settings] = served

    both = ("https://a.example", "http://b.example:3000")
    assert settings.origins == (both if origins is None else origins)
    assert settings.embedders == embedders


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--public", "--host", "0.0.0.0"), ["everybody who reaches 0.0.0.0", "unencrypted"]),
        (("--public", "--host", "0.0.0.0", "--behind-proxy"), ["everybody who reaches 0.0.0.0"]),
        (("--tokens", "tokens.json", "--host", "::"), ["unencrypted"]),
        (("--tokens", "tokens.json", "--host", "::", "--behind-proxy"), []),
        (("--public", "--host", "localhost"), []),
        (("--public", "--steward-host", "0.0.0.0"), []),
        ((*STREAMS, "--host", "::"), ["unencrypted"]),
        ((*STREAMS, "--steward-host", "0.0.0.0"), ["0.0.0.0 can be reached by others", "unencrypted"]),
        ((*STREAMS, "--steward-host", "::", "--behind-proxy"), [":: can be reached by others"]),
    ],
)
def test_what_others_can_do_is_warned_of(
    run: Run, folder: Path, served: list[ServiceSettings], options: tuple[str, ...], words: list[str]
) -> None:
    """A line for each: everybody may read, feeding can be felt, and nothing is encrypted."""
    done = run("serve", ".", *options)
    lines = done.err.splitlines()

    assert done.code == 0
    assert len(lines) == len(words)
    assert all(word in line for word, line in zip(words, lines, strict=True))


def test_neither_public_nor_tokens_is_refused(run: Run, folder: Path, served: list[ServiceSettings]) -> None:
    """With the two ways to mend it."""
    done = run("serve", ".")

    assert (done.code, served) == (1, [])
    assert "`partita token create`" in done.err
    assert "--public" in done.err


def test_a_missing_folder_is_named(run: Run, folder: Path) -> None:
    """Before anything starts."""
    done = run("serve", "nowhere", "--public")

    assert (done.code, done.out) == (1, "")
    assert done.err.count("\n") == 1
    assert "folder must exist" in done.err


@pytest.mark.parametrize(
    "option",
    [("--delay", "0"), ("--delay", "1e-10"), ("--port", "70000"), ("--workers", "0"), ("--rate", "x")],
)
def test_bad_numbers_are_refused(run: Run, folder: Path, option: tuple[str, str]) -> None:
    """By name, with what is allowed."""
    done = run("serve", ".", "--public", *option)

    assert done.code in (1, 2)
    assert option[0].strip("-") in done.err


def test_a_token_is_shown_once(run: Run, folder: Path) -> None:
    """By the act that makes it, and by no other."""
    [made] = run("token", "create", "web", "--scope", "feed", "--stream", "visits", "--json").records
    listed = run("token", "list")
    listed_as_json = run("token", "list", "--json")

    assert made["token"].startswith("partita_")
    assert listed.out == "web  feed of visits; for good\n"
    assert made["token"].rpartition("_")[2] not in listed.out + listed_as_json.out


def test_a_token_is_rotated_and_revoked(run: Run, folder: Path) -> None:
    """Both keys are listed while the grace lasts; then the name is gone."""
    run("token", "create", "web", "--scope", "read")
    run("token", "rotate", "web", "--grace", "1d")
    [record] = run("token", "list", "--json").records

    assert [key["until"] is None for key in record["keys"]] == [False, True]
    assert run("token", "revoke", "web").out == "web is revoked\n"
    assert run("token", "list").out == "no tokens\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("create", "a b", "--scope", "read"), "name must begin with a letter or digit"),
        (("create", "web", "--scope", "read", "--stream", "visits"), "stream limits what is fed"),
        (("create", "web", "--scope", "read", "--expires", "soon"), "write for example 12h or 90d"),
        (("create", "web"), "--scope"),
        (("rotate", "nobody"), "name must be a token"),
        (("revoke", "nobody"), "see `partita token list`"),
    ],
)
def test_bad_tokens_are_refused(run: Run, folder: Path, arguments: tuple[str, ...], words: str) -> None:
    """With what to do."""
    run("token", "create", "ada", "--scope", "admin")
    done = run("token", *arguments)

    assert done.code in (1, 2)
    assert words in done.err


def test_the_scopes_of_the_command_are_those_of_the_service() -> None:
    """The command names them itself, so that it starts without loading the service."""
    assert token_command._SCOPES == SCOPES


def test_serve_explains_itself() -> None:
    """Every option has a word of help."""
    commands = next(action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))

    assert all(action.help for action in commands.choices["serve"]._actions)
