"""Trimmed means, shares of the top and the Gini index: from wants to answers, and whether intervals hold."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.domain.axis import Axis
from partita.errors import InvalidParameter, PrivacyWarning
from partita.public.file import decode, encode
from partita.public.grammar import parse_question
from partita.public.questions import QueryRunner
from partita.public.sums.lorenz import LorenzAnswer, LorenzCurve
from partita.public.wants import parse_want
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.sums import LogTree
from partita.trusted.secret import Points

ROWS = 5_000
PAID = np.arange(ROWS) * 7919 % 60_000
SCHEMA: dict[str, Any] = {"paid": pt.Integer(0, 10**9), "change": pt.Integer(-100, 100)}
DATA: dict[str, Any] = {"paid": PAID, "change": np.arange(ROWS) % 201 - 100}
WANTS = [
    pt.trimmed_mean("paid", 0.05),
    "top share 0.1 of paid",
    pt.gini("paid"),
    "trimmed mean 0.1 of change",
]
TWENTIETH, TENTH = Fraction(1, 20), Fraction(1, 10)


def made(wants: Any, **other: Any) -> pt.Release:
    """A release of just that, all but exact."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return pt.publish(DATA, SCHEMA, **{"epsilon": 10**4, "wants": wants, **other})


def trimmed(values: Any, share: float) -> float:
    """The true trimmed mean."""
    out = int(len(values) * share)
    return float(np.sort(values)[out : len(values) - out].mean())


def top(values: Any, share: float) -> float:
    """The true share of the top."""
    return float(np.sort(values)[len(values) - int(len(values) * share) :].sum() / values.sum())


def gini(values: Any) -> float:
    """The true Gini index, by ranks."""
    ordered, rows = np.sort(values).astype(np.float64), len(values)
    return float((2.0 * np.arange(1, rows + 1) - rows - 1.0) @ ordered / (rows * ordered.sum()))


def test_functions_make_what_texts_say() -> None:
    """Both ways to want one are one."""
    assert pt.trimmed_mean("paid", 0.05) == parse_want("trimmed mean 0.05 of paid")
    assert pt.top_share("paid", "1/10") == parse_want("top share 0.1 of paid")
    assert pt.gini("paid") == parse_want("gini of paid")


def test_what_is_wanted_is_answered() -> None:
    """Without noise answers are the truth, but for the width of cells; wants of a column share one view."""
    release = made(WANTS)

    assert [view.name for view in release.sums] == ["sum of paid by paid", "sum of change by change"]
    assert release.trimmed_mean("paid", 0.05).value == pytest.approx(trimmed(PAID, 0.05), rel=1 / 256)
    assert release.top_share("paid", 0.1).value == pytest.approx(top(PAID, 0.1), rel=1 / 256)
    assert release.gini("paid").value == pytest.approx(gini(PAID), rel=1 / 256)
    assert release.trimmed_mean("change", "1/10").value == pytest.approx(
        trimmed(DATA["change"], 0.1), abs=0.1
    )


def test_answers_come_back_from_a_file() -> None:
    """A file keeps the wants, and gives the same answers, in their own words, too."""
    release = made(WANTS, epsilon=1)
    again = decode(encode(release))

    assert again.wants == release.wants
    for text in map(str, release.wants):
        question = parse_question(text)
        mine, theirs = (
            QueryRunner(release=each, confidence=0.95, beta=0.05).answer(question)
            for each in (release, again)
        )
        assert mine == theirs
    assert str(again.gini("paid")) == str(release.gini("paid"))


@pytest.mark.parametrize(
    "ask",
    [
        lambda release: release.trimmed_mean("paid", 0.1),
        lambda release: release.top_share("change", 0.1),
        lambda release: release.gini("change"),
        lambda release: release.sum("paid"),
        lambda release: release.mean("paid", paid=(0, 100)),
    ],
)
def test_another_question_is_told_what_was_wanted(ask: Any) -> None:
    """Another share, another column, and what the same counts would tell."""
    with pytest.raises(
        InvalidParameter, match="made for just this: trimmed mean 1/20 of paid, top share 1/10"
    ):
        ask(made(WANTS))


