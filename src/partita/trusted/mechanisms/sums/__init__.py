"""sums"""
