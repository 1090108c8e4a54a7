"""Enumeration cases of mechanisms about tables: one axis, several axes, sums, queries, and `publish`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from math import prod
from typing import Any, Final, TypeAlias, final

import partita as pt
from partita.audit.base import Case, Counts, Depth, Pair, Way, histogram, points, step, texts
from partita.audit.laws import (
    EVERYBODY,
    HALF,
    MOVING,
    Protected,
    TellingNoise,
    World,
    coupled_cases,
    law_cases,
    law_loss,
)
from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.domain.category import Category
from partita.domain.numeric import Integer
from partita.public.boxes.plan import Recipe
from partita.public.queries import language as ask
from partita.testing.laws import Loss, OutputLaw, RationalNoise, law, privacy_loss
from partita.testing.replay import ReplayedLoss, replay_publish
from partita.trusted.mechanisms.catalogue import (
    axis_mechanisms,
    box_mechanisms,
    quantile_mechanisms,
    query_mechanisms,
)
from partita.trusted.noise.hazard import Law

_ROWS: Final = {"Intervals": (0, 1, 3), "SpendingTree": (0, 2, 4), "PartitionTents": (0, 2, 4)}
"""How many rows others have, where that is not as usual: these take milliseconds a pair."""

_MANY: Final = (700, 0, 250, 90)
"""A crowd for which the default grows a tree."""

_TEXT: Final = pt.Text(1, "ab")

_QUERIES: Final = ([1, "1/2", 0], [0, -1, "2/3"], [1, 1, 1])


def axis_cases(depth: Depth, more: int = 0) -> Iterator[Case]:
    """Every mechanism over one axis by coupling, the flat ones and the partition by law too."""
    for world in _worlds():
        yield from coupled_cases(world, depth, more)
    for world, window in _law_worlds():
        yield from law_cases(world, depth, window=window)
    yield from _partition_cases(depth, more)
    yield from _stable_cases(depth)


def _worlds() -> Iterator[World]:
    names = ("HistogramCounts", "Laplace", "Thresholds", "Tree", "Tents", "PaperIntervals", *_ROWS)
    for name in names:
        yield _world(name, 4, _ROWS.get(name, (1, 2, 4)))
    yield _world("GaussianCounts", 4, (1, 2, 4))
    yield _world("Tree", 5, (0, 1, 2), branching=3)
    yield _world("Tents", 7, (0, 1, 2))
    yield _world("PartitionTents", 4, (0, 0, 2), total=10**5)
    yield _world("SpendingTree", 5, (0, 1, 2), total=40, branching=2, worth=8, growth=4)
    yield _world("Intervals", 4, (0, 0, 2), crowd=_MANY)
    yield _world("HierarchyCounts", 4, (1, 2, 4), nodes=((0, 2), (0, 1)))
    yield _world("HierarchyCounts", 4, (0, 1, 2), nodes=((0, 3), (0, 1), (2, 3)), shares=(1, 2, 1))
    yield _world("QuantileSelection", 4, (1, 2, 4))
    yield _world("QuantileSelection", 3, (0, 1, 3), quantiles="1/5", interval=True)
    for text, rows in ((pt.Text(1, "ab"), (1, 2, 4)), (pt.Text(2, "ab"), (0, 1, 2))):
        make, found = _maker("Names", text=text), partial(texts, text)
        yield World("Names", f"{text.size} texts", make, found, cells=text.size, rows=rows)
    stable, found = _maker("StableNames", text=_TEXT), partial(texts, _TEXT)
    yield World("StableNames", "3 texts that others have", stable, found, 3, (0, 1, 2), crowd=(1, 1, 1))
    linear = _maker("LinearQueries", queries=_QUERIES)
    yield World("LinearQueries", "3 queries over 3 cells", linear, histogram, cells=3, rows=(1, 2, 5))


def _world(
    name: str,
    size: int,
    rows: tuple[int, int, int],
    *,
    crowd: Counts | None = None,
    protected: tuple[Any, ...] = EVERYBODY,
    **options: Any,
) -> World:
    """A mechanism over `size` cells, at epsilon 1."""
    terms = "".join(f", {option} {value}" for option, value in options.items())
    about = f"{size} cells{terms}" + (f", {sum(crowd)} more rows" if crowd else "")
    make = _maker(name, size=size, **options)
    return World(name, about, make, histogram, cells=size, rows=rows, protected=protected, crowd=crowd)


def _maker(name: str, **options: Any) -> Callable[..., Any]:
    """Makes a mechanism with the given unit of privacy, at epsilon 1 unless the options say otherwise."""
    return lambda **who: getattr(pt, name)(**{"epsilon": 1, **options, **who})


def _law_worlds() -> Iterator[tuple[World, range]]:
    few = EVERYBODY[:2]
    for name, rows in (("HistogramCounts", (1, 2, 4)), ("Thresholds", (1, 2, 4)), ("Laplace", (0, 0, 1))):
        yield _world(name, 2, rows, protected=few), range(max(rows) + 2)
    yield _world("Tents", 2, (0, 1, 2), protected=few), range(-2, 6)
    yield _world("Tree", 2, (0, 1, 2), protected=few), range(4)
    two = _world("HierarchyCounts", 2, (0, 1, 2), protected=few, nodes=((0, 1),), shares=(1, 1))
    yield two, range(4)
    yield _world("HistogramCounts", 3, (0, 0, 2), protected=few), range(4)


def _stable_cases(depth: Depth) -> Iterator[Case]:
    """Names that one side alone may have, by law: what is lost but for delta, with exp(-unit) as one half."""
    for protected in EVERYBODY[: step(depth, 2, 3, 3)]:
        rows = 2 * protected.get("contributions", 1) * (1 + ("neighbors" in protected))
        mechanism = pt.StableNames(text=_TEXT, epsilon=rows, delta="1/4", rest=HALF, **protected)
        world = World("StableNames", "3 texts", _maker("StableNames"), partial(texts, _TEXT), 3, (0, 1, 1))
        noise = TellingNoise(HALF, window=range(mechanism.threshold + 2))
        delta = delta_at(mechanism, HALF)
        loss = law_loss(world.run(mechanism), noise, delta=delta)
        yield world.case(mechanism, "law", depth, 0, protected, loss)


def delta_at(mechanism: pt.StableNames, base: Fraction) -> Fraction:
    """The delta of a threshold where exp(-1/scale) is this number: the theorem, in rational numbers."""
    most, parts = mechanism.contributions, mechanism.rows_changed // mechanism.contributions
    alone, each = (base ** (mechanism.threshold + 1 - rows) / (1 + base) for rows in (most, 1))
    return parts * max(alone, most * each)


def _partition_cases(depth: Depth, more: int) -> Iterator[Case]:
    """The partition by law: thresholds, laws, four cells; a row that comes, one that moves, two at once."""
    laws: tuple[tuple[Law, tuple[int, ...]], ...] = (("geometric", (0, 1, 3)), ("laplace", (0, 2)))
    for kind, thresholds in laws:
        for threshold in thresholds[: step(depth, 1, 2, 3)]:
            for protected in EVERYBODY:
                partition = pt.Partition(size=4, epsilon=1, law=kind, threshold=threshold, **protected)
                yield _partition_case(partition, depth, more, protected)
    whole = pt.Partition(size=3, epsilon=1, threshold=0)
    world = _world("Partition", 3, (1, 2, 3))
    about = "3 cells, all cuts of one run; a row comes or goes"
    loss = law_loss(world.run(whole), RationalNoise(HALF, unit=1 / whole.scale))
    yield Case("Partition", about, "law", whole.epsilon, partial(world.pairs, depth, more, {}), loss)


def _partition_case(partition: pt.Partition, depth: Depth, more: int, protected: Any) -> Case:
    laws = _Cuts(partition)
    world = _world("Partition", 4, (0, 1, 3) if partition.law == "laplace" else (1, 2, 4))
    who = world.said(protected).split(";")[1]
    about = f"4 cells, {partition.law} noise, threshold {partition.threshold};{who}"
    pairs = partial(world.pairs, depth, more, protected)

    def loss(one: Counts, other: Counts) -> Loss:
        return privacy_loss(laws.of(one), laws.of(other), base=HALF, unit=laws.unit)

    return Case("Partition", about, "law", partition.epsilon, pairs, loss)


class _Cuts:
    """The law of a cut, put together from the laws of single segments, each enumerated once.

    A seal leaves nothing behind but its position, so the law of what follows is that of the cells after it.
    """

    def __init__(self, partition: pt.Partition) -> None:
        self._partition = partition
        self.unit = 1 / partition.scale
        self.of = cache(self._law)

    def _law(self, counts: Counts) -> OutputLaw:
        if not counts:
            return OutputLaw({(): Fraction(1)})
        found = OutputLaw()
        first: Any = self._first(counts)
        for length, chance in first.items():
            rest: Any = self.of(counts[length:])
            found |= {(length, *lengths): chance * mass for lengths, mass in rest.items()}
        return found

    def _first(self, counts: Counts) -> OutputLaw:
        """The law of the length of the segment that opens the last len(counts) cells."""
        size = self._partition.size
        start = size - len(counts)
        items = [(start + cell, count) for cell, count in enumerate(counts) if count]
        return law(
            lambda noise: self._partition._segment(start, items, size - 1, noise) - start + 1,
            RationalNoise(HALF, unit=self.unit),
        )


# Enumeration cases of the mechanisms over several axes, and of sums.
_TWO, _THREE, _ENDS = Axis(size=2), Axis(size=3), Axis(size=1, before=1, after=1)
_LABELS: Final = Axis(size=1, after=1, labels=True)
_VALUE: Final = Integer(-1, 1)
_KEY: Final = Axis(size=1, after=1)
_EAGER: Final[dict[str, Any]] = {"bits": 1, "recipe": Recipe(growth=3, worth=4, depth_power=1)}
"""Trees that look again and grow for a handful of rows."""


def box_cases(depth: Depth, more: int = 0) -> Iterator[Case]:
    """Every mechanism over several axes by coupling, the grid by law too."""
    square, special = (_TWO, _TWO), (_ENDS, _LABELS)
    for world in (
        _box_world("GridCounts", square, (1, 2, 4)),
        _box_world("GridCounts", special, (0, 1, 3)),
        _box_world("GaussianGrid", special, (0, 1, 3)),
        _box_world("SpendingBoxes", square, (0, 1, 3)),
        _box_world("SpendingBoxes", (_THREE, _TWO), (0, 1, 2), epsilon=5, **_EAGER),
        _box_world("PaperRectangles", square, (0, 1, 3)),
        _box_world("PaperRectangles", special, (0, 0, 1)),
        _box_world("PaperRectangles", square, (0, 0, 1), pruned=False),
        _box_world("PaperRectangles", square, (0, 0, 1), cuts="cells"),
        _box_world("Rectangles", square, (0, 1, 3)),
        _box_world("ViewedBoxes", (_TWO, _LABELS), (0, 1, 3), views=(0, 1)),
        _box_world("ViewedBoxes", (_TWO, _LABELS, _TWO), (-1, 0, 1), epsilon=5, slow=True, views=(1,)),
        _box_world("RankBoxes", square, (0, 1, 2), slow=True),
        _box_world("RankBoxes", (_TWO, _LABELS), (0, 0, 1), slow=True, plain=(1,)),
        _box_world("RankBoxes", (_TWO, _LABELS, _TWO), (-1, 0, 1), epsilon=5, slow=True),
        _box_world("TableGraph", square, (0, 1, 2), slow=True),
        _box_world("TableGraph", (_TWO, _LABELS, _TWO), (-1, 0, 1), epsilon=5, slow=True),
        _box_world("TableGraph", square, (0, 1, 2), slow=True, epsilon=None, rho=Fraction(1, 8)),
    ):
        yield from coupled_cases(world, depth, more)
    grid = _box_world("GridCounts", (_TWO, Axis(size=1)), (1, 2, 3), protected=EVERYBODY[:2])
    yield from law_cases(grid, depth, window=range(5))


def sum_cases(depth: Depth, more: int = 0) -> Iterator[Case]:
    """Every mechanism of sums by coupling; values below, above, invalid and null included."""
    for world in (
        _sums("GroupMeans", (0, 1, 2), keys=[_KEY]),
        _sums("GroupMeans", (1, 2, 3), keys=[]),
        _sums("LevelTrees", (0, 0, 1), keys=[_KEY]),
        _sums("LevelTrees", (0, 1, 2), keys=[], moments=True),
        _sums("LogTree", (1, 2, 3)),
        _sums("KnotTotal", (1, 2, 3)),
        _sums("KnotTotal", (0, 1, 2), keys=[_KEY]),
    ):
        yield from coupled_cases(world, depth, more)


def _box_world(
    name: str,
    axes: tuple[Axis, ...],
    rows: tuple[int, int, int],
    *,
    protected: tuple[Any, ...] = EVERYBODY,
    slow: bool = False,
    **options: Any,
) -> World:
    shown = [name for name in ("plain", "views", "pruned", "cuts", "rho") if name in options]
    named = "".join(f", {name} {options[name]}" for name in shown)
    about = " x ".join(str(axis.width) for axis in axes) + f" cells{named}"
    make, cells = _maker(name, axes=axes, **options), prod(axis.width for axis in axes)
    return World(name, about, make, partial(points, axes), cells, rows, protected, slow=slow)


def _sums(name: str, rows: tuple[int, int, int], **options: Any) -> World:
    keys = options.get("keys", [])
    axes = (*keys, Axis.of(_VALUE))

    about = f"values from {_VALUE.low} to {_VALUE.high}, {'2 keys' if keys else 'no key'}"
    make, cells = _maker(name, value=_VALUE, **options), prod(axis.width for axis in axes)
    return World(name, about, make, partial(points, axes), cells, rows)


# Replay cases: every mechanism that tables can be published with, from the rows of a table to a file.
Row: TypeAlias = tuple[int | None, int | None, int | None]
Table: TypeAlias = Mapping[str, Sequence[int | None]]

_COLUMNS: Final = ("age", "sex", "pay")
_SCHEMA: Final[Mapping[str, Domain]] = {"age": Integer(0, 3), "sex": Integer(0, 1), "pay": Integer(0, 2)}
_LOW: Final[Row] = (0, 0, 0)
_MIDDLE: Final[Row] = (1, 0, 1)
_HIGH: Final[Row] = (2, 1, 2)
_NONE: Final[Row] = (None, None, None)
_ODD: Final[Row] = (9, -1, 2)
_OTHERS: Final[tuple[Row, ...]] = ((0, 0, 1), (1, 1, 2), (1, 0, 2), (3, 1, 0), (None, 0, 1))
_CROWD: Final[tuple[Row, ...]] = ((0, 0, 0),) * 60 + ((1, 1, 1),) * 100 + ((2, 0, 2),) * 60
"""So many rows are always there, so that thresholds are clear."""
_BAND: Final[tuple[Row, ...]] = ((0, 0, 68), (1, 1, 71)) * 1500
"""Pay in a narrow band, which the noise of all neighbours shows."""

_EPSILON: Final = Fraction(1)
_RHO: Final = Fraction(1, 8)


@final
@dataclass(frozen=True)
class _PublishRequest:
    """What is published, and by which mechanism."""

    mechanism: str
    about: str
    options: Mapping[str, Any]
    others: tuple[Row, ...] = _OTHERS
    schema: Mapping[str, Domain] = field(default_factory=lambda: _SCHEMA)


def publish_cases(depth: Depth, more: int = 0) -> Iterator[Case]:
    """Every mechanism that `publish` knows, for each kind of neighbours; at the quick depth one pair each."""
    for request in _publish_requests():
        for protected in (MOVING,) if depth == "quick" else EVERYBODY:
            pairs = _pairs(protected, request.others)[: step(depth, 1, 2, 8)]
            about = f"publish({request.about}); {_describe_neighbours(protected)}"
            in_rho, passes = "rho" in request.options, step(depth, 2, 3, 3)
            way: Way = "replay in rho" if in_rho else "replay"
            loss = partial(_publish_cost if in_rho else _publish_loss, request, protected, passes)
            amount = _RHO if in_rho else _EPSILON
            yield Case(request.mechanism, about, way, amount, partial(iter, pairs), loss)
    yield from _chosen_cases(depth)


def _chosen_cases(depth: Depth) -> Iterator[Case]:
    """A bound on rows per person that is chosen; a person may have more rows than the largest candidate."""
    request = _PublishRequest(
        "HistogramCounts", "contributions auto", {"by": "age", "mechanism": "histogram"}
    )
    comes = [(0, many) for many in (9, 1, 4, 2, 3, 5, 6, 40)]
    changes = [(1, 9), (2, 4), (0, 9), (3, 5), (1, 2), (4, 4), (2, 40), (3, 1)]
    for neighbors in ("change-one",) if depth == "quick" else ("add-remove", "change-one"):
        some = (changes if neighbors == "change-one" else comes)[: step(depth, 1, 2, 8)]
        pairs = [(_beside_crowd((_LOW,) * one), _beside_crowd((_HIGH,) * many)) for one, many in some]
        protected: Protected = {"neighbors": neighbors, "contributions": "auto among 1,2,4 with 1/2"}
        verb = "changes" if neighbors == "change-one" else "comes or goes"
        about = f"publish({request.about}); a person with any number of rows {verb}"
        loss = partial(_publish_loss, request, protected, step(depth, 2, 3, 3))
        yield Case(request.mechanism, about, "replay", _EPSILON, partial(iter, pairs), loss)


def _beside_crowd(person: Sequence[Row]) -> Table:
    """A person's rows, and ten persons with four rows each, so that bounds are worth their noise."""
    rows = [*person, *(_OTHERS[turn % 4] for turn in range(40))]
    ids = [0] * len(person) + [1 + turn // 4 for turn in range(40)]
    return {"id": ids} | {name: [row[place] for row in rows] for place, name in enumerate(_COLUMNS)}


def _publish_requests() -> Iterator[_PublishRequest]:
    for name, kind in axis_mechanisms().items():
        yield _PublishRequest(kind.__name__, name, {"by": "age", "mechanism": name, **_budget(kind)})
    for name, kind in box_mechanisms().items():
        if name == "viewed-boxes":  # it needs a category, and so many cells that it views it
            viewed = {"by": list(_COLUMNS), "mechanism": name}
            yield _PublishRequest(
                kind.__name__, name, viewed, schema={**_SCHEMA, "sex": Category(["0", "1"])}
            )
            continue
        options: dict[str, Any] = {"by": ["age", "sex"], "mechanism": name, **_budget(kind)}
        yield _PublishRequest(kind.__name__, name, options)
    for name, kind in quantile_mechanisms().items():
        yield _PublishRequest(
            kind.__name__, f"{name}, the third", {"by": "age", "mechanism": name, "quantiles": "1/3"}
        )
    bought = {"wants": ["median of age with interval", "total of pay"]}
    yield _PublishRequest("QuantileSelection", "wants, one with an interval", bought)
    cells = {"wants": ["share where pay >= 1 by sex", "bounds of pay"]}
    yield _PublishRequest("HistogramCounts", "wants with cells of their own", cells)
    for name, kind in query_mechanisms().items():
        options = {"queries": _queries(name), "mechanism": name}
        plain = name in ("linear", "projection", "weights")
        yield _PublishRequest(kind.__name__, name, options, others=_OTHERS if plain else _CROWD)
    yield _PublishRequest("LevelTrees", "sums by sex", {"by": ["sex"], "sums": ["pay"]})
    yield _PublishRequest("LevelTrees", "moments", {"by": [], "moments": ["pay"]})
    yield _PublishRequest("KnotTotal", "the total of pay", {"sums": ["pay"], "mechanism": "totals"})
    totals = {"by": ["sex"], "sums": ["pay"], "mechanism": "totals"}
    yield _PublishRequest("KnotTotal", "totals of pay by sex", totals)
    means = {"by": ["sex"], "sums": ["pay"], "mechanism": "group-means"}
    yield _PublishRequest("GroupMeans", "means by sex", means)
    banded = {**_SCHEMA, "pay": Integer(0, 100)}
    yield _PublishRequest("GroupMeans", "means by sex in a narrow band", means, _BAND, banded)
    yield _PublishRequest("LogTree", "sums by pay", {"views": [("pay",)], "sums": ["pay"]})
    views = [("age",), ("age", "sex"), ("sex",)]
    shares = {"age": 1, ("age", "sex"): 2, "sex": 3}
    yield _PublishRequest("Intervals", "three views, shares", {"views": views, "shares": shares})
    everything = {"views": views, "sums": ["pay"], "queries": ask.prefixes("age")}
    yield _PublishRequest("Rectangles", "views, sums and queries", everything)


def _budget(kind: Any) -> dict[str, Fraction]:
    """Rho for a mechanism that spends it; all others spend epsilon."""
    rho_only = getattr(kind, "takes_rho", False) and not getattr(kind, "takes_epsilon", False)
    return {"rho": _RHO} if rho_only else {}


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


def _publish_loss(
    request: _PublishRequest, protected: Protected, passes: int, one: Table, other: Table
) -> ReplayedLoss:
    person = {"person": "id"} if "contributions" in protected else {}
    budget = {} if "rho" in request.options else {"epsilon": _EPSILON}
    options = {**budget, **request.options, **protected, **person}
    return replay_publish(one, other, request.schema, passes=passes, **options)


@final
@dataclass(frozen=True)
class _InRho:
    """What a replay costs of rho, compared as a loss is."""

    loss: ReplayedLoss

    def __le__(self, rho: Fraction) -> bool:
        return self.loss.within_rho(rho)

    def __float__(self) -> float:
        return self.loss.rho


def _publish_cost(*given: Any) -> _InRho:
    """The same in rho."""
    return _InRho(_publish_loss(*given))


def _describe_neighbours(protected: Protected) -> str:
    """Whom the release protects, in words."""
    rows = protected.get("contributions", 1)
    who = "a row" if rows == 1 else f"a person with {rows} rows"
    return f"{who} {'changes' if 'neighbors' in protected else 'comes or goes'}"


# Enumeration cases of the mechanisms of queries.
_AGES: Final = pt.Universe(["age"], [Integer(0, 1)])
_SEX: Final = pt.Universe(["sex"], [Category(["f"])])
_PAY: Final = pt.Universe(["pay"], [Integer(0, 2)])
_QUERY_CROWD: Final = (0, 60, 100, 60, 0, 0, 0)
"""So many rows of each pay are always there, so that thresholds are clear."""


def query_cases(depth: Depth, more: int = 0) -> Iterator[Case]:
    """Every mechanism of queries by coupling, the plainest one by law too."""
    for world in _query_worlds():
        yield from coupled_cases(world, depth, more)
    total = _query_world("LinearWorkload", _SEX, pt.marginal("sex"), (0, 0, 1), protected=EVERYBODY[:2])
    yield from law_cases(total, depth, window=range(3))


def _query_worlds() -> Iterator[World]:
    prefixes, pay = pt.prefixes("age"), pt.value("pay")
    yield _query_world("LinearWorkload", _AGES, prefixes, (0, 1, 3))
    yield _query_world("LinearWorkload", _SEX, pt.marginal("sex") + pt.weights("sex", {"f": -1}), (1, 2, 5))
    yield _query_world("ProjectedLaplace", _AGES, prefixes, (0, 0, 1), slow=True)
    yield _query_world("MultiplicativeWeights", _AGES, prefixes, (0, 0, 1), rounds=2, slow=True)
    yield _query_world(
        "MultiplicativeWeights",
        _AGES,
        prefixes,
        (0, 0, 1),
        protected=EVERYBODY[1:2],
        slow=True,
        rounds=2,
        variant="printed",
    )
    for name, crowd in (("SingleTruncation", _QUERY_CROWD), ("ComposedTruncation", None)):
        yield _query_world(name, _PAY, pay, (0, 1, 2), crowd=crowd)
    yield _query_world("ComposedTruncation", _PAY, pay + 2 * pay, (0, 0, 1), crowd=_QUERY_CROWD)
    several = pay + pt.marginal("pay")
    for name, asked in (
        ("Normalization", several),
        ("GlobalTruncation", several),
        ("InstanceTruncation", pay + 2 * pay),
    ):
        yield _query_world(name, _PAY, asked, (0, 0, 1), crowd=_QUERY_CROWD, rounds=1)


def _query_world(
    name: str,
    universe: Any,
    queries: Any,
    rows: tuple[int, int, int],
    *,
    protected: tuple[Any, ...] = EVERYBODY,
    crowd: Counts | None = None,
    slow: bool = False,
    **options: Any,
) -> World:
    make = _maker(name, queries=queries, universe=universe, **options)
    printed = ", as printed" if options.get("variant") == "printed" else ""
    about = f"{universe.size} cells{printed}" + (f", {sum(crowd)} more rows" if crowd else "")
    data = partial(points, universe.axes)
    return World(name, about, make, data, universe.size, rows, protected, crowd, slow)
