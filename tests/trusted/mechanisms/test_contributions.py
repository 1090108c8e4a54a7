"""The private choice of the bound on rows per person: scores, exact laws on all neighbours, planted bugs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import pytest

from partita.errors import InvalidParameter
from partita.testing import EndlessTape, RationalNoise, ZeroNoise, law, privacy_loss, tape_noise
from partita.trusted.mechanisms.contributions import BoundSelection

BASE, UNIT = Fraction(1, 2), Fraction(1, 2**10)  # of exp(-epsilon / 2^10), which is a rational number here
CANDIDATES = (1, 2, 4)
MOST = 6  # rows of a person: beyond the largest candidate
CHOICE = BoundSelection(candidates=CANDIDATES, noise=(0.5, 1, 2), epsilon=1)

People = tuple[int, ...]
Law = dict[Any, Fraction]


def within(people: People) -> list[int]:
    """How many rows count within each candidate."""
    return [sum(min(rows, bound) for rows in people) for bound in CANDIDATES]


def chosen(people: People, choice: BoundSelection = CHOICE) -> Law:
    """The exact law of the choice."""
    return law(lambda noise: choice.draw(within(people), noise=noise).place, RationalNoise(BASE, unit=UNIT))


def comes() -> Iterator[tuple[People, People]]:
    """All tables of up to three persons, and each of them with one person more."""
    for others in range(4):
        for people in combinations_with_replacement(range(1, MOST + 1), others):
            for rows in range(1, MOST + 1):
                yield people, (*people, rows)


def changes() -> Iterator[tuple[People, People]]:
    """The same tables with two values of one person's number of rows."""
    for others in range(3):
        for people in combinations_with_replacement(range(1, MOST + 1), others):
            for rows in range(MOST + 1):
                for instead in range(rows + 1, MOST + 1):
                    yield (*people, rows), (*people, instead)


def largest_loss(pairs: Iterator[tuple[People, People]], run: Callable[[People], Law]) -> Any:
    """The largest privacy loss over all pairs, and both directions."""
    known: dict[People, Law] = {}
    losses = []
    for pair in pairs:
        one, other = (known.setdefault(each, known.get(each) or run(each)) for each in map(_sorted, pair))
        losses.append(privacy_loss(one, other, base=BASE, unit=UNIT))
    return max(losses)


def _sorted(people: People) -> People:
    return tuple(sorted(rows for rows in people if rows))


def test_no_person_changes_a_probability_by_more_than_e_to_the_epsilon() -> None:
    """Whoever comes or goes, with however many rows: by enumeration; and the bound is nearly met."""
    loss = largest_loss(comes(), chosen)

    assert loss <= 1
    assert float(loss) > 0.8


def test_a_person_who_changes_costs_no_more_than_one_who_comes() -> None:
    """Rows of one person move all scores in one direction, so change-one needs no factor of two."""
    loss = largest_loss(changes(), chosen)

    assert loss <= 1
    assert float(loss) > 0.8


def _uncapped(people: People) -> list[int]:
    """Planted: within the largest candidate all rows are counted."""
    return [*within(people)[:-1], sum(people)]


class _HalfScale(RationalNoise):
    def exponential(self, scores: Any, scale: Fraction) -> int:
        return super().exponential(scores, scale / 2)


def _planted(people: People, bug: str) -> Law:
    choice, noise = CHOICE, RationalNoise(BASE, unit=UNIT)
    counted = within(people)
    if bug == "rows beyond the largest candidate":
        counted = _uncapped(people)
    if bug == "half of the scale":
        noise = _HalfScale(BASE, unit=UNIT / 2)
    if bug == "noise by the true number of rows":
        size = 1 + sum(people)
        choice = BoundSelection(candidates=CANDIDATES, noise=(3 * size, 2 * size, size), epsilon=1)
    if bug == "rows in place of rows for each row of the bound":
        counted = [5 * each for each in counted]
    return law(lambda drawn: choice.draw(counted, noise=drawn).place, noise)


@pytest.mark.parametrize(
    "bug",
    [
        "rows beyond the largest candidate",
        "half of the scale",
        "noise by the true number of rows",
        "rows in place of rows for each row of the bound",
    ],
)
def test_planted_bugs_lose_more_than_epsilon(bug: str) -> None:
    """The same enumeration finds each of them."""
    pairs = [((), (6,)), ((), (4,)), ((2,), (2, 6)), ((4, 4), (4, 4, 6)), ((1,), (1, 1))]
    unit = UNIT / 2 if bug == "half of the scale" else UNIT
    bases = {"half of the scale": (BASE, unit)}.get(bug, (BASE, UNIT))

    losses = [
        privacy_loss(_planted(one, bug), _planted(other, bug), base=bases[0], unit=bases[1])
        for one, other in pairs
    ]

    assert not max(losses) <= 1


