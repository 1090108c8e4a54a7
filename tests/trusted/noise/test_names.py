"""The names of `partita.trusted.noise`."""

from __future__ import annotations

import pytest

import partita.trusted.noise
from partita.trusted.noise.system import SYSTEM


@pytest.mark.parametrize("name", partita.trusted.noise.__all__)
def test_every_exported_name_resolves(name: str) -> None:
    """What `__all__` and `dir` promise is there."""
    assert getattr(partita.trusted.noise, name) is not None
    assert name in dir(partita.trusted.noise)


@pytest.mark.parametrize(
    "name", ["add", "bernoulli", "categorical", "discrete_laplace", "exponential", "geometric"]
)
def test_functions_draw_from_the_system(name: str) -> None:
    """The functions of the module are the methods of SYSTEM."""
    assert getattr(partita.trusted.noise, name) == getattr(SYSTEM, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A misspelt sampler is reported by its name."""
    with pytest.raises(AttributeError, match="gausian"):
        partita.trusted.noise.gausian  # type: ignore[attr-defined]  # noqa: B018


def test_names_are_sorted_and_unique() -> None:
    """No name is listed twice."""
    assert len(set(partita.trusted.noise.__all__)) == len(partita.trusted.noise.__all__)
    assert dir(partita.trusted.noise) == sorted(partita.trusted.noise.__all__)
