"""`python -m benchmarks.report`: one run, and from it report.html, report.md, report.json and pictures."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from benchmarks import machine
from benchmarks.report import speed
from benchmarks.report.document import Picture, to_html, to_markdown
from benchmarks.report.environments import ROOT
from benchmarks.report.model import Effort, Failure
from benchmarks.report.peers import PEERS, Peer
from benchmarks.report.questions import QUESTIONS
from benchmarks.report.report import Report
from benchmarks.report.run import Bench, on_terminal
from benchmarks.report.text import compose

LEFT_OUT = "left out of this run"


def main(arguments: Sequence[str]) -> int:
    """Measure, or read what was measured, and write."""
    options = parser().parse_args(arguments)
    if options.render:
        report = Report.load(options.render)
    else:
        report = measure(options.only or list(QUESTIONS), options, arguments)
    write(report, options.out, name="report")
    if options.docs:
        write_page(report, ROOT / "docs")
    print(f"{options.out / 'report.html'}: {len(report.rows)} rows, {len(report.failures)} failures")
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    made.add_argument(
        "--quick", action="store_true", help="few rows, no other library unless named: to see that it runs"
    )
    made.add_argument(
        "--only", action="append", choices=QUESTIONS, metavar="QUESTION", help="may be repeated"
    )
    made.add_argument("--peer", action="append", choices=[peer.worker for peer in PEERS], help="only these")
    made.add_argument("--out", type=Path, default=ROOT / "build/report", help="where the report goes")
    made.add_argument(
        "--environments", type=Path, default=ROOT / "build/peers", help="where peers are installed"
    )
    made.add_argument("--docs", action="store_true", help="write the page of the documentation, too")
    made.add_argument("--render", type=Path, metavar="JSON", help="write a stored run again, measure nothing")
    return made


def measure(
    names: Sequence[str],
    options: argparse.Namespace,
    arguments: Sequence[str],
    *,
    peers: Sequence[Peer] = PEERS,
) -> Report:
    """Every named question, then what is left of speed."""
    start, load = perf_counter(), os.getloadavg()[0]
    effort = Effort(quick=options.quick)
    chosen = [peer for peer in peers if is_chosen(peer, options)]
    bench = Bench.set_up(chosen, options.environments, effort, on_terminal)
    bench.failures.extend(Failure(peer.title, "all", LEFT_OUT) for peer in peers if peer not in chosen)
    rows = [row for name in names for row in bench.rows(QUESTIONS[name])]
    figures = [*speed.noise(bench), *speed.installations(bench, options.environments)]
    return Report(
        command=command(arguments),
        facts={**machine.facts(), "load": [load, os.getloadavg()[0]]},
        minutes=(perf_counter() - start) / 60,
        quick=options.quick,
        rows=rows,
        figures=figures,
        failures=bench.failures,
    )


def command(arguments: Sequence[str]) -> str:
    """As it was typed; the folder of real data is not named."""
    data = "PARTITA_DATA=folder " if os.environ.get("PARTITA_DATA") else ""
    return data + shlex.join(["python", "-m", "benchmarks.report", *arguments])


def is_chosen(peer: Peer, options: argparse.Namespace) -> bool:
    """Those that were named; otherwise all, and in a quick run none."""
    return peer.worker in options.peer if options.peer else not options.quick


def write(report: Report, folder: Path, *, name: str) -> None:
    """HTML with everything in it; Markdown with its pictures beside it; JSON."""
    blocks = compose(report)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.html").write_text(to_html(blocks))
    (folder / f"{name}.md").write_text(to_markdown(blocks))
    (folder / f"{name}.json").write_text(report.to_json())
    for picture in (block for block in blocks if isinstance(block, Picture)):
        (folder / f"{picture.name}.svg").write_text(picture.svg)


def write_page(report: Report, docs: Path) -> None:
    """The page of the documentation, with pictures in a folder of their own."""
    blocks, pictures = compose(report), docs / "pictures/report"
    pictures.mkdir(parents=True, exist_ok=True)
    (docs / "benchmark-report.md").write_text(to_markdown(blocks, pictures="pictures/report/"))
    for picture in (block for block in blocks if isinstance(block, Picture)):
        (pictures / f"{picture.name}.svg").write_text(picture.svg)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
