"""All questions of the report, in their order."""

from __future__ import annotations

from benchmarks.report.boxes import BOXES
from benchmarks.report.local_model import FREQUENCIES, LOCAL_RANGES
from benchmarks.report.quantiles import DECILES_QUESTION, MEDIAN_QUESTION
from benchmarks.report.ranges import RANGES
from benchmarks.report.streams import COUNTERS
from benchmarks.report.sums import MEANS, SUMS

QUESTIONS = {
    question.name: question
    for question in (
        RANGES,
        DECILES_QUESTION,
        MEDIAN_QUESTION,
        BOXES,
        SUMS,
        MEANS,
        COUNTERS,
        FREQUENCIES,
        LOCAL_RANGES,
    )
}
