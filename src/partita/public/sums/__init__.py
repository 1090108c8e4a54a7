"""Releases of sums, means and variances."""
