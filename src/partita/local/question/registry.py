"""Randomizers and questions, read strictly from what their owner wrote down.

To read a description is to verify it: it must be what its kind, size and epsilon give, to the last digit. A
threshold that loses more than epsilon is refused, and so is one that loses less: it would do no harm
to the answer, but a server could tell devices apart by it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final

from partita.errors.checks import check, check_type
from partita.errors.errors import InvalidParameter
from partita.local.question.kinds import randomizer_kind
from partita.local.question.question import VERSION, Question
from partita.local.randomizer.randomizer import Randomizer

_MOST_PARTS: Final = 512
_MOST_DIGITS: Final = 20


def randomizer_from(description: object) -> Randomizer:
    """The randomizer that `to_json` described; its threshold is verified, its epsilon is exact.

    >>> described = {"kind": "response", "size": 2, "epsilon": "1", "threshold": "13485650502877570762"}
    >>> float(randomizer_from(described).chance)
    0.7310585...
    """
    given = _mapping(description, "randomizer")
    kind = randomizer_kind(given.get("kind"))
    names = [field.name for field in fields(kind)]
    _exactly(given, "randomizer", ("kind", *names))
    made = kind(size=_number(given, "size"), epsilon=given["epsilon"])
    for name in names:
        if name not in ("size", "epsilon"):
            _check_derived(name, _number(given, name), getattr(made, name))
    return made


def question_from(description: object) -> Question:
    """The question that `to_json` described, with its randomizer verified."""
    given = _mapping(description, "question")
    asks = given.get("asks")
    if given.get("version") != VERSION or not isinstance(asks, str) or asks not in _QUESTIONS:
        rule = f"must be of version {VERSION} and ask for {' or '.join(_QUESTIONS)}"
        raise InvalidParameter("question", rule, given=asks, fix="use a newer Partita")
    entries, read = _QUESTIONS[asks]
    _exactly(given, "question", ("version", "asks", "round", "randomizer", *entries))
    return read(given).in_round(given["round"])


def _mean(given: Mapping[str, Any]) -> Question:
    from partita.local.mean.mean import Mean

    return Mean.of(given["low"], given["high"], randomizer_from(given["randomizer"]))


def _frequency(given: Mapping[str, Any]) -> Question:
    from partita.local.frequency.frequency import Frequency

    return Frequency.of(_domain(given["domain"]), randomizer_from(given["randomizer"]))


def _range(given: Mapping[str, Any]) -> Question:
    from partita.local.ranges.ranges import Range

    return Range.of(_domain(given["domain"]), given["branching"], _parts(given["randomizer"]))


def _rectangles(given: Mapping[str, Any]) -> Question:
    from partita.local.ranges.rectangles import Rectangles

    columns = {name: _domain(domain) for name, domain in _mapping(given["columns"], "columns").items()}
    return Rectangles.of(columns, given["branching"], given["grid"], _parts(given["randomizer"]))


_QUESTIONS: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any]], Question]]]] = {
    "frequency": (("domain",), _frequency),
    "mean": (("low", "high"), _mean),
    "range": (("domain", "branching"), _range),
    "rectangles": (("columns", "branching", "grid"), _rectangles),
}
"""The entries that a question of each kind has beside those of all, and what reads them."""


def _parts(description: object) -> list[Randomizer]:
    """The randomizers of a mixture, each of them verified."""
    given = _mapping(description, "randomizer")
    _exactly(given, "randomizer", ("kind", "parts"))
    listed = given["parts"]
    if given["kind"] != "mixture" or not isinstance(listed, list) or not 0 < len(listed) <= _MOST_PARTS:
        fix = "pass what to_json returned"
        raise InvalidParameter("randomizer", "must be a mixture of randomizers", given=None, fix=fix)
    return [randomizer_from(part) for part in listed]


def question_read(text: str | bytes) -> Question:
    """The question written as JSON text."""
    try:
        description = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidParameter("question", "must be JSON", given=None, fix="write it with to_json") from None
    return question_from(description)


def _domain(given: object) -> Any:
    """A number of cells, or a domain: a plain one where NumPy is not installed."""
    if isinstance(given, int):
        return given
    spec = _mapping(given, "domain")
    try:
        from partita.domain import domain_from_spec
    except ImportError:
        from partita.local.question.plain import plain_domain

        return plain_domain(spec)
    return domain_from_spec(spec)


def _mapping(given: object, name: str) -> Mapping[str, Any]:
    return check_type(given, Mapping, name, "must be a JSON object", fix="pass what to_json returned")


def _exactly(given: Mapping[str, Any], name: str, entries: tuple[str, ...]) -> None:
    if set(given) != set(entries):
        fix = "pass what to_json returned"
        raise InvalidParameter(name, f"must have the entries {', '.join(entries)}", given=None, fix=fix)


def _check_derived(name: str, given: int, derived: int) -> None:
    """Whatever follows from kind, size and epsilon must be just that."""
    rule = f"must be {derived}, as kind, size and epsilon give it"
    check(given == derived, name, rule, given=given, fix="do not answer this question")


def _number(given: Mapping[str, Any], name: str) -> int:
    """A number of a randomizer: a threshold is the digits of a positive integer."""
    value = given[name]
    digits = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS
    if not (digits if name == "threshold" else isinstance(value, int)) or int(value) < 1:
        fix = "pass what to_json returned"
        raise InvalidParameter(name, "must be a positive integer", given=value, fix=fix)
    return int(value)
