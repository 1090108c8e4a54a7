"""The papers of a release: each sentence follows from it, and no name of a stranger becomes Markdown."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pytest

import partita as pt
from partita.audit.engine import audit
from partita.domain import Category
from partita.errors import InvalidParameter, InvalidRelease
from partita.guarantee import Guarantee
from partita.public.card import Card
from partita.public.card_sources import (
    AuditEvidence,
    BudgetAmount,
    BudgetDebit,
    BudgetHistory,
    CardNames,
    NameTexts,
)
from partita.public.file import FileFacts, load
from partita.public.markup import code, prose, to_yaml
from partita.public.views import View
from partita.publish.direct import import_view
from tests.card_releases import HOSTILE, hostile, release
from tests.public.file import specimens

ROOT: Final = Path(__file__).resolve().parents[3]
FIXTURES: Final = sorted((ROOT / "tests" / "fixtures" / "version-0.1").glob("*.release.parquet"))
PAGE: Final = ROOT / "docs" / "how-to" / "papers-for-a-review-board.md"
KINDS: Final = (
    *specimens.MECHANISMS,
    *specimens.BOX_MECHANISMS,
    *specimens.SUM_MECHANISMS,
    *specimens.QUERY_MECHANISMS,
)


def answers(card: Card) -> dict[str, str]:
    """The sheet: what it says to each question, the last where there are several."""
    sections: Any = card.to_json()["nist"]
    return {fact["question"]: fact["answer"] for section in sections for fact in section["facts"]}


def said(card: Card) -> str:
    """All of the sheet in one text."""
    return " ".join(answers(card).values())


# --- every release -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_papers(kind: str) -> None:
    """All files are text that UTF-8 can write, and name the mechanism and the promise."""
    made = specimens.release(kind).card()
    files = made.files()

    assert set(files) == {"README.md", "registry.yaml", "registry.md", "nist-800-226.md", "card.json"}
    for text in files.values():
        assert text.encode().endswith(b"\n")
    assert json.loads(files["card.json"]) == json.loads(json.dumps(made.to_json()))
    for view in made.release.published:
        assert code(view.mechanism) in files["nist-800-226.md"]
    assert "epsilon" in files["README.md"]


@pytest.mark.spread(8)
@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name.partition(".")[0])
def test_releases_of_earlier_versions_have_papers(path: Path) -> None:
    """A card is made of what their files say."""
    loaded = load(path)

    assert loaded.card().to_markdown().count("\n# ") == 3
    assert loaded.card().to_json()["release"]["provenance"]["day"] == loaded.provenance.day  # type: ignore[index]


def test_papers_are_a_function_of_the_release() -> None:
    """The same release has the same papers, byte for byte."""
    assert release().card().files() == release().card().files()


def test_a_release_without_a_guarantee_has_no_card() -> None:
    """Injected noise protects nobody, and no form may say otherwise."""
    [view] = release().views
    assert isinstance(view, View)
    bare = replace(view, axis=replace(view.axis, guarantee=None))  # type: ignore[type-var]
    unsafe = replace(release(), views=(bare,), guarantee=None)
    with pytest.raises(InvalidRelease, match=r"guarantee is none: .* protects nobody"):
        unsafe.card()


def test_one_paper_can_be_asked_for() -> None:
    """Each by its name; another name is refused."""
    made = release().card()
    together = made.to_markdown()

    for paper, title in (("dataset", "Dataset card"), ("registry", "Registry"), ("nist", "Sheet along")):
        alone = made.to_markdown(paper)  # type: ignore[arg-type]
        assert alone.strip() in together
        assert f"# {title}" in alone
    with pytest.raises(InvalidParameter, match="paper must be one of"):
        made.to_markdown("form")  # type: ignore[arg-type]


# --- what follows from what --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "there", "gone"),
    [
        ({}, "Not recorded. No ledger was debited", "Debited in a ledger"),
        ({"recorded": True, "dataset": "people"}, "Debited in a ledger", "Not recorded"),
        ({"person": "id"}, "Rows without a readable value in `id`", "may lose k times epsilon"),
        ({}, "somebody with k rows may lose k times epsilon", "Rows without a readable value"),
        ({"person": "id"}, "`age`; `id`, to tell persons apart.", "to choose rows"),
        ({"person": "id"}, "(user-level protection)", "(event-level protection)"),
        ({}, "(unbounded differential privacy)", "(bounded differential privacy)"),
        ({"part": ("town", "Bari")}, "Only rows where `town` is `Bari` were counted", "`Rome`"),
        ({"options": (("branching", "4"),)}, "`branching` = `4`.", "`branching` = `16`"),
        ({"mechanism": "Mine"}, "`Mine` is no mechanism of Partita", "`laplace` is no mechanism"),
        ({}, "Published algorithms: SU", "is no mechanism of Partita"),
    ],
)
def test_the_sheet_follows_the_release(changes: dict[str, Any], there: str, gone: str) -> None:
    """A sentence is there if what it says is so, and only then."""
    guarantee = (
        Guarantee(epsilon=1, unit="person", contributions=3) if "person" in changes else Guarantee(epsilon=1)
    )
    text = said(release(guarantee=guarantee, **changes).card())

    assert there in text
    assert gone not in text


@pytest.mark.parametrize(
    ("guarantee", "variant", "parameters", "sentence"),
    [
        (Guarantee(epsilon="1/3"), "Pure DP", {"epsilon"}, "at most 58.3% sure"),
        (
            Guarantee(epsilon=1, delta="1e-6"),
            "Approximate DP",
            {"epsilon", "delta"},
            "at most 1e-6 the factor",
        ),
        (
            Guarantee.concentrated(rho="1/2"),
            "Zero-concentrated DP",
            {"rho", "epsilon", "delta"},
            "rho 1/2. From it",
        ),
        (
            Guarantee(epsilon=1, neighbors="change-one"),
            "Pure DP",
            {"epsilon"},
            "which of two values one given row",
        ),
        (Guarantee(epsilon=1).in_rho(), "Pure DP", {"epsilon", "rho"}, "It also has rho 1/2"),
    ],
)
def test_the_promise_is_stated_truly(
    guarantee: Guarantee, variant: str, parameters: set[str], sentence: str
) -> None:
    """Variant, parameters that are not below the exact ones, and what they mean."""
    made = release(guarantee=guarantee).card()
    deployment: Any = made.to_json()["registry"]["deployment"]  # type: ignore[index]
    given = deployment["privacy_loss"]["privacy_parameters"]

    assert deployment["dp_variant"]["variant_name"] == variant
    assert set(given) == parameters
    for name, number in given.items():
        assert Fraction(number) >= getattr(guarantee, name) > Fraction(math.nextafter(number, 0))
    assert sentence in said(made)
    assert prose(str(guarantee)) in made.to_markdown()


def test_equal_numbers_of_rows_are_not_hidden() -> None:
    """Under change-one of a row, the papers say that the number of rows is public."""
    hidden = release().card().to_markdown()
    public = release(guarantee=Guarantee(epsilon=1, neighbors="change-one")).card().to_markdown()

    assert "neighbours have equally many" not in hidden
    assert public.count("neighbours have equally many") == 3


def test_nothing_is_said_of_noise_that_is_not_ours() -> None:
    """Of a mechanism of the publisher's own the papers state whose word its promise is, and no more."""
    ours, theirs = release().card(), release(mechanism="Mine").card()

    for made, held in ((ours, False), (theirs, True)):
        text = made.to_markdown()
        assert ("**For `Mine` this is the publisher's word" in text) is held
        assert ("no floating-point number touches" in text) is not held
        assert ("AES-256-CTR" in text) is not held
        assert ("Every mechanism of Partita has a proof" in text) is not held


