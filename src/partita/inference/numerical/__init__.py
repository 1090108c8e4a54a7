"""Numerical queries after the release: thresholds, graded operators, decompositions of values."""
