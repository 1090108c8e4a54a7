"""Entries of a specification: written plainly, read strictly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final, cast

from partita.errors.errors import InvalidRelease
from partita.guarantee.guarantee import Guarantee, Neighbors, Unit
from partita.public.axis.base.ranges import Json
from partita.public.axis.base.specials import Specials
from partita.public.base.provenance import Provenance

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_RATIONAL: Final = re.compile(r"-?[0-9]{1,200}(/[0-9]{1,200})?")
_PROVENANCE: Final = ("dataset", "day", "part", "person", "recorded", "version")
_GUARANTEE: Final = ("contributions", "delta", "epsilon", "intrusions", "neighbors", "unit")


def guarantee_entries(guarantee: Guarantee | None) -> Json:
    """A guarantee with exact rationals as text; null for none."""
    if guarantee is None:
        return None
    return {
        "epsilon": str(guarantee.epsilon),
        "delta": str(guarantee.delta),
        "neighbors": guarantee.neighbors,
        "unit": guarantee.unit,
        "contributions": guarantee.contributions,
        "intrusions": guarantee.intrusions,
    }


def guarantee_from(value: Json) -> Guarantee | None:
    """The guarantee that was written, or none."""
    if value is None:
        return None
    given = entries(value, _GUARANTEE)
    return Guarantee(
        epsilon=rational(given["epsilon"]),
        delta=rational(given["delta"]),
        neighbors=cast(Neighbors, text(given["neighbors"])),
        unit=cast(Unit, text(given["unit"])),
        contributions=natural(given["contributions"]),
        intrusions=natural(given["intrusions"]),
    )


def provenance_entries(provenance: Provenance) -> Json:
    """Every field by its name; the part as a column and a value."""
    part = provenance.part
    return {
        "version": provenance.version,
        "day": provenance.day,
        "dataset": provenance.dataset,
        "recorded": provenance.recorded,
        "person": provenance.person,
        "part": None if part is None else {"column": part[0], "value": part[1]},
    }


def provenance_from(value: Json) -> Provenance:
    """Exactly the fields of a provenance, each of its type."""
    given = entries(value, _PROVENANCE)
    if not isinstance(given["recorded"], bool):
        raise refused("must say true or false in this place")
    return Provenance(
        version=text(given["version"]),
        day=text(given["day"]),
        dataset=_text_or_none(given["dataset"]),
        recorded=given["recorded"],
        person=_text_or_none(given["person"]),
        part=_part_from(given["part"]),
    )


def specials_entries(specials: Specials) -> Json:
    """Counts as text, because they may need more digits than other languages keep."""
    counts: dict[str, Json] = {cell: str(count) for cell, count in specials.counts.items()}
    return {"counts": counts, "scale": str(specials.scale)}


def specials_from(value: Json, cells: Iterable[str]) -> Specials:
    """The counts of exactly these cells, in their order."""
    given = entries(value, ("counts", "scale"))
    counts = entries(given["counts"], tuple(cells))
    return Specials(counts={cell: _whole(counts[cell]) for cell in cells}, scale=rational(given["scale"]))


def entries(value: Json | Mapping[str, Json], names: Iterable[str] | None = None) -> dict[str, Json]:
    """`value`, if it is a mapping, and with exactly these names if they are given."""
    if not isinstance(value, dict):
        raise refused("must have a mapping in this place")
    if names is not None and set(value) != set(names):
        raise refused(f"must have exactly the entries {', '.join(sorted(names))} in this place")
    return value


def listed(value: Json) -> list[Json]:
    """`value`, if it is a list."""
    if not isinstance(value, list):
        raise refused("must have a list in this place")
    return value


def text(value: Json) -> str:
    """`value`, if it is text."""
    if not isinstance(value, str):
        raise refused("must have text in this place")
    return value


def _text_or_none(value: Json) -> str | None:
    return None if value is None else text(value)


def _part_from(value: Json) -> tuple[str, str] | None:
    if value is None:
        return None
    given = entries(value, ("column", "value"))
    return text(given["column"]), text(given["value"])


def series_name(value: Json) -> str:
    """`value`, if it can be the name of a series."""
    if not _NAME.fullmatch(text(value)):
        raise refused("must name a series in small letters, digits and _")
    return text(value)


def natural(value: Json) -> int:
    """`value`, if it is an integer that is not negative."""
    if type(value) is not int or value < 0:
        raise refused("must have a number that is not negative in this place")
    return value


def rational(value: Json) -> Fraction:
    """An exact number, written in lowest terms like 1/3.

    >>> rational("1/3")
    Fraction(1, 3)
    """
    written = text(value)
    if not _RATIONAL.fullmatch(written) or written.endswith("/0"):
        raise refused('must have a rational number like "1/3" in this place')
    if str(exact := Fraction(written)) != written:
        raise refused("must have rational numbers in lowest terms")
    return exact


def _whole(value: Json) -> int:
    exact = rational(value)
    if exact.denominator != 1:
        raise refused("must have whole counts")
    return int(exact)


def refused(rule: str) -> InvalidRelease:
    """The specification breaks this rule."""
    return InvalidRelease("specification", rule, fix="get a fresh copy of the release")
