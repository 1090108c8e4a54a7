"""Names that nobody declared: the walk over wide cells, both looks, what is promised of them, and bugs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.domain.text import Text
from partita.public.axis.names import NamesRelease, seal_reach, subset_reach, tail_reach
from partita.testing import EndlessTape, OutputLaw, RationalNoise, ZeroNoise, law, tape_noise
from partita.testing.replay import replay_publish
from partita.trusted.mechanisms import names as module
from partita.trusted.mechanisms.names import Names
from partita.trusted.mechanisms.partition import SealRule, cut_wide
from partita.trusted.noise import hazard
from partita.trusted.secret import NameCounts

Counts = tuple[int, ...]
HALF = Fraction(1, 2)
TINY = Text(1, "ab")


def zipf(rows: int, names: int, seed: object) -> list[str]:
    """Rows of names whose frequencies fall like 1 / rank."""
    listed = [f"name {number}" for number in range(names)]
    weights = [1 / (number + 1) for number in range(names)]
    return Random(str(seed)).choices(listed, weights=weights, k=rows)


def held(counts: Counts, text: Text, contributions: int = 1) -> NameCounts:
    """So many rows with each of the first texts."""
    there = [cell for cell, count in enumerate(counts) if count]
    words = text.words_of([text.name(cell) for cell in there])
    return NameCounts(text, words, np.array([counts[cell] for cell in there], np.int64), contributions)


# The walk over wide cells.


@pytest.mark.parametrize("size", [1, 2, 7, 1000, 2**53 + 1, 2**64])
@pytest.mark.parametrize("epsilon", ["1/10", 1, 5])
def test_the_wide_walk_is_the_partition(size: int, epsilon: object) -> None:
    """On the same tape it finds the seals that `Partition` finds, cell for cell."""
    random = Random(f"{size} {epsilon}")
    cells = sorted({random.randrange(size) for _ in range(200)})
    items = [(cell, random.choice([1, 1, 2, 40])) for cell in cells]
    partition = pt.Partition(size=size, epsilon=epsilon)
    histogram = pt.Histogram.from_counts([c for c, _ in items], [n for _, n in items], size=size)

    for seed in range(3):
        cut = partition.cut(histogram, noise=tape_noise(EndlessTape(seed), path="exact"))
        rule = SealRule("geometric", partition.scale, partition.threshold)
        noise = tape_noise(EndlessTape(seed), path="exact").session()
        wide = list(cut_wide(rule, range(size), items, noise=noise))

        assert wide == cut.edges.tolist()


@pytest.mark.parametrize("bits", [64, 65, 192, 384])
def test_wide_cells_are_never_rounded(bits: int) -> None:
    """Without noise a segment ends at the very cell at which its count passes the threshold."""
    size, rule = 2**bits, SealRule("geometric", Fraction(1), 3)
    cells = [1, 2**bits // 3, 2**bits // 3 + 1, 2**bits - 2]

    ends = list(cut_wide(rule, range(size), [(cell, 4) for cell in cells], noise=ZeroNoise()))

    assert ends == [*cells, size - 1]


def test_a_wide_run_is_passed_with_the_chance_of_its_length() -> None:
    """The first success in 2^192 cells is where the uniform says: half of the cells, half of the chance."""
    scale, level, rounds = Fraction(1), 133, 400
    length = 2**192
    each = float(hazard.Hazard("geometric", scale).floats[level])
    inside = 0
    for seed in range(rounds):
        found = tape_noise(EndlessTape(("run", seed))).first_success("geometric", scale).run(level, length)
        inside += found is not None

    expected = -np.expm1(-each * length)
    assert abs(inside / rounds - expected) < 4.5 * np.sqrt(expected * (1 - expected) / rounds)


def test_splitting_a_wide_run_changes_nothing() -> None:
    """A position is a pure function of its uniform, in however many runs the cells are walked."""
    for seed in range(20):
        whole = tape_noise(EndlessTape(seed)).first_success("geometric", Fraction(1)).run(130, 2**192)
        split = tape_noise(EndlessTape(seed)).first_success("geometric", Fraction(1))
        passed, found = 0, None
        for part in (1, 2**64, 2**100 + 1, 2**190, 2**191, 2**192):
            step = min(part, 2**192 - passed)
            found = split.run(130, step)
            if found is not None:
                found += passed
                break
            passed += step

        assert found == whole


# Privacy of both looks, by law.


def _tiny(**changes: Any) -> Names:
    """Half of epsilon for each look, so that both have scale 1 at epsilon 2."""
    return Names(**{"text": TINY, "epsilon": 2, "first": HALF, **changes})


Looks = Callable[[Names, Counts], OutputLaw]


def shipped_ends(names: Names, counts: Counts) -> OutputLaw:
    """The law of the ends, of the shipped code."""
    cells, weights = held(counts, names.text).items()
    noise = RationalNoise(HALF, unit=1 / names.seal_scale)
    return law(lambda noise: tuple(names._find_ends(cells, weights, noise)), noise)


def loss_of_both(names: Names, one: Counts, other: Counts, ends: Looks = shipped_ends) -> Fraction:
    """The largest loss in units of rate ln 2: that of the ends, and of the counts that follow from each.

    Noise of rate r on counts that differ by d loses r |d| at most and in the limit. With rates that are
    multiples of a unit the whole is a power of two times a fraction; what is returned is that number.
    """
    mine, theirs = ends(names, one), ends(names, other)
    assert set(mine) == set(theirs)
    unit = 1 / names.scale / (1 / names.seal_scale)
    assert unit.denominator == 1
    worst = Fraction(0)
    for outcome in mine:
        assert isinstance(outcome, tuple)
        counted = [module._count(outcome, *held(counts, names.text).items()) for counts in (one, other)]
        (ends_a, rests_a), (ends_b, rests_b) = counted
        apart = sum(abs(a - b) for a, b in zip(ends_a + rests_a, ends_b + rests_b, strict=True))
        for ratio in (mine[outcome] / theirs[outcome], theirs[outcome] / mine[outcome]):
            worst = max(worst, ratio * 2 ** (apart * int(unit)))
    return worst


def _pairs(size: int, most: int) -> Iterator[tuple[Counts, Counts]]:
    for counts in product(range(most + 1), repeat=size):
        for cell in range(size):
            yield counts, tuple(n + (place == cell) for place, n in enumerate(counts))


@pytest.mark.parametrize("text", [TINY, Text(2, "ab")], ids=repr)
def test_no_pair_of_neighbors_loses_more_than_epsilon(text: Text) -> None:
    """Over all rows of three and of seven texts, one row more or less: epsilon is 2, and it is reached."""
    most = 2 if text is TINY else 0
    names, cached = _tiny(text=text), cache(shipped_ends)

    worst = max(loss_of_both(names, one, other, cached) for one, other in _pairs(text.size, most))

    assert worst == 2**2


def test_shares_of_epsilon_are_those_of_the_looks() -> None:
    """A first look of one third of epsilon: the loss is still epsilon in all."""
    names, cached = _tiny(epsilon=3, first=Fraction(1, 3)), cache(shipped_ends)

    assert max(loss_of_both(names, one, other, cached) for one, other in _pairs(3, 2)) == 2**3


@pytest.mark.parametrize("changes", [{"neighbors": "change-one"}, {"contributions": 2}], ids=str)
def test_both_looks_follow_the_unit(changes: dict[str, Any]) -> None:
    """A row that moves, or two rows that come: twice the noise, and no more than epsilon."""
    names, cached = _tiny(epsilon=4, **changes), cache(shipped_ends)
    apart = [(2, 0), (1, 1), (0, 2)] if "contributions" in changes else [(1, -1), (-1, 1)]
    pairs = [
        (counts, (counts[0], counts[1] + one, counts[2] + other))
        for counts in product(range(3), repeat=3)
        for one, other in apart
        if min(counts[1] + one, counts[2] + other) >= 0
    ]

    assert 1 / names.seal_scale == 1 / names.scale == 1
    assert max(loss_of_both(names, one, other, cached) for one, other in pairs) <= 2**4


# The same on tables, through `publish`. Replay walks cell by cell, so that the universe is small.

SMALL = {"c": Text(2, "abc")}
ROWS = ["ab"] * 20 + ["b"] * 15 + ["c", "aaa", "xyz", None, ""]


@pytest.mark.parametrize("more", ["ab", "c", "ba", "aaa", "z", "", None], ids=repr)
def test_a_row_more_loses_no_more_than_epsilon(more: str | None) -> None:
    """A row with a frequent name, a rare one, a new one, one that is too long, one of other letters, none."""
    assert replay_publish({"c": ROWS}, {"c": [*ROWS, more]}, SMALL, epsilon=1) <= 1


@pytest.mark.parametrize(("old", "new"), [("c", "ab"), ("c", "aaaa"), (None, "ba"), ("", None)])
def test_a_row_that_changes_loses_no_more_than_epsilon(old: str | None, new: str | None) -> None:
    """From name to name, and to and from special cells."""
    other = list(ROWS)
    other[other.index(old)] = new

    assert replay_publish({"c": ROWS}, {"c": other}, SMALL, epsilon=1, neighbors="change-one") <= 1


def test_a_person_with_many_names_loses_no_more_than_epsilon() -> None:
    """At most three rows of a person count, and which ones depends on no other person's names."""
    ids = [*range(len(ROWS)), -1, -1, -1, -1, -1]
    one = {"id": ids[: len(ROWS)], "c": ROWS}
    other = {"id": ids, "c": [*ROWS, "ab", "ba", "a", "b", "cc"]}

    assert replay_publish(one, other, SMALL, epsilon=1, person="id", contributions=3) <= 1