def test_a_score_in_both_directions_is_found() -> None:
    """Planted: candidates that are too large are punished by rows, too; then a person moves scores apart."""

    class Both(BoundSelection):  # type: ignore[misc]
        def _gain(self, place: int, within: Sequence[int]) -> int:
            smaller = [
                (self.noise[place] - self.noise[other] - within[place] + within[other])
                * 2**10
                // (self.candidates[place] - self.candidates[other])
                for other in range(place)
            ]
            return int(max(super()._gain(place, within), *smaller, 0))

    both = Both(candidates=CANDIDATES, noise=(10, 11, 13), epsilon=1)
    pair = ((2,) * 5, (*(2,) * 5, 4))

    assert not largest_loss(iter([pair]), lambda people: chosen(people, both)) <= 1
    assert largest_loss(iter([pair]), chosen) <= 1


def test_scores_move_one_way_by_one_person_at_most() -> None:
    """Nowhere do scores fall when somebody comes, nor rise by more than one person."""
    for one, other in comes():
        before, after = CHOICE.score(within(one)), CHOICE.score(within(other))

        assert all(0 <= b - a <= 2**10 for a, b in zip(before, after, strict=True))


def test_with_many_persons_the_best_bound_is_chosen() -> None:
    """Everybody has seven rows: of many candidates it is eight, nearly always."""
    candidates = (1, 2, 4, 8, 16, 100)
    choice = BoundSelection(candidates=candidates, noise=[2 * k for k in candidates], epsilon="1/20")
    rows = [10_000 * min(7, k) for k in candidates]

    chances = choice.chances(rows)

    assert choice.draw(rows, noise=ZeroNoise()).place == 3
    assert chances.index(max(chances)) == 3
    assert chances[3] > 0.7
    assert sum(chances[:3]) < 1e-9


def test_without_rows_the_smallest_bounds_are_likeliest() -> None:
    """The chance of a bound falls as its square."""
    choice = BoundSelection(candidates=(1, 2, 4), noise=(3, 6, 12), epsilon="1/20")

    one, two, four = choice.chances([0, 0, 0])

    assert one / two == pytest.approx(4, rel=1e-3)
    assert two / four == pytest.approx(4, rel=1e-3)


def test_chances_are_those_of_the_draw() -> None:
    """Draws from a tape are as frequent as `chances` says, to five standard errors."""
    choice = BoundSelection(candidates=(1, 3, 9), noise=(1, 3, 9), epsilon="1/2")
    rows, number = [20, 30, 40], 600
    noise = tape_noise(EndlessTape("contributions"))
    drawn = [choice.draw(rows, noise=noise).place for _ in range(number)]

    for place, chance in enumerate(choice.chances(rows)):
        error = 5 * math.sqrt(chance * (1 - chance) / number)
        assert abs(drawn.count(place) / number - chance) <= error


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"noise": (1,)}, "noise must be positive, one for each candidate"),
        ({"noise": (1, -1, 2)}, "noise must be positive"),
        ({"noise": (1, math.nan, 2)}, "noise must be positive"),
        ({"epsilon": 0}, "epsilon must be positive"),
        ({"epsilon": "1e-30"}, "epsilon must give noise of a scale"),
        ({"candidates": (1, 1, 2)}, "contributions must be a choice among 2 to 64 bounds, ascending"),
        ({"candidates": (1,), "noise": (1,)}, "contributions must be a choice among"),
    ],
)
def test_bad_parameters_are_refused(given: dict[str, Any], rule: str) -> None:
    """Before anything is drawn, with the parameter and its rule."""
    good = {"candidates": CANDIDATES, "noise": (1, 2, 4), "epsilon": 1}

    with pytest.raises(InvalidParameter, match=rule):
        BoundSelection(**{**good, **given})


def test_the_guarantee_is_that_of_a_person() -> None:
    """Pure, with the largest candidate, which is what a ledger is told before anything is drawn."""
    promised = BoundSelection(
        candidates=CANDIDATES, noise=(1, 2, 4), epsilon="1/20", neighbors="change-one"
    ).guarantee

    assert promised.pure
    assert (promised.epsilon, promised.unit) == (Fraction(1, 20), "person")
    assert (promised.contributions, promised.neighbors) == (4, "change-one")
