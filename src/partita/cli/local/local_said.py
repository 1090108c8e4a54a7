"""What `partita local` says about questions and estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from partita.cli.common.output import Outcome
from partita.errors.errors import InvalidParameter

if TYPE_CHECKING:
    from partita.local.aggregate.aggregator import FrequencyAggregator
    from partita.local.mean.mean_aggregator import MeanAggregator
    from partita.local.question.question import Question
    from partita.local.ranges.range_estimate import RangeAggregator

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
    from partita.local.mean.mean import Mean

    if isinstance(question, Mean):
        return f"mean of numbers from {question.low} to {question.high}"
    return f"{question.asks} of {question.randomizer.size:,} cells"


def estimate_said(
    collected: Any, confidence: float, *, top: int | None = None, between: list[str] | None = None
) -> Outcome:
    """One line for each cell, the one line of a mean or of a share, or one for each quantile."""
    from partita.local.aggregate.aggregator import FrequencyAggregator
    from partita.local.mean.mean_aggregator import MeanAggregator
    from partita.local.ranges.range_estimate import RangeAggregator

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
    from partita.public.base.figures import table

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
    from partita.public.base.figures import table

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
