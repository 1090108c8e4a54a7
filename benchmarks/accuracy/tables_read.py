"""Whole tables read from a release through its public questions, and how far they are from the truth."""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy.queries import Ints
from benchmarks.accuracy.tables_sets import Table
from benchmarks.peers.tables import Subset, variations
from partita import Release
from partita.arrays import Floats

ASKED = 2**18
"""Cells in one call: more take more memory and no less time."""


def read_table(release: Release, table: Table, subset: Subset) -> Floats:
    """The released count of every cell of the table over some columns, in the order of the codes."""
    shape = tuple(table.sizes[column] for column in subset)
    cells, values = int(np.prod(shape)), []
    for start in range(0, cells, ASKED):
        codes = np.unravel_index(np.arange(start, min(start + ASKED, cells)), shape)
        values.append(count_codes(release, table, subset, codes))
    return np.concatenate(values).reshape(shape)


def count_codes(release: Release, table: Table, subset: Subset, codes: tuple[Ints, ...]) -> Floats:
    """The counts of single cells, one for each place in the arrays of codes."""
    where = {table.columns[column]: code for column, code in zip(subset, codes, strict=True)}
    return np.asarray(release.counts(where))


def table_variations(release: Release, table: Table, subsets: list[Subset]) -> Floats:
    """The total variation of the table over each of these columns."""
    found = variations(table.rows, table.sizes, subsets, lambda subset: read_table(release, table, subset))
    return np.asarray(found)


def mean_variation(release: Release, table: Table) -> tuple[float, float]:
    """The mean over all pairs of columns, and over the triples of the set."""
    pairs, triples = (table_variations(release, table, some) for some in (table.pairs, table.triples))
    return float(pairs.mean()), float(triples.mean())
