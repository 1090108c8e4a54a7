"""The entry of a release for a public registry of deployments of differential privacy.

The fields are those of the schema of the Differential Privacy Deployments Registry
(`schemas/deployments-schema.yaml` of github.com/opendp/deployments-registry-data). Texts are Markdown, which
is what the registry shows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from partita.public.base import describe_domain
from partita.public.card_sheet import budget_facts, limit_facts, unit_facts, variant
from partita.public.markup import code, float_above, prose
from partita.public.report import contents, find_names, view_words

if TYPE_CHECKING:
    from partita.public.card import Card

_DOMAIN: Final = 100  # characters of a domain, as in a report


def registry_entry(card: Card) -> dict[str, object]:
    """The entry, field by field."""
    return {
        "url_slug": _slug(card),
        "deployment": {
            "basic": _basic(card),
            "dp_variant": {
                "variant_name": variant(card.guarantee),
                "data_domain": _data_domain(card),
                "unprotected_quantities": _unprotected(card),
            },
            "privacy_loss": _privacy_loss(card),
            "deployment_model": _deployment_model(card),
            "implementation": _implementation(card),
            "administrative": {
                "status": "Draft",
                "registry_authors": [card.names.shown("author")],
                "tier": 3,
            },
        },
    }


def _slug(card: Card) -> str:
    named = card.names.title or card.release.provenance.dataset or "release"
    words = re.findall("[a-z0-9]+", named.lower())
    return "-".join([*(words or ["release"]), card.release.provenance.day[:4]])


def _basic(card: Card) -> dict[str, object]:
    names = card.names
    curator = {
        "data_curator_name": names.shown("organization"),
        "data_curator_type": names.shown("organization_type"),
    }
    return {
        "name": card.title,
        "data_curators": [curator],
        "description": description(card),
        "intended_use": purpose(card),
        "data_product_type": "Summary statistics",
        "data_product_region": names.shown("region"),
        **({} if names.sector is None else {"data_product_sector": names.sector}),
        "publication_date": card.release.provenance.day,
    }


def description(card: Card) -> str:
    """What was published, in two sentences."""
    origin = card.release.provenance
    dataset = f" of the dataset {code(origin.dataset)}" if origin.dataset else ""
    part = ""
    if origin.part is not None:
        part = f" Only rows where {code(origin.part[0])} is {code(origin.part[1])} are counted."
    return (
        f"A release{dataset} under differential privacy, with {_held(card)}.{part} One file that anybody "
        "may copy and ask without limit; every answer comes with its error."
    )


def purpose(card: Card) -> str:
    """What it is for, in the publisher's words; what it can answer, where these are missing."""
    if card.names.purpose is not None:
        return prose(card.names.purpose)
    return f"The publisher has not stated a purpose. The file answers questions from {_held(card)}."


def _held(card: Card) -> str:
    return prose(" and ".join(contents(card.release.published)))


def _data_domain(card: Card) -> str:
    listed = "\n".join(
        f"- {code(name)}: {code(describe_domain(each, _DOMAIN))}" for name, each in card.columns.items()
    )
    return (
        "Tables with any number of rows and any value in these columns; the rules of counting say what "
        f"becomes of a value that is missing, unreadable or not declared. Declared is:\n\n{listed}"
    )


def _unprotected(card: Card) -> str:
    rows = (
        f" So is the number of {card.guarantee.unit}s: neighbours have equally many."
        * card.guarantee.same_rows
    )
    return (
        f"{'By the word of the publisher, none' if card.own else 'None'} of the statistics: every "
        "number of the file that depends on the table has noise. Public and not hidden are the columns, "
        "their declared bounds and labels, epsilon, the name of the dataset, the day, and that the "
        f"release was made.{rows}"
    )


def _privacy_loss(card: Card) -> dict[str, object]:
    guarantee, counted = card.guarantee, _units(card)
    given = {"rho": guarantee.rho, "epsilon": guarantee.epsilon, "delta": guarantee.delta}
    return {
        "privacy_unit": guarantee.unit.capitalize(),
        "privacy_unit_details": " ".join(fact.answer for fact in unit_facts(card)),
        **({} if counted is None else {"number_of_privacy_units": counted}),
        "privacy_parameters": {name: float_above(number) for name, number in given.items() if number},
        "privacy_parameters_details": f"Exactly: {card.promise}",
    }


