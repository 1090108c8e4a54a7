"""`partita query`, `info` and `plot`: what a release answers, free and without limit."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from textwrap import fill
from typing import TYPE_CHECKING, Final, TypeVar

from partita.cli import common
from partita.errors import InvalidParameter
from partita.public.records import (
    Record,
    TextRecord,
    column_records,
    line_heads,
    query_record,
    sum_records,
    view_records,
)

if TYPE_CHECKING:
    from partita.public.conditions import Where
    from partita.public.questions import Question
    from partita.public.release import Release

_WIDEST: Final = 100  # columns of a report; longer lines are hard to read
_BINS: Final = 16  # bars of a chart in text: half a screen
_FULL: Final = "draw whole axes; default: where nearly all rows lie"


def declare_query(commands: common.Commands) -> None:
    """The release, and what to ask it."""
    says = "ask a release; each answer has its error, an interval and guaranteed bounds"
    example = 'partita query people.release.parquet "count where age between 30 and 39" "median of salary"'
    parser = common.command(commands, "query", run_query, says, example=example)
    parser.add("RELEASE")
    parser.add("questions QUESTION", "- reads them from stdin, one a line", nargs="+")
    common.add_confidence(parser, "of the interval, which is a model")
    common.add_beta(parser, "how often the guaranteed bounds may fail")


def run_query(options: common.Options) -> common.Outcome:
    """Answer every question; one that cannot be understood or answered does not discard the others."""
    from partita.public.grammar import parse_question

    texts = list(_texts(options.questions))
    asked = [_try(parse_question, text) for text in texts]
    misread = [each for each in asked if isinstance(each, InvalidParameter)]
    if texts and len(misread) == len(texts):  # before the file is read
        return _outcome(options, texts, asked, misread)

    from partita.public.file import load
    from partita.public.questions import QueryRunner

    runner = QueryRunner(release=load(options.release), confidence=options.confidence, beta=options.beta)
    answers = [each if isinstance(each, InvalidParameter) else _try(runner.answer, each) for each in asked]
    return _outcome(options, texts, asked, answers)


Given = TypeVar("Given")
Made = TypeVar("Made")


def _try(make: Callable[[Given], Made], given: Given) -> Made | InvalidParameter:
    """What is made, or why it cannot be."""
    try:
        return make(given)
    except InvalidParameter as error:
        return error


def _outcome(
    options: common.Options,
    texts: Sequence[str],
    asked: Sequence[Question | InvalidParameter],
    answers: Sequence[Record | InvalidParameter],
) -> common.Outcome:
    """All answers, and the errors of questions without one; text that is no question is a usage error."""
    shown, records, errors = list[tuple[str, TextRecord]](), list[Record](), list[str]()
    for text, question, answer in zip(texts, asked, answers, strict=True):
        if isinstance(question, InvalidParameter) or isinstance(answer, InvalidParameter):
            errors.append(f"{text!r}: {answer}" if len(texts) > 1 else str(answer))
            records.append({"asked": text, "error": str(answer)})
        else:
            shown.append((str(question), question.kind.result.text(question, answer)))
            records.append({"asked": text, **answer})
    misread = any(isinstance(each, InvalidParameter) for each in asked)
    code = 2 if misread else 1 if errors else 0
    heads = line_heads(options.confidence, options.beta)
    return common.Outcome("\n\n".join(_blocks(heads, shown)), records, errors, code)


def _texts(arguments: Sequence[str]) -> Iterator[str]:
    """The questions, those on stdin in place of -."""
    for text in arguments:
        if text == "-":
            yield from (line for line in _lines() if line.strip())
        else:
            yield text


def _lines() -> list[str]:
    try:
        return sys.stdin.read().splitlines() if sys.stdin is not None else []
    except UnicodeDecodeError:
        fix = "convert them"
        raise InvalidParameter("questions", "must be UTF-8 text", given="other bytes", fix=fix) from None


def _blocks(heads: Sequence[str], answers: Sequence[tuple[str, TextRecord]]) -> Iterator[str]:
    """Answers of one line together in a table, and a table for each longer one; what each rests on."""
    for heading, group in groupby(answers, key=lambda answer: answer[1].heads):
        if heading:
            for question, text in group:
                below = f"\nbasis: {text.basis}" if text.basis else ""
                below += f"\n{text.note}" if text.note else ""
                yield f"{question}\n{common.table([heading, *text.lines], left=0)}{below}"
        else:
            texts = [text for _, text in group]
            notes = dict.fromkeys(f"\n{text.note}" for text in texts if text.note)
            yield _table(heads, texts) + "".join(notes)


def _table(heads: Sequence[str], texts: Sequence[TextRecord]) -> str:
    """Answers of one line, with a column for what they rest on, and words below, if one of them says so."""
    rows = [(line, text.basis) for text in texts for line in text.lines]
    if not any(basis for _, basis in rows):
        return common.table([heads, *(line for line, _ in rows)])
    from partita.answer import describe_basis  # it loads NumPy

    shown = common.table([(*heads, "basis"), *((*line, basis) for line, basis in rows)])
    words = [describe_basis(basis) for basis in dict.fromkeys(basis for _, basis in rows)]
    return "\n".join([shown, *(each for each in words if each and not each.startswith("measured"))])


# `partita info`: what a release is, and what its columns look like.
def declare_info(commands: common.Commands) -> None:
    """The release."""
    says = "say what was released, with what guarantee and how exactly, and draw each column"
    parser = common.command(commands, "info", run_info, says, example="partita info people.release.parquet")
    parser.add("RELEASE")
    common.add_beta(parser, "of the error bound")
    parser.add("--full", _FULL)


def run_info(options: common.Options) -> common.Outcome:
    """The report, then a chart of each column."""
    from partita.public.file import load

    release = load(options.release)
    width = min(_WIDEST, shutil.get_terminal_size().columns)
    lines = release.report(options.beta).splitlines()
    report = "\n".join(fill(line, width, subsequent_indent="  ") for line in lines)
    charts = [_chart(release, column, width, full=options.full) for column in release.columns]
    return common.Outcome("\n\n".join([report, *charts]), [_record(release, options.beta)])


def _chart(release: Release, column: str, width: int, *, full: bool) -> str:
    from partita.public.report import chart

    plain = not common.can_write("█▏±", sys.stdout)
    return "\n".join([column, *chart(release.slice(column), width, _BINS, ascii_only=plain, full=full)])


def _record(release: Release, beta: float) -> Record:
    from partita.public.file_entries import guarantee_entries, provenance_entries

    return {
        "guarantee": guarantee_entries(release.guarantee),
        "provenance": provenance_entries(release.provenance),
        "error": {"beta": beta, "bound": release.error(beta) if release.views else None},
        "views": view_records(release),
        "sums": sum_records(release),
        "queries": query_record(release, beta),
        "columns": column_records(release),
    }


# `partita plot`: a picture of a column, or of two.
def declare_plot(commands: common.Commands) -> None:
    """The release, the columns, and where the picture goes."""
    says = "draw a column of a release, or a heat map of two; needs the extra `plot`"
    example = "partita plot people.release.parquet age salary -o map.png"
    parser = common.command(commands, "plot", run_plot, says, example=example)
    parser.add("RELEASE")
    parser.add("columns COLUMN", "one, or two for a heat map", nargs="+")
    where = 'draw only these rows, for example "age between 30 and 39"'
    parser.add("--where CONDITIONS", where, type=common.argument(_parse_where), default={})
    parser.add("--full", _FULL)
    common.add_picture(parser)


def _parse_where(text: str) -> Where:
    from partita.public.grammar import parse_where  # with NumPy, which `--help` does not load

    return parse_where(text)


def run_plot(options: common.Options) -> common.Outcome:
    """Draw and store; no window is opened."""
    if len(options.columns) > 2:
        raise argparse.ArgumentTypeError("a picture has one column or two; name no more")
    from partita.public.file import load

    release = load(options.release)
    common.draw(lambda: release.plot(*options.columns, where=options.where, full=options.full), options)
    text = f"drew {' and '.join(options.columns)} in {options.output}"
    return common.Outcome.of(text, path=options.output, columns=options.columns)
