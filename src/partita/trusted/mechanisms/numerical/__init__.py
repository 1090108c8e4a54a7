"""numerical"""
