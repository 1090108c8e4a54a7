"""Spark: counts are taken where the rows are."""
