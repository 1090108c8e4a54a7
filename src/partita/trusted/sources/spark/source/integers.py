"""Whole numbers into cells as an expression of Spark: no Python is needed to subtract.

The cells are those of `Integer.encode`: a number is compared with both bounds, and inside it is so far from
the lower one. On the cluster cells are shifted by 2^63, so the difference fits 64 bits at each step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyarrow import types
from pyspark.sql import functions as sf

from partita.domain.base.base import Domain, Special
from partita.domain.numeric.integer import Integer
from partita.trusted.sources.spark.counts.numbers import SHIFT
from partita.trusted.sources.spark.counts.packed import cell, special
from partita.trusted.sources.spark.session.session import Frame
from partita.trusted.sources.spark.source.raw import Raw

_LOWEST: Final = -(2**63)
_HIGHEST: Final = 2**63 - 1


def are_integers(schema: Mapping[str, Domain], raw: Raw) -> bool:
    """Whether each column holds integers of up to 64 bits, and its domain starts at one."""
    return all(
        isinstance(domain, Integer)
        and types.is_int64(raw.kinds[raw.names.index(name)])
        and _LOWEST <= domain.low <= _HIGHEST
        for name, domain in schema.items()
    )


def integer_cells(schema: Mapping[str, Domain], raw: Raw) -> Frame:
    """The cells of grouped raw values, for columns that `are_integers`."""
    made: list[Any] = []
    for number, (name, domain) in enumerate(schema.items()):
        assert isinstance(domain, Integer)
        value = sf.col(raw.keys[raw.names.index(name)]).cast("bigint")
        kind = _kind(value, domain)
        made += [kind.cast("tinyint").alias(special(number)), _cell(value, kind, domain).alias(cell(number))]
    return raw.grouped().select(*made, "rows")


def _kind(value: Any, domain: Integer) -> Any:
    above = value > min(domain.high, _HIGHEST)
    found = sf.when(value.isNull(), int(Special.NULL)).when(value < domain.low, int(Special.BELOW))
    return found.when(above, int(Special.ABOVE)).otherwise(int(Special.ORDINARY))


def _cell(value: Any, kind: Any, domain: Integer) -> Any:
    """The distance from the lower bound, less 2^63, in steps that stay within 64 bits for values inside."""
    first = domain.low if domain.low >= 0 else domain.low + SHIFT
    below = sf.try_subtract(value, sf.lit(first))
    shifted = sf.try_add(below, sf.lit(-SHIFT)) if domain.low >= 0 else below
    return sf.when(kind == int(Special.ORDINARY), shifted).otherwise(sf.lit(-SHIFT))
