"""`partita plan` and `partita publish`: what is promised, what it costs, and what a mistake costs."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest

import partita as pt
from partita.public.file import load
from tests.seams import PIPELINE

from .conftest import CANARY, SPEC, Run


def left(run: Run, dataset: str = "people") -> str:
    """The epsilon that a dataset has left, as exact text."""
    [record] = run("ledger", "balance", dataset, "--json").records
    return str(record["left"]["epsilon"])


def test_publish_prints_a_receipt(run: Run, people: Path, spec: Path) -> None:
    """What was promised, of which columns, who paid, and where the release is."""
    run("ledger", "open", "people", "--epsilon", 5)

    done = run(
        *("publish", people, "--spec", spec, "-o", "out.parquet", "--epsilon", "1/3"),
        *("--ledger", "budget.db", "--dataset", "people"),
    )

    assert (done.code, done.err) == (0, "")
    assert "epsilon 1/3, pure, for adding or removing one row" in done.out
    assert "wage, by tree" in done.out
    assert "wage, Real(0, 1000, step='0.05')" in done.out
    assert "which has epsilon 14/3 left" in done.out
    assert "out.parquet" in done.out


def test_publish_as_json(run: Run, people: Path, spec: Path) -> None:
    """The receipt as an object, with exact numbers as text."""
    [record] = run("publish", people, "--spec", spec, "-o", "out.parquet", "--json").records

    assert record["path"] == "out.parquet"
    assert record["guarantee"]["epsilon"] == "4"
    assert [each["column"] for each in record["columns"]] == ["age", "wage", "hired", "region"]
    assert (record["ledger"], record["left"]) == (None, None)


def test_flags_count_for_more_than_the_spec(run: Run, people: Path, spec: Path) -> None:
    """Every part of the request can be changed without touching the file."""
    done = run(
        *("publish", people, "--spec", spec, "-o", "out.parquet", "--epsilon", 2, "--view", "age"),
        *("--person", "id", "--contributions", 3, "--neighbors", "change-one", "--mechanism", "histogram"),
        *("--column", "age:integer(10,19)"),
    )
    release = load("out.parquet")

    assert done.code == 0
    assert (release.columns, release.views[0].mechanism) == (("age",), "histogram")
    assert release.views[0].domains[0].size == 10
    assert str(release.guarantee) == "epsilon 2, pure, for changing one person of at most 3 rows"


def test_publish_needs_no_spec(run: Run, people: Path) -> None:
    """Columns can be described on the command line."""
    done = run(
        *("publish", people, "--column", "age:integer(0,120)", "--column", "region:category(north,south)"),
        *("--epsilon", 1, "--mechanism", "grid", "-o", "out.parquet"),
    )

    assert done.code == 0
    assert load("out.parquet").columns == ("age", "region")


def test_shares_of_the_spec_are_used(run: Run, people: Path, spec: Path) -> None:
    """A view that gets more of epsilon has less noise."""
    text = SPEC.replace('epsilon = "4"', 'epsilon = 4\nshares = ["1/8", "5/8", "1/8", "1/8"]')
    spec.write_text(text)
    run("publish", people, "--spec", spec, "-o", "out.parquet")

    parts = [view.guarantee for view in load("out.parquet").views]

    assert [part and str(part.epsilon) for part in parts] == ["1/2", "5/2", "1/2", "1/2"]


def test_a_csv_file_is_read_as_the_spec_says(run: Run, folder: Path) -> None:
    """Delimiter and header are declared, never guessed."""
    Path("people.csv").write_text("1;30\n2;31\n")
    Path("r.toml").write_text(
        '[columns.age]\ntype = "integer"\nlow = 0\nhigh = 99\n'
        '[release]\nepsilon = 1000\nmechanism = "histogram"\n[csv]\ndelimiter = ";"\nheader = ["id", "age"]\n'
    )

    done = run("publish", "people.csv", "--spec", "r.toml", "-o", "out.parquet")
    [record] = run("query", "out.parquet", "count where age between 30 and 31", "--json").records

    assert "warning: epsilon 1000 is above 5" in done.err
    assert math.isclose(record["value"], 2, abs_tol=0.5)


def test_an_overspent_budget_is_refused(run: Run, people: Path, spec: Path) -> None:
    """Exit code 3; nothing is debited and nothing is written."""
    run("ledger", "open", "people", "--epsilon", 1)

    done = run(
        "publish", people, "--spec", spec, "-o", "out.parquet", "--ledger", "budget.db", "--dataset", "people"
    )

    assert (done.code, done.out) == (3, "")
    assert "spent epsilon 0 of epsilon 1, asked epsilon 4, left epsilon 1" in done.err
    assert not Path("out.parquet").exists()
    assert left(run) == "1"


def test_a_dataset_that_nobody_opened_is_refused(run: Run, people: Path, spec: Path) -> None:
    """Exit code 3, and the steward is named as the one to ask."""
    run("ledger", "open", "people", "--epsilon", 9)

    done = run(
        "publish", people, "--spec", spec, "-o", "out.parquet", "--ledger", "budget.db", "--dataset", "poeple"
    )

    assert done.code == 3
    assert "the steward opens it first" in done.err


def test_a_key_charges_once(run: Run, people: Path, spec: Path) -> None:
    """The same command with the same key gives the stored release again; another request is refused."""
    run("ledger", "open", "people", "--epsilon", 10)
    command = (
        "publish",
        people,
        "--spec",
        spec,
        "--ledger",
        "budget.db",
        "--dataset",
        "people",
        "--key",
        "k1",
    )

    first = run(*command, "-o", "out.parquet")
    stored = Path("out.parquet").read_bytes()
    again = run(*command, "-o", "out.parquet")
    other = run(*command, "-o", "other.parquet", "--epsilon", 1)

    assert (first.code, again.code, other.code) == (0, 0, 3)
    assert Path("out.parquet").read_bytes() == stored
    assert not Path("other.parquet").exists()
    assert left(run) == "6"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("missing.parquet",), "does not exist"),
        ((".",), "is a directory"),
        (("empty.parquet",), "must be a whole Parquet file"),
        (("people.parquet", "--view", "aeg"), "did you mean 'age'?"),
        (("people.parquet", "--column", "aeg:integer(0,9)", "--view", "aeg"), "did you mean 'age'?"),
        (("people.parquet", "--mechanism", "tre"), "did you mean 'tree'?"),
        (("people.parquet", "--contributions", "2"), "needs person"),
        (("people.parquet", "-o", "no/folder/out.parquet"), "error: "),
        (("people.parquet", "-o", "release.toml"), "error: "),
    ],
)
def test_what_cannot_be_published_costs_nothing(
    run: Run, people: Path, spec: Path, arguments: tuple[str, ...], said: str
) -> None:
    """Exit code 1, a fix, no debit, no file, and none of the values in the message."""
    Path("empty.parquet").touch()
    run("ledger", "open", "people", "--epsilon", 10)
    before = {path.name for path in people.parent.iterdir()}

    done = run(
        *("publish", "-o", "out.parquet", "--spec", spec, "--ledger", "budget.db", "--dataset", "people"),
        *arguments,
    )

    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert CANARY not in done.err
    assert left(run) == "10"
    assert {path.name for path in people.parent.iterdir()} == before
    assert spec.read_text() == SPEC


def test_an_unknown_column_of_ids_suggests_the_nearest(run: Run, people: Path, spec: Path) -> None:
    """It is looked for in the data, whose column names are public."""
    done = run("publish", people, "--spec", spec, "-o", "out.parquet", "--person", "idd")

    assert done.code == 1
    assert "did you mean 'id'?" in done.err


# --- plan -------------------------------------------------------------------------------------


def test_plan_touches_no_data(run: Run, folder: Path, spec: Path) -> None:
    """There is none in this folder, and the plan says what to expect all the same."""
    done = run("plan", "--spec", spec, "--rows", 1000)

    assert done.code == 0
    assert "epsilon 4" in done.out
    assert "No data was touched" in done.out


def test_plan_as_json(run: Run, folder: Path, spec: Path) -> None:
    """One line for each column, step and guess of the number of rows."""
    [record] = run("plan", "--spec", spec, "--rows", 1_000, "--rows", 10_000, "--step", 1, "--json").records

    assert {line["rows"] for line in record["expected"]} == {1_000, 10_000}
    assert {line["step"] for line in record["expected"] if line["columns"] == ["wage"]} == {"0.05", "1"}


def test_a_plan_can_be_tried_on_public_data(run: Run, people: Path, spec: Path) -> None:
    """The result says that this is for public data only."""
    done = run("plan", "--spec", spec, "--simulate", people)
    [record] = run("plan", "--spec", spec, "--simulate", people, "--json").records

    assert "PUBLIC" in done.out
    assert [line["columns"] for line in record["measured"]][::2] == [["age"], ["wage"], ["hired"], ["region"]]


def test_a_plan_says_that_no_data_was_touched_only_where_none_was(run: Run, people: Path, spec: Path) -> None:
    """A simulation reads a file."""
    said = "No data was touched."

    assert said in run("plan", "--spec", spec).out
    assert said not in run("plan", "--spec", spec, "--simulate", people).out


def test_a_dataset_without_a_ledger_is_a_usage_error(run: Run, people: Path, spec: Path) -> None:
    """Who names a budget wants it to pay; nothing is published unpaid."""
    done = run("publish", people, "--spec", spec, "--dataset", "people", "-o", "out.parquet")

    assert (done.code, done.out) == (2, "")
    assert "pass --ledger too" in done.err
    assert not Path("out.parquet").exists()


def test_a_budget_of_another_unit_refuses_by_name(run: Run, people: Path, spec: Path) -> None:
    """Rows cannot be paid from a budget of persons: exit code 3, and nothing is spent."""
    run("ledger", "open", "people", "--epsilon", 4, "--unit", "person")
    paid = ("--ledger", "budget.db", "--dataset", "people", "-o", "out.parquet")

    done = run("publish", people, "--spec", spec, *paid)

    assert done.code == 3
    assert "refused: dataset 'people' cannot pay: " in done.err
    assert left(run) == "4"


def test_a_taken_path_is_refused_in_words_of_the_command_line(run: Run, people: Path, spec: Path) -> None:
    """Nobody is told to pass what `publish` does not take."""
    Path("out.parquet").write_text("precious")

    done = run("publish", people, "--spec", spec, "-o", "out.parquet")

    assert done.code == 1
    assert "choose another, or remove the file" in done.err
    assert Path("out.parquet").read_text() == "precious"


def test_a_replay_says_that_nothing_was_charged(run: Run, people: Path, spec: Path) -> None:
    """The first receipt says who paid, the second that it was stored already; entries show key and state."""
    run("ledger", "open", "people", "--epsilon", 8)
    asked = ("--spec", spec, "--ledger", "budget.db", "--dataset", "people", "--key", "autumn")

    first, second = (run("publish", people, *asked, "-o", "out.parquet").out for _ in range(2))

    assert "stored already" not in first
    assert "stored already; nothing was charged now" in second
    assert left(run) == "4"
    assert run("ledger", "entries", "people").out.splitlines()[-1].split()[-1] == "autumn"


@pytest.mark.filterwarnings("ignore::partita.errors.PrivacyWarning")
def test_the_receipt_tells_special_cells_and_a_domain_that_does_not_fit(
    run: Run, people: Path, spec: Path
) -> None:
    """Where more rows are other than have a label, a hint says so; where few are, none does."""
    wrong = ("--column", "region:category(east,west)", "--epsilon", 40_000)

    fitting = run("publish", people, "--spec", spec, "--epsilon", 40_000, "-o", "out.parquet").out
    other = run("publish", people, *wrong, "-o", "wrong.parquet").out

    assert "null 0 ± 0, other 1 ± 0" in fitting
    assert "hint" not in fitting
    assert "null 0 ± 0, other 400 ± 0" in other
    assert "more rows of region are other than have a value" in other


def test_an_interrupted_payment_says_where_to_look(
    run: Run, people: Path, spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a ledger the message says that debits stay; without one there is nothing to say."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    run("ledger", "open", "people", "--epsilon", 8)
    monkeypatch.setattr(PIPELINE, "draw", interrupt)
    asked = ("publish", people, "--spec", spec, "-o", "out.parquet")

    unpaid, paid = run(*asked), run(*asked, "--ledger", "budget.db", "--dataset", "people")

    assert (unpaid.code, unpaid.err) == (130, "partita: interrupted\n")
    assert (paid.code, "what was debited stays debited" in paid.err) == (130, True)
    assert "lost" in run("ledger", "entries", "people").out


@pytest.mark.filterwarnings("ignore::partita.errors.PrivacyWarning")
def test_a_part_is_counted_paid_and_named(run: Run, people: Path, spec: Path) -> None:
    """Rows of the other region are left out, and the receipt and the release say which are counted."""
    run("ledger", "open", "people", "--epsilon", 40_000)
    asked = ("--spec", spec, "--epsilon", 40_000, "--ledger", "budget.db", "--dataset", "people")

    done = run("publish", people, *asked, "--part", "region=north", "-o", "north.parquet")
    [record] = run(
        "publish", people, *asked, "--part", "region=south", "-o", "south.parquet", "--json"
    ).records

    assert "only where region is 'north'" in done.out
    assert record["part"] == {"column": "region", "value": "south"}
    assert (load("north.parquet").count().value, load("south.parquet").count().value) == (200, 199)
    [told] = run("info", "north.parquet", "--json").records
    assert told["provenance"]["part"] == {"column": "region", "value": "north"}
    assert "Only rows where region is 'north' are counted." in " ".join(
        run("info", "north.parquet").out.split()
    )


def test_a_bound_on_rows_per_person_is_chosen(run: Run, people: Path, spec: Path) -> None:
    """By a flag or by the spec; the receipt says what it was chosen among, and a plan how."""
    spec.write_text(SPEC.replace("[release]", '[release]\nperson = "id"\ncontributions = "auto with 1/4"'))

    planned = run("plan", "--spec", spec, "--simulate", people)
    first = run("publish", people, "--spec", spec, "-o", "one.parquet")
    [second] = run(
        *("publish", people, "--spec", spec, "-o", "two.parquet"),
        *("--contributions", "auto among 1,3", "--json"),
    ).records

    assert "chosen privately, with 1/4 of epsilon" in planned.out
    assert "A total errs by about" in planned.out
    assert first.code == 0
    chosen = load("one.parquet").provenance.contributions
    assert chosen is not None
    assert f"of a person at most {chosen.chosen}, chosen privately among 1, 2, 3, 5" in first.out
    assert second["contributions"]["among"] == [1, 3]
    assert second["guarantee"]["contributions"] == second["contributions"]["chosen"]


@pytest.mark.parametrize("given", ["automatic", "auto among 3,1", "0", "1.5", "auto with 2"])
def test_a_bound_that_is_none_is_a_usage_error(run: Run, people: Path, spec: Path, given: str) -> None:
    """By name, and nothing is read."""
    done = run("publish", people, "--spec", spec, "--person", "id", "-o", "x", "--contributions", given)

    assert done.code == 2
    assert "contributions" in done.err
    assert not Path("x").exists()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("given", ["people.csv", "people.CSV", "*.csv", "peopl*", "people.csv.gz"])
def test_a_receipt_of_csv_says_what_the_steward_states(run: Run, given: str) -> None:
    """That no field holds a line feed is not checked, and so the receipt says that it was stated."""
    text, name = b"age\n30\n", given if "*" not in given else "people.csv"
    Path(name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    asked = ("--column", "age:integer(0,120)", "--epsilon", 1, "--mechanism", "tree")

    shown = run("publish", given, *asked, "-o", "shown.parquet").out
    [record] = run("publish", given, *asked, "-o", "json.parquet", "--json").records

    condition = "no field of the CSV files holds a line feed: every line is counted as one row"
    assert "stated" in shown
    assert condition in " ".join(shown.split())
    assert record["stated"] == [condition]


def test_a_receipt_of_other_formats_states_nothing(run: Run, people: Path, spec: Path) -> None:
    """Records of Parquet files may hold line feeds."""
    [record] = run("publish", people, "--spec", spec, "-o", "out.parquet", "--json").records

    assert record["stated"] == []


@pytest.mark.usefixtures("folder")
def test_the_statement_does_not_depend_on_rows(run: Run) -> None:
    """A file whose fields hold line feeds is published with the same words and the same exit status."""
    asked = ("--column", "age:integer(0,120)", "--epsilon", 1, "--mechanism", "tree")
    said = []
    for number, text in enumerate(('age,note\n30,"a"\n', 'age,note\n30,"a\n40,b"\n')):
        Path("people.csv").write_text(text)
        done = run("publish", "people.csv", *asked, "-o", f"{number}.parquet", "--json")
        [record] = done.records
        said.append((done.code, done.err, record["stated"]))

    assert said[0] == said[1]


def test_help_says_what_the_steward_states(run: Run) -> None:
    """Who asks for help is told that a line of a CSV file is a row, and what to do about line feeds."""
    said = " ".join(run("publish", "--help").out.split())

    assert "states that no field holds a line feed, since every line is one row" in said
    assert "convert other files to Parquet first" in said


OWN = """
import partita as pt
from partita.trusted.noise import SYSTEM