def _units(card: Card) -> int | None:
    """About how many units there are, by the release, where one row of each counts."""
    if card.rows is None or card.guarantee.contributions > 1:
        return None
    return max(0, round(card.release.count().value))


def _deployment_model(card: Card) -> dict[str, object]:
    budget = "\n".join(f"- {fact.question}: {fact.answer}" for fact in budget_facts(card))
    return {
        "model_name": "Central",
        "model_name_details": "The publisher holds the rows and adds the noise.",
        "trust_assumptions": (
            "The publisher is trusted with the rows, to have taken no public parameter from them, and to "
            "have run the library as it is. Readers are not trusted: they may know everything but one "
            "unit, and may join their answers."
        ),
        "actors": (
            f"- Publisher: {card.names.shown('organization')}; contact: {card.names.shown('contact')}\n"
            "- Readers: whoever gets the file\n"
            f"- Protected: every {card.guarantee.unit} in the table"
        ),
        "release_type": "One release",
        "release_type_details": f"This file was made once. Its cost, and other releases:\n\n{budget}",
        "data_source_type": "Static",
        "data_source_type_details": (
            "The release was computed once, from one state of the table. Whether the table grows is not "
            "in the file."
        ),
        "access_type": "Non-interactive",
        "access_type_details": "Readers ask the published file. No question reaches the table.",
    }


def data_flow(card: Card) -> list[str]:
    """What happens to the rows, in order."""
    origin, guarantee = card.release.provenance, card.guarantee
    names = ", ".join(map(code, card.mechanisms))
    steps = [f"Rows lie with the publisher, {card.names.shown('organization')}, who is trusted with them."]
    if origin.part is not None:
        steps.append(f"Only rows where {code(origin.part[0])} is {code(origin.part[1])} are counted.")
    if origin.person is not None:
        most = guarantee.contributions
        steps.append(
            f"Of each person, by the column {code(origin.person)}, at most {most} row{'s' * (most > 1)} "
            f"{'are' if most > 1 else 'is'} kept in each view, by a public rule."
        )
    debited = "The ledger is debited, before any noise is drawn."
    return [
        *steps,
        "The rows are counted by the declared cells. Exact counts are never stored with the release.",
        debited if origin.recorded else "No ledger is debited: the cost is not recorded.",
        f"Noise is added, by {names}.",
        f"One file is written, on {prose(origin.day)}. No exact count is in it.",
        "Anybody may copy the file. Answers are computed from it alone, and cost no privacy.",
    ]


def _implementation(card: Card) -> dict[str, object]:
    release = card.release
    rules = "\n".join(f"- {line}" for line in card.rules)
    found = find_names(release.published)
    made = "\n".join(f"- {prose(view_words(view, found))}" for view in release.published)
    why = dict.fromkeys(prose(view.why) for view in release.published if view.why)
    limits = "\n".join(f"- {fact.question}: {fact.answer}" for fact in limit_facts(card))
    return {
        "preprocessing_and_hyperparameter_tuning": (
            "Whether somebody looked at the rows to choose columns, bounds, labels or epsilon is not in "
            "the file, and no privacy loss was accounted for it. Rows were counted by these "
            f"rules:\n\n{rules}"
        ),
        "mechanisms": (
            f"Partita {prose(release.provenance.version)}:\n\n{made}\n- Noise: {_noise(card)}\n"
            "- Timing: not protected; nobody but the publisher may start a release or time it"
        ),
        "composition": " ".join(fact.answer for fact in budget_facts(card)),
        "post_processing": (
            "Answers, intervals, quantiles and made-up rows are computed from the noisy numbers of the "
            "file. Nothing reads rows again."
        ),
        "justification": " ".join([*why, "Why this epsilon was chosen is not in the file."]),
        "utility": "\n".join(f"- {line}" for line in card.errors) or "No bound is stated in the file.",
        "additional_information": (
            f"- Checksum of the release: {code(card.checksum) if card.checksum else 'none'}\n"
            f"- Made with Partita {prose(release.provenance.version)}\n{limits}"
        ),
    }


def _noise(card: Card) -> str:
    """How noise is made, as far as Partita makes it."""
    ours = "integers from exact laws; no floating-point number touches a value before the release"
    theirs = f"that of {', '.join(map(code, card.own))} is the publisher's, and not known from the file"
    return "; ".join([ours] * card.ours + [theirs] * bool(card.own))
