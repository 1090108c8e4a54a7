"""tree_solver"""
