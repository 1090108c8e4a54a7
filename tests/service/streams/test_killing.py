"""The real service, killed while it is fed."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.faults
def test_a_steward_that_is_killed_loses_nothing_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three times under load: all that was acknowledged is counted once, and outputs only grow."""
    monkeypatch.syspath_prepend(Path(__file__).parents[3])
    from benchmarks.load.killing import killed
    from benchmarks.load.serving import Place

    row = killed(Place.made(tmp_path), times=3, seconds=0.5)

    assert row["acknowledged"] > 0
    assert (row["lost_or_twice"], row["published_changed"], row["reached"]) == (0, False, True)
