"""Columns of text through `publish`: names that are found, other views beside them, and hostile names."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

import partita as pt
from partita.cli.main import main
from partita.publish.request import Request
from partita.testing.doubles import EndlessTape, tape_noise
from partita.testing.replay import replay_publish, system_noise
from partita.trusted.mechanisms.catalogue import ROWS

SMALL = pt.Text(2, "abc")
CITY = pt.Text(24)
HOSTILE = [
    "\x1b[31mred",
    "<script>x</script>",
    "=1+1",
    "line\nfeed",
    "\u202eevil",
    "a,b;\"c'",
    "\x00",
    "bell\x07",
]


def release_of(rows: list[Any], **more: Any) -> pt.Release:
    """The same noise each time."""
    table = {"city": rows, **more.pop("beside", {})}
    with system_noise(tape_noise(EndlessTape("names")).session()):
        return pt.publish(table, {"city": CITY, **more.pop("schema", {})}, epsilon=4, **more)


def towns(rows: int = 6000) -> list[str]:
    """Thirty towns, the k-th with 1 / k of the rows of the first."""
    random, listed = Random(7), [f"town {number}" for number in range(30)]
    return random.choices(listed, weights=[1 / (number + 1) for number in range(30)], k=rows)


def test_names_are_found_counted_and_ranked() -> None:
    """The list, single counts, sets, groups and the rest agree with each other."""
    rows = [*towns(), *[None] * 100, "x" * 99]
    release = release_of(rows)
    names = release.names("city")

    assert names.names[0] == "town 0"
    assert abs(names.counts[0].value - rows.count("town 0")) < 30
    assert release.count(city="town 0").value == names.counts[0].value
    both = release.count(city=["town 0", "town 1"]).value
    assert both == names.counts[0].value + names.counts[1].value
    counted = release.group("city").count()
    groups = {entry: n for (entry,), n in zip(counted.entries, counted.values, strict=True)}
    assert groups[pt.NULL] == release.count(city=pt.NULL).value
    assert groups[pt.OTHER] == release.count(city=pt.OTHER).value
    assert release.count().value == pytest.approx(sum(groups.values()), abs=5)
    assert names.top(2).names == names.names[:2]
    assert set(names.with_prefix("town 1").names) <= set(names.names)


def test_a_name_that_is_not_listed_has_an_interval_from_zero() -> None:
    """Whether it is there or not, in text and in code, and the note says who is listed."""
    release = release_of([*towns(), "Ulm"])
    need = release.names("city").found_from()

    for asked in ("Ulm", "Nowhere"):
        found = release.count(city=asked)
        low, high = found.interval()
        assert low == 0 < high < need
        assert found.worst()[0] == 0
        assert f"{need:,} rows" in str(found)
    assert release.count("city = Ulm").interval() == release.count(city="Ulm").interval()


def test_what_cannot_be_asked_is_refused() -> None:
    """Text that the column cannot hold, sets with names that are not listed, and sums."""
    release = release_of(towns())

    for ask in (
        lambda: release.count(city="x" * 25),
        lambda: release.count(city=["town 0", "Nowhere"]),
        lambda: release.count(city=pt.Not("Nowhere")),
        lambda: release.names("age"),
        lambda: release.names("city").other("x" * 30),
    ):
        with pytest.raises(pt.InvalidParameter):
            ask()


def test_no_name_may_be_frequent() -> None:
    """Then the list is empty, and everything is other."""
    release = release_of([f"name {number}" for number in range(500)])

    assert len(release.names("city")) == 0
    assert "0 names were found" in release.report()
    assert release.count(city=pt.OTHER).interval()[0] < 500 < release.count(city=pt.OTHER).interval()[1]


def test_a_file_holds_all_of_it(tmp_path: Path) -> None:
    """The loaded release answers alike."""
    release = release_of(towns())
    release.save(tmp_path / "r.parquet")
    loaded = pt.load(tmp_path / "r.parquet")

    assert loaded.is_same(release)
    assert loaded.names("city").names == release.names("city").names
    for asked in ("town 0", "Nowhere", pt.OTHER):
        assert loaded.count(city=asked).worst() == release.count(city=asked).worst()


def test_names_are_labels_of_other_views() -> None:
    """A view of its own comes first; its names are the labels where the column stands with others."""
    rows = towns()
    ages = [30 + (town == "town 0") * 20 for town in rows]
    release = release_of(rows, beside={"age": ages}, schema={"age": pt.Integer(0, 99)})

    assert [view.columns for view in release.views] == [("city",), ("city", "age")]
    assert isinstance(release.views[1].domains[0], pt.Category)
    assert set(release.views[1].domains[0].labels) == set(release.names("city").names)
    both = release.count(city="town 0", age=(45, None))
    assert abs(both.value - rows.count("town 0")) < 40
    assert release.count(city=pt.OTHER, age=(0, 45)).value >= 0


@pytest.mark.parametrize(
    ("more", "parts"),
    [
        ({"epsilon": 1}, ["2/3", "1/3"]),
        ({"epsilon": 1, "neighbors": "change-one"}, ["9/13", "4/13"]),
        ({"rho": "1/8"}, ["11/15", "4/15"]),
        ({"epsilon": 1, "views": [("city",), ("age",)]}, ["1/2", "1/2"]),
        ({"epsilon": 1, "views": [("city", "age"), ("age",)]}, ["9/17", "4/17", "4/17"]),
        ({"epsilon": 1, "shares": {"city": 1, "city x age": 3}}, ["1/4", "3/4"]),
    ],
    ids=str,
)
def test_shares_follow_predicted_errors(more: dict[str, Any], parts: list[str]) -> None:
    """Of public facts alone, before any row is read: they add up to one, and the names say why."""
    schema: dict[str, pt.Domain] = {"city": CITY, "age": pt.Integer(0, 120)}
    request = Request.checked(schema, **more)

    assert [str(view.share) for view in request.published] == parts
    assert sum(view.share for view in request.published) == 1
    found = request.published[0]
    beside = any(len(view.columns) > 1 for view in request.published)
    assert (f"It has {found.share} of" in found.why) is beside
    assert ("as asked for" in found.why) is ("shares" in more)


def test_the_usual_shares_are_near_the_least_sum_of_errors() -> None:
    """Of half of the rows that a name needs and the error of the view beside: others are no better by 2%."""
    schema: dict[str, pt.Domain] = {"city": CITY, "age": pt.Integer(0, 120)}

    def cost(share: Fraction) -> float:
        shares = {"city": share, "city x age": 1 - share}
        names, beside = Request.checked(schema, epsilon=1, shares=shares).views
        missed = names.choice.mechanism.predicted_missed
        return float(missed) + math.prod(beside.predicted_error(rows) for rows in ROWS) ** (1 / len(ROWS))

    usual = Request.checked(schema, epsilon=1).views[0].share

    assert cost(usual) <= 1.02 * min(cost(Fraction(part, 20)) for part in range(2, 19))
    assert cost(usual) < cost(Fraction(1, 2))


@pytest.mark.parametrize("more", [("ab", 3), ("ba", 0), ("zzz", 1), (None, 2)], ids=repr)
def test_views_beside_names_lose_no_more_than_epsilon(more: tuple[str | None, int]) -> None:
    """Both views together: the names that were found decide only what is public."""
    rows = [("ab", 1)] * 15 + [("b", 2)] * 12 + [("c", 0), ("aaa", 3), (None, 1)]
    schema: dict[str, pt.Domain] = {"c": SMALL, "age": pt.Integer(0, 3)}
    one, other = ({"c": [a for a, _ in t], "age": [b for _, b in t]} for t in (rows, [*rows, more]))

    assert replay_publish(one, other, schema, epsilon=1, mechanism="grid") <= 1


def test_a_key_returns_what_is_stored(tmp_path: Path) -> None:
    """Also of views beside names, whose labels nobody knew before."""
    pt.Ledger(tmp_path / "b.db").open("p", epsilon=5)
    table = {"city": towns(), "age": [1] * 6000}
    schema: dict[str, pt.Domain] = {"city": CITY, "age": pt.Integer(0, 9)}
    paid: dict[str, Any] = {
        "ledger": tmp_path / "b.db",
        "dataset": "p",
        "key": "k",
        "path": tmp_path / "r.parquet",
    }

    first, second = (pt.publish(table, schema, epsilon=4, **paid) for _ in range(2))

    assert first.is_same(second)


STABLE: dict[str, Any] = {"mechanism": "stability", "delta": "1e-6"}


def test_a_threshold_of_stability_finds_names_of_few_rows(tmp_path: Path, capsys: Any) -> None:
    """The same questions, a file, and the command line; a name of one row is not listed."""
    rows = [*["Rome"] * 300, *["Ulm"] * 40, "Nowhere", *[f"h {n}" for n in range(90)], *[None] * 50]
    release = release_of(rows, **STABLE)
    release.save(tmp_path / "r.parquet")
    loaded = pt.load(tmp_path / "r.parquet")
    names = loaded.names("city")

    assert loaded.is_same(release)
    assert names.names == ["Rome", "Ulm"]
    assert names.found_from() < 20
    assert release.guarantee is None  # the noise is that of a tape
    low, high = loaded.count(city="Nowhere").interval()
    assert low == 0 < high < 20
    assert loaded.count(city=pt.OTHER).interval()[0] < 91 < loaded.count(city=pt.OTHER).interval()[1]
    low, high = names.other("h").worst()
    assert low <= 90 <= high
    main(["query", str(tmp_path / "r.parquet"), "count by city"])
    assert "Ulm" in capsys.readouterr().out
    assert "all together" in loaded.report()


def test_the_ledger_pays_epsilon_and_delta(tmp_path: Path) -> None:
    """All of both, once, however many columns of text share delta; other views spend none of it."""
    ledger = pt.Ledger(tmp_path / "b.db")
    ledger.open("p", epsilon=5, delta="1e-5")
    table = {"city": towns(), "street": towns(), "age": [1] * 6000}
    schema: dict[str, pt.Domain] = {"city": CITY, "street": CITY, "age": pt.Integer(0, 9)}
    paid: dict[str, Any] = {"ledger": tmp_path / "b.db", "dataset": "p"}

    release = pt.publish(
        table, schema, views=[("city", "age"), ("street", "age")], epsilon=2, **STABLE, **paid
    )

    assert release.guarantee == pt.Guarantee(epsilon=2, delta="1e-6")
    assert [view.guarantee.delta for view in release.views if view.guarantee] == [
        Fraction(1, 2 * 10**6),
        Fraction(1, 2 * 10**6),
        0,
        0,
    ]
    assert [entry.stated for entry in ledger.entries("p")] == [release.guarantee]
    assert {"town 0", "town 1"} <= set(release.names("city").names)


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"delta": None}, "delta"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        ({"epsilon": None, "rho": 1}, "rho"),
        ({"queries": "marginal(age)"}, "queries"),
        ({"by": "age"}, "mechanism"),
        ({"options": {"rest": 1}}, "options.rest"),
    ],
    ids=str,
)
def test_a_threshold_of_stability_needs_delta(changes: dict[str, Any], parameter: str) -> None:
    """And no rho, no queries, and a column of text; refused before anything is read."""
    schema: dict[str, pt.Domain] = {"city": CITY, "age": pt.Integer(0, 9)}

    with pytest.raises(pt.InvalidParameter) as refused:
        pt.publish(object(), schema, **{"epsilon": 1, **STABLE, **changes})

    assert refused.value.parameter == parameter


@pytest.mark.parametrize(
    "wrong",
    [
        {"sums": ["age"]},
        {"queries": "marginal(city)"},
        {"wants": ["ranges of city"]},
        {"mechanism": "quantiles", "by": ["city"]},
        {"moments": ["age"]},
    ],
    ids=str,
)
def test_text_is_refused_where_values_must_be_declared(wrong: dict[str, Any]) -> None:
    """Before anything is read."""
    with pytest.raises(pt.InvalidParameter):
        pt.publish(object(), {"city": CITY, "age": pt.Integer(0, 9)}, epsilon=1, **wrong)


def test_names_need_a_column_of_text() -> None:
    """The mechanism finds nothing in numbers."""
    with pytest.raises(pt.InvalidParameter, match="mechanism"):
        pt.publish({"age": [1]}, {"age": pt.Integer(0, 9)}, epsilon=1, mechanism="names")


def test_options_are_those_of_the_mechanism() -> None:
    """The share of the first look may be named."""
    release = release_of(towns(), mechanism="names", options={"first": "1/2"})

    view: Any = release.view("city")
    assert view.axis.rate == 2


# Names that somebody chose to do harm.


@pytest.fixture
def hostile() -> pt.Release:
    """Each of these names is frequent, and so is one that is not UTF-8."""
    return release_of([*HOSTILE * 300, *[b"\xfe\xff"] * 300])


def test_hostile_names_are_found_and_shown_harmless(hostile: pt.Release) -> None:
    """What is shown can be printed; a name may be asked for as it is, or as it is shown."""
    names = hostile.names("city")

    assert set(names.raw) == {*(name.encode() for name in HOSTILE), b"\xfe\xff"}
    assert all(name.isprintable() for name in names.names)
    for raw, shown in zip(names.raw, names.names, strict=True):
        assert hostile.count(city=shown).value > 200
        if raw != b"\xfe\xff":
            assert hostile.count(city=raw.decode()).value == hostile.count(city=shown).value


def test_hostile_names_do_no_harm_in_any_output(hostile: pt.Release, tmp_path: Path, capsys: Any) -> None:
    """Terminal, HTML, SQL and JSON."""
    path = tmp_path / "r.parquet"
    hostile.save(path)
    shown = [hostile.report(), str(hostile.names("city")), repr(hostile.group("city").count())]
    for arguments in (["info", str(path)], ["query", str(path), "count by city"], ["plot", str(path)]):
        main([*arguments, "-o", str(tmp_path / "p.svg")] if arguments[0] == "plot" else arguments)
        shown.append(capsys.readouterr().out)
    for text in shown:
        assert all(each.isprintable() or each == "\n" for each in text)
    main(["query", str(path), "count by city", "--json"])
    assert json.loads(capsys.readouterr().out)
    page = hostile._repr_html_() + hostile.group("city").count()._repr_html_()
    assert "<script>x" not in page
    connection = duckdb.connect()
    relations = hostile.register(connection)
    listed = {row[0] for row in connection.execute(f'select city from "{relations[0]}"').fetchall()}
    assert set(hostile.names("city").names) <= listed
    quoted = "a,b;\"c''"
    assert hostile.sql(f"select count(*) from release where city = '{quoted}'")


def test_two_names_that_are_shown_alike_are_told_apart() -> None:
    """The printable one is listed, the other one is counted in other."""
    release = release_of(["\\x07"] * 400 + ["\x07"] * 400)

    assert release.names("city").raw == [b"\\x07"]
    assert release.count(city=pt.OTHER).value > 300


@pytest.mark.filterwarnings("ignore::partita.PrivacyWarning")
def test_more_names_than_labels_are_published_beside_another_column(tmp_path: Path) -> None:
    """All that were found are listed, the most frequent ones are labels, and the report says so."""
    rows = [f"n{number}" for number in range(1_010) for _ in range(40)]
    table = {"city": rows, "sex": ["a"] * len(rows)}
    schema: dict[str, Any] = {"city": pt.Text(5, "n0123456789"), "sex": pt.Category(["a", "b"])}

    release = pt.publish(table, schema, epsilon=60, path=tmp_path / "r.parquet")

    again = pt.load(tmp_path / "r.parquet")
    assert len(again.names("city").names) == 1_010
    assert [domain.size for domain in release.views[1].domains] == [1_000, 2]
    assert "city, whose names were found, with the labels" in " ".join(str(again.report()).split())
