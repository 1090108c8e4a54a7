"""Public names that are loaded when they are first used, as the stub of a package lists them.

A line `from module import Name as Name` in `__init__.pyi` is all that a public name needs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, from its stub.

    The stub is split, not parsed: that takes a fraction of a millisecond, and importing `ast` takes several.
    """
    homes = _read_names(package)
    names = sorted(name for name, home in homes.items() if home != package)

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:
            return import_module(f"{package}.{name}")
        home = import_module(homes[name])
        return getattr(home, name) if hasattr(home, name) else import_module(f"{homes[name]}.{name}")

    return get, lambda: sorted(names), names


def _read_names(package: str) -> dict[str, str]:
    """Every name that the stub imports, and the module that it comes from."""
    module: Any = sys.modules[package]
    stub = module.__spec__.loader.get_data(f"{module.__path__[0]}/__init__.pyi").decode()
    homes = {}
    for statement in stub.split("\nfrom ")[1:]:
        home, _, imported = statement.partition(" import ")
        for part in imported.partition("\n\n")[0].strip(" ()\n").split(","):
            if part.strip():
                homes[part.split()[-1]] = home
    return homes
