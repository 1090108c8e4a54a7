"""A PostgreSQL server of the tests' own: made when first asked for, gone when the tests are over."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

__all__ = ["PostgresServer", "postgres_server", "programs"]

PASSWORD = "canary-of-a-password"
STEWARD = "steward"


def programs() -> Path | None:
    """The folder of the newest PostgreSQL programs on this machine."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda at: int(at.parts[-3]))
    found = installed[-1] if installed else shutil.which("initdb")
    return None if found is None else Path(found).parent


@dataclass(frozen=True)
class PostgresServer:
    """A running server that listens on this machine only, and asks for a password."""

    bin: Path
    folder: Path
    port: int

    def address(self, database: str = "postgres", user: str = STEWARD, password: str = PASSWORD) -> str:
        """Where a database is, with a password in it that nothing may ever show."""
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> Any:
        """A connection of the administrator's."""
        import psycopg

        return psycopg.connect(self.address(database), autocommit=True)

    def run(self, *statements: str, database: str = "postgres") -> None:
        """Do something as the administrator."""
        with closing(self.connect(database)) as connection:
            for statement in statements:
                connection.execute(statement)

    def database(self, name: str, encoding: str = "UTF8") -> str:
        """The address of a new and empty database."""
        self.run(
            f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)',
            f"CREATE DATABASE \"{name}\" TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'",
        )
        return self.address(name)

    def emptied(self, name: str) -> str:
        """The address of a database without a ledger: sooner made than a new one."""
        with closing(self.connect()) as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone()
        if known is None:
            return self.database(name)
        self.run("DROP SCHEMA IF EXISTS partita CASCADE", database=name)
        return self.address(name)

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        options = (
            f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c max_connections=60 "
            "-c shared_buffers=32MB -c log_min_messages=fatal -c log_statement=none"
        )
        self._control("start", "-w", "-l", str(self.folder / "log"), "-o", options)

    def restart_at_once(self) -> None:
        """What a power cut does: every process ends where it is, and recovery starts from the log."""
        self._control("stop", "-m", "immediate", "-w")
        self.start()

    def stop(self) -> None:
        """End the server; what it holds is thrown away with its folder."""
        self._control("stop", "-m", "immediate", "-w")

    def _control(self, *arguments: str) -> None:
        run_as_owner(self.folder, str(self.bin / "pg_ctl"), "-D", str(self.folder / "data"), *arguments)


def run_as_owner(folder: Path, *command: str) -> None:
    """Run a program as the owner of a folder: the server refuses to be run by root."""
    owner = folder.stat()
    become = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    subprocess.run(
        command,
        check=True,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **become,  # type: ignore[call-overload]
    )


def unprivileged() -> tuple[int, int]:
    """Somebody to own the server where root runs the tests."""
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return entry.pw_uid, entry.pw_gid
    pytest.skip("no user but root can own a PostgreSQL server here")


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def made(bin: Path, folder: Path) -> PostgresServer:
    """A new server in an empty folder."""
    if os.geteuid() == 0:
        os.chown(folder, *unprivileged())
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    run_as_owner(
        folder,
        *(str(bin / "initdb"), "-D", str(folder / "data"), "-U", STEWARD, "--auth=scram-sha-256"),
        *(f"--pwfile={secret}", "--encoding=UTF8", "--locale=C.UTF-8"),
    )
    return PostgresServer(bin, folder, free_port())


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for all tests that need one."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    bin = programs()
    if bin is None:
        pytest.skip("the programs of a PostgreSQL server are not installed")
    with tempfile.TemporaryDirectory(prefix="partita-postgres-", ignore_cleanup_errors=True) as folder:
        server = made(bin, Path(folder))
        server.start()
        yield server
        server.stop()
