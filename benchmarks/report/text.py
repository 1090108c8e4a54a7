"""The words and tables of a report, all of them computed from what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.report.document import Block, Heading, Picture, Table, Text
from benchmarks.report.model import Question, Row
from benchmarks.report.peers import PEERS, Peer
from benchmarks.report.plot import dots
from benchmarks.report.questions import QUESTIONS
from benchmarks.report.report import Report
from benchmarks.report.speed import Figure
from benchmarks.report.verdicts import Slower, Verdict, geometric_mean, losses, slower, verdicts

HOW = (
    "All methods get the same rows and questions and the same epsilon, pure, for one row of a person, added "
    "or removed. Groups are disjoint and public, so every group gets all of epsilon. Some libraries promise "
    "a little less than we ask, and keep the advantage: diffprivlib and the MWEM of SmartNoise take the "
    "number of rows as public, and so do our versions of UGrid and AGrid when they choose their tiles; "
    "SmartNoise SQL states a delta of about 1e-15. SmartNoise SQL spends its epsilon on each noisy column, "
    "so it is told half of it for a mean.",
    "An error is the mean distance from the truth over all answers of a release, then the mean over fresh "
    "releases, ± its standard error. Bars in the pictures are two standard errors to each side. Data are "
    "made by the report and are the same in every run; data sets in capitals, wages and diamonds are real "
    "and are only measured where `PARTITA_DATA` names their folder.",
    "Published methods are our own versions with float noise: baselines that protect nobody. Other "
    "libraries run in environments of their own, with settings from their documentation, or the best of a "
    "few where that leaves a choice, found on other rows. Values are whole numbers: a quantile stands for "
    "the cell it lies in. Where a library would be wronged by that its rows are placed within their cells "
    "first. The private quantile of OpenDP weighs rows strictly below against rows strictly above, so "
    "beside a heap it prefers a neighbouring cell, at any epsilon. What Google's quantile tree misses by "
    "hardly depends on epsilon in some sets; why was not looked into.",
    "Seconds are medians over releases of the wall clock, from rows in memory to a release, and from there "
    "to all answers; imports are not in them.",
)


def compose(report: Report) -> list[Block]:
    """The document, from its title to its failures."""
    return [
        Heading(1, "Benchmark report"),
        Text(facts(report)),
        *quick_warning(report),
        Heading(2, "In short"),
        Text(IN_SHORT),
        summary(report),
        Heading(2, "Where we lose"),
        *lost(report),
        *(block for question in QUESTIONS.values() for block in answered(question, report)),
        Heading(2, "Speed"),
        *speed(report),
        Heading(2, "How it was measured"),
        *map(Text, HOW),
        Heading(2, "Who was measured"),
        *settings(),
        Heading(2, "What did not work"),
        *failed(report),
    ]


IN_SHORT = (
    "For each question, our error with defaults over that of the best other method in each setting, an "
    "oracle that knows which one that is: the geometric mean and the worst. A setting is even where the "
    "difference is below two standard errors. In ratios of quantiles an error below one row counts as one."
)


def facts(report: Report) -> str:
    """The command, the day, the machine and the versions."""
    known = report.facts
    versions = ", ".join(f"{name} {known[name]}" for name in ("python", "partita", "numpy"))
    absent = {each.peer for each in report.failures if each.what in ("install", "all")}
    others = "".join(f", {peer.title} {peer.version}" for peer in PEERS if peer.title not in absent)
    began, ended = known["load"]
    return (
        f"`{report.command}`, {known['date']}, {known['cpu']}, {known['cores']} cores; {versions}{others}. "
        f"One run of {report.minutes:.0f} minutes, with installations of what was missing. The run itself "
        f"is a load of about 1; that of the machine was {began:.1f} when it began, {ended:.1f} when it ended."
    )


def quick_warning(report: Report) -> list[Block]:
    said = "This was a quick run with few rows: it shows that everything runs, and no figure means anything."
    return [Text(said)] if report.quick else []


def summary(report: Report) -> Table:
    """One line for each question."""
    head = ["question", "settings", "mean ratio", "worst ratio", "better", "even", "worse"]
    return Table(head, [line for name in QUESTIONS for line in short_of(name, report)])


def short_of(name: str, report: Report) -> Iterator[list[str]]:
    found = list(verdicts(report.of(name)))
    if found:
        ratios = [each.ratio for each in found]
        outcomes = [each.outcome for each in found]
        counts = [str(outcomes.count(outcome)) for outcome in ("better", "even", "worse")]
        figures = [f"{geometric_mean(ratios):.2f}", f"{max(ratios):.2f}"]
        yield [QUESTIONS[name].title, str(len(found)), *figures, *counts]


def lost(report: Report) -> Iterator[Block]:
    """Every setting in which somebody is surely better, and every library that is faster or lighter."""
    yield from lost_accuracy(losses(report.rows))
    yield from lost_time(slower(report.rows))
    yield from lost_weight(report)


def lost_accuracy(found: Sequence[Verdict]) -> Iterator[Block]:
    if not found:
        yield Text(NEVER_WORSE)
        return
    yield Text(WORSE)
    yield Table(
        ["question", "setting", "better", "its error", "ours", "ratio"], [lost_line(each) for each in found]
    )


WORSE = (
    "Computed from the rows. In these settings the error of another method is smaller than ours by more "
    "than two standard errors of the difference."
)
NEVER_WORSE = (
    "In no setting was the error of another method smaller than ours by more than two standard errors."
)


def lost_line(each: Verdict) -> list[str]:
    question = QUESTIONS[each.ours.question].title
    figures = [error(each.best), error(each.ours), f"{each.ratio:.2f}"]
    return [question, each.ours.label, each.best.method, *figures]


def lost_time(found: Sequence[Slower]) -> Iterator[Block]:
    if found:
        yield Text("These libraries release and answer in less time: seconds, geometric means over settings.")
        yield Table(
            ["question", "faster", "its seconds", "ours", "ratio"], [slower_line(each) for each in found]
        )


def slower_line(each: Slower) -> list[str]:
    figures = [f"{each.theirs:.3g}", f"{each.ours:.3g}", f"{each.ratio:.1f}"]
    return [QUESTIONS[each.question].title, each.method, *figures]


def lost_weight(report: Report) -> Iterator[Block]:
    """Libraries that install smaller, or import faster than all of our public names."""
    for table, ours, said in LIGHTER:
        figures = {each.method: each.figure for each in report.figures if each.table == table}
        peers = {each.method for each in report.figures if each.kind == "peer"}
        found = [name for name in figures if name in peers and figures[name] < figures.get(ours, 0.0)]
        if found:
            yield Text(f"{said}: {', '.join(found)}.")


LIGHTER = (
    ("install", "Partita", "Smaller when installed"),
    ("import", "Partita, every public name", "Faster to import than all public names of Partita"),
)


def answered(question: Question, report: Report) -> Iterator[Block]:
    """A question: what is asked, a picture, and all rows."""
    rows = report.of(question.name)
    if not rows:
        return
    yield Heading(2, question.title)
    yield Text(f"{question.about} Error in {question.unit}.")
    alt = f"{question.title}: errors of all methods in each setting, on a logarithmic axis"
    yield Picture(question.name, alt, dots(rows, title=alt, unit=question.unit))
    head = ["setting", "method", "error", "releases", "seconds to release", "to answer"]
    yield Table(head, [line(row) for row in rows])


def line(row: Row) -> list[str]:
    times = [f"{row.releasing:.2g}", f"{row.answering:.2g}"]
    return [row.label, row.method, error(row), str(row.releases), *times]


def error(row: Row) -> str:
    """An error with its standard error."""
    return f"{figure(row.error)} ± {figure(row.standard_error)}"


def figure(value: float) -> str:
    """Three digits, with commas up to a million and powers of ten beyond."""
    if value >= 1e6:
        return f"{value:.2e}".replace("e+0", "e").replace("e+", "e")
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def speed(report: Report) -> Iterator[Block]:
    """Noise, start and weight; the seconds of releases stand with their questions."""
    for table, (said, heading) in SPEED.items():
        figures = [each for each in report.figures if each.table == table]
        if figures:
            yield Text(said)
            yield Table(["library", heading, "note"], [speed_line(each) for each in figures])


SPEED = {
    "noise": ("Laplace noise of scale 20: draws in a second, median ± standard error.", "draws/s"),
    "import": (
        "CPU seconds of a fresh process that imports the library, less those of a bare interpreter: the "
        "median of five. `import partita` loads names when they are used.",
        "CPU seconds",
    ),
    "install": (
        "What pip puts on the disk in a fresh environment, dependencies included and pip left out.",
        "MB",
    ),
}


def speed_line(each: Figure) -> list[str]:
    spread = f" ± {figure(each.spread)}" if each.spread else ""
    return [each.method, f"{figure(each.figure)}{spread}", each.note]


def settings() -> Iterator[Block]:
    """Every method with its settings, question by question."""
    yield Text("Settings of every method; in brackets the keys of `docs/references.md`.")
    yield Table(["question", "method", "settings"], [list(each) for each in all_settings(PEERS)])
    yield Text(
        "PipelineDP is not measured by itself: its quantiles are Google's quantile tree, which is. The "
        "environment of a library is made with pip from these requirements: "
        + "; ".join(f"`{' '.join(peer.requirements)}`" for peer in PEERS)
        + "."
    )


def all_settings(peers: Sequence[Peer]) -> Iterator[tuple[str, str, str]]:
    for question in QUESTIONS.values():
        for each in question.contestants:
            yield question.title, each.name, each.settings
        for peer in peers:
            for offer in peer.offers:
                if offer.question == question.name:
                    yield question.title, offer.title, offer.settings


def failed(report: Report) -> Iterable[Block]:
    """What a peer could not do, and why."""
    if not report.failures:
        return [Text("Everything that was tried was installed and ran.")]
    rows = [[each.peer, each.what, each.reason] for each in report.failures]
    return [Table(["library", "what", "reason"], rows)]
