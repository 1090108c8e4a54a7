"""Theorems of the papers as programs: attacks, reductions and learners, each with the number it checks.

`python examples/theorems.py` runs all of them, in a few seconds, on fresh noise. The data are made up, and so
are the victims. `tests/project/test_theorems.py` runs the same on fixed noise. The lower bound of Theorem
12.6 is beside its counters, in `benchmarks/streams/packing.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from math import ceil, exp, log, sqrt
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from partita.arrays import Ints
from partita.guarantee import positive_epsilon
from partita.local import Frequency
from partita.local.learners import SQOracle, parity_queries_needed
from partita.local.oracle import BudgetMemory, LROracle
from partita.local.randomizer import LocalLaw, exp_bounds
from partita.trusted.noise.laws import WordSource
from partita.trusted.noise.system import KERNEL, SYSTEM, Noise
from partita.trusted.streams.base import unpack
from partita.trusted.streams.pan_private import PanPrivateCounter

Random: TypeAlias = np.random.Generator


@dataclass(frozen=True)
class Shown:
    """A theorem, the number that it promises, what was measured, and whether the promise held."""

    theorem: str
    promised: float
    measured: float
    holds: bool

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "FAILS"
        return f"{self.theorem}\n    promised {self.promised:.4g}, measured {self.measured:.4g}: {verdict}"


# ---- attacks on counters [DR14, section 12.3] ----


class Figure121:
    """Figure 12.1 as printed, for attacks only: noise first, then the events, in one cell for each interval.

    `cells` is its whole memory: the open interval of each level, from periods up.
    """

    def __init__(self, *, horizon: int, epsilon: object, noise: Noise = SYSTEM) -> None:
        self.levels = (horizon - 1).bit_length()
        self.cells = [0] * self.levels
        self._scale, self._noise, self._period = self.levels / positive_epsilon(epsilon), noise, 0

    def update(self, x: int) -> list[int]:
        """The counts of the intervals that end with this period, from the shortest on."""
        begins = [level for level in range(self.levels) if self._period % 2**level == 0]
        for level, fresh in zip(begins, self._drawn(len(begins)), strict=True):
            self.cells[level] = fresh
        self.cells = [cell + x for cell in self.cells]
        self._period += 1
        return [self.cells[level] for level in range(self.levels) if self._period % 2**level == 0]

    def _drawn(self, count: int) -> list[int]:
        drawn: list[int] = np.asarray(self._noise.add(np.zeros(count, dtype=np.int64), self._scale)).tolist()
        return drawn


def look_at_figure_12_1(bit: int, *, epsilon: object = 1, noise: Noise = SYSTEM) -> int:
    """What an intruder says the event of the second of four periods is, after one look before it.

    The cell of the interval [0, 1] shows its noise, since the first event is known (0 here). When the count
    of the interval comes out, this is taken away, and what is left is the second event.
    """
    counter = Figure121(horizon=4, epsilon=epsilon, noise=noise)
    counter.update(0)
    seen = counter.cells[1]
    return counter.update(bit)[1] - seen


def look_at_pan_private(bit: int, *, epsilon: object = 1, noise: Noise = KERNEL) -> int:
    """The same intruder before `PanPrivateCounter`: a fresh noise is left beside the event; says 0 or 1."""
    counter = PanPrivateCounter(epsilon=epsilon, horizon=4, noise=noise)
    counter.update(0)
    seen = _cells(counter)[1]
    return int(counter.update(bit) - seen >= 1)


def look_twice(bit: int, *, announced: bool = False, epsilon: object = 1, noise: Noise = KERNEL) -> int:
    """What is said of the event between two looks at `PanPrivateCounter`: a cell that both see holds it.

    If the first look is announced, the counter starts anew, and the second look is one look.
    """
    counter = PanPrivateCounter(epsilon=epsilon, horizon=8, noise=noise)
    counter.update(0)
    if announced:
        counter.announce_intrusion()
    before, value = _cells(counter), int(counter.value)
    counter.update(bit)
    after = _cells(counter)
    return after[2] - before[2] if not announced else int(after[2] - value >= 1)


def _cells(counter: PanPrivateCounter) -> list[int]:
    """The cells of intervals, from periods up, as whoever reads the memory finds them."""
    return unpack(counter.state(), counter.name, 1)["cells"]


def show_attack(
    theorem: str, attack: Callable[[int], int], *, promised: float, runs: int, random: Random
) -> Shown:
    """How often an attack is right about a fair coin; a promise below one up to five standard errors."""
    bits = random.integers(0, 2, runs).tolist()
    right = sum(attack(bit) == bit for bit in bits) / runs
    holds = right == 1 if promised == 1 else right <= promised + 5 * sqrt(promised * (1 - promised) / runs)
    return Shown(theorem, promised, right, holds)


def show_attacks(
    *, runs: int, random: Random, epsilon: float = 1.0, noise: Noise = SYSTEM, kernel: Noise = KERNEL
) -> list[Shown]:
    """One look and two, at a counter that is not pan-private and at one that is."""
    most = exp(epsilon) / (1 + exp(epsilon))  # of a fair coin, for whoever loses no more than epsilon

    def shown(theorem: str, attack: Callable[..., int], promised: float, **more: Any) -> Shown:
        made = {"epsilon": Fraction(epsilon), **more}
        return show_attack(
            theorem, lambda bit: attack(bit, **made), promised=promised, runs=runs, random=random
        )

    return [
        shown("Figure 12.1, one look: the next event is certain", look_at_figure_12_1, 1, noise=noise),
        shown("Theorem 12.5, one look: right at most e^eps / (1 + e^eps)", look_at_pan_private, most,
              noise=kernel),
        shown("Two looks that nobody announced: the event between is certain", look_twice, 1, noise=kernel),
        shown("The first one announced: right at most e^eps / (1 + e^eps)", look_twice, most, announced=True,
              noise=kernel),
    ]  # fmt: skip


# ---- statistical queries and local randomizers [DR14, section 12.1; KLNRS11, section 5] ----


def show_queries_from_reports(
    *,
    queries: int = 30,
    tau: float = 0.1,
    beta: float = 0.05,
    random: Random,
    words: WordSource | None = None,
) -> Shown:
    """A local algorithm is an SQ oracle: each query asks a group of people one bit each (Definition 12.4).

    Rows are drawn from a known distribution, and answers compared with its expectations, not with the rows.
    """
    counted = SQOracle(_people(random.random(2)), epsilon=1, beta=str(beta)).people(tau)
    oracle = SQOracle(_people(random.random(queries * counted)), epsilon=1, beta=str(beta))
    powers = random.integers(1, 9, queries).tolist()
    missed = 0
    for power in powers:
        answer = oracle.ask(partial(pow, exp=power), tau=tau, words=words)
        missed += abs(answer.value - 1 / (power + 1)) > tau
    allowed = beta + 5 * sqrt(beta * (1 - beta) / queries)
    return Shown(
        f"Local to SQ: tolerance {tau} with {counted} people each, missed with chance {beta} at most",
        beta, missed / queries, missed / queries <= allowed,
    )  # fmt: skip


def _people(rows: NDArray[Any]) -> LROracle:
    return LROracle(rows, BudgetMemory(people=len(rows), cap=1))


class ToleranceOracle:
    """An SQ oracle for a distribution over cells, as unhelpful as Definition 12.4 lets it be."""

    def __init__(self, distribution: Sequence[float], *, tau: float) -> None:
        self._distribution, self.tau, self.queries = np.asarray(distribution), tau, 0

    def ask(self, phi: Sequence[float]) -> float:
        """The mean of phi, off by tau to a side that depends on the query."""
        self.queries += 1
        side = 1 if round(1e6 * float(np.sum(phi))) % 2 else -1
        return float(self._distribution @ np.asarray(phi)) + side * self.tau


class ReportsFromQueries:
    """Draws from the law of R(z), z from the distribution, by statistical queries alone: nobody reports.

    A report w is drawn from R(z0) for a fixed cell z0, and accepted with the answer to the query
    phi_w(z) = Pr[R(z) = w] / (e^eps Pr[R(z0) = w]), which lies in [0, 1] because R is eps-private. Accepted
    reports have the law E_z Pr[R(z) = w], but for the tolerance: they are off by at most
    tau e^eps / (1 - tau e^eps) in total variation, and take e^eps / (1 - tau e^eps) queries each on average.
    """

    def __init__(self, law: LocalLaw, oracle: ToleranceOracle) -> None:
        self._law, self._oracle = law, oracle
        self._base = law.pmf(0)
        self._factor = exp(float(law.epsilon))

    @property
    def off(self) -> float:
        """The bound on the total variation."""
        return self._oracle.tau * self._factor / (1 - self._oracle.tau * self._factor)

    @property
    def queries(self) -> float:
        """The bound on the mean number of queries for a report."""
        return self._factor / (1 - self._oracle.tau * self._factor)

    def query(self, report: Any) -> list[float]:
        """phi for a report, as its value for each cell."""
        base = float(self._base[report]) * self._factor
        return [float(self._law.pmf(cell).get(report, 0)) / base for cell in range(self._law.size)]

    def draw(self, random: Random) -> Any:
        """One report."""
        reports, chances = list(self._base), [float(chance) for chance in self._base.values()]
        while True:
            report = reports[int(random.choice(len(reports), p=np.array(chances) / sum(chances)))]
            if random.random() < self._oracle.ask(self.query(report)):
                return report

    def law(self) -> dict[Any, float]:
        """The law of what is drawn, exactly: each report weighs its chance times its answer."""
        weights = {w: float(chance) * self._oracle.ask(self.query(w)) for w, chance in self._base.items()}
        total = sum(weights.values())
        return {report: weight / total for report, weight in weights.items()}


def show_reports_from_queries(*, tau: float = 0.02, draws: int = 2000, random: Random) -> list[Shown]:
    """An SQ algorithm simulates a local one: the law of its reports, and the queries that they take."""
    distribution = [0.5, 0.3, 0.15, 0.05]
    law = Frequency(len(distribution), epsilon=1).randomizer
    right: dict[Any, float] = {}
    for cell, share in enumerate(distribution):
        for report, chance in law.pmf(cell).items():
            right[report] = right.get(report, 0.0) + share * float(chance)
    oracle = ToleranceOracle(distribution, tau=tau)
    reports = ReportsFromQueries(law, oracle)
    apart = sum(abs(chance - right[report]) for report, chance in reports.law().items()) / 2
    before = oracle.queries
    for _ in range(draws):
        reports.draw(random)
    each = (oracle.queries - before) / draws
    spread = 5 * reports.queries / sqrt(draws)
    return [
        Shown("SQ to local: total variation of a report at most tau e^eps / (1 - tau e^eps)",
              reports.off, apart, 0 < apart <= reports.off),
        Shown("SQ to local: mean queries for a report at most e^eps / (1 - tau e^eps)",
              reports.queries, each, each <= reports.queries + spread),
    ]  # fmt: skip


# ---- learners that need the data [DR14, section 12.1, points 2 and 3; KLNRS11, sections 3 and 4] ----

_BITS: Final = 64
Example: TypeAlias = tuple[int, int]
"""The bits of x as a number, and a label 0 or 1."""


def sampling_chance(epsilon: object) -> Fraction:
    """1 - e^-epsilon, rounded down."""
    return 1 - 1 / exp_bounds(positive_epsilon(epsilon), _BITS)[0]


def learn_parity(
    examples: Iterable[Example], dimension: int, *, chance: Fraction, noise: Noise = SYSTEM
) -> int | None:
    """A parity that fits a random sample of the examples, or None: private, and right half of the time.

    Guarantee: ln(1 / (1 - chance))-DP, pure, for an example more or less.
    Proof:     With probability 1/2 the answer is None. Else each example is kept with `chance`, and the
               answer is uniform among the parities that fit all that are kept; None if there is none. One
               more kept example leaves all of these parities, half of them or none. So it at most doubles
               the chance of any parity, and that of None, which is at least 1/2 without it. Kept with
               `chance` p it multiplies every chance by 1 - p to 1 + p, and 1 + p <= 1 / (1 - p).
    """
    if noise.bernoulli(Fraction(1, 2)):
        return None
    kept = [example for example in examples if noise.bernoulli(chance)]
    pivots = _eliminate(kept)
    if pivots is None:
        return None
    free = [bit for bit in range(dimension) if bit not in pivots]
    values = noise.integers_below(2, len(free)).tolist() if free else []
    secret = sum(1 << bit for bit, value in zip(free, values, strict=True) if value)
    for bit in sorted(pivots):  # a row has its pivot as the highest bit
        row, label = pivots[bit]
        secret |= ((row & secret).bit_count() + label) % 2 << bit
    return secret


def _eliminate(examples: Iterable[Example]) -> dict[int, Example] | None:
    """Gauss modulo 2: for each pivot a row of which it is the highest bit; None if nothing fits."""
    pivots: dict[int, Example] = {}
    for row, label in examples:
        while row and (bit := row.bit_length() - 1) in pivots:
            row, label = row ^ pivots[bit][0], label ^ pivots[bit][1]
        if row:
            pivots[row.bit_length() - 1] = (row, label)
        elif label:
            return None
    return pivots


def learn_parity_surely(
    examples: Sequence[Example], dimension: int, *, epsilon: object, groups: int = 8, noise: Noise = SYSTEM
) -> int | None:
    """The first parity that is learned from random groups: None with chance 2^-groups.

    Guarantee: epsilon-DP, pure, for an example more or less: it is in one group, which nobody else's moves.
    """
    places = noise.integers_below(groups, len(examples)).tolist()
    chance = sampling_chance(epsilon)
    found = [
        learn_parity([e for e, at in zip(examples, places, strict=True) if at == group], dimension,
                     chance=chance, noise=noise)
        for group in range(groups)
    ]  # fmt: skip
    return next((secret for secret in found if secret is not None), None)


def show_parity(
    *, dimension: int = 40, people: int = 2000, runs: int = 40, random: Random, noise: Noise = SYSTEM
) -> list[Shown]:
    """Parities are learned privately from two thousand examples, and by 10^8 statistical queries at best."""
    groups, right = 8, 0
    for _ in range(runs):
        secret = int(random.integers(1 << dimension))
        rows = random.integers(1 << dimension, size=people).tolist()
        examples = [(row, (row & secret).bit_count() % 2) for row in rows]
        right += learn_parity_surely(examples, dimension, epsilon=1, groups=groups, noise=noise) == secret
    kept = people / groups * float(sampling_chance(1))
    spare = int(kept - 4 * sqrt(kept)) - dimension
    promised = 1 - 2.0**-groups - groups * (2.0**-spare + exp(-8))
    needed = parity_queries_needed(dimension, 0.01)
    return [
        Shown(f"A private parity learner, {people} examples of {dimension} bits: finds the secret",
              promised, right / runs, right / runs >= promised - 5 * sqrt(promised * (1 - promised) / runs)),
        Shown("Statistical queries of tolerance 0.01 that rule out half of the secrets, and examples used",
              needed, people, people < needed),
    ]  # fmt: skip


def conjunctions(dimension: int) -> NDArray[np.bool_]:
    """For every conjunction of bits and negated bits what it says of every x: 3^d rows of 2^d labels."""
    bits = np.arange(1 << dimension)[:, None] >> np.arange(dimension) & 1
    literals = [np.ones_like(bits, dtype=bool), bits == 1, bits == 0]
    said = [
        np.all([literals[choice][:, place] for place, choice in enumerate(choices)], axis=0)
        for choices in product(range(3), repeat=dimension)
    ]
    return np.array(said)


def examples_needed(hypotheses: int, *, alpha: float, beta: float, epsilon: float) -> int:
    """How many examples the learner needs for an error of the best plus alpha, but for probability beta.

    Half of beta is for the choice: it has (ln |C| + ln 2/beta) / epsilon mistakes too many at most. Half is
    for the sample: all errors are within sqrt(ln(4 |C| / beta) / 2n) of what they are on it (Hoeffding).
    """
    chosen, spread = log(2 * hypotheses / beta) / epsilon, sqrt(log(4 * hypotheses / beta) / 2)
    root = (2 * spread + sqrt(4 * spread**2 + 4 * alpha * chosen)) / (2 * alpha)
    return ceil(root**2)


def learn_privately(
    said: NDArray[np.bool_], xs: Ints, labels: NDArray[np.bool_], *, epsilon: object, noise: Noise = SYSTEM
) -> int:
    """The number of a hypothesis, chosen with a chance proportional to e^(-epsilon mistakes).

    Guarantee: epsilon-DP, pure, for an example more or less: it adds at most one to all mistakes, so both
               the weight of a hypothesis and the sum of weights change by a factor in [e^-epsilon, 1].
    Error:     that of `examples_needed`, for any distribution: Definitions 12.5 and 12.7.
    """
    mistakes = np.array([np.count_nonzero(row[xs] != labels) for row in said])
    return noise.exponential(-mistakes, 1 / positive_epsilon(epsilon))


def show_central_learner(
    *,
    dimension: int = 6,
    alpha: float = 0.15,
    beta: float = 0.1,
    flipped: float = 0.1,
    runs: int = 40,
    random: Random,
    noise: Noise = SYSTEM,
) -> Shown:
    """Conjunctions are learned agnostically: within alpha of the best error, but for probability beta."""
    said = conjunctions(dimension)
    number = examples_needed(len(said), alpha=alpha, beta=beta, epsilon=1)
    missed = 0
    for _ in range(runs):
        right = said[int(random.integers(len(said)))]
        xs = random.integers(1 << dimension, size=number)
        labels = right[xs] ^ (random.random(number) < flipped)
        errors = flipped + (1 - 2 * flipped) * (said != right).mean(axis=1)
        chosen = learn_privately(said, xs, labels, epsilon=1, noise=noise)
        missed += errors[chosen] > errors.min() + alpha
    allowed = beta + 5 * sqrt(beta * (1 - beta) / runs)
    return Shown(
        f"A central private learner of {len(said)} conjunctions, {number} examples, alpha {alpha}: misses",
        beta, missed / runs, missed / runs <= allowed,
    )  # fmt: skip


def show_all(*, random: Random) -> list[Shown]:
    """Every demonstration of this file."""
    return [
        *show_attacks(runs=1000, random=random),
        show_queries_from_reports(random=random),
        *show_reports_from_queries(random=random),
        *show_parity(random=random),
        show_central_learner(random=random),
    ]


if __name__ == "__main__":
    for each in show_all(random=np.random.default_rng()):
        print(each)
