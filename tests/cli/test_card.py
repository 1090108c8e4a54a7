"""`partita card`: papers on stdout, in files and as JSON, and what it refuses."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Final

import pytest

from partita.audit.engine import audit
from partita.cli import main
from partita.cli.card import _FILES
from partita.public.card import PAPERS
from tests.docs.fences import commands, fences

from .conftest import Run

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "papers-for-a-review-board.md"
OUTPUTS: Final = Path(__file__).resolve().parents[1] / "fixtures" / "version-0.1" / "counter.outputs"


@pytest.fixture(scope="module")
def drawer(shelf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases that a ledger paid for, and an audit report about their mechanism, made once."""
    drawer = tmp_path_factory.mktemp("drawer")
    ledger = ("--ledger", str(drawer / "budget.db"))
    assert main(["ledger", "open", "people", "--epsilon", "5", *ledger]) == 0
    spec = ("--spec", str(shelf / "release.toml"), "--view", "age", "--mechanism", "histogram")
    for name, epsilon in (("first", "1"), ("second", "2")):
        made = ("-o", str(drawer / f"{name}.release.parquet"), "--epsilon", epsilon, "--dataset", "people")
        assert main(["publish", str(shelf / "people.parquet"), *spec, *made, *ledger]) == 0
    report = audit(only=["HistogramCounts"], depth="quick").record()
    (drawer / "audit.json").write_text(json.dumps(report))
    return drawer


@pytest.fixture
def paid(drawer: Path, folder: Path) -> Path:
    """The second release in the working directory, its ledger and the report beside it."""
    shutil.copytree(drawer, folder, dirs_exist_ok=True)
    return Path("second.release.parquet")


@pytest.fixture
def report(paid: Path) -> Path:
    """The audit report."""
    return Path("audit.json")


def test_all_papers_are_markdown(run: Run, release: Path) -> None:
    """Under one front matter, in their order; each alone with --part."""
    done = run("card", release)

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("---\npretty_name: ")
    assert re.findall(r"^# ([\w -]+):", done.out, re.MULTILINE) == list(PAPERS.values())
    for paper in PAPERS:
        assert run("card", release, "--part", paper).out.strip() in done.out


def test_names_are_options(run: Run, release: Path) -> None:
    """Each name is one; a wrong one is a usage error that says what to do."""
    given = {"title": "T", "organization": "O", "contact": "C", "author": "A", "license": "L", "region": "R"}
    options = [word for name, text in given.items() for word in (f"--{name}", f"{text}xyz")]
    out = run("card", release, *options, "--organization-type", "Industry", "--sector", "Energy").out

    assert [text for text in given.values() if f"{text}xyz" not in out] == []
    assert re.findall(r"\[[a-z ]+\]", out) == []
    for wrong in (("--sector", "Space"), ("--title", ""), ("--contact", "a\nb")):
        done = run("card", release, *wrong)
        assert (done.code, done.out) == (2, "")
        assert f"{wrong[0][2:]} must be" in done.err


def test_json_is_the_same_content(run: Run, paid: Path, report: Path) -> None:
    """One object, and it is what card.json holds."""
    options = ("--ledger", "budget.db", "--audit", report)
    [record] = run("card", paid, *options, "--json").records
    run("card", paid, *options, "-o", "papers")

    assert json.loads(Path("papers/card.json").read_text()) == record
    assert record["budget"]["of_this_release"] == [2]
    assert record["budget"]["left"] == {"epsilon": "2", "delta": "0"}
    assert [each["spent"]["epsilon"] for each in record["budget"]["debits"]] == ["1", "3"]
    assert record["audit"]["mechanisms"][0]["tested_as"] == "HistogramCounts"
    assert len(record["audit"]["sha256"]) == 64


def test_files_are_written_once(run: Run, release: Path) -> None:
    """All that were asked for or none; --force replaces them, and nothing else in the folder."""
    done = run("card", release, "-o", "papers", "--json")
    others = Path("papers/notes.txt")
    others.write_text("mine")

    assert done.records == [{"path": "papers", "files": list(_FILES[None])}]
    assert {path.name for path in Path("papers").iterdir()} == {*_FILES[None], "notes.txt"}
    again = run("card", release, "-o", "papers", "--title", "New")
    assert again.code == 1
    assert "--force" in again.err
    assert "New" not in Path("papers/README.md").read_text()
    assert run("card", release, "-o", "papers", "--title", "New", "--force").code == 0
    assert "New" in Path("papers/README.md").read_text()
    assert others.read_text() == "mine"
    assert run("card", release, "-o", "papers/README.md").code == 1
    assert run("card", release, "-o", "part", "--part", "nist").code == 0
    assert [path.name for path in Path("part").iterdir()] == ["nist-800-226.md"]


def test_no_place_on_this_machine_is_named(run: Run, paid: Path, report: Path) -> None:
    """Neither the folder nor the names of the files that were read."""
    out = run(
        "card", paid.absolute(), "--ledger", Path("budget.db").absolute(), "--audit", report.absolute()
    ).out

    assert str(Path.cwd()) not in out
    assert [name for name in ("budget.db", "audit.json", "second.release") if name in out] == []


