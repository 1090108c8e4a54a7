"""Differentially private statistics: publish once, answer forever.

Names are loaded when they are first used, so that `import partita` costs next to nothing and a
device that only needs `partita.noise.kernel` needs the standard library only.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partita.answer import Answer, Answers
    from partita.domain import Category, Date, Domain, Integer, Real, Timestamp
    from partita.errors import (
        BudgetExceeded,
        BudgetLost,
        EntropyError,
        IncompatibleGuarantees,
        InvalidData,
        InvalidParameter,
        InvalidRelease,
        KeyReused,
        LedgerError,
        LedgerRefusal,
        PartitaError,
        PrivacyWarning,
        SourceError,
        TermsDiffer,
        UnknownDataset,
    )
    from partita.guarantee import Guarantee
    from partita.histogram import Histogram
    from partita.ledger import Amount, Balance, Debit, Ledger, Terms
    from partita.mechanisms import Cutter, PaperIntervals, Partition, Tree
    from partita.releases import Cut, IntervalRelease, TreeRelease

__version__ = "0.1.0"

_HOMES = {
    "answer": ("Answer", "Answers"),
    "domain": ("Category", "Date", "Domain", "Integer", "Real", "Timestamp"),
    "errors": (
        "BudgetExceeded",
        "BudgetLost",
        "EntropyError",
        "IncompatibleGuarantees",
        "InvalidData",
        "InvalidParameter",
        "InvalidRelease",
        "KeyReused",
        "LedgerError",
        "LedgerRefusal",
        "PartitaError",
        "PrivacyWarning",
        "SourceError",
        "TermsDiffer",
        "UnknownDataset",
    ),
    "guarantee": ("Guarantee",),
    "histogram": ("Histogram",),
    "ledger": ("Amount", "Balance", "Debit", "Ledger", "Terms"),
    "mechanisms": ("Cutter", "PaperIntervals", "Partition", "Tree"),
    "releases": ("Cut", "IntervalRelease", "TreeRelease"),
}
_PACKAGES = ("noise", "sources")
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Amount",
    "Answer",
    "Answers",
    "Balance",
    "BudgetExceeded",
    "BudgetLost",
    "Category",
    "Cut",
    "Cutter",
    "Date",
    "Debit",
    "Domain",
    "EntropyError",
    "Guarantee",
    "Histogram",
    "IncompatibleGuarantees",
    "Integer",
    "IntervalRelease",
    "InvalidData",
    "InvalidParameter",
    "InvalidRelease",
    "KeyReused",
    "Ledger",
    "LedgerError",
    "LedgerRefusal",
    "PaperIntervals",
    "PartitaError",
    "Partition",
    "PrivacyWarning",
    "Real",
    "SourceError",
    "Terms",
    "TermsDiffer",
    "Timestamp",
    "Tree",
    "TreeRelease",
    "UnknownDataset",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
