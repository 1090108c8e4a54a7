"""Lazy loading: public names, classes of packages and properties are computed when they are first used.

A line `from module import Name as Name` in `__init__.pyi` is all that a public name needs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from os.path import isdir
from types import ModuleType
from typing import Any

# In Python 3.11 all instances of a class share one lock for each cached property, held while the value is
# computed: a request for the errors of many boxes would block every error of every release. Without the lock
# two threads may compute the same value at the same time, and the last one stays.
if sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:
    from typing import Generic, TypeVar, overload

    T = TypeVar("T")

    class cached_property(Generic[T]):  # noqa: N801
        """A property that is computed once for each instance and stored in its `__dict__`, without a lock."""

        def __init__(self, func: Callable[[Any], T]) -> None:
            self.func = func
            self.__doc__ = func.__doc__

        def __set_name__(self, owner: type[Any], name: str) -> None:
            self.attrname = name

        @overload
        def __get__(self, instance: None, owner: type[Any] | None = None) -> cached_property[T]: ...

        @overload
        def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...

        def __get__(self, instance: object | None, owner: type[Any] | None = None) -> cached_property[T] | T:
            if instance is None:
                return self
            value = self.func(instance)
            instance.__dict__[self.attrname] = value
            return value


@cache
def find_classes(*packages: str) -> tuple[type, ...]:
    """The public, concrete classes that the modules of these packages define, sorted by name.

    Every module of the packages is imported, those of their subpackages are not. A new file is all that a new
    kind needs.
    """
    import inspect
    from pkgutil import iter_modules

    modules = [
        import_module(f"{package}.{found.name}")
        for package in packages
        for found in iter_modules(import_module(package).__path__)
        if not found.ispkg
    ]
    classes = {
        each
        for module in modules
        for name, each in vars(module).items()
        if inspect.isclass(each)
        and each.__module__ == module.__name__
        and not name.startswith("_")
        and not inspect.isabstract(each)
    }
    return tuple(sorted(classes, key=lambda found: found.__name__))


class _Package(ModuleType):
    """A package with a public name that is also the name of one of its folders: `publish` is the function.

    Python binds a subpackage to its parent when it is first imported, which would hide the function.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in vars(self).get("_functions", ())):
            super().__setattr__(name, value)


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, from its stub.

    The stub is split, not parsed: that takes a fraction of a millisecond, and importing `ast` takes several.
    """
    homes = _read_names(package)
    module = sys.modules[package]
    names = sorted(name for name, home in homes.items() if not _is_folder(module, f"{home}.{name}"))
    module.__dict__["_functions"] = frozenset(names)
    module.__class__ = _Package

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if name not in names:
            return import_module(f"{homes[name]}.{name}")
        return getattr(import_module(homes[name]), name)

    return get, lambda: sorted(names), names


def _is_folder(module: ModuleType, path: str) -> bool:
    """Whether a name that is in the stub of a package is a package itself."""
    inside = path.removeprefix(module.__name__).strip(".").replace(".", "/")
    return inside.rpartition("/")[2].islower() and isdir(f"{module.__path__[0]}/{inside}")


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
