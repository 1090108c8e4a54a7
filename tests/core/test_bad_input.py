"""Whatever is handed to the public API, the answer is a typed error that names the parameter."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.testing import ZeroNoise
from partita.trusted import noise
from partita.trusted.sources.open import open_source
from partita.trusted.sources.tally import tally

ARRAY: Any = np.array([1, 2])
WORDS: Any = np.array(["add-remove", "laplace"])


def released() -> pt.TreeRelease:
    return pt.Tree(size=4, epsilon=1).release(pt.Histogram.dense([1, 2, 3, 4]))


CASES: list[tuple[str, Callable[[], object]]] = [
    ("neighbors", lambda: pt.Guarantee(epsilon=1, neighbors=WORDS)),
    ("epsilon", lambda: pt.Guarantee(epsilon=Decimal("sNaN"))),
    ("epsilon", lambda: pt.Guarantee(epsilon=ARRAY)),
    ("law", lambda: pt.Partition(size=8, epsilon=1, law=WORDS)),
    ("threshold", lambda: pt.Partition(size=8, epsilon=1, threshold=ARRAY)),
    ("threshold", lambda: pt.Partition(size=8, epsilon=1, threshold="low")),  # type: ignore[arg-type]
    ("epsilon", lambda: pt.Partition(size=8, epsilon=10**9)),
    ("epsilon", lambda: pt.Partition(size=8, epsilon=1e-30)),
    ("epsilon", lambda: pt.Tree(size=8, epsilon="1e-25")),
    ("within", lambda: pt.Partition(size=8, epsilon=1).cut([1], within=[1, 2])),  # type: ignore[arg-type]
    ("within", lambda: pt.Partition(size=8, epsilon=1).cut([1], within=range(0, 8, 2))),
    ("edges", lambda: pt.Cut(edges=np.array([-1]))),
    ("edges", lambda: pt.Cut(edges=np.array([1.5]))),
    ("edges", lambda: pt.Cut(edges=np.array([[1, 2]]))),
    ("edges", lambda: pt.Cut(edges=np.array([], dtype=np.uint64))),
    ("start", lambda: pt.Cut(edges=np.array([3]), start=4)),
    ("cells", lambda: pt.Cut(edges=np.array([5])).locate([-1])),
    ("cells", lambda: pt.Cut(edges=np.array([5])).locate([6])),
    ("cells", lambda: pt.Histogram.from_cells(np.ma.array([1, 2], mask=[False, True]), size=8)),
    ("beta", lambda: released().count(0, 3).worst(2.0)),
    ("beta", lambda: released().bounds(0, 3, 2.0)),
    ("confidence", lambda: released().count(0, 3).interval(None)),  # type: ignore[arg-type]
    ("weights", lambda: noise.categorical(5)),  # type: ignore[arg-type]
    ("law", lambda: noise.first_success("gauss", 1)),  # type: ignore[arg-type]
    ("path", lambda: noise.SystemNoise(path="compield")),  # type: ignore[arg-type]
    ("start", lambda: pt.Cut(edges=np.array([5]), start="0")),  # type: ignore[arg-type]
    ("counts", lambda: pt.Histogram(8, np.array([1], dtype=np.uint64), np.array([0]))),
    ("stop", lambda: pt.Histogram.dense([1, 2]).within(0, 0)),
    ("low", lambda: released().sum(-5, 100)),
    ("contributions", lambda: tally(open_source({"age": [1]}), {"age": pt.Integer(0, 9)}, contributions=5)),
    ("schema", lambda: tally(open_source({"age": [1]}), ["age"])),  # type: ignore[arg-type]
    ("schema", lambda: tally(open_source({"age": [1]}), {"age": int})),  # type: ignore[dict-item]
    ("labels", lambda: pt.Axis(size=3, labels=1)),  # type: ignore[arg-type]
    ("labels", lambda: pt.Axis(size=3, labels=ARRAY)),
    ("source", lambda: tally("x.csv", {"age": pt.Integer(0, 9)})),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("parameter", "call"), CASES)
def test_bad_input_is_refused_by_name(parameter: str, call: Callable[[], object]) -> None:
    """The error is ours and says which parameter it is about."""
    with pytest.raises((pt.InvalidParameter, pt.InvalidData)) as refused:
        call()

    assert isinstance(refused.value, pt.InvalidParameter | pt.InvalidData)
    assert refused.value.parameter == parameter


def test_an_array_is_not_changed_by_what_is_made_of_it() -> None:
    """Cuts and histograms are read-only, the arrays they were made of are not."""
    edges, cells, counts = np.array([1, 5], dtype=np.uint64), np.array([2], dtype=np.uint64), np.array([7])

    pt.Cut(edges=edges)
    pt.Histogram(8, cells, counts)

    assert edges.flags.writeable
    assert cells.flags.writeable
    assert counts.flags.writeable


def test_an_enormous_epsilon_only_warns() -> None:
    """No float is asked to hold it."""
    with pytest.warns(pt.PrivacyWarning, match="above 5"):
        assert pt.Guarantee(epsilon=10**4000).epsilon == 10**4000


def test_integers_of_numpy_are_integers() -> None:
    """Narrow and unsigned types do not wrap: they are read as Python ints first."""
    counts = list(range(256))
    release = pt.Tree(size=256, epsilon=1).release(pt.Histogram.dense(counts), noise=ZeroNoise())
    small = pt.Histogram(np.uint8(8), np.array([5]), np.array([1]), np.int64(2))  # type: ignore[arg-type]

    assert float(release.count(np.uint8(3), np.uint8(7))) == sum(counts[3:8])  # type: ignore[arg-type]
    assert float(release.count(np.uint8(3), np.uint8(255))) == sum(counts[3:])  # type: ignore[arg-type]
    assert float(release.count(0, np.int8(127))) == sum(counts[:128])  # type: ignore[arg-type]
    assert (type(small.size), type(small.contributions)) == (int, int)
    mixed: Any = [np.uint64(5), 7]
    assert pt.Histogram.from_cells(mixed, size=8).total == 2


def test_a_person_with_one_row_is_a_person_if_named() -> None:
    """A release that bounds people to one row can be paid for in a budget of persons."""
    for mechanism in (pt.Partition, pt.Tree, pt.PaperIntervals):
        assert mechanism(size=8, epsilon=1).guarantee.unit == "row"
        assert mechanism(size=8, epsilon=1, unit="person").guarantee.unit == "person"
