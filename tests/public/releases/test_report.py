"""Reports, citations, charts and pictures say what was released, and nothing else."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from partita.domain import Category, Date, Integer
from partita.errors import InvalidParameter
from partita.guarantee import Guarantee
from partita.public.base import Provenance, ReleaseKind, figure, table
from partita.public.release import Release
from partita.public.report import PAPERS, chart
from partita.public.views import View

Publish = Callable[..., Release]

REFERENCES = Path(__file__).parents[3] / "docs" / "references.md"
PERSON = Guarantee(epsilon="1/6", unit="person", contributions=4, neighbors="add-remove")


@pytest.fixture
def people(publish: Publish) -> Release:
    """Two columns about people, bounded and recorded."""
    plain = publish(
        12.345678,
        PERSON,
        age=(Integer(0, 120), [*range(-3, 130)]),
        region=(Category(["north", "south"]), ["north", "moon"]),
    )
    provenance = Provenance(
        version="1.2.3", day="2026-11-15", dataset="people", recorded=True, person="insurance no"
    )
    return replace(plain, provenance=provenance)


def test_the_report_says_it_all(people: Release) -> None:
    """What, from which public facts, by which mechanism and why, guarantee, cost, error, rules."""
    text = people.report()

    for said in (
        "the dataset 'people'",
        "along age, region",
        "2026-11-15 with Partita 1.2.3",
        "Guarantee: epsilon 1/3, pure, for adding or removing one person of at most 4 rows",
        "by a factor of at most 1.4",
        "Cost: epsilon 1/3, recorded in a ledger",
        "Column age, declared as Integer(0, 120): 121 cells",
        "mechanism 'shown', with epsilon 1/6. It shows what it counts.",
        "below 3, above 9, invalid 0, null 0",
        "null 0, other 1",
        "at least 95% no count of a range",
        f"by more than {people.error():.3g}",
        "counted in the special cell below or above",
        "no declared label is counted as other",
        "at most 4 rows of a column are counted",
        "all rows without an id in 'insurance no' are one person",
    ):
        assert said in text


def test_rules_are_stated_whether_they_applied_or_not(publish: Publish) -> None:
    """The report is a function of public facts and released numbers: it does not count rows."""
    few = publish(5.0, age=(Integer(0, 120), [1]))
    many = publish(5.0, age=(Integer(0, 120), [*range(121)] * 3))

    assert few.report() == many.report()
    assert "not recorded in any ledger" in few.report()
    assert "every row is taken to be another person" in few.report()


def test_numbers_are_written_for_people(people: Release) -> None:
    """No number has more figures than can be meant, and no exponent."""
    text = people.report(0.1 + 0.2)

    assert "at least 70%" in text
    assert not re.search(r"\d\.\d{4}|\de[+-]?\d", text)


def test_foreign_noise_is_named(people: Release) -> None:
    """A release without a guarantee says that it protects nobody."""
    views = tuple(
        replace(view, axis=replace(view.axis, guarantee=None))  # type: ignore[type-var]
        for view in people.views
        if isinstance(view, View)
    )
    bare = replace(people, views=views, guarantee=None)

    assert "Guarantee: none" in bare.report()
    assert "protects nobody" in bare.report()
    assert repr(bare) == "Release(age, region; no guarantee)"
    assert repr(people).startswith("Release(age, region; epsilon 1/3, pure,")


def test_long_domains_are_cut_short(publish: Publish) -> None:
    """A thousand labels do not fill the report."""
    release = publish(v=(Category([f"label {i}" for i in range(1000)]), []))

    assert max(map(len, release.report().splitlines())) < 400


def test_the_error_bounds_every_view(publish: Publish) -> None:
    """One bound for all columns: the largest, each with its part of beta, special cells included."""
    one = publish(50.0, a=(Integer(0, 9), []))
    two = publish(50.0, a=(Integer(0, 9), []), b=(Integer(0, 9), []))

    view = one.view("a")
    assert isinstance(view, View)
    assert one.error(0.05) == pytest.approx(50 + view.specials.error(0.025))
    assert one.error(0.05) < two.error(0.05) == one.error(0.025)
    for beta in (0, 1, "x"):
        with pytest.raises(InvalidParameter, match=r"^beta must"):
            one.error(beta)  # type: ignore[arg-type]


def test_papers_are_cited_once_and_are_in_the_references(people: Release) -> None:
    """Every paper behind a mechanism has an entry, and its key is in the list of references."""
    known = REFERENCES.read_text()
    views = tuple(replace(view, mechanism="intervals-paper") for view in people.views)

    text = replace(people, views=views).citation()

    assert [text.count(f"{{{key},") for key in ("partita", "DNRR15", "DNPR10", "CKS20")] == [1] * 4
    assert "version = {1.2.3}" in text
    assert all(f"[{key}]" in known for key in PAPERS)
    named = [keys for kind in ReleaseKind.kinds().values() for keys in kind.papers.values()]
    assert {key for keys in named for key in keys} <= set(PAPERS)


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("width", [40, 80, 120])
def test_charts_fit_their_width(people: Release, width: int, ascii_only: bool) -> None:
    """A line for each bin, at most as wide as asked, in ASCII if that is asked for."""
    lines = chart(people.slice("age"), width, 7, ascii_only=ascii_only)

    assert len(lines) == 7
    assert max(map(len, lines)) <= width
    assert lines[0].isascii() is ascii_only


def test_charts_show_proportions(shown: Callable[..., Release]) -> None:
    """Half the count is half the bar, to an eighth of a character; nothing and less have none."""
    lines = chart(shown([8.0, 4.0, 0.5, 0.0, -2.0]).slice("v"), 1, 5)

    bars = [line.split("  ")[1].rstrip() for line in lines]
    assert bars == ["██████████", "█████", "▋", "", ""]
    assert lines[0].endswith("8.0 ± 2.0")


def test_charts_of_days_and_of_nobody(publish: Publish) -> None:
    """Labels are values of the column; nobody is drawn as no bar."""
    lines = chart(publish(day=(Date("2024-01-01", "2024-12-31"), [])).slice("day"), 80, 3)

    assert lines[0].startswith("2024-01-01 to 2024-05-01  ")
    assert not any("█" in line for line in lines)


def test_pictures_show_counts_and_bars(shown: Callable[..., Release]) -> None:
    """Bars are the counts, never negative, and error bars never reach below zero."""
    axes = MagicMock()

    assert shown([9.0, 1.0, -3.0]).plot("v", axes=axes) is axes

    (_, heights), _ = axes.bar.call_args
    below, above = axes.errorbar.call_args.kwargs["yerr"]
    assert heights.tolist() == [9.0, 1.0, 0.0]
    assert (heights - below).min() == 0.0
    assert above.tolist() == pytest.approx([1.96] * 3)


def test_pictures_need_matplotlib(people: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without matplotlib the error names the extra that brings it."""
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)

    with pytest.raises(InvalidParameter, match=r'needs matplotlib.*pip install "partita\[plot\]"'):
        people.plot("age")


