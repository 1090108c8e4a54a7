"""The report says what was measured: of us, of others, and of those that failed."""

import ast
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy.agrid import agrid
from benchmarks.accuracy.boxes_queries import BoxQueries, plain_axes
from benchmarks.peers import worker
from benchmarks.report.__main__ import main, write
from benchmarks.report.environments import ROOT, Environment, NotInstalled, environment, last_line
from benchmarks.report.model import Effort, Failure, Kind, Row
from benchmarks.report.peers import PEERS, Offer, Peer
from benchmarks.report.quantiles import rank_miss
from benchmarks.report.questions import QUESTIONS
from benchmarks.report.report import Report
from benchmarks.report.run import Bench
from benchmarks.report.speed import Figure
from benchmarks.report.verdicts import losses, slower, verdicts
from partita import Points
from tests.benchmarks.fake_peer import OFF_BY

QUICK = Effort(quick=True)


def fake(*methods: str) -> Peer:
    """A peer whose worker lies beside this test."""
    offers = tuple(
        Offer(question="ranges", method=name, title=f"fake {name}", settings="") for name in methods
    )
    requirements = ("fake==1.0",)
    return Peer(
        worker="fake_peer",
        title="Fake",
        requirements=requirements,
        imports="",
        offers=offers,
        workers="tests.benchmarks",
    )


def rows_and_failures(peer: Peer) -> tuple[list[Row], list[Failure]]:
    """The rows of one question, with a peer that runs in the environment of this test."""
    bench = Bench(QUICK, {peer.worker: (peer, Environment(Path(sys.prefix)))})
    return list(bench.rows(replace(QUESTIONS["ranges"], contestants=()))), bench.failures


