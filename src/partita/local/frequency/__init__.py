"""frequency"""
