"""Just what is wanted: from words to views, their parts of epsilon, answers and refusals."""

from __future__ import annotations

import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.domain.base import Domain
from partita.errors import InvalidParameter, InvalidRelease, KeyReused, PrivacyWarning
from partita.ledger.entries import Amount
from partita.ledger.ledger import Ledger
from partita.public.file import SPEC, Stored, columns_of, decode, encode
from partita.public.file_entries import checksum, to_canonical
from partita.public.file_parquet import to_parquet
from partita.public.questions import KINDS, QueryRunner
from partita.public.wants import WANTS, Want, parse_want, read_want
from partita.publish.request import Request

ROWS = 4_000
TURN = np.arange(ROWS)
TOWNS = [f"town {number}" for number in range(20)]
DATA: dict[str, Any] = {
    "age": TURN * 31 % 90,
    "cost": TURN * 7919 % 60_000,
    "change": TURN * 613 % 2_001 - 1_000,
    "town": np.array(TOWNS)[TURN % 20],
}
SCHEMA: dict[str, Domain] = {
    "age": pt.Integer(0, 120),
    "cost": pt.Integer(0, 2**32 - 1),
    "change": pt.Integer(-(2**40), 2**40),
    "town": pt.Category(TOWNS),
}
LARGE = 10**4
"""An epsilon so large that noise is a few thousandths of a row."""

EVERY = ["total of cost", "mean of change by town", "variance of change", "ranges of age"]


