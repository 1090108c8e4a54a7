"""Exact integer noise: the only place where randomness is drawn.

    noise.discrete_laplace(scale, size)      two-sided geometric noise
    noise.discrete_laplace_units(unit, k)    many scales at once
    noise.discrete_gaussian(variance, size)  two-sided, with tails of a normal law
    noise.geometric(scale, size)             one-sided
    noise.add(x, scale)                      the way to add noise to a secret
    noise.add_gaussian(x, variance)          the same with discrete Gaussian noise
    noise.bernoulli(p), noise.categorical(weights), noise.exponential(scores, scale)
    noise.first_success(law, scale)          where fresh noise first exceeds a level

These draw from `SYSTEM`; pan-private objects use `KERNEL`. Names are loaded when they are
asked for, so that `partita.trusted.noise.kernel` works with the standard library alone.
"""

from partita.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