def test_counts_of_another_library_are_called_that() -> None:
    """Whose word the guarantee is stands beside it, and the source is named, be it Markdown or not."""
    ages: dict[str, pt.Domain] = {"age": pt.Integer(0, 2)}
    made = import_view([4, 0, 7], ages, scale=1, guarantee=Guarantee(epsilon=1), source="Other|`1`").card()

    assert "**For `imported` this is the publisher's word" in answers(made)["What is promised"]
    assert "declared by the caller, not checked by Partita" in said(made)
    assert "Imported from Other&#124;&#96;1&#96;" in said(made)
    assert "AES-256-CTR" not in made.to_markdown()
    assert "By the word of the publisher, none of the statistics" in made.to_markdown("registry")


def test_a_large_epsilon_is_called_large() -> None:
    """Above five the sheet says that the number promises little."""
    with pytest.warns(pt.PrivacyWarning):
        large = Guarantee(epsilon=6)

    assert "Size of epsilon" in answers(release(guarantee=large).card())
    assert "Size of epsilon" not in answers(release().card())


def test_the_entry_counts_units_only_where_rows_are_units() -> None:
    """With several rows of a person nobody knows how many persons there are."""

    def loss(made: Card) -> Any:
        return made.to_json()["registry"]["deployment"]["privacy_loss"]  # type: ignore[index]

    persons = Guarantee(epsilon=1, unit="person", contributions=3)
    assert loss(release().card())["number_of_privacy_units"] == round(release().count().value)
    assert "number_of_privacy_units" not in loss(release(guarantee=persons, person="id").card())


