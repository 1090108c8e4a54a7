"""Classes found in the modules of packages, so that a new file is all that a new kind needs."""

from __future__ import annotations

import inspect
from functools import cache
from importlib import import_module
from pkgutil import iter_modules


@cache
def find_classes(*packages: str) -> tuple[type, ...]:
    """The public, concrete classes that the modules of these packages define, sorted by name.

    Every module of the packages is imported, those of their subpackages are not.
    """
    return tuple(sorted(_classes(packages), key=lambda found: found.__name__))


def _classes(packages: tuple[str, ...]) -> set[type]:
    modules = [
        import_module(f"{package}.{found.name}")
        for package in packages
        for found in iter_modules(import_module(package).__path__)
        if not found.ispkg
    ]
    return {
        each
        for module in modules
        for name, each in vars(module).items()
        if inspect.isclass(each)
        and each.__module__ == module.__name__
        and not name.startswith("_")
        and not inspect.isabstract(each)
    }
