"""Totals alone, from a table to a file: what is published, what is said, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import partita as pt
from partita.cli.main import main
from partita.domain.base import Domain
from partita.errors import InvalidParameter
from partita.testing import EndlessTape, system_noise, tape_noise

SCHEMA = {"cost": pt.Integer(0, 10**9), "age": pt.Integer(0, 120), "gain": pt.Integer(-(10**6), 10**6)}
COSTS = [None, -5, 10**9 + 1, *(100 + 7 * row % 900 for row in range(4_000))]
ROWS: dict[str, list[Any]] = {
    "cost": COSTS,
    "age": [row % 90 for row in range(len(COSTS))],
    "gain": [row % 700 - 300 for row in range(len(COSTS))],
}
TRUTH = sum(cost for cost in COSTS if cost is not None and 0 <= cost <= 10**9)


def published(**options: Any) -> pt.Release:
    asked = {"epsilon": 1, "sums": ["cost"], "mechanism": "totals", **options}
    with system_noise(tape_noise(EndlessTape("totals"))):
        return pt.publish(ROWS, SCHEMA, **asked)


def test_nothing_but_the_total_is_published() -> None:
    """Without `by` there are no counts, and the total has all of epsilon."""
    release = published()

    assert release.views == ()
    assert [(view.name, view.mechanism, view.keys) for view in release.sums] == [
        ("sum of cost", "totals", ())
    ]
    assert release.sum("cost").value == pytest.approx(TRUTH, rel=0.01)
    assert str(pt.plan(SCHEMA, epsilon=1, sums=["cost"], mechanism="totals").guarantee).startswith(
        "epsilon 1,"
    )


def test_special_cells_are_left_out_and_the_report_says_so() -> None:
    """A null, a value below and one above the bounds change nothing."""
    report = published().report()

    assert "Special cells of cost were not counted." in report
    assert "Rule: a total leaves out rows whose value is missing, cannot be read, or is beyond" in report
    assert "counts as the nearer bound" not in report


def test_several_totals_share_epsilon() -> None:
    """Each column is a view of its own; both signs may occur."""
    release = published(sums=["cost", "gain"])

    assert [view.name for view in release.sums] == ["sum of cost", "sum of gain"]
    assert str(release.sums[0].guarantee) == str(release.sums[1].guarantee)
    low, high = release.sum("gain").worst()
    assert low <= sum(ROWS["gain"]) <= high


def test_a_total_comes_back_from_its_file(tmp_path: Path) -> None:
    """Every word and every bound is the same."""
    release = published(path=tmp_path / "total.parquet")
    loaded = pt.load(tmp_path / "total.parquet")

    assert str(loaded.sum("cost")) == str(release.sum("cost"))
    assert loaded.sum("cost").worst(0.01) == release.sum("cost").worst(0.01)
    assert loaded.report() == release.report()


def test_other_questions_are_refused() -> None:
    """Counts, quantiles, variances and conditions have no answer in a total; the mean has one."""
    release = published()
    questions: list[Callable[[], object]] = [
        release.count,
        lambda: release.std("cost"),
        lambda: release.quantile("cost", 0.5),
        lambda: release.sum("cost", age=(1, 9)),
        lambda: release.sum("age"),
    ]
    for ask in questions:
        with pytest.raises(InvalidParameter):
            ask()
    assert release.mean("cost").value == pytest.approx(TRUTH / 4_000, rel=0.01)


@pytest.mark.parametrize(
    "options",
    [
        {"moments": ["cost"]},
        {"sums": []},
        {"sums": [], "moments": ["cost"]},
    ],
    ids=str,
)
def test_moments_are_refused(options: dict[str, Any]) -> None:
    """Before any row is read."""
    with pytest.raises(InvalidParameter, match="this one is for totals") as refused:
        published(**options)
    assert refused.value.parameter == "mechanism"


@pytest.mark.parametrize("options", [{"by": ["cost"]}, {"by": ["gain"]}], ids=str)
def test_keys_that_groups_cannot_have_are_refused(options: dict[str, Any]) -> None:
    """The summed column itself, and columns of too many cells; before any row is read."""
    with pytest.raises(InvalidParameter) as refused:
        published(**options)
    assert refused.value.parameter == "mechanism"


def test_totals_by_a_column_are_published_without_its_counts(tmp_path: Path) -> None:
    """Each age has its total and its mean, in the file as well; ages are not counted."""
    release = published(by=["age"], path=tmp_path / "totals.parquet")
    loaded = pt.load(tmp_path / "totals.parquet")
    costs = [cost for cost, age in zip(COSTS, ROWS["age"], strict=True) if age == 7 and cost is not None]

    assert release.views == ()
    assert [view.name for view in release.sums] == ["sum of cost by age"]
    low, high = release.sum("cost", age=7).interval()
    assert low <= sum(cost for cost in costs if 0 <= cost <= 10**9) <= high
    assert str(loaded.sum("cost", age=7)) == str(release.sum("cost", age=7))
    assert str(loaded.mean("cost", age=(20, 60))) == str(release.mean("cost", age=(20, 60)))
    assert "125 groups" in release.sums[0].sums.story


def test_an_empty_by_is_the_same_as_none() -> None:
    """Both publish the total alone, on one tape the same."""
    assert str(published(by=[]).sum("cost")) == str(published().sum("cost"))


def test_the_plan_names_the_mechanism_and_its_error() -> None:
    """In rows of the largest value; rows do not matter."""
    plan = pt.plan(SCHEMA, epsilon=1, sums=["cost"], mechanism="totals")

    assert {line["mechanism"] for line in plan.rows()} == {"totals"}
    assert len({line["error"] for line in plan.rows()}) == 1
    assert "a total, or one of a group, in multiples of the largest value it covers" in str(plan).replace(
        "\n", " "
    )


def test_the_command_line_answers_and_says_what_is_assumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`partita query` shows the assumption beside the interval, and `info` the total."""
    path = str(tmp_path / "total.parquet")
    published(path=path)

    assert main(["query", path, "sum of cost"]) == 0
    assert "all values, if the tail thins out" in capsys.readouterr().out
    assert main(["info", path, "--json"]) == 0
    assert '"mechanism": "totals"' in capsys.readouterr().out
    assert main(["query", path, "mean of cost"]) == 0
    assert main(["query", path, "std of cost"]) != 0


