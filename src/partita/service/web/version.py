"""The version of the library, as it was installed: to import the root would be to import sources with it."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

__all__ = ["VERSION"]

VERSION: Final = version("partita")
