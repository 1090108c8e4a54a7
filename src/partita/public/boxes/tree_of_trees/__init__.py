"""tree_of_trees"""
