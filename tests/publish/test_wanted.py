"""Shares, bounds and interquartile ranges: cells that follow from a want, answers, and privacy."""

from __future__ import annotations

import warnings
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.domain.base import Domain
from partita.errors import InvalidParameter, InvalidRelease, KeyReused, PrivacyWarning
from partita.ledger.ledger import Ledger
from partita.public.file import decode, encode
from partita.public.grammar import parse_question
from partita.public.questions import QueryRunner
from partita.public.wanted import Share, derive_cells, find_clear
from partita.public.wants import parse_want
from partita.publish.request import Request
from partita.publish.wants import WantedRequest
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import tally

ROWS = 6_000
TURN = np.arange(ROWS)
DATA: dict[str, Any] = {
    "delay": [None if turn % 10 == 0 else turn * 31 % 90 for turn in range(ROWS)],
    "cost": TURN * 7919 % 60_000,
    "dest": np.array(["Rome", "Bari", "Turin"])[TURN % 3],
}
SCHEMA: dict[str, Domain] = {
    "delay": pt.Integer(0, 80),
    "cost": pt.Integer(-(2**40), 2**40),
    "dest": pt.Category(["Rome", "Bari", "Turin", "Nome"]),
}
LARGE = 10**4
WANTS = ["share where delay >= 15 by dest", "bounds of cost", "interquartile range of cost with interval"]


