"""Pan-private sketches: statistics of users whose memory may be read once, by anybody, at any time.

    Density         what fraction of a public universe has appeared
    Distinct        how many different ids came, of a universe without a list
    Registers       how many appeared exactly t times, t times at most, k times at least; may be taken back
    RampRegisters   the same from counters that wrap around: the simple version, for comparison
    SketchFile      a sketch that lives in a file, of which one state can be read at any time

The noise is in the state before the first event is. Names are loaded when they are first used.
"""

from partita.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
