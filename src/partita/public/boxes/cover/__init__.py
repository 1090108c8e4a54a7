"""cover"""
