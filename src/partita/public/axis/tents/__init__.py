"""tents"""
