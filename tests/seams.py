"""Where tests reach into the package, for want of a public call: paths that may move, in one place."""

from __future__ import annotations

from importlib import import_module
from typing import Final

PIPELINE: Final = import_module("partita.publish.publish")
"""The steps of `publish`. `count` reads rows and is the last before the debit, `draw` the first after it."""

SETTLING: Final = "partita.public.workload.weights._SETTLING"
"""In how many steps weights settle their public guess."""
