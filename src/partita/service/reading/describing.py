"""What a release is, as records: in the catalogue in a few entries, and on its own page in all of them."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from partita.asking.questions import Count
from partita.asking.records import Record, named, query_record, specials, sum_records
from partita.errors import InvalidParameter
from partita.guarantee import Guarantee
from partita.releases.file_entries import guarantee_entries, provenance_entries
from partita.releases.published import Published
from partita.releases.release import Release
from partita.releases.report import factor_words, promise_words
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
        "columns": [_column(release, column) for column in release.columns],
        "views": [_view(view) for view in release.published],
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
    return {
        **numbers,
        "epsilon_value": _rounded(promise),
        "factor": factor_words(promise),
        "words": promise_words(promise),
    }


def _rounded(promise: Guarantee) -> float | None:
    try:
        return float(promise.epsilon)
    except OverflowError:
        return None


def _column(release: Release, column: str) -> Record:
    domain = release.slice(column).domain
    cells = {name: (answer.value, answer.error) for name, answer in specials(release, column).items()}
    beside = {name: {"value": value, "error": error} for name, (value, error) in cells.items()}
    return {"name": column, **domain.to_spec(), "size": str(domain.size), "specials": beside}


def _view(view: Published) -> Record:
    return {
        "view": named(view),
        "columns": view.columns,
        "mechanism": view.mechanism,
        "epsilon": None if view.guarantee is None else view.guarantee.epsilon,
        "why": view.why,
    }


def _total(release: Release, answering: Answering) -> Record | None:
    """How many rows there are; null where nothing that was released tells."""
    try:
        return answering.answer(release, Count({}), Bars())
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