def made(wants: Any, **other: Any) -> pt.Release:
    """A release of just that, all but exact."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return pt.publish(DATA, SCHEMA, **{"epsilon": LARGE, "wants": wants, **other})


def test_functions_make_what_texts_say() -> None:
    """Both ways to want something are one, whatever types the values have."""
    pairs = [
        (pt.share(delay=(15, None)), "share where delay >= 15"),
        (
            pt.share({"delay": (15, 30)}, closed="left", by="dest"),
            "share where delay >= 15 and delay < 30 by dest",
        ),
        (
            pt.share(dest=["Rome", "Bari"], delay=np.int64(3)),
            "share where dest in (Rome, Bari) and delay = 3",
        ),
        (pt.share(delay=pt.NULL), "share where delay is null"),
        (pt.bounds("cost"), "bounds of cost"),
        (pt.bounds("cost", 0.01), "bounds of cost without 1/100"),
        (pt.interquartile_range("cost", interval=True), "interquartile range of cost with interval"),
    ]

    assert all(parse_want(text) == want for want, text in pairs)
    assert all(parse_want(str(want)) == want for want, _ in pairs)


def test_shares_are_those_of_the_rows() -> None:
    """Of all rows, of a group, and of an open end, which holds values above the declared bounds."""
    release = made(["share where delay >= 15 by dest", "share where delay is null", "share where delay < 15"])
    late = np.array([each is not None and each >= 15 for each in DATA["delay"]])
    rome = DATA["dest"] == "Rome"

    assert release.share(delay=(15, None)).value == pytest.approx(late.mean(), abs=1e-3)
    assert release.share(delay=("15", None), among={"dest": "Rome"}).value == pytest.approx(
        late[rome].mean(), abs=1e-3
    )
    assert release.share(delay=pt.NULL).value == pytest.approx(0.1, abs=1e-3)
    assert release.share({"delay": (None, 14)}).value == pytest.approx(0.9 - late.mean(), abs=1e-3)


def test_a_group_without_rows_has_no_share() -> None:
    """It says so first, its interval holds everything, and JSON has no value."""
    release = made(WANTS)
    found = release.share(delay=(15, None), among={"dest": "Nome"})
    question = parse_question("share where delay >= 15 among dest = Nome")
    record = QueryRunner(release=release, confidence=0.95, beta=0.05).answer(question)

    assert not found.determinable
    assert str(found).startswith("not determinable")
    assert found.interval() == found.worst() == (0.0, 1.0)
    assert "not determinable" in str(question.kind.result.text(question, record))


@pytest.mark.parametrize("scale", [Fraction(1, 4), Fraction(2, 5), Fraction(1)])
@pytest.mark.parametrize(("met", "unmet"), [(0, 5), (3, 3), (1, 30)])
def test_intervals_hold_the_true_share(scale: Fraction, met: int, unmet: int) -> None:
    """Summed over the law of both noises, with 95% at least, for a handful of rows, too."""
    ratio = np.exp(-1 / float(scale))
    noise = np.arange(-12, 13)
    law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(noise)
    covered = 0.0
    for first, one in zip(noise.tolist(), law.tolist(), strict=True):
        for second, other in zip(noise.tolist(), law.tolist(), strict=True):
            if one * other > 1e-7:
                low, high = Share("", met + first, unmet + second, 1, scale).interval()
                covered += one * other * (low <= met / (met + unmet) <= high)

    assert covered >= 0.95


def test_guaranteed_bounds_are_wider() -> None:
    """Than an interval of the same confidence, and both hold the value."""
    found = Share("", 200.0, 800.0, 3, Fraction(4))
    low, high = found.interval()
    least, most = found.worst()

    assert least < low < found.value < high < most
    assert found.value == 0.2


@pytest.mark.parametrize(
    "want",
    ["share where delay >= 15 by dest", "share where dest in (Rome, Turin) and delay < 9", "bounds of cost"],
)
def test_each_row_is_in_one_cell(want: str) -> None:
    """The sensitivity of all counts is one: a row more is one more in one cell, and moves no other."""
    request = Request.checked(SCHEMA, epsilon=1, wants=[want]).published[0]
    assert isinstance(request, WantedRequest)

    def counts(data: dict[str, Any]) -> Any:
        schema = {name: SCHEMA[name] for name in request.columns}
        return request.counted(tally(open_source(data), schema)).spread()

    rows = [(3, 17, "Rome"), (None, -5, "Bari"), (79, 2**41, "Oslo"), (99, 0, None), (15, 10**9, "Turin")]
    names = ("delay", "cost", "dest")
    whole = counts(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    for left_out in range(len(rows)):
        fewer = [row for place, row in enumerate(rows) if place != left_out]
        rest = counts(dict(zip(names, map(list, zip(*fewer, strict=True)), strict=True)))
        assert Counter((whole - rest).tolist()) == {1: 1, 0: len(whole) - 1}


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_noise_has_the_scale_of_its_neighbours(neighbors: Any) -> None:
    """One over epsilon for each row that differs: twice that if one is changed, and k times for k rows."""
    [view] = Request.checked(SCHEMA, epsilon=Fraction(1, 2), wants=WANTS[:1], neighbors=neighbors).published
    many = Request.checked(
        SCHEMA, epsilon=1, wants=WANTS[:1], person="id", contributions=3, neighbors=neighbors
    )
    factor = 2 if neighbors == "change-one" else 1

    assert view.choice.mechanism.scale == 2 * factor
    assert many.published[0].choice.mechanism.scale == 3 * factor


def test_a_view_with_too_little_noise_is_refused() -> None:
    """A planted bug: half the scale that the guarantee asks for."""
    [view] = made(["share where delay >= 15"], epsilon=1).wanted
    halved = pt.HistogramRelease(
        noisy=view.counts.noisy, size=2, scale=view.counts.scale / 2, guarantee=view.guarantee
    )
    weak = pt.WantedView(want=view.want, declared=view.declared, counts=halved, mechanism="histogram")

    assert view.keeps_its_promise
    assert not weak.keeps_its_promise


def test_bounds_are_about_the_quantiles() -> None:
    """Less than a quarter beyond them, ready for a schema, with the rows that lie beyond."""
    found = made(["bounds of cost"], epsilon=50).bounds("cost", 0.01)
    low, high = np.quantile(DATA["cost"], [0.005, 0.995])

    assert 0 <= int(str(found.low)) <= low
    assert high <= int(str(found.high)) <= 1.25 * high + 1
    assert found.domain() == pt.Integer(int(str(found.low)), int(str(found.high)))
    assert found.rows.value == pytest.approx(ROWS, abs=50)
    assert "leaves out" in str(found)


def test_bounds_of_a_handful_of_rows_are_not_determinable() -> None:
    """Noise hides them: the declared bounds are the answer, and it says so first."""
    few = {name: values[:3] for name, values in DATA.items()}
    found = pt.publish(few, SCHEMA, epsilon=Fraction(1, 10), wants=["bounds of cost"]).bounds("cost")
    hidden = find_clear([0] * 100, Fraction(10))

    assert hidden is None
    assert found.determinable or str(found).startswith("not determinable")
    assert found.determinable or found.domain() == SCHEMA["cost"]


def test_bounds_that_noise_decides_say_so() -> None:
    """Where noise is larger than the share that is left out, the first line has the most rows beyond."""
    found = made(["bounds of cost"], epsilon=1).bounds("cost")

    assert found.rank_error() > ROWS / 1000
    assert "leaves out up to" in str(found).splitlines()[0]


def test_bounds_of_real_numbers_are_multiples_of_the_step() -> None:
    """With the step of the column."""
    schema = {"pay": pt.Real(-(10**6), 10**9, step="0.25")}
    data = {"pay": [-3.25] * 500 + [7.5] * 500}
    found = pt.publish(data, schema, epsilon=5, wants=[pt.bounds("pay")]).bounds("pay").domain()

    assert isinstance(found, pt.Real)
    assert found.step == Fraction(1, 4)
    assert found.low <= Fraction("-3.25")
    assert found.high >= Fraction("7.5")


def test_cells_of_bounds_cover_the_domain() -> None:
    """Each position is in one bin, special cells in one of their own, and bins are at most a quarter wide."""
    for domain in (
        pt.Integer(0, 10**12),
        pt.Integer(-50, 7),
        pt.Integer(10**6, 10**7),
        pt.Real(-9, -1, step=1),
    ):
        cells: Any = derive_cells(parse_want("bounds of x"), {"x": domain})
        assert cells.edges[-1] == domain.size + 3
        assert list(cells.edges) == sorted(set(cells.edges))
        assert sum(b - a + 1 for a, b in map(cells.cells_of, cells.ordinary)) == domain.size


def test_an_interquartile_range_has_its_interval() -> None:
    """Only if it was bought; its worst bounds need a beta of a tenth."""
    true = float(np.subtract(*np.quantile(DATA["cost"], [0.75, 0.25])))
    bought = made(["interquartile range of cost with interval"], epsilon=50).interquartile_range("cost")
    plain = made(["interquartile range of cost"]).interquartile_range("cost")
    low, high = (float(str(end)) for end in bought.interval())

    assert low <= true <= high < 2 * true
    assert bought.worst(0.1) == bought.interval()
    assert bought.worst(0.05) == plain.interval() == (0, 2**41)
    assert float(str(plain.value)) == pytest.approx(true, rel=0.01)
    assert bought.interval(0.95) == plain.interval()
    assert "; 90% from" in str(bought)
    assert "90% from" not in str(plain)


@pytest.mark.parametrize(
    "ask",
    [
        lambda release: release.share(delay=(16, None)),
        lambda release: release.share(delay=(15, None), among={"cost": 3}),
        lambda release: release.bounds("delay"),
        lambda release: release.interquartile_range("delay"),
        lambda release: release.quantile("cost", 0.5),
        lambda release: release.count(),
    ],
)
def test_another_question_is_told_what_was_wanted(ask: Any) -> None:
    """The error names all wants."""
    with pytest.raises(InvalidParameter, match="made for just this: share where delay >= 15 by dest, bounds"):
        ask(made(WANTS, epsilon=1))


@pytest.mark.parametrize(
    ("wants", "match"),
    [
        (["share where dely >= 15"], "did you mean 'delay'"),
        (["share where delay >= 15 by delay"], "name each column once"),
        (["share where delay >= 15 by cost"], "at most 65,536 cells"),
        (["share where delay between 90 and 95"], "met by some value"),
        (["share where dest = Oslo"], "one of the column's labels"),
        (["share of delay"], "must have where"),
        (["bounds of dest"], "columns of numbers"),
        (["bounds of cost without 0"], "between 0 and 1"),
        (["interquartile range of dest"], "columns of numbers"),
        (["interquartile of cost"], "must have range"),
    ],
)
def test_bad_wants_are_refused(wants: Any, match: str) -> None:
    """The message names the rule and the fix, and nothing is spent."""
    with pytest.raises(InvalidParameter, match=match):
        Request.checked(SCHEMA, epsilon=1, wants=wants)


@pytest.mark.parametrize(
    "make",
    [
        pt.share,
        lambda: pt.share(delay=(None, None)),
        lambda: pt.share(delay=object()),
        lambda: pt.bounds("a", 1),
    ],
)
def test_bad_arguments_are_refused(make: Any) -> None:
    """Before a schema is known."""
    with pytest.raises(InvalidParameter):
        make()


def test_a_file_keeps_them_and_a_key_their_wants(tmp_path: Path) -> None:
    """What is read answers as what was written; one debit; another want under the same key is refused."""
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", epsilon=3)
    paid: dict[str, Any] = {"epsilon": 1, "ledger": ledger, "dataset": "people", "key": "a"}
    first = pt.publish(DATA, SCHEMA, wants=WANTS, path=tmp_path / "a.partita", **paid)
    read = decode(encode(first))
    again = pt.publish(DATA, SCHEMA, wants=WANTS, path=tmp_path / "a.partita", **paid)

    assert encode(read) == encode(first) == encode(again)
    assert read.share(delay=(15, None)).value == first.share(delay=(15, None)).value
    assert str(read.bounds("cost")) == str(first.bounds("cost"))
    assert ledger.balance("people").spent.epsilon == 1
    changed = ["share where delay >= 16 by dest", *WANTS[1:]]
    with pytest.raises(KeyReused):
        pt.publish(DATA, SCHEMA, wants=changed, path=tmp_path / "a.partita", **paid)


def test_a_view_of_other_cells_is_refused() -> None:
    """A file whose want does not fit its counts."""
    [view] = made(["share where delay >= 15"], epsilon=1).wanted

    with pytest.raises(InvalidRelease, match="cells of its want"):
        pt.WantedView(
            want=parse_want("share where delay >= 15 by dest"),
            declared={"dest": SCHEMA["dest"], "delay": SCHEMA["delay"]},
            counts=view.counts,
            mechanism="histogram",
        )


def test_weights_move_epsilon_between_wants() -> None:
    """By the texts of the wants; a weight of 8 doubles a part beside an equal one."""
    wants = ["share where delay >= 15", "share where dest = Rome"]
    heavy = Request.checked(SCHEMA, epsilon=1, wants=wants, shares={wants[0]: 8, wants[1]: 1})
    first, second = (view.share for view in heavy.published)

    assert first + second == 1
    assert 1.9 < first / second < 2.1


def test_a_plan_and_a_report_name_them() -> None:
    """Mechanism, part of epsilon, error and a sentence of each."""
    planned = str(pt.plan(SCHEMA, epsilon=1, wants=WANTS, rows=ROWS))
    release = made(WANTS, epsilon=1)

    lines = planned.splitlines()[3:6]
    assert [line.split("  ")[0] for line in lines] == [str(parse_want(want)) for want in WANTS]
    assert ["histogram" in line for line in lines] == [True, True, False]
    assert "The share of a group of 1,000 rows errs by about" in planned
    assert "Each bound is chosen by counts of rows beyond it" in planned
    assert "Rule: a share is one of all rows of its group" in release.report()
    assert all("_repr_html_" in dir(each) and each._repr_html_() for each in release.published)
    for answer in (
        release.share(delay=(15, None)),
        release.bounds("cost"),
        release.interquartile_range("cost"),
    ):
        assert answer._repr_html_()
        assert repr(answer)


def test_a_plan_lists_wants_in_their_order() -> None:
    """Whatever kind of view answers them: weights in a list follow this order."""
    wants = ["median of delay", "total of cost", "share where delay is null", "9 quantiles of delay"]
    planned = pt.plan(SCHEMA, epsilon=1, wants=wants, shares=[1000, 1, 1]).to_json()["expected"]
    rows = [each for each in planned if each["rows"] == planned[0]["rows"]]

    assert [each["wants"] for each in rows] == [[wants[0], wants[3]], [wants[1]], [wants[2]]]
    assert max(rows, key=lambda each: Fraction(each["epsilon"])) == rows[0]


def test_every_view_has_a_share() -> None:
    """At least 1/10,000 of epsilon, however small its weight is; wants themselves may name weights."""
    shares = {pt.median("delay"): 1, pt.median("cost"): 1, pt.bounds("cost"): 10**14}
    views = pt.plan(SCHEMA, epsilon=1, wants=list(shares), shares=shares).request.published

    assert sorted(view.share for view in views) == [
        Fraction(1, 10**4),
        Fraction(1, 10**4),
        Fraction(4999, 5000),
    ]


def test_bounds_leave_out_what_was_wanted() -> None:
    """Unless another share is named."""
    release = made(["bounds of cost without 0.2"])

    assert release.bounds("cost").domain() == release.bounds("cost", 0.2).domain()
    assert release.bounds("cost").domain() != release.bounds("cost", 0.001).domain()


def test_what_follows_from_a_view_is_refused_unless_it_was_wanted() -> None:
    """The variance of a column comes with a mean and a count, which nobody asked for."""
    release = made(["variance of delay"])

    assert release.std("delay").value > 0
    for ask in (
        release.count,
        lambda: release.mean("delay"),
        lambda: release.sum("delay"),
        release.synthesize,
    ):
        with pytest.raises(InvalidParameter, match="made for just this: variance of delay"):
            ask()


def test_a_want_may_be_asked_in_its_own_words() -> None:
    """A total is a sum."""
    runner = QueryRunner(release=made(["total of cost"]), confidence=0.95, beta=0.05)

    assert parse_question("total of cost") == parse_question("sum of cost")
    assert runner.answer(parse_question("total of cost"))["value"] == pytest.approx(
        sum(DATA["cost"]), rel=0.01
    )


def test_an_interquartile_range_is_told_with_the_confidence_that_holds() -> None:
    """Two intervals of 95% hold together with 90%: that is what is shown."""
    runner = QueryRunner(
        release=made(["interquartile range of cost with interval"]), confidence=0.95, beta=0.05
    )
    interval: Any = runner.answer(parse_question("interquartile range of cost"))["interval"]

    assert interval["confidence"] == 0.9
    assert interval["high"] - interval["low"] < 2**40
