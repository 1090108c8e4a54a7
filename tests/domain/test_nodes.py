"""Labels below nodes: declarations, names, levels, code books, specs, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita import Category, InvalidParameter, PartitaError
from partita.domain import domain_from_spec

PLACES: Any = {
    "Kent": {"Tract 1": ["b1", "b2"], "Tract 2": ["b3"]},
    "City": None,
    "Essex": {"Tract 1": ["b4"], "b5": []},
}
LEVELS = ["county", "tract", "block"]


@st.composite
def nested(draw: st.DrawFn) -> Any:
    """Declarations whose labels are all different; nodes may share names in different places."""
    number = iter(range(10**6))

    def below(depth: int) -> Any:
        names = draw(st.lists(st.sampled_from("ABCDE"), min_size=1, max_size=3, unique=True))
        if depth == 4:
            return [f"{next(number)}" for _ in names]
        found: dict[str, Any] = {}
        for name in names:
            kind = draw(st.integers(0, 3))
            found[f"{next(number)}" if kind == 0 else name] = None if kind == 0 else below(depth + 1)
        return found

    return {f"top {name}": below(1) for name in range(draw(st.integers(1, 3)))}


@given(nested())
def test_a_spec_says_everything(tree: Any) -> None:
    """A domain is equal to what its spec describes, after JSON, and to what its repr writes."""
    domain = Category(tree)
    spec = json.loads(json.dumps(domain.to_spec()))

    assert domain_from_spec(spec) == domain
    assert eval(repr(domain)) == domain
    assert all(isinstance(each, str) or all(isinstance(text, str) for text in each) for each in spec.values())


@given(nested())
def test_every_level_makes_up_all_cells(tree: Any) -> None:
    """The groups of a level follow one another without gaps, and each is found by its name."""
    domain = Category(tree)
    assert domain.tree is not None
    for level in range(domain.tree.number):
        groups = domain.tree.groups(level)
        assert [low for _, low, _ in groups] == [0, *(high + 1 for _, _, high in groups[:-1])]
        assert groups[-1][2] == domain.size - 1
        assert len(groups) == domain.tree.count(level)
        assert all(domain.locate_all(name) == (low, high) for name, low, high in groups)


def test_nodes_are_ranges_of_labels_in_order() -> None:
    """A node is called by its label, or by its path where another has that label; paths always do."""
    domain = Category(PLACES, LEVELS)

    assert domain.labels == ("b1", "b2", "b3", "City", "b4", "b5")
    assert domain.tree is not None
    assert domain.tree.names == ["Kent", "Kent > Tract 1", "Tract 2", "Essex", "Essex > Tract 1"]
    assert domain.locate_all("Kent") == (0, 2)
    assert domain.locate_all("Kent > Tract 2") == domain.locate_all("b3") == (2, 2)
    assert domain.locate_all("Kent > Tract 1 > b2") == (1, 1)
    assert domain.tree.groups(1) == [
        ("Kent > Tract 1", 0, 1), ("Tract 2", 2, 2), ("City", 3, 3), ("Essex > Tract 1", 4, 4), ("b5", 5, 5),
    ]  # fmt: skip


def test_a_column_holds_labels_and_no_nodes() -> None:
    """A node in the data is another value: nobody lives in a county and in none of its blocks."""
    assert Category(PLACES).encode(["b2", "Kent", None]).tolist() == [1, "other", "null"]


def test_labels_that_repeat_are_paths() -> None:
    """If a label stands below several nodes, all labels are called by their paths."""
    domain = Category({"A": {"T": ["1", "2"]}, "B": {"T": ["1"]}})

    assert domain.labels == ("A > T > 1", "A > T > 2", "B > T > 1")
    assert domain.locate_all("A > T") == (0, 1)


def test_old_specs_stay_as_they_are() -> None:
    """Labels without nodes have the spec that they always had."""
    assert Category(["b", "a"]).to_spec() == {"kind": "category", "labels": ["b", "a"]}


@pytest.mark.parametrize("name", ["Tract 1", "kent", "Kent > b4", "Kent > Tract 1 > b3", " > b1", "b1 > b1"])
def test_what_is_no_node_is_refused(name: str) -> None:
    """A name of two nodes, another case, and a path that does not exist."""
    with pytest.raises(InvalidParameter, match="must be one of the column's labels"):
        Category(PLACES).locate_all(name)


def test_an_ambiguous_name_is_answered_by_a_path() -> None:
    """The error says which path was probably meant."""
    with pytest.raises(InvalidParameter, match="did you mean 'Kent > Tract 1'"):
        Category(PLACES).locate_all("Tract 1")


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"Kent": {}},
        {"Kent": "b1"},
        {"Kent": {"b1": 3}},
        {"": ["b1"]},
        {"Kent": [""]},
        {"Kent": [3]},
        {3: ["b1"]},
        {"Kent": ["Kent"]},
        {"Kent": ["b1", "b1"]},
        {"b1": ["x"], "Kent": ["b1"]},
        {"A": {"B > C": ["x"], "B": {"C": ["y"]}}},
    ],
)
def test_declarations_that_make_no_sense_are_refused(tree: Any) -> None:
    """Empty nodes, other types, labels that are listed twice, and names that nobody could tell apart."""
    with pytest.raises(InvalidParameter):
        Category(tree)


@pytest.mark.parametrize("levels", [["a"], ["a", "b", "b"], ["a", "b", 3], "abc", ["a", "b", ""]])
def test_levels_have_different_names(levels: Any) -> None:
    """One for each level, or none."""
    with pytest.raises(InvalidParameter) as refused:
        Category(PLACES, levels)

    assert refused.value.parameter == "levels"


def test_levels_need_nodes() -> None:
    """A list of labels has one level, which needs no name."""
    with pytest.raises(InvalidParameter, match="must come with nodes"):
        Category(["a"], ["level"])


DEEP: Any = ["x"]
for _ in range(12):
    DEEP = {"a": DEEP}


def test_hierarchies_are_not_too_deep() -> None:
    """Twelve levels at most."""
    with pytest.raises(InvalidParameter, match="at most 12 levels"):
        Category(DEEP)


HOSTILE: list[dict[str, Any]] = [
    {"nodes": []},
    {"nodes": "0 1 a"},
    {"nodes": {"0 1 a": 1}},
    {"nodes": [3]},
    {"nodes": ["0 1"]},
    {"nodes": ["0 1 "]},
    {"nodes": ["00 1 a"]},
    {"nodes": ["-1 1 a"]},
    {"nodes": ["0 3 a"]},
    {"nodes": ["0 99999999999999999999 a"]},
    {"nodes": ["1 0 a"]},
    {"nodes": ["0 1 a", "1 2 b"]},
    {"nodes": ["1 1 a", "0 0 b"]},
    {"nodes": ["0 1 b"] * 12},
    {"nodes": ["0 1 a", "2 2 a"]},
    {"nodes": ["0 1 x"]},
    {"nodes": ["0 1 \ud800"]},
    {"nodes": ["0 1 a"], "levels": "ab"},
    {"nodes": ["0 1 a"], "levels": ["only one"]},
    {"nodes": ["0 1 a"], "levels": [3, 4]},
    {"nodes": ["0 1 a"], "labels": {"a": ["x"]}},
    {"nodes": ["0 1 a"], "extra": []},
    {"levels": []},
]


@pytest.mark.parametrize("change", HOSTILE)
def test_hostile_specs_are_refused(change: dict[str, Any]) -> None:
    """Whatever a file says, nodes nest, are few and have names of their own, or the error is ours."""
    spec = {"kind": "category", "labels": ["x", "y", "z"], **change}
    spec = {**spec, "levels": spec.get("levels", [])} if "nodes" in change else spec

    with pytest.raises(PartitaError):
        domain_from_spec(spec)


def write(folder: Path, text: str) -> Path:
    """A code book."""
    path = folder / "book.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_code_book_is_read_path_by_path(tmp_path: Path) -> None:
    """Lines in any order of columns, other columns beside them, lower entries left out."""
    book = write(
        tmp_path,
        "name;block;county;tract\nx;b1;Kent;Tract 1\nx;b2;Kent;Tract 1\nx;b3;Kent;Tract 2\nx;;City;\n"
        "x;b4;Essex;Tract 1\nx;;Essex;b5\n",
    )

    assert Category.read_tree(book, columns=LEVELS, delimiter=";") == Category(PLACES, LEVELS)


def test_lines_of_a_node_need_not_stand_together(tmp_path: Path) -> None:
    """A node has its place where it is named first."""
    book = write(tmp_path, "a,b\nKent,1\nEssex,2\nKent,3\n")

    assert Category.read_tree(book, columns=["a", "b"]) == Category(
        {"Kent": ["1", "3"], "Essex": ["2"]}, ["a", "b"]
    )


@pytest.mark.parametrize(
    "text",
    [
        "county,tract\n",
        "county,tract\nSECRET,b1\nSECRET,b1\n",
        "county,tract\n,SECRET\n",
        "county,tract\nSECRET,b1\nSECRET,\n",
        "county,tract\nSECRET,\nSECRET,b1\n",
        "county,tract\nSECRET\n",
        "county\nSECRET\n",
        "county,county,tract\nSECRET,x,b1\n",
        "county,tract\nSECRET,b1\nx,SECRET\n",
    ],
)
def test_code_books_that_make_no_sense_are_refused_without_a_value(text: str, tmp_path: Path) -> None:
    """Twice the same path, a hole in it, a label that is a node, too: no error shows a line."""
    with pytest.raises(InvalidParameter) as refused:
        Category.read_tree(write(tmp_path, text), columns=["county", "tract"])

    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize("columns", ["county", ["county"], [], None, ["county", 3]])
def test_a_path_has_two_columns_or_more(columns: Any, tmp_path: Path) -> None:
    """Names of columns from the top, in a list."""
    with pytest.raises(InvalidParameter):
        Category.read_tree(write(tmp_path, "county,tract\nx,y\n"), columns=columns)
