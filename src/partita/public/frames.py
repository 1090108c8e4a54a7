"""Results as tables; `partita.frames` has them, where answers can reach them too."""

from partita.frames import Tabular

__all__ = ["Tabular"]
