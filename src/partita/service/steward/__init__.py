"""The secret side: streams are created and fed, a clock closes periods, publishing is started.

    app         the application
    streams     all streams of a folder, open in one process, and the clock that closes their periods
    feeding     routes of stewards and feeders: from a request to the disk
    publishing  releases from specs on the disk of the server, each by a process of its own

Nothing here answers readers: they ask another process, which sees public files only.
"""
