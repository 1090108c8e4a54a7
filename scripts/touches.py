"""Where randomness and data are touched: python -m scripts.touches [--check]

Finds, in the source itself, every module that imports `partita.trusted.noise` and every module that imports
what holds or reads rows, and writes them as tables into docs/reviewers.md. With --check it only compares.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from scripts.setup_env import ROOT

SOURCE: Final = ROOT / "src"
PAGE: Final = ROOT / "docs" / "reviewers.md"
DRAWS: Final = {
    "add", "bernoulli", "categorical", "draw", "exponential", "first_success", "integers_below",
    "permute_and_flip", "segments",
}  # fmt: skip
KERNEL: Final = {"below", "entropy", "token"}
UNIFORM: Final = {"chances", "flags", "integers_below", "take", "take_up_to"}
DRAWABLE: Final = {"KERNEL", "KernelWords", "Noise", "SYSTEM", "WordSource", "Words", "token"}
HOLDERS: Final = ("trusted.secret", "trusted.sources")
ASIDE: Final = ("trusted.noise", "testing")


@dataclass(frozen=True)
class Module:
    """A module of the package, as its source says."""

    name: str
    tree: ast.Module

    @property
    def purpose(self) -> str:
        """The first sentence of its docstring."""
        text = " ".join((ast.get_docstring(self.tree) or "").split("\n\n")[0].split())
        return text.replace("|", "or")

    @property
    def folder(self) -> str:
        """Its part of the package; of the trusted side and the public one, the part of that."""
        parts = self.name.split(".")
        return ".".join(parts[: 2 if parts[0] in {"trusted", "public"} else 1])

    def imports(self) -> Iterator[str]:
        """What it imports of the package at run time, without the package's own name."""
        for node in _run(self.tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "partita":
                home = (node.module or "").removeprefix("partita").removeprefix(".")
                yield from (f"{home}.{alias.name}".removeprefix(".") for alias in node.names)

    def draws(self) -> Iterator[str]:
        """`function: call` for every call that takes noise or bytes."""
        for name, body in _functions(self.tree):
            calls = {
                found for node in ast.walk(body) if isinstance(node, ast.Call) and (found := _drawn(node))
            }
            yield from (f"`{name}`: {call}" for call in sorted(calls))


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that are run: not those that type checkers alone see."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        yield node
        yield from _run(node)


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Functions and methods with their names; one inside another belongs to it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node


def _drawn(call: ast.Call) -> str | None:
    """How a call draws, or None: a method of noise, bytes of the kernel, or uniform words."""
    function = call.func
    if isinstance(function, ast.Name):
        return f"`{function.id}`" if function.id in KERNEL | UNIFORM else None
    if not isinstance(function, ast.Attribute):
        return None
    owner = ast.unparse(function.value).lower()
    drawing = function.attr in DRAWS and re.search(r"(noise|session|system|kernel)(\(\))?$", owner)
    taking = (function.attr in KERNEL and owner == "kernel") or function.attr in {"take", "take_up_to"}
    return f"`{function.attr}`" if drawing or (taking and re.search(r"kernel|words|source", owner)) else None


@cache
def modules() -> list[Module]:
    """Every module of the package but the tools of tests and the noise itself."""
    package = SOURCE / "partita"
    found = []
    for path in sorted(package.rglob("*.py")):
        name = ".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__")
        found.append(Module(name, ast.parse(path.read_text())))
    return [module for module in found if module.folder not in ASIDE]


def randomness() -> Iterator[str]:
    """A row for each module that draws, then those that hand noise on, and those that only know its laws."""
    silent: dict[bool, list[str]] = {True: [], False: []}
    yield from ("| module | function: what it draws |", "|---|---|")
    for module in modules():
        noise = {name.split(".")[-1] for name in module.imports() if name.startswith("trusted.noise")}
        if noise and (draws := list(module.draws())):
            yield f"| `{module.name}` | {'; '.join(draws)} |"
        elif noise:
            silent[bool(noise & DRAWABLE)].append(f"`{module.name}`")
    yield f"\nHand noise on and draw nothing themselves: {', '.join(silent[True])}."
    yield f"\nImport laws, limits or types, and cannot draw: {', '.join(silent[False])}."


def data() -> Iterator[str]:
    """A row for each module that holds rows or counts of them, or is handed some."""
    yield from ("| module | what it does |", "|---|---|")
    for module in modules():
        touched = sorted(
            {".".join(name.split(".")[:2]) for name in module.imports()} & set(HOLDERS) - {module.folder}
        )
        if touched or module.folder in HOLDERS:
            yield f"| `{module.name}` | {module.purpose} |"


def written(text: str) -> str:
    """The page with both tables as the source has them now."""
    for mark, lines in (("<!-- randomness -->", randomness()), ("<!-- data -->", data())):
        before, _, after = text.split(mark)
        text = mark.join([before, "\n".join(["\n", *lines, "\n"]), after])
    return text


def main(arguments: Sequence[str]) -> int:
    before = PAGE.read_text()
    after = written(before)
    if "--check" in arguments:
        return int(before != after)
    PAGE.write_text(after)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
