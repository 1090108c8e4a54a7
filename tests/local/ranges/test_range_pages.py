"""The benchmark of ranges and oracles runs, and devices need no NumPy for ranges."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from benchmarks.local import ranges, ranges_oracles
from benchmarks.local.haar import haar_shares

DEVICE = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numpy", "pyarrow", "cryptography", "duckdb"):
            raise ImportError(name)

sys.meta_path.insert(0, Blocked())
from partita.local.device import Device
from partita.local.ranges import Range
from partita.local.ranges import Rectangles

boxes = Rectangles({"x": 9, "y": 9}, epsilon=1)
for question, value in ((Range(1000, epsilon=1), 7), (boxes, {"x": 1, "y": 2})):
    read = Device.verify(question.to_json())
    assert read == question
    assert 0 <= read.randomize(value) < read.randomizer.reports
"""


@pytest.mark.faults
def test_a_device_reports_ranges_with_the_standard_library() -> None:
    """With NumPy and all else blocked it verifies and answers questions about ranges and boxes."""
    subprocess.run([sys.executable, "-c", DEVICE], check=True)


def test_the_benchmark_has_a_row_for_each_promise() -> None:
    """A quick run has three epsilons, a batch and a learner, and no verdict."""
    rows: list[Any] = [
        *ranges.ranges(quick=True),
        *ranges_oracles.budgets(quick=True),
        *ranges_oracles.logistic(quick=True),
    ]

    assert [row["row"] for row in rows] == ["ranges"] * 3 + ["budgets", "logistic"]
    assert {row.get("met") for row in rows} == {None}


def test_the_baseline_estimates_shares() -> None:
    """HaarHRR at a large epsilon finds where people are."""
    rng = np.random.default_rng(6)
    cells = np.repeat([3, 12], [15_000, 45_000])
    shares = haar_shares(cells, 16, 12.0, rng)

    assert shares[[3, 12]] == pytest.approx([0.25, 0.75], abs=0.05)
    assert shares.sum() == pytest.approx(1)
