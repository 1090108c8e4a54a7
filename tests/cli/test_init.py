"""`partita init` writes a spec from a schema, and never from values."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partita.cli.spec import Entries, described, read_spec, template
from partita.domain import Category, Date, Integer, Real, Timestamp
from partita.errors import InvalidParameter

from .conftest import CANARY, Run

COMPLETE = (
    "age:integer(0,120)",
    "wage:real(0, 1e6, step=0.01)",
    "born:date(1900-01-01,2020-12-31)",
    "seen:timestamp(2024-01-01T00:00:00,2024-12-31,1h,zone=Europe/Rome)",
    "the region:category(north,south)",
)


def test_a_complete_schema_gives_a_complete_spec(run: Run, folder: Path) -> None:
    """What the arguments declare is what `publish` reads."""
    done = run("init", *COMPLETE, "-o", "r.toml")

    assert (done.code, done.out) == (0, "wrote r.toml; it is complete\n")
    assert read_spec("r.toml").columns == {
        "age": Integer(0, 120),
        "wage": Real(0, 10**6, step="0.01"),
        "born": Date("1900-01-01", "2020-12-31"),
        "seen": Timestamp("2024-01-01", "2024-12-31", "1h", zone="Europe/Rome"),
        "the region": Category(["north", "south"]),
    }
    assert (read_spec("r.toml").by, read_spec("r.toml").views) == (None, None)


def test_a_filled_in_layout_is_a_spec(run: Run, folder: Path) -> None:
    """The comments show all columns together, and each by itself."""
    run("init", *COMPLETE, "-o", "r.toml")
    text, names = Path("r.toml").read_text(), ["age", "wage", "born", "seen", "the region"]

    for key, expected in (("by", names), ("views", [[name] for name in names])):
        Path("r.toml").write_text(text.replace(f"# {key} =", f"{key} ="))
        assert getattr(read_spec("r.toml"), key) == expected


def test_many_columns_are_apart_at_first(run: Run, folder: Path) -> None:
    """More than can be published together are views of one column each."""
    names = [f"c{number}" for number in range(41)]
    run("init", *(f"{name}:integer(0,9)" for name in names), "-o", "r.toml")

    assert read_spec("r.toml").views == [[name] for name in names]


def test_a_table_of_columns_is_together_at_first(run: Run, folder: Path) -> None:
    """Seven columns are one table release, and the spec shows how to name those that matter together."""
    run("init", *(f"{name}:integer(0,9)" for name in "abcdefg"), "-o", "r.toml")

    assert read_spec("r.toml").views is None
    assert '# together = [["age", "salary"]]' in Path("r.toml").read_text()
    done = run("plan", "--spec", "r.toml", "--epsilon", 1, "--rows", 1000)
    assert done.code == 0
    assert "graph" in done.out


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=8).filter(str.isprintable),
        st.lists(
            st.text(min_size=1, max_size=8).filter(str.isprintable), min_size=1, max_size=3, unique=True
        ),
        min_size=1,
        max_size=3,
    )
)
def test_any_names_and_labels_survive(folder: Path, labels: dict[str, list[str]]) -> None:
    """Quotes, backslashes and letters of any script come back from the spec as they were."""
    columns: dict[str, Entries] = {
        name: {"type": "category", "labels": values} for name, values in labels.items()
    }
    path = folder / "names.toml"
    path.write_text(template(columns), "utf-8")

    assert read_spec(str(path)).columns == {name: Category(values) for name, values in labels.items()}


@pytest.mark.parametrize("kind", ["integer", "real", "date", "timestamp", "category"])
def test_bounds_that_nobody_gave_are_placeholders(run: Run, people: Path, kind: str) -> None:
    """`publish` refuses such a spec, says what to fill in, and writes nothing."""
    assert run("init", f"age:{kind}", "-o", "r.toml").code == 0

    done = run("publish", people, "--spec", "r.toml", "--epsilon", 1, "-o", "out.parquet")

    assert done.code == 1
    assert "must be filled in" in done.err
    assert "from public knowledge, never from the data" in done.err
    assert not Path("out.parquet").exists()


def test_a_filled_in_placeholder_is_a_spec(run: Run, folder: Path) -> None:
    """It is enough to take the # away."""
    run("init", "age:integer", "-o", "r.toml")
    Path("r.toml").write_text(Path("r.toml").read_text().replace("# low", "low").replace("# high", "high"))

    assert read_spec("r.toml").columns == {"age": Integer(0, 100)}


# --- schemas of files -------------------------------------------------------------------------


def test_a_parquet_file_gives_names_and_types_only(run: Run, folder: Path) -> None:
    """Its values and their statistics, which Parquet keeps beside the schema, are not looked at."""
    table = pa.table(
        {
            "name": pa.array([CANARY, None]).dictionary_encode(),
            "age": pa.array([31_337, 31_338], pa.int32()),
            "wage": pa.array([1, 2], pa.decimal128(12, 2)),
            "whole": pa.array([1, 2], pa.decimal128(12, 0)),
            "float": pa.array([1.5, 2.5]),
            "day": pa.array([1, 2], pa.date32()),
            "seen": pa.array([1, 2], pa.timestamp("us", "Europe/Rome")),
            "member": [True, False],
            "list": [[31_339], [31_340]],
        }
    )
    pq.write_table(table, "people.parquet")

    done = run("init", "people.parquet", "--json")

    [record] = done.records
    text = Path("release.toml").read_text()
    assert record["columns"] == ["name", "age", "wage", "whole", "float", "day", "seen", "member"]
    assert record["missing"][:4] == [
        "columns.name.labels",
        "columns.age.low",
        "columns.age.high",
        "columns.wage.low",
    ]
    assert 'zone = "Europe/Rome"' in text
    assert 'step = "1e-2"' in text
    assert 'labels = ["false", "true"]' in text
    assert [word for word in (CANARY, "3133", "3134") if word in text + done.out] == []


