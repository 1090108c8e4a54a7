"""Releases of several axes, and what is inferred from them."""
