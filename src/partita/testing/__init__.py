"""Tools that prove privacy by test. Only tests import them.

The shipped code is run with other noise in place of the system's: through every branch of an
exact rational law (`law`), on every short tape of words (`tape_law`), on a neighbour with the
noise that hides the difference (`coupled`), with the noise that releases the same again (`replay`,
`replay_publish`), with no noise at all (`ZeroNoise`), on counts that are
kept in many places (`Scattered`).

Names are loaded when they are first used.
"""

from partita.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
