"""The command line: what a steward and a reader do with a release, from a shell.

    entry       one command from its arguments to its exit code; no exception gets past it
    parser      every command and its options
    arguments   how commands are declared and single options are read
    output      text for people, JSON for programs
    writing     files that are there whole or not at all
    pictures    pictures that a command leaves behind
    spec        a release described in TOML, read exactly
    columns     columns described in an argument, or by the schema of a file
    request     what is to be published, from a spec and from options
    template    the commented spec that `partita init` writes
    questions   what can be asked, as data
    tokens      the words, quotes and signs of a question
    grammar     questions read from text
    conditions  conditions as a release takes them
    asking      questions put to a release
    records     views, columns and special cells of a release as records
    commands    one file for each command

Results go to stdout, messages to stderr. docs/command-line.md has the commands, the spec file and
the language of questions.
"""

from partita.cli.main import main

__all__ = ["main"]