@pytest.mark.parametrize(
    ("want", "match"),
    [
        ("gini of change", "without negative values"),
        ("top share 0.1 of change", "without negative values"),
        ("trimmed mean 0.5 of paid", "below one half"),
        (lambda: pt.trimmed_mean("paid", 0.7), "below one half"),
        (lambda: pt.top_share("paid", 1.5), "share"),
        (lambda: pt.gini(3), "must name a column"),  # type: ignore[arg-type]
    ],
)
def test_bad_wants_are_refused(want: Any, match: str) -> None:
    """By name, and with what to do."""
    with pytest.raises(InvalidParameter, match=match):
        made([want() if callable(want) else want])


def test_sums_by_the_column_itself_tell_them_too() -> None:
    """Who publishes a column by itself has its Lorenz curve at no further cost; other releases have none."""
    release = made(None, by=["paid"], sums=["paid"], epsilon=1)

    assert release.gini("paid").determinable
    assert release.top_share("paid", 0.2).determinable
    with pytest.raises(InvalidParameter, match="whose gini was released"):
        made(None, by=["change"], sums=["paid"], epsilon=1).gini("paid")


def test_the_first_line_says_what_is_assumed() -> None:
    """Shares hang on a tail that noise may hide; a trimmed mean does not."""
    release = made(WANTS, epsilon=1)

    assert "if the tail thins out" in str(release.gini("paid")).splitlines()[0]
    assert "if the tail thins out" in str(release.top_share("paid", 0.1)).splitlines()[0]
    assert "thins out" not in str(release.trimmed_mean("paid", 0.05))
    assert "5% of the rows at each end" in str(release.trimmed_mean("paid", 0.05))


def test_few_rows_are_not_determinable() -> None:
    """Where noise hides all rows there is no value, and everything is possible."""
    release = pt.publish({"paid": [5, 7]}, {"paid": SCHEMA["paid"]}, epsilon=0.1, wants=WANTS[:3])
    for answer in (release.trimmed_mean("paid", 0.05), release.top_share("paid", 0.1), release.gini("paid")):
        assert math.isnan(answer.value)
        assert answer.interval() == answer.worst()
        assert str(answer).startswith("not determinable")
        assert "not determinable" in answer._repr_html_() or "nan" in answer._repr_html_()


# --- whether intervals hold -------------------------------------------------------------------------

FAMILIES: dict[str, Any] = {
    "lognormal": lambda n, random: np.exp(random.normal(9, 1, n)),
    "heap": lambda n, random: np.where(random.random(n) < 0.7, 60_000, random.integers(0, 200_000, n)),
    "one value": lambda n, random: np.full(n, 54_321),
    "zeros": lambda n, random: np.where(random.random(n) < 0.8, 0, np.exp(random.normal(8, 1, n))),
    "few huge": lambda n, random: np.where(random.random(n) < 0.02, np.exp(random.normal(12, 1, n)), 0),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_hold_the_truth(family: str) -> None:
    """Of ten releases at least nine hold each, and none has a width of zero."""
    value, random = pt.Integer(0, 2**32 - 1), np.random.default_rng(3)
    values = FAMILIES[family](8_000, random).astype(np.int64)
    points = Points.from_rows((values + 1)[:, np.newaxis], axes=[Axis.of(value)])
    mechanism = LogTree(value=value, epsilon=1)
    truth = trimmed(values, 0.05), top(values, 0.1), gini(values)
    held = np.zeros(3)
    for tape in range(10):
        curve = mechanism.release(points, noise=tape_noise(EndlessTape(tape))).lorenz
        for place, answer in enumerate(_all(curve)):
            low, high = answer.interval()
            least, most = answer.worst()
            assert least <= low < high <= most
            held[place] += low - 1e-9 <= truth[place] <= high + 1e-9
    assert held.min() >= 9


def _all(curve: LorenzCurve) -> tuple[LorenzAnswer, LorenzAnswer, LorenzAnswer]:
    return curve.trimmed_mean(TWENTIETH), curve.top_share(TENTH), curve.gini
