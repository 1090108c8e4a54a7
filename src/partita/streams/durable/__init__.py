"""Counters that survive crashes and publish by the clock: a secret file and a public one.

    settings    what a counter was opened with, public time, and paths
    outputs     the public file, a record for each period, and `read_outputs`
    events      what is fed: well-formed, or refused
    mechanisms  the counters that can be durable
    journal     the secret file in SQLite: each event counted once
    slots       the secret file of a pan-private counter
    account     what the ledger knows: one debit, and how far it got
    ticker      the clock thread, and that nobody holds it up
    stream      `DurableCounter`, and `DurableFamily` with a counter for each key
    open        `open_counter`, `open_family`, and those that go on with one

Why no period is ever published with two noises: docs/decisions/durable-counters.md
"""
