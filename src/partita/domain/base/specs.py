"""Domains written down: plain dictionaries of strings, read back strictly."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from partita.errors.checks import check
from partita.errors.errors import InvalidParameter
from partita.numbers import rational


def kind_of(spec: object) -> tuple[str, Mapping[str, object]]:
    """The kind of domain that a spec describes, and the spec itself."""
    if not isinstance(spec, Mapping) or not isinstance(spec.get("kind"), str):
        fix = 'pass what to_spec returned, such as {"kind": "integer", ...}'
        raise InvalidParameter("spec", "must be a mapping with a kind", given=spec, fix=fix)
    return spec["kind"], spec


def taken(spec: object, kind: str, *names: str) -> list[object]:
    """The entries of a spec of this kind, which must be exactly the named ones."""
    given, entries = kind_of(spec)
    if given != kind:
        raise InvalidParameter(
            "spec", f"must be of kind {kind!r}", given=given, fix="use domain_from_spec for specs of any kind"
        )
    if set(entries) != {"kind", *names}:
        rule = f"of kind {kind!r} must have the entries kind, {', '.join(names)}"
        fix = "pass what to_spec returned"
        raise InvalidParameter("spec", rule, given=", ".join(map(str, entries)), fix=fix)
    return [entries[name] for name in names]


def whole(value: object, name: str) -> int:
    """An integer of a spec, written as text or as a number."""
    number: Fraction = rational(value, name)
    check(number.denominator == 1, name, "must be an integer", given=value, fix="write digits only")
    return int(number)
