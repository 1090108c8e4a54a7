"""counts"""
