"""The public process: release files and published outputs of one folder, for people and for programs.

    app            the application, and the page
    catalogue      the releases of the folder by name, and cached responses about them
    releases       routes: the list of releases, what each contains, downloads
    asking         routes: one question each; `asked` and `answered` are its models
    batches        route: many counts at once
    views          routes: the data of the page
    streams        routes: outputs of streams, and live updates
    work           the work of a question, predicted, and the threads that callers share
    http           names in addresses, the OpenAPI document, CSV, an LRU cache

It spends nothing, and can open neither data, nor ledgers, nor the secret side of a stream.
"""
