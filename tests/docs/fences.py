"""The fenced blocks of a Markdown page: which are run, and which only show something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

RUN: Final = frozenset({"python", "sh", "sql"})
SHOWN: Final = frozenset({"text", "json", "toml", "csv", "r", "ini", "nginx", "caddy"})
ELSEWHERE: Final = frozenset({"make", "pip", "git", "curl", "sudo", "apt", "docker"})
_FENCE: Final = re.compile(r"^( *)(```+)([^`\n]*)\n(.*?)^\1\2 *$", re.DOTALL | re.MULTILINE)


class BadFence(Exception):
    """A block that nobody can run, and that does not say that it is only shown."""


@dataclass(frozen=True, kw_only=True)
class Fence:
    """One block: its language, its text, and the line of the page on which its text begins."""

    language: str
    text: str
    line: int

    def check(self, page: str) -> None:
        """Refuse a language that is neither run nor shown, and commands that cannot be run here."""
        where = f"{page}:{self.line - 1}"
        if self.language not in RUN | SHOWN:
            known = ", ".join(sorted(RUN | SHOWN))
            raise BadFence(f"{where}: a fence in {self.language or 'no language'!r}; known are {known}")
        if self.language == "sh":
            foreign = sorted(set(map(program, commands(self.text))) & ELSEWHERE)
            if foreign:
                raise BadFence(f"{where}: {', '.join(foreign)} is not run here: show it in a text fence")


def fences(page: str) -> Iterator[Fence]:
    """All blocks of a page, in order; what a list indents is moved back to the margin."""
    for found in _FENCE.finditer(page):
        indent, _, language, text = found.groups()
        line = page.count("\n", 0, found.start(4)) + 1
        yield Fence(language=language.strip(), text=flush(text, indent=len(indent)), line=line)


def flush(text: str, *, indent: int) -> str:
    """The text without the blanks that its fence begins with."""
    return re.sub(rf"^ {{1,{indent}}}", "", text, flags=re.MULTILINE) if indent else text


def commands(text: str) -> list[str]:
    """The command lines of a block of shell: comments and empty lines apart, continued lines joined."""
    lines = text.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def program(command: str) -> str:
    """The name that a command begins with."""
    return command.split()[0]
