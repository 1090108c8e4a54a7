"""Columns of text: every value has a cell, every cell is a text, and cells are in the order of bytes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita.domain import domain_from_spec
from partita.domain.text import FoundNames, choose_labels, show_name

BYTES = st.binary(max_size=10)


@given(st.lists(BYTES, max_size=8), st.integers(1, 48))
def test_cells_are_in_the_order_of_bytes_and_name_their_text(names: list[bytes], most: int) -> None:
    """One to one, trailing zero bytes included, for words and for Python integers alike."""
    text = pt.Text(most)
    held = sorted({name for name in names if len(name) <= most and name != b"\xff"})
    cells = [text.cell(name) for name in held]
    encoded = text.encode(pa.array(held, pa.large_binary()))

    assert cells == sorted(set(cells))
    assert all(0 <= cell < text.size for cell in cells)
    assert [text.name(cell) for cell in cells] == held
    assert text.cells_of(encoded.cells) == cells
    assert text.names_of(encoded.cells) == held
    assert np.array_equal(text.words_of(held), encoded.cells)
    order = np.lexsort(encoded.cells.T[::-1]) if held else np.zeros(0)
    assert order.tolist() == list(range(len(held)))


@pytest.mark.parametrize("text", [pt.Text(1, "ab"), pt.Text(2, "abc"), pt.Text(3, "\0a")], ids=repr)
def test_every_cell_of_a_small_universe_is_a_text(text: pt.Text) -> None:
    """As many as there are texts of these letters."""
    names = [text.name(cell) for cell in range(text.size)]
    letters = len(text.letters)

    assert text.size == sum(letters**length for length in range(text.max_bytes + 1))
    assert names == sorted(set(names))
    assert text.cells_of(text.words_of(names)) == list(range(text.size))


def test_every_value_has_a_cell() -> None:
    """What is no text counts by its canonical text; what is too long or cannot be read is other."""
    values: list[Any] = [
        "Rome", b"Rome", "", 1, 1.0, Decimal("1.00"), 0.5, True, None, float("nan"), float("inf"),
        "x" * 9, "\ud800", b"\xff", b"\xfe", [1], object(), {"a": 1},
    ]  # fmt: skip
    text = pt.Text(8)
    encoded = text.encode(values)
    names, codes = text.names_of(encoded.cells), list[Any](encoded.tolist())
    seen: list[Any] = [
        name if isinstance(code, list) else code for name, code in zip(names, codes, strict=True)
    ]

    assert seen[:8] == [b"Rome", b"Rome", b"", b"1", b"1", b"1", b"0.5", b"true"]
    assert seen[8:12] == ["null", "null", "other", "other"]
    assert seen[12:15] == [b"\xed\xa0\x80", "other", b"\xfe"]
    assert seen[15:] == ["other"] * 3


@pytest.mark.parametrize("text", [pt.Text(), pt.Text(12), pt.Text(3, "ZaYé ")], ids=repr)
def test_a_spec_is_the_domain(text: pt.Text) -> None:
    """There and back."""
    assert domain_from_spec(text.to_spec()) == text


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"max_bytes": 0}, "max_bytes"),
        ({"max_bytes": 49}, "max_bytes"),
        ({"max_bytes": "24"}, "max_bytes"),
        ({"alphabet": "a"}, "alphabet"),
        ({"alphabet": 7}, "alphabet"),
        ({"alphabet": "a\ud800"}, "alphabet"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(wrong: dict[str, Any], name: str) -> None:
    """By name."""
    with pytest.raises(pt.InvalidParameter) as refused:
        pt.Text(**wrong)
    assert refused.value.parameter == name


@given(BYTES)
def test_a_shown_name_can_be_printed(name: bytes) -> None:
    """Whatever its bytes are; printable text is shown as it is."""
    shown = show_name(name)

    assert shown.isprintable()
    if name.decode("utf-8", "replace").isprintable() and b"\\" not in name:
        assert shown.encode() == name or b"\xef\xbf\xbd" in name.decode("utf-8", "replace").encode()


@given(st.lists(BYTES, unique=True, max_size=8))
def test_labels_are_different(names: list[bytes]) -> None:
    """Of names that are shown alike one is a label."""
    kept = [name for name, chosen in zip(sorted(names), choose_labels(sorted(names)), strict=True) if chosen]

    assert len({show_name(name) for name in kept}) == len(kept)
    if kept:
        assert FoundNames.of(pt.Text(12), kept).encode(kept).tolist() == list(range(len(kept)))
