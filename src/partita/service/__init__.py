"""Releases and streams over HTTP: `partita serve`.

Two processes, so that what readers see cannot depend on what is fed:

    reading     the public process: release files, published outputs of streams, the page; it spends nothing
    steward     the other process: events come in, a clock closes periods, publishing is started

Both need:

    settings    what a service is started with, and its limits
    tokens      names, scopes and hashed keys, in one file
    access      scopes of addresses, rates, and the guard that checks both
    errors      errors as JSON
    web         middleware: sizes and times of requests, headers, hosts, log, metrics
    server      one process that serves one side, and its connections
    process     all processes together: start, signals, graceful end
    static      the page: written by hand, no build step, no external request

Neither process can reach `sources`: the import contracts say so.
"""
