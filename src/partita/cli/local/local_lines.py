"""Reports as they come to a server: one JSON object in each line of some files, not all of them sound."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from partita.errors.checks import check_data
from partita.errors.errors import InvalidData, SourceError

if TYPE_CHECKING:
    from partita.local.aggregate.aggregator import Aggregator
    from partita.local.device import Report


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
