"""Sums, means and variances: from rows to answers, and every mistake on the way."""

from __future__ import annotations

import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from partita.domain import Category, Date, Domain, Integer, Real
from partita.domain.base import NULL
from partita.errors import InvalidParameter, KeyReused, PrivacyWarning
from partita.guarantee import Guarantee
from partita.ledger.entries import Amount
from partita.ledger.ledger import Ledger
from partita.public.file import decode, encode, load
from partita.public.release import Release
from partita.publish.plan import plan
from partita.publish.publish import publish
from partita.publish.request import Request, weight_beside

ROWS = 3_000
TURN = np.arange(ROWS)
DATA: dict[str, Any] = {
    "id": TURN // 5,
    "age": TURN * 31 % 90,
    "salary": TURN * 7919 % 60_000,
    "change": TURN * 613 % 2_001 - 1_000,
    "rate": TURN % 100 / 8,
    "region": np.array(["north", "south"])[TURN % 2],
}
SCHEMA: dict[str, Domain] = {
    "age": Integer(0, 120),
    "salary": Integer(0, 2**32 - 1),
    "change": Integer(-(2**62), 2**62 - 1),
    "rate": Real(0, 1000, step="0.125"),
    "region": Category(["north", "south"]),
    "born": Date("1990-01-01", "1990-12-31"),
}
THIRTIES = (DATA["age"] >= 30) & (DATA["age"] <= 39)
LARGE = 10**4
"""An epsilon so large that noise is a few thousandths of a row."""


def schema(*columns: str) -> dict[str, Domain]:
    return {column: SCHEMA[column] for column in columns}


