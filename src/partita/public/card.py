"""The papers of a release: a dataset card, an entry for a registry, a sheet along NIST SP 800-226.

Every sentence is a function of what the release says, of a ledger, of an audit report, or of how Partita
works, and the sheet says of which. What none of these can tell is said to be unknown. Names are all that is
filled in by hand; where one is missing, a placeholder in brackets stands for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast, final, get_args

from partita.domain.base import Domain
from partita.errors import InvalidRelease, check_release
from partita.guarantee import Guarantee
from partita.lazy import cached_property
from partita.numbers import check_choice
from partita.public.base import ReleaseKind, describe_domain, figure
from partita.public.card_registry import data_flow, description, purpose, registry_entry
from partita.public.card_sheet import Source, budget_facts, limit_facts, nist_sections, price_words, variant
from partita.public.card_sources import AuditEvidence, BudgetHistory, CardNames
from partita.public.file_entries import domains_of, guarantee_entries, provenance_entries
from partita.public.markup import code, float_above, prose, table, to_yaml
from partita.public.records import name_view, to_plain
from partita.public.report import HINT, error_words, find_names, promise_words, rule_words
from partita.public.views import View

if TYPE_CHECKING:
    from partita.public.file import FileFacts
    from partita.public.release import Release

FORMAT: Final = "partita card"
VERSION: Final = 1

Paper: TypeAlias = Literal["dataset", "registry", "nist"]
PAPERS: Final[Mapping[Paper, str]] = {
    "dataset": "Dataset card",
    "registry": "Registry entry",
    "nist": "Sheet along NIST SP 800-226",
}
"""The papers by name, in the order in which they stand together, each with its title."""

_DOMAIN: Final = 100  # characters of a domain, as in a report
_NO_NAMES: Final = CardNames()
_BETA: Final = 0.05  # how often the bounds in a card may fail, as in a report


@final
@dataclass(frozen=True, kw_only=True)
class Card:
    """The papers of one release.

    `file` is what its file says beside it, `budget` what a ledger says about its dataset, and `audit` what an
    audit report says about its mechanisms.
    """

    release: Release
    names: CardNames = _NO_NAMES
    file: FileFacts | None = None
    budget: BudgetHistory | None = None
    audit: AuditEvidence | None = None

    def __post_init__(self) -> None:
        rule = "is none: the release was made with injected noise and protects nobody"
        check_release(self.release.guarantee, "guarantee", rule, fix="publish with the noise of the system")
        if self.budget is not None:
            self.budget.check(self.release)

    def __repr__(self) -> str:
        return f"Card({self.release.provenance.dataset or 'release'}; {self.guarantee})"

    @property
    def guarantee(self) -> Guarantee:
        """What the release promises; without one there is no card."""
        assert self.release.guarantee is not None
        return self.release.guarantee

    def to_json(self) -> dict[str, object]:
        """All of it, as JSON can hold it; texts are Markdown, entries of the release and of names are not."""
        release, file = self.release, self.file
        entries = {
            "format": FORMAT,
            "version": VERSION,
            "release": {
                "checksum": self.checksum,
                "sha256": file and file.sha256,
                "signed_by": file and file.signed_by,
                "verified": file is not None and file.verified,
                "promise": str(self.guarantee),
                "guarantee": guarantee_entries(self.guarantee),
                "provenance": provenance_entries(release.provenance),
                "views": [
                    {"view": name_view(view), "mechanism": view.mechanism, "promise": str(view.guarantee)}
                    for view in release.published
                ],
                "columns": {column: domain.to_spec() for column, domain in self.columns.items()},
            },
            "names": asdict(self.names),
            "missing": self.missing,
            "budget": self.budget and self.budget.to_json(release),
            "audit": self.audit and asdict(self.audit) | {"verdict": self.audit.verdict},
            "registry": registry_entry(self),
            "nist": [asdict(section) for section in nist_sections(self)],
            "dataset": {
                "front_matter": front_matter(self),
                "sections": {title: list(lines) for title, lines in dataset_sections(self).items()},
            },
        }
        return to_plain(entries)  # type: ignore[return-value]

    def to_markdown(self, paper: Paper | None = None) -> str:
        """One paper, or all of them under the front matter of the dataset card."""
        wanted = PAPERS if paper is None else [check_choice(paper, "paper", get_args(Paper))]
        made = {"dataset": _dataset_markdown, "registry": _registry_markdown, "nist": _nist_markdown}
        return "\n\n".join(made[each](self) for each in wanted) + "\n"

    def files(self) -> dict[str, str]:
        """Every paper as a file: its name, and its text."""
        return {
            "README.md": self.to_markdown("dataset"),
            "registry.yaml": to_yaml(registry_entry(self)) + "\n",
            "registry.md": self.to_markdown("registry"),
            "nist-800-226.md": self.to_markdown("nist"),
            "card.json": json.dumps(self.to_json(), ensure_ascii=False, indent=2, allow_nan=False) + "\n",
        }

    @cached_property
    def checksum(self) -> str | None:
        """The checksum of the file; None for a release of a class that no file can hold."""
        if self.file is not None:
            return self.file.checksum
        from partita.public.file import Stored

        with suppress(InvalidRelease):
            return str(Stored.of(self.release).spec["checksum"])
        return None

    @cached_property
    def columns(self) -> dict[str, Domain]:
        """Every column that the release is about, with its public domain."""
        pairs = [pair for view in self.release.published for pair in domains_of(view).items()]
        return dict(pairs) | find_names(self.release.published)

    @property
    def missing(self) -> list[str]:
        """The names for which a placeholder stands."""
        optional = {"sector", "purpose"} | ({"title"} if self.release.provenance.dataset else set())
        return [name for name, given in asdict(self.names).items() if given is None and name not in optional]

    @property
    def title(self) -> str:
        """The name of the data product, in Markdown."""
        dataset = self.release.provenance.dataset
        return prose(dataset) if dataset and self.names.title is None else self.names.shown("title")

    @cached_property
    def errors(self) -> list[str]:
        """How far answers may be from the truth, in sentences of Markdown."""
        release = self.release
        bound = release.error(_BETA) if release.views else None
        return [_sentence(line, "Error: ") for line in error_words(release.published, _BETA, bound)]

    @cached_property
    def rules(self) -> list[str]:
        """By which rules rows were counted, in sentences of Markdown."""
        release = self.release
        found = rule_words(release.published, self.guarantee, release.provenance)
        return [_sentence(line, "Rule: ") for line in found]

    @cached_property
    def rows(self) -> str | None:
        """How many rows were counted, by the release, with a 95% interval; None if that was not released."""
        release = self.release
        if not release.views or not all(map(_counts_everybody, release.views)):
            return None
        counted = release.count()
        low, high = counted.interval()
        return (
            f"about {figure(max(0.0, counted.value))} (95% interval: {figure(max(0.0, low))} to "
            f"{figure(high)})"
        )

    @cached_property
    def own(self) -> tuple[str, ...]:
        """Mechanisms that are not Partita's: their guarantee is the publisher's word."""
        known = {name for kind in ReleaseKind.kinds().values() for name in kind.papers}
        return tuple(name for name in self.mechanisms if name not in known)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms of all views, each once."""
        return tuple(dict.fromkeys(view.mechanism for view in self.release.published))

    @property
    def ours(self) -> bool:
        """Whether any noise was drawn by a mechanism of Partita."""
        return len(self.own) < len(self.mechanisms)

    @property
    def promise(self) -> str:
        """The promise in Markdown, and whose word it is where it is not that of Partita's mechanisms."""
        names = ", ".join(map(code, self.own))
        words = f" **For {names} this is the publisher's word: it is no mechanism of Partita.**" * bool(
            self.own
        )
        return f"{prose(promise_words(self.guarantee))}{words}"