# Planted bugs.


def _swapped(names: Names, counts: Counts) -> OutputLaw:
    """Ends that are off by one where their cell is not empty."""
    shipped = shipped_ends(names, counts)
    found = OutputLaw()
    for outcome, chance in shipped.items():
        assert isinstance(outcome, tuple)
        key = tuple(end if end in (0, names.size - 1) or not counts[end] else end - 1 for end in outcome)
        found[key] = found.get(key, Fraction(0)) + chance
    return found


def test_planted_ends_that_follow_the_counts_are_caught() -> None:
    """An end that steps back where its cell is not empty shows whether it is."""
    one, other = (0, 0, 0), (0, 1, 0)

    assert set(_swapped(_tiny(), one)) != set(_swapped(_tiny(), other))


def test_planted_counts_in_two_cells_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rest that holds its end, too, counts a row twice."""
    shipped = module._count

    def overlapping(*given: Any) -> tuple[list[int], list[int]]:
        at_ends, rests = shipped(*given)
        return at_ends, [one + other for one, other in zip(at_ends, rests, strict=True)]

    monkeypatch.setattr(module, "_count", overlapping)

    assert max(loss_of_both(_tiny(), one, other) for one, other in _pairs(3, 0)) > 4
    assert not replay_publish({"c": ROWS}, {"c": [*ROWS, "ba"]}, SMALL, epsilon=1) <= 1


def _planted(patch: Callable[[pytest.MonkeyPatch], None]) -> bool:
    """Whether replay finds a bug, or an assertion stops it before a draw."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        patch(monkeypatch)
        try:
            return not all(
                replay_publish({"c": ROWS}, {"c": [*ROWS, more]}, SMALL, epsilon=1) <= 1
                for more in ("ab", "c")
            )
        except AssertionError:
            return True


