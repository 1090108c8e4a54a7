"""What holds for every kind of domain: declarations, specs, round trips."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partita.domain
from partita.domain import Category, Date, Domain, Integer, Real, Special, Timestamp, domain_from_spec
from partita.errors import InvalidParameter

anything: Any = None


def test_every_domain_satisfies_the_protocol(domain: Domain) -> None:
    """Size is from 1 to 2^64 and the special cells are named in order."""
    assert isinstance(domain, Domain)
    assert 1 <= domain.size <= 2**64
    if isinstance(domain, Category):
        assert domain.specials == ("null", "other")
    else:
        assert domain.specials == ("below", "above", "invalid", "null")


@settings(deadline=None, derandomize=True, max_examples=30)
@given(st.data())
def test_decoding_and_encoding_come_back(domain: Domain, data: st.DataObject) -> None:
    """A decoded cell encodes to the same cell, at both ends and beyond 2^63 too."""
    ends = {0, domain.size - 1, domain.size // 2, min(2**63, domain.size - 1)}
    cells = [*ends, *data.draw(st.lists(st.integers(0, domain.size - 1), max_size=5))]

    again = domain.encode(domain.decode(cells))

    assert again.cells.tolist() == cells
    assert not again.special.any()
    assert list(domain.decode(again.cells)) == list(domain.decode(cells))


def test_a_public_value_is_located_where_it_is_encoded(domain: Domain) -> None:
    """Locating a decoded cell gives the cell back."""
    for cell in {0, domain.size // 2, domain.size - 1}:
        position = domain.locate(domain.decode([cell])[0])
        assert (position.cell, position.special) == (cell, Special.ORDINARY)


def test_specs_and_reprs_come_back(domain: Domain) -> None:
    """A domain equals, and hashes as, what its spec or its repr makes, through JSON too."""
    spec = json.loads(json.dumps(domain.to_spec()))
    others = [domain_from_spec(spec), type(domain).from_spec(spec), eval(repr(domain))]

    assert all(other == domain and hash(other) == hash(domain) for other in others)
    assert domain != Integer(5, 6)


def test_domains_are_frozen(domain: Domain) -> None:
    """Neither a field of a domain nor an encoded array can be changed."""
    field = next(iter(domain.to_spec().keys() - {"kind"}))
    with pytest.raises(AttributeError):
        setattr(domain, field, 0)
    with pytest.raises(ValueError, match="read-only"):
        domain.encode([None]).cells[0] = 1


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: Integer(5, 4), "high"),
    (lambda: Integer(True, 4), "low"),
    (lambda: Integer(anything, 4), "low"),
    (lambda: Integer("0", 4), "low"),  # type: ignore[arg-type]
    (lambda: Integer(0, 0.5), "high"),  # type: ignore[arg-type]
    (lambda: Integer(0, 2**64), "high"),
    (lambda: Integer(2**600, 2**600), "low"),
    (lambda: Real(0, 1, step=0), "step"),
    (lambda: Real(0, 1, step="-0.1"), "step"),
    (lambda: Real(0, 1, step="0.3"), "high"),
    (lambda: Real("0.05", 1, step="0.1"), "low"),
    (lambda: Real(1, 0, step="0.1"), "high"),
    (lambda: Real(float("nan"), 1, step=1), "low"),
    (lambda: Real(0, float("inf"), step=1), "high"),
    (lambda: Real(0, True, step=1), "high"),
    (lambda: Real(0, 1, step=Fraction(1, 2**64)), "high"),
    (lambda: Real(0, 1, step="1e-300"), "step"),
    (lambda: Date("2024-01-02", "2024-01-01"), "end"),
    (lambda: Date("2024-02-30", "2024-03-01"), "start"),
    (lambda: Date("2024-01-01", "2024-01-02T10:00"), "end"),
    (lambda: Date(datetime.datetime(2024, 1, 1), "2024-01-02"), "start"),
    (lambda: Date(anything, "2024-01-02"), "start"),
    (lambda: Timestamp("2024-01-02", "2024-01-01", "1h"), "end"),
    (lambda: Timestamp("x", "2024-01-01", "1h"), "start"),
    (lambda: Timestamp("0001-01-01", "9999-01-01", "1ns"), "end"),
    (lambda: Timestamp("0001-01-01", "9999-01-01", "1h", zone="Asia/Tokyo"), "start"),
    (lambda: Timestamp("2024-01-01", "2024-01-02", "1h", zone="Mars/Olympus"), "zone"),
    (lambda: Timestamp("2024-01-01", "2024-01-02", "1h", zone="../UTC"), "zone"),
    (lambda: Timestamp("2024-01-01", "2024-01-02", "1h", zone=anything), "zone"),
    *(
        (lambda bad=bad: Timestamp("2024-01-01", "2024-01-02", bad), "resolution")
        for bad in ("0s", "-1s", "1", "h", "1.5h", "1 h", "1w", "", 1, None, datetime.timedelta(0))
    ),
    (lambda: Category([]), "labels"),
    (lambda: Category("north"), "labels"),
    (lambda: Category(["a", "b", "a"]), "labels"),
    (lambda: Category(["a", ""]), "labels"),
    (lambda: Category([1, 2]), "labels"),  # type: ignore[list-item]
    (lambda: Category([True]), "labels"),  # type: ignore[list-item]
    (lambda: Category(["\ud800"]), "labels"),
    (lambda: Category({"a", "b"}), "labels"),  # type: ignore[arg-type]
    (lambda: domain_from_spec({"kind": "complex"}), "kind"),
    (lambda: domain_from_spec({}), "spec"),
    (lambda: domain_from_spec(anything), "spec"),
    (lambda: domain_from_spec({"kind": "integer", "low": "0"}), "spec"),
    (lambda: domain_from_spec({"kind": "integer", "low": "0", "high": "5", "step": "1"}), "spec"),
    (lambda: domain_from_spec({"kind": "integer", "low": "0.5", "high": "5"}), "low"),
    (lambda: domain_from_spec({"kind": "real", "low": "0", "high": "x", "step": "1"}), "high"),
    (
        lambda: domain_from_spec({"kind": "timestamp", "start": 1, "end": 2, "resolution": 3, "zone": 4}),
        "zone",
    ),
    (lambda: Integer.from_spec({"kind": "real"}), "spec"),
    (lambda: Integer(0, 9).locate("x"), "value"),
    (lambda: Integer(0, 9).locate(0.5), "value"),
    (lambda: Integer(0, 9).locate(None), "value"),
    (lambda: Integer(0, 9).locate(True, name="age"), "age"),
    (lambda: Real(0, 9, step=1).locate(float("nan")), "value"),
    (lambda: Date("2024-01-01", "2024-01-02").locate(5), "value"),
    (lambda: Date("2024-01-01", "2024-01-02").locate(None), "value"),
    (lambda: Category(["a"]).locate("b"), "value"),
    (lambda: Category(["a"]).locate(None), "value"),
]


@pytest.mark.parametrize(("make", "parameter"), REFUSED)
def test_a_bad_declaration_is_refused_by_name(make: Callable[[], object], parameter: str) -> None:
    """A declaration that breaks a rule names the parameter, the rule, what was given, and a fix."""
    with pytest.raises(InvalidParameter) as caught:
        make()

    assert caught.value.parameter == parameter
    assert ", got " in str(caught.value)
    assert caught.value.fix in str(caught.value)


def test_public_numbers_are_read_as_written() -> None:
    """The float 0.1, the text "0.1" and Decimal("0.1") declare the same domain."""
    assert (
        Real(0, 1, step=0.1)
        == Real("0", 1.0, step="0.1")
        == Real(Decimal(0), Fraction(1), step=Decimal("0.1"))
    )
    assert repr(Real(0, 1, step=0.1)) == "Real(0, 1, step='0.1')"
    assert Integer(np.int64(0), np.int8(5)) == Integer(0, 5)  # type: ignore[arg-type]


def test_import_is_light() -> None:
    """Importing the package imports neither Arrow nor a dataframe library."""
    heavy = "pyarrow", "pandas", "duckdb", "polars"
    program = f"import sys, partita.domain; sys.exit(any(name in sys.modules for name in {heavy}))"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_everything_exported_exists() -> None:
    """The names in __all__ are sorted and defined."""
    assert partita.domain.__all__ == sorted(partita.domain.__all__)
    assert all(hasattr(partita.domain, name) for name in partita.domain.__all__)