def test_pictures_are_drawn(people: Release, tmp_path: Path) -> None:
    """With matplotlib every column gives axes that can be saved as a picture."""
    matplotlib: Any = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    for column in people.columns:
        axes = people.plot(column, bins=9)
        axes.figure.savefig(tmp_path / f"{column}.png")
        assert axes.get_xlabel() == column
        assert np.isclose(axes.get_ylim()[0], 0)


def test_the_report_names_the_part(people: Release) -> None:
    """Of a part, the report says which rows are counted; of everybody, it says nothing of the kind."""
    north = replace(people, provenance=replace(people.provenance, part=("region", "north")))

    assert "Only rows where region is 'north' are counted." in north.report()
    assert "Only rows" not in people.report()


def test_a_table_is_aligned() -> None:
    """Words to the left, numbers to the right, and no space at the end of a line."""
    assert table([("a", "1"), ("bcd", "23")]) == "a     1\nbcd  23"
    assert table([("a", "1"), ("bcd", "23")], left=2) == "a    1\nbcd  23"


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0.0044, "0"),
        (-0.0, "0"),
        (-0.04, "0"),
        (0.3, "0.3"),
        (99.96, "100"),
        (-1234.5, "-1,234"),
        (1e15, "1e+15"),
    ],
)
def test_counts_are_told_to_a_tenth(number: float, said: str) -> None:
    """No count has digits below a tenth, and none is a negative nothing."""
    assert figure(number) == said


@pytest.mark.parametrize(
    ("epsilon", "factor"), [("1/1000", "1.01"), ("1", "2.72"), ("10", "22,100"), ("40000", "e^40000")]
)
@pytest.mark.filterwarnings("ignore::partita.errors.PrivacyWarning")
def test_the_factor_is_never_told_too_small(publish: Publish, epsilon: str, factor: str) -> None:
    """What is at most e^epsilon is rounded up, and is a power where its figures say nothing."""
    release = publish(0.0, Guarantee(epsilon=epsilon), age=(Integer(0, 120), []))

    assert f"by a factor of at most {factor}." in release.report()


def test_the_confidence_is_never_told_too_large(people: Release) -> None:
    """A probability below one is not rounded to one."""
    assert "at least 99.999% no count of a range" in people.report(0.00001)
