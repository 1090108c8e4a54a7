"""Where rows are: files, tables and streams, behind one small protocol.

    open_source("people.parquet")          a source: exact grouped counts of raw values
    tally(source, schema, by=["age"])      the same, in cells, with contributions bounded

A value never raises and never shows: what cannot be read is a cell of its own, and an error
speaks of files, columns and types only. docs/decisions/sources.md says how rows are read.
"""
