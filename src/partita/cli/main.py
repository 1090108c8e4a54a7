"""Every command, from its arguments to its exit code."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import partita
from partita.cli import audit, card, ledger, local, pan, publish, query, serve, site, sql, stream
from partita.cli.common import CommandParser, Outcome, say, show
from partita.errors import (
    ImplausibleReports,
    IncompatibleGuarantees,
    LedgerRefusal,
    PartitaError,
    PrivacyWarning,
)

_COMMANDS = (
    *(publish.declare_init, publish.declare_check, publish.declare_plan, publish.declare_publish),
    *(query.declare_query, query.declare_info, query.declare_plot),
    *(sql.declare_sql, sql.declare_synthesize, sql.declare_export, card.declare),
    *(publish.declare_keys, ledger.declare, publish.declare_mechanisms),
    *(stream.declare, local.declare, pan.declare),
    *(serve.declare, serve.declare_token, site.declare, audit.declare),
)

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
REFUSED: Final = 3
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141

_EXIT_CODES = """\
exit codes: 0 done, 1 failed, 2 the command line was not understood, 3 refused by the ledger.
Every command has --help and --json. The commands in full: docs/command-line.md"""


def parser() -> CommandParser:
    """The whole command line."""
    root = CommandParser(
        prog="partita",
        description="Publish differentially private statistics once; answer questions forever.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=f"partita {partita.__version__}")
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for declare in _COMMANDS:
        declare(commands)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Nothing is raised and no traceback is shown: one could carry rows. Of an exception that is not
    ours only the type is named.
    """
    try:
        return _run(arguments)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else FAILED
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except BrokenPipeError:
        _stop_writing()
        return BROKEN_PIPE
    except argparse.ArgumentTypeError as error:
        return _say(f"error: {error}", USAGE)
    except (LedgerRefusal, IncompatibleGuarantees) as error:
        return _say(f"refused: {error}", REFUSED)
    except PartitaError as error:
        return _say(f"error: {error}", FAILED)
    except OSError as error:
        return _say(f"error: the system says {error.strerror or type(error).__name__}", FAILED)
    except Exception as error:
        return _say(f"error: unexpected {type(error).__name__}; please report how it came about", FAILED)


def _run(arguments: Sequence[str] | None) -> int:
    options = parser().parse_args(arguments)
    try:
        with _print_warnings():
            outcome: Outcome = options.run(options)
            show(outcome, as_json=options.json)
            for error in outcome.errors:
                _say(f"error: {error}", outcome.code)
    except KeyboardInterrupt:
        return _say(_describe_interrupt(options), INTERRUPTED)
    return outcome.code


def _describe_interrupt(options: argparse.Namespace) -> str:
    """The message: what the command wants to be known, or that a debit stays."""
    advice: str | None = getattr(options, "interrupted", None)
    if advice is None and getattr(options, "ledger", None) is not None:
        advice = "what was debited stays debited, see `partita ledger entries`"
    return "interrupted" if advice is None else f"interrupted; {advice}"


@contextmanager
def _print_warnings() -> Iterator[None]:
    """Print our warnings, each once; warnings of other libraries may quote a value and are dropped."""
    shown: set[str] = set()

    def write(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            _say(f"warning: {message}", DONE)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", PrivacyWarning)
        warnings.simplefilter("always", ImplausibleReports)
        warnings.showwarning = write
        yield


def _say(message: str, code: int) -> int:
    """Write a message to stderr; return the exit code that goes with it."""
    say(message)
    return code


def _stop_writing() -> None:
    """The reader of stdout is gone: discard what is left in its buffer."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
