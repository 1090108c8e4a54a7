"""`partita sql`, `synthesize` and `export`: for people and programs that expect tables and arrays."""

from __future__ import annotations

from io import BytesIO

from partita.cli import common
from partita.errors import check


def declare_sql(commands: common.Commands) -> None:
    """The release, and a statement."""
    says = "ask a release in a subset of SQL; each statistic has an interval"
    example = 'partita sql people.release.parquet "select count(*), avg(salary) from release where age > 30"'
    parser = common.command(commands, "sql", run_sql, says, example=example)
    parser.add("RELEASE")
    parser.add("STATEMENT", "select ... from release [where ...] [group by ...] [order by ...] [limit ...]")
    common.add_confidence(parser, "of the intervals, which are a model")


def run_sql(options: common.Options) -> common.Outcome:
    """Answer one statement."""
    from partita.public.sql import parse_sql

    common.argument(parse_sql)(options.statement)  # a bad one is refused before the file is read

    from partita.public.file import load

    result = load(options.release).sql(options.statement, confidence=options.confidence)
    rows = map(result.row_texts, range(len(result)))
    record = {
        "statement": options.statement,
        "questions": [str(question) for question in result.questions],
        "confidence": options.confidence,
        "notes": list(result.notes),
        "rows": result.to_dicts(),
    }
    return common.Outcome(
        "\n".join([*result.notes, common.table([tuple(result.columns), *rows], left=0)]), [record]
    )


def declare_synthesize(commands: common.Commands) -> None:
    """The release, how many rows, and where they go."""
    says = "write made-up rows that look like a release to a Parquet file; costs nothing"
    example = "partita synthesize people.release.parquet --rows 1000 -o rows.parquet"
    parser = common.command(commands, "synthesize", run_synthesize, says, example=example)
    parser.add("RELEASE")
    parser.add("--rows N", "how many; default: about as many as were counted", type=common.whole("rows"))
    parser.add("-o --output FILE", "a Parquet file", required=True)
    parser.add(*common.FORCE)


def run_synthesize(options: common.Options) -> common.Outcome:
    """Draw the rows, and write them whole or not at all."""
    import pyarrow
    import pyarrow.parquet

    from partita.public.file import load
    from partita.public.relations import arrow_column

    rows = load(options.release).synthesize(options.rows)
    table = pyarrow.table({column: arrow_column(values) for column, values in rows.items()})
    written = BytesIO()
    pyarrow.parquet.write_table(table, written, compression="zstd")
    common.write_whole(options.output, written.getvalue(), overwrite=options.force)
    text = f"wrote {table.num_rows:,} made-up rows of {table.num_columns} columns to {options.output}"
    return common.Outcome.of(text, path=options.output, rows=table.num_rows, columns=table.column_names)


def declare_export(commands: common.Commands) -> None:
    """The release, columns of views, and where the measurements go."""
    says = "write every noisy count with its law and scale to an NPZ or Parquet file, for other tools"
    example = "partita export people.release.parquet -o people.measurements.npz"
    parser = common.command(commands, "export", run_export, says, example=example)
    parser.add("RELEASE")
    parser.add("columns COLUMN", "views about some of these and no others; default: all views", nargs="*")
    parser.add(
        "-o --output FILE", ".npz, or .parquet", required=True, type=common.argument(_measurements_path)
    )
    parser.add(*common.FORCE)


def _measurements_path(path: str) -> str:
    rule, fix = "must end in .npz or .parquet", "name the file so"
    check(path.endswith((".npz", ".parquet")), "output", rule, given=path, fix=fix)
    return path


def run_export(options: common.Options) -> common.Outcome:
    """Write them, and list them."""
    import pyarrow.parquet

    from partita.public.file import load

    measured = load(options.release).measurements(*options.columns)
    written = BytesIO()
    if options.output.endswith(".npz"):
        written.write(measured.to_npz())
    else:
        pyarrow.parquet.write_table(measured.to_arrow(), written, compression="zstd")
    common.write_whole(options.output, written.getvalue(), overwrite=options.force)
    rows = [
        {
            "columns": list(each.columns),
            "bins": list(each.shape),
            "numbers": each.noisy.size,
            "law": each.law,
            "scale": str(each.scale),
            "unit": each.unit,
            "stddev": each.stddev,
        }
        for each in measured
    ]
    shown = [
        (
            " x ".join(each.columns),
            " x ".join(map(str, each.shape)),
            str(each.noisy.size),
            each.law,
            f"{each.stddev:.4g}",
        )
        for each in measured
    ]
    text = common.table([("columns", "bins", "numbers", "law of noise", "stddev"), *shown])
    return common.Outcome.of(text, path=options.output, measurements=rows)