def exactly(columns: dict[str, Domain], source: Any = DATA, **other: Any) -> Release:
    """A release whose sums are all but exact."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return publish(source, columns, **{"epsilon": LARGE, **other})


def test_all_columns_are_axes_and_one_of_them_is_summed() -> None:
    """Counts and quantiles by age and salary, sums and means of salary by age, from one release."""
    release = exactly(schema("age", "salary"), sums=["salary"])
    rich = THIRTIES & (DATA["salary"] >= 50_000)

    assert release.count(age=(30, 39), salary=(50_000, None)).value == pytest.approx(rich.sum(), rel=0.05)
    assert release.sum("salary", age=(30, 39)).value == pytest.approx(
        DATA["salary"][THIRTIES].sum(), rel=1e-3
    )
    assert release.mean("salary", age=(30, 39)).value == pytest.approx(
        DATA["salary"][THIRTIES].mean(), rel=1e-3
    )
    assert release.quantile("salary", 0.5, age=(30, 39)).value == pytest.approx(30_000, rel=0.1)
    assert release.sum("salary").value == pytest.approx(DATA["salary"].sum(), rel=1e-3)


def test_a_summed_column_that_is_not_in_by_is_no_axis() -> None:
    """Its sums are asked for by the columns that are."""
    release = exactly(schema("age", "salary"), by=["age"], sums=["salary"])

    assert release.columns == ("age",)
    assert release.sum("salary", age={30, 45}).value == pytest.approx(
        DATA["salary"][np.isin(DATA["age"], [30, 45])].sum(), rel=1e-3
    )
    with pytest.raises(InvalidParameter, match=r"keys by which 'salary' was summed.*\('age'\).*got 'salary'"):
        release.sum("salary", salary=(0, 10))


def test_whole_sums_need_no_key() -> None:
    """An empty `by` publishes nothing but the sum, the mean, and how many rows there are."""
    release = exactly(schema("salary", "change"), by=[], sums=["salary", "change"])

    assert release.views == ()
    assert release.sum("salary").value == pytest.approx(DATA["salary"].sum(), rel=1e-3)
    assert release.sum("change").value == pytest.approx(DATA["change"].sum(), abs=20)
    assert release.mean("salary").value == pytest.approx(DATA["salary"].mean(), rel=1e-3)
    assert release.count().value == pytest.approx(ROWS, abs=0.1)
    with pytest.raises(InvalidParameter, match="this release has none"):
        release.quantile("salary", 0.5)


def test_a_column_alone_is_its_own_key() -> None:
    """Of a view of one summed column, sums are asked for between two of its values."""
    release = exactly(schema("salary"), sums=["salary"])
    inside = (DATA["salary"] >= 10_000) & (DATA["salary"] <= 40_000)

    assert [view.mechanism for view in release.sums] == ["log-tree"]
    assert release.sum("salary", salary=(10_000, 40_000)).value == pytest.approx(
        DATA["salary"][inside].sum(), rel=0.02
    )
    assert release.std("salary").value == pytest.approx(DATA["salary"].std(), rel=0.02)


def test_several_columns_are_summed_by_several_keys() -> None:
    """Every view has sums of every summed column by its other columns, and the least fitting one answers."""
    release = exactly(
        schema("age", "region", "change", "rate"),
        views=["age", ("age", "region"), "region"],
        sums=["change", "rate"],
    )
    north = THIRTIES & (DATA["region"] == "north")

    assert [(view.column, view.keys) for view in release.sums] == [
        (column, keys) for keys in (("age",), ("age", "region"), ("region",)) for column in ("change", "rate")
    ]
    assert release.sum("change", age=(30, 39), region="north").value == pytest.approx(
        DATA["change"][north].sum(),
        abs=100,  # ten standard errors: fresh noise hardly ever gets there
    )
    assert release.sum("rate", region=["south"]).value == pytest.approx(
        DATA["rate"][DATA["region"] == "south"].sum(), rel=1e-3
    )


def test_moments_are_sums_with_variances() -> None:
    """Variance and standard deviation of what was asked for; of plain sums they are refused with the fix."""
    release = exactly(schema("age", "salary", "change"), by="age", moments=["change"], sums=["salary"])

    chosen = DATA["change"][THIRTIES]
    assert release.variance("change", age=(30, 39)).value == pytest.approx(chosen.var(), rel=1e-3)
    assert release.std("change", age=(30, 39)).value == pytest.approx(chosen.std(), rel=1e-3)
    assert release.sum("change", age=(30, 39)).value == pytest.approx(chosen.sum(), abs=20)
    for ask in (release.variance, release.std):
        with pytest.raises(InvalidParameter, match=r"publish with moments=\['salary'\]"):
            ask("salary")


def test_an_answer_says_what_it_covers() -> None:
    """Values, bars, and the range of values that they are about."""
    answer = publish(DATA, schema("age", "salary"), epsilon=1, by="age", sums=["salary"]).sum("salary")

    low, high = answer.interval(0.95)
    assert low <= answer.value <= high
    assert answer.covers.low <= 0 < answer.covers.high
    assert answer.covers.text in str(answer)


@pytest.mark.parametrize(
    ("domain", "value"),
    [
        (Integer(0, 2**63 - 1), 2**62),
        (Integer(-(2**63) + 1, 0), -(2**62)),
        (Integer(-(2**62), 2**62 - 1), 2**62 - 1),
        (Integer(-(2**62), 2**62 - 1), -(2**62)),
    ],
    ids=str,
)
def test_values_at_the_end_of_the_widest_bounds_are_summed(domain: Integer, value: int) -> None:
    """Nothing overflows after the debit, whichever side they are on."""
    data = {"age": [30] * 4_000, "salary": [value] * 4_000}

    release = publish(data, {"age": SCHEMA["age"], "salary": domain}, epsilon=1, by="age", moments=["salary"])

    assert release.sum("salary").value == pytest.approx(4_000 * value, rel=0.1)


def test_of_nobody_a_mean_is_not_determinable() -> None:
    """Nothing is divided by a count that may be zero, and nothing breaks."""
    nobody = {name: np.array([], np.int64) for name in ("age", "salary")}
    release = publish(nobody, schema("age", "salary"), epsilon=1, by="age", moments=["salary"])

    for ask in (release.mean, release.variance, release.std):
        answer = ask("salary", age=(119, 120))
        assert not answer.determinable
        assert np.isnan(answer.value)
        assert "not determinable" in str(answer)


def test_what_is_no_number_adds_nothing() -> None:
    """Null counts in no mean, and a value beyond the bounds counts as the bound."""
    data = {"age": [30] * 400, "salary": [10, None, -5, 2_000] * 100}
    release = exactly({"age": SCHEMA["age"], "salary": Integer(0, 1_000)}, data, by="age", sums=["salary"])

    assert release.sum("salary").value == pytest.approx(101_000, abs=20)
    assert release.mean("salary").value == pytest.approx(1_010 / 3, abs=1)
    assert release.count().value == pytest.approx(400, abs=0.1)
    assert release.sum("salary", age=NULL).value == pytest.approx(0, abs=20)


def test_rows_of_a_person_are_bounded_in_sums() -> None:
    """With at most two rows each, a person of a thousand adds two values."""
    data = {"id": [7] * 1000 + [*range(8, 107)], "age": [30] * 1099, "salary": [100] * 1099}

    release = exactly(schema("age", "salary"), data, by="age", sums=["salary"], person="id", contributions=2)

    assert release.sum("salary").value == pytest.approx(100 * 101, abs=5)
    assert release.count(age=30).value == pytest.approx(101, abs=0.1)


def test_views_of_the_same_columns_are_counted_once() -> None:
    """So a source that can be read once only serves counts and sums."""
    batches = pa.table({name: DATA[name] for name in ("id", "age", "salary")}).to_reader()

    release = exactly(schema("salary", "age"), batches, sums=["salary"], person="id", contributions=5)

    assert release.sums[0].keys == ("age",)
    assert release.sum("salary").value == pytest.approx(DATA["salary"].sum(), rel=1e-3)


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_the_parts_of_epsilon_add_up(neighbors: Any) -> None:
    """Views promise epsilon together, to the last digit, and no view spends more than it promises."""
    release = publish(
        DATA,
        schema("region", "salary", "rate"),
        epsilon="1/3",
        by="region",
        sums=["salary"],
        moments=["rate"],
        person="id",
        contributions=2,
        neighbors=neighbors,
    )

    whole = Guarantee(epsilon="1/3", neighbors=neighbors, unit="person", contributions=2)
    parts = [view.guarantee.epsilon for view in release.published if view.guarantee]
    assert release.guarantee == whole
    assert sum(parts) == Fraction(1, 3)
    assert len(parts) == 3
    rows = 4 if neighbors == "change-one" else 2
    assert all(view.sums.spent * rows == view.guarantee.epsilon for view in release.sums if view.guarantee)


def test_one_debit_pays_for_counts_and_sums(ledger: Ledger, tmp_path: Path) -> None:
    """Exactly epsilon, under a name that says what was summed."""
    release = publish(
        DATA,
        schema("age", "salary"),
        epsilon="1/2",
        by="age",
        sums=["salary"],
        ledger=ledger,
        dataset="people",
        path=tmp_path / "sums.parquet",
        key="first",
    )

    [entry] = ledger.entries("people")
    assert entry.what == "age, sum of salary by age"
    assert ledger.balance("people").left == Amount(epsilon=Fraction(5, 2))
    again = publish(
        None,
        schema("age", "salary"),
        epsilon="1/2",
        by="age",
        sums=["salary"],
        ledger=ledger,
        dataset="people",
        path=tmp_path / "sums.parquet",
        key="first",
    )
    assert again.sum("salary", age=(30, 39)).value == release.sum("salary", age=(30, 39)).value
    with pytest.raises(KeyReused):
        publish(
            None,
            schema("age", "salary"),
            epsilon="1/2",
            by="age",
            moments=["salary"],
            ledger=ledger,
            dataset="people",
            path=tmp_path / "sums.parquet",
            key="first",
        )


@pytest.mark.parametrize(
    ("other", "parameter", "said"),
    [
        (
            {"sums": ["region"]},
            "sums",
            "columns of numbers, and this one is Category, got 'region'; declare it",
        ),
        ({"sums": ["born"]}, "sums", "this one is Date"),
        ({"moments": ["born"]}, "moments", "this one is Date"),
        ({"sums": ["wage"]}, "sums", "must name columns of the schema, got 'wage'"),
        ({"sums": ["salarie"]}, "sums", "did you mean 'salary'"),
        ({"sums": ["salary", "salary"]}, "sums", "each column once"),
        ({"sums": 5}, "sums", "must be a list of columns"),
        ({"moments": [5]}, "moments", "must be a list of columns"),
        ({"sums": np.array(["salary"])}, "sums", "must be a list of columns"),
        ({"by": []}, "by", "must have a column in each view"),
        ({"sums": ["salary"], "shares": {"age": 1}}, "shares", "'sum of salary by age': 1"),
        ({"sums": ["salary"], "by": [], "shares": {"age": 1}}, "shares", "one weight for each view"),
        ({"sums": ["salary"], "mechanism": "level-trees"}, "mechanism", "must be 'auto' or one of"),
    ],
    ids=str,
)
def test_what_makes_no_sense_costs_nothing(
    other: dict[str, Any], parameter: str, said: str, ledger: Ledger
) -> None:
    """Refused before a row is read, with the parameter, the rule and the fix."""
    with pytest.raises(InvalidParameter, match=said) as refused:
        publish(None, SCHEMA, **{"epsilon": 1, "by": "age", "ledger": ledger, "dataset": "people", **other})

    assert refused.value.parameter == parameter
    assert refused.value.fix
    assert ledger.entries("people") == ()


def test_columns_too_large_to_be_summed_are_refused() -> None:
    """More than 2^63 cells, be it the summed column or a key."""
    huge = {"x": Integer(0, 2**64 - 1), "y": Integer(0, 9)}

    with pytest.raises(InvalidParameter, match="sums must name columns of at most 2\\^63 cells"):
        Request.checked(huge, epsilon=1, by="y", sums=["x"])
    with pytest.raises(InvalidParameter, match="sums must have keys of at most 2\\^63 cells"):
        Request.checked(huge, epsilon=1, by="x", sums=["y"])


@pytest.mark.parametrize(
    "shares",
    [[1, 3], {"age": 1, "sum of salary by age": 3}, {("age",): "1/4", "sum of salary by age": "3/4"}],
)
def test_shares_name_sums_as_the_plan_does(shares: Any) -> None:
    """By the name of the view, or in the order of the plan; the release says that it was asked for."""
    request = Request.checked(schema("age", "salary"), epsilon=1, by="age", sums=["salary"], shares=shares)

    assert [view.share for view in request.published] == [Fraction(1, 4), Fraction(3, 4)]
    assert "It has 3/4 of epsilon, as asked for." in request.sums[0].why


def test_the_split_follows_predicted_errors() -> None:
    """Sums that are harder than the counts beside them get more, and everybody is told the same."""
    columns = schema("age", "salary")
    request = Request.checked(columns, epsilon=1, by="age", sums=["salary"])
    [counts], [sums] = request.views, request.sums
    equal = Request.checked(columns, epsilon=1, by="age", sums=["salary"], shares=[1, 1])

    weight = weight_beside(equal.sums[0].predicted_error, equal.views[0].predicted_error)
    assert sums.share / counts.share == weight
    assert f"It has {sums.share} of epsilon, where the predicted errors" in sums.why
    planned = plan(columns, epsilon=1, by="age", sums=["salary"])
    released = publish(DATA, columns, epsilon=1, by="age", sums=["salary"])
    assert planned.request.sums[0].share == sums.share
    assert sums.why in str(planned)
    assert released.sums[0].why == sums.why
    assert sums.why in released.report()


@pytest.mark.parametrize("factor", [1e-9, 1e-2, 1.0, 30.0, 1e9])
def test_no_view_is_starved(factor: float) -> None:
    """However errors compare, a weight lies between 1/4 and 4."""
    assert Fraction(1, 4) <= weight_beside(lambda rows: factor, lambda rows: 1.0) <= 4


def test_a_plan_has_a_line_for_every_view_and_touches_no_data() -> None:
    """Counts and sums with their parts of epsilon, and what errors are measured in."""
    shown = str(plan(schema("age", "salary"), epsilon=1, rows=10_000, by="age", moments=["salary"]))

    assert "sum of salary by age  level-trees" in shown
    assert "in multiples of the largest" in shown


def test_sums_survive_their_file(tmp_path: Path) -> None:
    """Every answer is the same after a save and a load, and in a second encoding."""
    release = publish(
        DATA, schema("age", "region", "salary"), epsilon=1, by=["age", "region"], moments=["salary"]
    )
    release.save(tmp_path / "sums.parquet")
    loaded = load(tmp_path / "sums.parquet")

    asked: dict[str, Any] = {"age": (20, 50), "region": "north"}
    for ask in ("sum", "mean", "variance", "std"):
        before, after = (getattr(each, ask)("salary", asked) for each in (release, loaded))
        assert (before.value, before.error, str(before)) == (after.value, after.error, str(after))
        assert before.worst(0.1) == after.worst(0.1)
    assert encode(loaded) == encode(decode(encode(release))) == (tmp_path / "sums.parquet").read_bytes()


def test_reports_and_citations_tell_of_sums() -> None:
    """What was summed, by what, with which part of epsilon, and how values beyond bounds are taken."""
    release = publish(DATA, schema("age", "salary"), epsilon=1, by="age", sums=["salary"])

    report = release.report()
    assert "with noisy counts along age and noisy sums of salary" in report
    assert "Sums of salary, declared as Integer(0, 4294967295), by age." in report
    assert "counts as the nearer bound" in report
    assert "sum of salary by age" in repr(release)
    assert release.citation().startswith("@software{partita")


def test_synthetic_rows_have_the_columns_that_were_counted() -> None:
    """Sums beside them change nothing about that."""
    release = publish(DATA, schema("age", "salary"), epsilon=1, by="age", sums=["salary"])

    assert list(release.synthesize(10)) == ["age"]
