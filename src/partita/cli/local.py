"""`partita local`: questions that people answer on their own devices, their reports, and what these say."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from partita.cli.common import Commands, Options, Outcome, command, epsilon, probability, whole, write_whole
from partita.errors import InvalidData, InvalidParameter, SourceError, check_data
from partita.local.question import KINDS

if TYPE_CHECKING:
    from partita.local.aggregate import Aggregator, FrequencyAggregator, MeanAggregator
    from partita.local.device import Report
    from partita.local.question import Question
    from partita.local.range_estimates import RangeAggregator

# Reports as they come to a server: one JSON object in each line of some files, not all of them sound.


class ReportLines:
    """Reads reports that an aggregator can count. A line that is none is an error, or skipped and counted.

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
            with _opened(path) as lines:
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


def _opened(path: str) -> TextIO:
    try:
        return open(path, encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        raise SourceError(f"reports {path!r}", "could not be read", fix="check the path") from None


# What `partita local` says about questions and estimates.


_QUANTILES: Final = (0.1, 0.25, 0.5, 0.75, 0.9)


def counted(number: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "line"), counted(1200, "line")
    ('1 line', '1,200 lines')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def question_said(question: Question, path: str) -> Outcome:
    """What was written, and what one report costs."""
    randomizer = question.randomizer
    text = (
        f"wrote {path}: {_about(question)} by {randomizer.kind}, "
        f"{counted(randomizer.report_bytes, 'byte')} a report\n{question.guarantee}"
    )
    return Outcome.of(
        text,
        path=path,
        asks=question.asks,
        kind=randomizer.kind,
        size=randomizer.size,
        epsilon=question.epsilon,
        digest=question.digest,
        guarantee=str(question.guarantee),
    )


def _about(question: Question) -> str:
    """What is asked, in words."""
    from partita.local.question import Mean

    if isinstance(question, Mean):
        return f"mean of numbers from {question.low} to {question.high}"
    return f"{question.asks} of {question.randomizer.size:,} cells"


def estimate_said(
    collected: Any, confidence: float, *, top: int | None = None, between: list[str] | None = None
) -> Outcome:
    """One line for each cell, the one line of a mean or of a share, or one for each quantile."""
    from partita.local.aggregate import FrequencyAggregator, MeanAggregator
    from partita.local.range_estimates import RangeAggregator

    if between is not None and not isinstance(collected, RangeAggregator):
        raise InvalidParameter(
            "--between", "needs a range question", given=between, fix="ask with partita local spec --range"
        )
    if isinstance(collected, MeanAggregator):
        return _mean_said(collected, confidence)
    if isinstance(collected, RangeAggregator):
        return (
            _share_said(collected, between, confidence) if between else _quantiles_said(collected, confidence)
        )
    if isinstance(collected, FrequencyAggregator):
        return _frequencies_said(collected, top, confidence)
    rule, fix = "must be about values, a range or a mean here", "ask the aggregator in Python"
    raise InvalidParameter("question", rule, given=collected.question.asks, fix=fix)


def _quantiles_said(collected: RangeAggregator, confidence: float) -> Outcome:
    from partita.public.base import table

    estimate, records = collected.estimate(), []
    for share in _QUANTILES:
        low, high = estimate.quantile_interval(share, confidence)
        records.append({"quantile": share, "value": estimate.quantile(share), "low": low, "high": high})
    lines = [
        (f"{each['quantile']}", f"{each['value']}", f"{each['low']} to {each['high']}") for each in records
    ]
    rows = [("quantile", "value", "interval"), *lines]
    return Outcome(f"{table(rows)}\n{counted(collected.n, 'report')}; {collected.guarantee}", records)


def _share_said(collected: RangeAggregator, between: list[str], confidence: float) -> Outcome:
    share = collected.estimate().frequency(*(_cell(end) for end in between))
    low, high = share.interval(confidence)
    text = f"share {share.value:.4f} ± {share.error:.4f} ({low:.4f} to {high:.4f})"
    return _one_said(collected.n, text, share=share.value, error=share.error, low=low, high=high)


def _one_said(reports: int, text: str, **numbers: float) -> Outcome:
    return Outcome.of(f"{text}, {counted(reports, 'report')}", **numbers, reports=reports)


def _cell(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidParameter("--between", "must be two cells", given=text, fix="pass 0 17") from None


def _mean_said(collected: MeanAggregator, confidence: float) -> Outcome:
    answer = collected.estimate()
    low, high = answer.interval(confidence)
    text = f"mean {answer.value:.6g} ± {answer.error:.3g} ({low:.6g} to {high:.6g})"
    return _one_said(collected.n, text, mean=answer.value, error=answer.error, low=low, high=high)


def _frequencies_said(collected: FrequencyAggregator, top: int | None, confidence: float) -> Outcome:
    from partita.public.base import table

    estimate = collected.estimate()
    low, high = estimate.interval(confidence)
    order = (-estimate.values).argsort(kind="stable")[:top] if top else range(len(estimate))
    records = [
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
    rows = [("value", "share", "± error", "interval"), *(_line(record) for record in records)]
    return Outcome(f"{table(rows)}\n{counted(collected.n, 'report')}; {collected.guarantee}", records)


def _line(record: dict[str, Any]) -> tuple[str, str, str, str]:
    interval = f"{record['low']:.4f} to {record['high']:.4f}"
    return str(record["label"]), f"{record['frequency']:.4f}", f"{record['error']:.4f}", interval


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
    from partita.domain.category import Category
    from partita.local.question import Frequency, Mean
    from partita.local.ranges import Range

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
    from partita.local.question import question_read

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
