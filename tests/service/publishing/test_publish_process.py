"""`partita publish` started by the service, for real."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partita.ledger.ledger import Ledger
from partita.public.file import load
from partita.service.settings import ServiceSettings
from partita.service.steward.publishing import JobQueue, Publisher, PublishOrder

pytestmark = pytest.mark.faults

SPEC = """
[columns.age]
type = "integer"
low = 0
high = 120

[release]
epsilon = 1
dataset = "people"
"""


@pytest.fixture
def settings(tmp_path: Path) -> ServiceSettings:
    """A service with a spec, its data in another folder, and a budget of 2."""
    for name in ("public", "specs", "data"):
        (tmp_path / name).mkdir()
    pq.write_table(pa.table({"age": [30, 40, None] * 50}), tmp_path / "data" / "people.parquet")
    (tmp_path / "specs" / "people.toml").write_text(SPEC)
    (tmp_path / "specs" / "people.job.toml").write_text('data = "../data/people.parquet"')
    Ledger(tmp_path / "budget.db").open("people", epsilon=2, unit="row", neighbors="add-remove")
    return ServiceSettings(
        folder=tmp_path / "public",
        specs=tmp_path / "specs",
        tokens=tmp_path / "tokens.json",
        ledger=str(tmp_path / "budget.db"),
    )


def left(settings: ServiceSettings) -> Fraction:
    """What the budget has left."""
    return Ledger(str(settings.ledger)).balance("people").left.epsilon


def test_a_release_is_published_and_paid_once(settings: ServiceSettings) -> None:
    """It lies in the public folder; the same order after a restart costs nothing; too much is refused."""
    order = PublishOrder(spec="people", name="people-2026", key="k1", epsilon=Fraction(3, 2))
    for _ in range(2):
        jobs = JobQueue(Publisher(settings).run, 2)
        jobs.submit(order)
        jobs.join()
        [job] = jobs.all()

        assert (job.state, job.error) == ("done", None)
        assert left(settings) == Fraction(1, 2)
    promised = load(settings.folder / "people-2026.release.parquet").guarantee
    assert str(promised) == "epsilon 3/2, pure, for adding or removing one row"

    jobs = JobQueue(Publisher(settings).run, 2)
    jobs.submit(PublishOrder(spec="people", name="more", key="k2"))
    jobs.join()
    [refused] = jobs.all()

    assert refused.state == "failed"
    assert refused.error is not None
    assert "1/2" in refused.error
    assert str(settings.folder.parent) not in refused.error
    assert [path.name for path in settings.folder.iterdir()] == ["people-2026.release.parquet"]


def test_phases_are_heard(settings: ServiceSettings) -> None:
    """What it counts, that it draws, that it writes."""
    phases: list[str] = []
    order = PublishOrder(spec="people", name="people-2026", key="k1")

    assert Publisher(settings).run(order, phases.append) is None
    assert phases[:3] == ["counting age", "drawing noise", "writing"]
