"""Releases of answers to lists of linear queries."""
