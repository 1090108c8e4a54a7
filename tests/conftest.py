"""Hypothesis profiles: `fast` (the default) repeats itself, `fresh` looks for new examples."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("fast", derandomize=True, deadline=None)
settings.register_profile("fresh", deadline=None, max_examples=1_000, print_blob=True)
settings.load_profile("fast")
