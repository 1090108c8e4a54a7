"""`partita audit`: enumeration, fits and attacks against this version, or against a mechanism of your own."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path
from typing import TYPE_CHECKING, Final

from partita.cli.common import Commands, Options, Outcome, command, epsilon, load_factory, show
from partita.errors import InvalidParameter

if TYPE_CHECKING:
    from partita.audit.engine import Report

_VIOLATED: Final = 1


def declare(commands: Commands) -> None:
    """How deep, what of, and where to."""
    says = "try to break the promises of this version, and report what was tried and found"
    parser = command(commands, "audit", run, says, example="partita audit --depth quick")
    says = "how much is tried; default: %(default)s"
    parser.add("--depth", says, choices=("quick", "standard", "deep"), default="standard")
    parser.add("--only NAME", "one mechanism by its class; may be given again", action="append")
    parser.add("--html FILE", "write the report as a page too")
    parser.add("--mechanism MODULE:FACTORY", "your own: a function of epsilon that makes it")
    parser.add("--epsilon E", "with --mechanism: what it promises; default: 1", type=epsilon)


def run(options: Options) -> Outcome:
    """The report; a violation ends with exit code 1."""
    from partita.audit.engine import audit

    _check_options(options)
    report = _audit_factory(options) if options.mechanism else audit(depth=options.depth, only=options.only)
    if options.html:
        Path(options.html).write_text(report.html(), encoding="utf-8")
    outcome = Outcome(report.text(), [report.record()])
    if report.violations:
        show(outcome, as_json=options.json)
        raise SystemExit(_VIOLATED)
    return outcome


def _check_options(options: Options) -> None:
    """Some options are about our mechanisms, others about yours."""
    if options.mechanism and options.only:
        raise ArgumentTypeError("--only names mechanisms of Partita: leave it out with --mechanism")
    if options.epsilon and not options.mechanism:
        raise ArgumentTypeError("--epsilon is what a mechanism of your own promises: name it by --mechanism")


def _audit_factory(options: Options) -> Report:
    from partita.audit.engine import audit

    factory, budget = load_factory(options.mechanism), options.epsilon or 1
    try:
        mechanism = factory(budget)
    except Exception as error:
        rule = "must name a function that makes it, given epsilon"
        fix = "call the function by itself to see that error"
        raise InvalidParameter("mechanism", rule, given=type(error).__name__, fix=fix) from None
    neighbours, name, depth = getattr(mechanism, "neighbours", None), options.mechanism, options.depth
    return audit(mechanism, neighbours=neighbours, epsilon=budget, name=name, depth=depth, factory=factory)
