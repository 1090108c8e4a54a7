"""`partita local`: questions that people answer on their own devices, their reports, and the estimates."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from partita.cli import common
from partita.errors import InvalidData, InvalidParameter, SourceError, check, check_data
from partita.html import ends, with_interval, with_margin
from partita.local.question import KINDS

if TYPE_CHECKING:
    from partita.local.aggregate import Aggregator, FrequencyAggregator, MeanAggregator
    from partita.local.device import Report
    from partita.local.question import Question
    from partita.local.range_estimates import RangeAggregator

_QUANTILES: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
_VALUE_HELP: Final = (
    "what this person holds; - reads it from stdin, since other users see arguments in the list of "
    "processes and a shell keeps them in its history"
)


def declare(commands: common.Commands) -> None:
    """A server writes a question, a device reports, a server collects and estimates."""
    acts = common.command_group(commands, "local", "collect private reports from devices")
    _declare_spec(acts)
    _declare_report(acts)
    _declare_collect(acts)
    _declare_estimate(acts)


def _declare_spec(acts: common.Commands) -> None:
    says = "write a question for devices to verify and answer"
    example = "partita local spec --size 1024 --epsilon 1 -o pages.json"
    parser = common.command(acts, "spec", _spec, says, example=example)
    subject = parser.add_mutually_exclusive_group(required=True)
    add = partial(parser.add, group=subject)
    add("--size N", "which of N cells, 0 to N-1?", type=common.whole("size", low=2))
    add("--range N", "where among N cells in order? for quantiles", type=common.whole("range", low=2))
    add("--labels LABEL", "which of these labels, or another?", nargs="+", action="extend")
    add("--mean", "which number between these?", nargs=2, metavar=("LOW", "HIGH"))
    parser.add("--epsilon E", "of one report", type=common.epsilon, required=True)
    parser.add("--kind", "the randomizer; default: %(default)s", choices=("auto", *KINDS), default="auto")
    parser.add("--round NAME", "everybody answers once in each round", default="")
    parser.add("-o --output FILE", "where to write the question", required=True)
    parser.add(*common.FORCE)


def _declare_report(acts: common.Commands) -> None:
    parser = _act(acts, "report", _report, "randomize one value, as a device does", needs=" 17")
    parser.add("VALUE", _VALUE_HELP)
    parser.add("--device FILE", "remember what was said, and keep a budget; made where there is none")
    parser.add("--budget E", "of the device, for life; needed with --device", type=common.epsilon)


def _declare_collect(acts: common.Commands) -> None:
    needs = " reports.jsonl -o pages.state"
    parser = _act(acts, "collect", _collect, "count reports, one JSON object in each line", needs=needs)
    parser.add("REPORTS", "files of reports", nargs="*")
    says = "states of others, or of before, to add; may be repeated"
    parser.add("--merge STATE", says, nargs="+", action="extend", default=[])
    parser.add("--skip", "count lines that are no reports, or repeated ones, as skipped")
    parser.add("-o --output STATE", "where to write the counts", required=True)


def _declare_estimate(acts: common.Commands) -> None:
    says = "say what the reports say, with errors and intervals"
    parser = _act(acts, "estimate", _estimate, says, needs=" pages.state")
    parser.add("STATE")
    parser.add("--top K", "only the K most frequent cells", type=common.whole("top"))
    parser.add("--between", "of a range question: the share in these cells", nargs=2, metavar=("LOW", "HIGH"))
    common.add_confidence(parser, "of each interval")


def _act(acts: common.Commands, name: str, run: Any, says: str, *, needs: str) -> common.CommandParser:
    parser = common.command(acts, name, run, says, example=f"partita local {name} pages.json{needs}")
    parser.add("QUESTION", "the file that `partita local spec` wrote")
    return parser


def _spec(options: common.Options) -> common.Outcome:
    question = _make_question(options).in_round(options.round)
    described = json.dumps(question.to_json(), indent=2).encode() + b"\n"
    common.write_whole(options.output, described, overwrite=options.force)
    return describe_question(question, options.output)


def _make_question(options: common.Options) -> Question:
    from partita.domain.category import Category
    from partita.local.question import Frequency, Mean
    from partita.local.ranges import Range

    if options.range is not None:
        return Range(options.range, epsilon=options.epsilon)
    if options.mean is not None:
        return Mean(*options.mean, epsilon=options.epsilon, kind=options.kind)
    domain = options.size if options.labels is None else Category(options.labels)
    return Frequency(domain, epsilon=options.epsilon, kind=options.kind)


def _report(options: common.Options) -> common.Outcome:
    """One line of JSON; the value is read as a number where it is one and no label is subject for."""
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
    return common.Outcome(json.dumps(report.to_json()), [report.to_json()])


def _collect(options: common.Options) -> common.Outcome:
    """Everything is counted, or nothing is written; what cannot be counted is an error, or skipped."""
    question = _question(options)
    collected: Aggregator[Any] = question.aggregator()
    for path in options.merge:
        collected = collected.merge(_state(question, path))
    reading = ReportLines(collected, skip=options.skip)
    collected.add_reports(reading.reports(options.reports))
    common.write_whole(options.output, collected.to_bytes(), overwrite=True)
    skipped = f", skipped {format_number(reading.skipped, 'line')}" if options.skip else ""
    reports = format_number(collected.n, "report")
    text = f"counted {reports} into {options.output}{skipped}\n{collected.guarantee}"
    counts = {"reports": collected.n, "skipped": reading.skipped}
    return common.Outcome.of(text, path=options.output, **counts, guarantee=str(collected.guarantee))


def _estimate(options: common.Options) -> common.Outcome:
    question = _question(options)
    collected = _state(question, options.state)
    return describe_estimate(collected, options.confidence, top=options.top, between=options.between)


def _question(options: common.Options) -> Question:
    from partita.local.question import parse_question as question_read

    return question_read(_bytes("question", options.question))


def _state(question: Question, path: str) -> Any:
    return type(question.aggregator()).from_bytes(question, _bytes("state", path))


def _bytes(name: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError):
        raise SourceError(f"{name} {path!r}", "could not be read", fix="check the path") from None


def _value(given: str, question: Question) -> object:
    """The value of a person: text if labels are subject for, else an integer, another number, or text."""
    text = sys.stdin.readline().rstrip("\r\n") if given == "-" else given
    domain = question.to_json().get("domain")
    if isinstance(domain, dict) and domain.get("kind") == "category":
        return text  # 007 is a label, not the number 7
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


# Reports as they come to a server: one JSON object in each line of some files, not all of them valid.
class ReportLines:
    """Reads reports that an aggregator can count. Any other line is an error, or is skipped and counted.

    Reports are private by themselves, so an error may name the file and the line; it does not show them.
    """

    def __init__(self, collected: Aggregator[Any], *, skip: bool) -> None:
        self._collected = collected
        self._skip = skip
        self._seen: set[str] = set()
        self.skipped = 0

    def reports(self, paths: Sequence[str]) -> Iterator[Report]:
        """The reports of all files; empty lines are passed over."""
        for path in paths:
            with _open_lines(path) as lines:
                for number, line in enumerate(lines, start=1):
                    if line.strip():
                        yield from self._read(line, f"line {number} of {path}")

    def _read(self, line: str, place: str) -> Iterator[Report]:
        try:
            yield self._checked(line)
        except InvalidData as wrong:
            if not self._skip:
                rule = f"holds no new report: {wrong.parameter} {wrong.rule}"
                raise SourceError(place, rule, fix=f"{wrong.fix}, or --skip") from None
            self.skipped += 1

    def _checked(self, line: str) -> Report:
        from partita.local.device import Report

        try:
            report = Report.from_json(json.loads(line))
        except (ValueError, RecursionError) as wrong:
            if isinstance(wrong, InvalidData):
                raise
            raise InvalidData("report", "must be one JSON object in a line", fix="drop it") from None
        self._collected.check(report)
        check_data(report.id not in self._seen, "report", "was counted before", fix="count each report once")
        self._seen.add(report.id)
        return report


def _open_lines(path: str) -> TextIO:
    try:
        return open(path, encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        raise SourceError(f"reports {path!r}", "could not be read", fix="check the path") from None


# Questions and estimates as text and records.
def format_number(number: int, thing: str) -> str:
    """A number of things.

    >>> format_number(1, "line"), format_number(1200, "line")
    ('1 line', '1,200 lines')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def describe_question(question: Question, path: str) -> common.Outcome:
    """What was written, and what one report costs."""
    randomizer = question.randomizer
    text = (
        f"wrote {path}: {_describe_subject(question)} by {randomizer.kind}, "
        f"{format_number(randomizer.report_bytes, 'byte')} a report\n{question.guarantee}"
    )
    return common.Outcome.of(
        text,
        path=path,
        asks=question.asks,
        kind=randomizer.kind,
        size=randomizer.size,
        epsilon=question.epsilon,
        digest=question.digest,
        guarantee=str(question.guarantee),
    )


