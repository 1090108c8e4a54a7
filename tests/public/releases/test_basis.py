"""What answers of a table release rest on, and how far its columns depend on each other."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.answer import BASES, Answer, Answers, describe_basis
from partita.public.release import Release
from partita.public.results import Quantile
from tests.table_releases import DOMAINS, find_pair, table_release

CONDITIONS = {"age": (10, 39), "pay": (1_000, None), "town": "Rome", "rooms": (0, 2)}
PAIRS = list(combinations(DOMAINS, 2))


@pytest.fixture(scope="module")
def plain() -> Release:
    """Two columns in one view, all of whose answers are measured."""
    schema = {"age": pt.Integer(0, 9), "pay": pt.Integer(0, 9)}
    return pt.publish({"age": [1, 2, 3], "pay": [4, 5, 6]}, schema, epsilon=1, mechanism="grid")


def test_an_answer_shows_its_basis_behind_its_error() -> None:
    """The basis stands in the short text of an answer if there is one, and nowhere else."""
    answer = Answer(17806.9, lambda: 462.0, lambda beta: (0.0, 1e5))

    assert repr(answer) == "Answer(17,807 ± 910)"
    assert repr(Answer(17806.9, lambda: 462.0, answer.bounds, basis="inferred")) == (
        "Answer(17,807 ± 910, inferred)"
    )
    assert repr(Answers(np.ones(3), lambda: np.ones(3), "order 3+")) == "Answers(3 values, order 3+)"


def test_one_column_and_all_rows_are_measured() -> None:
    """Answers about one column, or about none, rest on noisy counts."""
    release = table_release()

    assert release.count().basis == "measured"
    for column, condition in CONDITIONS.items():
        assert release.count({column: condition}).basis == "measured"
        assert release.histogram(column).basis == release.cdf(column).basis == "measured"


@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
def test_all_results_about_a_pair_have_one_basis(pair: tuple[str, str]) -> None:
    """A count, many counts, bins, a distribution, a quantile and a heat map of two columns agree."""
    release, (one, other) = table_release(), pair
    where = {column: CONDITIONS[column] for column in pair}
    condition = {other: CONDITIONS[other]}
    basis = release.dependence().bases[list(DOMAINS).index(one)][list(DOMAINS).index(other)]
    middle = release.quantile(one, 0.5, condition)

    assert isinstance(middle, Quantile)
    assert basis in ("measured", "inferred")
    assert {
        release.count(where).basis,
        release.counts(where).basis,
        release.histogram(one, where=condition).basis,
        release.cdf(one, where=condition).basis,
        middle.basis,
        release.histogram(one, other).basis,
    } == {basis}


def test_both_kinds_of_pairs_are_there() -> None:
    """The release of these tests has pairs that were measured and others that were not."""
    assert find_pair("measured") == ("age", "pay")
    assert find_pair("inferred")


def test_three_columns_are_of_order_three() -> None:
    """Three columns that were not measured together are marked, in counts and in heat maps."""
    release = table_release()
    where = {column: CONDITIONS[column] for column in ("age", "town", "rooms")}

    assert release.count(where).basis == release.counts(where).basis == "order 3+"
    assert release.histogram("age", "town", where={"rooms": 1}).basis == "order 3+"


def test_a_difference_has_the_weakest_basis_of_its_parts() -> None:
    """A measured count less an inferred one is inferred."""
    one, other = find_pair("inferred")
    found = table_release().difference({one: CONDITIONS[one]}, {other: CONDITIONS[other]})

    assert found.basis == "measured"
    both = {one: CONDITIONS[one], other: CONDITIONS[other]}
    assert table_release().difference({one: CONDITIONS[one]}, both).basis == "inferred"


def test_a_column_that_is_not_constrained_does_not_count() -> None:
    """All labels and all special cells of a column ask for nothing of it; no box at all has no basis."""
    release = table_release()
    everything = {*DOMAINS["town"].labels, pt.NULL, pt.OTHER}

    assert release.counts(age=(10, 39), town=everything).basis == "measured"
    assert release.count(age=(10, 39), town=everything).basis == "measured"
    assert release.counts(age=(70, 80)).basis == release.count(age=(70, 80)).basis == ""


def test_results_show_their_basis() -> None:
    """It stands in the short text of each result, and in words in its card and below a printed map."""
    release, (one, other) = table_release(), find_pair("inferred")
    heat = release.histogram(one, other, 3)
    results: list[Any] = [release.histogram(one, where={other: CONDITIONS[other]}), heat]
    results.append(release.cdf(one, where={other: CONDITIONS[other]}))
    results.append(release.quantile(one, 0.5, {other: CONDITIONS[other]}))

    for result in results:
        assert repr(result).endswith(", inferred)")
        assert "nothing was counted of just what is asked for" in result._repr_html_()
    assert "nothing was counted of just what is asked for" in str(heat).splitlines()[-1]


def test_other_releases_say_nothing(plain: Release) -> None:
    """Where every answer is measured, no basis is shown."""
    results: list[Any] = [plain.counts(age=1), plain.histogram("age"), plain.histogram("age", "pay")]

    assert {result.basis for result in results} == {""}
    assert all("asis" not in result._repr_html_() + repr(result) for result in results)


def test_every_basis_has_words() -> None:
    """A sentence for each, which begins with its name, but for none."""
    assert describe_basis("") is None
    assert all(str(words).startswith(f"{basis}: ") for basis, words in BASES.items() if basis)


def test_dependence_is_a_symmetric_matrix_of_shares() -> None:
    """Columns that go together stand out, and `print` begins with them."""
    found = table_release().dependence()

    assert found.columns == tuple(DOMAINS)
    assert np.array_equal(found.values, found.values.T)
    assert found.values.min() >= 0.0
    assert found.values.max() <= 1.0
    assert found.pairs[0][:2] == ("age", "pay")
    assert str(found).splitlines()[1].split()[:2] == ["age", "pay"]
    assert repr(found) == "Dependence(4 columns, 3 of 6 pairs measured)"


def test_dependence_needs_a_table_release(plain: Release) -> None:
    """Any other release refuses it, with what to do."""
    with pytest.raises(pt.InvalidParameter, match="needs a table release"):
        plain.dependence()


def test_another_view_of_a_pair_has_measured_it() -> None:
    """A pair that a view without a model answers is measured, whatever the model knows of it."""
    table, (one, other) = table_release(), find_pair("inferred")
    schema = {name: DOMAINS[name] for name in (one, other)}
    beside = pt.publish(
        {one: [DOMAINS[one].decode([0])[0]], other: [DOMAINS[other].decode([0])[0]]},
        schema,
        epsilon=1,
        mechanism="grid",
    )
    assert table.guarantee is not None
    assert beside.guarantee is not None
    both = Release(
        views=(*table.views, *beside.views),
        guarantee=table.guarantee + beside.guarantee,
        provenance=table.provenance,
    )
    found = both.dependence()

    assert found.bases[found.columns.index(one)][found.columns.index(other)] == "measured"
    assert both.count({one: CONDITIONS[one], other: CONDITIONS[other]}).basis == ""
