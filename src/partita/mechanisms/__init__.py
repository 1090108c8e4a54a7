"""Publish once: one file per published algorithm."""
