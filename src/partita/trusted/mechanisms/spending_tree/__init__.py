"""spending_tree"""