def _describe_subject(question: Question) -> str:
    """What is subject, in words."""
    from partita.local.question import Mean

    if isinstance(question, Mean):
        return f"mean of numbers from {question.low} to {question.high}"
    return f"{question.asks} of {question.randomizer.size:,} cells"


def describe_estimate(
    collected: Any, confidence: float, *, top: int | None = None, between: list[str] | None = None
) -> common.Outcome:
    """One line for each cell, the one line of a mean or of a share, or one for each quantile."""
    from partita.local.aggregate import FrequencyAggregator, MeanAggregator
    from partita.local.range_estimates import RangeAggregator

    fits, fix = (
        between is None or isinstance(collected, RangeAggregator),
        "ask with partita local spec --range",
    )
    check(fits, "--between", "needs a range question", given=between, fix=fix)
    if isinstance(collected, MeanAggregator):
        return _describe_mean(collected, confidence)
    if isinstance(collected, RangeAggregator):
        if between:
            return _describe_share(collected, between, confidence)
        return _describe_quantiles(collected, confidence)
    if isinstance(collected, FrequencyAggregator):
        return _describe_frequencies(collected, top, confidence)
    rule, fix = "must be about values, a range or a mean here", "ask the aggregator in Python"
    raise InvalidParameter("question", rule, given=collected.question.asks, fix=fix)


