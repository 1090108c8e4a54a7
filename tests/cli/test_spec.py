"""Specs are read exactly, and what they may not say is refused by name."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partita.cli.spec import Spec, read_spec
from partita.domain import Category, Date, Integer, Real, Timestamp
from partita.errors import InvalidParameter

from .conftest import CANARY, SPEC, Run


def written(folder: Path, text: str) -> str:
    """The path of a spec with this text."""
    path = folder / "release.toml"
    path.write_text(text)
    return str(path)


# --- what is read -----------------------------------------------------------------------------


def test_every_type_of_column_is_read(folder: Path) -> None:
    """TOML's own numbers and dates mean the same as text."""
    text = """
    [columns.age]
    type = "integer"
    low = 0
    high = "120"
    [columns.wage]
    type = "real"
    low = -0.1
    high = 1e3
    step = 0.1
    [columns.born]
    type = "date"
    start = 1900-01-01
    end = "2020-12-31"
    [columns.seen]
    type = "timestamp"
    start = 2024-01-01T00:00:00
    end = "2024-12-31"
    resolution = "1h"
    [columns."the region"]
    type = "category"
    labels = ["north", "south"]
    """

    assert read_spec(written(folder, text)).columns == {
        "age": Integer(0, 120),
        "wage": Real("-0.1", 1000, step="0.1"),
        "born": Date("1900-01-01", "2020-12-31"),
        "seen": Timestamp("2024-01-01", "2024-12-31", "1h"),
        "the region": Category(["north", "south"]),
    }


def test_the_release_table_is_read(folder: Path) -> None:
    """Numbers are exact: 0.1 is a tenth and not the float nearest to it."""
    text = """
    [release]
    views = [["age"], "wage"]
    shares = [0.1, "9/10"]
    together = [["age", "wage"]]
    epsilon = 0.1
    person = "id"
    contributions = 3
    neighbors = "change-one"
    mechanism = "tree"
    options = {branching = 16, root = false, weights = ["1/2", 1.5]}
    dataset = "people"
    [csv]
    delimiter = ";"
    header = ["id", "age"]
    """

    assert read_spec(written(folder, text)) == Spec(
        views=[["age"], ["wage"]],
        shares=[Fraction(1, 10), Fraction(9, 10)],
        together=[["age", "wage"]],
        epsilon=Fraction(1, 10),
        person="id",
        contributions=3,
        neighbors="change-one",
        mechanism="tree",
        options={"branching": 16, "root": False, "weights": ["1/2", "1.5"]},
        dataset="people",
        delimiter=";",
        header=["id", "age"],
    )


def test_a_spec_may_be_in_rho(run: Run, people: Path, folder: Path) -> None:
    """rho of the spec, or of a flag, which takes the place of either budget; never both at once."""
    text = SPEC.replace('epsilon = "4"', 'rho = "1/8"\ndelta = "1e-6"')
    spec = written(folder, text)
    [planned] = run("plan", "--spec", spec, "--rows", 100, "--json").records
    [flagged] = run("plan", "--spec", spec, "--rho", "1/2", "--rows", 100, "--json").records
    [other] = run("plan", "--spec", spec, "--epsilon", 2, "--delta", 0, "--rows", 100, "--json").records
    both = run("plan", "--spec", spec, "--rho", 1, "--epsilon", 1)

    assert (planned["request"]["rho"], planned["expected"][0]["rho"]) == ("1/8", "1/32")
    assert flagged["request"]["rho"] == "1/2"
    assert (other["request"]["epsilon"], "rho" in other["request"]) == ("2", False)
    assert both.code == 2
    assert "two budgets" in both.err
    assert run("publish", people, "--spec", spec, "-o", "out.parquet").code == 0
    [told] = run("info", "out.parquet", "--json").records
    assert (told["guarantee"]["rho"], told["guarantee"]["delta"]) == ("1/8", "0")
    assert "rho 1/8, zero-concentrated" in run("info", "out.parquet").out
    with pytest.raises(InvalidParameter, match="rho must be positive"):
        read_spec(written(folder, "[release]\nrho = 0"))


def test_a_choice_of_contributions_is_read(folder: Path) -> None:
    """As text, with candidates and share as they were written."""
    spec = read_spec(written(folder, '[release]\ncontributions = "auto among 1,4 with 0.1"'))

    assert spec.contributions == "auto among 1,4 with 1/10"


def test_an_empty_spec_says_nothing(folder: Path) -> None:
    """Everything may come from flags."""
    assert read_spec(written(folder, "")) == Spec()


