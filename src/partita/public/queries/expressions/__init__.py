"""expressions"""
