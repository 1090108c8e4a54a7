"""Where tests reach into the package, for want of a public call: paths that may move, in one place."""

from __future__ import annotations

from typing import Final

COUNT: Final = "partita.publish.publish.count"
"""The step of `publish` that reads rows: the last one before the debit."""

DRAW: Final = "partita.publish.publish.draw"
"""The step of `publish` that draws noise: the first one after the debit."""

SETTLING: Final = "partita.public.workload.weights._SETTLING"
"""In how many steps weights settle their public guess."""
