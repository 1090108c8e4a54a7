"""Answers to queries: from rows to a release, with delta, a ledger and a file like all others."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.domain import Category, Domain, Integer, Real, Timestamp
from partita.errors import InvalidParameter, PrivacyWarning
from partita.guarantee import Guarantee
from partita.ledger.entries import Amount
from partita.ledger.ledger import Ledger
from partita.public.file import decode, encode, load
from partita.public.queries.language import marginal, ranges, value, weights
from partita.publish.plan import plan
from partita.publish.publish import publish
from partita.publish.request import Request
from partita.trusted.mechanisms.catalogue import ROWS, query_mechanisms

TURN = np.arange(2_000)
DATA: dict[str, Any] = {
    "age": TURN * 31 % 90,
    "income": TURN * 7 % 40,
    "region": np.array(["north", "south"])[TURN % 2],
}
SCHEMA: dict[str, Domain] = {
    "age": Integer(0, 99),
    "income": Integer(0, 49),
    "region": Category(["north", "south"]),
}
BANDS = [(0, 17), (18, 64), (65, 99)]
INCOMES = ranges("age", BANDS) * value("income")
MANY = ranges("age", step=10) * value("income")
SAID = "ranges(age, (0, 17), (18, 64), (65, 99)) * value(income)"
EXACT = np.array([DATA["income"][(DATA["age"] >= low) & (DATA["age"] <= high)].sum() for low, high in BANDS])


def exactly(queries: Any, **other: Any) -> Any:
    """Answers that are all but exact."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return publish(
            DATA, SCHEMA, **{"epsilon": 10_000, "mechanism": "linear", "queries": queries, **other}
        )


@pytest.mark.parametrize(
    "queries", [INCOMES, SAID, [SAID], (INCOMES,)], ids=["made", "text", "list", "tuple"]
)
def test_queries_are_answered_in_their_order(queries: Any) -> None:
    """As an expression, as its text, or as a list of these; nothing else is published."""
    release = exactly(queries)

    assert release.answers().values == pytest.approx(EXACT, rel=0.01)
    assert release.labels()[1] == "between(age, 18, 64) * value(income)"
    assert release.answer(1).value == release.answers().values[1]
    assert (release.views, release.sums, release.columns) == ((), (), ())


def test_a_list_is_one_workload() -> None:
    """Its queries follow one another."""
    release = exactly([SAID, "total()", marginal("region")])

    assert len(release.answers()) == 3 + 1 + 4
    assert release.answers().values[3:] == pytest.approx([2_000, 1_000, 1_000, 0, 0], abs=20)
    assert release.count().value == release.answer(3).value


def test_counts_and_sums_may_stand_beside_queries() -> None:
    """With `by` or `views`, all share epsilon; the mechanism is for what it suits."""
    release = exactly(INCOMES, by="age", sums=["income"])

    assert release.count(age=(18, 64)).value == pytest.approx(
        (np.isin(DATA["age"], range(18, 65))).sum(), abs=2
    )
    assert release.sum("income").value == pytest.approx(DATA["income"].sum(), rel=0.01)
    assert release.answers().values == pytest.approx(EXACT, rel=0.01)
    assert [view.mechanism for view in release.published][1:] == ["level-trees", "linear"]


def test_weights_given_by_a_function_are_settled_on_public_cells() -> None:
    """The release says them in its file, where no function is."""
    heavy = weights(("income",), lambda income: income * income, bound=49 * 49)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        release = decode(encode(exactly(heavy)))

    assert release.answers().values == pytest.approx([(DATA["income"] ** 2).sum()], rel=0.01)


@pytest.mark.parametrize("name", sorted(query_mechanisms()))
def test_every_mechanism_answers_and_survives_its_file(name: str, tmp_path: Path) -> None:
    """Answers, errors, guarantee and report are the same after a save and a load."""
    queries = value("income") if name == "single-truncation" else INCOMES
    release = publish(DATA, SCHEMA, epsilon=1, delta="1e-6", queries=queries, mechanism=name)
    release.save(tmp_path / "answers.parquet")
    loaded = load(tmp_path / "answers.parquet")

    assert loaded.answers().values.tolist() == release.answers().values.tolist()
    assert loaded.answers().error.tolist() == release.answers().error.tolist()
    assert loaded.guarantee == release.guarantee
    assert loaded.report() == release.report()
    assert f"{name!r}, with epsilon 1" in release.report()


