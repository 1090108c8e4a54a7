"""Every public mechanism, ready to be attacked."""

from __future__ import annotations

from collections.abc import Callable

from partita.audit.base.discovery import Family, public_mechanisms
from partita.audit.cases_people.proofs_pan import sketch_kinds
from partita.audit.subjects.subject import Subject
from partita.audit.subjects.subject_people import CounterSubject, RandomizerSubject, SketchSubject
from partita.audit.subjects.subject_release import release_subject


def subjects() -> list[Subject]:
    """Every public mechanism, to be attacked."""
    sketches = {kind.name: SketchSubject(kind) for kind in sketch_kinds()}
    makers: dict[Family, Callable[[str], Subject]] = {
        "release": release_subject,
        "counter": CounterSubject,
        "sketch": sketches.__getitem__,
        "randomizer": RandomizerSubject,
    }
    return [makers[family](name) for name, family in public_mechanisms().items()]
