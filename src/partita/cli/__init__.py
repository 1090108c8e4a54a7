"""The command line: what a steward and a reader do with a release, from a shell.

    main        every command, from its arguments to its exit code; no exception gets past it
    common      results as text and JSON, the parser, readers of single arguments, whole files
    spec        a release described in TOML and options, and the spec that `partita init` writes
    publish     init, plan, publish, mechanisms, keygen, sign, verify
    query       query, info, plot
    ledger, stream, local, pan, serve, audit    one file for each group of commands

Results go to stdout, messages to stderr. docs/command-line.md has the commands, the spec file and
the language of questions.
"""

from partita.cli.main import main

__all__ = ["main"]
