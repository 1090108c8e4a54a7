"""A new mechanism is one file on each side: everything else finds it there."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from partita.audit.base import public_mechanisms
from partita.audit.subjects import subjects
from partita.cli.publish import run_mechanisms
from partita.domain import Integer
from partita.lazy import find_classes
from partita.public.axis.base import AxisRelease
from partita.public.axis.flat import HistogramRelease
from partita.public.base import RELEASE_PACKAGES, Provenance, ReleaseKind
from partita.public.file import load
from partita.publish.publish import publish
from partita.publish.request import Request, check_fits_in_file
from partita.testing import check_mechanism, mechanisms
from partita.trusted.mechanisms import catalogue
from partita.trusted.mechanisms.flat import HistogramCounts

PUBLIC, TRUSTED = RELEASE_PACKAGES[0], catalogue.MECHANISM_PACKAGES[0]

RELEASE = f"""
from {HistogramRelease.__module__} import HistogramRelease

class PlantedRelease(HistogramRelease):
    kind = "planted"
    papers = {{"planted-counts": ("HLM12",)}}
    max_series = 1

class Helper:
    pass
"""

MECHANISM = f"""
from {HistogramCounts.__module__} import HistogramCounts
from partita.trusted.noise.system import SYSTEM
from {PUBLIC}.seed_bed import PlantedRelease

class PlantedCounts(HistogramCounts):
    \"\"\"Count what was planted.

    Guarantee: that of HistogramCounts.
    Error:     that of HistogramCounts.
    Proof:     that of HistogramCounts.
    \"\"\"

    name = "planted-counts"
    released = PlantedRelease

    def release(self, data, *, noise=SYSTEM) -> PlantedRelease:
        return PlantedRelease(**self._measure(data, noise))
"""


def forget() -> None:
    for cached in (
        find_classes,
        catalogue.axis_mechanisms,
        catalogue.box_mechanisms,
        catalogue.query_mechanisms,
    ):
        cached.cache_clear()


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module with a release on one side, and one with its mechanism on the other, under other names."""
    for package, module, text in ((PUBLIC, "seed_bed", RELEASE), (TRUSTED, "greenhouse", MECHANISM)):
        folder = tmp_path / package
        folder.mkdir()
        (folder / f"{module}.py").write_text(text)
        home: Any = import_module(package)
        monkeypatch.setattr(home, "__path__", [*home.__path__, str(folder)])
        monkeypatch.setattr(home, module, None, raising=False)
        monkeypatch.setitem(sys.modules, f"{package}.{module}", None)
        del sys.modules[f"{package}.{module}"]
    forget()
    yield
    forget()


def publish_planted() -> Any:
    return publish({"age": [1, 2, 2, 3]}, {"age": Integer(0, 9)}, epsilon=1, mechanism="planted-counts")


@pytest.mark.usefixtures("planted")
def test_a_new_kind_of_release_is_published_stored_and_cited(tmp_path: Path) -> None:
    """By the name of its mechanism, by that of its kind in a file, and with its papers."""
    release = publish_planted()
    release.save(tmp_path / "a.parquet")

    again: Any = load(tmp_path / "a.parquet")

    assert type(again.views[0].axis).__name__ == "PlantedRelease"
    assert again.views[0].axis.noisy.tolist() == release.views[0].axis.noisy.tolist()
    assert "{HLM12," in again.citation()
    assert AxisRelease.of_kind("planted") is type(again.views[0].axis)


@pytest.mark.usefixtures("planted")
def test_the_series_of_a_new_kind_must_fit_into_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The class itself says how many there are at most."""
    request = Request.checked({"age": Integer(0, 9)}, epsilon=1, mechanism="planted-counts")
    check_fits_in_file(request, Provenance(version="0", day="2026-11-15"))

    monkeypatch.setattr(AxisRelease.of_kind("planted"), "max_series", 10_000)
    with pytest.raises(Exception, match=r"views must fit into one file"):
        check_fits_in_file(request, Provenance(version="0", day="2026-11-15"))


@pytest.mark.usefixtures("planted")
def test_a_new_mechanism_is_listed_checked_and_audited() -> None:
    """By the catalogue, the command line, the common checks and the auditor."""
    found = {each["mechanism"]: each for each in run_mechanisms(Namespace()).records}

    assert "planted-counts" in catalogue.axis_mechanisms()
    assert found["planted-counts"]["says"] == "Count what was planted."
    assert public_mechanisms()["PlantedCounts"] == "release"
    assert "PlantedCounts" in {subject.name for subject in subjects()}
    check_mechanism({each.__name__: each for each in mechanisms()}["PlantedCounts"])


def test_nothing_planted_stays_behind() -> None:
    """The tests above leave the catalogue as it was."""
    assert "planted" not in ReleaseKind.kinds()
    assert "planted-counts" not in catalogue.axis_mechanisms()


def test_both_sides_name_each_other() -> None:
    """A release names the mechanisms that make it, and these are all that say so in their signature."""
    made = {
        (each.name, kind)
        for each in catalogue.mechanisms().values()
        if hasattr(each, "name")
        for hint in [get_type_hints(each.release)["return"]]
        for kind in get_args(hint) or [hint]
    }

    assert made == {(name, kind) for kind in ReleaseKind.kinds().values() for name in kind.papers}


def test_a_mechanism_has_the_same_papers_in_all_its_releases() -> None:
    """Whichever kind of release it chose to make."""
    named: dict[str, set[tuple[str, ...]]] = {}
    for kind in ReleaseKind.kinds().values():
        for name, papers in kind.papers.items():
            named.setdefault(name, set()).add(papers)

    assert [name for name, papers in named.items() if len(papers) > 1] == []