def made(wants: Any, **other: Any) -> pt.Release:
    """A release of just that, all but exact."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return pt.publish(DATA, SCHEMA, **{"epsilon": LARGE, "wants": wants, **other})


@pytest.mark.parametrize("kind", WANTS.values(), ids=lambda kind: kind.name)
def test_the_text_of_a_want_says_the_same_want(kind: Any) -> None:
    """Every example of every form is read, and what it writes is read as the same."""
    for example in kind.forms.values():
        want = parse_want(example)

        assert want.kind is kind
        assert parse_want(str(want)) == want


def test_functions_make_what_texts_say() -> None:
    """Both ways to want something are one."""
    made_and_written = [
        (pt.median("cost"), "median of cost"),
        (pt.quantile("cost", "0.9"), "quantile 9/10 of cost"),
        (pt.quantiles("cost", 9), "9 quantiles of cost"),
        (pt.median("cost", interval=True), "median of cost with interval"),
        (pt.quantiles("cost", 9, interval=True), "9 quantiles of cost with interval"),
        (pt.total("cost"), "total of cost"),
        (pt.mean("cost", by="town"), "mean of cost by town"),
        (pt.variance("cost"), "variance of cost"),
        (read_want(pt.ranges("cost")), "ranges of cost"),
    ]

    assert all(parse_want(text) == want for want, text in made_and_written)
    assert str(pt.total()) == "total()"


def test_what_is_wanted_is_answered() -> None:
    """All but exactly, with a large epsilon."""
    release = made(EVERY)
    town = DATA["change"][DATA["town"] == "town 3"]

    assert release.sum("cost").value == pytest.approx(DATA["cost"].sum(), rel=1e-3)
    assert release.mean("change", town="town 3").value == pytest.approx(town.mean(), abs=2)
    assert release.variance("change").value == pytest.approx(DATA["change"].var(), rel=1e-2)
    assert release.count(age=(30, 39)).value == pytest.approx(
        ((DATA["age"] >= 30) & (DATA["age"] <= 39)).sum(), abs=2
    )
    assert release.wants == tuple(map(parse_want, EVERY))


def test_quantiles_come_alone() -> None:
    """A median and deciles of one column are one view, which answers these shares and no other."""
    release = made(["median of cost", "9 quantiles of cost"])
    true = np.quantile(DATA["cost"], [0.1, 0.5], method="inverted_cdf")

    assert [type(view).__name__ for view in release.published] == ["QuantileView"]
    found = [float(str(each.value)) for each in release.quantile("cost", [0.1, 0.5])]
    assert found == pytest.approx(true.tolist(), rel=0.01)
    with pytest.raises(InvalidParameter):
        release.quantile("cost", 0.25)


def test_an_interval_of_values_is_bought() -> None:
    """One that wants it brings it to every quantile of the column, and the true values lie in it."""
    release = made(["median of cost with interval", "3 quantiles of cost"], epsilon=50)
    true = np.quantile(DATA["cost"], [0.25, 0.5, 0.75], method="inverted_cdf")

    for found, value in zip(release.quantile("cost", [0.25, 0.5, 0.75]), true.tolist(), strict=True):
        low, high = (int(str(end)) for end in found.interval(0.95))
        assert low <= value <= high
        assert high - low < 15_000
        assert f"95% from {low} to {high}" in str(found)


def test_an_interval_costs_a_part_of_epsilon_and_is_planned() -> None:
    """Without one all of epsilon chooses the quantile; a plan says what an interval would hold."""
    [plain] = Request.checked(SCHEMA, epsilon=1, wants=["median of cost"]).published
    [bought] = Request.checked(SCHEMA, epsilon=1, wants=[pt.median("cost", interval=True)]).published

    assert plain.choice.mechanism.rates == (1,)
    assert bought.choice.mechanism.rates == (Fraction(3, 5),)
    assert bought.choice.mechanism.side == Fraction(2, 5)
    assert "Each has an interval" in str(pt.plan(SCHEMA, epsilon=1, wants=["median of cost with interval"]))
    assert "Each has an interval" not in str(pt.plan(SCHEMA, epsilon=1, wants=["median of cost"]))


@pytest.mark.parametrize(
    ("wants", "mechanism"),
    [
        (["total of cost"], "totals"),
        (["mean of cost"], "group-means"),
        (["total of cost", "mean of cost"], "totals"),
        (["total of cost by size"], "totals"),
        (["total of cost by town", "mean of cost by town"], "totals"),
        (["mean of cost by town"], "group-means"),
        (["mean of cost by size"], "totals"),
        (["mean of cost by age"], "group-means"),
        (["variance of cost by age"], "level-trees"),
        (["median of cost"], "quantiles"),
        (["ranges of age"], "intervals"),
    ],
)
def test_each_want_has_its_mechanism(wants: list[str], mechanism: str) -> None:
    """By public facts: what is wanted, and how many groups there are."""
    schema = {**SCHEMA, "size": pt.Integer(1, 9)}
    [view] = Request.checked(schema, epsilon=1, wants=wants).published

    assert view.choice.name == mechanism
    assert "by name" not in view.why


def test_a_mean_by_group_is_asked_of_the_view_that_has_it() -> None:
    """Beside a total of the same column, which cannot tell a mean."""
    release = made(["total of cost", "mean of cost by age"])
    thirty = DATA["cost"][DATA["age"] == 30]

    assert release.mean("cost", age=30).value == pytest.approx(thirty.mean(), rel=0.05)
    assert "Total of all values" in str(release.sum("cost"))


def test_nothing_else_is_released() -> None:
    """Each view serves a want, and epsilon is spent to the last digit on these alone."""
    release = made(EVERY, epsilon=1)
    epsilons = [view.guarantee.epsilon for view in release.published if view.guarantee is not None]

    assert [type(view).__name__ for view in release.published] == ["View", "SumView", "SumView", "SumView"]
    assert release.columns == ("age",)
    assert sum(epsilons) == 1 == release.guarantee.epsilon  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "ask",
    [
        lambda release: release.count(town="town 3"),
        lambda release: release.quantile("cost", 0.5),
        lambda release: release.sum("age"),
        lambda release: release.mean("cost", town="town 3"),
        lambda release: release.histogram("cost"),
    ],
)
def test_another_question_is_told_what_was_wanted(ask: Any) -> None:
    """The error names all wants; a release of everything says what it says today."""
    with pytest.raises(InvalidParameter, match="made for just this: total of cost, mean of change by town"):
        ask(made(EVERY, epsilon=1))


def test_sums_of_the_same_groups_come_from_one_view() -> None:
    """A total and a mean of one column need the same numbers."""
    request = Request.checked(SCHEMA, epsilon=1, wants=["total of cost", "mean of cost"])

    assert [view.name for view in request.published] == ["sum of cost"]


def test_shares_follow_predicted_errors_and_weights() -> None:
    """A want that errs more at the same epsilon gets more; a weight of 8 doubles a part."""
    plain = Request.checked(SCHEMA, epsilon=1, wants=["total of cost", "variance of cost by town"])
    total, variance = (view.share for view in plain.published)
    heavy = Request.checked(
        SCHEMA,
        epsilon=1,
        wants=["total of cost", "total of change"],
        shares={"total of cost": 8, "total of change": 1},
    )
    first, second = (view.share for view in heavy.published)

    assert total < variance
    assert total + variance == first + second == 1
    assert 1.9 < first / second < 2.1


@pytest.mark.parametrize(
    ("wants", "match"),
    [
        ([], "wants must be a list of wants, got 'none'"),
        ([3], "wants must be wants, or their texts"),
        (["medan of cost"], "did you mean median"),
        (["total of csot"], "did you mean 'cost'"),
        (["total of town"], "wants must name columns of numbers"),
        (["total of cost", "total of cost"], "each want once"),
        (["mean of cost by cost"], "name each column once"),
        ([pt.ranges("age", step=10)], "queries= for other queries"),
        (["variance of change by cost"], "wants must be by a column of at most 4,096 cells"),
        (["mean of change by cost"], "or 65,536 for means alone"),
    ],
)
def test_bad_wants_are_refused(wants: Any, match: str) -> None:
    """The message names the parameter, the rule and the fix."""
    with pytest.raises(InvalidParameter, match=match):
        Request.checked(SCHEMA, epsilon=1, wants=wants)


@pytest.mark.parametrize(
    "beside",
    [
        {"by": ["age"]},
        {"views": [("age",)]},
        {"sums": ["cost"]},
        {"queries": "total"},
        {"mechanism": "tree"},
        {"quantiles": 9},
    ],
)
def test_wants_stand_alone(beside: dict[str, Any]) -> None:
    """What else could be published is refused beside them."""
    with pytest.raises(InvalidParameter, match=f"{next(iter(beside))} must be left out"):
        Request.checked(SCHEMA, epsilon=1, wants=["total of cost"], **beside)


def test_a_file_keeps_the_wants(tmp_path: Path) -> None:
    """What is read answers and refuses as what was written, and has the version of wants."""
    release = made(EVERY, epsilon=1)
    read = decode(encode(release))

    assert read.wants == release.wants
    assert read.sum("cost").value == release.sum("cost").value
    assert encode(read) == encode(release)
    with pytest.raises(InvalidParameter, match="made for just this"):
        read.count(town="town 3")


def test_a_file_without_wants_has_another_version() -> None:
    """Version 5 with an empty list is refused: the same release would be written in two ways."""
    stored = Stored.of(made(["total of cost"], epsilon=1))
    spec: Any = {**stored.spec, "wants": []}
    spec["checksum"] = checksum(spec, stored.values)

    with pytest.raises(InvalidRelease, match="must name its wants"):
        decode(to_parquet(columns_of(stored.spec), stored.values, {SPEC: to_canonical(spec)}))


def test_a_quantile_says_by_how_many_rows_its_rank_is_off() -> None:
    """On the command line and over HTTP, where its interval of values is that of the domain."""
    release = made(["median of cost"], epsilon=1)
    runner = QueryRunner(release=release, confidence=0.95, beta=0.05)
    record = runner.answer(KINDS["quantile"](column="cost"))

    assert record["rank_error"] == pytest.approx(release.quantile("cost", 0.5).rank_error())  # type: ignore[union-attr]
    assert "rows of its rank" in str(KINDS["quantile"].result.text(KINDS["quantile"](column="cost"), record))


def test_one_debit_pays_for_all(tmp_path: Path) -> None:
    """A key returns what is stored, and other wants need another key."""
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", epsilon=3)
    paid: dict[str, Any] = {"epsilon": 1, "ledger": ledger, "dataset": "people", "key": "a"}
    first = pt.publish(DATA, SCHEMA, wants=EVERY, path=tmp_path / "a.partita", **paid)
    again = pt.publish(DATA, SCHEMA, wants=EVERY, path=tmp_path / "a.partita", **paid)

    assert encode(first) == encode(again)
    assert ledger.balance("people").spent == Amount(Fraction(1))
    with pytest.raises(KeyReused):
        pt.publish(DATA, SCHEMA, wants=EVERY[:1], path=tmp_path / "a.partita", **paid)


def test_wants_are_shown_as_they_are_written() -> None:
    """Names that need quotes have them."""
    assert repr(pt.total("paid cost", by="town")) == "Want(total of 'paid cost' by town)"
    assert isinstance(pt.median("a"), Want)
