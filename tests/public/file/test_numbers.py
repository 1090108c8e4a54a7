"""Sums and answers in files: they survive, and what lies about itself is refused."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidRelease
from partita.public.file import SPEC, Stored, columns_of, decode, encode, unpack
from partita.public.file_entries import checksum, to_canonical
from partita.public.file_parquet import to_parquet
from partita.public.release import Release
from partita.public.sums.base import SumRelease
from partita.public.workload.release import WorkloadRelease

from .specimens import query_view, release, sum_view, view

SUMS, _ = unpack(encode(release("level-trees")), largest=2**24)
ANSWERS, _ = unpack(encode(release("linear")), largest=2**24)


def changed(*path: Any, to: Any, stored: Stored) -> bytes:
    """A file with one entry of its specification changed, and a right checksum."""
    spec: Any = copy.deepcopy(stored.spec)
    *above, last = path
    holder = spec
    for key in above:
        holder = holder[key]
    holder[last] = to
    spec["checksum"] = checksum(spec, stored.values)
    return to_parquet(columns_of(stored.spec), stored.values, {SPEC: to_canonical(spec)})


@pytest.mark.parametrize("kind", SumRelease.kinds())
def test_sums_survive_a_file(kind: str) -> None:
    """Answers, guarantee and words are the same after a load."""
    original = release(kind)
    loaded = decode(encode(original))

    assert (loaded.guarantee, loaded.provenance) == (original.guarantee, original.provenance)
    [before], [after] = original.sums, loaded.sums
    assert (before.name, before.why, before.mechanism) == (after.name, after.why, after.mechanism)
    assert loaded.report() == original.report()
    for asked in ({}, *({key: (1, 3)} for key in before.keys[:1])):
        if before.sums.statistic != "means":
            assert str(original.sum("wage", asked)) == str(loaded.sum("wage", asked))
        assert str(original.mean("wage", asked)) == str(loaded.mean("wage", asked))


@pytest.mark.parametrize("kind", WorkloadRelease.kinds())
def test_answers_survive_a_file(kind: str) -> None:
    """Answers, errors, labels and guarantee are the same after a load."""
    original = release(kind)
    loaded = decode(encode(original))

    assert (loaded.guarantee, loaded.labels()) == (original.guarantee, original.labels())
    assert loaded.answers().values.tolist() == original.answers().values.tolist()
    assert loaded.answers().error.tolist() == original.answers().error.tolist()
    assert loaded.report() == original.report()


@pytest.mark.parametrize("kind", [*SumRelease.kinds(), *WorkloadRelease.kinds()])
def test_what_was_made_with_injected_noise_stays_without_a_guarantee(kind: str) -> None:
    """It protects nobody, after a load as before."""
    made = release(kind)
    sums = tuple(replace(each, sums=replace(each.sums, guarantee=None)) for each in made.sums)
    queries = made.queries and replace(made.queries, answers=replace(made.queries.answers, guarantee=None))
    foreign = replace(made, sums=sums, queries=queries, guarantee=None)

    assert decode(encode(foreign)).guarantee is None


INTEGER = {"kind": "integer", "low": "0", "high": "5"}


@pytest.mark.parametrize(
    ("path", "to", "said"),
    [
        (("version",), 2, "of 3 if one has sums or answers"),
        (("views", 1, "surprise"), 1, "exactly the entries columns, domains, facts"),
        (("views", 1, "sum"), "wage", "mapping"),
        (("views", 1, "sum"), {"column": "wage"}, "exactly the entries column, domain"),
        (("views", 1, "sum", "column"), 5, "text"),
        (("views", 1, "sum", "domain"), {"kind": "category", "labels": ["a"]}, ""),
        (("views", 1, "sum", "domain"), INTEGER, ""),
        (("views", 1, "columns"), ["grid 0"], "schema|different"),
        (("views", 1, "columns"), ["grid 0", "grid 0"], "different columns"),
        (("views", 1, "columns"), "grid 0", "list"),
        (("views", 1, "domains"), [INTEGER], "a domain for each column"),
        (("views", 1, "domains", 0), INTEGER | {"high": "6"}, ""),
        (("views", 1, "kind"), "grid", "newer Partita"),
        (("views", 1, "kind"), "os", "newer Partita"),
        (("views", 1, "facts"), {}, "must be"),
        (("views", 1, "guarantee"), None, "what its views promise together"),
        (("views", 1, "series"), [], "schema"),
        (("guarantee", "epsilon"), "1/100", "what its views promise together"),
    ],
    ids=str,
)
def test_sums_are_read_strictly(path: tuple[Any, ...], to: Any, said: str) -> None:
    """Each entry has one meaning; anything else is refused, however right the checksum is."""
    with pytest.raises(InvalidRelease, match=said or None):
        decode(changed(*path, to=to, stored=SUMS))


@pytest.mark.parametrize(
    ("path", "to", "said"),
    [
        (("version",), 1, "of 3 if one has sums or answers"),
        (("views", 0, "queries"), 5, ""),
        (("views", 0, "queries"), "ranges(year", ""),
        (("views", 0, "queries"), "__import__('os')", ""),
        (("views", 0, "queries"), "ranges(moon)", ""),
        (("views", 0, "queries"), "value(year)", ""),
        (("views", 0, "columns"), [], "1 to 40 different columns"),
        (("views", 0, "columns"), ["year"], "a domain for each column"),
        (("views", 0, "domains", 0), INTEGER | {"high": "1000"}, "noise that is promised"),
        (("views", 0, "kind"), "grid", "newer Partita"),
        (("views", 0, "facts"), {}, "must be"),
        (("views", 0, "guarantee"), None, "what its views promise together"),
        (("views", 0, "guarantee", "epsilon"), "1/100", "promise"),
        (("guarantee", "epsilon"), "1/100", "what its views promise together"),
    ],
    ids=str,
)
def test_answers_are_read_strictly(path: tuple[Any, ...], to: Any, said: str) -> None:
    """The same of queries, whose text is read by a small parser and nothing else."""
    with pytest.raises(InvalidRelease, match=said or None):
        decode(changed(*path, to=to, stored=ANSWERS))


def test_sums_without_the_counts_of_their_keys_are_refused() -> None:
    """Nothing else says how the keys are cut."""
    spec: Any = copy.deepcopy(SUMS.spec)
    first = len([column for column in columns_of(SUMS.spec) if column.name.startswith("grid 0 x")])
    spec["views"], values = spec["views"][1:], list(SUMS.values)[first:]
    spec["guarantee"] = spec["views"][0]["guarantee"]
    spec["checksum"] = checksum(spec, values)

    with pytest.raises(InvalidRelease, match=r"must be one of|must name"):
        decode(to_parquet(columns_of(spec), values, {SPEC: to_canonical(spec)}))


def test_views_of_counts_stand_first() -> None:
    """Sums before the counts that they are cut by are refused, and so is a second view of queries."""
    both, _ = unpack(encode(release("log-tree", "tree")), largest=2**24)
    spec: Any = copy.deepcopy(both.spec)
    spec["views"].reverse()
    first = len([column for column in columns_of(both.spec) if column.name.startswith("tree.")])
    values = [*list(both.values)[first:], *list(both.values)[:first]]
    spec["checksum"] = checksum(spec, values)

    with pytest.raises(InvalidRelease, match="views of counts first"):
        decode(to_parquet(columns_of(spec), values, {SPEC: to_canonical(spec)}))


def test_less_noise_than_promised_is_refused() -> None:
    """A release says how much it has spent, and no view promises less."""
    made = release("level-trees")
    for summed in (sum_view("level-trees"), sum_view("log-tree")):
        promise = summed.guarantee
        assert promise is not None
        lied = replace(promise, epsilon=promise.epsilon / 2)
        changed = replace(summed, sums=replace(summed.sums, guarantee=lied))
        assert not changed.keeps_its_promise
        with pytest.raises(InvalidRelease, match=r"noise that is promised|promise together"):
            replace(made, sums=(changed,))


def test_a_view_is_in_a_release_once() -> None:
    """The same sums twice would be paid twice and told once."""
    made = release("log-tree")
    guarantee = made.guarantee
    assert guarantee is not None

    with pytest.raises(InvalidRelease, match="different columns"):
        Release(views=(), sums=made.sums * 2, guarantee=guarantee + guarantee, provenance=made.provenance)


def test_a_summed_column_has_one_domain() -> None:
    """In counts and in sums alike."""
    made = release("tree", "log-tree")
    other = view("tree", column="wage")

    with pytest.raises(InvalidRelease, match="declare a column in one way"):
        replace(made, views=(other,))


def test_numbers_in_a_file_are_those_of_the_release() -> None:
    """Every series is there to the last digit, wide ones too."""
    for kind in SumRelease.kinds():
        parts, again = sum_view(kind).sums.parts(), decode(encode(release(kind))).sums[0].sums.parts()
        assert parts.facts == again.facts
        for name, values in parts.series.items():
            assert np.array_equal(values, again.series[name])
    answers = decode(encode(release("linear"))).queries
    assert answers is not None
    assert answers.answers.parts().facts == query_view("linear").answers.parts().facts
