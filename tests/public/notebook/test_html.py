"""What notebooks show is well-formed HTML without script, with every name escaped."""

from __future__ import annotations

import math
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any, Final

import numpy as np
import pytest

import partita as pt
from partita.html import Html, bars, card, field, grid, number, plus_minus, shortlist, span, triangle, whisker
from partita.public.release import Release
from tests.table_releases import DOMAINS, table_release

VOID: Final = {"rect", "line", "circle"}
HARMLESS: Final = {"div", "b", "table", "thead", "tbody", "tr", "th", "td", "span"} | {
    "svg", "g", "text", "title"
} | VOID  # fmt: skip
ATTRIBUTES: Final = {"style", "role", "aria-hidden", "width", "height", "viewbox", "fill", "stroke"} | {
    "stroke-width", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "aria-label", "font-size"
}  # fmt: skip


class Strict(HTMLParser):
    """Refuses what is not closed in order, and any tag or attribute that could load or run something."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in HARMLESS
        assert {name for name, _ in attrs} <= ATTRIBUTES
        assert not any("url(" in (value or "") for _, value in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def text_of(html: str) -> str:
    """The text of harmless, well-formed HTML."""
    strict = Strict()
    strict.feed(html)
    strict.close()
    assert not strict.open
    return strict.text


def shown(thing: Any) -> str:
    """What a notebook shows of a thing, as text."""
    return text_of(thing._repr_html_())


def test_a_release_shows_its_promise_its_views_and_its_columns(release: Release) -> None:
    """Names that look like code are text."""
    said = shown(release)

    assert "epsilon 1, pure, for adding or removing one row" in said
    assert "age x pay" in said
    assert "sum of pay by age" in said
    assert "<script>alert('&')</script>" in said
    assert "not recorded" in said


def test_everything_that_a_release_answers_can_be_shown(release: Release) -> None:
    """Counts, sums, means, quantiles, tables, and the views themselves."""
    hostile = release.columns[-1]
    answers = [
        release.count(age=(3, 9)),
        release.counts(age=([0, 10], [9, 19])),
        release.sum("pay", age=(3, 9)),
        release.mean("pay", age=(3, 9)),
        release.mean("pay", age=pt.NULL),
        release.quantile("age", 0.5),
        release.quantile(hostile, 0.5),
        release.histogram("age", 60),
        release.histogram(hostile),
        release.cdf("age"),
        release.quantile("age", [0.25, 0.5]),
        release.sql("select count(*), median(age) from release"),
        release.group(pt.bins("age", 4)).count(),
        release.histogram("age", "pay", 12),
        *release.published,
    ]

    assert all(map(shown, answers))
    assert hostile in shown(release.histogram(hostile))
    assert hostile in shown(release.quantile(hostile, 0.5))


def test_small_results_show_all_rows(release: Release) -> None:
    """Groups, quantiles and statements of SQL show every row, with its interval."""
    deciles = release.quantile("age", [each / 10 for each in range(1, 10)])
    grouped = release.sql("select bins(age, 12), count(*) as n from release group by 1 order by 1")

    assert deciles._repr_html_().count("<tr") == 9 + 1
    assert str(deciles).count("\n") == 8
    assert grouped._repr_html_().count("<tr") == 12 + 1
    assert release.group(pt.bins("age", 24)).count()._repr_html_().count("<tr") == 24 + 1
    assert "± 95%" in str(release.counts(age=([0, 10], [9, 19])))


def test_a_table_release_shows_which_columns_depend_on_each_other() -> None:
    """The release, its view and the dependence itself have a field for each pair, which says what it is."""
    release = table_release()
    strongest = release.dependence().pairs[0]
    words = f"{strongest.first} and {strongest.second}: {strongest.dependence:.2f}, {strongest.basis}"

    for thing in (release, *release.views, release.dependence()):
        assert words in shown(thing)
        assert thing._repr_html_().count("<title>") == math.comb(len(DOMAINS), 2)


def test_names_in_a_matrix_are_text() -> None:
    """Names and words that look like code are escaped, and so is the label of the picture."""
    hostile = "<script>alert('&\"')</script>"
    made = triangle(
        ["a", hostile], lambda i, j: 9.0, lambda i, j: True, lambda i, j: hostile, label=hostile, note=hostile
    )

    assert text_of(made).count(hostile) == 3
    assert 'fill="rgba(76, 120, 168, 1.00)"' in made


def test_answers_to_queries_can_be_shown(asked: Release) -> None:
    """A release without counts has no number of rows and no pictures of columns."""
    assert "2 queries of age" in shown(asked)
    assert "rows" not in shown(asked)
    assert "2" in shown(asked.queries)
    assert shown(asked.answers()).startswith("Answers(2 values)")


def test_an_answer_shows_all_of_its_bounds() -> None:
    """The value with its error, the interval of the model, and what is guaranteed."""
    answer = pt.Answer(100.0, lambda: 10.0, bounds=lambda beta: (50.0, 150.0))

    assert shown(answer) == "Answervalue100 ± 2095% interval80 .. 120for any data50 to 150, but for 5%"
    assert "<svg" in answer._repr_html_()


def test_answers_in_a_table_are_shown_by_place() -> None:
    """A table of two columns has two numbers for each place, and a long one its ends."""
    table = pt.Answers(np.arange(40.0).reshape(20, 2), lambda: np.ones((20, 2)))

    assert "19, 139.02.0" in shown(table)
    assert "10, 0" not in shown(table)


@pytest.mark.parametrize(
    ("guarantee", "odds"),
    [
        (pt.Guarantee(epsilon=1), "at most e^1 = 2.72 times as probable as it is without any one row"),
        (
            pt.Guarantee(epsilon="1/2", delta="1/1000", neighbors="change-one", unit="person"),
            "at most e^1/2 = 1.65 times as probable and 1/1000 more as it is with other values of any one",
        ),
    ],
)
def test_a_guarantee_says_what_it_means(guarantee: pt.Guarantee, odds: str) -> None:
    """In words and as odds."""
    assert str(guarantee) in shown(guarantee)
    assert odds in shown(guarantee)


def test_no_factor_is_named_that_nobody_can_read() -> None:
    """A huge epsilon is shown as the power that it is."""
    with pytest.warns(pt.PrivacyWarning):
        assert "at most e^1000 times" in shown(pt.Guarantee(epsilon=1000))


def test_what_is_planned_and_what_is_left_can_be_shown() -> None:
    """Plans, simulations, balances, estimates of the local model."""
    plan = pt.plan({"age": pt.Integer(0, 9)}, epsilon=1, rows=100)
    question = pt.local.Frequency(5, epsilon=1)
    counted = question.aggregator()
    counted.add_many(question.randomize_many([1, 2]))

    assert "rows is a guess" in shown(plan)
    assert "PUBLIC data only" in shown(pt.simulate(plan, {"age": [1, 2]}, ranges=10))
    assert "leftepsilon 1/2" in shown(_balance())
    assert "people2" in shown(counted.estimate())


def _balance() -> pt.Balance:
    return pt.Balance(pt.Amount(Fraction(1)), pt.Amount(Fraction(1, 2)))


def test_the_kit_escapes_every_text() -> None:
    """Titles, names, entries, heads, notes and fields."""
    bad = "<b onclick='x'>&"

    assert text_of(card(bad, [(bad, bad)], below=[grid([bad], [[bad]], note=bad)])) == 6 * bad
    assert text_of(field(bad, 0.5)) == bad


def test_the_kit_draws_only_what_is_finite() -> None:
    """Bounds without end leave no picture, and equal ones no division by zero."""
    assert whisker(1.0, (0.0, 2.0), (0.0, float("inf"))) == ""
    assert "nan" not in whisker(1.0, (1.0, 1.0), (1.0, 1.0))
    assert "-" not in bars([-5.0, 0.0]).split("viewBox")[1].replace("aria-hidden", "")
    assert isinstance(bars([1.0]), Html)


def test_numbers_are_written_for_people() -> None:
    """Whole if large, to four figures if small, and in words if they are none."""
    assert [number(value) for value in (1e6, -0.0, 1e-9, 2e15)] == ["1,000,000", "0", "1e-09", "2e+15"]
    assert plus_minus(float("nan"), float("inf")) == "not determinable"
    assert plus_minus(1e4, 123.4) == "10,000 ± 120"
    assert span((float("-inf"), 3)) == "-∞ to 3"
    assert len(shortlist(10, lambda place: [place])) == 10