def test_wide_bounds_are_exact(folder: Path) -> None:
    """Numbers beyond 2^53 keep their last digit."""
    text = f'[columns.x]\ntype = "integer"\nlow = 0\nhigh = {2**64 - 1}\n'

    assert read_spec(written(folder, text)).columns == {"x": Integer(0, 2**64 - 1)}


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[colums.age]\ntype = "integer"', r"colums must be a key of a spec.*did you mean columns\?"),
        ("[release]\nepsilom = 1", r"release\.epsilom must be a key.*did you mean epsilon\?"),
        ('[release]\ntogether = "age"', r"release\.together must be a list.*\[\[\"age\", \"salary\"\]\]"),
        ('[release]\ntogether = ["age", "wage"]', r"release\.together must be a list"),
        ("[csv]\nseparator = 1", r"csv\.separator must be a key.*choose among delimiter, header"),
        ('[columns.age]\ntype = "integer"\nlow = 0\nhihg = 9', r"columns\.age\.hihg.*did you mean high\?"),
        ('[columns.age]\ntype = "integr"', r"columns\.age\.type must be one of.*did you mean integer\?"),
        ("[columns.age]\nlow = 0", r"columns\.age\.type must be one of"),
        ("columns = 3", r"columns must be a table, got 3"),
        ("[columns]\nage = 3", r"columns\.age must be a table, got 3"),
        (
            '[columns.age]\ntype = "integer"\nlow = 0',
            r"columns\.age\.high must be filled in.*public knowledge",
        ),
        (
            '[columns.age]\ntype = "integer"\nlow = 9\nhigh = 0',
            r"columns\.age\.high must not be below low, got 0",
        ),
        (
            '[columns.age]\ntype = "integer"\nlow = 0.5\nhigh = 9',
            r"columns\.age\.low must be an integer, got '0\.5'",
        ),
        (
            '[columns.age]\ntype = "integer"\nlow = true\nhigh = 9',
            r"columns\.age\.low must be a finite number",
        ),
        (
            '[columns.x]\ntype = "real"\nlow = 0\nhigh = inf\nstep = 1',
            r"columns\.x\.high must be a finite number",
        ),
        ('[columns.x]\ntype = "category"\nlabels = []', r"columns\.x\.labels must be a non-empty list"),
        (
            '[columns.x]\ntype = "category"\nlabels = "a"',
            r"columns\.x\.labels must be a text file that you may",
        ),
        (
            '[columns.x]\ntype = "category"\nlabels = ["a"]\ncolumn = "b"',
            r"columns\.x\.column must come with",
        ),
        ('[columns.x]\ntype = "category"\nlabels = [1]', r"columns\.x\.labels must be texts"),
        ("[release]\nepsilon = 0", r"release\.epsilon must be positive, got 0"),
        ("[release]\nepsilon = nan", r"release\.epsilon must be a finite number"),
        ("[release]\ncontributions = 0", r"release\.contributions must be at least 1"),
        ("[release]\nviews = []", r"release\.views must be a list"),
        ("[release]\nviews = [[1]]", r"release\.views must be text"),
        ("[release]\nshares = 1", r"release\.shares must be a list"),
        ("[release]\nperson = 1", r"release\.person must be text, got 1"),
        ('[csv]\nheader = "a"', r"csv\.header must be a list"),
    ],
)
def test_a_wrong_entry_is_named(folder: Path, text: str, said: str) -> None:
    """The error says which entry of which file, the rule, what was given and the fix."""
    with pytest.raises(InvalidParameter, match=rf"release\.toml: {said}"):
        read_spec(written(folder, text))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[columns.age\n", "at line 1, column 13"),
        (b"a = 1\na = 2\n", "at line 2, column 6"),
        (b"\xff\xfe", "must be UTF-8 text"),
        (b"a = " + b"9" * 5_000, "TOML of usual depth and length"),
        (b"a = " + b"[" * 100_000, "TOML"),
        (b"#" * 2**21, "must have at most 1048576 bytes"),
    ],
)
def test_what_is_no_toml_is_refused(folder: Path, content: bytes, said: str) -> None:
    """The place is told where there is one."""
    (folder / "bad.toml").write_bytes(content)

    with pytest.raises(InvalidParameter, match=said):
        read_spec(str(folder / "bad.toml"))


def test_data_taken_for_a_spec_is_not_quoted(folder: Path) -> None:
    """Whoever passes the table as the spec sees none of its values in the error."""
    (folder / "people.csv").write_text(f"id,name\n1,{CANARY}\n")

    with pytest.raises(InvalidParameter) as refused:
        read_spec(str(folder / "people.csv"))

    assert CANARY not in f"{refused.value}{refused.value.__context__}"
    assert "must be TOML" in str(refused.value)


@pytest.mark.parametrize("path", [".", "missing.toml"])
def test_a_spec_is_a_file(folder: Path, path: str) -> None:
    """A folder and a missing file are told how to become a spec."""
    with pytest.raises(InvalidParameter, match="write one with `partita init`"):
        read_spec(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=80), st.integers(0, len(SPEC)))
def test_no_bytes_break_the_reader(folder: Path, noise: bytes, place: int) -> None:
    """A spec with any bytes in the middle is read, or refused with a typed error."""
    path = folder / "noisy.toml"
    path.write_bytes(SPEC[:place].encode() + noise + SPEC[place:].encode())
    try:
        read = read_spec(str(path))
    except InvalidParameter:
        return
    assert isinstance(read, Spec)