def test_columns_and_domains_are_listed() -> None:
    """Each as it was declared; of many labels the first and the last."""
    labels = Category([f"label {number}" for number in range(40)])
    text = release(domain=labels, column="town").card().to_markdown("dataset")

    assert "| `town` | `Category of 40 labels: 'label 0', 'label 1', 'label 2', ..., 'label 39'` |" in text


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        ({"wants": ["median of age", "total of age by town"]}, "totals"),
        ({"by": "age", "mechanism": "quantiles", "quantiles": "1/2"}, "quantiles"),
        ({"by": ["town"], "sums": ["age"], "mechanism": "group-means"}, "group-means"),
        ({"queries": "ranges(age, (0, 3), (4, 9)) * marginal(town)", "delta": "1e-6"}, "queries"),
    ],
)
def test_releases_without_counts_have_papers(request_: dict[str, Any], name: str) -> None:
    """Wants, quantiles, means and queries: what cannot be counted is left out."""
    rows = {"age": [3, 4, 5, 6], "town": ["a", "b", "a", "b"]}
    schema: dict[str, pt.Domain] = {"age": pt.Integer(0, 9), "town": Category(["a", "b"])}
    made = pt.publish(rows, schema, epsilon=1, **request_).card()

    assert name in made.to_markdown()
    assert ("Rows that were counted" in answers(made)) is bool(made.release.views)
    assert set(made.files()) == set(release().card().files())


def test_a_model_says_what_it_infers() -> None:
    """A table release states how many pairs of columns it measured."""
    made = specimens.release("graph")
    [view] = made.views
    measured = len(view.boxes.fit.pairs)  # type: ignore[union-attr]

    assert f"{measured} of 6 pairs of columns were measured" in said(made.card())


def test_the_signature_is_stated_as_it_is() -> None:
    """Not signed, signed and not checked, checked; of a release in memory nothing is known."""

    def vouches(file: FileFacts | None) -> str:
        return answers(release().card(file=file))["Who vouches for the file"]

    facts = FileFacts(checksum="c" * 64, sha256="d" * 64)
    signed = replace(facts, signed_by="ab" * 32)
    assert "not known" in vouches(None)
    assert vouches(facts) == "Nobody: the file is not signed."
    assert "**not checked**" in vouches(signed)
    assert f"`{'ab' * 32}`" in vouches(signed)
    assert "was checked when this card was made" in vouches(replace(signed, verified=True))
    assert f"SHA-256 of all bytes: `{'d' * 64}`" in said(release().card(file=facts))


# --- names -------------------------------------------------------------------------------------


def test_names_stand_where_they_belong_and_placeholders_for_the_others() -> None:
    """Nothing but names is asked for; what is missing is listed."""
    full: NameTexts = {
        "title": "Stays",
        "organization": "Hospital",
        "organization_type": "Government",
        "contact": "dpo@example.org",
        "author": "Office",
        "license": "cc-by-4.0",
        "region": "Italy",
        "sector": "Healthcare",
        "purpose": "Planning",
    }
    given, none = release().card(**full), release().card()

    assert given.missing == []
    assert re.findall(r"\[[a-z ]+\]", given.to_markdown()) == []
    for name in full.values():
        assert str(name) in given.to_markdown()
    assert none.missing == ["title", *list(full)[1:7]]
    assert set(re.findall(r"\[[a-z ]+\]", none.to_markdown())) == {
        f"[{name.replace('_', ' ')}]" for name in none.missing
    }


