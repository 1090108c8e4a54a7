"""The local model: how fast reports are made and counted, and how far estimates are from the truth."""
