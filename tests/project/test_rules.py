"""Rules of the structure: class names, importers, and what readers of public files load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from scripts.house import SOURCE, House

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "version-0.1"

SHARED_NAMES = {"Question", "Range", "Rectangles", "Report", "Universe"}
"""Public API in two models: the names of `partita.local` and `partita.pan` beside those of the top level."""

ENTRY_FOLDERS = ("partita.cli.", "partita.service.reading.", "partita.service.steward.")
"""Commands and routes: the command line or one application imports each of their modules."""

MECHANISM_FOLDERS = (
    "partita.public.axis.",
    "partita.public.boxes.",
    "partita.public.sums.",
    "partita.public.workload.",
    "partita.trusted.mechanisms.",
)
"""One file for each mechanism on each side."""

WITH_ONE_IMPORTER = {
    "partita.audit.attacks": "attacks on mechanisms, apart from the engine that runs them",
    "partita.audit.cases_tables": "cases of one family of mechanisms, one file each",
    "partita.audit.custom": "the audit of a mechanism that users write",
    "partita.local.oracle": "a frequency oracle, which is a mechanism",
    "partita.pan.bits": "a mechanism",
    "partita.pan.file": "the file format of sketches",
    "partita.pan.registers": "a mechanism",
    "partita.public.card_registry": "the entry of one registry, which may change when the registry does",
    "partita.public.estimates": "what a page without a server sums, apart from answers",
    "partita.public.file_parquet": "the bytes of a release file, without its meaning",
    "partita.public.measured_kinds": "what each kind measured, loaded if it is exported",
    "partita.public.readings": "which noise answers share, an argument of its own beside the release",
    "partita.public.tables.certain": "guaranteed bounds of boxes, an argument of its own beside the model",
    "partita.public.tables.file": "how a table release is read from a file of anybody",
    "partita.public.tables.synthesis": "synthetic rows of a table, loaded if they are asked for",
    "partita.public.tables.tails": "what a sum may miss beyond the values that are clear",
    "partita.public.tables.values": "values along a column, below what is asked about them",
    "partita.publish.check": "what a steward sees of rows before publishing, and nobody else",
    "partita.publish.plan": "`partita plan`, which loads no data",
    "partita.publish.trials": "questions that a simulation asks, apart from what a plan predicts",
    "partita.service.site.files": "how modules and records become files, apart from what is in them",
    "partita.service.site.write": "`partita site`, which serves nothing",
    "partita.trusted.noise.flips": "the exact draws of permute-and-flip, apart from other laws",
    "partita.trusted.sources.formats": "formats that no domain reads, a list of its own",
    "partita.trusted.sources.postgres": "one file for each kind of source",
    "partita.trusted.sources.spark.wide": "rows of wide tables on Spark, apart from grouped cells",
    "partita.trusted.streams.sliding": "a mechanism",
}
"""Modules that one other imports, and why they are apart."""

TOKENS = {"partita.trusted", "partita.trusted.noise", "partita.trusted.noise.kernel"}
"""All that readers may load of the trusted side: the function that draws a token."""

READ_RELEASES = """
import contextlib, io, sys
from pathlib import Path

import matplotlib
import partita as pt

matplotlib.use("Agg")
folder = Path(sys.argv[1])
release = pt.load(folder / "views.release.parquet")
summed = pt.load(folder / "moments.release.parquet")
asked = pt.load(folder / "queries-beside.release.parquet")
release.measurements("age").to_arrow()
shape = pt.HalfSpace({"age": 1, "wage": -1}, at_most=0)
shown = [
    release.count(), release.count(age=(30, 39)), release.count(age=(30, 39), wage=(5, None)),
    release.count(region=shape), release.counts(age=([0, 18], [17, 64])),
    release.difference({"age": 3}, {"age": 4}), release.quantile("age", 0.5), release.cdf("age", [20, 40]),
    release.histogram("age"), release.histogram("age", "wage", 4), release.slice("age"), release,
    *(getattr(summed, each)("age", visits=(1, 3)) for each in ("sum", "mean", "variance", "std")),
    asked.answers(), asked.answer(0),
]
for each in shown:
    for read in ("interval", "worst", "_repr_html_", "__repr__"):
        getattr(each, read, str)()