# --- labels in a file -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ('labels = "codes.txt"', "FCO\nBRI\n"),
        ('labels = "codes.txt"\ncolumn = "code"', "code,name\nFCO,Rome\nBRI,Bari\n"),
        ('labels = "codes.txt"\ncolumn = "code"\ndelimiter = ";"', "name;code\nRome;FCO\nBari;BRI\n"),
    ],
)
def test_labels_are_read_from_a_file_beside_the_spec(
    entry: str,
    text: str,
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its path is relative to the spec, wherever the command runs."""
    (folder / "codes.txt").write_text(text)
    path = written(folder, f'[columns.x]\ntype = "category"\n{entry}')
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))

    assert read_spec(path).columns == {"x": Category(["FCO", "BRI"])}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (f"{CANARY}\n{CANARY}\n", r"columns\.x\.labels must all be different, got 'codes\.txt'"),
        (f"{CANARY}\n\n", r"columns\.x\.labels must not be empty texts"),
        (None, r"columns\.x\.labels must be a text file that you may read"),
    ],
)
def test_a_wrong_file_of_labels_is_named(text: str | None, rule: str, folder: Path) -> None:
    """With the entry of the spec, and no line of the file."""
    if text is not None:
        (folder / "codes.txt").write_text(text)

    with pytest.raises(InvalidParameter, match=rule) as refused:
        read_spec(written(folder, '[columns.x]\ntype = "category"\nlabels = "codes.txt"'))

    assert CANARY not in str(refused.value)


def test_long_lists_of_labels_are_abbreviated(run: Run, folder: Path) -> None:
    """In the receipt and in `info`; the release has all of them."""
    labels = [f"label {number}" for number in range(300)]
    (folder / "codes.txt").write_text("\n".join(labels))
    (folder / "a.csv").write_text("x\nlabel 3\n")
    path = written(folder, '[columns.x]\ntype = "category"\nlabels = "codes.txt"\n[release]\nepsilon = 1')

    receipt = run("publish", "a.csv", "--spec", path, "-o", "a.parquet").out
    info = run("info", "a.parquet").out

    for text in (receipt, info):
        assert "Category of 300 labels: 'label 0', 'label 1', 'label 2', ..." in " ".join(text.split())
    for text in (receipt, run("plan", "--spec", path).out):
        assert "label 150" not in text
    assert run("query", "a.parquet", "count where x = 'label 299'").code == 0
    assert "did you mean 'label 299'?" in run("query", "a.parquet", "count where x = 'Label 299'").err
    assert (
        "did you mean 'label 299'?"
        in run("query", "a.parquet", "count where x in ('label 3', 'lable 299')").err
    )


# --- labels below nodes -----------------------------------------------------------------------------

PLACES = Category({"Kent": {"K1": ["a", "b"], "K2": ["c"]}, "City": None}, ["county", "tract", "block"])


@pytest.mark.parametrize(
    "entries",
    [
        'levels = ["county", "tract", "block"]\nlabels.City = []\n'
        'labels.Kent = {K1 = ["a", "b"], K2 = ["c"]}',
        'labels = "places.csv"\ncolumns = ["county", "tract", "block"]',
    ],
)
def test_labels_below_nodes_are_tables_or_paths_in_a_file(entries: str, folder: Path) -> None:
    """Tables of tables say what a code book of paths says; its columns name the levels."""
    (folder / "places.csv").write_text("county,tract,block\nKent,K1,a\nKent,K1,b\nKent,K2,c\nCity,,\n")
    places = PLACES
    if "labels.City" in entries:
        places = Category({"City": None, "Kent": {"K1": ["a", "b"], "K2": ["c"]}}, places.levels)

    assert read_spec(written(folder, f'[columns.x]\ntype = "category"\n{entries}')).columns == {"x": places}


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ("labels = {Kent = 3}", r"columns\.x\.labels must be tables of tables"),
        ('labels = ["a"]\nlevels = ["block"]', r"columns\.x\.levels must come with nodes"),
        ('labels = {Kent = ["a"]}\nlevels = ["county"]', r"columns\.x\.levels must be 2 different names"),
        ('labels = "places.csv"\ncolumns = ["county", "town"]', r"columns\.x\.column must name one column"),
        ('labels = "places.csv"\ncolumns = ["county"]', r"columns\.x\.columns must be a list of names"),
        (
            'labels = ["a"]\ncolumns = ["county", "town"]',
            r"columns\.x\.columns must come with labels in a file",
        ),
        (
            'labels = "places.csv"\ncolumns = ["tract", "block"]',
            r"columns\.x\.labels must name each label once",
        ),
    ],
)
def test_wrong_labels_below_nodes_are_named(entries: str, said: str, folder: Path) -> None:
    """The entry of the spec that is wrong, and no line of the file."""
    (folder / "places.csv").write_text(f"county,tract,block\nKent,{CANARY},a\nEssex,{CANARY},a\n")

    with pytest.raises(InvalidParameter, match=said) as refused:
        read_spec(written(folder, f'[columns.x]\ntype = "category"\n{entries}'))
    assert CANARY not in str(refused.value)