@pytest.mark.parametrize(
    "names",
    [
        *({"title": ""}, {"title": " x"}, {"contact": "a\nb"}, {"license": 3}, {"purpose": "x" * 501}),
        *({"sector": "Space"}, {"organization_type": "government"}),
    ],
)
def test_wrong_names_are_refused(names: dict[str, Any]) -> None:
    """The error names the option, the rule and what to do."""
    [name] = names
    with pytest.raises(InvalidParameter, match=rf"{name} must be .*; "):
        CardNames(**names)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_strangers_are_not_markdown(name: str) -> None:
    """Whatever a file calls its dataset, columns, labels, ids or mechanisms, the form of the papers stays."""
    plain = hostile("name").card(title="name", organization="name")
    shown = name if name.isprintable() else "name"
    made = hostile(name).card(title=shown, organization=shown)

    for paper in ("dataset", "registry", "nist"):
        ours, theirs = (bare(each.to_markdown(paper)) for each in (made, plain))
        assert [form(line) for line in ours] == [form(line) for line in theirs]
        assert [line for line in ours if re.search(r"[<`~$]|\*\*\*|\]\(|\{\{|://", line)] == []
        assert [line for line in ours if not line.isprintable()] == []


def bare(text: str) -> list[str]:
    """The lines of Markdown without front matter and citation, and without what is in the type of code."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    text = re.sub(r"\n## Citation\n\n(    .*\n|\n)*", "\n", text)
    return [re.sub("`[^`]*`", "code", line) for line in text.split("\n")]


def form(line: str) -> tuple[str, int, int]:
    """What Markdown makes of a line: how it begins, and its cells and bold words."""
    begins = re.match(r"[-\s#>*|+=\d.]*", line)
    assert begins is not None
    return begins[0].rstrip("*").strip(), line.count("|"), line.count("**")


@pytest.mark.parametrize("name", HOSTILE)
def test_json_holds_names_as_they_are(name: str) -> None:
    """In the entries that are not Markdown."""
    record: Any = json.loads(json.dumps(hostile(name).card().to_json()))

    assert record["release"]["provenance"]["dataset"] == name
    assert list(record["release"]["columns"]) == [name]


def test_yaml_is_quoted() -> None:
    """No text is read as a number, a truth value, a key, a comment or the end of a document."""
    texts = [
        "no",
        "1e3",
        "a: b",
        "# c",
        "---",
        "",
        " x",
        "'",
        '"',
        "\\",
        "a\nb",
        "a\n\nb",
        "\na",
        "a\n",
        "\u2028",
    ]
    for text in texts:
        shown = to_yaml({"key": text})
        block = shown.startswith("key: |-\n  ")
        assert block or shown.startswith('key: "')
        if block:
            assert "\n".join(line[2:] for line in shown.splitlines()[1:]) == text
        else:
            assert json.loads(shown.removeprefix("key: ")) == text


# --- the ledger --------------------------------------------------------------------------------


def amount(epsilon: object) -> BudgetAmount:
    return BudgetAmount(epsilon=Fraction(str(epsilon)), delta=Fraction(0), text=f"epsilon {epsilon}")


def debit(number: int, **changes: Any) -> BudgetDebit:
    """A debit of what `release` costs, on its day."""
    facts: dict[str, Any] = {
        "day": "2026-11-15",
        "what": "age",
        "part": None,
        "stated": Guarantee(epsilon=1),
        "charged": amount(1),
        "spent": amount(number),
        "state": "done",
    }
    return BudgetDebit(number=number, **facts | changes)


def history(*debits: BudgetDebit, dataset: str = "people") -> BudgetHistory:
    """The ledger of a dataset with a total of 5."""
    return BudgetHistory(
        dataset=dataset,
        neighbors="add-remove",
        unit="row",
        contributions=None,
        constant=(),
        total=amount(5),
        spent=amount(len(debits)),
        left=amount(5 - len(debits)),
        debits=debits,
    )


PAID: Final = {"dataset": "people", "recorded": True}


def test_every_debit_is_in_the_table() -> None:
    """With its day, its charge and what was spent after it; the entry of this release is marked."""
    book = history(debit(1, day="2026-10-01", what="town"), debit(2), debit(3, stated=Guarantee(epsilon=2)))
    made = release(**PAID).card(budget=book)
    table = [line for line in made.to_markdown("registry").splitlines() if line.startswith("| ")]

    assert table[1:] == [
        "| 1 | 2026-10-01 | `town` |  | epsilon 1 | epsilon 1 | done |",
        "| 2 (this release) | 2026-11-15 | `age` |  | epsilon 1 | epsilon 2 | done |",
        "| 3 | 2026-11-15 | `age` |  | epsilon 1 | epsilon 3 | done |",
    ]
    assert "Of epsilon 5 in all, epsilon 3 are spent and epsilon 2 are left." in made.to_markdown("registry")
    assert "3 debits, together epsilon 3. Left: epsilon 2." in said(made)
    assert made.to_json()["budget"]["of_this_release"] == [2]  # type: ignore[index]


def test_an_amount_of_rho_is_also_stated_as_epsilon() -> None:
    """Rounded up, at the delta that guarantees in rho have by default."""
    rho = BudgetAmount(epsilon=Fraction(0), delta=Fraction(0), text="rho 1/8", rho=Fraction(1, 8))
    book = replace(history(debit(1)), spent=rho)
    made = release(**PAID).card(budget=book)

    assert "together rho 1/8 (epsilon 3.059 at delta 1e-9)" in said(made)
    assert made.to_json()["budget"]["spent"] == {"rho": "1/8"}  # type: ignore[index]
    assert replace(rho, rho=Fraction(0), text="rho 0").words == "rho 0"


def test_debits_that_cannot_be_told_apart_are_both_named() -> None:
    """A ledger does not say which file an entry paid for."""
    made = release(**PAID).card(budget=history(debit(1), debit(2)))

    assert "one of the entries 1, 2" in said(made)
    assert "(this release)" not in made.to_markdown()


def test_a_ledger_says_so_where_nothing_was_recorded() -> None:
    """Its debits are shown, and that this release is none of them."""
    made = release(dataset="people").card(budget=history(debit(1)))

    assert "Not recorded. No ledger was debited for this release" in said(made)
    assert "1 debit, together epsilon 1." in said(made)


@pytest.mark.parametrize(
    ("book", "rule"),
    [
        (history(debit(1), dataset="others"), "must be about the dataset of the release"),
        (history(), "must have the debit of this release"),
        (history(debit(1, day="2026-11-14")), "must have the debit of this release"),
        (history(debit(1, stated=Guarantee(epsilon=2))), "must have the debit of this release"),
        (history(debit(1, part=("town", "Bari"))), "must have the debit of this release"),
    ],
)
def test_another_ledger_is_refused(book: BudgetHistory, rule: str) -> None:
    """One of another dataset, and one that did not pay for this release."""
    with pytest.raises(InvalidParameter, match=rule):
        release(**PAID).card(budget=book)


# --- the audit ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """A report about the mechanism of these releases."""
    return audit(only=["Laplace"], depth="quick").record()


TESTED: Final = {"laplace": "Laplace"}


def test_evidence_is_that_of_the_mechanisms(report: dict[str, Any]) -> None:
    """Pairs and losses as the report has them; what it does not show is repeated."""
    evidence = AuditEvidence.of(report, TESTED, sha256="e" * 64)
    made = release().card(audit=evidence)

    [found] = evidence.mechanisms
    assert found.pairs == report["pairs"] > 0
    assert found.loss == max(each["loss"] for each in report["enumeration"])
    assert "**no violation found**" in answers(made)["Audit"]
    assert "the version that was audited" in answers(made)["Does it cover this release"]
    assert all(prose(line) in made.to_markdown("nist") for line in report["not_shown"])
    assert "No audit report was given" in said(release().card())


def test_losses_in_rho_are_called_so(report: dict[str, Any]) -> None:
    """Where a report added up losses in rho, so does the sheet; a long fraction has three figures."""
    [count, *_] = report["enumeration"]
    counts = [count | {"way": "coupling in rho", "epsilon": "16777216/1014961505", "loss": 0.016}]
    in_rho = AuditEvidence.of({**report, "enumeration": counts}, TESTED)

    assert AuditEvidence.of(report, TESTED).mechanisms[0].promised == "epsilon 1"
    assert in_rho.mechanisms[0].promised == "rho about 0.0165"
    assert "the largest loss 0.016 where rho about 0.0165 is promised" in said(release().card(audit=in_rho))


def test_a_mechanism_that_was_not_tested_is_named(report: dict[str, Any]) -> None:
    """And an audit of another version is called one."""
    report = report | {"surroundings": report["surroundings"] | {"subject": "partita 9.9"}}
    made = release().card(audit=AuditEvidence.of(report, {"laplace": "Tree"}))

    assert answers(made)["Mechanism `laplace`"] == "**Not in this report.**"
    assert "**another subject** than that of the audit" in said(made)


def test_violations_are_stated_first(report: dict[str, Any]) -> None:
    """Each in the words of the report, and none of them is Markdown."""
    broken = {"part": "enumeration", "mechanism": "Laplace", "said": "loses | more"}
    counts = [{**each, "violations": 1, "loss": "infinite"} for each in report["enumeration"]]
    evidence = AuditEvidence.of({**report, "violations": [broken], "enumeration": counts}, TESTED)
    text = release().card(audit=evidence).to_markdown("nist")

    assert "**1 violation found**" in text
    assert "- **Violation.** Laplace (enumeration): loses &#124; more" in text
    assert f"**{len(counts)} violation" in text
    assert "the largest loss infinite" in text
    json.dumps(release().card(audit=evidence).to_json(), allow_nan=False)


@pytest.mark.parametrize(
    "change",
    [
        {"violations": None},
        {"enumeration": [{"mechanism": "Laplace"}]},
        {"enumeration": 3},
        {"surroundings": {}},
        {"attacks": [{"mechanism": "Laplace", "tried": -1, "verdict": ""}]},
        {"fits": {}},
        {"not_shown": [1]},
        {"pairs of": 1, "surroundings": None},
    ],
)
def test_what_is_no_report_is_refused(report: dict[str, Any], change: dict[str, Any]) -> None:
    """A typed error, whatever is wrong with it."""
    with pytest.raises(InvalidParameter, match="audit must be a report of `partita audit --json`"):
        AuditEvidence.of({**report, **change}, TESTED)


@pytest.mark.parametrize("value", [None, [], "x", 3, {}, {"violations": []}])
def test_other_json_is_no_report(value: object) -> None:
    """A list, a text, a number, an object without its entries."""
    with pytest.raises(InvalidParameter, match="audit must be a report"):
        AuditEvidence.of(value, TESTED)


def test_counted_violations_that_are_not_listed_are_refused(report: dict[str, Any]) -> None:
    """A report that contradicts itself was changed by somebody."""
    counts = [{**each, "violations": 1} for each in report["enumeration"]]
    with pytest.raises(InvalidParameter, match="audit must be a report"):
        AuditEvidence.of({**report, "enumeration": counts}, TESTED)


# --- the form ----------------------------------------------------------------------------------


def test_the_json_is_that_of_the_page(report: dict[str, Any]) -> None:
    """Every entry is documented, and nothing else is."""
    book, evidence = history(debit(1)), AuditEvidence.of(report, TESTED)
    record = release(**PAID).card(budget=book, audit=evidence).to_json()
    page = PAGE.read_text().partition("## As JSON")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \| (.+) \|$", page, re.MULTILINE)
    documented = {name: about for names, about in rows for name in re.findall(r"`([a-z_]+)`", names)}

    assert set(record) == set(documented)
    for entry in ("release", "names", "audit"):
        listed = re.findall(r"`([a-z_0-9]+)`", documented[entry])
        assert set(record[entry]) == set(listed), entry  # type: ignore[call-overload]
    assert record["format"] == "partita card"
    assert record["version"] == 1


def test_the_entry_has_the_fields_of_the_registry() -> None:
    """Those of its schema of November 2026, and no other: it refuses what it does not know."""
    entry: Any = release(dataset="people").card(sector="Energy").to_json()["registry"]
    fields = {name: set(each) for name, each in entry["deployment"].items()}

    assert set(entry) == {"url_slug", "deployment"}
    assert entry["url_slug"] == "people-2026"
    assert fields == {name: set(listed.split()) for name, listed in REGISTRY.items()}


REGISTRY: Final = {
    "basic": "name data_curators description intended_use data_product_type data_product_region "
    "data_product_sector publication_date",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details number_of_privacy_units privacy_parameters "
    "privacy_parameters_details",
    "deployment_model": "model_name model_name_details trust_assumptions actors release_type "
    "release_type_details data_source_type data_source_type_details access_type access_type_details",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms composition post_processing "
    "justification utility additional_information",
    "administrative": "status registry_authors tier",
}
