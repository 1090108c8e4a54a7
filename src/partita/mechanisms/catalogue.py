"""The mechanisms that a column can be published with, by name, and the choice among them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, Final, cast, final, get_args, get_type_hints

from partita import mechanisms as package
from partita.domain import Category, Domain
from partita.errors import InvalidParameter
from partita.guarantee import Neighbors, Unit
from partita.mechanisms.with_specials import AxisMechanism
from partita.releases.ranges import Ranges

__all__ = ["AUTO", "ROWS", "Choice", "axis_mechanisms", "choose", "predicted_error", "predicted_numbers"]

AUTO: Final = "auto"
ROWS: Final = (10**3, 10**5, 10**7)
"""Numbers of rows that stand for few, usual and many, where nobody has said how many there are."""

_EQUALITY: Final = "histogram"
_RANGES: Final = "intervals"
_PARAMETERS: Final = ("size", "epsilon", "neighbors", "contributions", "unit")
_FEW_CELLS: Final = 2**12


@final
@dataclass(frozen=True)
class Choice:
    """A mechanism for one column, and the sentence that says why: functions of public facts."""

    name: str
    why: str
    mechanism: AxisMechanism


@cache
def axis_mechanisms() -> Mapping[str, type[Any]]:
    """Every exported mechanism that releases an axis of cells, by the name users know."""
    exported = (getattr(package, name) for name in package.__all__)
    return {each.name: each for each in exported if _is_axis_mechanism(each)}


def choose(
    domain: Domain,
    *,
    epsilon: object,
    mechanism: str = AUTO,
    neighbors: Neighbors = "add-remove",
    contributions: int = 1,
    unit: Unit | None = None,
) -> Choice:
    """The mechanism asked for by name, or the one that public facts speak for.

    "auto" never looks at data: of categories each is counted, and of an ordered column with few
    cells the predicted errors decide, over the numbers of rows in `ROWS`.
    """
    known = axis_mechanisms()
    facts = {"epsilon": epsilon, "neighbors": neighbors, "contributions": contributions, "unit": unit}
    if mechanism != AUTO:
        name = _known(mechanism, known)
        return Choice(name, "It was asked for by name.", _made(known[name], name, domain, facts))
    name, why = _best(domain, known, facts)
    return Choice(name, why, _made(known[name], name, domain, facts))


def predicted_error(mechanism: AxisMechanism, rows: int) -> float | None:
    """The root-mean-square error of a random range if there were that many rows; None if not known."""
    predict = getattr(mechanism, "predicted_error", None)
    return None if predict is None else float(predict(rows))


def predicted_numbers(mechanism: AxisMechanism, rows: int) -> int | None:
    """How many integers the release would hold if there were that many rows; None if not known."""
    predict = getattr(mechanism, "predicted_numbers", None)
    return None if predict is None else int(predict(rows))


def _best(domain: Domain, known: Mapping[str, type[Any]], facts: Mapping[str, Any]) -> tuple[str, str]:
    if isinstance(domain, Category):
        return _EQUALITY, "The column has categories: each is asked for by itself, so each is counted."
    if domain.size > _FEW_CELLS:
        return _RANGES, f"The column has {domain.size:,} cells in order, too many to count one by one."
    errors = {name: _typical(_made(known[name], name, domain, facts)) for name in (_RANGES, _EQUALITY)}
    if None in errors.values():
        return _RANGES, f"The column has {domain.size:,} cells in order, so ranges are what is asked."
    best, other = sorted(errors, key=lambda name: cast(float, errors[name]))
    return best, (
        f"For {domain.size:,} cells in order it has the smallest predicted error of a range, as a mean over "
        f"10^3, 10^5 and 10^7 rows: {errors[best]:.3g} against {errors[other]:.3g} of {other!r}."
    )


def _typical(mechanism: AxisMechanism) -> float | None:
    """The geometric mean of the predicted errors over `ROWS`; None where nothing is predicted."""
    errors = [error for rows in ROWS if (error := predicted_error(mechanism, rows)) is not None]
    return math.prod(errors) ** (1 / len(errors)) if errors else None


def _made(kind: type[Any], name: str, domain: Domain, facts: Mapping[str, Any]) -> AxisMechanism:
    """The mechanism over the cells of a domain; a domain too large for it is the mechanism's fault."""
    try:
        return cast(AxisMechanism, kind(size=domain.size, **facts))
    except InvalidParameter as error:
        if error.parameter != "size":
            raise
        rule = error.rule
    raise InvalidParameter(
        "mechanism",
        f"must suit a column of {domain.size} cells, where size {rule}",
        given=name,
        fix=f"use {AUTO!r}, or a coarser domain",
    )


def _known(name: object, known: Mapping[str, type[Any]]) -> str:
    if isinstance(name, str) and name in known:
        return name
    near = get_close_matches(name, known, n=1) if isinstance(name, str) else []
    raise InvalidParameter(
        "mechanism",
        f"must be {AUTO!r} or one of {', '.join(sorted(known))}",
        given=name,
        fix=f"did you mean {near[0]!r}?" if near else f"leave it {AUTO!r}",
    )


def _is_axis_mechanism(each: object) -> bool:
    if not inspect.isclass(each) or not isinstance(getattr(each, "name", None), str):
        return False
    released = get_type_hints(each.release).get("return") if hasattr(each, "release") else None
    takes = inspect.signature(each).parameters
    needed = {name for name, parameter in takes.items() if parameter.default is inspect.Parameter.empty}
    return _is_ranges(released) and set(_PARAMETERS) <= set(takes) and needed <= set(_PARAMETERS)


def _is_ranges(released: object) -> bool:
    """Whether a type, or every type of a union, is a release along an axis."""
    kinds = get_args(released) or (released,)
    return all(inspect.isclass(kind) and issubclass(kind, Ranges) for kind in kinds)
