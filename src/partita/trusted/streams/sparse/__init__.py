"""sparse"""