class Counted(pt.HistogramCounts):
    name = "counted"

    def release(self, data, *, noise=SYSTEM) -> pt.HistogramRelease:
        return super().release(data, noise=noise)
"""


def test_a_mechanism_of_ones_own_is_named_by_its_module(
    run: Run, people: Path, spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the command line and not in a spec, which runs no code; the receipt has its name."""
    Path("own_mechanism_of_a_test.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(Path.cwd()))
    named = "own_mechanism_of_a_test:Counted"
    Path("own.toml").write_text(SPEC.replace('mechanism = "tree"', f'mechanism = "{named}"'))

    planned = run("plan", "--spec", spec, "--mechanism", named)
    done = run("publish", people, "--spec", spec, "--mechanism", named, "-o", "out.parquet")
    by_spec = run("plan", "--spec", "own.toml")
    missing = run("plan", "--spec", spec, "--mechanism", "own_mechanism_of_a_test:Nothing")

    assert (planned.code, done.code) == (0, 0), planned.err
    assert "age, by counted" in done.out
    assert "not one of Partita's" in planned.out
    assert load("out.parquet").views[0].mechanism == "counted"
    assert "mechanism must be 'auto' or one of" in by_spec.err
    assert "mechanism must name a module and a function in it" in missing.err


def test_questions_are_asked_of_a_simulation(run: Run, people: Path, spec: Path) -> None:
    """Of so many releases, in text and JSON; without a simulation there is nothing to ask."""
    asked = ("plan", "--spec", spec, "--question", "count where age >= 30", "--question", "ranges of region")
    simulated = (*asked, "--simulate", people, "--times", 3)

    [record] = run(*simulated, "--json").records
    alone = run(*asked)

    assert [(each["question"], each["groups"], each["times"]) for each in record["asked"]] == [
        ("count where age >= 30", 1, 3),
        ("ranges of region", 2, 3),
    ]
    assert "count where age >= 30" in run(*simulated).out
    assert (alone.code, "pass --simulate too" in alone.err) == (2, True)


def test_options_of_the_mechanism_come_from_spec_and_flags(run: Run, people: Path, folder: Path) -> None:
    """A flag counts for more than the spec; options of another mechanism than the spec's are not used."""
    Path("tree.toml").write_text(
        '[columns.age]\ntype = "integer"\nlow = 0\nhigh = 120\n'
        '[release]\nepsilon = 1\nmechanism = "tree"\n[release.options]\nbranching = 16\nroot = false\n'
    )
    spec = ("--spec", "tree.toml")
    [stated] = run("plan", *spec, "--json").records
    [changed] = run("plan", *spec, "--option", "branching=4", "--json").records
    [other] = run("plan", *spec, "--mechanism", "histogram", "--json").records
    done = run("publish", people, *spec, "--option", "branching=4", "-o", "out.parquet")

    assert stated["request"]["options"] == {"branching": "16", "root": "false"}
    assert changed["request"]["options"] == {"branching": "4", "root": "false"}
    assert "options" not in other["request"]
    assert done.code == 0
    assert load("out.parquet").provenance.options == (("branching", "4"), ("root", "false"))


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (("--mechanism", "tree", "--option", "brnching=4"), 1, "did you mean 'branching'?"),
        (
            ("--mechanism", "tree", "--option", "branching=x"),
            1,
            "options.branching of 'tree' must be an integer",
        ),
        (("--mechanism", "tree", "--option", "4"), 2, "must be NAME=VALUE"),
        (("--option", "branching=4"), 1, "options must come with a mechanism by its name"),
    ],
)
def test_options_that_cannot_be_used_are_refused(
    run: Run, given: tuple[str, ...], code: int, said: str
) -> None:
    """By a message that says what the mechanism takes, and by its code."""
    done = run("plan", "--column", "age:integer(0,120)", "--epsilon", "1", *given)

    assert (done.code, said in done.err) == (code, True)


def test_plan_shows_bounds_at_their_beta(run: Run) -> None:
    """In the table and in JSON."""
    asked = ("--column", "age:integer(0,120)", "--epsilon", "1", "--mechanism", "tree", "--rows", "100")
    [record] = run("plan", *asked, "--beta", "0.001", "--json").records
    bound = pt.Tree(size=121, epsilon=1).bound("0.001")

    assert record["expected"][0]["bound"] == bound
    assert record["beta"] == "1/1000"
    assert f" {bound:,.0f} " in run("plan", *asked, "--beta", "0.001").out
