"""Releases and streams over HTTP: `partita serve`.

Two processes, so that what readers see cannot depend on what is fed:

    reading     the public one: release files, published outputs of streams, the page; it spends nothing
    steward     the other one: events come in, periods are closed by the clock, publishing is started

and what both need:

    access      tokens, scopes, limits of how often
    web         errors as JSON, sizes of bodies, headers, logs, metrics
    process     both processes together: start, signals, graceful end
    static      the page: hand-written, no build step, no external request

Neither can reach `sources`: the import contracts say so.
"""
