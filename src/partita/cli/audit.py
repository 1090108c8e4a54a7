"""`partita audit`: enumeration, fits and attacks against this version, or against a mechanism of your own."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from partita.cli.common import Commands, Options, Outcome, command, epsilon, show
from partita.errors import InvalidParameter

if TYPE_CHECKING:
    from partita.audit.engine import Report

_VIOLATED: Final = 1


def declare(commands: Commands) -> None:
    """How deep, what of, and where to."""
    declared = command(
        commands,
        "audit",
        run,
        says="try to break the promises of this version, and report what was tried and found",
        example="partita audit --depth quick",
    )
    declared.add_argument(
        "--depth",
        choices=("quick", "standard", "deep"),
        default="standard",
        help="how much is tried; default: %(default)s",
    )
    declared.add_argument(
        "--only", action="append", metavar="NAME", help="one mechanism by its class; may be given again"
    )
    declared.add_argument("--html", metavar="FILE", help="write the report as a page too")
    declared.add_argument(
        "--mechanism", metavar="MODULE:FACTORY", help="your own: a function of epsilon that makes it"
    )
    declared.add_argument(
        "--epsilon", type=epsilon, metavar="E", help="with --mechanism: what it promises; default: 1"
    )


def run(options: Options) -> Outcome:
    """The report; a violation ends with exit code 1."""
    _refuse_what_does_not_fit(options)
    report = _own(options) if options.mechanism else _ours(options)
    if options.html:
        Path(options.html).write_text(report.html(), encoding="utf-8")
    outcome = Outcome(report.text(), [report.record()])
    if report.violations:
        show(outcome, as_json=options.json)
        raise SystemExit(_VIOLATED)
    return outcome


def _refuse_what_does_not_fit(options: Options) -> None:
    """Some options are about our mechanisms, others about yours."""
    if options.mechanism and options.only:
        raise ArgumentTypeError("--only names mechanisms of Partita: leave it out with --mechanism")
    if options.epsilon and not options.mechanism:
        raise ArgumentTypeError("--epsilon is what a mechanism of your own promises: name it by --mechanism")


def _ours(options: Options) -> Report:
    from partita.audit.engine import audit

    return audit(depth=options.depth, only=options.only)


def _own(options: Options) -> Report:
    from partita.audit.engine import audit

    factory, promised = _factory(options.mechanism), options.epsilon or 1
    try:
        made = factory(promised)
    except Exception as error:
        rule = "must name a function that makes it, given epsilon"
        fix = "call the function by itself to see that error"
        raise InvalidParameter("mechanism", rule, given=type(error).__name__, fix=fix) from None
    return audit(
        made,
        neighbours=getattr(made, "neighbours", None),
        epsilon=promised,
        name=options.mechanism,
        depth=options.depth,
        factory=factory,
    )


def _factory(named: str) -> Any:
    """What a module calls by this name; the folder that one is in is looked in first."""
    module, _, name = named.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        rule = "must name a module and a function in it"
        raise InvalidParameter("mechanism", rule, given=named, fix="write module:factory") from None
