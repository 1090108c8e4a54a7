"""The auditor: proofs by enumeration, fits of samplers and attacks on floats, against an installed version.

    audit()                        every public mechanism; `partita audit` on the command line
    audit(mine, neighbours=...)    a mechanism of your own, by the same engine
    enumerate_all(depth="deep")    the enumeration alone, one case after the other

Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partita.auditing.attacks import ATTACKS, Attack
    from partita.auditing.case import Case, CaseCount
    from partita.auditing.discovery import public_mechanisms
    from partita.auditing.engine import audit
    from partita.auditing.enumeration import enumerate_all
    from partita.auditing.fits import Fit, sampler_fits
    from partita.auditing.report import Finding, Report

_HOMES = {
    "attacks": ("ATTACKS", "Attack"),
    "case": ("Case", "CaseCount"),
    "discovery": ("public_mechanisms",),
    "engine": ("audit",),
    "enumeration": ("enumerate_all",),
    "fits": ("Fit", "sampler_fits"),
    "report": ("Finding", "Report"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ATTACKS",
    "Attack",
    "Case",
    "CaseCount",
    "Finding",
    "Fit",
    "Report",
    "audit",
    "enumerate_all",
    "public_mechanisms",
    "sampler_fits",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
