"""The checks that every mechanism passes, found by discovery: over one axis, and over several."""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from partita.domain.axis import Axis
from partita.errors.errors import InvalidParameter, PartitaError
from partita.testing.doubles.doubles import ForbiddenNoise, RecordingNoise, ZeroNoise
from partita.trusted.mechanisms import catalogue
from partita.trusted.noise.system.system import SYSTEM
from partita.trusted.secret.histogram import Histogram
from partita.trusted.secret.points import Points

_SIZE = 8
_AXES = (Axis(size=5, before=1, after=3), Axis(size=3, after=2, labels=True))
_CANARY = 987_654_321


class _Ground(NamedTuple):
    """What a kind of mechanism stands on: its shape and what is none, data that fit and data that do not."""

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


_AXIS_GROUND = _Ground(
    parameter="size",
    shape=_SIZE,
    no_shapes=(0, -1, 1.5, "8", True, None, 2**64 + 1),
    data=_histogram,
    no_data=(
        lambda: Histogram.from_cells([_CANARY], size=_SIZE),
        lambda: Histogram.from_cells([-_CANARY], size=_SIZE),
        lambda: Histogram.from_cells([_CANARY + 0.5], size=_SIZE),
        lambda: Histogram.from_cells([str(_CANARY)], size=_SIZE),
        lambda: Histogram.dense([_CANARY, -_CANARY]),
        lambda: Histogram.from_cells([1], size=2 * _SIZE),
        lambda: _histogram(contributions=2),
        lambda: _points(),
        lambda: {"secret": _CANARY},
        lambda: float(_CANARY),
    ),
)

_BOX_GROUND = _Ground(
    parameter="axes",
    shape=_AXES,
    no_shapes=((), 0, 1.5, "8", True, None, [_SIZE], [Axis(size=2)] * 7),
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


def mechanisms() -> list[type[Any]]:
    """Every mechanism of the package that is made with a size or with axes."""
    return [each for each in catalogue.mechanisms().values() if _shaped(each)]


def _shaped(mechanism: type[Any]) -> bool:
    return not {"size", "axes"}.isdisjoint(inspect.signature(mechanism).parameters)


def _ground(mechanism: type[Any]) -> _Ground:
    return _BOX_GROUND if "axes" in inspect.signature(mechanism).parameters else _AXIS_GROUND


def check_mechanism(mechanism: type[Any]) -> None:
    """Run every check below on a mechanism made with size= or axes=, epsilon=, neighbors=, contributions=."""
    for check in _checks():
        check(mechanism)


def _checks() -> Iterator[Callable[[type[Any]], None]]:
    for name, function in globals().items():
        if name.startswith("_check_") and inspect.isfunction(function):
            yield function


def _made(mechanism: type[Any], **changes: Any) -> Any:
    ground = _ground(mechanism)
    return mechanism(**{ground.parameter: ground.shape, "epsilon": Fraction(1), **changes})


def _released(made: Any, noise: Any, contributions: int = 1) -> Any:
    return made.release(_ground(type(made)).data(contributions), noise=noise)


def _scales(made: Any, contributions: int = 1) -> list[Fraction]:
    recorder = RecordingNoise(ZeroNoise())
    _released(made, recorder, contributions)
    return recorder.scales


def _check_is_frozen(mechanism: type[Any]) -> None:
    made = _made(mechanism)
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
            promised = _made(mechanism, epsilon=epsilon, neighbors=neighbors).guarantee
            assert (promised.epsilon, promised.delta, promised.neighbors) == (exact, 0, neighbors)
    person = _made(mechanism, contributions=3).guarantee
    assert (person.unit, person.contributions) == ("person", 3)


def _check_noise_follows_the_contribution_bound(mechanism: type[Any]) -> None:
    """Twice the rows per person, twice every scale; and so for change-one neighbours and half of epsilon."""
    once = _scales(_made(mechanism))
    assert once, f"{mechanism.__name__} asks for no noise"
    for changes in ({"contributions": 2}, {"neighbors": "change-one"}, {"epsilon": Fraction(1, 2)}):
        twice = _scales(_made(mechanism, **changes), changes.get("contributions", 1))  # type: ignore[arg-type]
        assert set(twice) == {2 * scale for scale in once}, f"{mechanism.__name__} with {changes}"


def _check_zero_noise_is_deterministic(mechanism: type[Any]) -> None:
    one, other = (_released(_made(mechanism), ZeroNoise()) for _ in range(2))
    for field in dataclasses.fields(one):
        assert repr(getattr(one, field.name)) == repr(getattr(other, field.name)), field.name


def _check_only_secure_noise_carries_the_guarantee(mechanism: type[Any]) -> None:
    made = _made(mechanism)
    assert _released(made, SYSTEM).guarantee == made.guarantee
    assert _released(made, ZeroNoise()).guarantee is None


def _check_bad_parameters_are_refused(mechanism: type[Any]) -> None:
    ground = _ground(mechanism)
    bad: list[dict[str, Any]] = [
        *({"epsilon": value} for value in (0, -1, float("nan"), float("inf"), True, "much", None)),
        *({ground.parameter: value} for value in ground.no_shapes),
        *({"contributions": value} for value in (0, 1.5, True)),
        {"neighbors": "cousins"},
    ]
    for changes in bad:
        with warnings.catch_warnings(action="ignore"):
            error = _error(lambda changes=changes: _made(mechanism, **changes))  # type: ignore[misc]
        (name,) = changes
        assert isinstance(error, InvalidParameter), f"{mechanism.__name__}({changes}) gave {error!r}"
        assert error.parameter == name, f"{mechanism.__name__}({changes}) blames {error.parameter}"


def _check_bad_data_is_refused_before_any_draw(mechanism: type[Any]) -> None:
    """The error is ours, shows no value, and nothing was drawn."""
    made = _made(mechanism)
    for give in _ground(mechanism).no_data:
        error = _error(lambda give=give: made.release(give(), noise=ForbiddenNoise()))  # type: ignore[misc]
        assert isinstance(error, PartitaError), f"{mechanism.__name__} gave {error!r}"
        assert str(_CANARY) not in str(error), f"{mechanism.__name__} shows a value: {error}"


def _error(call: Callable[[], Any]) -> BaseException | None:
    try:
        call()
    except Exception as error:
        return error
    return None
