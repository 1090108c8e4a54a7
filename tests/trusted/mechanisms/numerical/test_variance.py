"""The slides' variance: three linear queries, of counts, values and squares, make one."""

from __future__ import annotations

import numpy as np
import pytest

from partita.domain import Integer
from partita.public.queries.language import between, power, total, value
from partita.public.queries.queries import Universe
from partita.testing import EndlessTape, ZeroNoise, tape_noise
from partita.trusted.mechanisms.workload import LinearWorkload
from partita.trusted.secret import Points

PEOPLE = Universe(["age", "income"], [Integer(0, 9), Integer(0, 63)])


@pytest.mark.parametrize(
    ("noise", "tolerance"), [(ZeroNoise(), 1e-12), (tape_noise(EndlessTape(3)), 0.1)], ids=["none", "tape"]
)
def test_a_variance_is_made_of_squares_sums_and_counts(noise: object, tolerance: float) -> None:
    """Squares over counts, less the squared mean: exact without noise, within a tenth with it."""
    random = np.random.default_rng(4)
    rows = np.stack([random.integers(0, 10, 20_000), random.integers(0, 64, 20_000)], axis=1)
    points = Points.from_rows(rows + [axis.before for axis in PEOPLE.axes], axes=PEOPLE.axes)
    asked = between("age", 2, 5) * (total() + value("income") + power("income", 2))
    mechanism = LinearWorkload(queries=asked, universe=PEOPLE, epsilon=5)

    counted, added, squared = mechanism.release(points, noise=noise).values  # type: ignore[arg-type]

    incomes = rows[(rows[:, 0] >= 2) & (rows[:, 0] <= 5), 1]
    assert squared / counted - (added / counted) ** 2 == pytest.approx(incomes.var(), rel=tolerance)
