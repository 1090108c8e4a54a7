"""Counting under continual observation: one output for every public clock period."""
