"""Replay cases: every mechanism that tables can be published with, from the rows of a table to a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Final, TypeAlias, final

from partita.audit.base.case import Case, Depth, Pair, step
from partita.audit.laws.worlds import EVERYBODY, MOVING, Protected
from partita.domain.numeric.integer import Integer
from partita.public.queries.language import language as ask
from partita.testing.replay import ReplayedLoss, replay_publish
from partita.trusted.mechanisms.catalogue import axis_mechanisms, box_mechanisms, query_mechanisms

Row: TypeAlias = tuple[int | None, int | None, int | None]
Table: TypeAlias = Mapping[str, Sequence[int | None]]

_COLUMNS: Final = ("age", "sex", "pay")
_SCHEMA: Final = {"age": Integer(0, 3), "sex": Integer(0, 1), "pay": Integer(0, 2)}
_LOW: Final[Row] = (0, 0, 0)
_MIDDLE: Final[Row] = (1, 0, 1)
_HIGH: Final[Row] = (2, 1, 2)
_NONE: Final[Row] = (None, None, None)
_ODD: Final[Row] = (9, -1, 2)
_OTHERS: Final[tuple[Row, ...]] = ((0, 0, 1), (1, 1, 2), (1, 0, 2), (3, 1, 0), (None, 0, 1))
_CROWD: Final[tuple[Row, ...]] = ((0, 0, 0),) * 60 + ((1, 1, 1),) * 100 + ((2, 0, 2),) * 60
"""So many rows are always there, so that thresholds are clear."""

_EPSILON: Final = Fraction(1)


@final
@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What is published, and by which mechanism."""

    mechanism: str
    about: str
    options: Mapping[str, Any]
    others: tuple[Row, ...] = _OTHERS


def publish_cases(depth: Depth, more: int = 0) -> Iterator[Case]:
    """Every mechanism that `publish` knows, for each kind of neighbours; at the quick depth one pair each."""
    for asked in _all_asked():
        for protected in (MOVING,) if depth == "quick" else EVERYBODY:
            pairs = _pairs(protected, asked.others)[: step(depth, 1, 2, 8)]
            yield Case(
                mechanism=asked.mechanism,
                about=f"publish({asked.about}); {_said(protected)}",
                way="replay",
                epsilon=_EPSILON,
                pairs=partial(iter, pairs),
                loss=partial(_loss, asked, protected, step(depth, 2, 3, 3)),
            )


def _all_asked() -> Iterator[_Asked]:
    for name, kind in axis_mechanisms().items():
        yield _Asked(mechanism=kind.__name__, about=name, options={"by": "age", "mechanism": name})
    for name, kind in box_mechanisms().items():
        yield _Asked(mechanism=kind.__name__, about=name, options={"by": ["age", "sex"], "mechanism": name})
    for name, kind in query_mechanisms().items():
        options = {"queries": _queries(name), "mechanism": name}
        plain = name in ("linear", "projection", "weights")
        yield _Asked(
            mechanism=kind.__name__, about=name, options=options, others=_OTHERS if plain else _CROWD
        )
    yield _Asked(mechanism="LevelTrees", about="sums by sex", options={"by": ["sex"], "sums": ["pay"]})
    yield _Asked(mechanism="LevelTrees", about="moments", options={"by": [], "moments": ["pay"]})
    yield _Asked(mechanism="LogTree", about="sums by pay", options={"views": [("pay",)], "sums": ["pay"]})
    views = [("age",), ("age", "sex"), ("sex",)]
    shares = {"age": 1, ("age", "sex"): 2, "sex": 3}
    yield _Asked(
        mechanism="Intervals", about="three views, shares", options={"views": views, "shares": shares}
    )
    everything = {"views": views, "sums": ["pay"], "queries": ask.prefixes("age")}
    yield _Asked(mechanism="Rectangles", about="views, sums and queries", options=everything)


def _queries(name: str) -> Any:
    """Queries that suit a mechanism of queries."""
    pay = ask.value("pay")
    if name in ("linear", "projection", "weights"):
        return ask.prefixes("age")
    if name == "single-truncation":
        return pay
    return pay + 2 * pay if name in ("composition", "instance-specific") else pay + ask.marginal("pay")


def _pairs(protected: Protected, others: tuple[Row, ...]) -> list[Pair]:
    """Tables with and without a person, or with other rows of a person, who has as many as may count.

    The last of them has more rows than may count, where a column of ids says whose they are.
    """
    rows = protected.get("contributions", 1)
    changes: list[tuple[tuple[Row, ...], tuple[Row, ...]]]
    if "neighbors" in protected:
        changes = [
            ((_LOW,) * rows, (_HIGH,) * rows),
            ((_MIDDLE,) * rows, (_NONE,) * rows),
            ((_LOW,) * rows, (_ODD,) * rows),
            ((_LOW, *(_HIGH,) * (rows - 1)), (_HIGH, *(_NONE,) * (rows - 1))),
        ]
    else:
        changes = [((), (row,) * rows) for row in (_LOW, _HIGH, _MIDDLE, _NONE)]
        changes.append(((), (_ODD, *(_HIGH,) * (rows - 1))))
    if rows > 1:
        changes.append((changes[0][0], (*changes[0][1], _HIGH, _LOW, _NONE)))
    return [(_table(one, beside), _table(other, beside)) for beside in (others, ()) for one, other in changes]


def _table(person: Sequence[Row], others: Sequence[Row]) -> Table:
    """A person's rows and those of others, each of whom has one."""
    rows = [*person, *others]
    ids = [0] * len(person) + list(range(1, len(others) + 1))
    return {"id": ids} | {name: [row[place] for row in rows] for place, name in enumerate(_COLUMNS)}


def _loss(asked: _Asked, protected: Protected, passes: int, one: Table, other: Table) -> ReplayedLoss:
    person = {"person": "id"} if "contributions" in protected else {}
    return replay_publish(
        one, other, _SCHEMA, epsilon=_EPSILON, passes=passes, **asked.options, **protected, **person
    )


def _said(protected: Protected) -> str:
    """Whom the release protects, in words."""
    rows = protected.get("contributions", 1)
    who = "a row" if rows == 1 else f"a person with {rows} rows"
    return f"{who} {'changes' if 'neighbors' in protected else 'comes or goes'}"
