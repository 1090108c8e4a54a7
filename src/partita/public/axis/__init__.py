"""Releases of one axis, and what is inferred from them."""