def test_an_answer_shows_what_it_is_about_in_a_notebook() -> None:
    """The words of `print` are on its card."""
    answer = published().sum("cost").answer

    assert str(answer).startswith("Total of all values from 0 to 1,000,000,000")
    assert "if the tail thins out" in answer._repr_html_()
    assert repr(answer).startswith("Answer(")


# --- columns that noise hides --------------------------------------------------------------------

HIDDEN: dict[str, list[Any]] = {
    "all zeros": [0] * 2_000,
    "one huge row": [0] * 1_999 + [10**9],
    "all null": [None] * 2_000,
    "constant": [700] * 2_000,
    "no row": [],
}
ASKED: dict[str, dict[str, Any]] = {
    "total": {"wants": ["total of cost"]},
    "mean": {"wants": ["mean of cost"]},
    "both": {"wants": ["total of cost", "mean of cost"]},
    "totals by team": {"wants": ["total of cost by team"]},
    "means by team": {"wants": ["mean of cost by team"]},
    "variances by team": {"wants": ["total of cost by team", "variance of cost by team"]},
    "sums": {"sums": ["cost"], "by": ["team"]},
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("column", HIDDEN)
def test_whatever_noise_hides_is_inside_of_the_interval(column: str, asked: str) -> None:
    """No total or mean of a group, with rows or without, or of all is 0 ± 0, and each holds the truth."""
    costs = HIDDEN[column]
    rows = {"cost": costs, "team": [1 + row % 3 for row in range(len(costs))]}
    schema: dict[str, Domain] = {"cost": pt.Integer(0, 10**9), "team": pt.Integer(1, 4)}
    with system_noise(tape_noise(EndlessTape(0))):
        release = pt.publish(rows, schema, epsilon=1, **ASKED[asked])
    texts = " ".join(ASKED[asked].get("wants", ["total mean by"]))
    groups = [{}, {"team": 1}, {"team": 4}] if "by" in texts else [{}]
    for group in groups:
        own = [
            cost
            for cost, team in zip(costs, rows["team"], strict=True)
            if cost is not None and group.get("team", team) == team
        ]
        truths = {"total": float(sum(own)), "mean": sum(own) / len(own) if own else None}
        for kind, truth in truths.items():
            if kind in texts:
                answer = (release.sum if kind == "total" else release.mean)("cost", where=group)
                low, high = answer.interval()
                assert low < high
                assert "± 0," not in f"{answer},"
                assert truth is None or low <= truth <= high


@pytest.mark.parametrize("by", ["", " by age"])
def test_a_total_beside_a_mean_is_about_all_values(by: str) -> None:
    """One view has both: the total leaves no tail out, and the mean is the total over its rows."""
    with system_noise(tape_noise(EndlessTape("both"))):
        release = pt.publish(ROWS, SCHEMA, epsilon=1, wants=[f"total of cost{by}", f"mean of cost{by}"])
    [view] = release.sums
    total, mean = release.sum("cost"), release.mean("cost")

    assert view.mechanism == "totals"
    assert total.covers.everything
    assert mean.covers.everything
    for answer, truth in ((total, TRUTH), (mean, TRUTH / 4_000)):
        low, high = answer.interval()
        assert low <= truth <= high
    assert str(total).startswith("Total of all values from 0 to 1,000,000,000;")
