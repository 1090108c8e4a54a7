"""What a figure was measured on."""

from __future__ import annotations

import os
import platform
from datetime import date
from importlib.metadata import version
from pathlib import Path


def facts(*packages: str) -> dict[str, str | int]:
    """Machine, versions and day: part of every row."""
    versions = {name: version(name) for name in ("partita", "numpy", *packages)}
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        **versions,
        "date": date.today().isoformat(),
    }


def cpu_model() -> str:
    """As the kernel calls it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