def _describe_quantiles(collected: RangeAggregator, confidence: float) -> common.Outcome:

    estimate, records, rows = collected.estimate(), [], [("quantile", "value", "interval")]
    for share in _QUANTILES:
        value, (low, high) = estimate.quantile(share), estimate.quantile_interval(share, confidence)
        records.append({"quantile": share, "value": value, "low": low, "high": high})
        rows.append((f"{share}", f"{value}", f"{low} to {high}"))
    return common.Outcome(
        f"{common.table(rows)}\n{format_number(collected.n, 'report')}; {collected.guarantee}", records
    )


def _describe_share(collected: RangeAggregator, between: list[str], confidence: float) -> common.Outcome:
    share = collected.estimate().frequency(*(_cell(end) for end in between))
    low, high = share.interval(confidence)
    text = f"share {with_interval(share.value, share.interval())}, {100 * confidence:g}%: {ends((low, high))}"
    return _describe_number(collected.n, text, share=share.value, error=share.error, low=low, high=high)


def _describe_number(reports: int, text: str, **numbers: float) -> common.Outcome:
    return common.Outcome.of(f"{text}, {format_number(reports, 'report')}", **numbers, reports=reports)


def _cell(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidParameter("--between", "must be two cells", given=text, fix="pass 0 17") from None


def _describe_mean(collected: MeanAggregator, confidence: float) -> common.Outcome:
    answer = collected.estimate()
    low, high = answer.interval(confidence)
    shown = with_interval(answer.value, answer.interval())
    text = f"mean {shown}, {100 * confidence:g}%: {ends((low, high))}"
    return _describe_number(collected.n, text, mean=answer.value, error=answer.error, low=low, high=high)


def _describe_frequencies(
    collected: FrequencyAggregator, top: int | None, confidence: float
) -> common.Outcome:

    estimate = collected.estimate()
    low, high = estimate.interval(confidence)
    order = (-estimate.values).argsort(kind="stable")[:top] if top else range(len(estimate))
    records: list[dict[str, Any]] = [
        {
            "cell": int(cell),
            "label": collected.question.label(int(cell)),
            "frequency": float(estimate.values[cell]),
            "error": float(estimate.error[cell]),
            "low": float(low[cell]),
            "high": float(high[cell]),
        }
        for cell in order
    ]
    rows = [("value", "share", "± 95%", f"{100 * confidence:g}% interval")]
    for each in records:
        share = with_margin(each["frequency"], each["error"])
        rows.append((str(each["label"]), *share, ends((each["low"], each["high"]))))
    return common.Outcome(
        f"{common.table(rows)}\n{format_number(collected.n, 'report')}; {collected.guarantee}", records
    )
