"""What it costs to begin: CPU seconds of fresh interpreters."""

from __future__ import annotations

import os
import sys
from statistics import median

from benchmarks.speed.row import Row, Target

BARE = "pass"
IMPORT = "import partita"
EVERYTHING = "import partita\nfor name in partita.__all__: getattr(partita, name)"
FIRST = "from partita.trusted.noise import SystemNoise\nSystemNoise(path={path!r}).discrete_laplace(20, 10)"


def import_partita(quick: bool) -> Row:
    """`import partita`, which loads names when they are used, against the interpreter alone."""
    return _start(quick, "import partita", IMPORT, "python -c pass", BARE, Target("figure", "<=", 0.4))


def import_everything(quick: bool) -> Row:
    """`import partita` and every public name in it, against the interpreter alone."""
    return _start(quick, "all public names", EVERYTHING, "python -c pass", BARE, Target("figure", "<=", 0.4))


def first_compiled_draw(quick: bool) -> Row:
    """The first draw by compiled code, which is loaded or made then, against the NumPy path."""
    compiled, plain = FIRST.format(path="compiled"), FIRST.format(path="numpy")
    return _start(quick, "first draw, path compiled", compiled, "first draw, path numpy", plain, None)


def _start(
    quick: bool, ours: str, code: str, baseline: str, baseline_code: str, target: Target | None
) -> Row:
    rounds = 3 if quick else 7
    cpu(code), cpu(baseline_code)
    pairs = [(cpu(code), cpu(baseline_code)) for _ in range(rounds)]
    return Row(
        ours=ours,
        parameters={},
        unit="s CPU",
        figure=median(first for first, _ in pairs),
        baseline=baseline,
        baseline_figure=median(second for _, second in pairs),
        statistic=f"median of {rounds} alternating fresh processes of each, after one untimed",
        target=target,
        quick=quick,
    )


def cpu(code: str) -> float:
    """User and system seconds of a fresh interpreter that runs `code`, its own start included."""
    child = os.posix_spawn(sys.executable, [sys.executable, "-c", code], os.environ)
    _, status, usage = os.wait4(child, 0)
    if status:
        raise RuntimeError(f"a fresh interpreter failed on: {code}")
    return usage.ru_utime + usage.ru_stime
