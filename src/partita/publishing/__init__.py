"""From a table to a release: plan without data, publish once, simulate on public data.

plan(schema, epsilon=1)                  what it would cost and how well it would answer
publish("people.parquet", schema, ...)   validate, count, debit, draw, store
simulate(plan, "public.parquet")         measured errors, on data that is public anyway
open_weights("s", "people.parquet", ...) answers to queries as they come, from one budget
"""
