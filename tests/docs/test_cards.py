"""Papers of a release as others read them: YAML by PyYAML, Markdown by Python-Markdown."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import markdown
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from partita.public.markup import prose, to_yaml
from tests.card_releases import HOSTILE, hostile
from tests.public.file import specimens

pytestmark = pytest.mark.docs

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(HOSTILE)
NUMBERS = st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    TEXTS | NUMBERS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
)


class Tags(HTMLParser):
    """The tags of a page, in order, without those that only say how text looks."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(markdown.markdown(text, extensions=["tables", "fenced_code"]))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags += [tag] if tag != "code" else []


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_yaml_is_read_as_it_was_written(value: dict[str, Any]) -> None:
    """Any text, number, list or mapping, whatever it looks like."""
    assert yaml.safe_load(to_yaml(value)) == (value or None)


@pytest.mark.parametrize("name", ["plain", *HOSTILE])
def test_files_are_yaml(name: str) -> None:
    """The entry and the front matter hold what the JSON holds, with hostile names too."""
    card = hostile(name).card()
    files, record = card.files(), json.loads(json.dumps(card.to_json()))
    empty, front, _ = files["README.md"].split("---\n", 2)

    assert empty == ""
    assert yaml.safe_load(files["registry.yaml"]) == record["registry"]
    assert yaml.safe_load(front) == record["dataset"]["front_matter"]
    assert yaml.safe_load(front)["pretty_name"] == name


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("paper", ["dataset", "registry", "nist"])
def test_names_make_no_html(name: str, paper: Any) -> None:
    """A page with hostile names has the tags of a page with plain ones: no link, no script, no new list."""
    texts = (hostile(each).card().to_markdown(paper) for each in (name, "name"))
    ours, theirs = (Tags(text.partition("\n---\n")[2] if paper == "dataset" else text) for text in texts)

    assert ours.tags == theirs.tags
    assert {"h1", "h2", "li"} <= set(ours.tags)
    assert not {"script", "a", "img", "b"} & set(ours.tags)


@given(TEXTS)
def test_prose_is_read_as_text(text: str) -> None:
    """One paragraph, or none, and nothing in it."""
    assert set(Tags(prose(text)).tags) <= {"p"}
    assert set(Tags(f"- {prose(text)}").tags) <= {"ul", "li"}


def test_every_kind_is_yaml() -> None:
    """All kinds of views together."""
    card = specimens.release().card()

    assert yaml.safe_load(card.files()["registry.yaml"]) == card.to_json()["registry"]
