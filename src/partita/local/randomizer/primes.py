"""Small primes."""

from __future__ import annotations

from itertools import count
from math import isqrt


def is_prime(number: int) -> bool:
    """Whether it is a prime, by trial division: for numbers of some millions.

    >>> [number for number in range(20) if is_prime(number)]
    [2, 3, 5, 7, 11, 13, 17, 19]
    """
    return number > 1 and all(number % divisor for divisor in range(2, isqrt(number) + 1))


def prime_from(low: int) -> int:
    """The least prime that is not below `low`.

    >>> prime_from(1024)
    1031
    """
    return next(number for number in count(low) if is_prime(number))
