"""What a release is, as records: in the catalogue in a few entries, and on its own page in all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from partita.asking.questions import COUNT
from partita.asking.records import Record, column_records, query_record, sum_records, view_records
from partita.errors import InvalidParameter
from partita.guarantee import Guarantee
from partita.releases.file_entries import guarantee_entries, provenance_entries
from partita.releases.release import Release
from partita.releases.report import report
from partita.service.reading.answering import Answering
from partita.service.reading.asked import Bars
from partita.service.reading.catalogue import Entry

__all__ = ["described", "listed"]

_BETA = 0.05


def listed(entry: Entry) -> Record:
    """An entry of the catalogue; of a damaged file there is only its name."""
    known = {"name": entry.name, "size": entry.identity.size}
    if entry.release is None:
        return {**known, "state": "damaged"}
    release = entry.release
    return {
        **known,
        "state": "ready",
        "dataset": release.provenance.dataset,
        "day": release.provenance.day,
        "columns": release.columns,
        "guarantee": _guarantee(release),
    }


def described(entry: Entry, answering: Answering) -> Record:
    """All that a release says about itself."""
    release = entry.opened
    provenance = provenance_entries(release.provenance)
    return {
        "name": entry.name,
        **(provenance if isinstance(provenance, Mapping) else {}),
        "checksum": entry.checksum,
        "guarantee": _guarantee(release),
        "columns": [_column(release, record) for record in column_records(release)],
        "views": [
            {**record, "epsilon": None if view.guarantee is None else view.guarantee.epsilon}
            for record, view in zip(view_records(release), release.published, strict=True)
        ],
        "sums": sum_records(release),
        "queries": query_record(release, _BETA),
        "total": _total(release, answering),
        "error": {"beta": _BETA, "bound": release.error(_BETA) if release.views else None},
        "report": release.report(_BETA),
        "citation": release.citation(),
        "links": _links(entry.name),
    }


def _guarantee(release: Release) -> Record | None:
    """The promise in numbers, exact and rounded, and in the words of the report; null if there is none."""
    promise, numbers = release.guarantee, guarantee_entries(release.guarantee)
    if promise is None or not isinstance(numbers, Mapping):
        return None
    words = _words(release)
    return {
        **numbers,
        "epsilon_value": _rounded(promise),
        "factor": words.partition("a factor of at most ")[2].partition(", but")[0].rstrip("."),
        "words": words,
    }


def _words(release: Release) -> str:
    """The sentence of the report that says what is promised."""
    lines = report((), release.guarantee, release.provenance, beta=_BETA, error=None).splitlines()
    return next(line for line in lines if line.startswith("Guarantee: ")).removeprefix("Guarantee: ")


def _rounded(promise: Guarantee) -> float | None:
    try:
        return float(promise.epsilon)
    except OverflowError:
        return None


def _column(release: Release, record: Mapping[str, Any]) -> Record:
    size = str(release.slice(record["column"]).domain.size)
    return {"name": record["column"], **record["domain"], "size": size, "specials": record["specials"]}


def _total(release: Release, answering: Answering) -> Record | None:
    """How many rows there are; null where nothing that was released tells."""
    try:
        return answering.answer(release, COUNT(), Bars())
    except InvalidParameter:
        return None


def _links(name: str) -> Record:
    base = f"/releases/{quote(name)}"
    ends = {
        "page": "",
        "json": ".json",
        "file": "/file",
        "report": "/report.txt",
        "citation": "/citation.bib",
    }
    return {what: base + end for what, end in ends.items()}
