"""Inference over boxes: products of ranges along several axes."""
