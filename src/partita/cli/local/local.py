"""`partita local`: questions that people answer on their own devices, their reports, and what these say."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from partita.cli.common.arguments import Commands, Options, command, epsilon, probability, whole
from partita.cli.common.output import Outcome
from partita.cli.common.writing import write_whole
from partita.cli.local.local_lines import ReportLines
from partita.cli.local.local_said import counted, estimate_said, question_said
from partita.errors.errors import SourceError
from partita.local.question.kinds import KINDS

if TYPE_CHECKING:
    from partita.local.aggregate.aggregator import Aggregator
    from partita.local.question.question import Question

_VALUE_HELP: Final = (
    "what this person holds; - reads it from stdin, since other users see arguments in the list of "
    "processes and a shell keeps them in its history"
)


def declare(commands: Commands) -> None:
    """A server writes a question, a device reports, a server collects and estimates."""
    group = commands.add_parser("local", help="collect private reports from devices", allow_abbrev=False)
    acts = group.add_subparsers(title="acts", metavar="ACT", required=True)
    _declare_spec(acts)
    _declare_report(acts)
    _declare_collect(acts)
    _declare_estimate(acts)


def _declare_spec(acts: Commands) -> None:
    declared = command(
        acts,
        "spec",
        _spec,
        says="write a question for devices to verify and answer",
        example="partita local spec --size 1024 --epsilon 1 -o pages.json",
    )
    asked = declared.add_mutually_exclusive_group(required=True)
    asked.add_argument("--size", type=whole("size", low=2), metavar="N", help="which of N cells, 0 to N-1?")
    asked.add_argument(
        "--range", type=whole("range", low=2), metavar="N", help="where among N cells in order? for quantiles"
    )
    asked.add_argument(
        "--labels", nargs="+", action="extend", metavar="LABEL", help="which of these labels, or another?"
    )
    asked.add_argument("--mean", nargs=2, metavar=("LOW", "HIGH"), help="which number between these?")
    declared.add_argument("--epsilon", type=epsilon, required=True, metavar="E", help="of one report")
    declared.add_argument(
        "--kind", choices=("auto", *KINDS), default="auto", help="the randomizer; default: %(default)s"
    )
    declared.add_argument("--round", default="", metavar="NAME", help="everybody answers once in each round")
    declared.add_argument("-o", "--output", required=True, metavar="FILE", help="where to write the question")
    declared.add_argument("--force", action="store_true", help="overwrite the file if it exists")


def _declare_report(acts: Commands) -> None:
    declared = _act(acts, "report", _report, says="randomize one value, as a device does", needs=" 17")
    declared.add_argument("value", metavar="VALUE", help=_VALUE_HELP)
    declared.add_argument(
        "--device", metavar="FILE", help="remember what was said, and keep a budget; made where there is none"
    )
    declared.add_argument(
        "--budget", type=epsilon, metavar="E", help="of the device, for life; needed with --device"
    )


def _declare_collect(acts: Commands) -> None:
    needs = " reports.jsonl -o pages.state"
    declared = _act(
        acts, "collect", _collect, says="count reports, one JSON object in each line", needs=needs
    )
    declared.add_argument("reports", nargs="*", metavar="REPORTS", help="files of reports")
    declared.add_argument(
        "--merge",
        nargs="+",
        action="extend",
        default=[],
        metavar="STATE",
        help="states of others, or of before, to add; may be repeated",
    )
    declared.add_argument(
        "--skip", action="store_true", help="count lines that are no reports, or repeated ones, as skipped"
    )
    declared.add_argument("-o", "--output", required=True, metavar="STATE", help="where to write the counts")


def _declare_estimate(acts: Commands) -> None:
    says = "say what the reports say, with errors and intervals"
    declared = _act(acts, "estimate", _estimate, says=says, needs=" pages.state")
    declared.add_argument("state", metavar="STATE")
    declared.add_argument("--top", type=whole("top"), metavar="K", help="only the K most frequent cells")
    declared.add_argument(
        "--between", nargs=2, metavar=("LOW", "HIGH"), help="of a range question: the share in these cells"
    )
    declared.add_argument(
        "--confidence",
        type=probability("confidence"),
        default=0.95,
        metavar="C",
        help="of each interval; default: %(default)s",
    )


def _act(acts: Commands, name: str, run: Any, *, says: str, needs: str) -> argparse.ArgumentParser:
    declared = command(acts, name, run, says=says, example=f"partita local {name} pages.json{needs}")
    declared.add_argument("question", metavar="QUESTION", help="the file that `partita local spec` wrote")
    return declared


def _spec(options: Options) -> Outcome:
    question = _asked(options).in_round(options.round)
    described = json.dumps(question.to_json(), indent=2).encode() + b"\n"
    write_whole(options.output, described, overwrite=options.force)
    return question_said(question, options.output)


def _asked(options: Options) -> Question:
    from partita.domain.category.category import Category
    from partita.local.frequency.frequency import Frequency
    from partita.local.mean.mean import Mean
    from partita.local.ranges.ranges import Range

    if options.range is not None:
        return Range(options.range, epsilon=options.epsilon)
    if options.mean is not None:
        return Mean(*options.mean, epsilon=options.epsilon, kind=options.kind)
    domain = options.size if options.labels is None else Category(options.labels)
    return Frequency(domain, epsilon=options.epsilon, kind=options.kind)


def _report(options: Options) -> Outcome:
    """One line of JSON; the value is read as a number where it is one and no label is asked for."""
    from partita.local.device import Device, Report
    from partita.trusted.noise.kernel import token

    question = _question(options)
    if options.device is None:
        report = Report(question.digest, question.randomize(_value(options.value, question)), token())
    elif options.budget is None:
        raise argparse.ArgumentTypeError("--device needs --budget: what its owner allows for life")
    else:
        device = Device(options.device, budget=options.budget)
        report = device.answer(question, _value(options.value, question))
    return Outcome(json.dumps(report.to_json()), [report.to_json()])


def _collect(options: Options) -> Outcome:
    """Everything is counted, or nothing is written; what cannot be counted is an error, or skipped."""
    question = _question(options)
    collected: Aggregator[Any] = question.aggregator()
    for path in options.merge:
        collected = collected.merge(_state(question, path))
    reading = ReportLines(collected, skip=options.skip)
    collected.add_reports(reading.reports(options.reports))
    write_whole(options.output, collected.to_bytes(), overwrite=True)
    skipped = f", skipped {counted(reading.skipped, 'line')}" if options.skip else ""
    text = f"counted {counted(collected.n, 'report')} into {options.output}{skipped}\n{collected.guarantee}"
    return Outcome.of(
        text,
        path=options.output,
        reports=collected.n,
        skipped=reading.skipped,
        guarantee=str(collected.guarantee),
    )


def _estimate(options: Options) -> Outcome:
    question = _question(options)
    collected = _state(question, options.state)
    return estimate_said(collected, options.confidence, top=options.top, between=options.between)


def _question(options: Options) -> Question:
    from partita.local.question.registry import question_read

    return question_read(_bytes("question", options.question))


def _state(question: Question, path: str) -> Any:
    return type(question.aggregator()).from_bytes(question, _bytes("state", path))


def _bytes(name: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError):
        raise SourceError(f"{name} {path!r}", "could not be read", fix="check the path") from None


def _asks_for_labels(question: Question) -> bool:
    """Whether 007 is a label, and not the number 7."""
    domain = question.to_json().get("domain")
    return isinstance(domain, dict) and domain.get("kind") == "category"


def _value(given: str, question: Question) -> object:
    """Text, if labels are asked for; else a whole number, another number, or text."""
    text = sys.stdin.readline().rstrip("\r\n") if given == "-" else given
    if _asks_for_labels(question):
        return text
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
