"""The structure of the package in figures: python -m scripts.house [--json] [--names] [--route ROUTE]

Files and lines are those of `src/partita`. A code line is neither blank, nor a comment, nor part of a
docstring; an import line is a code line of an import statement. A module's importers are the other modules of
the package that import it or a name of it, inside functions and for type checkers too; those of `__init__`
and `__main__` are not counted. A comment line holds a comment and nothing else; orders to tools such as
`noqa` are no comments.

A route is traced in all threads, after everything it needs was imported and used once. Its files are those of
the package in which a function was called. Its crossings are the pairs of a calling file and a called file
that lie in different folders, each counted once. The routes:

    publish      one integer column from a Parquet file to a release file
    http         a count that the reading service answers, after another one about the same release
    count        `release.count(age=(30, 39))`, its error and interval, of a release that was just loaded
    count-again  the same of a release that has answered it before

`--route` lists the files of a route in the order in which they are entered, with the number of calls.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import io
import json
import sys
import tempfile
import threading
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = ROOT / "src" / "partita"
SMALL: Final = 50
ORDERS: Final = ("type:", "noqa", "fmt:", "pragma:", "ruff:", "mypy:")


@dataclass(frozen=True)
class Module:
    """A module as its text says; its name begins with that of the package."""

    name: str
    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def tokens(self) -> list[tokenize.TokenInfo]:
        return list(tokenize.generate_tokens(io.StringIO(self.text).readline))

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def is_plain(self) -> bool:
        """Whether it is a module of its own, not the front of a folder or the package's command."""
        return self.path.name not in ("__init__.py", "__main__.py")

    @cached_property
    def comment_lines(self) -> int:
        """Lines with a comment and nothing else."""
        found = [token for token in self.tokens if token.type == tokenize.COMMENT]
        alone = (token.string.lstrip("# ") for token in found if token.line.strip().startswith("#"))
        return sum(not text.startswith(ORDERS) for text in alone)

    @cached_property
    def code_lines(self) -> frozenset[int]:
        """The numbers of lines that hold code."""
        quiet = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
        lines: set[int] = set()
        for token in self.tokens:
            if token.type not in quiet and token.type != tokenize.ENDMARKER:
                lines.update(range(token.start[0], token.end[0] + 1))
        return frozenset(lines.difference(*(_span(node) for node in _docstrings(self.tree))))

    @cached_property
    def import_lines(self) -> int:
        """How many code lines belong to imports."""
        spans = (_span(node) for node in ast.walk(self.tree) if isinstance(node, ast.Import | ast.ImportFrom))
        return len(self.code_lines & {line for span in spans for line in span})

    def imports(self) -> Iterator[str]:
        """Full names of what is imported, `package.module.name` for a name of a module."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                home = self._home(node)
                yield from (f"{home}.{alias.name}" for alias in node.names)

    def _home(self, node: ast.ImportFrom) -> str:
        parts = self.name.split(".")
        above = parts[: len(parts) - node.level + self.is_package] if node.level else []
        return ".".join([*above, *([node.module] if node.module else [])])


@dataclass(frozen=True)
class House:
    """All modules of a package."""

    modules: tuple[Module, ...]

    @classmethod
    def read(cls, source: Path) -> House:
        """The modules in a folder, which is the package."""
        return cls(
            tuple(
                Module(_name(path, source), path, path.read_text(encoding="utf-8"))
                for path in sorted(source.rglob("*.py"))
            )
        )

    def figures(self) -> dict[str, Any]:
        """What is counted in the text of the modules."""
        code = sum(len(each.code_lines) for each in self.modules)
        imports = sum(each.import_lines for each in self.modules)
        return {
            "files": len(self.modules),
            "lines": sum(each.text.count("\n") for each in self.modules),
            "code lines": code,
            "import lines": imports,
            "share of import lines": round(imports / code, 3) if code else 0.0,
            f"modules with fewer than {SMALL} code lines": len(self.small()),
            "modules with one importer": len(self.single_importers()),
            "public class names in several modules": len(self.repeated_classes()),
            "module names in several folders": len(self.repeated_names()),
            "comment lines": sum(each.comment_lines for each in self.modules),
        }

    def small(self) -> list[str]:
        """Modules that hold little."""
        return [each.name for each in self.modules if len(each.code_lines) < SMALL]

    def importers(self) -> dict[str, set[str]]:
        """The modules that import each module."""
        known = {each.name for each in self.modules}
        found: dict[str, set[str]] = {name: set() for name in known}
        for module in self.modules:
            for name in module.imports():
                home = name if name in known else name.rpartition(".")[0]
                if home in known and home != module.name:
                    found[home].add(module.name)
        return found

    def single_importers(self) -> dict[str, str]:
        """Modules that one other module imports, with that one."""
        importers = self.importers()
        plain = (each.name for each in self.modules if each.is_plain)
        return {name: next(iter(importers[name])) for name in plain if len(importers[name]) == 1}

    def repeated_classes(self) -> dict[str, list[str]]:
        """Public names of classes at the top level that several modules define, with these modules."""
        homes: dict[str, list[str]] = defaultdict(list)
        for module in self.modules:
            for name in {node.name for node in module.tree.body if isinstance(node, ast.ClassDef)}:
                homes[name].append(module.name)
        return {
            name: places
            for name, places in sorted(homes.items())
            if len(places) > 1 and not name.startswith("_")
        }

    def repeated_names(self) -> dict[str, list[str]]:
        """Names of modules that occur in several folders."""
        homes: dict[str, list[str]] = defaultdict(list)
        for module in self.modules:
            if module.is_plain:
                homes[module.path.stem].append(module.name)
        return {name: places for name, places in sorted(homes.items()) if len(places) > 1}


@dataclass
class Trace:
    """The calls of functions of the package while a route ran."""

    calls: Counter[str] = field(default_factory=Counter)
    crossings: set[tuple[str, str]] = field(default_factory=set)
    running: bool = False

    def figures(self) -> dict[str, int]:
        """How many files were entered, and how often a folder was left on the way."""
        return {"files": len(self.calls), "crossings": len(self.crossings)}

    @contextmanager
    def traced(self) -> Iterator[None]:
        """Calls in this block are noted, in this thread and in those that began in `listening`."""
        self.running = True
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            self.running = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Threads that begin in this block are traced."""
        threading.setprofile(self._note)
        try:
            yield
        finally:
            threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call, if a route runs and the function is one of the package."""
        if not self.running or event != "call" or frame.f_code.co_name == "<module>":
            return
        called = _file(frame.f_code.co_filename)
        if called is None:
            return
        self.calls[called] += 1
        caller = frame.f_back
        while caller is not None and _file(caller.f_code.co_filename) is None:
            caller = caller.f_back
        before = None if caller is None else _file(caller.f_code.co_filename)
        if before is not None and Path(before).parent != Path(called).parent:
            self.crossings.add((before, called))


@cache
def _file(name: str) -> str | None:
    """A file of the package, as a path in it."""
    return str(Path(name).relative_to(SOURCE)) if name.startswith(f"{SOURCE}/") else None


def _publish(trace: Trace, folder: Path) -> None:
    import partita as pt

    rows = _people(folder)
    for name in ("warm", "made"):
        with trace.traced() if name == "made" else nullcontext():
            pt.publish(rows, {"age": pt.Integer(0, 119)}, epsilon=1, path=folder / f"{name}.release.parquet")


def _http(trace: Trace, folder: Path) -> None:
    _saved(folder)
    ask = http_client(folder)
    for low in (20, 30):
        with trace.traced() if low == 30 else nullcontext():
            ask("/releases/people/count", {"where": f"age between {low} and {low + 9}"})


def http_client(folder: Path) -> Callable[..., Any]:
    """A function that sends a request to the reading service of a folder, in this process."""
    import httpx

    settings = find_name("service", "ServiceSettings")(folder=folder, public=True)
    app = find_name("service", "reading_app")(settings)

    async def send(path: str, query: Mapping[str, str] | None = None, body: object = None) -> Any:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            method = "GET" if body is None else "POST"
            reply = await client.request(method, path, params=query, json=body)
            reply.raise_for_status()
            return reply.json()

    def ask(*given: Any, **named: Any) -> Any:
        with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):  # the service logs each request
            return asyncio.run(send(*given, **named))

    return ask


def _count(trace: Trace, folder: Path, *, again: bool = False) -> None:
    import partita as pt

    path = _saved(folder)
    pt.load(path).count(age=(30, 39)).interval()
    release = pt.load(path)
    if again:
        release.count(age=(30, 39)).interval()
    with trace.traced():
        release.count(age=(30, 39)).interval()


def _people(folder: Path) -> Path:
    """A Parquet file with a column of integers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "people.parquet"
    pq.write_table(pa.table({"age": [number * number % 113 for number in range(5_000)]}), path)
    return path