def _true_number_in_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = Names.release

    def release(self: Names, data: Any, *, noise: Any) -> NamesRelease:
        found = shipped(self, data, noise=noise)
        return replace(found, limit=self.limit(data.total))

    monkeypatch.setattr(Names, "release", release)


def _listed_by_true_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = Names.release

    def release(self: Names, data: Any, *, noise: Any) -> NamesRelease:
        found = shipped(self, data, noise=noise)
        cells, counts = data.items()
        true = dict(zip(cells, counts, strict=True))
        noisy = np.where([true.get(cell, 0) > 1 for cell in found.cells], found.noisy, 0)
        return replace(found, noisy=noisy)

    monkeypatch.setattr(Names, "release", release)


def _noise_used_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = Names.release

    def release(self: Names, data: Any, *, noise: Any) -> NamesRelease:
        found = shipped(self, data, noise=noise)
        at_ends, _ = module._count(found.cells, *data.items())
        _, rests = module._count(found.cells, *data.items())
        return replace(found, rests=np.array(rests) + found.noisy - np.array(at_ends))

    monkeypatch.setattr(Names, "release", release)


def _no_second_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Names, "scale", property(lambda self: Fraction(1, 2**20)))


def _half_the_noise_of_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Names, "seal_scale", property(lambda self: 1 / (2 * self.first * self.rate)))