def test_delta_is_debited_with_epsilon(ledger: Ledger, tmp_path: Path) -> None:
    """What the ledger pays is what the release promises."""
    ledger.open("answers", epsilon=3, delta="1e-5")
    arguments: dict[str, Any] = {
        "epsilon": 1,
        "delta": "1e-6",
        "queries": MANY,
        "mechanism": "weights",
        "ledger": ledger,
        "dataset": "answers",
        "path": tmp_path / "answers.parquet",
        "key": "first",
    }

    release = publish(DATA, SCHEMA, **arguments)

    assert release.guarantee == Guarantee(epsilon=1, delta="1e-6")
    assert ledger.balance("answers").left == Amount(epsilon=Fraction(2), delta=Fraction(9, 10**6))
    assert ledger.entries("answers")[0].what == "queries"
    again = publish(None, SCHEMA, **arguments)
    assert again.answers().values.tolist() == release.answers().values.tolist()
    assert len(ledger.entries("answers")) == 1


@pytest.mark.parametrize("name", ["linear", "projection", "composition", "weights", "normalization"])
def test_a_delta_that_buys_nothing_is_not_spent(name: str, ledger: Ledger) -> None:
    """For a few queries pure composition asks for the least noise: the release and its debit are pure."""
    ledger.open("answers", epsilon=3, delta="1e-5")
    paid: dict[str, Any] = {"ledger": ledger, "dataset": "answers"}

    release = publish(DATA, SCHEMA, epsilon=1, delta="1e-6", queries=INCOMES, mechanism=name, **paid)

    assert release.queries is not None
    assert release.guarantee == release.queries.guarantee == Guarantee(epsilon=1)
    assert ledger.balance("answers").left == Amount(epsilon=Fraction(2), delta=Fraction(1, 10**5))


@pytest.mark.parametrize("name", ["linear", "projection", "composition", "weights", "normalization"])
def test_a_delta_that_lowers_noise_is_spent(name: str) -> None:
    """For many queries over the same rows another theorem asks for less, and it needs the delta."""
    asked: dict[str, Any] = {"epsilon": 1, "queries": ranges("age") * value("income"), "mechanism": name}

    pure, approximate = (Request.checked(SCHEMA, delta=delta, **asked) for delta in (0, "1e-6"))

    assert approximate.guarantee.delta == Fraction(1, 10**6)
    assert approximate.published[0].predicted_error(10**5) < pure.published[0].predicted_error(10**5)


@pytest.mark.parametrize(
    ("other", "parameter", "said"),
    [
        (
            {"queries": "ranges(aeg)"},
            "queries",
            "must name columns of the schema, got 'aeg'; did you mean 'age'",
        ),
        ({"queries": 5}, "queries", "must be queries, or their text"),
        ({"queries": [INCOMES, 5]}, "queries", "must be queries, or their text"),
        ({"queries": []}, "queries", "must not be empty"),
        ({"queries": weights("age", lambda age: 1 / 0, bound=1)}, "queries", "got 'zero for every cell'"),
        ({"queries": "between(age, 3, 1)"}, "ends", "must be in the order of 'age', got '3, 1'"),
        ({"queries": INCOMES, "mechanism": "tree"}, "mechanism", "this one is for one column"),
        ({"queries": INCOMES, "mechanism": "wheights"}, "mechanism", "did you mean 'weights'"),
        ({"mechanism": "weights"}, "mechanism", "this one is for queries"),
        ({"queries": INCOMES, "delta": -1}, "delta", "delta"),
        ({"queries": INCOMES, "delta": 1.5}, "delta", "delta"),
        ({"queries": INCOMES, "shares": [1, 1]}, "shares", "one view gets all"),
    ],
    ids=str,
)
def test_what_makes_no_sense_costs_nothing(
    other: dict[str, Any], parameter: str, said: str, ledger: Ledger
) -> None:
    """Refused before a row is read, with the parameter, the rule and the fix."""
    with pytest.raises(InvalidParameter, match=said) as refused:
        publish(None, SCHEMA, **{"epsilon": 1, "ledger": ledger, "dataset": "people", **other})

    assert refused.value.parameter == parameter
    assert refused.value.fix
    assert ledger.entries("people") == ()