def row(method: str, error: float, kind: Kind = "peer", **changes: object) -> Row:
    """A row with an error of that size, known to a hundredth of it."""
    made = Row(
        question="ranges",
        data="salaries",
        epsilon="1",
        method=method,
        kind=kind,
        error=error,
        standard_error=error / 100,
        releases=5,
        releasing=1.0,
        answering=1.0,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_a_peer_is_measured_in_its_own_process() -> None:
    """A worker that is off by three in every answer has an error of three, without doubt."""
    (found,), failures = rows_and_failures(fake("constant"))

    assert (found.method, found.kind, found.error, found.standard_error) == (
        "fake constant",
        "peer",
        OFF_BY,
        0,
    )
    assert failures == []


def test_a_peer_that_fails_is_on_record_and_stops_nobody() -> None:
    """One that raises and one without numbers are reported with the reason; the third is measured."""
    rows, failures = rows_and_failures(fake("broken", "silent", "constant"))

    assert [found.method for found in rows] == ["fake constant"]
    assert [each.reason for each in failures] == [
        "ValueError: the library refuses",
        "answers that are not numbers",
    ]
    assert "fake broken" in failures[0].what


def test_a_peer_that_is_not_installed_is_on_record(tmp_path: Path) -> None:
    """A quick run makes no environment, and says of every library that lacks one that it does."""
    bench = Bench.set_up([fake("constant")], tmp_path, QUICK, lambda text: None)

    assert (bench.peers, [each.what for each in bench.failures]) == ({}, ["install"])


def test_an_environment_is_kept_while_its_requirements_are(tmp_path: Path) -> None:
    """An environment with the same requirements is used as it is; with others it is not."""
    (tmp_path / "requirements.txt").write_text("fake==1.0")

    assert environment(tmp_path, ["fake==1.0"], install=False) == Environment(tmp_path)
    with pytest.raises(NotInstalled, match="not installed"):
        environment(tmp_path, ["fake==1.1"], install=False)


def test_a_reason_is_one_line_without_the_folder() -> None:
    """Of pip the first error counts, of a traceback the last line; neither tells where the project lies."""
    assert last_line(f"note\nERROR: no {ROOT}/x\nERROR: more\n") == "ERROR: no ./x"
    assert last_line("Traceback\n  File\nKeyError: 1\n\n") == "KeyError: 1"


def test_where_we_lose_is_computed() -> None:
    """A setting is lost exactly if the best other method is better by more than two standard errors."""
    ours = row("Partita", 10.0, "ours")

    assert [each.outcome for each in verdicts([ours, row("a", 9.0), row("b", 30.0)])] == ["worse"]
    assert [each.outcome for each in verdicts([ours, row("a", 9.9)])] == ["even"]
    assert [each.outcome for each in verdicts([ours, row("a", 11.0, "paper")])] == ["better"]
    assert [each.best.method for each in losses([ours, row("a", 9.0), row("b", 8.0)])] == ["b"]


def test_variants_of_ours_do_not_help_us() -> None:
    """What is judged is the library with its defaults, against others only."""
    rows = [row("Partita", 10.0, "ours"), row("Partita, tuned", 1.0, "ours"), row("a", 5.0)]

    assert [each.ratio for each in losses(rows)] == [2.0]


def test_who_is_faster_is_computed() -> None:
    """Libraries that take less time are listed by how much, slower ones and papers are not."""
    ours = row("Partita", 10.0, "ours")
    rows = [
        ours,
        row("fast", 10.0, releasing=0.1, answering=0.1),
        row("slow", 10.0, releasing=5.0),
        row("paper", 10.0, "paper", releasing=0.0),
    ]

    assert [(each.method, round(each.ratio)) for each in slower(rows)] == [("fast", 10)]


def test_a_quantile_in_a_heap_is_right() -> None:
    """Any place in a cell whose rows include the wanted rank is right; beyond it, the rows between count."""
    problem = {"values": np.array([1, 5, 5, 5, 9, 9, 9, 9, 9, 9]), "alphas": np.array([0.3])}

    assert [rank_miss(problem, np.array([value])) for value in (5, 5.9, 1, 7, 9)] == [0, 0, 2, 1, 1]


def test_every_offer_names_a_question_and_a_method() -> None:
    """What the table of peers promises, a worker has, and pins a version of."""
    for peer in PEERS:
        methods = worker_methods(peer)
        assert {offer.question for offer in peer.offers} <= set(QUESTIONS)
        assert {offer.method for offer in peer.offers} <= methods
        assert not peer.noise or "noise" in methods
        assert all("==" in requirement for requirement in peer.requirements)


def worker_methods(peer: Peer) -> set[str]:
    """The keys of METHODS in a worker, whose library need not be here."""
    tree = ast.parse((ROOT / "benchmarks/peers" / f"{peer.worker}.py").read_text())
    (found,) = (node.value for node in tree.body if isinstance(node, ast.Assign) and named(node) == "METHODS")
    assert isinstance(found, ast.Dict)
    return {key.value for key in found.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}


def named(node: ast.Assign) -> str:
    target = node.targets[0]
    return target.id if isinstance(target, ast.Name) else ""


def test_agrid_is_right_almost_without_noise() -> None:
    """With a huge epsilon AGrid answers boxes of few cells with the truth."""
    rng = np.random.default_rng(5)
    points = Points.from_rows(rng.integers(0, 16, (500, 2)), axes=plain_axes([16, 16]))
    ends = np.sort(rng.integers(0, 16, (40, 2, 2), dtype=np.uint64), axis=1)
    boxes = BoxQueries(ends[:, 0], ends[:, 1])

    answers = agrid(points, "1000000000")(boxes.lows, boxes.highs)

    np.testing.assert_allclose(answers, boxes.truth(points), atol=1e-4)


def test_sums_of_cells_are_what_they_say() -> None:
    """The helpers of the workers count ranges and boxes, both ends included."""
    cells = np.arange(12.0).reshape(3, 4)
    lows, highs = np.array([[0, 1]]), np.array([[1, 2]])

    assert worker.between(cells.ravel(), np.array([2]), np.array([4])) == [2 + 3 + 4]
    assert worker.boxes(cells, lows, highs) == [1 + 2 + 5 + 6]


def report_of(*rows: Row) -> Report:
    facts = {
        "date": "a day",
        "cpu": "a machine",
        "cores": 2,
        "python": "3",
        "partita": "0",
        "numpy": "2",
        "load": [1.0, 2.0],
    }
    weight = Figure(table="install", method="Partita", kind="ours", figure=99.0, spread=0.0, note="<>&")
    return Report(
        command="python -m benchmarks.report",
        facts=facts,
        minutes=1.0,
        quick=False,
        rows=rows,
        figures=[weight],
        failures=[Failure("Fake", "install", "no <wheel> | here")],
    )


def test_a_report_is_written_in_three_forms(tmp_path: Path) -> None:
    """HTML has no script and asks for nothing, both texts show a loss and a failure, JSON comes back."""
    report = report_of(row("Partita", 20.0, "ours"), row("better & cheaper", 10.0))

    write(report, tmp_path, name="report")

    html, markdown = ((tmp_path / f"report.{form}").read_text() for form in ("html", "md"))
    assert not re.search(r"<script|<link|<img|src=|href=|url\(|@import", html)
    assert "better &amp; cheaper" in html
    assert "no &lt;wheel&gt; | here" in html
    assert (
        "| Counts of ranges | salaries, epsilon 1 | better & cheaper | 10 ± 0.1 | 20 ± 0.2 | 2.00 |"
        in markdown
    )
    assert "| Fake | install | no <wheel> / here |" in markdown
    assert Report.load(tmp_path / "report.json").to_json() == report.to_json()
    assert (tmp_path / "ranges.svg").read_text() in html


@pytest.mark.docs
def test_a_quick_run_measures_every_question(tmp_path: Path) -> None:
    """`--quick` writes our rows for every question, and names every library that it left out."""
    assert main(["--quick", "--out", str(tmp_path), "--environments", str(tmp_path / "none")]) == 0

    stored = json.loads((tmp_path / "report.json").read_text())

    ours = {each["question"] for each in stored["rows"] if each["method"] == "Partita"}
    assert ours == set(QUESTIONS)
    assert {each["peer"] for each in stored["failures"]} >= {peer.title for peer in PEERS}