def _long_text_counted_by_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once in other, and once more under the bytes that fit."""
    shipped = NameCounts.items

    def items(self: NameCounts) -> tuple[list[int], list[int]]:
        cells, counts = shipped(self)
        return cells, [2 * count for count in counts]

    monkeypatch.setattr(NameCounts, "items", items)


@pytest.mark.parametrize(
    "patch",
    [
        _true_number_in_the_limit,
        _listed_by_true_counts,
        _noise_used_twice,
        _no_second_noise,
        _half_the_noise_of_the_walk,
        _long_text_counted_by_its_beginning,
    ],
)
def test_planted_bugs_are_caught_by_replay(patch: Callable[[pytest.MonkeyPatch], None]) -> None:
    """Each of them loses too much, shows in the output, or is refused before a draw."""
    assert _planted(patch)


def test_the_shipped_code_has_none_of_these_bugs() -> None:
    """Replay has nothing to say about it."""
    assert not _planted(lambda monkeypatch: None)


# What is promised.


def test_without_noise_frequent_names_are_listed_with_their_counts() -> None:
    """And the rest adds up to all rows."""
    rows = zipf(20_000, 500, "exact")
    found = Names(text=Text(24), epsilon=1).release(NameCounts.from_texts(rows, Text(24)), noise=ZeroNoise())
    counts = Counter(rows)

    listed = dict(zip(found.domain.labels, found.noisy[found.listed].tolist(), strict=True))
    assert listed == {name: counts[name] for name in listed}
    assert {name for name in counts if counts[name] >= found.found_from()} <= listed.keys()
    assert sum(listed.values()) + found.rest_of_all.value == len(rows)


@pytest.mark.parametrize("number", [2, 3, 300, 10**5])
@pytest.mark.parametrize("beta", [0.3, 0.05, 1e-6])
def test_tails_in_floats_are_no_less_than_certified_ones(number: int, beta: float) -> None:
    """The public side promises with floats what the trusted side would with certified numbers, or more."""
    for scale in (Fraction(1, 3), Fraction(7), Fraction(200)):
        exact = Fraction(str(beta)) / number
        certified = hazard.difference_quantile("geometric", scale, exact)
        assert certified <= tail_reach(scale, beta / number) <= certified + 1
        sealed = hazard.geometric_quantile(scale, exact) - 1
        assert sealed <= seal_reach(number, 1 / scale, beta) <= sealed + scale * 8 + 20


@pytest.mark.statistics
def test_names_are_found_at_the_stated_rate() -> None:
    """Of 400 tables with a name at the border few lack it, or list a name that no row has, at beta 0.05.

    At most 20 of each are expected; a correct library has more than 45 with probability below 10^-6.
    """
    missing = false = 0
    for _ in range(400):
        names = Names(text=Text(8), epsilon=2)
        border = names.found_from(8)
        rows = [f"n{number}" for number in range(6) for _ in range(border - number)]
        rows += [f"r{number}" for number in range(60)]
        found = names.release(NameCounts.from_texts(rows, names.text))
        counts, listed = Counter(rows), set(found.domain.labels)
        need = found.found_from(0.05)
        missing += any(counts[name] >= need and name not in listed for name in counts)
        false += bool(listed - counts.keys() - {'""'})

    assert missing <= 45
    assert false <= 45


@pytest.mark.statistics
def test_counts_and_bounds_hold_on_tables_of_every_kind() -> None:
    """Guaranteed bounds of listed, unlisted and absent names, prefixes and the rest, at beta 0.05.

    For each question at most 5% of the runs may fail; of 120 runs 6 are expected, and 20 are allowed.
    """
    failed: Counter[str] = Counter()
    for seed in range(120):
        rows = zipf(4000, (20, 300, 3000)[seed % 3], seed)
        counts = Counter(rows)
        found = Names(text=Text(16), epsilon=1).release(NameCounts.from_texts(rows, Text(16)))
        labels = found.domain.labels
        for name in ("name 0", "name 7", "name 19", "nobody"):
            cell = found.domain.find_unlisted(name)
            if cell is None:
                place = labels.index(name)
                low, high = found.count(place, place).worst(0.05)
            else:
                low, high = found.unlisted_count(cell).worst(0.05)
            failed[name] += not low <= counts[name] <= high
        rest = sum(count for name, count in counts.items() if name not in labels)
        low, high = found.rest_of_all.bounds(0.05)
        failed["rest"] += not low <= rest <= high
        for prefix in ("name 1", "name", "z"):
            true = sum(n for name, n in counts.items() if name.startswith(prefix) and name not in labels)
            low, high = found.other(prefix.encode()).worst(0.05)
            failed[prefix] += not low <= true <= high

    assert max(failed.values(), default=0) <= 20


def test_the_largest_sum_of_some_noises_stays_within_its_bound() -> None:
    """Whoever adds up the positive noises only is within `subset_reach`."""
    scale, number = Fraction(5), 50
    reach, over = subset_reach(number, scale, 0.025), 0
    for seed in range(200):
        noise = tape_noise(EndlessTape(("some", seed))).session().add(np.zeros(number, np.int64), scale)
        over += max(noise[noise > 0].sum(), -noise[noise < 0].sum()) > reach

    assert over <= 20


# Parameters.


def test_the_first_look_has_the_part_that_balances_both() -> None:
    """For texts of 24 bytes it is 86 hundredths: 166 rows at epsilon 1 with 300 ends."""
    names = Names(text=Text(24), epsilon=1)

    assert names.first == Fraction(43, 50)
    assert names.found_from(300) == 166
    assert Names(text=Text(24), epsilon=1, neighbors="change-one").found_from(300) == 331
    assert Names(text=Text(24), epsilon=1, contributions=3).found_from(300) == 496


def test_fewer_letters_find_names_of_fewer_rows() -> None:
    """A declared alphabet makes the universe smaller."""
    letters = Text(24, "ABCDEFGHIJKLMNOPQRSTUVWXYZ '-")

    assert Names(text=letters, epsilon=1).found_from(300) == 113


@pytest.mark.parametrize(
    "changes", [{"first": 0}, {"first": 1}, {"first": "x"}, {"beta": 0}, {"text": 24}, {"epsilon": 2**-70}]
)
def test_bad_parameters_are_refused(changes: dict[str, Any]) -> None:
    """By name."""
    with pytest.raises(pt.InvalidParameter) as refused:
        Names(**{"text": Text(24), "epsilon": 1, **changes})
    assert refused.value.parameter == next(iter(changes))
