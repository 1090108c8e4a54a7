"""What every answer has in common, whichever side of the service gives it.

    secured     all of it around an app, in the right order
    errors      errors as JSON, without trace, path or echo
    headers     what browsers are told
    hosts       the names that the service answers to
    sites       what pages of other sites may do: link here
    bounds      how long a body may be, and a request may take
    observed    requests measured, for logs and metrics of public quantities
    logs        lines of JSON on standard error
    metrics     numbers for Prometheus
    ready       what must be so before anything starts
    version     the version of the library
    protocol    one connection, with limits on what it may hold and for how long
    server      one process that serves one side

Routes know nothing of any of it.
"""
