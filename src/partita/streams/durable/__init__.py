"""Counters that survive crashes and publish by the clock: a secret file and a public one.

    clock            public time: periods, and what people write for them
    settings         what a counter was opened with
    events, memory   what is fed: well-formed, and counted once each
    totals           what the open period holds
    outputs          the public file, a record for each period
    files, lock      paths, what is said if the disk refuses, and the one writer
    schema, database, journal    the secret file in SQLite
    calls            calls of many events: stored in portions, counted in one step
    slots            the secret file of a pan-private counter
    keeper           what both have in common
    account          what the ledger knows: one debit, and how far it got
    recovery         what is published again, and what is refused
    feeding          events that lie ready with their times
    running, turns   the clock, and that nobody holds it up
    durable_stream   what puts them together
    durable_counter, durable_family    `DurableCounter`, and `DurableFamily` with a counter for each key
    making, opening  `open_counter`, `open_family`, and those that go on with one
    reading          `read_outputs`

Why no period is ever published with two noises: docs/decisions/durable-counters.md
"""
