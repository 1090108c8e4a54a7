"""dpmm: AIM over all pairs of columns, and its graphical model asked for tables; zCDP, not pure epsilon."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from dpmm.models.aim import AIM
from dpmm.models.priv_bayes import PrivBayes

from benchmarks.peers.tables import Subset, answer_variations
from benchmarks.peers.worker import Answers, Problem, serve

DELTA = 1e-9
MEGABYTES = 2
"""Of the model: on Adult 2, 8 and 80 gave the same error, and 2 is the fastest."""
AIM_STEPS, BAYES_STEPS = 1_000, 5_000
"""Steps of mirror descent: the library's own defaults."""


def aim(problem: Problem) -> Answers:
    """AIM with pairs as its workload."""
    return fitted(problem, AIM(max_model_size=MEGABYTES, n_iters=AIM_STEPS, **settings(problem)))


def priv_bayes(problem: Problem) -> Answers:
    """A network in which each column has one parent."""
    return fitted(problem, PrivBayes(n_iters=BAYES_STEPS, **settings(problem)))


def settings(problem: Problem) -> dict[str, Any]:
    """What both have in common; the domain is public, so nothing is looked up in the rows."""
    return {
        "epsilon": float(problem["epsilon"]),
        "delta": DELTA,
        "domain": dict(zip(names(problem), problem["sizes"].tolist(), strict=True)),
        "prng": np.random.RandomState(),
        "n_jobs": 1,
    }


def names(problem: Problem) -> list[str]:
    return [f"c{number}" for number in range(len(problem["sizes"]))]


def fitted(problem: Problem, mechanism: Any) -> Answers:
    """Fit the mechanism to the rows; its model has the table of any columns."""
    mechanism.fit(pd.DataFrame(problem["rows"], columns=names(problem)))

    def project(subset: Subset) -> Any:
        return mechanism.model.project(tuple(f"c{column}" for column in subset)).datavector()

    return answer_variations(problem, project)


METHODS = {"aim": aim, "priv-bayes": priv_bayes}

if __name__ == "__main__":
    serve(METHODS)
