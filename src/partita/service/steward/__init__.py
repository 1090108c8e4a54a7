"""The secret side: streams are made and fed, periods are closed by the clock, publishing is started.

    app         both together as one application
    streams     the routes of stewards and feeders
    requests    what a stream is made with, and what is said of it
    feeding     bodies of feeding requests as events
    intake      from a request to the disk
    commits     requests that arrive together share a transaction
    keeping     all streams of a folder, open in one process
    clock       one thread that closes their periods
    publishing  releases from specs on the disk of the server, by processes of their own

Nothing here answers readers: they ask another process, which sees public files only.
"""
