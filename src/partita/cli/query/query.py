"""`partita query`: questions to a release, free and without limit."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby

from partita.cli.common.arguments import Commands, Options, argument, command, probability
from partita.cli.common.output import Outcome
from partita.errors.errors import InvalidParameter
from partita.public.grammar import parse_question
from partita.public.questions import QueryRunner
from partita.public.records import Text, line_heads


def declare(commands: Commands) -> None:
    """The release, and what to ask it."""
    declared = command(
        commands,
        "query",
        run,
        says="ask a release; each answer has its error, an interval and guaranteed bounds",
        example='partita query people.release.parquet "count where age between 30 and 39" "median of salary"',
    )
    declared.add_argument("release", metavar="RELEASE")
    declared.add_argument(
        "questions", nargs="+", metavar="QUESTION", help="- reads them from stdin, one a line"
    )
    declared.add_argument(
        "--confidence",
        type=probability("confidence"),
        default=0.95,
        metavar="C",
        help="of the interval, which is a model; default: %(default)s",
    )
    declared.add_argument(
        "--beta",
        type=probability("beta"),
        default=0.05,
        metavar="B",
        help="how often the guaranteed bounds may fail; default: %(default)s",
    )


def run(options: Options) -> Outcome:
    """Read every question, then answer them all."""
    texts = list(_texts(options.questions))
    questions = list(map(argument(parse_question), texts))
    from partita.public.file.file import load

    runner = QueryRunner(release=load(options.release), confidence=options.confidence, beta=options.beta)
    answers = [runner.answer(question) for question in questions]
    shown = [each.kind.result.text(each, answer) for each, answer in zip(questions, answers, strict=True)]
    heads = line_heads(options.confidence, options.beta)
    blocks = _blocks(heads, [(str(each), text) for each, text in zip(questions, shown, strict=True)])
    records = [{"asked": text, **answer} for text, answer in zip(texts, answers, strict=True)]
    return Outcome("\n\n".join(blocks), records)


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


def _blocks(heads: Sequence[str], answers: Sequence[tuple[str, Text]]) -> Iterator[str]:
    """Answers of one line together in a table, and a table for each longer one."""
    from partita.public.base.figures import table

    for heading, group in groupby(answers, key=lambda answer: answer[1].heads):
        if heading:
            for question, text in group:
                yield f"{question}\n{table([heading, *text.lines], left=0)}"
        else:
            yield table([heads, *(line for _, text in group for line in text.lines)])
