"""A counter without noise, so that outputs are counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from partita.testing import ZeroNoise
from partita.trusted.durable.open import open_counter
from partita.trusted.durable.stream import DurableCounter

Opener: TypeAlias = Callable[..., DurableCounter]


def made_with(mechanism: str) -> dict[str, Any]:
    """What a mechanism is opened with, for 64 periods or a window of 5."""
    length: dict[str, Any] = {"window": 5} if mechanism == "sliding" else {"horizon": 64}
    return {"mechanism": mechanism, **length}


def known_by(mechanism: str, sequence: int) -> dict[str, Any]:
    """What an event of this number is known by; nothing, if the counter keeps nothing of events."""
    return {} if mechanism == "pan-private" else {"feeder": "gate", "sequence": sequence}


@pytest.fixture
def opened(tmp_path: Path) -> Opener:
    """Opens the counter `visits` of this test: periods of a second from 1970 on, no noise unless told."""

    def opener(**named: Any) -> DurableCounter:
        usual: dict[str, Any] = {"epsilon": 1, "period": 1, "start": 0, "now": 0, "noise": ZeroNoise()}
        return open_counter(tmp_path / "visits", **(usual | named))

    return opener
