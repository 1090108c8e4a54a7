"""A whole run, as it is stored: rows, figures, failures, and what they were measured on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.report.model import Failure, Row
from benchmarks.report.speed import Figure


@dataclass(frozen=True, kw_only=True)
class Report:
    """What one run found."""

    command: str
    facts: dict[str, Any]
    minutes: float
    quick: bool
    rows: Sequence[Row]
    figures: Sequence[Figure]
    failures: Sequence[Failure]

    def of(self, question: str) -> list[Row]:
        """The rows of one question, in the order in which they were measured."""
        return [row for row in self.rows if row.question == question]

    def to_json(self) -> str:
        """Everything, as JSON."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def load(cls, path: Path) -> Report:
        """A report that was stored."""
        stored = json.loads(path.read_text())
        kinds = {"rows": Row, "figures": Figure, "failures": Failure}
        return cls(**{name: remade(kinds.get(name), value) for name, value in stored.items()})


def remade(kind: Any, value: Any) -> Any:
    """Lists of what they were before they were stored; other values as they are."""
    return value if kind is None else [kind(**each) for each in value]
