"""What `partita local` says about questions and estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partita.cli.output import Outcome

if TYPE_CHECKING:
    from partita.local.aggregator import FrequencyAggregator
    from partita.local.mean_aggregator import MeanAggregator
    from partita.local.question import Question

__all__ = ["estimate_said", "question_said"]


def question_said(question: Question, path: str) -> Outcome:
    """What was written, and what one report costs."""
    randomizer = question.randomizer
    text = (
        f"wrote {path}: {question.asks} of {randomizer.size:,} cells by {randomizer.kind}, "
        f"{randomizer.report_bytes} bytes a report\n{question.guarantee}"
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


def estimate_said(collected: Any, top: int | None, confidence: float) -> Outcome:
    """One line for each cell, or the one line of a mean."""
    from partita.local.mean_aggregator import MeanAggregator

    if isinstance(collected, MeanAggregator):
        return _mean_said(collected, confidence)
    return _frequencies_said(collected, top, confidence)


def _mean_said(collected: MeanAggregator, confidence: float) -> Outcome:
    answer = collected.estimate()
    low, high = answer.interval(confidence)
    text = f"mean {answer.value:.6g} ± {answer.error:.3g} ({low:.6g} to {high:.6g}), {collected.n:,} reports"
    return Outcome.of(text, mean=answer.value, error=answer.error, low=low, high=high, reports=collected.n)


def _frequencies_said(collected: FrequencyAggregator, top: int | None, confidence: float) -> Outcome:
    from partita.releases.figures import table

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
    return Outcome(f"{table(rows)}\n{collected.n:,} reports; {collected.guarantee}", records)


def _line(record: dict[str, Any]) -> tuple[str, str, str, str]:
    interval = f"{record['low']:.4f} to {record['high']:.4f}"
    return str(record["label"]), f"{record['frequency']:.4f}", f"{record['error']:.4f}", interval
