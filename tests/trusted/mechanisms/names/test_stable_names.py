"""Names by a stability threshold: the law but for delta, the threshold, what is promised, and bugs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.audit.cases_tables import delta_at
from partita.audit.laws import TellingNoise, published
from partita.domain.text import Text
from partita.public.axis.base import Term
from partita.public.axis.stable_names import StableNamesRelease
from partita.testing import EndlessTape, ZeroNoise, law, tape_noise
from partita.testing.laws import Loss, OutputLaw, loss_beyond
from partita.testing.replay import replay_publish
from partita.trusted.mechanisms.stable_names import StableNames
from partita.trusted.secret import NameCounts

Counts = tuple[int, ...]
HALF = Fraction(1, 2)
TINY = Text(1, "ab")
CITY = Text(24)


def held(counts: Counts, text: Text = TINY) -> NameCounts:
    """So many rows with each of the first texts."""
    there = [cell for cell, count in enumerate(counts) if count]
    words = text.words_of([text.name(cell) for cell in there])
    return NameCounts(text, words, np.array([counts[cell] for cell in there], np.int64))


def tiny(**changes: Any) -> StableNames:
    """Scale 1 for names and for the rest, whomever it protects."""
    made = StableNames(**{"text": TINY, "epsilon": 1, "delta": "1/10", "rest": HALF, **changes})
    return replace(made, epsilon=Fraction(2 * made.rows_changed))


def law_of(names: StableNames, counts: Counts) -> OutputLaw:
    """The law of whole releases of the shipped code, with exp(-1) as one half; one window for all tables."""
    noise = TellingNoise(HALF, window=range(max(names.threshold + 2, 4 + names.contributions)))
    return law(lambda noise: published(names.release(held(counts), noise=noise)), noise)


Laws = Callable[[Counts], OutputLaw]


def laws_of(names: StableNames) -> Laws:
    """The law of each table, enumerated once."""
    assert names.scale == names.rest_scale == 1
    return cache(partial(law_of, names))


def loss_of(laws: Laws, one: Counts, other: Counts, delta: Fraction) -> Loss:
    """What two tables lose but for delta."""
    return loss_beyond(laws(one), laws(other), delta, base=HALF, unit=Fraction(1))


def pairs(names: StableNames) -> Iterator[tuple[Counts, Counts]]:
    """All small tables, and all that a person changes in them, who has up to two rows."""
    most = names.contributions
    moves = [move for move in product(range(most + 1), repeat=3) if sum(move) <= most]
    for counts in ((0, 0, 0), (0, 1, 0)):
        for added in moves:
            whole = tuple(map(sum, zip(counts, added, strict=True)))
            if names.neighbors == "add-remove":
                yield counts, whole
                continue
            yield from ((whole, tuple(map(sum, zip(counts, move, strict=True)))) for move in moves)


@pytest.mark.parametrize(
    "changes",
    [{}, {"neighbors": "change-one"}, pytest.param({"contributions": 2}, marks=pytest.mark.thorough)],
    ids=str,
)
def test_no_pair_of_neighbors_loses_more_but_for_delta(changes: dict[str, Any]) -> None:
    """A row has a name of its own, or one that others have; with less delta rows that come lose more."""
    names = tiny(**changes)
    delta, laws = delta_at(names, HALF), laws_of(names)

    losses = [loss_of(laws, one, other, delta) for one, other in pairs(names)]

    assert all(loss <= names.epsilon for loss in losses)
    less = [loss_of(laws, one, other, delta * 4 / 5) for one, other in pairs(names)]
    assert names.neighbors != "add-remove" or not all(loss <= names.epsilon for loss in less)


def splits(rows: int, most: int) -> Iterator[list[int]]:
    """All ways to give at most so many rows to names, the most frequent first."""
    yield []
    for first in range(min(rows, most), 0, -1):
        yield from ([first, *others] for others in splits(rows - first, first))


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
@pytest.mark.parametrize("most", [1, 2, 3, 7])
@pytest.mark.parametrize("delta", ["1/4", "1e-3", "1e-9"])
@pytest.mark.parametrize("epsilon", ["1/10", 1, 20])
def test_the_threshold_is_the_least_that_hides_every_way_to_bring_names(
    neighbors: Any, most: int, delta: str, epsilon: object
) -> None:
    """However a person spreads rows over new names: their chances add up to delta, or half if they move."""
    names = StableNames(
        text=CITY, epsilon=epsilon, delta=delta, contributions=most, neighbors=neighbors, unit="person"
    )
    ratio = math.exp(-1 / float(names.scale))
    allowed = float(names.delta) / (2 if neighbors == "change-one" else 1)

    def most_likely(threshold: int) -> float:
        tail = {rows: ratio ** (threshold + 1 - rows) / (1 + ratio) for rows in range(1, most + 1)}
        return max(sum(tail[rows] for rows in split) for split in splits(most, most))

    assert most_likely(names.threshold) <= allowed * (1 + 1e-9)
    assert names.threshold == most or most_likely(names.threshold - 1) > allowed


def test_a_row_more_of_a_name_that_others_have_loses_no_more_than_epsilon() -> None:
    """Through `publish`, special cells included: with names that both have there is no delta."""
    rows = ["ab"] * 20 + ["b"] * 3 + ["c", "aaa", "", None]
    asked: dict[str, Any] = {"epsilon": 1, "delta": "1e-6", "mechanism": "stability"}
    for more in ("ab", "c", "aaa"):
        assert replay_publish({"c": rows}, {"c": [*rows, more]}, {"c": Text(2, "abc")}, **asked) <= 1
    moved = ["b", *rows[1:]]
    moving = {**asked, "neighbors": "change-one"}
    assert replay_publish({"c": rows}, {"c": moved}, {"c": Text(2, "abc")}, **moving) <= 1


# Planted bugs.


def _threshold_off_by_one(patch: pytest.MonkeyPatch) -> None:
    right = StableNames.threshold.fget  # type: ignore[attr-defined]
    patch.setattr(StableNames, "threshold", property(lambda self: right(self) - 1))


def _delta_for_one_name(patch: pytest.MonkeyPatch) -> None:
    right = StableNames.threshold.fget  # type: ignore[attr-defined]
    patch.setattr(StableNames, "threshold", property(lambda self: right(replace(self, contributions=1))))


def _released(patch: pytest.MonkeyPatch, change: Callable[..., StableNamesRelease]) -> None:
    right = StableNames.release

    def release(self: StableNames, data: Any, *, noise: Any) -> StableNamesRelease:
        return change(right(self, data, noise=noise), data)

    patch.setattr(StableNames, "release", release)


def _true_number_of_rows(patch: pytest.MonkeyPatch) -> None:
    _released(patch, lambda made, data: replace(made, limit=made.limit + data.total))


def _noise_used_again(patch: pytest.MonkeyPatch) -> None:
    def again(made: StableNamesRelease, data: Any) -> StableNamesRelease:
        true = data.counts[0] if data.items()[0][:1] == [0] else 0
        return replace(made, rests=made.rests * 0 + data.total + made.noisy[:1] - true)

    _released(patch, again)


def _empty_names_get_noise_if_there(patch: pytest.MonkeyPatch) -> None:
    _released(patch, lambda made, data: replace(made, noisy=made.noisy * (len(data.counts) > 0)))


@pytest.mark.parametrize(
    ("changes", "plant"),
    [
        ({}, _threshold_off_by_one),
        pytest.param({"contributions": 2}, _threshold_off_by_one, marks=pytest.mark.thorough),
        pytest.param({"contributions": 2}, _delta_for_one_name, marks=pytest.mark.thorough),
        ({}, _true_number_of_rows),
        ({}, _noise_used_again),
        ({}, _empty_names_get_noise_if_there),
    ],
)
def test_planted_bugs_are_caught_by_law(
    changes: dict[str, Any], plant: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them loses more than epsilon, for the delta of the threshold that ships."""
    names = tiny(**changes)
    delta, laws = delta_at(names, HALF), laws_of(names)
    plant(monkeypatch)

    assert not all(loss_of(laws, one, other, delta) <= names.epsilon for one, other in pairs(names))


