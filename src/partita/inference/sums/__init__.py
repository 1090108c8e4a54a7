"""Sums of values over public parts of the keys: knots, hats, trees of parts, and what follows from them."""
