"""Synthetic data that agree with noisy answers: what private multiplicative weights make of them."""