def _sentence(line: str, head: str) -> str:
    """A line of a report as Markdown, without the word that says what kind of line it is."""
    said = line.removeprefix(head).removesuffix(HINT)
    return prose(said[0].upper() + said[1:]) + HINT * line.endswith(HINT)


def _counts_everybody(view: object) -> bool:
    return not isinstance(view, View) or bool(view.special_cells)


# --- Markdown ----------------------------------------------------------------------------------

_SOURCES: Final[Mapping[Source, str]] = {
    "release": "release file",
    "ledger": "ledger",
    "audit": "audit report",
    "library": "how Partita works",
    "publisher": "the publisher's word",
    "nobody": "not known from these files",
}
"""What an answer follows from, in words."""

_LEVELS: Final = {
    "top": "top of the pyramid",
    "middle": "middle of the pyramid",
    "bottom": "bottom of the pyramid",
    "all": "all levels",
}


def _markdown(card: Card, paper: Paper, sections: Mapping[str, Iterable[str]]) -> str:
    """A paper: its title, what it is made of, and its sections."""
    used = ["the release", *["its ledger"] * (card.budget is not None)]
    used += ["an audit report"] * (card.audit is not None)
    missing = " Names in brackets were not given." * bool(card.missing)
    origin = f"Made by Partita from {', '.join(used)}.{missing}"
    parts = [f"# {PAPERS[paper]}: {card.title}", origin]
    for title, lines in sections.items():
        parts += [f"## {title}", "\n".join(lines)]
    return "\n\n".join(parts)


