"""log_tree"""
