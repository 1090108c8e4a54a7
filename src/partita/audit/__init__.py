"""The auditor: proofs by enumeration, fits of samplers and attacks on floats, against an installed version.

    audit()                        every public mechanism; `partita audit` on the command line
    audit(mine, neighbours=...)    a mechanism of your own, by the same engine
    enumerate_all(depth="deep")    the enumeration alone, one case after the other

Names are loaded when they are first used.
"""

from partita.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
