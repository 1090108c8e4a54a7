"""tree_counter"""
