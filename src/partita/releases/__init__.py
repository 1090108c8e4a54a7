"""The public side: what may be copied, stored and queried without limit.

Nothing here can reach noise, histograms or sources; an import contract holds it to that.
"""