def test_the_ledger_is_that_of_the_release(run: Run, paid: Path, release: Path) -> None:
    """Exit code 3 if it does not know the dataset, 1 if it is none or did not pay, and nothing is written."""
    run("ledger", "open", "others", "--epsilon", 5, "--ledger", "others.db")
    run("ledger", "open", "people", "--epsilon", 5, "--ledger", "empty.db")

    assert "2 (this release)" in run("card", paid, "--ledger", "budget.db").out
    for ledger, code, said in (
        ("others.db", 3, "people"),
        ("empty.db", 1, "must have the debit of this release"),
        ("missing.db", 1, "does not exist"),
        (str(paid), 1, "ledger"),
    ):
        done = run("card", paid, "--ledger", ledger)
        assert (done.code, done.out) == (code, "")
        assert said in done.err
    assert not Path("missing.db").exists()
    unnamed = run("card", release, "--ledger", "budget.db")
    assert unnamed.code == 1
    assert "which names none" in unnamed.err


def test_a_ledger_in_rho_is_stated_in_rho(run: Run, people: Path, spec: Path) -> None:
    """Charges and what is left as the ledger has them, and what was spent as epsilon, too."""
    run("ledger", "open", "people", "--rho", 1)
    budget = ("--rho", "1/8", "--ledger", "budget.db", "--dataset", "people")
    made = run("publish", people, "--spec", spec, "--view", "age", *budget, "-o", "rho.release.parquet")
    options = ("rho.release.parquet", "--ledger", "budget.db")
    out, [record] = run("card", *options).out, run("card", *options, "--json").records

    assert made.code == 0
    assert "| rho 1/8 | rho 1/8 | done |" in out
    assert "rho 1/8 (epsilon 3.059 at delta 1e-9) are spent and rho 7/8 are left" in out
    assert record["budget"]["left"] == {"rho": "7/8"}
    assert record["registry"]["deployment"]["privacy_loss"]["privacy_parameters"]["rho"] == 0.125


def test_the_ledger_is_not_changed(run: Run, paid: Path) -> None:
    """A card looks and does not spend."""
    before = run("ledger", "entries", "people", "--json").out
    run("card", paid, "--ledger", "budget.db")

    assert run("ledger", "entries", "people", "--json").out == before


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"verdict": "NO VIOLATION FOUND"}', "\xff", "[" * 10**5]
)
def test_what_is_no_report_is_refused(run: Run, release: Path, content: str) -> None:
    """A typed error and nothing on stdout."""
    Path("audit.json").write_text(content, encoding="latin-1")
    done = run("card", release, "--audit", "audit.json")

    assert (done.code, done.out) == (1, "")
    assert "audit must be a report of `partita audit --json`" in done.err


def test_a_report_that_is_missing_is_refused(run: Run, release: Path) -> None:
    """With the path that was given."""
    assert "got 'missing.json'; check the path" in run("card", release, "--audit", "missing.json").err
    assert run("card", release, "--audit", ".").code == 1


def test_an_audit_can_be_run(run: Run, paid: Path, report: Path) -> None:
    """Of the mechanisms of the release alone; it takes no report beside it."""
    [record] = run("card", paid, "--run-audit", "quick", "--json").records

    assert record["audit"]["context"]["command"] == "partita audit --depth quick --only HistogramCounts"
    assert record["audit"]["verdict"] == "no violation found"
    assert record["audit"]["pairs"] > 0
    assert run("card", paid, "--run-audit", "quick", "--audit", report).code == 2


def test_signatures_are_stated(run: Run, release: Path) -> None:
    """Not signed, not checked, checked; another key is refused."""
    run("keygen")
    run("keygen", "--private", "other.pem", "--public", "other.pub")
    assert "the file is not signed" in run("card", release).out
    assert run("card", release, "--key", "public.pem").code == 1
    run("sign", release, "--key", "private.pem")

    assert "**not checked**" in run("card", release).out
    assert "The signature was checked" in run("card", release, "--key", "public.pem").out
    assert run("card", release, "--key", "other.pub").code == 1


def test_other_files_have_no_card(run: Run, folder: Path) -> None:
    """Outputs of a counter, a table, a file that is missing."""
    Path("visits.outputs").write_bytes(OUTPUTS.read_bytes())
    Path("text.parquet").write_text("text")
    for path, said in (
        ("visits.outputs", "stream info"),
        ("text.parquet", "Parquet"),
        ("no.parquet", "path"),
    ):
        done = run("card", path)
        assert (done.code, done.out) == (1, "")
        assert said in done.err


@pytest.mark.thorough
def test_the_page_shows_what_the_command_writes(run: Run, folder: Path) -> None:
    """The three papers on the page are those of its own commands, but for numbers, which noise makes."""
    blocks = list(fences(PAGE.read_text()))
    shown = [block.text.strip() for block in blocks if block.language == "text"]
    [made, *_] = [block.text for block in blocks if block.language == "python"]
    exec(compile(made, str(PAGE), "exec"), {})
    lines = [line for block in blocks if block.language == "sh" for line in commands(block.text)]
    for line in lines:
        program, *arguments = shlex.split(line.partition(" > ")[0])
        assert program == "partita"
        assert run(*arguments).code == 0, line
        if arguments[0] == "card" and "--json" not in arguments:
            names = [word for word in arguments[1:] if word not in ("-o", "papers")]

    written = {name: Path("papers", name).read_text().strip() for name in ("registry.md", "nist-800-226.md")}
    assert list(map(without_numbers, shown)) == [
        without_numbers(text) for text in (Path("papers/README.md").read_text().strip(), *written.values())
    ]
    assert without_numbers(run("card", *names, "--part", "nist").out.strip()) == without_numbers(shown[2])


def without_numbers(text: str) -> str:
    """Digests, then numbers and what separates them, each as one sign; one of something reads like many."""
    text = re.sub(r"\b[0-9a-f]{64}\b", "#", text)
    text = re.sub(r"[0-9][0-9.,/^]*", "#", text)
    return re.sub(r"(CPython|Linux|partita #, numpy).*", r"\1", text)
