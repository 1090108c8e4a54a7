"""One audit, from what it is of to its report."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fractions import Fraction
from html import escape
from importlib.metadata import PackageNotFoundError, version
from itertools import combinations_with_replacement
from textwrap import fill
from typing import Any, Final, final

import partita
from partita.audit.attacks import ATTACKS, FAMILY_WISE, AttackTrial, SamplerFit, run_attacks, sampler_fits
from partita.audit.base import (
    COVERED_BY,
    WAYS,
    Case,
    CaseCount,
    Depth,
    Pair,
    checked_depth,
    count_case,
    holm,
    public_mechanisms,
    step,
)
from partita.audit.cases_people import counter_cases, randomizer_cases, sketch_cases, sparse_cases
from partita.audit.cases_tables import axis_cases, box_cases, publish_cases, query_cases, sum_cases
from partita.audit.custom import SampledLoss, UserMechanism, UserSubject
from partita.errors import check
from partita.guarantee import positive_epsilon
from partita.publish.publish import phase

# The first part of an audit: every mechanism on all pairs of neighbours of tiny universes.
_GROUPS: Final[tuple[Callable[[Depth, int], Iterator[Case]], ...]] = (
    *(axis_cases, box_cases, sum_cases, query_cases),
    *(counter_cases, sparse_cases, sketch_cases, randomizer_cases, publish_cases),
)


def cases(depth: Depth = "standard", *, only: Collection[str] | None = None, more: int = 0) -> Iterator[Case]:
    """Every case of this depth, or those of some mechanisms."""
    for group in _GROUPS:
        for case in group(checked_depth(depth), more):
            if only is None or case.mechanism in only:
                yield case


def enumerate_all(
    *, depth: Depth = "standard", only: Collection[str] | None = None, more: int = 0
) -> Iterator[CaseCount]:
    """Compare the pairs of every case, one case after the other.

    `only` are names of mechanisms. With `more`, others have so many rows more in every universe of counts,
    counters meet so many more fixed streams, and randomizers so many more sizes; sketches stay as they are.

    >>> [count] = enumerate_all(depth="quick", only=["ListedLaw"])
    >>> count.pairs, count.violations
    (1, 0)
    """
    for case in cases(depth, only=only, more=more):
        yield count_case(case)


# What an audit says: for a regulator as a page, for a program as one object.
# A verdict is never "private". It is "no violation found", with what was tried.
_WIDTH: Final = 100
_VIEWPORT: Final = '<meta name="viewport" content="width=device-width, initial-scale=1">'

_READ_SO: Final = (
    "Pairs are pairs of neighbours, each compared with epsilon. A largest loss of 1.000 of 1 says that some "
    "pair loses all that was promised, on some outcome, and none was seen to lose more. Where it stays below "
    "epsilon, a fault that costs less than the difference would not be seen. The last number counts attacks."
)

_SOUGHT: Final = (
    "Each was tried on every mechanism where it makes sense. In quotation marks is the weakness that it "
    "looks for, behind it in how many mechanisms it was found."
)

_NOT_SHOWN: Final = (
    "Nothing here proves a mechanism private for all data: pairs are those of tiny universes, and a coupling "
    "or a replay is about the outcomes that were met. The proofs are in docs/proofs.",
    "What comes before a mechanism, reading tables and leaving out rows of persons who have too many, is run "
    "by the replays alone, on small tables in memory.",
    "Time, memory and the machine are not looked at: see docs/limits.md.",
    "Not looked at either: whether parameters were chosen from the data, whether the ledger was used, and "
    "who could read the rows.",
    "Samplers are compared with their laws on so many draws; smaller deviations are not seen.",
)


@final
@dataclass(frozen=True, kw_only=True)
class Finding:
    """One violation: in which part, of which mechanism, and what it is."""

    part: str
    mechanism: str
    said: str


@final
@dataclass(frozen=True, kw_only=True)
class AuditContext:
    """What was audited, where and when."""

    subject: str
    depth: Depth
    python: str
    machine: str
    libraries: str
    day: str
    command: str

    @staticmethod
    def here(subject: str, depth: Depth, command: str) -> AuditContext:
        """The version, the machine and the day of this run."""
        return AuditContext(
            subject=subject,
            depth=depth,
            python=f"{platform.python_implementation()} {platform.python_version()}",
            machine=f"{platform.system()} {platform.machine()}",
            libraries=", ".join(f"{name} {found}" for name, found in _versions()),
            day=datetime.now(UTC).date().isoformat(),
            command=command,
        )


def _versions() -> Iterator[tuple[str, str]]:
    for name in ("partita", "numpy", "python-flint", "cryptography", "numba"):
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, "not installed"


@final
@dataclass(frozen=True, kw_only=True)
class Report:
    """All that was tried, and what came of it."""

    surroundings: AuditContext
    counts: tuple[CaseCount, ...] = ()
    fits: tuple[SamplerFit, ...] = ()
    trials: tuple[AttackTrial, ...] = ()
    samples: tuple[SampledLoss, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def violations(self) -> list[Finding]:
        """Everything that should not be."""
        return [
            *(_describe_count(count) for count in self.counts if count.violations),
            *(_describe_fit(self.fits[place]) for place in holm([fit.p for fit in self.fits], FAMILY_WISE)),
            *(_describe_trial(each) for each in self.trials if each.verdict == "violation"),
            *(_describe_sample(each) for each in self.samples if each.violated),
        ]

    @property
    def pairs(self) -> int:
        """How many pairs of neighbours were compared by enumeration."""
        return sum(count.pairs for count in self.counts)

    @property
    def verdict(self) -> str:
        """In one line."""
        found = self.violations
        return "NO VIOLATION FOUND" if not found else f"VIOLATIONS FOUND: {len(found)}"

    @property
    def mechanisms(self) -> list[str]:
        """All that were looked at, in order."""
        count_case, tried = {each.mechanism for each in self.counts}, {each.mechanism for each in self.trials}
        return sorted(count_case | tried | {each.mechanism for each in self.samples})

    def record(self) -> dict[str, Any]:
        """The whole report as one object for JSON."""
        counts = [{**asdict(count), "epsilon": str(count.epsilon)} for count in self.counts]
        return {
            "verdict": self.verdict,
            "violations": [asdict(finding) for finding in self.violations],
            "surroundings": asdict(self.surroundings),
            "pairs": self.pairs,
            "enumeration": [{**count, "loss": _finite(count["loss"])} for count in counts],
            "fits": {"family_wise_error": FAMILY_WISE, "samplers": [asdict(fit) for fit in self.fits]},
            "attacks": [asdict(trial) for trial in self.trials],
            "samples": [{**asdict(each), "loss": _finite(each.loss)} for each in self.samples],
            "notes": list(self.notes),
            "not_run": dict(COVERED_BY) if self.fits else {},
            "not_shown": list(_NOT_SHOWN),
        }

    def text(self) -> str:
        """A page for people."""
        return "\n\n".join("\n".join(part) for part in self._parts() if part)

    def html(self) -> str:
        """The same page for a browser: no script, nothing loaded."""
        title = escape(f"Audit of {self.surroundings.subject}")
        page = "font:15px/1.5 monospace;max-width:110ch;margin:2em auto;padding:0 1em"
        style = f":root{{color-scheme:light dark}}body{{{page}}}"
        head = f'<meta charset="utf-8">{_VIEWPORT}<title>{title}</title><style>{style}</style>'
        body = f'<pre style="overflow-x:auto">{escape(self.text())}</pre>'
        return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'

    def _parts(self) -> Iterator[list[str]]:
        yield self._head()
        yield self._found()
        yield from (self._list_counts(), self._samplers(), self._list_attacks(), self._list_samples())
        yield [_wrap(note, "  ") for note in self.notes]
        yield self._table()
        yield self._list_covered()
        yield ["HOW TO REPEAT IT", f"  {self.surroundings.command}"]
        yield ["WHAT THIS DOES NOT SHOW", *(_wrap(line, "- ") for line in _NOT_SHOWN)]

    def _head(self) -> list[str]:
        where = self.surroundings
        return [
            f"AUDIT OF {where.subject}",
            f"{where.day}, depth {where.depth}; {where.python} on {where.machine}",
            _wrap(where.libraries, ""),
        ]

    def _found(self) -> list[str]:
        said = [f"{finding.mechanism} ({finding.part}): {finding.said}" for finding in self.violations]
        return [self.verdict, _wrap(self._tried(), "  "), *(_wrap(line, "! ") for line in said)]

    def _tried(self) -> str:
        tried, attacks = (
            sum(trial.tried for trial in self.trials),
            len({trial.attack for trial in self.trials}),
        )
        parts = [
            f"{self.pairs:,} pairs of neighbours" if self.counts else "",
            f"{len(self.fits)} fits of {sum(fit.draws for fit in self.fits):,} draws" if self.fits else "",
            f"{tried:,} inputs of {attacks} attacks" if self.trials else "",
            f"{sum(each.draws for each in self.samples):,} sampled outputs" if self.samples else "",
        ]
        said = "; ".join(part for part in parts if part)
        return f"Tried on {len(self.mechanisms)} mechanism(s): {said}."

    def _list_counts(self) -> list[str]:
        if not self.counts:
            return []
        ways = sorted({count.way for count in self.counts})
        lines = [
            f"{way}: {sum(count.pairs for count in self.counts if count.way == way):,} pairs; {WAYS[way]}."
            for way in ways
        ]
        which = "the pairs of neighbours that were given" if self.samples else "neighbours in tiny universes"
        intro = f"The code was run on {which}, in these ways:"
        return ["ENUMERATION", _wrap(intro, "  "), *(_wrap(line, "  - ") for line in lines)]

    def _samplers(self) -> list[str]:
        if not self.fits:
            return []
        least = min(self.fits, key=lambda fit: fit.p)
        said = (
            f"Fresh draws of every public sampler were compared with its exact law: {len(self.fits)} fits. "
            f"Correct samplers are rejected with probability {FAMILY_WISE:g} at most, all fits together "
            "(Chernoff, Holm). "
            f"The least p-value is {least.p:.3g}, of {least.sampler}."
        )
        return ["SAMPLERS", _wrap(said, "  ")]

    def _list_attacks(self) -> list[str]:
        if not self.trials:
            return []
        says = {attack.name: attack.says for attack in ATTACKS}
        lines = []
        for name in sorted({trial.attack for trial in self.trials}):
            trials = [trial for trial in self.trials if trial.attack == name]
            found = sum(trial.verdict == "violation" for trial in trials)
            tried = f"{sum(trial.tried for trial in trials):,} inputs, found in {found} mechanisms"
            lines.append(f'{name}: "{says[name]}". {tried}{_describe_exempt(trials)}.')
        return ["ATTACKS", _wrap(_SOUGHT, "  "), *(_wrap(line, "  - ") for line in lines)]

    def _list_samples(self) -> list[str]:
        lines = [f"{each.said}." for each in self.samples]
        return ["SAMPLED OUTPUTS", *(_wrap(line, "  - ") for line in lines)] if lines else []

    def _table(self) -> list[str]:
        head = f"  {'mechanism':27}{'pairs':>7}  {'largest loss':>14}  {'attacks':>7}  found"
        rows = (self._row(name) for name in self.mechanisms)
        return ["BY MECHANISM", _wrap(_READ_SO, "  "), head, *rows]

    def _list_covered(self) -> list[str]:
        """What is public and was not run by itself, in a report of all of this version."""
        lines = [f"{name}: {covered}." for name, covered in COVERED_BY.items()] if self.fits else []
        title = "NOT RUN BY ITSELF, and what covers it"
        return [title, *(_wrap(line, "  - ") for line in lines)] if lines else []

    def _row(self, name: str) -> str:
        counts = [count for count in self.counts if count.mechanism == name]
        worst = max(counts, key=lambda count: count.loss / float(count.epsilon), default=None)
        loss = "-" if worst is None else f"{worst.loss:.3f} of {float(worst.epsilon):g}"
        tried = sum(trial.tried > 0 for trial in self.trials if trial.mechanism == name)
        found = [finding for finding in self.violations if finding.mechanism == name]
        verdict = "no violation" if not found else f"{len(found)} violation(s)"
        return f"  {name:27}{sum(count.pairs for count in counts):>7,}  {loss:>14}  {tried:>7}  {verdict}"


def _describe_exempt(trials: Sequence[AttackTrial]) -> str:
    """To how many mechanisms an attack does not apply, and why."""
    reasons = Counter(trial.said for trial in trials if trial.verdict == "does not apply")
    said = "; ".join(f"{why} ({number})" for why, number in reasons.items())
    return f". Does not apply to {reasons.total()}: {said}" if said else ""


def _describe_count(count: CaseCount) -> Finding:
    amount = "rho" if count.way.endswith("in rho") else "epsilon"
    said = (
        f"{count.violations} of {count.pairs} pairs lose more than {amount} {count.epsilon}, "
        f"up to {count.loss:.6g} ({count.about})"
    )
    return Finding(part="enumeration", mechanism=count.mechanism, said=said)


def _describe_fit(fit: SamplerFit) -> Finding:
    said = f"{fit.draws:,} draws do not fit the law, p-value {fit.p:.3g}"
    return Finding(part="samplers", mechanism=fit.sampler, said=said)


def _describe_trial(trial: AttackTrial) -> Finding:
    return Finding(part="attacks", mechanism=trial.mechanism, said=f"{trial.attack}: {trial.said}")


def _describe_sample(sample: SampledLoss) -> Finding:
    return Finding(part="samples", mechanism=sample.mechanism, said=sample.said)


def _finite(loss: float) -> float | str:
    return loss if abs(loss) != float("inf") else "infinite"


def _wrap(text: str, mark: str) -> str:
    return fill(text, _WIDTH, initial_indent=mark, subsequent_indent=" " * len(mark))


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
        return _audit_version(depth, _known(only))
    given = _few_bits() if neighbours is None else neighbours
    pairs = [(one, other) for one, other in given]
    check(pairs, "neighbours", "must be pairs of data sets", given=None, fix="pass some")
    data = [each for pair in pairs[:3] for each in pair]
    own = UserMechanism.of(mine, epsilon=_read_epsilon(mine, epsilon), data=data, name=name)
    return _audit_user_mechanism(own, pairs, depth, draws, factory)


def _few_bits() -> list[Pair]:
    """Lists of at most two bits, and the same with one more."""
    held = [list(bits) for count in range(3) for bits in combinations_with_replacement((0, 1), count)]
    return [(rows, [*rows, bit]) for rows in held for bit in (0, 1)]


def _known(only: Collection[str] | None) -> Collection[str] | None:
    unknown, fix = sorted(set(only or ()) - set(public_mechanisms())), "see public_mechanisms()"
    check(not unknown, "only", "must name public mechanisms", given=", ".join(unknown), fix=fix)
    return only


def _read_epsilon(mine: Any, epsilon: object) -> Fraction:
    given = epsilon if epsilon is not None else getattr(mine, "epsilon", None)
    check(given is not None, "epsilon", "must be given", given=None, fix="say what the mechanism promises")
    return positive_epsilon(given)


def _audit_version(depth: Depth, only: Collection[str] | None) -> Report:
    names = " ".join(f"--only {name}" for name in only or ())
    command = " ".join(f"partita audit --depth {depth} {names}".split())
    with phase("enumerating pairs of neighbours"):
        counts = tuple(enumerate_all(depth=depth, only=only))
    with phase("fitting samplers"):
        fits = tuple(sampler_fits(depth)) if only is None else ()
    with phase("attacking"):
        trials = tuple(run_attacks(only))
    where = AuditContext.here(f"partita {partita.__version__}", depth, command)
    return Report(surroundings=where, counts=counts, fits=fits, trials=trials)


def _audit_user_mechanism(
    own: UserMechanism,
    pairs: list[Pair],
    depth: Depth,
    draws: int | None,
    factory: Callable[[Any], Any] | None,
) -> Report:
    times = draws or step(depth, 20_000, 200_000, 2_000_000) // (10 if own.transparent else 1)
    counts, notes = _enumerated(own, pairs)
    with phase("sampling"):
        few = enumerate(pairs[:3], start=1)
        samples = tuple(own.sampled(one, other, times, f"pair {number}") for number, (one, other) in few)
    with phase("attacking"):
        subject = UserSubject(own, pairs[0], factory)
        trials = tuple(attack.on(subject) for attack in ATTACKS)
    command = "partita.audit.audit(...), with the mechanism and the pairs that were given"
    surroundings = AuditContext.here(own.name, depth, command)
    return Report(surroundings=surroundings, counts=counts, trials=trials, samples=samples, notes=notes)


def _enumerated(own: UserMechanism, pairs: list[Pair]) -> tuple[tuple[CaseCount, ...], tuple[str, ...]]:
    if not own.transparent:
        return (), (_NOT_OURS,)
    count = count_case(own.case(pairs))
    missing = len(pairs) - count.pairs
    notes = (_NOT_PROVED.format(f"{missing} of {len(pairs)}"),) if missing else ()
    return (count,) if count.pairs else (), notes
