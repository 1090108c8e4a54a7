"""The reliability campaign: hours of looking for a violation, outside of the tests.

Each part is a module with a function `run`. What the last run found is in docs/reliability.md.
"""
