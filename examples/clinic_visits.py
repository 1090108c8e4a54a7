"""A clinic counts its visits, and may be made to hand over its computer at any time.

It serves 200,000 registered people, and wants to publish every quarter what fraction of them came, how often
they came, and how many came at least three times. It must not be able to say who came: to nobody, not even
with a subpoena. The people are made up, and only because they are made up may the truth be printed beside
what is published. The noise is real: it differs from run to run.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partita.pan import Registers

PEOPLE, QUARTERS, EPSILON = 200_000, 4, 5
"""Epsilon is for one person over the whole year: all outputs, and one look at the memory in each quarter."""

NAMES = ("density", "mean-5", "heavy-3")


def main() -> None:
    """One register for each person; a planned maintenance in the second quarter, a subpoena in the third."""
    visits = Registers(universe=PEOPLE, epsilon=EPSILON, most=30, releases=len(NAMES), epochs=QUARTERS + 1)
    print(f"Promise: {visits.guarantee}.\n")
    print("            came              visits, up to 5   came 3 times or more")
    for quarter in range(1, QUARTERS + 1):
        ids = made_up_visits(quarter)
        before, after = ids[: len(ids) // 2], ids[len(ids) // 2 :]
        visits.update_many(before)
        if quarter == 2:
            prepare_for_maintenance(visits)
        if quarter == 3:
            obey_subpoena(visits)
        visits.update_many(after)
        print(f"quarter {quarter}   {'   '.join(published(visits))}")
        print("   in truth " + "           ".join(true_answers(after if quarter == 2 else ids)))
    print("\nNobody can tell from the memory of the clinic, now or then, whether a given person ever came.")


def prepare_for_maintenance(visits: Registers) -> None:
    """Disks will be copied by a technician, perhaps several times: what is there is forgotten first."""
    visits.announce_intrusion()
    print("   maintenance: all registers were drawn afresh; the second quarter is counted from here on")


def obey_subpoena(visits: Registers) -> None:
    """What a court asks for must not be erased, and need not be: one look in each quarter is covered."""
    handed_over = visits.state()
    print(f"   a subpoena: the memory is handed over as it is, {len(handed_over):,} bytes; counting goes on")


def published(visits: Registers) -> list[str]:
    """All outputs of a quarter; with the last one its registers are erased."""
    answers = (visits.release(name) for name in NAMES)
    return [f"{answer.value:6.3f} ± {answer.error:.3f}" for answer in answers]


def made_up_visits(quarter: int) -> NDArray[np.int64]:
    """Three in ten people come, some of them often."""
    rng = np.random.default_rng(quarter)
    often = rng.geometric(0.5, PEOPLE) * (rng.random(PEOPLE) < 0.3)
    return rng.permutation(np.repeat(np.arange(PEOPLE), often))


def true_answers(ids: NDArray[np.int64]) -> list[str]:
    """What only somebody who made up the people can know."""
    times = np.bincount(ids, minlength=PEOPLE)
    truths = (times > 0).mean(), np.minimum(times, 5).mean(), (times >= 3).mean()
    return [f"{truth:6.3f}" for truth in truths]


if __name__ == "__main__":
    main()
