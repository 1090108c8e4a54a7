"""The files of a page without a server: one script, one style, one document, and data that are scripts.

A browser lets a page that was opened from a disk load scripts and styles beside it, but neither modules nor
data. So the modules of the page are put into one script, and each data file calls a function of it. Nothing
is compiled: a module becomes a function, and what it imports are the results of others.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

PAGE: Final = Path(__file__).parent.parent / "static"
"""The modules of the page."""

HERE: Final = Path(__file__).parent
"""The modules that take the place of those that ask a server, and what only a page without one has."""

ENTRY: Final = "app.js"
MOST_SCRIPT: Final = 150_000
"""Bytes of script that a page may have."""

_IMPORT: Final = re.compile(r'^import (?:\{([^}]*)\} from )?"\./([\w.]+)";\n?', re.MULTILINE)
_PASSED: Final = re.compile(r'^export \{([^}]*)\} from "\./([\w.]+)";\n?', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:const|function|class) (\w+))", re.MULTILINE)


def module_source(name: str) -> str:
    """A module of the page: that of a page without a server, if there is one of this name."""
    own = HERE / name
    return (own if own.is_file() else PAGE / name).read_text(encoding="utf-8")


@cache
def script(entry: str = ENTRY) -> str:
    """All modules that one needs, in one script without imports."""
    needs: dict[str, set[str]] = {}
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        source = module_source(name)
        needs[name] = {each for pattern in (_IMPORT, _PASSED) for _, each in pattern.findall(source)}
        waiting += needs[name] - needs.keys()
    modules = [_as_function(name) for name in TopologicalSorter(needs).static_order()]
    return "\n".join(['"use strict";', "const modules = {};", *modules])


def _as_function(name: str) -> str:
    """A module as a function whose exports are stored under its name."""
    source = module_source(name)
    exported = [
        f"{each.strip()}: modules[{json.dumps(module)}].{each.strip()}"
        for names, module in _PASSED.findall(source)
        for each in names.split(",")
    ]
    exported += [match.group(1) for match in _EXPORT.finditer(source)]
    source = _PASSED.sub("", source)
    source = _IMPORT.sub(lambda found: _destructure(found.group(1), found.group(2)), source)
    body = _EXPORT.sub("", source)
    return f"modules[{json.dumps(name)}] = (() => {{\n{body}\nreturn {{ {', '.join(exported)} }};\n}})();"


def _destructure(names: str | None, module: str) -> str:
    return f"const {{{names}}} = modules[{json.dumps(module)}];\n" if names else ""


def document() -> str:
    """The document: everything beside it, and nothing from anywhere else."""
    return module_source("site.html")


def style() -> str:
    """The style of the page."""
    return (PAGE / "style.css").read_text(encoding="utf-8")


# Data files.

_CODES: Final = {"f": ("f8", "<f8"), "u": ("u8", "<u8"), "i": ("i4", "<i4"), "b": ("i4", "<i4")}


def data_script(name: str, record: Mapping[str, Any]) -> bytes:
    """A file that hands a record to the page."""
    text = json.dumps(_plain(record), allow_nan=False, separators=(",", ":"))
    return f"partita({json.dumps(name)},{text});\n".encode("ascii")


def _plain(value: Any) -> Any:
    """Text, numbers, lists and records; arrays are bytes in base64, and what is no number is null."""
    if isinstance(value, np.ndarray):
        return _encode(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Sequence):
        return [_plain(each) for each in value]
    return str(value)


def _encode(values: NDArray[Any]) -> dict[str, str]:
    code, kind = _CODES[values.dtype.kind]
    return {code: base64.b64encode(values.ravel().astype(kind).tobytes()).decode("ascii")}