def _saved(folder: Path) -> Path:
    """A release of that column."""
    import partita as pt

    path = folder / "people.release.parquet"
    pt.publish(_people(folder), {"age": pt.Integer(0, 119)}, epsilon=1, path=path)
    return path


def find_name(folder: str, name: str) -> Any:
    """A name that a module of a folder of the package defines, wherever that is."""
    for module in House.read(SOURCE).modules:
        if module.name.startswith(f"partita.{folder}.") and any(
            getattr(node, "name", None) == name for node in module.tree.body
        ):
            return getattr(import_module(module.name), name)
    raise LookupError(f"no module of {folder} defines {name}")


ROUTES: Final[Mapping[str, Callable[[Trace, Path], None]]] = {
    "publish": _publish,
    "http": _http,
    "count": _count,
    "count-again": lambda trace, folder: _count(trace, folder, again=True),
}


def walk(route: str) -> Trace:
    """The calls of a route."""
    trace = Trace()
    with tempfile.TemporaryDirectory() as folder, trace.listening():
        ROUTES[route](trace, Path(folder))
    return trace


def _name(path: Path, source: Path) -> str:
    parts = [source.name, *path.relative_to(source).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _docstrings(tree: ast.Module) -> Iterator[ast.stmt]:
    """Strings that stand alone: of modules, classes and functions, and below constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str):
            yield node


def _span(node: ast.stmt) -> Iterable[int]:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def main(argv: list[str] | None = None) -> int:
    """Print the figures, as text or as JSON; or the files of a route."""
    parser = argparse.ArgumentParser(description="The structure of the package in figures.")
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.add_argument("--route", choices=tuple(ROUTES), help="list the files of this route")
    parser.add_argument("--source", type=Path, default=SOURCE, help="the package; others are not traced")
    parser.add_argument(
        "--names", action="store_true", help="list the modules and classes behind the figures"
    )
    given = parser.parse_args(argv)
    if given.route:
        trace = walk(given.route)
        print(*(f"{calls:6}  {file}" for file, calls in trace.calls.items()), sep="\n")
        return 0
    house = House.read(given.source)
    figures = house.figures()
    if given.source == SOURCE:
        figures["routes"] = {route: walk(route).figures() for route in ROUTES}
    if given.names:
        figures["names"] = {
            "small": house.small(),
            "one importer": house.single_importers(),
            "classes": house.repeated_classes(),
            "modules": house.repeated_names(),
        }
    print(json.dumps(figures, indent=1) if given.json or given.names else _text(figures))
    return 0


def _text(figures: Mapping[str, Any]) -> str:
    routes = figures.get("routes", {})
    lines = [f"{number:>8}  {name}" for name, number in figures.items() if name != "routes"]
    for route, found in routes.items():
        lines.append(f"{found['files']:>8}  files of the route {route}, {found['crossings']} crossings")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