def _nist_markdown(card: Card) -> str:
    """The sheet, each answer with what it follows from."""
    sections = {
        f"{section.title} ({_LEVELS[section.level]})": [
            f"- **{fact.question}.** {fact.answer} *({_SOURCES[fact.source]})*" for fact in section.facts
        ]
        for section in nist_sections(card)
    }
    return _markdown(card, "nist", sections)


def _registry_markdown(card: Card) -> str:
    """The flow of the data, the budget over time, and the entry field by field."""
    deployment = registry_entry(card)["deployment"]
    flow = [f"{number}. {step}" for number, step in enumerate(data_flow(card), start=1)]
    sections: dict[str, Iterable[str]] = {"Data flow": flow, "Budget over time": _budget_lines(card)}
    for name, entries in cast("Mapping[str, Mapping[str, object]]", deployment).items():
        sections[code(name)] = [_entry(field, shown) for field, shown in _shown(entries)]
    return _markdown(card, "registry", sections)


def _shown(entries: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The fields of a part of the entry, those of a part of it one by one."""
    for name, value in entries.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", text) for inner, text in _shown(value))
        elif isinstance(value, list):
            parts = (each.values() if isinstance(each, Mapping) else [each] for each in value)
            yield name, "; ".join(", ".join(map(str, part)) for part in parts)
        else:
            yield name, str(value)


def _entry(field: str, text: str) -> str:
    """A field; the lines of a longer one are a list of their own."""
    first, *more = (line for line in text.split("\n") if line)
    head = f"- {code(field)}:"
    if first.startswith("- "):
        first, more = "", [first, *more]
    return "\n".join([f"{head} {first}".rstrip(), *(f"    {line}" for line in more)])


def _budget_lines(card: Card) -> list[str]:
    """Every debit of the dataset in order; what is known without a ledger."""
    history = card.budget
    if history is None:
        wanted = ("Debit", "Releases before and after")
        return [f"- {fact.question}: {fact.answer}" for fact in budget_facts(card) if fact.question in wanted]
    own = history.numbers_of(card.release)
    rows = [
        (
            f"{each.number}{' (this release)' * (own == (each.number,))}",
            prose(each.day),
            code(each.what),
            "" if each.part is None else f"{code(each.part[0])} = {code(each.part[1])}",
            prose(each.charged.text),
            prose(each.spent.text),
            prose(each.state),
        )
        for each in history.debits
    ]
    heads = "entry", "day", "what", "part", "charged", "spent after it", "state"
    spent, left = prose(history.spent.words), prose(history.left.text)
    balance = f"Of {prose(history.total.words)} in all, {spent} are spent and {left} are left."
    return [table(heads, rows), "", balance] if rows else [balance]


# --- the dataset card --------------------------------------------------------------------------


def front_matter(card: Card) -> dict[str, object]:
    """What sites that list datasets read, in their own words, and the promise."""
    guarantee, names, origin = card.guarantee, card.names, card.release.provenance
    return {
        "pretty_name": names.title or origin.dataset or "[title]",
        "license": names.license or "[license]",
        "tags": ["differential-privacy", "statistics", "partita"],
        "annotations_creators": ["no-annotation"],
        "size_categories": ["n<1K"],  # the file is a table of one row
        "differential_privacy": {
            "variant": variant(guarantee),
            "epsilon": float_above(guarantee.epsilon),
            "delta": float_above(guarantee.delta),
            **({"rho": float_above(guarantee.rho)} if guarantee.rho else {}),
            "neighbors": guarantee.neighbors,
            "unit": guarantee.unit,
            "contributions": guarantee.contributions,
            "mechanisms_of_the_publisher": list(card.own),
            "recorded_in_ledger": origin.recorded,
            "checksum": card.checksum,
        },
    }


def dataset_sections(card: Card) -> dict[str, list[str]]:
    """The sections of a dataset card, each with its lines."""
    return {
        "Description": _description_lines(card),
        "Uses": [
            f"- Intended: {purpose(card)}",
            "- Not fit for: decisions about single people, exact figures, joining with rows of people. Small "
            "counts may be noise alone; read the interval of each answer.",
        ],
        "Structure": _structure_lines(card),
        "Source data": _source_lines(card),
        "Accuracy": [f"- {line}" for line in card.errors] or ["No bound is stated in the file."],
        "Rules of counting": [f"- {line}" for line in card.rules],
        "Bias, risks and limitations": [
            f"- **{fact.question}.** {fact.answer}" for fact in limit_facts(card)
        ],
        "Citation": _citation_lines(card),
    }


def _description_lines(card: Card) -> list[str]:
    names = card.names
    return [
        description(card),
        "",
        f"- Published by: {names.shown('organization')}",
        f"- Contact: {names.shown('contact')}",
        f"- License: {names.shown('license')}",
        f"- Published on: {prose(card.release.provenance.day)}",
        f"- Promise: {card.promise}",
    ]


def _structure_lines(card: Card) -> list[str]:
    views = [
        (code(name_view(view)), code(view.mechanism), prose(price_words(view)))
        for view in card.release.published
    ]
    columns = [(code(name), code(describe_domain(domain, _DOMAIN))) for name, domain in card.columns.items()]
    return [
        "One Parquet file of one row: its columns are lists of integers, and it has a specification in "
        "JSON. `partita query` and `partita info` read it, as does any program that reads Parquet.",
        "",
        table(("what was released", "mechanism", "promise"), views),
        "",
        table(("column", "may hold"), columns),
    ]


def _source_lines(card: Card) -> list[str]:
    dataset = card.release.provenance.dataset
    return [
        f"- Dataset: {code(dataset) if dataset else 'not named in the file'}",
        *([] if card.rows is None else [f"- Rows that were counted: {card.rows}"]),
        "- How it was collected, and who is in it: not known from the file",
        "- Annotations: none",
        "- Personal data: the file has noisy statistics and no row of anybody. The promise above bounds "
        "what it tells about one "
        f"{card.guarantee.unit}.",
    ]


def _citation_lines(card: Card) -> list[str]:
    """BibTeX in an indented block, which no line of it can end."""
    return [f"    {line}" if line else "" for line in card.release.citation().strip().split("\n")]


def _dataset_markdown(card: Card) -> str:
    """The dataset card under its front matter."""
    return f"---\n{to_yaml(front_matter(card))}\n---\n\n{_markdown(card, 'dataset', dataset_sections(card))}"
