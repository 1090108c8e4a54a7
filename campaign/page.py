"""Write what the last run found into docs/reliability.md: python -m campaign.page [--check]

The figures are those of campaign/last_run.json: python -m campaign --record campaign/last_run.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from campaign.__main__ import PARTS

ROOT: Final = Path(__file__).parents[1]
RECORD: Final = ROOT / "campaign" / "last_run.json"
PAGE: Final = ROOT / "docs" / "reliability.md"
MARK: Final = "<!-- last run -->"


def main(arguments: Sequence[str]) -> int:
    before = PAGE.read_text()
    after = written(before, json.loads(RECORD.read_text()))
    if "--check" in arguments:
        return int(before != after)
    PAGE.write_text(after)
    return 0


def written(text: str, record: Mapping[str, Any]) -> str:
    """The page with the tables of a record between its marks."""
    before, _, after = text.split(MARK)
    return MARK.join([before, "\n".join(["\n", *_totals(record), "", *_spreads(record), "\n"]), after])


def _totals(record: Mapping[str, Any]) -> Iterator[str]:
    yield from ("| part | a case is | tried | violations | took | day, commit |", "|---|---|---|---|---|---|")
    for part in PARTS:
        line = record[part]
        yield (
            f"| `{part}` | {line['case']} | {line['cases']:,} | {len(line['violations'])} "
            f"| {_took(line['seconds'])} | {line['date']}, {line['commit']} |"
        )
    yield "\nOn {cores} cores ({cpu}), Python {python}, NumPy {numpy}.".format(**record[PARTS[0]])


def _took(seconds: int | None) -> str:
    """Minutes; a part whose cases were tried one by one, at different times, has none."""
    return "one by one" if seconds is None else f"{seconds / 60:.0f} min"


def _spreads(record: Mapping[str, Any]) -> Iterator[str]:
    """How the cases of each part were spread."""
    for part in PARTS:
        spread = ", ".join(f"{kind} {count:,}" for kind, count in record[part]["spread"].items())
        yield f"- **{part}**: {spread}."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