# What is promised.


def test_without_noise_names_above_the_threshold_are_listed() -> None:
    """With their counts, and the rest adds up to all rows."""
    names = StableNames(text=CITY, epsilon=1)
    rows = ["a"] * 100 + ["b"] * (names.threshold + 1) + ["c"] * names.threshold + ["d"] + [""] * 2
    found = names.release(NameCounts.from_texts(rows, CITY), noise=ZeroNoise())

    assert found.domain.labels == ("a", "b")
    assert found.noisy.tolist() == [2, 100, names.threshold + 1]
    assert int(found.noisy.sum() + found.rests.sum()) == len(rows)
    assert found.rest_of_all.value == names.threshold + 3
    assert found.number == 2


def test_no_row_at_all_is_an_empty_list() -> None:
    """The empty text stands for it."""
    found = StableNames(text=CITY, epsilon=1).release(NameCounts.from_texts([], CITY), noise=ZeroNoise())

    assert (found.number, found.size) == (0, 1)


@pytest.mark.statistics
def test_names_are_found_and_bounds_hold_at_the_stated_rate() -> None:
    """Of 300 tables few lack a name at the border, or break a bound: 15 of each are expected at most."""
    failed: Counter[str] = Counter()
    for seed in range(300):
        need = StableNames(text=CITY, epsilon=2).found_from(40) + 1
        rows = [f"n{number}" for number in range(8) for _ in range(need - number)]
        rows += [f"r{number}" for number in range(150)] + ["mid"] * (need // 2)
        counts = Counter(rows)
        noise = tape_noise(EndlessTape(("stable", seed)))
        found = StableNames(text=CITY, epsilon=2).release(NameCounts.from_texts(rows, CITY), noise=noise)
        labels = found.domain.labels
        failed["missing"] += any(counts[n] >= found.found_from() and n not in labels for n in counts)
        failed["false"] += bool(set(labels) - counts.keys() - {'""'})
        failed["rows"] += found._most_rows(0.05) < len(rows)
        listed = sum(counts[name] for name in labels)
        low, high = found.answer(Term(0, found.size - 1)).worst(0.05)
        failed["listed"] += not low <= listed <= high
        rest = len(rows) - listed
        low, high = found.rest_of_all.bounds(0.05)
        failed["rest"] += not low <= rest <= high
        for name in ("n0", "mid", "r7", "nobody"):
            cell = found.domain.find_unlisted(name)
            answer = found.count(*2 * [labels.index(name)]) if cell is None else found.unlisted_count(cell)
            low, high = answer.worst(0.05)
            failed[name] += not low <= counts[name] <= high
        for prefix in ("n", "r", "z"):
            true = sum(n for name, n in counts.items() if name.startswith(prefix) and name not in labels)
            low, high = found.other(prefix.encode()).worst(0.05)
            failed[prefix] += not low <= true <= high

    assert failed["false"] == 0
    assert max(failed.values()) <= 45


def test_few_rows_are_enough() -> None:
    """At epsilon 1 and delta 10^-6 a name needs 25 rows, in place of 166."""
    made = [
        StableNames(text=CITY, epsilon=1, **changes)
        for changes in ({}, {"neighbors": "change-one"}, {"contributions": 3}, {"delta": "1e-9"})
    ]

    assert [names.threshold for names in made] == [15, 32, 48, 23]
    assert [names.found_from(300) for names in made] == [25, 51, 76, 33]


@pytest.mark.parametrize(
    "changes", [{"rest": 0}, {"rest": 1}, {"delta": 0}, {"delta": 1}, {"text": 24}, {"epsilon": 2**-70}]
)
def test_bad_parameters_are_refused(changes: dict[str, Any]) -> None:
    """By name."""
    with pytest.raises(pt.InvalidParameter) as refused:
        StableNames(**{"text": CITY, "epsilon": 1, **changes})
    assert refused.value.parameter == next(iter(changes))