release.synthesize(5), release.error(), release.report(), release.citation(), asked.labels()
release.plot("age"), release.plot("age", "wage", bins=5)
release.sql("select count(*), median(age) from release where wage > 5")
release.register(type("Connection", (), {"register": lambda self, name, table: None})())

from partita.cli.main import main

questions = {
    "views": [
        "count where age between 30 and 39", "count where 2*age - wage <= 3", "median of age",
        "cdf of age at 20, 40", "histogram of age in 4 bins", "histogram of age, wage",
        "difference between (age = 3) and (age = 4)", "count by bins(age, 3), bins(wage, 2) order by count",
        "correlation of age, wage", "regression of wage on age",
        "median of wage by bins(age, 2)", "share where wage > 3 or age = 4 by bins(age, 2)",
    ],
    "moments": [
        *(f"{kind} of age" for kind in ("sum", "mean", "variance", "std")),
        *(f"{kind} of age by bins(visits, 2)" for kind in ("sum", "mean")),
    ],
    "queries-beside": ["answers"],
    "log-tree": ["trimmed mean 0.05 of age", "top share 0.1 of age", "gini of age"],
}
from partita.public.grammar import parse_question
from partita.public.questions import KINDS

unstored = {"share", "bounds", "interquartile_range"}  # no earlier file has them
asked_kinds = {parse_question(text).kind.name for texts in questions.values() for text in texts}
assert asked_kinds | unstored == set(KINDS)
for name, texts in questions.items():
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["query", str(folder / f"{name}.release.parquet"), *texts]) == 0
        assert main(["info", str(folder / f"{name}.release.parquet")]) == 0
"""

SERVE = """
import sys
from pathlib import Path

from scripts.house import http_client

ask = http_client(Path(sys.argv[1]))
"""

SERVE_RELEASES = (
    SERVE
    + """
assert ask("/index.json")["releases"]
assert ask("/releases/views.json")["columns"]
assert ask("/releases/views/count", {"where": "age between 30 and 39"})["error"] > 0
assert ask("/releases/views/ask", {"q": "median of age"})["value"] >= 0
assert ask("/releases/views/counts", None, {"where": {"age": {"low": [1], "high": [9]}}})["values"]
"""
)

SERVE_STREAMS = (
    SERVE
    + """
for name in ("counter", "family", "sliding"):
    assert ask(f"/streams/{name}.json")
"""
)

LIST_TRUSTED = """
print(*sorted(name for name in sys.modules if name.split(".")[:2] == ["partita", "trusted"]), sep="\\n")
"""


def loaded_by(script: str) -> set[str]:
    """The trusted modules that a script loads in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", script + LIST_TRUSTED, str(FIXTURES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_a_public_class_name_exists_once() -> None:
    """Except for names that are public API in two models, and those are all needed."""
    assert set(House.read(SOURCE).repeated_classes()) == SHARED_NAMES


def test_a_module_has_two_importers_or_a_reason() -> None:
    """Mechanisms, commands, routes and entry points may have one; so may the listed ones, and no others."""
    single = {
        name
        for name in House.read(SOURCE).single_importers()
        if not name.startswith((*ENTRY_FOLDERS, *MECHANISM_FOLDERS))
    }

    assert single == set(WITH_ONE_IMPORTER)


def test_readers_of_a_release_load_nothing_trusted() -> None:
    """Load, every kind of question, plots, reports, HTML and `partita query` need neither noise nor rows."""
    assert loaded_by(READ_RELEASES) <= TOKENS


def test_the_reading_service_of_releases_loads_the_token_function_only() -> None:
    """Requests for the catalogue, a release and its answers."""
    assert loaded_by(SERVE_RELEASES) <= TOKENS


def test_the_reading_service_of_streams_loads_the_token_function_only() -> None:
    """Requests for the outputs of a counter, of a family and of a window."""
    assert loaded_by(SERVE_STREAMS) <= TOKENS
