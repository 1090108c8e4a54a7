"""Every mechanism gives on a fixed tape what it gave before."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

import partita as pt
from scripts.digests import CASES, DIGESTS, digest

EXPECTED: dict[str, str] = json.loads(DIGESTS.read_text(encoding="utf-8"))


def test_every_case_has_a_digest() -> None:
    """None is missing, and none is left over."""
    assert list(CASES) == list(EXPECTED)


@pytest.mark.filterwarnings("ignore::partita.errors.PrivacyWarning")
@pytest.mark.parametrize("name", CASES)
def test_the_same_tape_gives_the_same_output(name: str) -> None:
    """Releases, counters, reports, sketches and the samplers themselves."""
    assert digest(CASES[name]) == EXPECTED[name]


@pytest.mark.parametrize(
    "name", ["release tree, 400 rows", "release rectangles, 400 rows", "counter tree, 2"]
)
def test_another_scale_gives_another_digest(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise that is wider by one part in twenty is seen."""
    sampler: Any = type(pt.noise.SYSTEM)
    integers = sampler._integers

    def wider(self: Any, scale: Fraction, size: int, *, signed: bool) -> Any:
        return integers(self, scale * Fraction(21, 20), size, signed=signed)

    monkeypatch.setattr(sampler, "_integers", wider)

    assert digest(CASES[name]) != EXPECTED[name]
