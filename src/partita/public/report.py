"""What a release says about itself, each a function of public facts and released numbers.

The report in plain sentences, a chart of a column for a terminal, what to cite, the card of a notebook, and
the check that the views of a release fit together.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import ROUND_CEILING, Context
from functools import reduce
from operator import add
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from partita.answer import Answer
from partita.concentrated import follows
from partita.curves import follows_by_curve
from partita.domain.base import Special
from partita.domain.category import Category
from partita.domain.text import EMPTY, FoundNames
from partita.errors import IncompatibleGuarantees, InvalidRelease, check_release
from partita.guarantee import Guarantee, short, squares_changed
from partita.html import Html, Row, bars, card, grid, number, with_interval, with_margin
from partita.public.axis.base import Specials
from partita.public.axis.names import ListedNames
from partita.public.axis.quantiles import QuantileView
from partita.public.base import (
    DECLARED,
    LONGEST,
    Provenance,
    ReleaseKind,
    describe_domain,
    figure,
    promise,
    shorten,
)
from partita.public.bounds import Gaussian, laplace_sum_reach, laplace_variance
from partita.public.contributions import ChosenContributions
from partita.public.file_entries import Published, domains_of, form_of, view_name
from partita.public.results import AnyView, Bins, total
from partita.public.sums.view import SumView
from partita.public.views import BoxView, OrderedColumn, View, list_columns
from partita.public.wanted import WantedView
from partita.public.wants import SHARE
from partita.public.window import choose_window, find_window, rows_beyond, window_bins
from partita.public.workload.release import QueryView

if TYPE_CHECKING:
    from partita.public.release import Release

# --- a histogram in text -----------------------------------------------------------------------

_EIGHTHS: Final = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_FULL: Final = "█"
_LONGEST_VALUE: Final = 20  # characters of a value beside a bar
_SHORTEST_BAR: Final = 10
_GAPS: Final = 4  # two spaces on either side of a bar


def chart(
    line: OrderedColumn, width: int = 80, bins: int = 12, *, ascii_only: bool = False, full: bool = False
) -> list[str]:
    """A line for each bin: its first and last value, a bar, the count and ± its 95% half-width.

    Bins lie where nearly all rows do, and a last line says what is beside them; with `full` they make up the
    whole axis. Lines are at most `width` characters wide, unless that leaves less than ten for the bars.
    """
    window = choose_window(line, full=full)
    table = window_bins(line, bins, window, even=False)
    labels, numbers = _align(_ranges(table)), _numbers(table, "+-" if ascii_only else "±")
    longest = max(_SHORTEST_BAR, width - len(labels[0]) - max(map(len, numbers)) - _GAPS)
    values = table.counts.values.tolist()
    most = max(*values, 0.0) or 1.0
    bars = [_bar(longest * max(0.0, value) / most, ascii_only) for value in values]
    rows = zip(labels, bars, numbers, strict=True)
    drawn = [f"{label}  {bar:<{longest}}  {number}" for label, bar, number in rows]
    beyond = rows_beyond(line, window, bins).replace("±", "+-" if ascii_only else "±")
    return [*drawn, *(wrap(beyond, max(width, len(drawn[0]))) if beyond else [])]


def _ranges(table: Bins) -> Iterator[str]:
    for ends in zip(table.lows, table.highs, strict=True):
        low, high = (shorten(_value_text(end), _LONGEST_VALUE) for end in ends)
        yield low if low == high else f"{low} to {high}"


def _value_text(value: object) -> str:
    """A value of a column; of a time what a clock on the wall of its zone shows."""
    return f"{value:%Y-%m-%d %H:%M}" if isinstance(value, datetime) and not value.second else str(value)


def _numbers(table: Bins, plus_minus: str) -> list[str]:
    pairs = map(with_margin, table.counts.values.tolist(), table.counts.error.tolist())
    values, halves = zip(*pairs, strict=True)
    return [f"{value} {plus_minus} {half}" for value, half in zip(_align(values), halves, strict=True)]


def _align(texts: Iterable[str]) -> list[str]:
    """Texts of equal lengths, which end below each other."""
    listed = list(texts)
    longest = max(map(len, listed))
    return [text.rjust(longest) for text in listed]


def _bar(length: float, ascii_only: bool) -> str:
    """A bar of this many characters, in Unicode to an eighth of one."""
    if ascii_only:
        return "#" * round(length)
    whole, eighths = divmod(round(8 * length), 8)
    return _FULL * whole + _EIGHTHS[eighths]


# --- what to cite ------------------------------------------------------------------------------

PAPERS: Final[Mapping[str, str]] = {
    "DMNS06": """@inproceedings{DMNS06,
  author    = {Cynthia Dwork and Frank McSherry and Kobbi Nissim and Adam Smith},
  title     = {Calibrating Noise to Sensitivity in Private Data Analysis},
  booktitle = {Theory of Cryptography, TCC 2006},
  year      = {2006},
}""",
    "DNRR15": """@inproceedings{DNRR15,
  author    = {Cynthia Dwork and Moni Naor and Omer Reingold and Guy N. Rothblum},
  title     = {Pure Differential Privacy for Rectangle Queries via Private Partitions},
  booktitle = {Advances in Cryptology: ASIACRYPT 2015},
  year      = {2015},
}""",
    "HRMS10": """@article{HRMS10,
  author    = {Michael Hay and Vibhor Rastogi and Gerome Miklau and Dan Suciu},
  title     = {Boosting the Accuracy of Differentially Private Histograms Through Consistency},
  journal   = {Proceedings of the VLDB Endowment},
  year      = {2010},
}""",
    "DNPR10": """@inproceedings{DNPR10,
  author    = {Cynthia Dwork and Moni Naor and Toniann Pitassi and Guy N. Rothblum},
  title     = {Differential Privacy under Continual Observation},
  booktitle = {Symposium on Theory of Computing, STOC 2010},
  year      = {2010},
}""",
    "MSM19": """@inproceedings{MSM19,
  author    = {Ryan McKenna and Daniel Sheldon and Gerome Miklau},
  title     = {Graphical-model Based Estimation and Inference for Differential Privacy},
  booktitle = {International Conference on Machine Learning, ICML 2019},
  year      = {2019},
}""",
    "QYL14": """@inproceedings{QYL14,
  author    = {Wahbeh Qardaji and Weining Yang and Ninghui Li},
  title     = {PriView: Practical Differentially Private Release of Marginal Contingency Tables},
  booktitle = {International Conference on Management of Data, SIGMOD 2014},
  year      = {2014},
}""",
    "ZCPSX17": """@article{ZCPSX17,
  author  = {Jun Zhang and Graham Cormode and Cecilia M. Procopiuc and Divesh Srivastava and Xiaokui Xiao},
  title   = {PrivBayes: Private Data Release via Bayesian Networks},
  journal = {ACM Transactions on Database Systems},
  volume  = {42},
  year    = {2017},
}""",
    "SU": """@misc{SU,
  author = {Adam Smith and Jonathan Ullman},
  title  = {Query release},
  note   = {Lecture notes on differential privacy},
}""",
    "DR14": """@article{DR14,
  author  = {Cynthia Dwork and Aaron Roth},
  title   = {The Algorithmic Foundations of Differential Privacy},
  journal = {Foundations and Trends in Theoretical Computer Science},
  year    = {2014},
}""",
    "HLM12": """@inproceedings{HLM12,
  author    = {Moritz Hardt and Katrina Ligett and Frank McSherry},
  title     = {A Simple and Practical Algorithm for Differentially Private Data Release},
  booktitle = {Advances in Neural Information Processing Systems 25, NIPS 2012},
  year      = {2012},
}""",
    "HLY21": """@inproceedings{HLY21,
  author    = {Ziyue Huang and Yuting Liang and Ke Yi},
  title     = {Instance-optimal Mean Estimation Under Differential Privacy},
  booktitle = {Advances in Neural Information Processing Systems 34, NeurIPS 2021},
  year      = {2021},
}""",
    "KDD22": """@inproceedings{KDD22,
  author    = {Yuan Qiu and Wei Dong and Ke Yi and Bin Wu and Feifei Li},
  title     = {Releasing Private Data for Numerical Queries},
  booktitle = {Conference on Knowledge Discovery and Data Mining, KDD 2022},
  year      = {2022},
}""",
    "MS20": """@inproceedings{MS20,
  author    = {Ryan McKenna and Daniel Sheldon},
  title     = {Permute-and-Flip: A New Mechanism for Differentially Private Selection},
  booktitle = {Advances in Neural Information Processing Systems 33, NeurIPS 2020},
  year      = {2020},
}""",
    "S11": """@inproceedings{S11,
  author    = {Adam Smith},
  title     = {Privacy-Preserving Statistical Estimation with Optimal Convergence Rates},
  booktitle = {Symposium on Theory of Computing, STOC 2011},
  year      = {2011},
}""",
    "KSS22": """@inproceedings{KSS22,
  author    = {Haim Kaplan and Shachar Schnapp and Uri Stemmer},
  title     = {Differentially Private Approximate Quantiles},
  booktitle = {International Conference on Machine Learning, ICML 2022},
  year      = {2022},
}""",
    "CKS20": """@inproceedings{CKS20,
  author    = {Cl{\\'e}ment L. Canonne and Gautam Kamath and Thomas Steinke},
  title     = {The Discrete {G}aussian for Differential Privacy},
  booktitle = {Advances in Neural Information Processing Systems 33, NeurIPS 2020},
  year      = {2020},
}""",
}
"""BibTeX entries by their keys in docs/references.md."""

_NOISE_PAPER: Final = "CKS20"
_LIBRARY: Final = """@software{{partita,
  author  = {{{{The Partita developers}}}},
  title   = {{Partita: differentially private statistics with exact noise}},
  version = {{{version}}},{note}
}}"""


def citation(mechanisms: Iterable[str], *, version: str, options: Sequence[tuple[str, str]] = ()) -> str:
    """BibTeX entries for the library, for the papers behind the mechanisms, and for exact noise.

    The papers are those that the kinds of releases name; of an unknown mechanism there are none. Options of
    the mechanism that were asked for are a note of the library's entry.

    >>> [line for line in citation(["tree"], version="0.1.0").splitlines() if line.startswith("@")]
    ['@software{partita,', '@misc{SU,', '@inproceedings{DNPR10,', '@article{HRMS10,', '@inproceedings{CKS20,']
    """
    behind = {name: keys for kind in ReleaseKind.kinds().values() for name, keys in kind.papers.items()}
    keys = dict.fromkeys(key for name in mechanisms for key in behind.get(name, ()))
    papers = [PAPERS[key] for key in [*keys, _NOISE_PAPER]]
    stated = ", ".join(f"{name} {value}" for name, value in options)
    note = f"\n  note    = {{Options of the mechanism: {stated}}}," if options else ""
    return "\n\n".join([_LIBRARY.format(version=version, note=note), *papers]) + "\n"


# --- the card of a notebook --------------------------------------------------------------------

_DRAWN: Final = 40  # bins of a column: detail against bars that can be told apart
_MOST_COLUMNS: Final = 30  # columns in a card: more would fill the page


def release_card(release: Release) -> str:
    """What was promised, what was released and how, and each column with its counts."""
    origin = release.provenance
    facts = [
        ("promise", promise(release.guarantee, imported=bool(release.imported))),
        ("published", f"{origin.day}, by Partita {origin.version}"),
        ("ledger", "debited" if origin.recorded else "not recorded"),
        ("rows", _rows(release)),
        ("options", ", ".join(f"{name} {value}" for name, value in origin.options) or None),
        ("rows per person", None if origin.contributions is None else str(origin.contributions)),
    ]
    title = f"Release of {origin.dataset}" if origin.dataset else "Release"
    return card(title, facts, below=_tables(release))


def _tables(release: Release) -> Iterator[Html]:
    views = [
        (_name(view), view.mechanism, promise(view.guarantee, imported=is_imported(view)))
        for view in release.published
    ]
    yield grid(("view", "mechanism", "promise"), views, left=3)
    if release.table is not None:
        yield release.dependence().picture()
    if release.columns:
        more = len(release.columns) - _MOST_COLUMNS
        beyond = f" And {more} more columns." if more > 0 else ""
        note = f"Rows with a value; those below, above, invalid or null are not drawn.{beyond}"
        yield grid(("column", "may hold", "", "rows"), _columns(release), left=3, note=note)


def _rows(release: Release) -> str | None:
    if not release.views:
        return None
    counted = release.count()
    return with_interval(counted.value, counted.interval())


def _columns(release: Release) -> Iterator[Row]:
    """Each column with a picture of where nearly all rows that have a value of it lie."""
    for column in release.columns[:_MOST_COLUMNS]:
        line = release.slice(column)
        table = window_bins(line, _DRAWN, find_window(line), even=False)
        drawn = bars(table.counts.values.tolist())
        yield shorten(column, LONGEST), describe_domain(line.domain), drawn, number(line.axis.curve.total)


def _name(view: Published) -> str:
    if isinstance(view, QueryView):
        return shorten(f"{len(view):,} queries of {view_name(view.columns)}", LONGEST)
    if isinstance(view, SumView | QuantileView | WantedView):
        return shorten(view.name, LONGEST)
    return shorten(view_name(view.columns), LONGEST)


# --- views that fit together -------------------------------------------------------------------

_FIX: Final = "get a fresh copy of the release"


def check_views(
    views: Sequence[Published], guarantee: Guarantee | None, chosen: ChosenContributions | None = None
) -> None:
    """Refuse views that are not of different columns, or that do not promise together what is claimed.

    With a bound on rows per person that was `chosen`, the choice is a part of the promise.
    """
    rule, fix = "must be of different columns", "release each set of columns once"
    check_release(views and len({_subject(view) for view in views}) >= len(views), "views", rule, fix=fix)
    check_release(_agree_on_domains(views), "views", "must declare a column in one way", fix=_FIX)
    rule = "must be what its views promise together"
    check_release(_promise(views, guarantee, chosen), "guarantee", rule, fix=_FIX)
    rule = "must promise an epsilon and a delta that follow from its rho"
    check_release(all(map(_states_what_follows, views)), "guarantee", rule, fix=_FIX)
    rule = "must have the noise that is promised"
    check_release(all(view.keeps_its_promise for view in views), "views", rule, fix=_FIX)


def _subject(view: Published) -> tuple[object, ...]:
    """What no two views of a release have in common."""
    if isinstance(view, QueryView):
        return ("queries",)
    if isinstance(view, SumView):
        return "sum", view.column, frozenset(view.keys)
    if isinstance(view, QuantileView):
        return "quantiles", view.column
    if isinstance(view, WantedView):
        return "want", view.name
    return "counts", frozenset(view.columns)


def _promise(
    views: Sequence[Published], guarantee: Guarantee | None, chosen: ChosenContributions | None
) -> bool:
    """Whether views of the same people promise together what is claimed: just that, or what follows in rho.

    Nothing is promised if one of them promises nothing. The choice of a bound on rows per person adds to it.
    """
    guarantees = [view.guarantee for view in views if view.guarantee is not None]
    if len(guarantees) < len(views):
        return guarantee is None
    try:
        if chosen is not None:
            guarantees.append(chosen.promise(guarantees[0].neighbors))
        together = reduce(add, guarantees)
        if guarantee is None or not guarantee.rho or guarantee == together:
            return guarantee == together
        together = reduce(add, (each.in_rho() for each in guarantees))
    except IncompatibleGuarantees:
        raise InvalidRelease("views", "must promise about the same neighbors", fix=_FIX) from None
    point = replace(together, rho=guarantee.rho, epsilon=guarantee.epsilon, delta=guarantee.delta)
    pure = together.pure and together.epsilon <= guarantee.epsilon
    stated = pure or follows(guarantee.rho, guarantee.epsilon, guarantee.delta)
    stated = stated or _follow_by_curve(views, guarantee)
    return together.rho <= guarantee.rho and stated and point == guarantee


def _follow_by_curve(views: Sequence[Published], guarantee: Guarantee, *, single: bool = False) -> bool:
    """Whether all noise is Gaussian, and the exact curve of such noise allows what is promised."""
    laws = [law for view in views for law in _laws(view)]
    variances = [law.variance for law in laws if isinstance(law, Gaussian)]
    if len(variances) < len(laws) or not variances:
        return False
    point = guarantee.rho, guarantee.epsilon, guarantee.delta
    return follows_by_curve(*point, min(variances), single=single)


def _laws(view: Published) -> list[object]:
    """The laws of the noise of a view; None for what has several or another."""
    if isinstance(view, View):
        beside = [view.specials.scale] if view.specials.counts else []
        return [getattr(view.axis, "law", None), *beside]
    return [getattr(view.boxes, "law", None) if isinstance(view, BoxView) else None]


def _states_what_follows(view: Published) -> bool:
    """Whether the epsilon and delta of a view that states rho are true: Gaussian noise is never pure."""
    promise = view.guarantee
    if promise is None or not promise.rho:
        return True
    if promise.pure:
        return not any(isinstance(law, Gaussian) for law in _laws(view))
    single = squares_changed(promise.neighbors, promise.contributions) == 1
    told = follows(promise.rho, promise.epsilon, promise.delta)
    return told or _follow_by_curve([view], promise, single=single)


def _agree_on_domains(views: Sequence[Published]) -> bool:
    """Whether a column in several views has one domain; or, of names that were found, some of them."""
    declared: dict[str, object] = {}
    found = find_names(views)
    for column, domain in (pair for view in views for pair in domains_of(view).items()):
        if column in found and isinstance(domain, Category):
            if not set(domain.labels) <= {*found[column].labels, EMPTY}:
                return False
        elif declared.setdefault(column, domain.to_spec()) != domain.to_spec():
            return False
    return True


def find_names(views: Sequence[Published]) -> dict[str, FoundNames]:
    """The columns of text, with the names that were found; other views have them, or some, as labels."""
    pairs = (pair for view in views for pair in domains_of(view).items())
    return {column: domain for column, domain in pairs if isinstance(domain, FoundNames)}


# --- the report --------------------------------------------------------------------------------

_LONGEST_TEXT: Final = 100
_LARGEST_EXPONENT: Final = 10  # e^10 is 22,000: the figures of larger factors say nothing
_MUCH: Final = 0.25
"""A bound on all errors above this share of the rows says little about any one box."""
HINT: Final = (
    "That bound holds for all boxes at once and is large beside the number of rows: "
    "`answer.worst(beta)` guarantees much more about a single answer."
)
_UPWARDS: Final = Context(prec=3, rounding=ROUND_CEILING)


def report(
    published: Sequence[Published],
    guarantee: Guarantee | None,
    provenance: Provenance,
    *,
    beta: float,
    error: float | None,
) -> str:
    """The report, a line for each matter; `error` bounds all counts except with probability `beta`."""
    lines = [
        _origin(published, provenance),
        f"Guarantee: {promise_words(guarantee)}{declared_words(published)}",
        _cost(guarantee, provenance),
        *(view_words(view, find_names(published)) for view in published),
        *error_words(published, beta, error),
        *rule_words(published, guarantee, provenance),
    ]
    return "\n".join(lines)


def error_words(published: Sequence[Published], beta: float, error: float | None) -> Iterator[str]:
    """How far answers may be from the truth, a line for each kind; `error` bounds all counts."""
    if error is not None:
        yield _accuracy(_counted(published), beta, error)
    yield from _numbers_accuracy(published, beta)


def rule_words(
    published: Sequence[Published], guarantee: Guarantee | None, provenance: Provenance
) -> Iterator[str]:
    """By which rules rows were counted, a line for each."""
    yield from _rules(_counted(published), guarantee, provenance)
    yield from _numbers_rules(published)


def _counted(published: Sequence[Published]) -> list[AnyView]:
    return [view for view in published if isinstance(view, AnyView)]


def _special_cells(column: str, counts: Mapping[str, Answer]) -> str:
    """What is in the special cells of a column, each with an error of its own."""
    if not counts:
        return f"Special cells of {column} were not counted."
    cells = (
        f"{name} {with_interval(max(0.0, each.value), each.interval())}" for name, each in counts.items()
    )
    return f"Special cells of {column}: {', '.join(cells)} (95% intervals)."


def _numbers_accuracy(published: Sequence[Published], beta: float) -> Iterator[str]:
    """How far sums and answers may be from the truth."""
    statistics = {view.sums.statistic for view in published if isinstance(view, SumView)}
    if "totals" in statistics:
        yield (
            "Error of totals: an interval is about the true total, or mean, of all values within the bounds. "
            "Its lower end allows for noise, its upper end also for a tail that noise hides, if that tail "
            "thins out; guaranteed bounds need no such assumption."
        )
    if "means" in statistics:
        yield (
            "Error of means: an interval is about the true mean of all values within the declared bounds. It "
            "allows for noise, and for values past the ends of the clip that noise hides, if these thin out; "
            "guaranteed bounds need no such assumption."
        )
    if "sums" in statistics:
        yield (
            "Error of sums: every sum, mean and variance has a bar of its own, and says which values it "
            "covers. Where noise hides larger ones, they count as the last value that is covered, or less of "
            "them the further out they are, as it says; the bar is about exactly that."
        )
    for view in published:
        if isinstance(view, QueryView):
            yield (
                f"Error of answers: with a probability of at least {100 * (1 - beta):.10g}% no answer to a "
                f"query misses the truth by more than {figure(view.error(beta))}."
            )
        if isinstance(view, QuantileView):
            most = max(view.selected.reach(index, beta) for index in range(len(view.selected.quantiles)))
            yield (
                f"Error of quantiles: with a probability of at least {100 * (1 - beta):.10g}% no quantile of "
                f"{view.column} misses its rank by more than {figure(most)} rows."
            )
        if isinstance(view, WantedView):
            reach = laplace_sum_reach(view.counts.scale, 1, beta)
            yield (
                f"Error of the {view.name}: with a probability of at least {100 * (1 - beta):.10g}% a count "
                f"that it is made of misses the truth by at most {figure(reach)} rows."
            )


def _numbers_rules(published: Sequence[Published]) -> Iterator[str]:
    """How values are taken that are no plain numbers within bounds."""
    statistics = {view.sums.statistic for view in published if isinstance(view, SumView)}
    if "totals" in statistics:
        yield (
            "Rule: a total leaves out rows whose value is missing, cannot be read, or is beyond the declared "
            "bounds; so does a mean beside it."
        )
    if statistics & {"sums", "means"}:
        yield (
            "Rule: in a sum, a value beyond the declared bounds counts as the nearer bound, and one that is "
            "missing or cannot be read counts as nothing; a mean is over the rows that hold a number."
        )
    if any(isinstance(view, QueryView) for view in published):
        yield (
            "Rule: in a query, the value of a cell beyond the declared bounds is the nearer bound, "
            "and that of a missing or invalid one is 0."
        )
    if any(isinstance(view, QuantileView) for view in published):
        yield (
            "Rule: a quantile is about the rows with a value within the declared bounds; how many these are "
            "is not released, and neither is how many are missing, invalid or beyond."
        )
    if any(isinstance(view, WantedView) and view.want.kind is SHARE for view in published):
        yield (
            "Rule: a share is one of all rows of its group; a row without a value, or with one beyond the "
            "declared bounds, meets a condition only if the condition says so, as an open end does."
        )


def _number_of_queries(view: QueryView) -> str:
    return f"{len(view):,} quer{'y' if len(view) == 1 else 'ies'}"


def _origin(published: Sequence[Published], provenance: Provenance) -> str:
    dataset = f" of the dataset {provenance.dataset!r}" if provenance.dataset else ""
    column, value = provenance.part or ("", "")
    part = f" Only rows where {column} is {value!r} are counted." if provenance.part else ""
    return (
        f"A release{dataset} with {' and '.join(contents(published))}, "
        f"made on {provenance.day} with Partita {provenance.version}.{part}"
    )


def contents(published: Sequence[Published]) -> Iterator[str]:
    """What a release holds, in a few words each."""
    if views := _counted(published):
        yield f"noisy counts along {', '.join(list_columns(views))}"
    for statistic in ("sums", "means", "totals"):
        summed = dict.fromkeys(
            view.column
            for view in published
            if isinstance(view, SumView) and view.sums.statistic == statistic
        )
        if summed:
            yield f"noisy {statistic} of {', '.join(summed)}"
    for view in published:
        if isinstance(view, QueryView):
            yield f"noisy answers to {_number_of_queries(view)} about {', '.join(view.columns)}"
        if isinstance(view, QuantileView):
            yield f"quantiles of {view.column}"
        if isinstance(view, WantedView):
            yield f"noisy {view.name}"


def promise_words(guarantee: Guarantee | None) -> str:
    """What is promised, in sentences."""
    if guarantee is None:
        return "none. The release was made with injected noise and protects nobody."
    verb = "Adding or removing" if guarantee.neighbors == "add-remove" else "Changing"
    delta = short(guarantee.delta) if guarantee.rho else guarantee.delta
    but = "" if guarantee.pure else f", but for a probability of {delta}"
    return (
        f"{guarantee}. {verb} one {guarantee.unit} changes the probability of whatever is "
        f"in this release by a factor of at most {factor_words(guarantee)}{but}."
    )


def factor_words(guarantee: Guarantee) -> str:
    """The factor of a guarantee, rounded up to three figures; as a power where its figures say nothing.

    >>> factor_words(Guarantee(epsilon=1)), factor_words(Guarantee(epsilon="1/1000"))
    ('2.72', '1.01')
    """
    if guarantee.epsilon > _LARGEST_EXPONENT:
        return f"e^{short(guarantee.epsilon)}" if guarantee.rho else f"e^{guarantee.epsilon}"
    return f"{_UPWARDS.create_decimal_from_float(guarantee.factor):,f}"


def is_imported(view: Published) -> bool:
    """Whether another library made the noise of a view."""
    return isinstance(view, AnyView) and bool(form_of(view).released(view).imported)


def declared_words(published: Sequence[Published]) -> str:
    """A sentence that says whose word the guarantee is, if another library made some noise."""
    views = [view for view in published if is_imported(view)]
    if not views:
        return ""
    those = "It" if len(views) == len(published) else f"That of {' and '.join(map(_name, views))}"
    return f" {those} is {DECLARED}: another library counted, and drew the noise."


def _cost(guarantee: Guarantee | None, provenance: Provenance) -> str:
    cost = "nothing" if guarantee is None else guarantee.price
    where = "recorded in a ledger" if provenance.recorded else "not recorded in any ledger"
    return f"Cost: {cost}, {where}. Questions to the release cost nothing."


def view_words(view: Published, found: Container[str] = ()) -> str:
    """What a view is about, how it was released and why, and what was chosen on the way.

    `found` are columns whose labels nobody declared.
    """
    share = f", with {view.guarantee.price}" if view.guarantee else ""
    sentences = [
        _declare(view, found),
        f"Released by the mechanism {view.mechanism!r}{share}.",
        view.why,
        form_of(view).released(view).story,
        *_specials(view),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _declare(view: Published, found: Container[str]) -> str:
    """What a view is about: its columns and their domains, or its queries."""
    if isinstance(view, SumView):
        by = f", by {' and '.join(view.keys)}" if view.keys else ", of all rows"
        statistic = view.sums.statistic.capitalize()
        declared = (
            f"{statistic} of {view.column}, declared as {describe_domain(view.domain, _LONGEST_TEXT)}{by}."
        )
        return f"{declared} {_special_cells(view.column, view.specials)}"
    if isinstance(view, QueryView):
        queries = shorten(str(view.queries), _LONGEST_TEXT)
        return f"Answers to {_number_of_queries(view)} about {', '.join(view.columns)}: {queries}."
    if isinstance(view, QuantileView):
        declared = describe_domain(view.domain, _LONGEST_TEXT)
        return f"Quantiles {view.listed} of {view.column}, declared as {declared}."
    if isinstance(view, WantedView):
        pairs = [
            f"{name} declared as {describe_domain(domain, _LONGEST_TEXT)}"
            for name, domain in view.declared.items()
        ]
        return f"{view.name[0].upper()}{view.name[1:]}, {', '.join(pairs)}."
    columns = [
        f"{column}, declared as {domain.text!r}"
        if isinstance(domain, FoundNames)
        else f"{column}, {_label_words(column, found)} {describe_domain(domain, _LONGEST_TEXT)}: "
        f"{domain.size:,} cell{'s' if domain.size > 1 else ''}"
        for column, domain in zip(view.columns, view.domains, strict=True)
    ]
    return f"{'Column' if len(columns) == 1 else 'Columns together:'} {'; '.join(columns)}."


def _label_words(column: str, found: Container[str]) -> str:
    return "whose names were found, with the labels" if column in found else "declared as"


def _specials(view: Published) -> Iterator[str]:
    """What is in the special cells of a view of counts."""
    if isinstance(view, View) and not view.special_cells:
        yield "Special cells were not counted: every question is about rows that have a value."
    elif isinstance(view, View):
        beside = ", ".join(f"{name} {figure(view.specials.value(name))}" for name in view.special_cells)
        if isinstance(view.axis, ListedNames):
            yield _describe_names(view.axis, view.specials)
            return
        yield f"Beside it, to a standard error of {figure(view.specials.deviation)} each: {beside}."
    elif isinstance(view, BoxView):
        for column in view.columns:
            cells = view.declared[column].specials
            yield _special_cells(column, {name: view.count({column: Special.named(name)}) for name in cells})


def _describe_names(found: ListedNames, specials: Specials) -> str:
    """Which names are listed, and what is known of others."""
    other, null = (specials.answer(name) for name in ("other", "null"))
    return (
        f"{found.number:,} names were found, each with a count to a standard error of "
        f"{figure(math.sqrt(laplace_variance(found.scale)))}. With a probability of 95% every name with at "
        f"least {found.found_from():,} rows is among them. All other text is counted in other, "
        f"{with_interval(other.value, other.interval())}, {found.counted_by}; "
        f"null {with_interval(null.value, null.interval())}."
    )


def _accuracy(views: Sequence[AnyView], beta: float, error: float) -> str:
    together = any(isinstance(view, BoxView) for view in views)
    what = "range, in any column, and no count of a box," if together else "range, in any column,"
    bound = (
        f"Error: with a probability of at least {100 * (1 - beta):.10g}% no count of a {what} "
        f"misses the truth by more than {figure(error)}. Every answer has a bar of its own."
    )
    return f"{bound} {HINT}" if together and error > _MUCH * total(views).value else bound


def _rules(views: Sequence[AnyView], guarantee: Guarantee | None, provenance: Provenance) -> Iterator[str]:
    beside = (view for view in views if not isinstance(view, View) or view.special_cells)
    domains = [domain for view in beside for domain in view.domains]
    if any(not isinstance(domain, Category) for domain in domains):
        yield (
            "Rule: a value beyond the declared bounds is counted in the special cell below or above, "
            "never as the bound itself; one that cannot be read is counted as invalid, a missing one as null."
        )
    for domain in domains:
        if isinstance(domain, FoundNames):
            letters = "" if domain.text.alphabet is None else ", or of other characters than were declared,"
            yield (
                f"Rule: text of more than {domain.text.max_bytes} bytes{letters} and text that is not listed "
                "are counted as other, a missing value as null. Names are shown with what cannot be printed "
                "escaped."
            )
    if any(isinstance(domain, Category) and not isinstance(domain, FoundNames) for domain in domains):
        yield "Rule: a value that is no declared label is counted as other, a missing one as null."
    together = any(isinstance(view, BoxView) for view in views)
    if together:
        yield (
            "Rule: special cells of columns released together are positions on their axes, "
            "so that a count by one column takes in who is null, or out of bounds, in another."
        )
    most = 1 if guarantee is None else guarantee.contributions
    if provenance.person is None and guarantee is not None and guarantee.unit == "person":
        yield (
            f"Rule: of each person at most {most} row{'s' if most > 1 else ''} may count; whoever made the "
            "counts kept to that, and names no ids."
        )
        return
    if provenance.person is None:
        yield "Rule: every row is taken to be another person; who has several rows is protected row by row."
        return
    yield (
        f"Rule: of each person at most {most} row{'s' if most > 1 else ''} of a column "
        f"{'or of columns together ' if together else ''}"
        f"{'are' if most > 1 else 'is'} counted, chosen by a rule that looks at that person's rows alone; "
        f"all rows without an id in {provenance.person!r} are one person."
    )
    if provenance.contributions is not None:
        yield (
            f"Rule: rows per person are at most {provenance.contributions}; the choice is a part of the "
            "guarantee."
        )
