"""Publish a table: check the request, count, debit, draw, write."""
