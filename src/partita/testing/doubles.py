"""Stand-ins for noise, clusters and randomness, tiny universes, and the checks every mechanism must pass."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import pickle
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial, reduce
from itertools import pairwise, product
from operator import add
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.arrays import Ints, UInts
from partita.domain.axis import MOST_COLUMNS, Axis
from partita.domain.text import Text
from partita.errors import InvalidParameter, PartitaError, TapeExhausted
from partita.trusted.mechanisms import catalogue
from partita.trusted.noise.hazard import MARGIN, Law
from partita.trusted.noise.laws import Exact, Tape
from partita.trusted.noise.system import SYSTEM, Noise, Path, Positions, SuccessSearch, SystemNoise
from partita.trusted.secret import AxisCounts, Histogram, NameCounts, PointCounts, Points, ShardWork, Work


class ZeroNoise:
    """Noise that is always zero: mechanisms become exact and deterministic."""

    secure = False

    def session(self) -> ZeroNoise:
        return self

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        return np.asarray(x).copy()

    def add_gaussian(self, x: ArrayLike, variance: Fraction) -> Any:
        return np.asarray(x).copy()

    def draw(self, law: Law, scale: Fraction) -> int:
        return 0

    def first_success(self, law: Law, scale: Fraction) -> Positions:
        return _ZeroPositions()

    def segments(
        self, law: Law, scale: Fraction, threshold: int, positions: UInts, weights: Ints, last: int
    ) -> SuccessSearch | None:
        return None

    def bernoulli(self, probability: Exact) -> bool:
        return isinstance(probability, Fraction) and probability > Fraction(1, 2)

    def categorical(self, weights: Sequence[int | Fraction]) -> int:
        return max(range(len(weights)), key=lambda i: weights[i])

    def exponential(self, scores: ArrayLike, scale: Fraction) -> int:
        return int(np.argmax(np.asarray(scores)))

    def permute_and_flip(self, scores: ArrayLike, lengths: ArrayLike, scale: Fraction) -> int:
        """The first candidate of the first run that none is better than."""
        return sum(np.asarray(lengths).tolist()[: int(np.argmax(np.asarray(scores)))])

    def integers_below(self, bound: int, count: int) -> Ints:
        """The middle, so that a tag is not at the end of its cell."""
        return np.full(count, bound // 2, np.int64)


class _ZeroPositions:
    def run(self, level: int, length: int) -> int | None:
        return 0 if length and level < 0 else None


class ForbiddenNoise:
    """Noise that must not be drawn: input is checked before anything is."""

    secure = False

    def session(self) -> ForbiddenNoise:
        raise AssertionError("noise was asked for before the input was checked")

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"noise.{name} was asked for before the input was checked")


@dataclass
class RecordingNoise:
    """Passes every call on to another noise and remembers the scales, and Gaussian variances, asked for."""

    noise: Noise
    scales: list[Fraction] = field(default_factory=list)
    variances: list[Fraction] = field(default_factory=list)
    secure: ClassVar[bool] = False

    def session(self) -> RecordingNoise:
        return RecordingNoise(self.noise.session(), self.scales, self.variances)

    def add_gaussian(self, x: ArrayLike, variance: Fraction) -> Any:
        self.variances.append(variance)
        return self.noise.add_gaussian(x, variance)

    def add(self, x: ArrayLike, scale: Fraction, *, parts: ArrayLike | None = None) -> Any:
        self.scales.append(scale)
        return self.noise.add(x, scale, parts=parts)

    def draw(self, law: Law, scale: Fraction) -> int:
        self.scales.append(scale)
        return self.noise.draw(law, scale)

    def first_success(self, law: Law, scale: Fraction) -> Positions:
        self.scales.append(scale)
        return self.noise.first_success(law, scale)

    def segments(
        self, law: Law, scale: Fraction, threshold: int, positions: UInts, weights: Ints, last: int
    ) -> SuccessSearch | None:
        self.scales.append(scale)
        return self.noise.segments(law, scale, threshold, positions, weights, last)

    def bernoulli(self, probability: Exact) -> bool:
        return self.noise.bernoulli(probability)

    def categorical(self, weights: Sequence[int | Fraction]) -> int:
        return self.noise.categorical(weights)

    def exponential(self, scores: ArrayLike, scale: Fraction) -> int:
        self.scales.append(scale)
        return self.noise.exponential(scores, scale)

    def permute_and_flip(self, scores: ArrayLike, lengths: ArrayLike, scale: Fraction) -> int:
        self.scales.append(scale)
        return self.noise.permute_and_flip(scores, lengths, scale)

    def integers_below(self, bound: int, count: int) -> Ints:
        return self.noise.integers_below(bound, count)


# Tiny universes: all data sets over them, and all pairs of neighbours.
Counts: TypeAlias = tuple[int, ...]


def data_sets(size: int, most: int) -> Iterator[Counts]:
    """All multisets over `size` cells with at most `most` items in a cell."""
    return product(range(most + 1), repeat=size)


def add_remove_pairs(size: int, most: int) -> Iterator[tuple[Counts, Counts]]:
    """Each unordered pair of data sets that differ by one item, once."""
    for counts in data_sets(size, most):
        for cell in range(size):
            if counts[cell] < most:
                yield counts, _shift(counts, cell, 1)


def change_one_pairs(size: int, most: int) -> Iterator[tuple[Counts, Counts]]:
    """Each unordered pair of data sets that differ by moving one item, once."""
    for counts in data_sets(size, most):
        for source in range(size):
            for target in range(source + 1, size):
                if counts[source] and counts[target] < most:
                    yield counts, _shift(_shift(counts, source, -1), target, 1)


def _shift(counts: Counts, cell: int, by: int) -> Counts:
    return (*counts[:cell], counts[cell] + by, *counts[cell + 1 :])


# Counts that are nowhere in one piece: stand-ins for a cluster, with which only the interface works.
Travel: TypeAlias = Callable[[Any], Any]
"""What another machine gets of work that is sent to it."""


def pickled(work: Any) -> Any:
    """The work written out and read again, functions by their names."""
    return pickle.loads(pickle.dumps(work))


@final
class Scattered(AxisCounts):
    """The counts of a histogram, dealt out to blocks, and cut in shards of nearly equal length.

    Work travels; by default it is pickled. Noise does not, so that tests can put any in its place.

    >>> Scattered(Histogram.dense((3, 0, 5, 1))).total
    9
    """

    def __init__(
        self,
        histogram: Histogram,
        *,
        blocks: int = 3,
        shards: int | Sequence[range] = 1,
        travel: Travel = pickled,
    ) -> None:
        self.size, self.contributions = histogram.size, histogram.contributions
        self._blocks, self._travel = _Blocks(histogram.cells, histogram.counts, blocks), travel
        self._shards = _split(self.size, shards) if isinstance(shards, int) else list(shards)

    def folded(self, work: Work) -> NDArray[Any]:
        """Block by block."""
        return self._blocks.folded(work, self._travel)

    def in_shards(self, work: ShardWork, *, noise: Noise) -> UInts:
        """Shard by shard, the last one first."""
        found = [self._worked(work, shard, noise) for shard in reversed(self._shards)]
        return np.concatenate(found[::-1])

    def _worked(self, work: ShardWork, shard: range, noise: Noise) -> UInts:
        cells, counts = self._blocks.together()
        inside = (cells >= np.uint64(shard.start)) & (cells <= np.uint64(shard.stop - 1))
        held = Histogram(self.size, cells[inside], counts[inside], self.contributions)
        return np.asarray(self._travel(work)(held, shard, noise))

    def __repr__(self) -> str:
        return f"Scattered(size={self.size}, contributions={self.contributions}, secret)"


@final
class ScatteredPoints(PointCounts):
    """Points dealt out to blocks.

    >>> from partita.domain.axis import MOST_COLUMNS, Axis
    >>> points = Points.from_rows([[3], [0], [3]], axes=[Axis(size=4)])
    >>> ScatteredPoints(points).spread().tolist()
    [1, 0, 0, 2]
    """

    def __init__(self, points: Points, *, blocks: int = 3, travel: Travel = pickled) -> None:
        self.axes, self.contributions = points.axes, points.contributions
        self._blocks, self._travel = _Blocks(points.places, points.counts, blocks), travel

    def folded(self, work: Work) -> NDArray[Any]:
        """Block by block."""
        return self._blocks.folded(work, self._travel)

    def alone(self, axis: int) -> ScatteredPoints:
        """Counted anew, and dealt out again."""
        return ScatteredPoints(self._points().alone(axis), travel=self._travel)

    def along(self, axis: int) -> Scattered:
        """Counted anew, and dealt out again."""
        return Scattered(self._points().along(axis), travel=self._travel)

    def _points(self) -> Points:
        places, counts = self._blocks.together()
        return Points.from_rows(places, axes=self.axes, counts=counts, contributions=self.contributions)

    def __repr__(self) -> str:
        return f"ScatteredPoints({len(self.axes)} axes, contributions={self.contributions}, secret)"


@final
class _Blocks:
    """Things dealt out like cards, each block in order, and one block that nothing is in."""

    def __init__(self, things: UInts, counts: Ints, blocks: int) -> None:
        hands = [slice(first, None, blocks) for first in range(blocks)]
        self._blocks = [(things[hand], counts[hand]) for hand in hands] + [(things[:0], counts[:0])]

    def folded(self, work: Work, travel: Travel) -> NDArray[Any]:
        """The sum of the work on every block, the last one first; the shapes must be the same."""
        found = [travel(work)(*block) for block in reversed(self._blocks)]
        if len({each.shape for each in found}) > 1 or any(each.dtype.kind not in "iO" for each in found):
            raise AssertionError("work must return integers of one shape, whatever is in a block")
        return np.asarray(reduce(add, found))

    def together(self) -> tuple[UInts, Ints]:
        """All of them, in order."""
        things = np.concatenate([each for each, _ in self._blocks])
        counts = np.concatenate([each for _, each in self._blocks])
        order = np.lexsort(things.T[::-1]) if things.ndim > 1 else np.argsort(things)
        return things[order], counts[order]


def _split(size: int, shards: int) -> list[range]:
    bounds = [size * i // shards for i in range(shards + 1)]
    return [range(low, high) for low, high in pairwise(bounds)]


# The checks that every mechanism passes, found by discovery: over one axis, and over several.
_SIZE = 8
_AXES = (Axis(size=5, before=1, after=3), Axis(size=3, after=2, labels=True))
_CANARY = 987_654_321  # a number that no message may show
_NO_CELLS = (_CANARY, -_CANARY, _CANARY + 0.5, str(_CANARY))


class _Setting(NamedTuple):
    """How a kind of mechanism is made and fed: valid and invalid shapes, valid and invalid data."""

    parameter: str
    shape: Any
    no_shapes: tuple[Any, ...]
    data: Callable[[int], Any]
    no_data: tuple[Callable[[], Any], ...]


def _histogram(contributions: int = 1) -> Histogram:
    return Histogram.dense((3, 0, 0, 5, 1, 0, 2, 9), contributions=contributions)


def _points(contributions: int = 1) -> Points:
    rows = [[1, 0], [1, 1], [3, 2], [5, 0], [0, 4], [8, 3]]
    return Points.from_rows(rows, axes=_AXES, counts=[3, 5, 1, 2, 9, 1], contributions=contributions)


_AXIS_SETTING = _Setting(
    parameter="size",
    shape=_SIZE,
    no_shapes=(0, -1, 1.5, "8", True, None, 2**64 + 1),
    data=_histogram,
    no_data=(
        *(partial(Histogram.from_cells, [cell], size=_SIZE) for cell in _NO_CELLS),
        lambda: Histogram.dense([_CANARY, -_CANARY]),
        lambda: Histogram.from_cells([1], size=2 * _SIZE),
        lambda: _histogram(contributions=2),
        lambda: _points(),
        lambda: {"secret": _CANARY},
        lambda: float(_CANARY),
    ),
)

_TEXT = Text(2)


_BOX_SETTING = _Setting(
    parameter="axes",
    shape=_AXES,
    no_shapes=((), 0, 1.5, "8", True, None, [_SIZE], [Axis(size=2)] * (MOST_COLUMNS + 1)),
    data=_points,
    no_data=(
        lambda: Points.from_rows([[_CANARY, 0]], axes=_AXES),
        lambda: Points.from_rows([[-_CANARY, 0]], axes=_AXES),
        lambda: Points.from_rows([[_CANARY + 0.5, 0]], axes=_AXES),
        lambda: Points.from_rows([[str(_CANARY), "0"]], axes=_AXES),
        lambda: Points.from_rows([[1, 0]], axes=_AXES, counts=[-_CANARY]),
        lambda: Points.from_rows([[1, 0]], axes=[_AXES[0], Axis(size=_CANARY)]),
        lambda: Points.from_rows([[1, 0, 0]], axes=[*_AXES, _AXES[0]]),
        lambda: _points(contributions=2),
        lambda: _histogram(),
        lambda: {"secret": _CANARY},
        lambda: float(_CANARY),
    ),
)


def _names(contributions: int = 1, text: Text = _TEXT) -> NameCounts:
    values = ["a"] * 300 + ["ab"] * 5 + ["zz"]
    return NameCounts.from_texts(values, text, contributions=contributions)


_TEXT_SETTING = _Setting(
    parameter="text",
    shape=_TEXT,
    no_shapes=(0, "8", None, _SIZE, Axis(size=2)),
    data=_names,
    no_data=(
        lambda: _names(contributions=2),
        lambda: _names(text=Text(3)),
        lambda: _histogram(),
        lambda: {"secret": _CANARY},
        lambda: float(_CANARY),
    ),
)


def mechanisms() -> list[type[Any]]:
    """Every mechanism of the package that is made with a size, with axes, or with a column of text."""
    known = catalogue.mechanisms().values()
    return [each for each in known if {"size", "axes", "text"} & inspect.signature(each).parameters.keys()]


def _setting(mechanism: type[Any]) -> _Setting:
    made_with = inspect.signature(mechanism).parameters
    if "text" in made_with:
        return _TEXT_SETTING
    return _BOX_SETTING if "axes" in made_with else _AXIS_SETTING


def check_mechanism(mechanism: type[Any]) -> None:
    """Run every check below on a mechanism made with size=, axes= or text=, epsilon= and the others."""
    for name, check in list(globals().items()):
        if name.startswith("_check_") and inspect.isfunction(check):
            check(mechanism)


def _make(mechanism: type[Any], **changes: Any) -> Any:
    setting = _setting(mechanism)
    return mechanism(**{setting.parameter: setting.shape, "epsilon": Fraction(1), **changes})


def _release(made: Any, noise: Any, contributions: int = 1) -> Any:
    return made.release(_setting(type(made)).data(contributions), noise=noise)


def _scales(made: Any, contributions: int = 1) -> list[Fraction]:
    recorder = RecordingNoise(ZeroNoise())
    _release(made, recorder, contributions)
    return recorder.scales


def _check_is_frozen(mechanism: type[Any]) -> None:
    made = _make(mechanism)
    name = dataclasses.fields(made)[0].name
    try:
        setattr(made, name, None)
    except dataclasses.FrozenInstanceError:
        return
    raise AssertionError(f"{mechanism.__name__} is not frozen")


def _check_states_guarantee_error_and_proof(mechanism: type[Any]) -> None:
    text = inspect.getdoc(mechanism) or ""
    places = [text.find(word) for word in ("Guarantee:", "Error:", "Proof:")]
    assert -1 not in places, f"{mechanism.__name__} lacks a Guarantee, Error or Proof line"
    assert places == sorted(places), f"{mechanism.__name__} states them in another order"


def _check_guarantee_is_what_was_asked_for(mechanism: type[Any]) -> None:
    for epsilon, exact in (("0.1", Fraction(1, 10)), (0.1, Fraction(1, 10)), (2, Fraction(2))):
        for neighbors in ("add-remove", "change-one"):
            made = _make(mechanism, epsilon=epsilon, neighbors=neighbors)
            approximate = _takes_rho(mechanism) or getattr(mechanism, "takes_delta", False)
            promised, delta = made.guarantee, made.delta if approximate else 0
            assert (promised.epsilon, promised.delta, promised.neighbors) == (exact, delta, neighbors)
            assert (promised.rho > 0) == _takes_rho(mechanism)
    person = _make(mechanism, contributions=3).guarantee
    assert (person.unit, person.contributions) == ("person", 3)


def _check_noise_follows_the_contribution_bound(mechanism: type[Any]) -> None:
    """Twice the rows per person or half of epsilon, twice every scale.

    For change-one neighbours twice, too, unless the mechanism says how much its counts have `changed`. The
    variance of Gaussian noise is four times for twice the rows or a quarter of rho, twice for change-one.
    """
    if _takes_rho(mechanism):
        _compare_variances(mechanism)
        return
    once = _scales(_make(mechanism))
    assert once, f"{mechanism.__name__} asks for no noise"
    for changes in ({"contributions": 2}, {"epsilon": Fraction(1, 2)}):
        twice = _scales(_make(mechanism, **changes), changes.get("contributions", 1))  # type: ignore[arg-type]
        assert set(twice) == {2 * scale for scale in once}, f"{mechanism.__name__} with {changes}"
    moving = _make(mechanism, neighbors="change-one")
    needed = moving.changed / _make(mechanism).changed if hasattr(moving, "changed") else Fraction(2)
    moved = {needed * scale for scale in once}
    assert set(_scales(moving)) == moved, f"{mechanism.__name__} with change-one neighbors"


def _compare_variances(mechanism: type[Any]) -> None:
    once = _variances(_make(mechanism, epsilon=None, rho=1))
    assert once, f"{mechanism.__name__} asks for no noise"
    cases: list[tuple[dict[str, Any], int]] = [
        ({"contributions": 2}, 4), ({"rho": Fraction(1, 4)}, 4), ({"neighbors": "change-one"}, 2),
    ]  # fmt: skip
    for changes, factor in cases:
        made = _make(mechanism, **{"epsilon": None, "rho": 1, **changes})
        found = _variances(made, changes.get("contributions", 1))
        assert found == [factor * each for each in once], f"{mechanism.__name__} with {changes}"
        assert not _scales(made, changes.get("contributions", 1)), f"{mechanism.__name__} draws other noise"


def _variances(made: Any, contributions: int = 1) -> list[Fraction]:
    recorder = RecordingNoise(ZeroNoise())
    _release(made, recorder, contributions)
    return recorder.variances


def _takes_rho(mechanism: type[Any]) -> bool:
    """Whether it takes nothing else."""
    return bool(getattr(mechanism, "takes_rho", False)) and not getattr(mechanism, "takes_epsilon", False)


def _check_zero_noise_is_deterministic(mechanism: type[Any]) -> None:
    one, other = (_release(_make(mechanism), ZeroNoise()) for _ in range(2))
    for each in dataclasses.fields(one):
        assert repr(getattr(one, each.name)) == repr(getattr(other, each.name)), each.name


def _check_only_secure_noise_carries_the_guarantee(mechanism: type[Any]) -> None:
    made = _make(mechanism)
    assert _release(made, SYSTEM).guarantee == made.guarantee
    assert _release(made, ZeroNoise()).guarantee is None


def _check_bad_parameters_are_refused(mechanism: type[Any]) -> None:
    setting = _setting(mechanism)
    bad: list[dict[str, Any]] = [
        *({"epsilon": value} for value in (0, -1, float("nan"), float("inf"), True, "much", None)),
        *({setting.parameter: value} for value in setting.no_shapes),
        *({"contributions": value} for value in (0, 1.5, True)),
        {"neighbors": "cousins"},
    ]
    for changes in bad:
        with warnings.catch_warnings(action="ignore"):
            error = _error(lambda changes=changes: _make(mechanism, **changes))  # type: ignore[misc]
        (name,) = changes
        assert isinstance(error, InvalidParameter), f"{mechanism.__name__}({changes}) gave {error!r}"
        assert error.parameter == name, f"{mechanism.__name__}({changes}) blames {error.parameter}"


def _check_bad_data_is_refused_before_any_draw(mechanism: type[Any]) -> None:
    """The error is ours, shows no value, and nothing was drawn."""
    made = _make(mechanism)
    for give in _setting(mechanism).no_data:
        error = _error(lambda give=give: made.release(give(), noise=ForbiddenNoise()))  # type: ignore[misc]
        assert isinstance(error, PartitaError), f"{mechanism.__name__} gave {error!r}"
        assert str(_CANARY) not in str(error), f"{mechanism.__name__} shows a value: {error}"


def _error(call: Callable[[], Any]) -> BaseException | None:
    try:
        call()
    except Exception as error:
        return error
    return None


# Fixed randomness for tests: endless tapes from a seed, and every short tape there is.
Outcome = TypeVar("Outcome", bound=Hashable)


class EndlessTape:
    """Words from a seed, without end: SHAKE-256 of the seed and a block number.

    >>> EndlessTape(1).take(2).tolist() == EndlessTape(1).take(2).tolist()
    True
    """

    bits = 64

    def __init__(self, seed: object) -> None:
        self._seed = repr(seed).encode()
        self._blocks = self._generate()
        self._ready: UInts = np.zeros(0, dtype=np.uint64)
        self.used = 0

    def take(self, count: int) -> UInts:
        """The next words."""
        while self._ready.size < count:
            self._ready = np.concatenate([self._ready, next(self._blocks)])
        taken, self._ready = self._ready[:count], self._ready[count:]
        self.used += count
        return taken

    def take_up_to(self, count: int) -> UInts:
        """The next words; there are always enough."""
        return self.take(count)

    def give_back(self, words: UInts) -> None:
        """Put words back in front."""
        self._ready = np.concatenate([words, self._ready])
        self.used -= words.size

    def _generate(self) -> Iterator[UInts]:
        block = 0
        while True:
            digest = hashlib.shake_256(self._seed + block.to_bytes(8, "little")).digest(1 << 15)
            yield np.frombuffer(digest, dtype=np.uint64)
            block += 1


def tape_noise(tape: Tape | EndlessTape, *, path: Path = "auto", margin: float = MARGIN) -> SystemNoise:
    """The shipped sampler on given words."""
    return SystemNoise(lambda: tape, path=path, margin=margin)


class TapeLaw(dict[Outcome, Fraction]):
    """The mass of each outcome over all tapes of a length, and the mass of tapes that ended too early."""

    unresolved: Fraction = Fraction(0)


def tape_law(draw: Callable[[Tape], Outcome], *, bits: int = 4, words: int = 4) -> TapeLaw[Outcome]:
    """Run a sampler on every tape of up to `words` words of `bits` bits.

    A sampler that stops after k words has mass 2^(-bits k) on that tape; what is still undecided
    at the last word is `unresolved`. The masses add up to one exactly.
    """
    law: TapeLaw[Outcome] = TapeLaw()
    pending: list[tuple[int, ...]] = [()]
    while pending:
        prefix = pending.pop()
        tape = Tape(list(prefix), bits=bits)
        mass = Fraction(1, 1 << (bits * len(prefix)))
        try:
            outcome = draw(tape)
        except TapeExhausted:
            if len(prefix) == words:
                law.unresolved += mass
            else:
                pending += [(*prefix, *more) for more in product(range(1 << bits))]
        else:
            law[outcome] = law.get(outcome, Fraction(0)) + mass
    return law
