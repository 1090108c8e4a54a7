"""Releases of whole tables: a model over many columns, fitted to noisy views of few."""