@pytest.mark.parametrize("name", sorted(query_mechanisms()))
def test_what_a_mechanism_cannot_do_is_refused_before_rows_are_read(name: str) -> None:
    """A universe of 2^60 cells is answered, or refused while it costs nothing."""
    huge = {"x": Integer(0, 2**30), "y": Integer(0, 2**30)}
    asked: dict[str, Any] = {
        "epsilon": 1,
        "delta": "1e-6",
        "queries": value("x") * value("y"),
        "mechanism": name,
    }

    if is_granted(huge, **asked):
        assert len(publish({"x": [1, 2], "y": [3, 4]}, huge, **asked).answers()) == 1


def is_granted(schema: Any, **asked: Any) -> bool:
    try:
        Request.checked(schema, **asked)
    except InvalidParameter:
        return False
    return True


def test_the_choice_follows_predicted_errors() -> None:
    """Of all mechanisms that can have the queries, the one of the least predicted error, which says so."""
    [best] = Request.checked(SCHEMA, epsilon=1, delta="1e-6", queries=INCOMES).published
    others = [
        Request.checked(SCHEMA, epsilon=1, delta="1e-6", queries=INCOMES, mechanism=name).published[0]
        for name in query_mechanisms()
        if name != "single-truncation"
    ]

    typical = [math.prod(each.predicted_error(rows) for rows in ROWS) for each in (best, *others)]
    assert typical[0] == min(typical)
    assert "It has the smallest predicted error of an answer" in best.why


def test_a_plan_shows_what_the_mechanism_would_choose() -> None:
    """Rounds and rates of multiplicative weights, for every guess of the number of rows."""
    planned = plan(SCHEMA, epsilon=1, delta="1e-6", queries=INCOMES, mechanism="weights", rows=[10**4, 10**6])

    shown = str(planned)
    assert "queries, for 10,000 rows: " in shown
    assert "queries, for 1,000,000 rows: " in shown
    assert "error is the typical error of an answer to a query." in shown
    assert all(line["says"] for line in planned.rows())


@pytest.mark.parametrize("name", sorted(query_mechanisms()))
def test_plans_are_sentences(name: str) -> None:
    """What every mechanism says, and why it was taken, begins with a capital and ends with a full stop."""
    planned = plan(SCHEMA, epsilon=1, delta="1e-6", queries=value("income"), mechanism=name, rows=10)
    [line] = planned.rows()

    said = [*line["says"], planned.request.published[0].why]
    assert len(said) > 1
    assert all(each[0].isupper() and each.endswith(".") and not each.endswith("..") for each in said)


def test_releases_without_queries_say_so() -> None:
    """Their answers are refused, with the parameter that would have made some."""
    release = publish(DATA, SCHEMA, epsilon=1, by="age")

    for ask in (release.answers, release.labels, lambda: release.answer(0)):
        with pytest.raises(InvalidParameter, match="publish with queries="):
            ask()
    with pytest.raises(InvalidParameter, match="index"):
        exactly(INCOMES).answer(3)


def test_ends_between_two_cells_are_refused() -> None:
    """An end off the grid of its column is refused with the nearest ends, before anything is counted."""
    scores, schema = {"score": [4.0, 4.5] * 20}, {"score": Real(0, 10, step="0.5")}
    for queries in (ranges("score", [(4.1, 4.4)]), "between(score, 4.1, 5)", weights("score", {4.1: 1})):
        with pytest.raises(InvalidParameter, match=r"must be a multiple of 0.5, got '4.1'; pass 4.0 or 4.5"):
            publish(scores, schema, epsilon=1, queries=queries)


def test_a_day_is_all_of_it_at_either_end() -> None:
    """Queries about times take days and months as questions do: from the first slot to the last one."""
    times = {"seen": ["2026-03-01T00:30", "2026-03-31T23:30", "2026-04-01T00:30"]}
    schema = {"seen": Timestamp("2026-01-01", "2026-12-31T23:00", "1h", zone="Europe/Rome")}
    queries = ranges("seen", [("2026-03-01", "2026-03-31"), ("2026-03", "2026-03"), ("2025", "2026-03-01")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        found = publish(times, schema, epsilon=10_000, mechanism="linear", queries=queries)
        again = decode(encode(found))
    assert np.allclose(found.answers().values, [2, 2, 1], atol=0.01)
    assert np.allclose(again.answers().values, found.answers().values)
    with pytest.raises(InvalidParameter, match=r"beginning of a slot of 1h, got '2026-03-01T00:30'"):
        publish(times, schema, epsilon=1, queries=ranges("seen", [("2026-03-01T00:30", None)]))
    with pytest.raises(InvalidParameter, match="must be a single cell to be weighed"):
        publish(times, schema, epsilon=1, queries=weights("seen", {"2026-03-01": 1}))
