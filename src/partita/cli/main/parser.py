"""Every command and its options."""

from __future__ import annotations

import argparse

import partita
from partita.cli import audit, ledger, pan
from partita.cli.local import local
from partita.cli.publish import init, keys, mechanisms, plan, publish
from partita.cli.query import info, plot, query
from partita.cli.serve import serve, token
from partita.cli.stream import stream

_COMMANDS = (
    init,
    plan,
    publish,
    query,
    info,
    plot,
    keys,
    ledger,
    mechanisms,
    stream,
    local,
    pan,
    serve,
    token,
    audit,
)

_EXIT_CODES = """\
exit codes: 0 done, 1 failed, 2 the command line was not understood, 3 refused by the ledger.
Every command has --help and --json. The commands in full: docs/command-line.md"""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    root = argparse.ArgumentParser(
        prog="partita",
        description="Publish differentially private statistics once; answer questions forever.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=f"partita {partita.__version__}")
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in _COMMANDS:
        module.declare(commands)
    return root
