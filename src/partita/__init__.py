"""Differentially private statistics: publish once, answer forever.

Names are loaded when they are first used, so that `import partita` costs next to nothing and a
device that only needs `partita.trusted.noise.kernel` needs the standard library only.
"""

from partita.lazy import attach

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = attach(__name__)
__all__ += ["__version__"]
