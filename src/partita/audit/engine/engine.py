"""One audit, from what it is of to its report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import partita
from partita.audit.attacks.attacks import ATTACKS, run_attacks
from partita.audit.attacks.fits import sampler_fits
from partita.audit.base.case import CaseCount, Depth, Pair, checked_depth, counted, step
from partita.audit.base.discovery import public_mechanisms
from partita.audit.custom.own import Own, OwnSubject
from partita.audit.engine.enumeration import enumerate_all
from partita.audit.engine.report import Report, Surroundings
from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.guarantee.guarantee import positive_epsilon
from partita.publish.publish.progress import phase

_NOT_PROVED = (
    "Not proved: of {} pairs the loss could be neither coupled nor enumerated, so these were not compared. "
    "The mechanism was sampled and attacked."
)
_NOT_OURS = "Not enumerated: it does not draw through our noise. It was sampled and attacked only."


def audit(
    mine: Any = None,
    *,
    neighbours: Iterable[Pair] | None = None,
    epsilon: object = None,
    name: str | None = None,
    depth: Depth = "standard",
    only: Collection[str] | None = None,
    draws: int | None = None,
    factory: Callable[[Any], Any] | None = None,
) -> Report:
    """Audit every public mechanism of this version; or a mechanism of your own.

    `mine` is an object with `release(data, *, noise)`, a function of data and noise, or a function of data.
    `neighbours` are pairs of data sets of which it promises `epsilon`; lists of few bits if none are given.
    `factory(epsilon)` makes it anew, for attacks on epsilon. `only` are names of our mechanisms.

    >>> audit(only=["ListedLaw"], depth="quick").violations
    []
    """
    depth = checked_depth(depth)
    if mine is None:
        return _of_this_version(depth, _known(only))
    given = _few_bits() if neighbours is None else neighbours
    pairs = [(one, other) for one, other in given]
    check(pairs, "neighbours", "must be pairs of data sets", given=None, fix="pass some")
    data = [each for pair in pairs[:3] for each in pair]
    own = Own.of(mine, epsilon=_promised(mine, epsilon), data=data, name=name)
    return _of_own(own, pairs, depth, draws, factory)


def _few_bits() -> list[Pair]:
    """Lists of at most two bits, and the same with one more."""
    held = [list(bits) for count in range(3) for bits in combinations_with_replacement((0, 1), count)]
    return [(rows, [*rows, bit]) for rows in held for bit in (0, 1)]


def _known(only: Collection[str] | None) -> Collection[str] | None:
    unknown = sorted(set(only or ()) - set(public_mechanisms()))
    if unknown:
        fix = "see public_mechanisms()"
        raise InvalidParameter("only", "must name public mechanisms", given=", ".join(unknown), fix=fix)
    return only


def _promised(mine: Any, epsilon: object) -> Fraction:
    given = epsilon if epsilon is not None else getattr(mine, "epsilon", None)
    check(given is not None, "epsilon", "must be given", given=None, fix="say what the mechanism promises")
    return positive_epsilon(given)


def _of_this_version(depth: Depth, only: Collection[str] | None) -> Report:
    names = " ".join(f"--only {name}" for name in only or ())
    command = " ".join(f"partita audit --depth {depth} {names}".split())
    with phase("enumerating pairs of neighbours"):
        counts = tuple(enumerate_all(depth=depth, only=only))
    with phase("fitting samplers"):
        fits = tuple(sampler_fits(depth)) if only is None else ()
    with phase("attacking"):
        trials = tuple(run_attacks(only))
    where = Surroundings.here(f"partita {partita.__version__}", depth, command)
    return Report(surroundings=where, counts=counts, fits=fits, trials=trials)


def _of_own(
    own: Own, pairs: list[Pair], depth: Depth, draws: int | None, factory: Callable[[Any], Any] | None
) -> Report:
    times = draws or step(depth, 20_000, 200_000, 2_000_000) // (10 if own.transparent else 1)
    counts, notes = _enumerated(own, pairs)
    with phase("sampling"):
        samples = tuple(
            own.sampled(one, other, times, f"pair {place + 1}")
            for place, (one, other) in enumerate(pairs[:3])
        )
    with phase("attacking"):
        subject = OwnSubject(own, pairs[0], factory)
        trials = tuple(attack.on(subject) for attack in ATTACKS)
    command = "partita.audit.audit(...), with the mechanism and the pairs that were given"
    return Report(
        surroundings=Surroundings.here(own.name, depth, command),
        counts=counts,
        trials=trials,
        samples=samples,
        notes=notes,
    )


def _enumerated(own: Own, pairs: list[Pair]) -> tuple[tuple[CaseCount, ...], tuple[str, ...]]:
    if not own.transparent:
        return (), (_NOT_OURS,)
    count = counted(own.case(pairs))
    missing = len(pairs) - count.pairs
    notes = (_NOT_PROVED.format(f"{missing} of {len(pairs)}"),) if missing else ()
    return (count,) if count.pairs else (), notes
