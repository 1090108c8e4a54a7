"""Names that nobody declared: who is found, beside a stability histogram."""
