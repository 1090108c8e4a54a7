"""How far answers are from the truth, beside published peers on the same work."""