@pytest.mark.parametrize("name", ["people.arrow", "people.feather"])
@pytest.mark.parametrize("writer", [pa.ipc.new_file, pa.ipc.new_stream])
def test_an_arrow_file_gives_its_schema(run: Run, folder: Path, name: str, writer: object) -> None:
    """Files and streams alike."""
    table = pa.table({"age": [1], "name": [CANARY]})
    with writer(name, table.schema) as sink:  # type: ignore[operator]
        sink.write_table(table)

    assert run("init", name).code == 0
    assert '[columns.age]\ntype = "integer"' in Path("release.toml").read_text()
    assert CANARY not in Path("release.toml").read_text()


def test_a_csv_file_gives_its_header(run: Run, folder: Path) -> None:
    """Text has no types, so that these are left to the steward, who is told to look at the names."""
    Path("people.csv").write_text(f'\ufeffid,"the age"\r\n1,{CANARY}\r\n')

    assert "check that it is a header" in run("init", "people.csv").out
    [record] = run("init", "people.csv", "--json", "--force").records

    assert record["missing"] == ["columns.id.type", "columns.the age.type"]
    assert CANARY not in Path("release.toml").read_text()


@pytest.mark.parametrize(("name", "content"), [("x.parquet", b"PAR1"), ("x.arrow", b"no"), ("x.csv", b"")])
def test_a_damaged_file_is_refused(run: Run, folder: Path, name: str, content: bytes) -> None:
    """With a typed error, and nothing is written."""
    Path(name).write_bytes(content)

    done = run("init", name)

    assert done.code == 1
    assert done.err.startswith(f"partita: error: data {name!r} must")
    assert not Path("release.toml").exists()


# --- mistakes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("age", "must be name:type(bounds) or a file"),
        ("age:integr(0,1)", "did you mean integer?"),
        ("age:integer(9,0)", "must not be below low"),
        ("age:integer(0,1,2)", "of integer must be low, high"),
        ("age:integer(0,low=1)", "low must be given once"),
        ("age:integer(0,step=1)", "of integer must be low, high"),
        ("age:integer(0,x)", "must be a finite number"),
        ("a\x1bge:integer(0,1)", "must be name:type(bounds) or a file"),
    ],
)
def test_a_wrong_argument_is_a_usage_error(run: Run, folder: Path, argument: str, said: str) -> None:
    """Nothing is written, and the escape sequence of a terminal is shown as text."""
    done = run("init", argument)

    assert done.code == 2
    assert said in done.err
    assert "\x1b" not in done.err
    assert list(folder.iterdir()) == []


def test_a_column_is_described_once() -> None:
    """Two files with the same column have to be told apart."""
    with pytest.raises(InvalidParameter, match="must describe a column once, got 'age'"):
        described(["age:integer", "age:real"])


def test_an_old_spec_is_kept_unless_forced(run: Run, folder: Path) -> None:
    """What a steward filled in is not lost by accident."""
    Path("release.toml").write_text("precious")

    refused = run("init", "age:integer")

    assert refused.code == 1
    assert "output must not exist yet" in refused.err
    assert "or pass --force" in refused.err
    assert Path("release.toml").read_text() == "precious"
    assert run("init", "age:integer", "--force").code == 0
    assert "[columns.age]" in Path("release.toml").read_text()
    assert [path.name for path in folder.iterdir()] == ["release.toml"]


@pytest.mark.parametrize("path", ["missing/release.toml", "."])
def test_a_spec_that_cannot_be_written_is_said_plainly(run: Run, folder: Path, path: str) -> None:
    """A missing folder and a folder in place of a file give a typed error."""
    done = run("init", "age:integer", "-o", path, "--force")

    assert done.code == 1
    assert "output must be writable" in done.err


@pytest.mark.parametrize(("sign", "option"), [(";", ";"), ("\t", "\t"), ("\t", "\\t")], ids=repr)
def test_the_delimiter_of_a_file_is_written_into_the_spec(
    sign: str, option: str, run: Run, folder: Path
) -> None:
    """So that check and publish read the file in the same way, with a tab as a shell writes it, too."""
    Path("p.csv").write_text(sign.join(["id", "age"]) + "\n" + sign.join(["1", "30"]) + "\n")

    done = run("init", "p.csv", "--delimiter", option, "-o", "r.toml")
    text = Path("r.toml").read_text()
    for name in ("id", "age"):
        entries = f'[columns.{name}]\ntype = "integer"\nlow = 0\nhigh = 99'
        text = text.replace(f"[columns.{name}]", entries, 1)
    Path("r.toml").write_text(text)

    assert (done.code, done.err) == (0, "")
    assert "columns.age.type" in done.out
    assert read_spec("r.toml").delimiter == option
    assert "No format looks wrong." in run("check", "p.csv", "--spec", "r.toml").out


def test_a_wrong_delimiter_is_a_usage_error(run: Run, folder: Path) -> None:
    """Exit code 2, and no spec."""
    Path("p.csv").write_text("id;age\n")

    done = run("init", "p.csv", "--delimiter", "ab", "-o", "r.toml")

    assert (done.code, Path("r.toml").exists()) == (2, False)
    assert "delimiter must be one ASCII character" in done.err
