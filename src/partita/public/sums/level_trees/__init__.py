"""level_trees"""
