"""A constructor says, by a typed error, which argument is missing, unknown or of the wrong kind."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import partita as pt
import partita.local
import partita.pan
from partita.errors import InvalidParameter, PartitaError, check_arguments

BUILT_BY_PARTITA = {
    *("Amount", "Answer", "Answers", "Balance", "Bins", "Cdf", "Covers", "Cut", "Cutter", "DataCheck"),
    *(
        "Debit",
        "Dependence",
        "DurableCounter",
        "DurableFamily",
        "Heat",
        "InterquartileRange",
        "LorenzAnswer",
        "Plan",
        "Quantile",
    ),
    *(
        "Ratio",
        "Release",
        "ReleasedBounds",
        "Running",
        "SelectedQuantile",
        "Share",
        "Simulation",
        "SumAnswer",
    ),
    *("Grouping", "Groups", "Quantiles", "RegressionLine", "SqlResult"),
    *(
        "Terms",
        "OnlineTerms",
        "WeightsSession",
        "Budgets",
        "Frequencies",
        "HeavyHitter",
        "LROracle",
        "RangeEstimate",
    ),
    *("NameTable", "RectangleEstimate", "Report", "SQAnswer"),
    *("Card", "ChosenContributions", "CurvePoint"),
    *("MeasuredColumn", "NoisyMeasurement", "NoisyMeasurements", "SparseRows"),
}
"""Results, which users get and do not make, and terms that `OnlineTerms.of` makes."""


def constructors() -> Iterator[Any]:
    """Every public class that users make objects of."""
    for package in (pt, partita.local, partita.pan):
        for name in package.__all__:
            found = getattr(package, name)
            made = inspect.isclass(found) and not issubclass(found, BaseException)
            result = name in BUILT_BY_PARTITA or name.endswith(("Release", "View", "Aggregator"))
            if made and not result and not inspect.isabstract(found) and found is not pt.Domain:
                yield found


CONSTRUCTORS = list(dict.fromkeys(constructors()))


def attempt(call: Callable[[], object]) -> None:
    """Whatever is refused is refused with an error of Partita."""
    with warnings.catch_warnings(action="ignore"), suppress(PartitaError):
        call()


def needed(kind: Any) -> list[str]:
    """The parameters without a default."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(kind).parameters.values()
    return [each.name for each in parameters if each.default is each.empty and each.kind in kinds]


def test_there_are_many_constructors() -> None:
    """Domains, mechanisms, counters, reports from devices and sketches are among them."""
    names = {kind.__name__ for kind in CONSTRUCTORS}

    assert len(CONSTRUCTORS) > 60
    assert {"Real", "Category", "Intervals", "Counter", "Frequency", "Distinct", "Ledger", "Want"} <= names


@pytest.mark.parametrize("kind", CONSTRUCTORS, ids=lambda kind: str(kind.__name__))
def test_wrong_arguments_are_typed_errors(kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None at all, objects of no kind, None in place of each, one too many, and one that nobody knows."""
    monkeypatch.chdir(tmp_path)
    names = needed(kind)

    attempt(kind)
    attempt(lambda: kind(**{name: object() for name in names}))
    attempt(lambda: kind(**dict.fromkeys(names)))
    for name in names:
        with pytest.raises(InvalidParameter, match=rf"{name} must be given, got None"):
            kind(**{other: object() for other in names if other != name})
    with pytest.raises(InvalidParameter, match="nonsense must be a parameter of"):
        kind(**{name: object() for name in names}, nonsense=1)
    with pytest.raises(InvalidParameter, match="arguments without a name"):
        kind(*[object()] * 40)


def test_the_message_shows_how_to_write_it() -> None:
    """A real column without a step, too many bounds, and a bound given twice."""
    with pytest.raises(InvalidParameter) as missing:
        pt.Real(0, 1)  # type: ignore[call-arg]
    with pytest.raises(InvalidParameter, match="Real must have at most 2 arguments without a name, got 3"):
        pt.Real(0, 1, "0.01")  # type: ignore[call-arg]
    with pytest.raises(InvalidParameter, match="low must be given once"):
        pt.Integer(0, 9, low=1)  # type: ignore[misc]

    assert str(missing.value) == "step must be given, got None; write Real(low, high, *, step)"


def test_an_error_inside_of_a_constructor_stays_what_it_is() -> None:
    """Only the arguments are looked at: a TypeError of the code itself is not renamed."""

    @check_arguments
    class Broken:
        def __init__(self, size: int) -> None:
            raise TypeError("inside")

    with pytest.raises(TypeError, match="inside"):
        Broken(3)


def test_the_epsilon_warning_points_at_the_caller() -> None:
    """At this file, through all that Partita calls, in one line for the whole release."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default", pt.PrivacyWarning)
        schema = {"age": pt.Integer(0, 9), "size": pt.Integer(0, 9)}
        pt.publish({"age": [1], "size": [2]}, schema, epsilon=24, views=["age", "size"])

    [warning] = caught
    assert (warning.category, warning.filename) == (pt.PrivacyWarning, __file__)
    assert str(warning.message).startswith("epsilon 24 is above 5")
