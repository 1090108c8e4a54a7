"""Counters under continual observation."""
