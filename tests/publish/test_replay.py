"""Replay: every mechanism, from a table to a file, on neighbours and with noise that releases the same."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import pytest

import partita as pt
from partita.audit.base import Case, count_case
from partita.audit.cases_tables import publish_cases
from partita.testing import ReplayBroken, ReplayedLoss, ZeroNoise, replay, replay_publish, system_noise
from partita.trusted.mechanisms.catalogue import axis_mechanisms, box_mechanisms, query_mechanisms
from partita.trusted.noise.system import SYSTEM
from partita.trusted.sources.engine import LocalSource

SLOW = {
    "GlobalTruncation",
    "InstanceTruncation",
    "LevelTrees",
    "MultiplicativeWeights",
    "Normalization",
    "PaperRectangles",
    "RankBoxes",
    "Rectangles",
    "TableGraph",
    "ViewedBoxes",
}
TEETH = {
    "QuantileSelection": 0.6,  # a selection loses all of epsilon on few outcomes only
    "GlobalTruncation": 0.4,
    "InstanceTruncation": 0.5,
    "MultiplicativeWeights": 0.5,
    "Normalization": 0.35,
    "PaperRectangles": 0.5,
    "TableGraph": 0.7,  # choices and sums of misfits rarely lose all that they are paid for
}
"""What some pair loses at least, of the epsilon or rho of its case, where it is less than 0.9 of it: these
bounds have room to spare."""


@pytest.fixture(autouse=True, scope="module")
def _rows_are_grouped_once() -> Iterator[None]:
    """Most of the time of a small publish goes into grouping rows, which is the same for the same table."""
    known: dict[Any, Any] = {}
    shipped = LocalSource.counts

    def counts(self: Any, keys: Sequence[str], sums: Sequence[str] = ()) -> Any:
        table = (repr(self.rows.data), tuple(keys), tuple(sums))
        if table not in known:
            known[table] = shipped(self, keys, sums)
        return known[table]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalSource, "counts", counts)
        yield


def about(case: Case) -> str:
    return f"{case.mechanism}: {case.about}"


CASES = list(publish_cases("deep"))
COMES = [case for case in CASES if case.about.endswith("a row comes or goes")]
CHANGES = [
    case
    for case in CASES
    if case.about.endswith("a person with 2 rows changes") and "views" not in case.about
]


@pytest.mark.parametrize("case", COMES, ids=about)
def test_a_row_makes_the_same_release_at_most_e_to_the_epsilon_times_likelier(case: Case) -> None:
    """The same file has nearly the same probability with a row more; for some row the bound is nearly met."""
    pairs = list(case.pairs())[1:2] if case.mechanism in SLOW else list(case.pairs())[:2]

    losses = [case.loss(one, other) for one, other in pairs]

    assert all(loss <= case.epsilon for loss in losses)
    assert max(map(float, losses)) >= _least(case) * case.epsilon


@pytest.mark.parametrize("case", CHANGES, ids=about)
def test_a_person_who_changes_two_rows_is_paid_for(case: Case) -> None:
    """The same file has nearly the same probability with two rows of one person changed."""
    pairs = list(case.pairs())[: 1 if case.mechanism in SLOW else 3]

    losses = [case.loss(one, other) for one, other in pairs]

    assert all(loss <= case.epsilon for loss in losses)
    assert case.mechanism in SLOW or max(map(float, losses)) >= _least(case) * case.epsilon


def _least(case: Case) -> float:
    """What the largest loss of a few pairs comes to at least."""
    if case.mechanism == "ComposedTruncation":
        return 0.9 if case in COMES else 0.5
    return 0.6 if "queries" in case.about else TEETH.get(case.mechanism, 0.9)


@pytest.mark.statistics
@pytest.mark.parametrize("case", CASES, ids=about)
def test_no_pair_of_a_deep_audit_loses_more_than_epsilon(case: Case) -> None:
    """All kinds of neighbours, persons with more rows than may count included: 864 pairs in all."""
    found = count_case(case)

    assert found.pairs >= 8
    assert found.violations == 0


def test_every_mechanism_that_tables_are_published_with_is_replayed() -> None:
    """By name: of one column, of several, of queries and of sums."""
    known = {**axis_mechanisms(), **box_mechanisms(), **query_mechanisms()}

    names = {case.mechanism for case in publish_cases("quick")}

    others = {"GroupMeans", "KnotTotal", "LevelTrees", "LogTree", "QuantileSelection"}
    assert names == {kind.__name__ for kind in known.values()} | others


def test_a_person_with_too_many_rows_costs_no_more() -> None:
    """Five rows of one id move no more than the two that count."""
    table, larger = {"id": [1], "age": [2]}, {"id": [1, 7, 7, 7, 7, 7], "age": [2, 0, 1, 1, 3, 3]}

    loss = replay_publish(
        table,
        larger,
        {"age": pt.Integer(0, 3)},
        epsilon=1,
        mechanism="histogram",
        person="id",
        contributions=2,
    )

    assert loss <= 1
    assert float(loss) == 1.0


def test_two_rows_without_a_declared_person_are_found_to_cost_twice() -> None:
    """The replay tells what tables that are no neighbours lose: two rows, two epsilon."""
    loss = replay_publish(
        {"age": [0]}, {"age": [0, 1, 1]}, {"age": pt.Integer(0, 3)}, epsilon=1, mechanism="tree"
    )

    assert not loss <= 1
    assert loss <= 2
    assert float(loss) == 2.0


def test_what_no_noise_protects_breaks_the_replay() -> None:
    """A true number in the output differs, whatever the noise is."""
    with pytest.raises(ReplayBroken, match="outputs differ"):
        replay(lambda rows: (SYSTEM.session().add(len(rows), Fraction(1)), len(rows)), [1], [1, 2])


def test_a_scale_that_depends_on_the_data_breaks_the_replay() -> None:
    """The number of rows in a scale is a draw of another law."""
    with pytest.raises(ReplayBroken, match="scales depend"):
        replay(lambda rows: SYSTEM.session().add(0, Fraction(len(rows))), [1], [1, 2])


@pytest.mark.parametrize("more", [0, 1])
def test_a_number_of_draws_that_depends_on_the_data_breaks_the_replay(more: int) -> None:
    """A draw for each row, in the one table or in the other."""

    def run(rows: list[int]) -> int:
        return len([SYSTEM.session().add(0, Fraction(1)) for _ in rows]) * 0

    with pytest.raises(ReplayBroken, match="draws"):
        replay(run, [1] * (1 + more), [1] * (2 - more))


def test_a_selection_loses_what_its_law_says() -> None:
    """The first of two candidates, scores (3, 0) against (0, 0), at scale 2."""
    loss = replay(lambda scores: SYSTEM.session().exponential(scores, Fraction(2)), [3, 0], [0, 0])

    likelier = math.exp(1.5) / (math.exp(1.5) + 1) / 0.5
    rarer = 0.5 / (1 / (math.exp(1.5) + 1))
    assert float(loss) == pytest.approx(math.log(max(likelier, rarer)))


@pytest.mark.parametrize("law", ["geometric", "laplace"])
def test_a_seal_loses_what_its_law_says(law: Any) -> None:
    """The seal of a segment of three positions, against a sum over the noise of its threshold."""
    scale, threshold = Fraction(3, 2), 4

    def run(levels: list[int]) -> int | None:
        noise = SYSTEM.session()
        drawn = noise.draw(law, scale)
        walk = noise.first_success(law, scale)
        runs = ((place, walk.run(threshold + drawn - level, 1)) for place, level in enumerate(levels))
        return next((place for place, found in runs if found is not None), None)

    found = {float(replay(run, [0, 0, 0], [0, 2, 2], seed=seed, passes=1)) for seed in range(12)}

    laws = [_seals(law, scale, [threshold - level for level in levels]) for levels in ([0, 0, 0], [0, 2, 2])]
    expected = [abs(math.log(one / other)) for one, other in zip(*laws, strict=True)]
    assert len(found) >= 3
    assert all(any(each == pytest.approx(loss, abs=1e-9) for loss in expected) for each in found)


def _seals(law: str, scale: Fraction, levels: list[int]) -> list[float]:
    """The probability of a seal at each position, and of none; in floats, term by term."""
    a = math.exp(-1 / scale)
    masses = [0.0] * (len(levels) + 1)
    for noise in range(-300 if law == "laplace" else 0, 300):
        left = (1 - a) / (1 + a) * a ** abs(noise) if law == "laplace" else (1 - a) * a**noise
        for place, level in enumerate(levels):
            beyond = _beyond(law, a, level + noise)
            masses[place] += left * beyond
            left *= 1 - beyond
        masses[-1] += left
    return masses


def _beyond(law: str, a: float, level: int) -> float:
    if law == "geometric":
        return 1.0 if level < 0 else a ** (level + 1)
    return a ** (level + 1) / (1 + a) if level >= 0 else 1 - a**-level / (1 + a)


def test_a_threshold_that_ignores_its_noise_costs_more() -> None:
    """Both runs have another noise on the threshold, so a level without it differs by one everywhere."""

    def run(_: int, ignores: bool) -> int | None:
        noise = SYSTEM.session()
        drawn = noise.draw("geometric", Fraction(1))
        return noise.first_success("geometric", Fraction(1)).run(3 + (0 if ignores else drawn), 2)

    assert float(replay(lambda data: run(data, False), 0, 0)) == 0
    assert float(replay(lambda data: run(data, True), 0, 0)) > 0.1


def test_other_noise_reaches_one_thread_and_carries_no_guarantee() -> None:
    """While it is replaced, other threads draw as ever, and afterwards so does this one."""
    schema, table = {"age": pt.Integer(0, 3)}, {"age": [1, 2]}
    seen: list[Any] = []

    def elsewhere() -> None:
        seen.append(pt.publish(table, schema, epsilon=1, mechanism="histogram").guarantee)

    with system_noise(ZeroNoise()):
        mine = pt.publish(table, schema, epsilon=1, mechanism="histogram")
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    after = pt.publish(table, schema, epsilon=1, mechanism="histogram")

    assert mine.guarantee is None
    assert seen[0] is not None
    assert after.guarantee is not None
    assert not vars(SYSTEM).keys() & {"session", "add"}


def test_replaced_noise_may_be_replaced_again() -> None:
    """The inner noise is used within, and the outer one again behind it."""
    with system_noise(ZeroNoise()):
        outer = SYSTEM.session()
        with system_noise(ZeroNoise()):
            inner = SYSTEM.session()
        again = SYSTEM.session()

    assert again is outer
    assert inner is not outer
    assert SYSTEM.session().secure


@pytest.mark.parametrize("refused", [lambda: SYSTEM.bernoulli(Fraction(1, 2)), lambda: SYSTEM.geometric(1)])
def test_draws_that_cannot_be_replayed_are_refused(refused: Callable[[], object]) -> None:
    """Rather than left out of the loss."""
    with pytest.raises(ReplayBroken, match="cannot be replayed"):
        replay(lambda _: refused(), 0, 1)


def test_losses_are_compared_exactly() -> None:
    """A fraction beyond epsilon is beyond it, however little; a real number by more than 2^-60."""
    tiny = Fraction(1, 10**40)

    assert ReplayedLoss(Fraction(-1)) <= 1
    assert not ReplayedLoss(1 + tiny) <= 1
    assert not ReplayedLoss(Fraction(-1) - tiny) <= 1
