"""How one Arrow table comes to each engine, and what each engine has in place of a type that it lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

import duckdb
import pyarrow as pa
import pytest

from partita.trusted.sources.postgres import Postgres
from partita.trusted.sources.spark.source import SparkSource
from tests.engines.postgres_server import PostgresServer

__all__ = ["ENGINES", "SERVERS", "loaded"]

SERVERS: Final = ("spark", "postgres")
"""Engines with processes of their own."""

_POSTGRES: Final = {
    "bool": "boolean",
    "int16": "smallint",
    "int64": "bigint",
    "uint64": "numeric(20, 0)",
    "float": "real",
    "double": "double precision",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
    "string": "text",
    "binary": "bytea",
}
"""The types of PostgreSQL. It has no unsigned ones: the nearest carrier is a numeric of twenty digits."""


_NUMBERS: Final = count()


@contextmanager
def _duckdb(table: Any, _: pytest.FixtureRequest) -> Iterator[Any]:
    with duckdb.connect(":memory:") as connection:
        yield connection.from_arrow(table)


@contextmanager
def _polars(table: Any, _: pytest.FixtureRequest) -> Iterator[Any]:
    yield pytest.importorskip("polars").from_arrow(table)


@contextmanager
def _pandas(table: Any, _: pytest.FixtureRequest) -> Iterator[Any]:
    yield table.to_pandas(types_mapper=pytest.importorskip("pandas").ArrowDtype)


@contextmanager
def _spark(table: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Spark has no unsigned integers and no dictionaries: it gets decimals of twenty digits, and text.

    A time with a zone is an instant to Spark, one without is TIMESTAMP_NTZ. Two shards are soon done.
    """
    spark = request.getfixturevalue("spark")
    yield SparkSource(spark.createDataFrame(carried(table), schema=_spark_schema(table.schema)), shards=2)


@contextmanager
def _postgres(table: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    server: PostgresServer = request.getfixturevalue("postgres_server")
    columns = ", ".join(f'"{field.name}" {_postgres_type(field.type)}' for field in table.schema)
    # Each table is a new one: the counts of an earlier one may still hold a lock on it.
    name = f"cases{next(_NUMBERS)}"
    with server.connect() as connection:
        connection.execute(f"CREATE TABLE {name} ({columns})")
        with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                copy.write_row(row)
        connection.commit()
    yield Postgres(server.address(), table=name)


ENGINES: Final[dict[str, Callable[..., Any]]] = {
    "duckdb": _duckdb,
    "polars-arrow": _polars,
    "pandas": _pandas,
    "spark": _spark,
    "postgres": _postgres,
}


def loaded(engine: str, table: Any, request: pytest.FixtureRequest) -> Any:
    """The table in the hands of an engine, as `publish` takes it; for a `with` statement."""
    return ENGINES[engine](table, request)


def carried(table: Any) -> Any:
    """The same rows in the types that Spark has."""
    kinds = [pa.field(field.name, _carrier(field.type)) for field in table.schema]
    return table.cast(pa.schema(kinds))


def _carrier(kind: Any) -> Any:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return pa.decimal128(20, 0) if pa.types.is_uint64(kind) else kind


def _spark_schema(schema: Any) -> Any:
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    kinds = [
        (field.name, from_arrow_type(_carrier(field.type), prefer_timestamp_ntz=True)) for field in schema
    ]
    return StructType([StructField(name, kind, True) for name, kind in kinds])


def _postgres_type(kind: Any) -> str:
    if pa.types.is_dictionary(kind):
        return _postgres_type(kind.value_type)
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return "timestamptz"
    return _POSTGRES[str(kind)]
