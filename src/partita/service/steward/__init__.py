"""The secret side: streams are made and fed, periods are closed by the clock, publishing is started.

    app         both together as one application
    streams     the routes of stewards and feeders
    requests    what a stream is made with, and what is said of it
    feeding     bodies of feeding requests as events
    intake      from a request to the disk
    commits     requests that arrive together share a transaction
    keeping     all streams of a folder, open in one process
    closing     periods are closed, and what goes wrong is said
    clock       one thread that ticks when periods end
    publishing  releases from specs on the disk of the server, by processes of their own

Nothing here answers readers: they ask another process, which sees public files only.
"""
