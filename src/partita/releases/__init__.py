"""The public side: what may be copied, stored and queried without limit.

Nothing here can reach noise, histograms or sources; an import contract holds it to that.
"""

from partita.releases.cut import Cut
from partita.releases.intervals import IntervalRelease
from partita.releases.tree import TreeRelease

__all__ = ["Cut", "IntervalRelease", "TreeRelease"]
