"""Results as tables: for pandas, Polars, Arrow, or as plain records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Tabular(ABC):
    """A result that can be read as a table: `frame` names its columns, each with one entry for each row."""

    @abstractmethod
    def frame(self) -> Mapping[str, Sequence[Any]]:
        """The columns: the keys first, then the statistic, `low` and `high` (95%), and `basis`."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """A dictionary for each row."""
        columns = self.frame()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_arrow(self) -> pyarrow.Table:
        """A table of Arrow."""
        import pyarrow

        return pyarrow.table({name: pyarrow.array(entries) for name, entries in self.frame().items()})

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame of pandas, which must be installed."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """A data frame of Polars, which must be installed."""
        import polars

        return polars.DataFrame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """What DuckDB, Polars, pandas and others read."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)
